"""The selection of items, and their splits, for examples made by hand."""

from __future__ import annotations

import re
from random import Random
from unicodedata import normalize

import numpy as np
import pytest

from bgt_core.errors import DataError, UsageError
from probes import ProbeConfig
from probes.measures.study import cuts_of, prepare, select
from probes.probe import item_warnings
from probes.task import SPLITS, Items, ProbeTask


def items(labels: list[str], groups: list[int], splits: list[str] | None = None) -> Items:
    return Items([f"s{row}" for row in range(len(labels))], labels, groups, splits)


TRIPLED = items(["a", "b"] * 30 + ["c"] * 19, [row // 3 for row in range(60)] + list(range(100, 119)))


COPIES = (str.upper, lambda text: f" {text.replace(' ', '  ')}\u200b", lambda text: normalize("NFD", text))


@pytest.mark.parametrize("fixed", [False, True])
def test_copies_of_a_sentence_are_on_one_side(fixed: bool) -> None:
    """Each sentence in four forms, with random labels and splits."""
    rng = Random(0)
    texts = [form(f"L'été n° {number} là") for number in range(150) for form in (str, *COPIES)]
    splits = rng.choices(SPLITS, [8, 1, 1], k=len(texts)) if fixed else None
    given = Items(texts, rng.choices("ab", k=len(texts)), list(range(len(texts))), splits)
    made = prepare(TASK, given, lang="fr", config=ProbeConfig(seeds=3))
    for cut in made.cuts:
        numbers = [{re.findall(r"\d+", made.items.sentences[row])[0] for row in rows} for rows in cut]
        assert not (numbers[0] & (numbers[1] | numbers[2]) or numbers[1] & numbers[2])
    assert fixed or len(made.labels) == len(texts)


@pytest.mark.parametrize(
    ("present", "message"),
    [
        ({"train": "ab", "dev": "ab", "test": "a"}, "no test items of 'b', only of 'a'"),
        ({"train": "abc", "dev": "abc", "test": "c"}, "no test items of 'a', 'b', only of 'c'"),
        ({"train": "a", "dev": "ab", "test": "ab"}, "items with the label 'a' alone"),
        ({"train": "b", "dev": "ab", "test": "ab"}, "items with the label 'b' alone"),
    ],
)
def test_a_label_that_can_not_be_tested_or_learnt_is_named(present: dict[str, str], message: str) -> None:
    names = [name for name in SPLITS for _ in range(120)]
    labels = [present[name][row % len(present[name])] for row, name in enumerate(names)]
    with pytest.raises(DataError, match=message):
        prepare(TASK, items(labels, list(range(360)), names), lang="fr", config=ProbeConfig(seeds=2))


def test_of_three_labels_the_one_without_a_test_item_is_warned_of() -> None:
    names = [name for name in SPLITS for _ in range(120)]
    labels = [("ab" if name == "test" else "abc")[row % (2 if name == "test" else 3)] for row, name in enumerate(names)]
    config = ProbeConfig(seeds=2)
    made = prepare(TASK, items(labels, list(range(360)), names), lang="fr", config=config)
    assert item_warnings(made) == ["No test item has the label 'c': its accuracy is not measured."]
    alone = items(["a", "b"] * 100 + ["c"] * 40, [*range(200), *[200] * 40])  # "c" is one group, so in one fold
    warnings = item_warnings(prepare(TASK, alone, lang="fr", config=ProbeConfig(seeds=10)))
    assert warnings == ["No train item has the label 'c': no probe can learn it."]


@pytest.mark.parametrize("limit", [30, 31, 32])
def test_whole_groups_are_drawn_as_long_as_they_fit(limit: int) -> None:
    """Twenty groups of three; "c" is too rare to be learnt."""
    order = list(range(20))
    Random(5).shuffle(order)
    rows = [3 * group + place for group in order[:10] for place in range(3)]
    chosen, left_out = select(TRIPLED, limit, seed=5)
    assert chosen == TRIPLED.take(rows)
    assert left_out == 79 - 30
    assert select(TRIPLED, limit, 5, in_order=True) == (TRIPLED.take(sorted(rows)), 49)
    assert select(TRIPLED, 33, 5)[0] != chosen and select(TRIPLED, limit, 6)[0] != chosen


def fixed(train: int = 40, dev: int = 6, test: int = 8) -> Items:
    """Two rows in each group; the splits of groups alternate if possible."""
    names = [name for name, count in zip(SPLITS, (train, dev, test), strict=True) for _ in range(count)]
    return items(["a", "b"] * (len(names) // 2), [row // 2 for row in range(len(names))], names)


def test_with_fixed_splits_each_seed_leaves_out_a_tenth_of_the_groups_of_train() -> None:
    given = fixed()
    ((train, dev, test),) = cuts_of(given, 1, 0)
    assert [train.tolist(), dev.tolist(), test.tolist()] == [[*range(40)], [*range(40, 46)], [*range(46, 54)]]
    cuts = cuts_of(given, 10, seed=3)
    order = np.random.default_rng(3).permutation(20)
    for seed, (part, own_dev, own_test) in enumerate(cuts):
        gone = {2 * group + place for group in (order[seed], order[seed + 10]) for place in range(2)}
        assert set(part.tolist()) == {*range(40)} - gone
        assert (own_dev == dev).all() and (own_test == test).all()
    assert len(cuts_of(given, 2, 3)) == 2


def build(sentences: list[str], lang: str, random: Random) -> Items:
    """Labels that contain the language and the seed."""
    labels = [f"{lang}{random.randrange(2)}" for _ in sentences]
    return Items(list(sentences), labels, list(range(len(sentences))))


TASK = ProbeTask("toy", "nothing", {"text": build})
SENTENCES = [f"s{row}" for row in range(400)]


def test_sentences_are_labelled_by_the_task_and_its_seed() -> None:
    made = prepare(TASK, SENTENCES, lang="fr", config=ProbeConfig(seed=4, seeds=2, max_items=300))
    expected, left_out = select(build(SENTENCES, "fr", Random(4)), 300, 4)
    assert (made.task, made.lang, made.names, made.left_out) == ("toy", "fr", ["fr0", "fr1"], left_out) == (
        "toy", "fr", ["fr0", "fr1"], 100)  # fmt: skip
    assert made.items == expected
    assert [made.names[label] for label in made.labels] == expected.labels
    for ours, theirs in zip(made.cuts, cuts_of(expected, 2, 4), strict=True):
        assert all((one == other).all() for one, other in zip(ours, theirs, strict=True))
    assert made.tested.shape == (2, 300) and made.tested.sum(1).tolist() == [30, 30]
    ordered = prepare(TASK, SENTENCES, lang="fr", config=ProbeConfig(seed=4, max_items=300, senteval=True))
    assert (
        len(ordered.cuts) == 1 and ordered.items == select(build(SENTENCES, "fr", Random(4)), 300, 4, in_order=True)[0]
    )


def test_too_little_to_learn_from_is_said() -> None:
    def given(labels: list[str], splits: list[str] | None = None) -> Items:
        return items(labels, list(range(len(labels))), splits)

    config = ProbeConfig(seeds=1)
    assert len(prepare(TASK, given(["a", "b"] * 70), lang="fr", config=config).labels) == 140
    for labels, found in (
        (["a", "b"] * 69, "138 items with 2 labels"),
        (["a"] * 300, "300 items with the label 'a' alone"),
    ):
        with pytest.raises(DataError, match=f"Task 'toy' got {found}; it needs at least 140 and 2"):
            prepare(TASK, given(labels), lang="fr", config=config)
    for absent in ("dev", "test"):
        splits = ["train"] * 200 + [name for name in ("dev", "test") if name != absent] * 20
        with pytest.raises(DataError, match=f"has no {absent} items"):
            prepare(TASK, given(["a", "b"] * 110, splits), lang="fr", config=config)
    with pytest.raises(UsageError, match="needs one language, not 'en-fr'"):
        prepare(TASK, SENTENCES, lang="en-fr", config=config)


def test_folds_never_divide_a_group_and_test_no_item_twice() -> None:
    given = items(["a"] * 400, [number // 2 for number in range(400)])
    tested = []
    for cut in cuts_of(given, 10, seed=3):
        assert sorted(np.concatenate(cut).tolist()) == list(range(400)) and [*map(len, cut)] == [320, 40, 40]
        groups = [{given.groups[row] for row in rows} for rows in cut]
        assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
        tested += cut[2].tolist()
    assert sorted(tested) == list(range(400))
    first, again, other = (cuts_of(given, 2, seed)[1][2].tolist() for seed in (1, 1, 2))
    assert first == again != other
