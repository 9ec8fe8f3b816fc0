"""Closing marks, taken off and exchanged."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from bgt_core.contracts import EOS, Tokens
from bgt_core.nets.closing import ClosingMarks

STOP, ASK, SHOUT, CAT, DOG = 4, 5, 6, 7, 8


@pytest.fixture
def marks() -> ClosingMarks:
    return ClosingMarks(torch.tensor([token in (STOP, ASK, SHOUT) for token in range(10)]))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ([CAT, DOG, STOP], [CAT, DOG]),
        ([CAT, ASK, SHOUT], [CAT]),  # "cat?!"
        ([CAT, STOP, DOG], [CAT, STOP, DOG]),
        ([CAT, STOP, DOG, STOP], [CAT, STOP, DOG]),
        ([CAT], [CAT]),
        ([STOP, ASK], [STOP]),  # something stays
        ([STOP], [STOP]),
        ([], []),
    ],
)
def test_only_marks_at_the_end_are_taken_off(marks: ClosingMarks, sentence: list[int], expected: list[int]) -> None:
    side = Tokens.pad([[*sentence, EOS], [CAT, DOG, CAT, DOG, CAT, EOS]], "en")
    shorter = marks.remove(side)
    assert shorter.ids[0][shorter.mask[0]].tolist() == [*expected, EOS]
    assert torch.equal(shorter.ids[1], side.ids[1])
    expected_side = Tokens.pad([[*expected, EOS], side.ids[1].tolist()], "en")
    assert torch.equal(shorter.flat_index, expected_side.flat_index)
    assert torch.equal(shorter.ids, expected_side.ids)


def test_marks_are_exchanged_among_sentences_that_end_in_one(marks: ClosingMarks) -> None:
    sentences = [[CAT, STOP], [DOG, ASK], [CAT, DOG, SHOUT], [CAT], [DOG, ASK, SHOUT], [STOP]] * 100
    side = Tokens.pad([[*sentence, EOS] for sentence in sentences], "en")
    torch.manual_seed(0)
    given = marks.exchange(side, 1.0)
    assert torch.equal(given.mask, side.mask)
    rows = [ids[mask].tolist()[:-1] for ids, mask in zip(given.ids, side.mask, strict=True)]
    for before, after in zip(sentences, rows, strict=True):
        alone = before in ([CAT], [DOG, ASK, SHOUT], [STOP])
        assert after == before if alone else after[:-1] == before[:-1] and after[-1] in (STOP, ASK, SHOUT)
    ends = Counter(row[-1] for row in rows if row in ([CAT, STOP], [CAT, ASK], [CAT, SHOUT]))
    assert 10 < min(ends.values()) < max(ends.values()) < 90  # of 100 full stops


def test_the_share_says_how_many_take_one(marks: ClosingMarks) -> None:
    side = Tokens.pad([[CAT, STOP, EOS], [CAT, ASK, EOS]] * 2_000, "en")
    torch.manual_seed(0)
    changed = (marks.exchange(side, 0.4).ids != side.ids).any(1).double().mean()
    assert abs(changed - 0.2) < 0.03  # half of the marks that are taken are the same
    assert torch.equal(marks.exchange(side, 0.0).ids, side.ids)
