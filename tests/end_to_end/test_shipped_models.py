"""The vectors of shipped models are nearly those of float64, also in ONNX Runtime; long texts need little memory."""

import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import bgt_core
from bgt_core import checkpoint
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import example_sentences
from bgt_core.encoders import onnx, open_encoder
from tests.close import FLOAT32

pytestmark = pytest.mark.slow

MODELS = ["bgt-en-fr", "bgt-multilingual"]
ODD = [
    *("", " ", "ok", "No!", "no no no no", "...", "?!", "1984", "x" * 500, "🙂🙂", "☃", "\u200b", "Cafe\u0301", "«»"),
    "word " * 1_000,
    "To be, or not to be: that is the question. " * 12,
]


def in_double_precision(model: str, sentences: Sequence[str], lang: str, latent: str) -> np.ndarray:
    """Return the vectors (N, D) that the encoder computes in float64, rounded to float32."""
    bgt = bgt_core.load(model, "cpu", "fp32")
    bgt.model.double()
    return bgt.embed(sentences, lang=lang, latent=latent)


def least_cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(np.diag(cosine_similarity(left, right)).min())


def words(lang: str, count: int) -> list[str]:
    """Return the first `count` different words of the built-in example sentences."""
    text = (word.strip(".,?!\"'») ") for (sentence,) in example_sentences([lang]) for word in sentence.split())
    return list(islice(dict.fromkeys(word for word in text if word), count))


@pytest.mark.parametrize(("model", "lang"), [(MODELS[0], "fr"), (MODELS[1], "en")])
def test_one_word_has_the_vector_of_double_precision(model: str, lang: str) -> None:
    """Single, punctuated and repeated words have the vectors of float64, embedded in one batch or one at a time."""
    sentences = [text for word in words(lang, 250) for text in (word, word + "!", f"{word} {word}", f"{word} " * 9)]
    exact = in_double_precision(model, sentences, lang, SEMANTIC)
    bgt = bgt_core.load(model, "cpu", "fp32")
    assert len(set(sentences)) == 1_000
    assert least_cosine(bgt.embed(sentences, lang=lang), exact) >= 0.99999
    alone = np.stack([bgt.embed(sentence, lang=lang) for sentence in sentences[::20]])
    assert least_cosine(alone, exact[::20]) >= 0.99999


@pytest.mark.parametrize(("model", "latent"), [(MODELS[0], "semantic"), (MODELS[1], "language")])
def test_each_exported_latent_gives_the_model_s_vectors(model: str, latent: str, tmp_path: Path) -> None:
    sentences = [*ODD, *words("fr", 50), *(text for (text,) in example_sentences(["fr"])[:150])]
    difference = onnx.export(checkpoint.load(model), tmp_path / "out", latent=latent, lang="fr")
    exported = open_encoder(f"onnx:{tmp_path / 'out'}").embed(sentences, lang="fr", latent=latent)
    assert difference < 10 * FLOAT32  # large attention logits multiply rounding errors by ten
    assert least_cosine(exported, in_double_precision(model, sentences, "fr", latent)) >= 0.99999


LONG = """
import resource, bgt_core
bgt = bgt_core.load()
bgt.embed("It is late.", lang="en")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert bgt.embed("so they said that it was late " * 570, lang="en").shape == (1024,)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_for_a_long_text_does_not_grow_with_the_square_of_its_length() -> None:
    """If attention stored all pairs of words, a text of 4,000 words would need 0.8 GB, one of 8,000 words 3.2 GB."""
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 0.6e6  # kilobytes, that is 0.6 GB
