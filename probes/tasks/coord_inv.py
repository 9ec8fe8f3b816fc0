"""The probing task `coord-inv`: have two coordinated clauses changed places? (SentEval, coordination_inversion)

The task uses the sentences of CoNLL-U files with one conjunction (CCONJ), which joins two clauses: one has the root as
its head, the other the root's only conjunct. Each clause has its own subject; the first clause is wholly before the
conjunction, the second wholly after it. In an inverted sentence, the clauses are exchanged; conjunction, comma and
final mark stay, and capitals are adapted (except in names, German nouns and English I). As in SentEval, no sentence is
used in both orders, and in both classes the first clause is the longer one in half of the sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from probes.task import Items, ProbeTask, count_words

if TYPE_CHECKING:
    from bgt_core.data.trees import Parsed, Surface

ORIGINAL, INVERTED = "O", "I"
SUBJECTS = ("nsubj", "csubj", "expl")


class Clauses(NamedTuple):
    """The parts of a sentence with two coordinated clauses, as lists of words."""

    first: list[Surface]
    link: list[Surface]  # the conjunction, and the comma before it if there is one
    second: list[Surface]
    end: list[Surface]  # the punctuation that ends the sentence


def clauses(sentence: Parsed) -> Clauses | None:
    """Divide a sentence at its conjunction. Return None unless the conjunction joins two main clauses."""
    root = sentence.root
    conjuncts = [word for word in sentence.children[root.number] if word.is_a("conj")]
    links = [word for word in sentence.words if word.upos == "CCONJ"]
    if len(conjuncts) != 1 or len(links) != 1 or links[0].head != conjuncts[0].number:
        return None
    if not all(
        any(below.is_a(relation) for relation in SUBJECTS for below in sentence.children[head.number])
        for head in (root, conjuncts[0])
    ):
        return None
    link, end = links[0].number, len(sentence.words)
    while sentence.words[end - 1].upos == "PUNCT":
        end -= 1
    start = link - 1 if link > 1 and sentence.words[link - 2].upos == "PUNCT" else link  # position of the comma, if any
    second = sentence.under(conjuncts[0])
    if not all((number in second) == (number > link) for number in range(1, end + 1) if not start <= number <= link):
        return None
    bounds = (0, start - 1, link, end, len(sentence.words))  # 0, then the position of the last word of each part
    parts = Clauses._make(
        [surface for surface in sentence.surfaces if low < surface.first and surface.last <= high]
        for low, high in pairwise(bounds)
    )
    if not (parts.first and parts.second) or sum(map(len, parts)) < len(sentence.surfaces):
        return None
    return parts


def invert(sentence: Parsed, parts: Clauses, lang: str) -> str:
    """Return the sentence with its clauses exchanged."""
    first, link, second, end = (sentence.text(part) for part in parts)
    word = sentence.words[0]
    if word.upos != "PROPN" and word.form != "I" and not (lang == "de" and word.upos == "NOUN"):
        first = ("i" if lang == "tr" and first[0] == "İ" else first[0].lower()) + first[1:]
    second = ("İ" if lang == "tr" and second[0] == "i" else second[0].upper()) + second[1:]
    glue = "" if link[:1] in ",;،、" else " "
    space = " " if parts.second[-1].space and parts.end else ""
    return f"{second}{glue}{link} {first}{space}{end}"


def build(parsed: Sequence[Parsed], lang: str, rng: Random) -> Items:
    """Make equally many items with each label. In half of the items of a label, the longer clause is first."""
    first_longer: list[tuple[str, str]] = []  # (sentence, inverted sentence)
    equal: list[tuple[str, str]] = []
    second_longer: list[tuple[str, str]] = []
    for text, sentence in {sentence.text(): sentence for sentence in parsed}.items():
        parts = clauses(sentence)
        if parts is not None:
            first, second = (count_words(sentence.text(part)) for part in (parts.first, parts.second))
            same = first_longer if first > second else second_longer if second > first else equal
            same.append((text, invert(sentence, parts, lang)))
    for versions in (first_longer, equal, second_longer):
        rng.shuffle(versions)
    most = min(len(first_longer), len(second_longer)) // 2 * 2
    items = Items()
    for versions in (first_longer[:most], second_longer[:most], equal[: len(equal) // 2 * 2]):
        for index, (original, exchanged) in enumerate(versions):
            items.add(exchanged if index % 2 else original, INVERTED if index % 2 else ORIGINAL, len(items.groups))
    return items


COORD_INV = ProbeTask(
    "coord-inv",
    "have two coordinated clauses changed places?",
    {"conllu": build},
    file="coordination_inversion",
    reordered=True,
    group="semantic",
)
