"""What a linear probe tells of a text's surface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from bgt_core.adapters.external import ExternalEncoder
from bgt_core.errors import BgtError
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.surface import FOLDS, GUESS, Surface, closing_mark, labels_of, right

LINES = 100
COLUMNS = [
    [f"{lang} {'x' * (line % 30)}{'?' if line % 4 == 0 else '.'}" for line in range(LINES)] for lang in ("en", "fr")
]


def marks(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """A unit that is 1 for questions, and one that says nothing."""
    drawn = np.random.default_rng(len(sentences)).standard_normal(len(sentences))
    return np.stack([[sentence.endswith("?") for sentence in sentences], drawn], 1).astype(np.float32)


def test_a_probe_tells_what_a_vector_holds_and_guesses_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{left}\t{right}\n" for left, right in zip(*COLUMNS, strict=True)), "utf-8")
    result = evaluate(Surface(langs="en,fr"), {"marks": ExternalEncoder("marks", marks)}, path, resamples=100)
    assert result.systems == ["marks", GUESS]
    assert result.value(("closing mark",), "marks") == 100
    assert result.value(("closing mark",), GUESS) == pytest.approx(75, abs=0.1)
    assert result.value(("language",), "marks") < 60 and result.value(("length",), GUESS) < 50
    assert result.counts == {"lines": LINES}


class Asked:
    """An encoder of two latents that notes what it is asked; units of German are twice as many."""

    langs, latents, fingerprint = ("en", "fr", "de"), ("semantic", "language"), ""

    def __init__(self, scale: float = 1.0):
        self.scale = scale
        self.asked: list[tuple[str, str]] = []

    def embed(self, sentences: list[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        self.asked.append((lang, latent))
        vectors = np.array([[len(sentence), sentence.count("x")] for sentence in sentences], float)
        return self.scale * np.tile(vectors, 2 if lang == "de" else 1)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left @ right.T


FEW = [["x.", "xx?", "xxx.", "xxxx?", "xxxxx."], ["y x.", "y xx.", "y x?", "y x.", "y x."]]


def test_each_latent_and_language_is_asked_for() -> None:
    encoder = Asked()
    both = evaluate(Surface(langs="en,fr"), {"it": encoder}, FEW, resamples=100)
    assert sorted(set(encoder.asked)) == sorted((lang, latent) for lang in ("en", "fr") for latent in encoder.latents)
    assert both.systems == ["it semantic", "it language", GUESS]
    assert both.about.startswith("5 lines in en, fr; ") and {key.sentences for key in both.scores} == {10}
    encoder.asked.clear()
    one = evaluate(Surface(langs="en,fr", latent="language"), {"it": encoder}, FEW, resamples=100)
    assert {latent for _, latent in encoder.asked} == {"language"} and len(one.systems) == 2


def test_scores_do_not_depend_on_the_scale_of_vectors() -> None:
    def scores(scale: float) -> list[list[float]]:
        result = evaluate(Surface(langs="en,fr", latent="semantic"), {"it": Asked(scale)}, FEW, resamples=100)
        return [[cell.value for cell in row] for row in result.scores.values()]

    assert scores(1) == scores(1e-6) == scores(1e4)
    assert all(of_it == guessed for of_it, guessed in scores(0))  # vectors that say nothing


def test_languages_of_other_widths_and_a_name_that_is_taken_are_refused() -> None:
    with pytest.raises(BgtError, match="it"):
        evaluate(Surface(langs="en,de"), {"it": Asked()}, FEW, resamples=100)
    with pytest.raises(BgtError, match=GUESS):
        evaluate(Surface(langs="en,fr"), {GUESS: ExternalEncoder("marks", marks)}, FEW, resamples=100)


def test_a_fold_whose_others_have_one_label_gets_that() -> None:
    labels = np.array(["b", *"aaaaaaa"])
    folds = np.array([0, 0, 0, 1, 1, 2, 3, 4])
    np.testing.assert_array_equal(right(np.arange(8.0)[:, None], labels, folds)[:3], [0, 1, 1])


def test_a_fold_is_predicted_by_a_probe_that_has_not_seen_it() -> None:
    """The same as scikit-learn's predictions over folds that are given."""
    rng = np.random.default_rng(0)
    vectors, labels, folds = rng.standard_normal((200, 5)), rng.integers(0, 3, 200), rng.permutation(200) % FOLDS
    vectors[:, 0] += labels
    probe = LogisticRegression(max_iter=500)
    expected = cross_val_predict(probe, vectors, labels, cv=PredefinedSplit(folds)) == labels
    np.testing.assert_array_equal(right(vectors, labels, folds), expected)


def test_a_probe_of_units_of_very_different_variances_ends() -> None:
    """A warning that it did not would fail the test; in 500 iterations it does not."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((600, 40)) * np.geomspace(1e-3, 30, 40)
    labels, folds = (
        (vectors[:, 20] / vectors[:, 20].std() > rng.standard_normal(600)).astype(int),
        np.arange(600) % FOLDS,
    )
    assert right(vectors, labels, folds).mean() > 0.5


@pytest.mark.parametrize(
    ("sentence", "mark"),
    [
        ("Is it late?", "?"),
        ("« Il est tard ? »", "?"),
        ("もう遅いですか？", "?"),
        ("هل الوقت متأخر؟", "?"),
        ("It is late.", "."),
        ("もう遅い。", "."),
        ('She said "it is late!"', "!"),
        ("Well (perhaps…)", "…"),
        ("It is late", ""),
        ("Is it plan X?", "?"),
        ("It is plan .X", ""),
        ("", ""),
    ],
)
def test_closing_marks_are_those_of_any_script(sentence: str, mark: str) -> None:
    assert closing_mark(sentence) == mark


def test_what_is_the_same_everywhere_is_not_told() -> None:
    labels = labels_of([["A cat.", "One large dog."], ["A bird.", "Some other bird."]], ["en", "en"])
    assert list(labels) == ["length"]


@pytest.mark.parametrize(
    ("langs", "columns", "message"),
    [
        ("en", COLUMNS, "en: expected a language for each column"),
        ("en,fr", [COLUMNS[0], COLUMNS[1][1:]], "as many sentences in each"),
        ("en,fr", [column[:3] for column in COLUMNS], "3 lines: a probe in 5 folds needs"),
    ],
)
def test_what_cannot_be_measured_is_said(langs: str, columns: list[list[str]], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        evaluate(Surface(langs=langs), ExternalEncoder("marks", marks), columns, resamples=100)
