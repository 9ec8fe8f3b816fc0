"""Hard negatives from given vectors, and the batches that carry them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from bgt_core.contracts import EOS, Batch, Tokens
from bgt_core.data.batching import StepBatch
from bgt_core.training.negatives import hard_negatives, mega_batch_size, nearest_other, with_negatives


@pytest.mark.parametrize("block", [1, 3, 100])
def test_the_nearest_others_are_those_of_the_whole_table(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.training.negatives.BLOCK", block)
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 10, 4))
    cosine = (left @ right.T) / np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    np.fill_diagonal(cosine, -np.inf)
    ahead, back = nearest_other(torch.from_numpy(left), torch.from_numpy(right))
    for nearest, table in ((ahead, cosine), (back, cosine.T)):
        np.testing.assert_array_equal(nearest[1], table.argmax(1))
        np.testing.assert_allclose(nearest[0], table.max(1), rtol=1e-5)


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.sqrt((left @ left) * (right @ right)))


@pytest.mark.parametrize("columns", [("a", "b"), ("a", "b", "c")])
def test_negatives_of_both_sides_are_those_of_a_plain_loop(columns: tuple[str, ...]) -> None:
    """Every sentence of another row is looked at, of the column and of the one before it."""
    rng = np.random.default_rng(1)
    first, second = ({column: rng.normal(size=(size, 3)) for column in columns} for size in (7, 4))
    means = [{column: torch.from_numpy(part[column]) for column in columns} for part in (first, second)]
    wrong = hard_negatives(columns, means, both_sides=True)
    joined = {column: np.concatenate([first[column], second[column]]) for column in columns}
    from_own_side = 0
    for number, column in enumerate(columns):
        before = columns[number - 1]
        for row in range(11):
            best, chosen = -2.0, -1
            for start, side in ((0, column), (11, before)):
                for other in range(11):
                    near = cosine(joined[before][row], joined[side][other])
                    if other != row and near > best:
                        best, chosen = near, start + other
            assert wrong[column][row] == chosen
            from_own_side += chosen >= 11
    assert 0 < from_own_side < 11 * len(columns)


def test_only_its_own_partner_is_left_out() -> None:
    """A copy of the translation is another sentence, as in the released codes."""
    ahead, _ = nearest_other(torch.eye(3), torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0, 0.5, 1.0]]))
    assert ahead[1][0] == 1
    assert ahead[0][0] == 1


def test_mega_batches_grow_by_one() -> None:
    """The rule of the released code: one update at first, one more each time 150 have been done, 60 at most."""
    sizes, done = [], 0
    while done < 20_000:
        sizes.append(mega_batch_size(done, 60, 150))
        done += sizes[-1]
    assert sizes[:150] == [1] * 150
    assert sizes[150:225] == [2] * 75
    assert sizes[225:275] == [3] * 50
    assert sizes[-1] == max(sizes) == 60
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(sizes))
    assert mega_batch_size(0, 60, 0) == 60


def update(*lengths: tuple[int, int], start: int) -> StepBatch:
    """An update of one micro-batch; the first token of each sentence is 100 and its number, fr's 500 more."""
    rows = [
        ([100 + n] + [9] * (en - 2) + [EOS], [600 + n] + [9] * (fr - 2) + [EOS])
        for n, (en, fr) in enumerate(lengths, start)
    ]
    en, fr = zip(*rows, strict=True)
    return StepBatch(len(lengths), {0: Batch({"en": Tokens.pad(en, "en"), "fr": Tokens.pad(fr, "fr")}, "fr")})


def test_each_pair_gets_the_sentences_that_it_is_told() -> None:
    updates = [update((3, 4), (9, 3), (2, 2), start=0), update((5, 5), (2, 8), start=3)]
    rows = {"en": np.array([1, 0, 4, 2, 3]), "fr": np.array([4, 2, 3, 0, 1])}
    made = with_negatives(updates, {("en", "fr"): rows}, micro_tokens=18)
    assert [one.pairs for one in made] == [3, 2]
    for one, expected in zip(made, ({0, 1, 2}, {3, 4}), strict=True):
        seen = set()
        for batch in one.batches.values():
            assert batch.anchor == "fr"
            firsts = {name: side.ids[:, 0] for name, side in batch.sides.items()}
            pairs = firsts["en"] - 100
            assert torch.equal(firsts["fr"] - 600, pairs)
            for lang, base in (("en", 100), ("fr", 600)):
                side = batch.negatives[lang]
                assert (side.ids[:, 0] - base).tolist() == rows[lang][pairs.numpy()].tolist()
                assert (side.ids[side.mask].view(-1) == EOS).sum() == len(batch)
            longest = max(side.ids.shape[1] for side in (*batch.sides.values(), *batch.negatives.values()))
            assert len(batch) == 1 or len(batch) * longest <= 18
            seen |= set(pairs.tolist())
        assert seen == expected


def test_a_negative_may_be_of_the_side_before() -> None:
    """Numbers from S on: en's negatives may be French, fr's English; what is padded holds the longest of them."""
    rows = {"en": np.array([3, 2, 1]), "fr": np.array([1, 3, 4])}
    (made,) = with_negatives([update((3, 4), (9, 3), (2, 2), start=0)], {("en", "fr"): rows}, micro_tokens=100)
    (batch,) = made.batches.values()
    order = batch.sides["en"].ids[:, 0] - 100
    firsts = {"en": [600, 102, 101], "fr": [601, 100, 101]}
    for column, expected in firsts.items():
        assert batch.negatives[column].ids[:, 0].tolist() == [expected[row] for row in order]
        assert (batch.negatives[column].ids == EOS).sum() == 3
    assert batch.negatives["fr"].ids.shape[1] == 9
