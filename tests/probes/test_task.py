"""Labelled items are balanced and split, copies are removed, and no group of items is in two splits."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.task import RARE, SIZES, SPLITS, Items, common, distinct, draw_splits

ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("XY"), st.integers(0, 5), st.sampled_from(SPLITS)),
    max_size=40,
)


def to_items(rows: list[tuple[str, str, int, str]]) -> Items:
    return Items(*(list(part) for part in zip(*rows, strict=True))) if rows else Items([], [], [], [])


@given(ROWS)
def test_distinct_items_share_no_sentence_and_no_group_across_splits(rows: list[tuple[str, str, int, str]]) -> None:
    after = distinct(to_items(rows))
    assert len(set(after.sentences)) == len(after.sentences)
    split_of: dict[int, set[str]] = {}
    for group, split in zip(after.groups, after.splits, strict=True):
        split_of.setdefault(group, set()).add(split)
    assert all(len(splits) == 1 for splits in split_of.values())
    kept = set(zip(after.sentences, after.labels, after.groups, after.splits, strict=True))
    assert kept <= set(rows)
    for row in rows:  # a sentence is removed from test only if it occurs with two labels
        if row[3] == "test" and row[0] not in after.sentences:
            assert len({label for text, label, *_ in rows if text == row[0]}) == 2


@given(st.lists(st.integers(0, 30), min_size=1, max_size=150), st.integers(0, 3))
def test_drawn_splits_keep_groups_whole_and_use_every_item(groups: list[int], seed: int) -> None:
    items = Items([f"s{row}" for row in range(len(groups))], ["x"] * len(groups), groups)
    drawn = draw_splits(items, Random(seed))
    assert drawn.sentences == items.sentences
    split_of = {}
    for group, split in zip(drawn.groups, drawn.splits, strict=True):
        assert split_of.setdefault(group, split) == split
    sizes = Counter(drawn.splits)
    assert sizes["dev"] <= len(groups) / 12
    assert sizes["test"] <= len(groups) / 12


def test_drawn_splits_have_the_papers_sizes_or_its_proportions() -> None:
    many = Items(["s"] * 130_000, ["x"] * 130_000, list(range(130_000)))
    assert Counter(draw_splits(many, Random(0)).splits) == SIZES == {"train": 100_000, "dev": 10_000, "test": 10_000}
    few = many.take(range(1_200))
    assert Counter(draw_splits(few, Random(0)).splits) == {"train": 1_000, "dev": 100, "test": 100}
    pairs = Items(["s"] * 1_200, ["x"] * 1_200, [row // 2 for row in range(1_200)])
    assert Counter(draw_splits(pairs, Random(0)).splits) == {"train": 1_000, "dev": 100, "test": 100}
    assert draw_splits(few, Random(1)) != draw_splits(few, Random(2)) == draw_splits(few, Random(2))


@pytest.mark.parametrize("fixed", [True, False])
def test_labels_that_cannot_be_learnt_are_left_out(fixed: bool) -> None:
    labels = ["often"] * RARE + ["seldom"] * (RARE - 1) + ["unseen"] * RARE
    splits = ["train"] * (2 * RARE - 1) + ["test"] * RARE if fixed else None
    items = Items([str(row) for row in range(len(labels))], labels, list(range(len(labels))), splits)
    assert set(common(items).labels) == ({"often", "seldom"} if fixed else {"often", "unseen"})
