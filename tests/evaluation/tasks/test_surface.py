"""What a linear probe tells of a text's surface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.surface import GUESS, Surface, labels_of

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


TABLE = np.random.default_rng(0).standard_normal((LINES, 20))  # by length
SCALES = 10.0 ** np.random.default_rng(1).permutation(np.linspace(-30, 30, 22).round())


def described(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Units that are the language and the closing mark, and twenty that say less."""
    marks = np.array([sentence.endswith("?") for sentence in sentences], float)
    lengths = np.array([len(sentence) for sentence in sentences])
    return np.column_stack([np.full(len(sentences), lang == "fr"), marks, TABLE[lengths] + lengths[:, None] / 10])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_do_not_depend_on_the_units_of_vectors(kind: type) -> None:
    """A unit that is the language tells it, whatever its scale beside others, and wherever they begin."""

    def scores(scales: np.ndarray, shift: float = 0) -> list[float]:
        encoder = ExternalEncoder("it", lambda *asked: (scales * described(*asked) + shift).astype(kind))
        result = evaluate(Surface(langs="en,fr"), {"it": encoder}, COLUMNS, resamples=100)
        return [result.value((name,), "it") for name in ("language", "closing mark", "length")]

    plain = scores(np.ones(22))
    assert plain[:2] == [100, 100] and plain[2] < 100
    assert scores(SCALES) == scores(1 / SCALES) == scores(np.ones(22), shift=1e4) == plain
    guessed = evaluate(Surface(langs="en,fr"), {"it": ExternalEncoder("it", marks)}, COLUMNS, resamples=100)
    nothing = scores(np.zeros(22))  # vectors that say nothing
    assert nothing == [guessed.value((name,), GUESS) for name in ("language", "closing mark", "length")]


def test_languages_of_other_widths_and_a_name_that_is_taken_are_refused() -> None:
    with pytest.raises(BgtError, match="it"):
        evaluate(Surface(langs="en,de"), {"it": Asked()}, FEW, resamples=100)
    with pytest.raises(BgtError, match=GUESS):
        evaluate(Surface(langs="en,fr"), {GUESS: ExternalEncoder("marks", marks)}, FEW, resamples=100)


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


def test_a_property_of_wording_is_told_of_the_sentences_that_show_it() -> None:
    french = [f"{'tu as' if line % 2 else 'vous avez'} {line}" if line < 120 else f"il a {line}" for line in range(150)]

    def formal(sentences: list[str], lang: str, latent: str) -> np.ndarray:
        return np.array([["vous" in sentence, len(sentence)] for sentence in sentences], float)

    columns = [[f"you have {line}" for line in range(150)], french]
    result = evaluate(Surface(langs="en,fr"), {"formal": ExternalEncoder("formal", formal)}, columns, resamples=100)
    (key,) = (key for key in result.scores if key.property == "address")
    assert key.sentences == 120 and result.value(("address",), "formal") == 100
    assert result.value(("address",), GUESS) <= 50
