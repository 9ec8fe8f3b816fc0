"""Detectors of one property of a sentence, by simple rules: negation, numbers, names, length.

docs/reliability.md gives the accuracy of each, by language. A language in which it is too low is left out:
the detector returns None there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import NamedTuple

from text_to_num import alpha2digit, text2num

from bgt_core.data.columns import UNSPACED
from bgt_core.data.languages import primary
from bgt_core.data.properties import APOSTROPHES


class Negation(NamedTuple):
    """The patterns of negation in a language, for lower-cased text with straight apostrophes."""

    negates: str
    apart: str  # removed first: the same words in uses without negation


_SECOND = r"(?:pas|jamais|rien|plus|personne|aucune?s?|guère|nuls?|nulles?|ni|point)\b"
_STEPS = (
    r"un|les?|des|du|aux?|ces|[mts]es|[nv]os|leurs?|quelques|plusieurs|chaque|deux|trois|quatre|cinq|six|sept|huit|neuf"
    r"|dix|vingt|cent|mille|\d+|premiers?|derniers?|petits?|grands?|faux"
)
NEGATIONS = {
    "en": Negation(
        r"\b(?:not|never|no|nobody|nothing|none|nor|neither|nowhere|cannot|nope)\b|n't\b",
        r"\bno\.\s*\d|\bno doubt\b|\bnot only\b|,\s*\w+n't (?:i|you|he|she|it|we|they|there)\s*\?",
    ),
    "fr": Negation(
        # "ne" with its second word, after it or before it; then negations without "ne".
        rf"\bn(?:e\b|')[^.!?;]*\b{_SECOND}|\b(?:personne|rien|jamais|aucune?|ni|nulle?)\b[^.!?;]*\bn(?:e\b|')"
        r"|\b(?:pas|non|ni|aucune?|nulle part)\b|\bplus (?:jamais|rien|personne)\b"
        r"|(?:^|[.!?,;:«—-] *|presque )jamais\b|(?:^|[.!?;:«—-] *)(?:rien\b|personne *(?:[.!?,]|$))",
        rf"\b(?:{_STEPS})\s+pas\b|\bpas[ -]à[ -]pas\b|\bpas-de-|,\s*n'est-ce pas\b|\bnon seulement\b"
        r"|\bde rien\b|\brien que?\b|\b(?:si|à|que) jamais\b|\bd'aucuns\b|\b(?:un|le|ce|du|au|à) point\b"
        r"|\b(?:une|la|cette|chaque|quelle|autre|jeune|en) personne\b"
        r"|\bplus (?:tard|tôt|loin|haut|bas|ou moins|que?\b)",
    ),
    "es": Negation(
        r"\b(?:no|nunca|jamás|nada|nadie|ning(?:ún|un[oa]s?)|ni|tampoco)\b",
        r"\bno\.\s*\d|¿\s*no\s*\?|\bde nada\b|\b(?:antes|más) que nada\b|\bno s[oó]lo\b|\bno solamente\b"
        r"|\b(?:él|ella|usted) nada\b|\bno obstante\b|\b(?:más|mejor|peor)\b[^.,;]* que nunca\b",
    ),
    "de": Negation(
        r"\b(?:nicht|kein(?:e[mnrs]?|erlei|esfalls|eswegs)?|nie|niemals|nimmer|nichts|niemand(?:e[mn])?|nirgend(?:s|wo)"
        r"|weder|nein)\b",
        r"\bnicht wahr\b|\bnicht nur\b",
    ),
    "ja": Negation(
        r"ない|なかった|なく[てな、]|ません|ずに|(?<![必まは])ず、|[うくぐすつぬぶむる]な[。！!]|いいえ",
        # Excuses, "perhaps", "surely", "must", invitations, questions, and adjectives that end like a negation.
        r"すみません|かもしれ(?:ない|ません)|に(?:違|ちが)いない|(?:なければ|なくては|ないと)(?:なら|なり|いけ)(?:ない|ません)"
        r"|ませんか|[ま間]もなく|[じで](?:ゃ|は)ない(?:です)?か|んじゃない[?？]"
        r"|(?:危|少|汚|幼|切|あぶ|すく|きた|おさ|つまら|くだら|もったい|とんでも)な(?:い|かった|くて)",
    ),
}
_NEGATIONS = {lang: Negation(*map(re.compile, rules)) for lang, rules in NEGATIONS.items()}  # type: ignore[arg-type]


class NumberRules(NamedTuple):
    """How a language writes numbers, in lower-cased text; number words are parsed by text2num."""

    group: str  # separator of thousands in digits
    scales: Mapping[str, int]  # words after digits: "2 million"
    ordinal: str  # ending of an ordinal in digits, which is not counted; "" if it can't be distinguished from a number
    percent: str  # words that contain a number word and are not numbers
    unclear: str  # words for uncertain quantities and fractions


NUMBERS = {
    "en": NumberRules(
        ",",
        {"thousand": 10**3, "million": 10**6, "billion": 10**9},
        r"(?:st|nd|rd|th)s?\b",
        "per cent",
        "dozens?|hundreds|thousands|millions|billions|half|halves|quarters?|thirds",
    ),
    "fr": NumberRules(
        ".",
        {"mille": 10**3, "millions?": 10**6, "milliards?": 10**9},
        r"(?:ers?|r?es?|[eè]mes?|nde?s?)\b",
        "pour cent",
        "(?:di|douz|quinz|vingt|trent|quarant|cinquant|soixant|cent)(?:z?aine)s?|milliers?|des (?:millions|milliards)"
        "|demie?s?|moitié|quarts?|tiers",
    ),
    "es": NumberRules(
        ".",
        {"mil": 10**3, "mill(?:ón|ones)": 10**6},
        "[ºª°ᵃᵒ]",
        "por cien(?:to)?",
        "docenas?|decenas?|cientos|cientas|centenar(?:es)?|miles|millares?|medi[oa]s?|mitad|cuart[oa]s?|tercios?",
    ),
    "de": NumberRules(
        ".",
        {"tausend": 10**3, "million(?:en)?": 10**6, "milliarden?": 10**9},
        "",
        "hundertprozentig",
        r"dutzende?|hunderte[rn]?|tausende[rn]?|halb\w*|hälften?|\w*viertel\w*|drittel|anderthalb\w*|\w+einhalb",
    ),
}
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_YEAR = re.compile(  # nineteen forty-five
    rf"\b({_TEENS}|twenty) ((?:{_TEENS})|(?:{_TENS})(?: (?:one|two|three|four|five|six|seven|eight|nine))?)\b"
)
_FIGURES = r"\d+(?:[.,:]\d+)*"

NAME_LANGS = ("en", "fr", "es", "tr")  # within a sentence, these languages capitalise names only
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_JOINED = {"en": "'(?:s|ll|re|ve|d|m)?$", "fr": "^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)'", "tr": "'.*"}  # to a word
_TITLES = re.compile(r"\b(?:Mrs?\b\.?|Ms\b\.?|Dr\b\.?|Prof\.|Mme\b\.?|Mlle\b\.?|M\.|Sra?\.|Srta\.) *")
_STARTS = re.compile(r"(?:^|[.!?…:«“\"¿¡(—-])[\s'\"«»“”¿¡(—-]*$")  # characters before the first word of a sentence


def has_negation(text: str, lang: str) -> bool | None:
    """Tell whether a sentence contains a negation; None for a language that is left out.

    >>> has_negation("Je n'ai rien vu.", "fr"), has_negation("I can't.", "en"), has_negation("Nicht.", "xx")
    (True, True, None)
    """
    if primary(lang) not in _NEGATIONS:
        return None
    negates, apart = _NEGATIONS[primary(lang)]
    return bool(re.search(negates, re.sub(apart, " ", text.lower().translate(APOSTROPHES))))


def numbers(text: str, lang: str) -> list[str] | None:
    """List the numbers of a sentence as figures, sorted, whether they are written in digits or in words.

    The number one is left out, because its word is mostly an article or a pronoun, and so are ordinals, except in
    German. None for a language that is left out, and for a sentence with an uncertain quantity, as "dozens".

    >>> numbers("Trois hommes et 22 chiens", "fr"), numbers("Twenty-two", "en"), numbers("dozens", "en")
    (['22', '3'], ['22'], None)
    """
    if primary(lang) not in NUMBERS:
        return None
    rules = NUMBERS[primary(lang)]
    text = re.sub(rf"\b(?:{rules.percent})\b", "%", text.lower().translate(APOSTROPHES))
    if re.search(rf"\b(?:{rules.unclear})\b", text):
        return None
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", text)
    text = re.sub(r"(?<!\d)(\d{1,3}(?:[ \u00a0\u202f]\d{3})+)(?!\d)", lambda match: "".join(match[1].split()), text)
    for word, value in rules.scales.items():
        text = re.sub(rf"({_FIGURES})\s+{word}\b", partial(scaled, value=value, rules=rules), text)
    if primary(lang) == "en":
        text = _YEAR.sub(lambda match: str(100 * text2num(match[1], "en") + text2num(match[2], "en")), text)
    if primary(lang) == "es":
        text = re.sub(r"\bveintiún\b", "veintiuno", text)
    read = alpha2digit(text, primary(lang), threshold=0)
    ordinal = f"(?!{rules.ordinal})" if rules.ordinal else ""
    values = [figure(match, rules) for match in re.findall(rf"(?>{_FIGURES}){ordinal}", read)]
    return sorted(value for value in values if value != "1")


def figure(digits: str, rules: NumberRules) -> str:
    """Normalise a number in digits: "10,000.50" -> "10000.5"; times and dates stay as they are."""
    group = re.escape(rules.group)
    if re.fullmatch(rf"\d{{1,3}}(?:{group}\d{{3}})+(?:[.,]\d+)?", digits):
        digits = digits.replace(rules.group, "")
    try:
        return f"{Decimal(digits.replace(',', '.')).normalize():f}"
    except InvalidOperation:
        return digits


def scaled(match: re.Match[str], value: int, rules: NumberRules) -> str:
    """Multiply digits by the word after them: "1.5 million" -> "1500000"."""
    try:
        return f"{(Decimal(figure(match[1], rules)) * value).normalize():f}"
    except InvalidOperation:
        return match[0]


def names(text: str, lang: str) -> list[str] | None:
    """List the words within a sentence that have a capital, sorted: names, mostly, and in English days and "English".

    The first word is skipped, because it has a capital anyway. None for a language that capitalises other words, or
    none.

    >>> names("Yesterday Tom met Mary in New York.", "en")
    ['Mary', 'New', 'Tom', 'York']
    """
    if primary(lang) not in NAME_LANGS:
        return None
    return sorted(
        word for before, word in words(text, lang) if word[:1].isupper() and word != "I" and not _STARTS.search(before)
    )


def words(text: str, lang: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a sentence and the text before it, without joined words: "Italie" for "l'Italie", "Tom" for
    "Tom's"."""
    text = _TITLES.sub("", text.translate(APOSTROPHES))
    for match in _WORD.finditer(text):
        yield text[: match.start()], re.sub(_JOINED.get(primary(lang), "(?!)"), "", match[0])


def digits(text: str) -> list[str]:
    """List the numbers written in digits, sorted; only the script of the digits is normalised.

    >>> digits("At 2:30, ３人")
    ['2:30', '3']
    """
    figures = re.findall(_FIGURES, text)
    return sorted("".join(str(int(char)) if char.isdecimal() else char for char in figure) for figure in figures)


def length(text: str, lang: str) -> int:
    """Count words between spaces, or characters in a language without spaces."""
    return len(text.replace(" ", "")) if primary(lang) in UNSPACED else len(text.split())
