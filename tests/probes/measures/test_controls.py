"""Control tasks, capacity, curves, and every warning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import probes
from bgt_core.errors import BgtError
from probes import ProbeConfig
from probes.measures.control_task import control_labels, keys, shuffled
from probes.result import ProbeResult, ProbeScore
from probes.task import Items
from probes.tasks import TASKS

WORDS = [f"w{number}" for number in range(40)]
RNG = np.random.default_rng(0)
FIRST = [WORDS[number % 40] for number in range(2_000)]
SENTENCES = [f"{first} {' '.join(RNG.choice(WORDS, 5))} {number}" for number, first in enumerate(FIRST)]


def items(labels: Sequence[object], splits: Sequence[str] | None = None) -> Items:
    return Items(SENTENCES[: len(labels)], list(map(str, labels)), list(range(len(labels))), splits and list(splits))


LABELS = RNG.integers(0, 2, 2_000)


class Known:
    """An embedder of chosen vectors, one a sentence, by its number."""

    langs, latents = (), ("semantic",)

    def __init__(self, vectors: np.ndarray):
        self.vectors = vectors.astype(np.float32)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return self.vectors[[int(sentence.split()[-1]) for sentence in sentences]]


def probe(vectors: np.ndarray, labels: Sequence[object] = LABELS, **options: object) -> ProbeResult:
    given = labels if isinstance(labels, Items) else items(labels)
    config = ProbeConfig(**{"baselines": False, "seeds": 2, "control": "first"} | options)
    return probes.run(Known(vectors), TASKS["length"], given, lang="en", config=config)


def test_keys_are_the_first_token_or_the_rarest_of_the_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = ["Le chat dort.", "le chien, le chat", "猫が好き", "", "!?"]
    assert keys(sentences, "first") == ["le", "le", "猫", "", "!"]
    assert keys(["a b", "a c", "b a", "c a b"], "rare") == ["b", "c", "b", "c"]
    monkeypatch.setattr("probes.measures.control_task.FREQUENT", 1)
    assert keys(["a b", "a c", "c"], "rare") == ["a", "a", ""]


def test_a_key_has_one_label_and_labels_their_shares() -> None:
    names = [f"k{number % 3_000}" for number in range(9_000)]
    labels = np.random.default_rng(1).choice(3, 9_000, p=[0.6, 0.3, 0.1])
    drawn, known = control_labels(names, labels, np.arange(2_000), seed=0)
    assert all(len(set(drawn[number::3_000])) == 1 for number in range(3_000))
    assert np.bincount(drawn) / 9_000 == pytest.approx([0.6, 0.3, 0.1], abs=0.04)
    assert known.tolist() == [number % 3_000 < 2_000 for number in range(9_000)]
    assert (drawn != control_labels(names, labels, np.arange(2_000), seed=1)[0]).any()


def test_shuffling_keeps_the_labels_and_the_other_rows() -> None:
    labels = np.arange(100)
    mixed = shuffled(labels, np.arange(50), seed=0)
    assert sorted(mixed[:50]) == list(range(50)) and (mixed[:50] != labels[:50]).any()
    assert (mixed[50:] == labels[50:]).all()


def row(result: ProbeResult) -> ProbeScore:
    return result.rows[0]


def test_vectors_that_hold_the_key_alone_are_not_selective() -> None:
    """The label is decided by the first word too, so both are read without a fault."""
    vectors = np.eye(40)[[WORDS.index(first) for first in FIRST]]
    score = row(probe(vectors, np.arange(2_000) % 40 % 2))
    assert (score.accuracy, score.control, score.selectivity) == (1.0, 1.0, 0.0)
    assert score.selectivity_low == score.selectivity_high == 0.0


def test_vectors_that_hold_the_label_alone_are_selective() -> None:
    score = row(probe(LABELS[:, None] + 0.1 * RNG.standard_normal((2_000, 3))))
    assert score.accuracy == 1.0
    assert 0.3 < score.control < 0.75  # 40 keys, each right by luck
    assert score.selectivity == pytest.approx(100 * (1 - score.control))
    assert score.selectivity_low <= score.selectivity <= score.selectivity_high
    assert row(probe(LABELS[:, None], control=None)).selectivity is None


def test_keys_that_never_recur_make_no_control_task() -> None:
    unique = Items([f"a{number} b {number}" for number in range(2_000)], list(map(str, LABELS)), list(range(2_000)))
    assert row(probe(LABELS[:, None], unique)).control is None


def test_capacity_is_what_a_probe_memorises() -> None:
    noise = RNG.standard_normal((400, 600))
    vectors = np.hstack([noise, 8.0 * LABELS[:400, None]])
    assert row(probe(vectors, LABELS[:400], capacity=True)).capacity > 0.95  # more numbers than items
    few = np.hstack([RNG.standard_normal((2_000, 2)), LABELS[:, None]])
    assert row(probe(few, capacity=True)).capacity == pytest.approx(0.5, abs=0.05)


def test_a_learning_curve_grows_with_its_items_and_ends_with_the_other_probes() -> None:
    weights = RNG.standard_normal(60)
    vectors = RNG.standard_normal((2_000, 60))
    curve = probe(vectors, vectors @ weights > 0, curve=True, seeds=1).curve
    assert [(point.probe, point.n_train) for point in curve] == [
        *[("linear", size) for size in (100, 200, 400, 800, 1_600)], ("mlp50", 1_600), ("mlp200", 1_600)
    ]  # fmt: skip
    assert curve[0].accuracy + 0.1 < curve[4].accuracy
    assert all(point.ci_low <= point.accuracy <= point.ci_high for point in curve)


def test_erasing_what_is_asked_leaves_the_majority_and_random_directions_do_not() -> None:
    vectors = np.hstack([3.0 * LABELS[:, None], RNG.standard_normal((2_000, 9))])
    for method in ("leace", "inlp"):
        (erasure,) = probe(vectors, erase=method).erasures
        assert (erasure.method, erasure.rank) in [("leace", 1), ("inlp", 1), ("inlp", 2)]
        assert erasure.accuracy == pytest.approx(0.5, abs=0.08)  # 400 test items
        assert erasure.random_accuracy > 0.9


def test_codelength_of_a_row_is_that_of_its_training_items() -> None:
    score = row(probe(LABELS[:, None], mdl=True))
    assert score.codelength == pytest.approx(1_600 / score.compression)
    assert score.compression > 10
    assert row(probe(LABELS[:, None])).codelength is None


FIXED = ["train"] * 1_400 + ["dev"] * 200 + ["test"] * 400


def warned(result: ProbeResult, text: str) -> bool:
    return sum(text in warning for warning in result.warnings) == 1


def test_nothing_is_warned_of_where_nothing_is_wrong() -> None:
    assert probe(LABELS[:, None] + 0.5 * RNG.standard_normal((2_000, 3))).warnings == []


def test_a_dominant_label_is_warned_of() -> None:
    rare = (np.arange(2_000) % 20 == 0).astype(int)
    assert warned(probe(rare[:, None], rare), "95% of the items are '0'")
    common = (np.arange(2_000) % 9 == 0).astype(int)
    assert not warned(probe(common[:, None], common), "of the items are")


def test_sentences_in_two_splits_leave_train() -> None:
    fixed = items(LABELS, FIXED)
    fixed.sentences[1_500:1_510] = fixed.sentences[:10]
    result = probe(LABELS[:, None], fixed)
    assert result.left_out == 10 and result.warnings == []


def test_dev_and_test_far_apart_are_warned_of() -> None:
    vectors = LABELS[:, None].astype(float)
    vectors[1_600:] = 1 - vectors[1_600:]  # test is the other way round
    assert warned(probe(vectors, items(LABELS, FIXED)), "dev accuracy 100.0 and test accuracy 0.0")


def test_a_probe_that_did_not_converge_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.vectors.linear_probe.MAX_EVALUATIONS", 2)
    result = probe(LABELS[:, None] + RNG.standard_normal((2_000, 5)))
    assert warned(result, "semantic: 2 of 2 probes did not converge")
    assert "did not converge" in row(result).note


def test_a_control_task_that_is_easier_is_warned_of() -> None:
    vectors = np.eye(40)[[WORDS.index(first) for first in FIRST]]
    result = probe(vectors, LABELS)
    assert row(result).control == 1.0
    assert warned(result, "accuracy on the control task, 100.0, is above")


def test_an_encoder_that_cuts_sentences_is_warned_of() -> None:
    class Cuts(Known):
        count = 21

        def count_truncated(self, sentences: Sequence[str], *, lang: str) -> int:
            return self.count

    bgt = Cuts(LABELS[:, None])
    config = ProbeConfig(baselines=False, seeds=1)
    result = probes.run(bgt, "length", items(LABELS), lang="en", config=config)
    assert warned(result, "21 of 2,000 sentences are too long")
    bgt.count = 20
    assert probes.run(bgt, "length", items(LABELS), lang="en", config=config).warnings == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probe": "tree"}, "probe tree: choose linear, or mlp50"),
        ({"probe": "mlp0"}, "probe mlp0: "),
        ({"control": "last"}, "^control 'last': choose from first, rare"),
        ({"erase": "all"}, "^erase 'all': choose from leace, inlp"),
        ({"seeds": 0}, "choose 1 to 10"),
    ],
)
def test_options_that_mean_nothing_are_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(BgtError, match=message) as caught:
        probe(LABELS[:, None], **options)
    assert caught.value.exit_code == 2


def test_fixed_splits_are_kept_and_seeds_train_on_other_parts() -> None:
    result = probe(LABELS[:, None], items(LABELS, FIXED), seeds=3)
    assert (row(result).n_train, row(result).n_test) == (1_260, 400)
    tested = (result.predictions["semantic"].labels[0] >= 0).all(0)
    assert set(np.array(result.items.splits)[tested]) == {"test"} and tested.sum() == 400
    assert row(probe(LABELS[:, None], items(LABELS, FIXED), seeds=1)).n_train == 1_400
    with pytest.raises(BgtError, match="has no dev items"):
        probe(LABELS[:, None], items(LABELS, ["train"] * 1_600 + ["test"] * 400))


def test_a_label_that_train_lacks_is_left_out_of_fixed_splits() -> None:
    labels = LABELS.astype(str).astype(object)
    labels[1_990:] = "new"
    assert probe(LABELS[:, None], items(labels, FIXED)).left_out == 10
