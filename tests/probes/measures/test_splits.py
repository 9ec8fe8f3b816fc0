"""Which items are taken, and who is trained and tested on which of them, by hand."""

from __future__ import annotations

import re
from random import Random
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

from bgt_core.errors import DataError, UsageError
from probes import ProbeConfig
from probes.measures import study
from probes.measures.config import hidden_units
from probes.measures.splits import cuts_of, select, subsample
from probes.measures.study import prepare
from probes.measures.warnings import item_warnings
from probes.task import SPLITS, Items, ProbeTask


def items(labels: list[str], groups: list[int], splits: list[str] | None = None) -> Items:
    return Items([f"s{row}" for row in range(len(labels))], labels, groups, splits)


TRIPLED = items(["a", "b"] * 30 + ["c"] * 19, [row // 3 for row in range(60)] + list(range(100, 119)))


COPIES = (str.upper, lambda text: f" {text.replace(' ', '  ')}\u200b", lambda text: normalize("NFD", text))


@pytest.mark.parametrize("fixed", [False, True])
def test_copies_of_a_sentence_are_on_one_side(fixed: bool) -> None:
    """Each sentence in four forms, which get labels and splits at random."""
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
    """Two rows in each group, splits turn about where they can."""
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


def test_without_fixed_splits_folds_are_of_the_seed() -> None:
    given = items(["a", "b"] * 30, [row // 2 for row in range(60)])
    cuts = cuts_of(given, 3, seed=1)
    assert [[len(part) for part in cut] for cut in cuts] == [[48, 6, 6]] * 3
    assert len({row for _, _, test in cuts for row in test.tolist()}) == 18
    assert (cuts_of(given, 3, seed=1)[2][2] == cuts[2][2]).all() and (cuts_of(given, 3, 2)[2][2] != cuts[2][2]).any()


@pytest.mark.parametrize(("limit", "taken"), [(39, 38), (38, 38), (4, 4), (3, 2), (1, 0)])
def test_a_part_of_train_is_whole_groups_in_their_order(limit: int, taken: int) -> None:
    rows = np.arange(100, 140)
    groups = [row // 2 for row in range(140)]
    part = subsample(rows, groups, limit, seed=2)
    assert len(part) == taken and (np.diff(part) > 0).all()
    names = np.random.default_rng(2).permutation(20)[: taken // 2] + 50
    assert set(part.tolist()) == {2 * name + place for name in names.tolist() for place in range(2)}
    assert subsample(rows, groups, 40, seed=2) is rows


def build(sentences: list[str], lang: str, random: Random) -> Items:
    """Labels that tell the language and the seed."""
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
    ordered = prepare(TASK, SENTENCES, lang="fr", config=ProbeConfig(seed=4, max_items=300), in_order=True)
    assert ordered.items == select(build(SENTENCES, "fr", Random(4)), 300, 4, in_order=True)[0]


def test_without_sentences_they_are_the_built_in_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    class Built:
        items = build(SENTENCES, "es", Random(1))

    monkeypatch.setattr(study, "built_in_items", lambda *given: asked.append(given) or Built)
    made = prepare(TASK, None, lang="es", config=ProbeConfig(seed=9))
    assert asked == [(TASK, "es", 9)]
    assert sorted(made.items.sentences) == sorted(SENTENCES)
    assert len(made.cuts) == 5


def test_the_limit_of_train_is_that_of_the_config() -> None:
    whole, part = (prepare(TASK, SENTENCES, lang="fr", config=ProbeConfig(seed=6, max_train=most))
                   for most in (None, 250))  # fmt: skip
    for (train, dev, test), (fewer, own_dev, own_test) in zip(whole.cuts, part.cuts, strict=True):
        assert (subsample(train, whole.items.groups, 250, 6) == fewer).all() and len(fewer) == 250
        assert (dev == own_dev).all() and (test == own_test).all()


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


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("seeds", (1, 10), (0, 11)),
        ("max_train", (140, None), (139,)),
        ("max_items", (140, None), (139,)),
        ("resamples", (100,), (99,)),
        ("l2", (1e-9, 0.5, 1e9, None), (0.0, float("inf"))),
        ("level", (0.01, 0.99), (0.0, 1.0)),
        ("control", ("first", "rare", None), ("last",)),
        ("erase", ("leace", "inlp", None), ("all",)),
        ("probe", ("linear", "mlp1", "mlp50"), ("mlp0", "mlp", "mlpx", "xxx50", "Linear")),
    ],
)
def test_options_end_where_they_say(name: str, inside: tuple[Any, ...], outside: tuple[Any, ...]) -> None:
    for value in inside:
        assert getattr(ProbeConfig(**{name: value}), name) == value
    for value in outside:
        with pytest.raises(UsageError, match=rf"\b{name} '?{value if name != 'l2' else f'{value:g}'}"):
            ProbeConfig(**{name: value})


def test_units_are_those_of_the_name() -> None:
    assert [hidden_units(name) for name in ("linear", "mlp1", "mlp50", "mlp200")] == [0, 1, 50, 200]
