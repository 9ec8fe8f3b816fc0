"""Checks of one generated sentence against its source, by rules that know nothing of the model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from bgt_core.data.columns import UNSPACED
from bgt_core.data.languages import primary
from bgt_core.data.properties import APOSTROPHES
from bgt_core.evaluation.fidelity.kept import has_negation, names, numbers, words
from bgt_core.evaluation.wordclass import NAME, OTHER
from bgt_core.evaluation.wordclass import words as classed_words

# Words that a question moves: "You can" and "Can you". Their order says nothing of who does what to whom.
MOVED = frozenset(
    "i you he she it we they there am are is was were be do does did have has had can could will would shall should "
    "may might must je tu il elle on nous vous ils elles ce suis es est sommes êtes sont ai as a avons avez ont".split()
)
# Words that another style brings or drops, beside the function words: auxiliaries in all forms, "going to", "please".
LIGHT = {
    "en": r"cannot|(?:has|have|had|must|need|ai|sha)n|go(?:es|ing|ne|nna)?|went|gotta|got(?:ten)?|get(?:s|ting)?|nobody"
    r"|let|please|one",
    "fr": r"v(?:a|ais|as|ont)|all(?:er|ons|ez)|ir(?:ai|as|a|ons|ez|ont)|f(?:ais|ont|aites|ut|aut)|pla[îi]t|veuillez"
    r"|cela|ceci|ça|(?:au|se)r(?:ai[st]?|as|a|ons|ez|ont|ions|iez|aient)|a(?:ie|it|yez|yons)|so(?:is|it|yez|yons|ient)",
    "de": r"(?:ein|kein|mein|dein|sein|ihr|unse?r|eue?r|dies|jed|jen|welch)(?:e[mnrs]?)?|ihnen|sich|man|habt?|hatte?st"
    r"|warst|wär(?:e[nt]?|st)|(?:hätte|würde|möchte)(?:n|st|t)?|werdet|sei|k[aoö]nn(?:st|te?)?(?:n|st|t)?"
    r"|m[uü]ss?t(?:e[nt]?)?|d[aü]rf(?:st|en|t)?|woll(?:t|te|en?)|willst|soll(?:st|ten?)|geht|s|bitte|mal|doch|denn|so|da",
}
ASIDES = re.compile(r"\best-ce qu(?:e\b|')|\bs'il (?:te|vous) pla[iî]t\b|\b(?:please|bitte)\b", re.IGNORECASE)
RATIO = 1.5  # of lengths, above which an output is much longer or shorter


class Check(NamedTuple):
    """One property of a source: whether the output has it too, and how to say so, as in "negation lost"."""

    passed: bool
    verdict: str


def checks(source: str, source_lang: str, output: str, lang: str) -> list[Check]:
    """Compare negation, numbers, names, content words, the order of words, and the length.

    All but the first two need two sentences of one language, content words English, French or German. A content word
    is lost or added if no other one stands for it: a word for a word may be a synonym, and passes. Order tells "the
    girl gave the boy" from "the boy gave the girl"; a passive changes it as well, though not the meaning. Case is
    ignored.

    >>> [check.verdict for check in checks("Tom is not 30.", "en", "tom is 40 and late.", "en")]
    ['negation lost', '30 lost', 'late added']

    Args:
        source: What the output should mean.
        source_lang: Its language.
        output: The generated sentence.
        lang: Its language.

    Returns:
        A check for each property that the source has and the rules of its language can tell; content words, order and
        length only if they failed.
    """
    facts = [*_same_facts(source, source_lang, output, lang)]
    return facts + _same_words(source, output, lang) if source_lang == lang else facts


def differences(checked: Sequence[Check]) -> str:
    """What an output changed, as in "negation lost, much shorter"; "" if it passed all checks."""
    return ", ".join(check.verdict for check in checked if not check.passed)


def _same_facts(source: str, source_lang: str, output: str, lang: str) -> Iterator[Check]:
    before, after = has_negation(source, source_lang), has_negation(output, lang)
    if before is not None and after is not None and (before or after):
        yield Check(before == after, f"negation {'kept' if before == after else 'lost' if before else 'added'}")
    values, written = numbers(source, source_lang), numbers(output, lang)
    if values and written is not None:
        yield _all_in(values, written, "numbers")


def _same_words(source: str, output: str, lang: str) -> list[Check]:
    found: list[Check] = []
    if named := names(source, lang):
        found.append(_all_in(named, [word for _, word in words(output, lang)], "names"))
    found += [Check(False, verdict) for verdict in _other_content(source, output, lang)]
    if primary(lang) not in UNSPACED and _shared(source, output, lang) != _shared(output, source, lang):
        found.append(Check(False, "order of words changed"))
    before, after = _length(source, lang), _length(output, lang)
    if after > RATIO * max(1, before) or before > RATIO * after:
        found.append(Check(False, "much longer" if after > before else "much shorter"))
    return found


def _other_content(source: str, output: str, lang: str) -> Iterator[str]:
    """Verdicts on content words of one text that no word of the other stands for; nothing of a word for a word."""
    if primary(lang) not in LIGHT:
        return
    before, after = _content(source, lang), _content(output, lang)
    lost, added = (
        [word for word in mine if not any(_akin(word, other) for other in others)]
        for mine, others in ((before, after), (after, before))
    )
    alike = sorted((-SequenceMatcher(None, one, two).ratio(), one, two) for one in lost for two in added)
    for _, one, two in alike:  # the most similar first: forms of a verb; others may be synonyms
        if one in lost and two in added:
            lost.remove(one)
            added.remove(two)
    for verdict, left in (("lost", [word for word in lost if not before[word]]), ("added", added)):
        if left:
            yield f"{', '.join(left)} {verdict}"


def _content(text: str, lang: str) -> dict[str, bool]:
    """The lower-cased content words of a text, and whether each is known to be a name."""
    content = {}
    for start, end, kind in classed_words(text.translate(APOSTROPHES), lang):
        word = text[start:end].lower()
        if kind in (NAME, OTHER) and not re.fullmatch(LIGHT[primary(lang)], word) and not numbers(word, lang):
            content[word] = kind == NAME
    return content


def _akin(word: str, other: str) -> bool:
    """Whether two words look like forms of one: they share their first four letters, or all three of the shorter."""
    letters = min(4, len(word), len(other))
    return word == other or (letters > 2 and word[:letters] == other[:letters])


def _length(text: str, lang: str) -> int:
    """Count words, or characters in a language without spaces, but no marks and none of `ASIDES`."""
    text = ASIDES.sub(" ", text.translate(APOSTROPHES))
    units = text if primary(lang) in UNSPACED else re.split(r"[\s-]", text)
    return sum(any(map(str.isalnum, unit)) for unit in units)


def _all_in(wanted: list[str], written: list[str], kind: str) -> Check:
    lower = {word.lower() for word in written}
    lost = [word for word in dict.fromkeys(wanted) if word.lower() not in lower]
    return Check(not lost, f"{', '.join(lost)} lost" if lost else f"{kind} kept")


def _shared(text: str, other: str, lang: str) -> list[str]:
    """The words that each of two texts has once, in the order of the first."""
    mine, theirs = ([word.lower() for _, word in words(each, lang)] for each in (text, other))
    return [word for word in mine if mine.count(word) == theirs.count(word) == 1 and word not in MOVED]
