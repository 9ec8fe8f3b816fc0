"""Hard STS: word error rates against a second implementation, splits against pairs whose rates are known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bgt_core.errors import BgtError
from bgt_core.evaluation.sts import score
from bgt_core.evaluation.sts.score import StsSet, extreme, hard_splits, negated, pooled, swer, words


def dataset(rows: list[tuple[float, str, str]], year: str = "2012", name: str = "A") -> StsSet:
    gold, left, right = zip(*rows, strict=True)
    return StsSet(year, name, np.array(gold), list(left), list(right))


def recursive(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """Levenshtein distance straight from its definition."""

    @cache
    def cost(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(cost(i - 1, j) + 1, cost(i, j - 1) + 1, cost(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return cost(len(a), len(b))


def test_edits_equal_the_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = (tuple(rng.choice(list("xyz"), rng.integers(0, 8))) for _ in range(2))
        assert score.edits(a, b) == score.edits(b, a) == recursive(a, b)


def test_words_are_lower_cased_and_marks_count() -> None:
    assert words("Don't go!") == ["don", "'t", "go", "!"]
    assert words("He didn\u2019t; a well-known EU's rule.") == words("he didn't; A WELL-KNOWN eu's RULE.")
    assert words("a well-known rule") == ["a", "well-known", "rule"]


@pytest.mark.parametrize(
    ("left", "right", "rate"),
    [
        ("A dog runs.", "a DOG runs.", 0.0),
        ("a b c", "a x c", 1 / 3),
        ("a b", "a b c d", (2 / 2 + 2 / 4) / 2),  # WER is 2/2 with the left as reference and 2/4 with the right
        ("a", "b c d", (3 / 1 + 3 / 3) / 2),  # above 1 is right: WER is not bounded
        ("", "a b", (2 / 1 + 2 / 2) / 2),
        ("", "", 0.0),
    ],
)
def test_rates_by_hand(left: str, right: str, rate: float) -> None:
    assert swer([left], [right])[0] == swer([right], [left])[0] == pytest.approx(rate)


def test_sides_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        swer(["a", "b"], ["a"])


def test_extremes_take_the_share_and_the_ties_of_its_end() -> None:
    rates = np.array([0.1, 0.2, 0.2, 0.2, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9])
    assert extreme(rates, "bottom", 0.1).nonzero()[0].tolist() == [0]
    assert extreme(rates, "bottom", 0.2).nonzero()[0].tolist() == [0, 1, 2, 3]  # the second lowest, and its equals
    assert extreme(rates, "top", 0.1).nonzero()[0].tolist() == [8, 9]
    assert extreme(rates, "top", 0.2).nonzero()[0].tolist() == [8, 9]
    assert extreme(rates, "top", 0.21).sum() == 3
    rng = np.random.default_rng(0)
    order = rng.permutation(10)
    assert (extreme(rates[order], "bottom", 0.2) == extreme(rates, "bottom", 0.2)[order]).all()


def test_negation_is_a_word_of_exactly_one_sentence() -> None:
    sentences = ["It is NOT so.", "I don't know.", "I don\u2019t know.", "nothing", "I cannot", "a knot", "it 'tis"]
    assert negated(sentences).tolist() == [True, True, True, False, False, False, False]
    rows = [(1.0, "It's not a good idea.", "It's a good idea."), (2.0, "It isn't.", "It's not."), (3.0, "a", "b")]
    rows += [(4.0, "He will.", "He won't.")]
    pool = pooled([dataset(rows)])
    assert (negated(pool.left) != negated(pool.right)).tolist() == [True, False, False, True]


def test_the_pool_keeps_a_pair_once_for_each_score() -> None:
    first = dataset([(1.0, "a", "b"), (1.0, "a", "b"), (2.0, "a", "b"), (1.0, "b", "a")])
    second = dataset([(1.0, "a", "b"), (1.0, "A", "b"), (3.0, "c", "d")], "2013", "B")
    pool = pooled([first, second])
    assert list(zip(pool.gold, pool.left, pool.right, strict=True)) == [
        (1.0, "a", "b"),
        (2.0, "a", "b"),
        (1.0, "b", "a"),
        (1.0, "A", "b"),
        (3.0, "c", "d"),
    ]
    assert (pool.year, pool.name) == ("hard", "all")


@pytest.fixture(scope="module")
def splits() -> dict[str, StsSet]:
    """100 pairs of 100 words; pair n differs in n of them, a rate of n / 100, and gold is 0, 0.5, ... 5 in turn."""
    rows = []
    for n in range(100):
        left = [f"w{place}" for place in range(99)] + [f"pair{n}"]
        right = [f"x{place}" for place in range(n)] + left[n:]
        rows.append((n % 11 / 2, " ".join(left), " ".join(right)))
    rows[50] = (0.0, rows[50][1].replace("w60", "not"), rows[50][2])
    rows[51] = (1.0, rows[51][1].replace("w60", "not"), rows[51][2])
    return {split.name: split for split in hard_splits([dataset(rows[:40]), dataset(rows[40:], "2013", "B")])}


@pytest.mark.parametrize(
    ("name", "rates", "low", "high"),
    [
        ("Hard+", range(80, 100), 4, 5),
        ("Hard-", range(20), 0, 1),
        ("bottom 20% SWER, gold 0-2", range(20), 0, 2),
        ("bottom 10% SWER, gold 0-1", range(10), 0, 1),
        ("top 20% SWER, gold 3-5", range(80, 100), 3, 5),
        ("top 10% SWER, gold 4-5", range(90, 100), 4, 5),
        ("easy: top 20% SWER, gold 0-2", range(80, 100), 0, 2),
        ("easy: bottom 20% SWER, gold 3-5", range(20), 3, 5),
    ],
)
def test_splits_hold_the_pairs_of_their_names(
    splits: dict[str, StsSet], name: str, rates: range, low: float, high: float
) -> None:
    expected = [n for n in rates if low <= n % 11 / 2 <= high]
    split = splits[name]
    assert [int(left.split("pair")[1]) for left in split.left] == expected
    assert split.gold.tolist() == [n % 11 / 2 for n in expected]
    assert swer(split.left, split.right) == pytest.approx([n / 100 for n in expected])


def test_all_and_negation_come_with_them(splits: dict[str, StsSet]) -> None:
    assert len(splits["all"].gold) == 100
    assert splits["negation"].gold.tolist() == [0.0, 1.0]
    assert set(splits) == {"all", "negation", *score.RULES}
    assert {split.year for split in splits.values()} == {"hard"}
    assert "100 different pairs (the paper has 13,023" in score.note(list(splits.values()))


@pytest.mark.parametrize("sets", [[], [dataset([(1.0, "a", "b"), (2.0, "a", "c")])]])
def test_too_little_to_cut_is_said(sets: list[StsSet]) -> None:
    with pytest.raises(BgtError, match="Hard STS") as error:
        hard_splits(sets)
    assert error.value.exit_code == 4
    assert "\n" not in str(error.value)
