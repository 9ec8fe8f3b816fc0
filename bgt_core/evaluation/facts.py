"""Find negations, numbers, names and word classes in a sentence by rules, and compare generated text with its source.

facts.toml lists the patterns and words of each language; docs/reliability.md reports the accuracy of each rule. A rule
returns None for a language in which it is not accurate enough. The rules do not use a model.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from text_to_num import alpha2digit, text2num

from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.properties import APOSTROPHES
from bgt_core.data.text import COMBINING, MARK

RULES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

_LIGHT = {lang: re.compile("|".join(rules["light"])) for lang, rules in RULES.items() if "light" in rules}
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_YEAR = re.compile(  # years in words, such as "nineteen forty-five"
    rf"\b({_TEENS}|twenty) ((?:{_TEENS})|(?:{_TENS})(?: (?:one|two|three|four|five|six|seven|eight|nine))?)\b"
)
_FIGURES = r"\d+(?:[.,:]\d+)*"

NAME_LANGS = ("en", "fr", "es", "tr")  # languages that capitalise only names within a sentence
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_CLITICS = {"en": "'(?:s|ll|re|ve|d|m)?$", "fr": "^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)'", "tr": "'.*"}
_TITLES = re.compile(r"\b(?:Mrs?\b\.?|Ms\b\.?|Dr\b\.?|Prof\.|Mme\b\.?|Mlle\b\.?|M\.|Sra?\.|Srta\.) *")
_STARTS = re.compile(r"(?:^|[.!?…:«“\"¿¡(—-])[\s'\"«»“”¿¡(—-]*$")  # characters before the first word of a sentence


def has_negation(text: str, lang: str) -> bool | None:
    """Return whether a sentence contains a negation; None for a language without rules.

    >>> has_negation("Je n'ai rien vu.", "fr"), has_negation("I can't.", "en"), has_negation("Nicht.", "xx")
    (True, True, None)
    """
    if "negates" not in (rules := RULES.get(primary(lang), {})):
        return None
    text = re.sub("|".join(rules["apart"]), " ", text.lower().translate(APOSTROPHES))
    return bool(re.search("|".join(rules["negates"]), text))


def numbers(text: str, lang: str) -> list[str] | None:
    """List the numbers of a sentence, which may be written in digits or in words, as sorted strings of digits.

    The number one is omitted, because its word is mostly an article or a pronoun. Ordinals are omitted, too, except in
    German. Returns None for a language without rules, and for a sentence with an uncertain quantity, such as "dozens".

    >>> numbers("Trois hommes et 22 chiens", "fr"), numbers("Twenty-two", "en"), numbers("dozens", "en")
    (['22', '3'], ['22'], None)
    """
    if (rules := RULES.get(primary(lang), {}).get("numbers")) is None:
        return None
    text = re.sub(rf"\b(?:{rules['percent']})\b", "%", text.lower().translate(APOSTROPHES))
    if re.search(rf"\b(?:{'|'.join(rules['unclear'])})\b", text):
        return None
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", text)
    text = re.sub(r"(?<!\d)(\d{1,3}(?:[ \u00a0\u202f]\d{3})+)(?!\d)", lambda match: "".join(match[1].split()), text)
    for word, scale in rules["scales"].items():

        def scaled(match: re.Match[str], scale: int = scale) -> str:
            return figure(match[1], rules, scale) or match[0]

        text = re.sub(rf"({_FIGURES})\s+{word}\b", scaled, text)  # "1.5 million" becomes "1500000"
    if primary(lang) == "en":
        text = _YEAR.sub(lambda match: str(100 * text2num(match[1], "en") + text2num(match[2], "en")), text)
    if primary(lang) == "es":
        text = re.sub(r"\bveintiún\b", "veintiuno", text)
    read = alpha2digit(text, primary(lang), threshold=0)
    ordinal = f"(?!{rules['ordinal']})" if "ordinal" in rules else ""
    digits = re.findall(rf"(?>{_FIGURES}){ordinal}", read)
    return sorted(value for each in digits if (value := figure(each, rules) or each) != "1")


def figure(digits: str, rules: Mapping[str, Any], scale: int = 1) -> str | None:
    """Normalise a number in digits, times `scale`: "10,000.50" -> "10000.5". Return None for a time or date."""
    group = re.escape(rules["group"])
    if re.fullmatch(rf"\d{{1,3}}(?:{group}\d{{3}})+(?:[.,]\d+)?", digits):
        digits = digits.replace(rules["group"], "")
    try:
        return f"{(Decimal(digits.replace(',', '.')) * scale).normalize():f}"
    except InvalidOperation:
        return None


def names(text: str, lang: str) -> list[str] | None:
    """List the capitalised words of a sentence, sorted. Most are names; in English, some are days or nationalities.

    The first word is skipped, because it is always capitalised. Returns None for a language that has no capital
    letters, or that also capitalises words other than names within a sentence.

    >>> names("Yesterday Tom met Mary in New York.", "en")
    ['Mary', 'New', 'Tom', 'York']
    """
    if primary(lang) not in NAME_LANGS:
        return None
    return sorted(
        word for before, word in words(text, lang) if word[:1].isupper() and word != "I" and not _STARTS.search(before)
    )


def words(text: str, lang: str) -> Iterator[tuple[str, str]]:
    """Yield the text before each word of a sentence, and the word without clitics: "Italie" for "l'Italie"."""
    text = _TITLES.sub("", text.translate(APOSTROPHES))
    for match in _WORD.finditer(text):
        yield text[: match.start()], re.sub(_CLITICS.get(primary(lang), "(?!)"), "", match[0])


def digits(text: str) -> list[str]:
    """List the numbers that are written in digits, sorted, with the digits of any script converted to 0-9.

    >>> digits("At 2:30, ３人")
    ['2:30', '3']
    """
    figures = re.findall(_FIGURES, text)
    return sorted("".join(str(int(char)) if char.isdecimal() else char for char in figure) for figure in figures)


def length(text: str, lang: str) -> int:
    """Count the words, which are separated by spaces; in a language without spaces, count the characters."""
    return len(text.replace(" ", "")) if primary(lang) in UNSPACED else len(text.split())


# The words of a sentence are classified by the lists in facts.toml.

FUNCTION, NUMBER, NAME, PUNCTUATION, OTHER = "function", "number", "name", "punctuation", "other"

FUNCTION_WORDS = {lang: frozenset(rules.get("function", "").split()) for lang, rules in RULES.items()}
_DIGIT = rf"\d[{COMBINING}]*"
_PART = re.compile(rf"{_DIGIT}(?:[.,:]*{_DIGIT})*|[^\W\d_](?:[^\W\d_]|[{COMBINING}])*|{MARK}|_")
_SENTENCE_STARTS = re.compile(r"(?:^|[.!?…:;«»“”\"(—–-])\s*$")


def classed_words(text: str, lang: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start offset, end offset and class of each word, number and punctuation mark of a normalised text.

    A word is a run of letters with their accents and vowel signs, so that "don't" is two words and a mark. A name is a
    capitalised word inside a sentence, except "I", in a language that capitalises only names. In other languages, names
    have the class "other". If a language has no list of function words, its function words have the class "other", too.

    >>> [kind for *_, kind in classed_words("Is Tom 5?", "en")]
    ['function', 'name', 'number', 'punctuation']
    """
    functions = FUNCTION_WORDS.get(primary(lang), frozenset())
    for match in _PART.finditer(text):
        word = match[0]
        if word[0].isdigit():
            kind = NUMBER
        elif not word[0].isalpha():
            kind = PUNCTUATION
        elif word.lower() in functions:
            kind = FUNCTION
        elif primary(lang) in NAME_LANGS and word[0].isupper() and not _SENTENCE_STARTS.search(text[: match.start()]):
            kind = NAME
        else:
            kind = OTHER
        yield *match.span(), kind


# The following functions compare a generated sentence with its source, property by property.

MOVED = frozenset(word for rules in RULES.values() for word in rules.get("moved", "").split())
ASIDES = re.compile(r"\best-ce qu(?:e\b|')|\bs'il (?:te|vous) pla[iî]t\b|\b(?:please|bitte)\b", re.IGNORECASE)
RATIO = 1.5  # ratio of lengths above which an output counts as "much longer" or "much shorter"


class Check(NamedTuple):
    """Whether a generated sentence keeps a property of its source, and a `verdict` for users: "negation lost"."""

    passed: bool
    verdict: str


def checks(source: str, source_lang: str, output: str, lang: str) -> list[Check]:
    """Compare an output with its source: negation, numbers, names, content words, word order and length.

    Across languages, only negations and numbers are compared. Content words are compared only in English, French and
    German. A content word does not count as lost or added if another content word may have replaced it, because the two
    words may be synonyms. The check of word order distinguishes "the girl gave the boy" from "the boy gave the girl". A
    passive fails this check, although its meaning is the same. Case is ignored.

    >>> [check.verdict for check in checks("Tom is not 30.", "en", "tom is 40 and late.", "en")]
    ['negation lost', '30 lost', 'late added']

    Returns one check for each property that the source has and that the rules of its language can find. The checks of
    content words, word order and length are returned only if they failed.
    """
    checked: list[Check] = []
    before, after = has_negation(source, source_lang), has_negation(output, lang)
    if before is not None and after is not None and (before or after):
        verdict = "kept" if before == after else "lost" if before else "added"
        checked.append(Check(before == after, f"negation {verdict}"))
    values, written = numbers(source, source_lang), numbers(output, lang)
    if values and written is not None:
        checked.append(_all_in(values, written, "numbers"))
    if source_lang != lang:
        return checked
    if named := names(source, lang):
        checked.append(_all_in(named, [word for _, word in words(output, lang)], "names"))
    checked += [Check(False, verdict) for verdict in _other_content(source, output, lang)]
    if primary(lang) not in UNSPACED and _shared(source, output, lang) != _shared(output, source, lang):
        checked.append(Check(False, "order of words changed"))
    lengths = _length(source, lang), _length(output, lang)
    if lengths[1] > RATIO * max(1, lengths[0]) or lengths[0] > RATIO * lengths[1]:
        checked.append(Check(False, "much longer" if lengths[1] > lengths[0] else "much shorter"))
    return checked


def differences(checked: Sequence[Check]) -> str:
    """Join the verdicts of all failed checks, as in "negation lost, much shorter"; return "" if all checks passed."""
    return ", ".join(check.verdict for check in checked if not check.passed)


def _other_content(source: str, output: str, lang: str) -> Iterator[str]:
    """Yield "WORDS lost" for content words of the source that the output lacks, and "WORDS added" for the reverse."""
    if primary(lang) not in _LIGHT:
        return
    before, after = _content(source, lang), _content(output, lang)
    lost, added = (
        [word for word in mine if not any(_akin(word, other) for other in others)]
        for mine, others in ((before, after), (after, before))
    )
    alike = sorted((-SequenceMatcher(None, one, two).ratio(), one, two) for one in lost for two in added)
    for _, one, two in alike:  # pair a lost word with the most similar added word, as its likely replacement
        if one in lost and two in added:
            lost.remove(one)
            added.remove(two)
    for verdict, left in (("lost", [word for word in lost if not before[word]]), ("added", added)):
        if left:
            yield f"{', '.join(left)} {verdict}"


def _content(text: str, lang: str) -> dict[str, bool]:
    """Return the content words of a text, lower-cased: word -> whether it is known to be a name."""
    content = {}
    for start, end, kind in classed_words(text.translate(APOSTROPHES), lang):
        word = text[start:end].lower()
        if kind in (NAME, OTHER) and not _LIGHT[primary(lang)].fullmatch(word) and not numbers(word, lang):
            content[word] = kind == NAME
    return content


def _akin(word: str, other: str) -> bool:
    """Test whether two words may be forms of one word, by comparing the first four letters (three in short words)."""
    letters = min(4, len(word), len(other))
    return word == other or (letters > 2 and word[:letters] == other[:letters])


def _length(text: str, lang: str) -> int:
    """Count words, or characters if the language has no spaces. Omit punctuation and phrases like "please"."""
    text = ASIDES.sub(" ", text.translate(APOSTROPHES))
    units = text if primary(lang) in UNSPACED else re.split(r"[\s-]", text)
    return sum(any(map(str.isalnum, unit)) for unit in units)


def _all_in(wanted: list[str], written: list[str], kind: str) -> Check:
    lower = {word.lower() for word in written}
    lost = [word for word in dict.fromkeys(wanted) if word.lower() not in lower]
    return Check(not lost, f"{', '.join(lost)} lost" if lost else f"{kind} kept")


def _shared(text: str, other: str, lang: str) -> list[str]:
    """Return the words that occur exactly once in `text` and exactly once in `other`, in the order of `text`."""
    mine, theirs = ([word.lower() for _, word in words(each, lang)] for each in (text, other))
    return [word for word in mine if mine.count(word) == theirs.count(word) == 1 and word not in MOVED]
