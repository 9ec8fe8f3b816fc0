"""Checks of one generated sentence against its source, by rules that know nothing of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bgt_core.data.columns import UNSPACED
from bgt_core.data.languages import primary
from bgt_core.evaluation.fidelity.kept import has_negation, names, numbers, words

# Words that a question moves: "You can" and "Can you". Their order says nothing of who does what to whom.
MOVED = frozenset(
    "i you he she it we they there am are is was were be do does did have has had can could will would shall should "
    "may might must je tu il elle on nous vous ils elles ce suis es est sommes êtes sont ai as a avons avez ont".split()
)
RATIO = 1.5  # of lengths, above which an output is much longer or shorter


class Check(NamedTuple):
    """One property of a source: whether the output has it too, and how to say so, as in "negation lost"."""

    passed: bool
    verdict: str


def checks(source: str, source_lang: str, output: str, lang: str) -> list[Check]:
    """Compare negation, numbers, names, the order of words, and the length.

    Names, order and length need two sentences of one language. Order tells "the girl gave the boy" from "the boy gave
    the girl"; a passive changes it as well, though not the meaning. Case is ignored.

    >>> [check.verdict for check in checks("Tom is not 30.", "en", "tom is 40 and late.", "en")]
    ['negation lost', '30 lost']

    Args:
        source: What the output should mean.
        source_lang: Its language.
        output: The generated sentence.
        lang: Its language.

    Returns:
        A check for each property that the source has and the rules of its language can tell. That the order of words is
        kept is said if at least half of the words are.
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
    if primary(lang) not in UNSPACED and len(order := _shared(source, output, lang)) > 1:
        same = order == _shared(output, source, lang)
        if not same or 2 * len(order) >= _length(source, lang):  # the order of a few words says nothing good
            found.append(Check(same, "order of words kept" if same else "order of words changed"))
    before, after = _length(source, lang), _length(output, lang)
    if after > RATIO * max(1, before) or before > RATIO * after:
        found.append(Check(False, "much longer" if after > before else "much shorter"))
    return found


def _length(text: str, lang: str) -> int:
    """Count words, or characters in a language without spaces; a mark is neither, though French puts a space before."""
    units = text if primary(lang) in UNSPACED else text.split()
    return sum(any(map(str.isalnum, unit)) for unit in units)


def _all_in(wanted: list[str], written: list[str], kind: str) -> Check:
    lower = {word.lower() for word in written}
    lost = [word for word in dict.fromkeys(wanted) if word.lower() not in lower]
    return Check(not lost, f"{', '.join(lost)} lost" if lost else f"{kind} kept")


def _shared(text: str, other: str, lang: str) -> list[str]:
    """The words that each of two texts has once, in the order of the first."""
    mine, theirs = ([word.lower() for _, word in words(each, lang)] for each in (text, other))
    return [word for word in mine if mine.count(word) == theirs.count(word) == 1 and word not in MOVED]
