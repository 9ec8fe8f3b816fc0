"""Test control tasks, V-information, the selection and splitting of items, and probes with known predictions."""

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from unicodedata import normalize

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.exceptions import ConvergenceWarning

from bgt_core.errors import DataError
from probes import ProbeConfig
from probes.measures import measure as measures
from probes.measures import measure as measuring
from probes.measures.measure import Study, bits, cuts_of, measure, prepare, probe_factory, select, selectivity
from probes.probe import item_warnings
from probes.task import SPLITS, Items, ProbeTask
from tests.close import assert_close


def items(labels: list[str], groups: list[int], splits: list[str] | None = None) -> Items:
    return Items([f"s{row}" for row in range(len(labels))], labels, groups, splits)


TRIPLED = items(["a", "b"] * 30 + ["c"] * 19, [row // 3 for row in range(60)] + list(range(100, 119)))
COPIES = (str.upper, lambda text: f" {text.replace(' ', '  ')}\u200b", lambda text: normalize("NFD", text))


@pytest.mark.parametrize("fixed", [False, True])
def test_copies_of_a_sentence_are_in_one_split(fixed: bool) -> None:
    """Each sentence has four spellings that count as copies; labels and splits are random."""
    rng = Random(0)
    texts = [form(f"L'été n° {number} là") for number in range(150) for form in (str, *COPIES)]
    splits = rng.choices(SPLITS, [8, 1, 1], k=len(texts)) if fixed else None
    given = Items(texts, rng.choices("ab", k=len(texts)), list(range(len(texts))), splits)
    made = prepare(TASK, given, lang="fr", config=ProbeConfig(seeds=3))
    for cut in made.cuts:
        numbers = [{re.findall(r"\d+", made.items.sentences[row])[0] for row in rows} for rows in cut]
        assert not (numbers[0] & (numbers[1] | numbers[2]) or numbers[1] & numbers[2])
    assert fixed or len(made.labels) == len(texts)


def in_turn(**labels: str) -> Items:
    """Make 120 items for each named split; their labels alternate between the letters given for the split."""
    names = [name for name in labels for _ in range(120)]
    texts = [labels[name][row % len(labels[name])] for row, name in enumerate(names)]
    return items(texts, list(range(len(names))), names)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (in_turn(train="ab", dev="ab", test="a"), "no test items of 'b', only of 'a'"),
        (in_turn(train="abc", dev="abc", test="c"), "no test items of 'a', 'b', only of 'c'"),
        (in_turn(train="a", dev="ab", test="ab"), "items with the label 'a' alone"),
        (in_turn(train="ab", test="ab"), "has no dev items"),
        (in_turn(train="ab", dev="ab"), "has no test items"),
        (items(["a", "b"] * 69, list(range(138))), "got 138 items with 2 labels; it needs 140 items with 2 labels"),
    ],
)
def test_items_that_can_not_be_probed_are_an_error(given: Items, message: str) -> None:
    with pytest.raises(DataError, match=message):
        prepare(TASK, given, lang="fr", config=ProbeConfig(seeds=2))
    assert len(prepare(TASK, items(["a", "b"] * 70, list(range(140))), lang="fr", config=ProbeConfig()).labels) == 140


def test_a_label_without_test_or_train_items_is_warned_of() -> None:
    made = prepare(TASK, in_turn(train="abc", dev="abc", test="ab"), lang="fr", config=ProbeConfig(seeds=2))
    assert item_warnings(made) == ["No test item has the label 'c': its accuracy is not measured."]
    alone = items(["a", "b"] * 100 + ["c"] * 40, [*range(200), *[200] * 40])  # all "c" are in one group, so in one fold
    warnings = item_warnings(prepare(TASK, alone, lang="fr", config=ProbeConfig(seeds=10)))
    assert warnings == ["No train item has the label 'c': no probe can learn it."]


@pytest.mark.parametrize("limit", [30, 31, 32])
def test_whole_groups_are_drawn_up_to_the_limit(limit: int) -> None:
    """Only whole groups of items are selected, here from twenty groups of three. The label "c" is too rare to learn."""
    order = list(range(20))
    Random(5).shuffle(order)
    rows = [3 * group + place for group in order[:10] for place in range(3)]
    chosen, left_out = select(TRIPLED, limit, seed=5)
    assert chosen == TRIPLED.take(rows)
    assert left_out == 79 - 30
    assert select(TRIPLED, limit, 5, in_order=True) == (TRIPLED.take(sorted(rows)), 49)
    assert select(TRIPLED, 33, 5)[0] != chosen and select(TRIPLED, limit, 6)[0] != chosen


def test_with_fixed_splits_each_seed_leaves_out_a_tenth_of_the_groups_of_train() -> None:
    names = [name for name, count in zip(SPLITS, (40, 6, 8), strict=True) for _ in range(count)]
    given = items(["a", "b"] * 27, [row // 2 for row in range(54)], names)
    ((train, dev, test),) = cuts_of(given, 1, 0)
    assert [train.tolist(), dev.tolist(), test.tolist()] == [[*range(40)], [*range(40, 46)], [*range(46, 54)]]
    cuts = cuts_of(given, 10, seed=3)
    assert all((own_dev == dev).all() and (own_test == test).all() for _, own_dev, own_test in cuts)
    gone = [row for part, _, _ in cuts for row in np.setdiff1d(train, part)]
    assert sorted(gone) == [*range(40)] and [len(part) for part, _, _ in cuts] == [36] * 10
    assert [row // 2 for row in gone[::2]] == [row // 2 for row in gone[1::2]]  # whole groups are left out


def build(sentences: list[str], lang: str, random: Random) -> Items:
    """Label each sentence with its language and a random digit."""
    labels = [f"{lang}{random.randrange(2)}" for _ in sentences]
    return Items(list(sentences), labels, list(range(len(sentences))))


TASK = ProbeTask("toy", "nothing", {"text": build})
SENTENCES = [f"s{row}" for row in range(400)]


def test_sentences_are_labelled_by_the_task_with_the_seed_and_at_most_max_items_are_used() -> None:
    config = ProbeConfig(seed=4, seeds=2, max_items=300)
    made = prepare(TASK, SENTENCES, lang="fr", config=config)
    assert (made.task, made.lang, made.names, made.left_out) == ("toy", "fr", ["fr0", "fr1"], 100)
    assert [made.names[label] for label in made.labels] == made.items.labels
    labels = dict(zip(SENTENCES, build(SENTENCES, "fr", Random(4)).labels, strict=True))
    assert all(labels[text] == label for text, label in zip(made.items.sentences, made.items.labels, strict=True))
    assert made.tested.shape == (2, 300) and made.tested.sum(1).tolist() == [30, 30]
    ordered = prepare(TASK, SENTENCES, lang="fr", config=replace(config, senteval=True))
    assert len(ordered.cuts) == 1 and ordered.items.groups == sorted(made.items.groups) != made.items.groups


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


class Told:
    """A probe without training: the first unit p of a vector is the probability of label 1, and 1 - p of label 0."""

    def __init__(self, seed: int, classes: Sequence[int] = (0, 1)):
        self.seed, self.classes_ = seed, np.array(classes)

    def fit(self, X: np.ndarray, y: np.ndarray, dev: tuple[np.ndarray, np.ndarray]) -> None:
        self.given = X, y, dev
        if self.seed:
            warnings.warn("not yet", ConvergenceWarning if self.seed == 1 else UserWarning, stacklevel=1)

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        return np.log(np.hstack([1 - X[:, :1], X[:, :1]]))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_log_proba(X).argmax(1)]


LABELS = np.array([0, 0, 0, 1, 0, 1, 1, 0])
CUT = np.array([0, 1, 2, 3]), np.array([4, 5]), np.array([6, 7])


def test_predictions_bits_and_dev_accuracy_by_hand() -> None:
    vectors = np.array([0.5, 0.5, 0.5, 0.5, 0.25, 0.125, 0.25, 0.5 - 2**-20])[:, None]
    other = 1 - vectors
    turned = CUT[0], CUT[2], CUT[1]
    measured = measure(Told, [vectors, other], LABELS, [CUT, turned])
    assert measured.predicted.dtype == np.int32
    np.testing.assert_array_equal(measured.predicted[0], [[-1] * 6 + [0, 0], [-1] * 4 + [0, 0, -1, -1]])
    np.testing.assert_array_equal(measured.predicted[1], [[-1] * 6 + [1, 1], [-1] * 4 + [1, 1, -1, -1]])
    assert np.argwhere(measured.right).tolist() == [[0, 0, 7], [0, 1, 4], [1, 0, 6], [1, 1, 5]]
    assert_close(measured.bits[0, 0, 6:], [2.0, 1.0], 1e-4)
    assert measured.bits[1, 1, 4:6] == pytest.approx([2.0, -math.log2(0.875)])
    assert np.isnan(measured.bits).sum() == 32 - 8
    # 3/4 of the training labels are 0, so by frequencies alone, label 0 costs log2(4/3) bits, and label 1 costs 2 bits
    assert_close(measured.saved[0, 0, 6:], [2 - 2, math.log2(4 / 3) - 1], 1e-4)
    assert np.isnan(measured.saved).sum() == 32 - 8
    assert measured.dev == np.mean([0.5, 0.5, 0.5, 0.5])
    assert measured.unconverged == 2
    assert measured.bits.dtype == measured.saved.dtype == np.float32
    slow, done = (measure(lambda seed, kind=kind: Told(kind), [vectors], LABELS, [CUT]) for kind in (1, 0))
    assert (slow.unconverged, done.unconverged) == (1, 0)


@pytest.mark.parametrize("flip", [0.0, 0.1, 0.3, 0.5])
def test_v_information_of_a_binary_channel_is_its_capacity(flip: float) -> None:
    rows, labels = np.arange(20_000), np.arange(20_000) % 2
    vectors = (labels ^ (np.random.default_rng(0).random(20_000) < flip)).astype(np.float32)[:, None]
    cut = rows[:10_000], rows[10_000:12_000], rows[12_000:]
    measured = measure(probe_factory("linear"), [vectors], labels, [cut])
    assert np.nanmean(measured.saved) == pytest.approx(1 - entropy([flip, 1 - flip], base=2), abs=0.03)
    told = measured.saved[0, 0, 12_000:]
    flipped = vectors[12_000:, 0] != labels[12_000:]
    if flip == 0.1:  # pointwise V-information: log2(0.1 / 0.5) for a flipped item, log2(0.9 / 0.5) for other items
        assert told[flipped].mean() == pytest.approx(math.log2(0.2), abs=0.15)
        assert told[~flipped].mean() == pytest.approx(math.log2(1.8), abs=0.03)


def test_bits_are_logarithms_to_base_2_and_finite_for_absent_labels() -> None:
    logs = np.log([[0.5, 0.5], [0.25, 0.75]])
    known, labels = np.array([0, 2]), np.array([0, 2])
    assert bits(logs, known, labels, 2, 10) == pytest.approx([1.0, -math.log2(0.75)])
    smoothed = bits(logs, known, np.array([0, 1]), 3, trained=10)  # smoothing changes q to (10 q + 1) / 13
    assert smoothed == pytest.approx([-math.log2(6 / 13), -math.log2(1 / 13)])
    every = [bits(logs[:1], known, np.array([label]), 3, 10)[0] for label in range(3)]
    assert np.exp2(-np.array(every)).sum() == pytest.approx(1.0)


def recurring(dev: int = 40, test: int = 60, seeds: int = 1, words: int = 8) -> tuple[Study, np.ndarray]:
    """Make a `Study` and its vectors. The label changes every `words` items; key words then repeat from w0 on."""
    rows = np.arange(200 + dev + test)
    labels = rows // words % 2
    cut = tuple(np.split(rows, [200, 200 + dev]))
    given = Items([f"w{row % words} number" for row in rows], [str(label) for label in labels], (rows // 2).tolist())
    vectors = np.random.default_rng(1).normal(size=(len(rows), 6))
    vectors[:, 0] += 2 * labels
    return Study("toy", "en", given, ["0", "1"], labels, [cut] * seeds, 5), vectors


def test_the_key_is_the_rarest_of_the_frequent_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measuring.keys(["a b", "A c", "b a", "c a b", "", "!?"]) == ["b", "c", "b", "c", "", "!"]
    monkeypatch.setattr(measures, "FREQUENT", 1)
    assert measuring.keys(["a b", "a c", "c"]) == ["a", "a", ""]


def test_a_key_has_one_label_and_label_frequencies_stay_the_same() -> None:
    labels = np.random.default_rng(1).choice(3, 9_000, p=[0.6, 0.3, 0.1])
    words = [f"k{row % 3_000}" for row in range(9_000)]
    drawn, known = measuring.control_labels(words, labels, np.arange(2_000), seed=0)
    assert (drawn.reshape(3, -1) == drawn[:3_000]).all() and (known == (np.arange(9_000) % 3_000 < 2_000)).all()
    assert np.bincount(drawn) / 9_000 == pytest.approx([0.6, 0.3, 0.1], abs=0.04)


def test_selectivity_is_accuracy_on_the_task_minus_accuracy_on_labels_of_keys() -> None:
    """A control task gives each key word a random label. Vectors that encode key words predict it; vectors that encode
    true labels do not. Items whose key word occurs once are not tested, because no probe could predict their label."""
    made, _ = recurring(seeds=2)
    sentences = [text if row % 7 else f"own{row}" for row, text in enumerate(made.items.sentences)]
    made = replace(made, items=replace(made.items, sentences=sentences))
    for vectors, of_key in ((np.eye(8)[np.arange(300) % 8], True), (np.eye(2)[made.labels], False)):
        task = measure(probe_factory("linear"), [vectors], made.labels, made.cuts)
        given = selectivity(made, [vectors], task, ProbeConfig(seed=5, resamples=200))
        own = given["control"] + given["selectivity"] / 100
        assert (given["control"] == 1.0 and own < 0.7) if of_key else (given["control"] < 0.7 and own == 1.0)
        assert given["selectivity_low"] <= given["selectivity"] <= given["selectivity_high"]


@pytest.mark.parametrize(("kinds", "made_one"), [((30, 30, 8), True), ((29, 30, 8), False), ((30, 29, 8), False),
                                                 ((30, 30, 1), False)])  # fmt: skip
def test_thirty_recurring_items_and_two_labels_make_a_control_task(kinds: tuple[int, int, int], made_one: bool) -> None:
    made, vectors = recurring(*kinds[:2], words=kinds[2])  # a key word has one control label, so one word is too few
    task = measure(probe_factory("linear"), [vectors], made.labels, made.cuts)
    assert bool(selectivity(made, [vectors], task, ProbeConfig(resamples=100))) is made_one
