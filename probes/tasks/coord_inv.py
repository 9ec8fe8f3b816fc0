"""Coordination inversion: have two coordinated clauses changed places? (SentEval, coordination_inversion)

From CoNLL-U: sentences with one conjunction (CCONJ) that joins two top clauses: the root and its one conjunct, each
with a subject of its own, the first wholly before the conjunction, the second wholly after it. Inverted, the clauses
are exchanged around conjunction and comma, the final mark stays, and capitals follow the new order (names, German
nouns and English I keep theirs). As in SentEval, no sentence is used in both orders, and in both classes the first
clause is the longer one as often as the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from probes.task import Items, ProbeTask
from probes.words import words

if TYPE_CHECKING:
    from probes.data.conllu import Parsed, Surface

ORIGINAL, INVERTED = "O", "I"
SUBJECTS = ("nsubj", "csubj", "expl")


def clauses(sentence: Parsed) -> tuple[list[Surface], list[Surface], list[Surface], list[Surface]] | None:
    """What is written of the first clause, the conjunction with its comma, the second clause, the final marks."""
    root = sentence.root
    joined = [word for word in sentence.children[root.number] if word.is_a("conj")]
    links = [word for word in sentence.words if word.upos == "CCONJ"]
    if len(joined) != 1 or len(links) != 1 or links[0].head != joined[0].number:
        return None
    if not all(
        any(below.is_a(one) for one in SUBJECTS for below in sentence.children[head.number])
        for head in (root, joined[0])
    ):
        return None
    link, end = links[0].number, len(sentence.words)
    while sentence.words[end - 1].upos == "PUNCT":
        end -= 1
    start = link - 1 if link > 1 and sentence.words[link - 2].upos == "PUNCT" else link  # of the comma
    second = sentence.under(joined[0])
    if not all((number in second) == (number > link) for number in range(1, end + 1) if not start <= number <= link):
        return None
    bounds = (0, start - 1, link, end, len(sentence.words))  # words up to here
    parts = [
        [one for one in sentence.surfaces if low < one.first and one.last <= high] for low, high in pairwise(bounds)
    ]
    if not (parts[0] and parts[2]) or sum(map(len, parts)) < len(sentence.surfaces):
        return None
    return parts[0], parts[1], parts[2], parts[3]


def inverted(sentence: Parsed, lang: str) -> str | None:
    """The sentence with its clauses exchanged; None where it has no two such clauses."""
    parts = clauses(sentence)
    if parts is None:
        return None
    first, link, second, end = (sentence.text(part) for part in parts)
    word = sentence.words[0]
    if word.upos != "PROPN" and word.form != "I" and not (lang == "de" and word.upos == "NOUN"):
        first = ("i" if lang == "tr" and first[0] == "İ" else first[0].lower()) + first[1:]
    second = ("İ" if lang == "tr" and second[0] == "i" else second[0].upper()) + second[1:]
    glue = "" if link[:1] in ",;،、" else " "
    space = " " if parts[2][-1].space and parts[3] else ""
    return f"{second}{glue}{link} {first}{space}{end}"


def build(parsed: Sequence[Parsed], lang: str, rng: Random) -> Items:
    """As many sentences inverted as not, and as many of both with the longer clause first."""
    longer: dict[int, list[tuple[str, str]]] = {-1: [], 0: [], 1: []}  # which clause is -> (sentence, inverted)
    for sentence in {one.text(): one for one in parsed}.values():
        other = inverted(sentence, lang)
        if other is not None:
            first, _, second, _ = clauses(sentence)
            gap = words(sentence.text(second)) - words(sentence.text(first))
            longer[(gap > 0) - (gap < 0)].append((sentence.text(), other))
    for sentences in longer.values():
        rng.shuffle(sentences)
    each = min(len(longer[-1]), len(longer[1])) // 2 * 2
    kept = [longer[-1][:each], longer[1][:each], longer[0][: len(longer[0]) // 2 * 2]]
    items = Items([], [], [])
    for sentences in kept:
        for place, (sentence, other) in enumerate(sentences):
            items.sentences.append(other if place % 2 else sentence)
            items.labels.append(INVERTED if place % 2 else ORIGINAL)
            items.groups.append(len(items.groups))
    return items


COORD_INV = ProbeTask(
    "coord-inv",
    "have two coordinated clauses changed places?",
    {"conllu": build},
    file="coordination_inversion",
    reordered=True,
)
