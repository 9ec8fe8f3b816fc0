"""Maps whose axes are scores of linear probes: sentence length, question, negation.

  score (N,) = unit vectors (N, D) @ weights (D,) + bias, by ridge regression on the example sentences

A score is relative to the factor's mean among those sentences, in its standard deviations, so that both axes of a map
have the same scale. The quality of an axis is measured on held-out sentences, in five folds; translations of a sentence
are in the same fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import streamlit as st

from app.core import rows
from app.core.latents import geometry
from app.core.state import BY_DIGEST, Loaded, embed_parts
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.errors import NotFound
from bgt_core.vectors.compare import unit

NAME = "Probe axes"  # name of the method
FOLDS = 5
STRENGTHS = np.logspace(-3, 3, 13)  # ridge penalties, in units of the mean variance of a latent's dimension


# Factors for an axis: a function of a sentence and its language, and the languages in which a rule can label sentences.
# Plural is not offered because it needs parsed sentences. Length excludes Japanese, which has no spaces.
FACTORS: dict[str, tuple[Callable[[str, str], float], Sequence[str]]] = {
    "Longer": (lambda text, lang: float(rows.words(text)), [lang for lang in LANGS if lang != "ja"]),
    "Question": (lambda text, lang: float(text.rstrip()[-1:] in ("?", "？", "؟")), LANGS),
    "Negation": (lambda text, lang: float(rows.negated(text, lang)), rows.NEGATION_LANGS),
}


@dataclass(frozen=True)
class Reading:
    """The accuracy with which a factor is predicted for held-out sentences, with a 95% interval."""

    measure: str  # "correlation", or "AUC" of a factor that is 0 or 1
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.measure} {self.value:z.2f} [{self.low:z.2f}, {self.high:z.2f}]"


@dataclass(frozen=True, eq=False)
class Axis:
    """A linear readout of a latent: score = vectors (N, D) at unit length @ weights (D,) + bias."""

    name: str
    spread: float  # the factor's standard deviation; a score of 1 is this number of words, or this share
    weights: np.ndarray
    bias: float
    reading: Reading


def offered(langs: Sequence[str]) -> list[str]:
    """Return the axes that can be fitted in all of these languages."""
    return [name for name, (_, labelled) in FACTORS.items() if set(langs) <= set(labelled)]


def axes(loaded: Loaded, langs: Sequence[str], latent: str, names: tuple[str, str]) -> tuple[Axis, Axis]:
    """Return both axes of a map of a latent, fitted on the example sentences of these languages."""
    return axis(loaded, tuple(langs), latent, names[0]), axis(loaded, tuple(langs), latent, names[1])


@st.cache_resource(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def axis(loaded: Loaded, langs: tuple[str, ...], latent: str, name: str) -> Axis:
    """Fit one axis. Raises NotFound if it is not offered in these languages."""
    if name not in offered(langs):
        able = ", ".join(FACTORS[name][1]) if name in FACTORS else "none"
        raise NotFound(f"No axis '{name}' in {', '.join(langs)}: sentences are labelled in {able}.")
    english_of = {  # language -> each of its example sentences -> the English translation
        lang: {texts[-1]: texts[0] for texts in example_sentences(["en"] if lang == "en" else ["en", lang])}
        for lang in langs
    }
    parts = [(lang, list(texts)) for lang, texts in english_of.items()]
    english = [sentence for texts in english_of.values() for sentence in texts.values()]
    values = [FACTORS[name][0](text, lang) for lang, texts in parts for text in texts]
    return fitted(name, unit(embed_parts(loaded, parts, latent)), np.array(values), np.array(english))


def fitted(name: str, vectors: np.ndarray, values: np.ndarray, english: np.ndarray) -> Axis:
    """Fit the axis of N sentences (N, D) with these values (N,). Sentences with the same English translation (N,) are
    in the same fold, and count once for the interval."""
    folds = np.array([crc32(sentence.encode()) % FOLDS for sentence in english])
    held_out = np.empty(len(values))
    for fold in range(FOLDS):
        test = folds == fold
        weights, bias = ridge(vectors[~test], values[~test])
        # relative to the mean of the training values, which is lower if the test values are higher
        held_out[test] = vectors[test] @ weights + bias - values[~test].mean()
    spread = float(values.std())
    weights, bias = ridge(vectors, (values - values.mean()) / spread)
    return Axis(name, spread, weights, bias, reading(held_out, values, len(set(english))))


def ridge(vectors: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit ridge regression with the penalty of lowest leave-one-out error; return its weights (D,) and bias."""
    from sklearn.linear_model import RidgeCV

    variance = float(np.square(vectors - vectors.mean(0, dtype=float)).sum() / vectors.shape[1])
    fitted = RidgeCV(STRENGTHS * variance).fit(vectors.astype(float), values)
    return fitted.coef_, float(fitted.intercept_)


def reading(scores: np.ndarray, values: np.ndarray, different: int) -> Reading:
    """Return the area under the ROC curve of a factor that is 0 or 1 (interval: Hanley and McNeil 1982), else the
    correlation (interval: Fisher's z). The interval counts `different` sentences, so that translations count once."""
    if set(values) <= {0.0, 1.0}:
        ones, zeros = scores[values == 1], scores[values == 0]
        positive, negative = different * values.mean(), different * (1 - values.mean())
        area = float(((ones[:, None] > zeros).mean() + (ones[:, None] >= zeros).mean()) / 2)
        both, twice = area / (2 - area), 2 * area**2 / (1 + area)
        spread = (positive - 1) * (both - area**2) + (negative - 1) * (twice - area**2)
        error = math.sqrt((area * (1 - area) + spread) / (positive * negative))
        return Reading("AUC", area, max(0.0, area - 1.96 * error), min(1.0, area + 1.96 * error))
    correlation = float(np.corrcoef(scores, values)[0, 1])
    z, half = math.atanh(correlation), 1.96 / math.sqrt(different - 3)
    return Reading("correlation", correlation, math.tanh(z - half), math.tanh(z + half))


def projection(vectors: np.ndarray, pair: tuple[Axis, Axis]) -> geometry.Projection:
    """Return the map of vectors (N, D) with these two axes."""
    weights = np.column_stack([axis.weights for axis in pair]).astype(np.float32)  # (D, 2)
    bias = np.array([axis.bias for axis in pair], np.float32)

    def project(new: np.ndarray) -> np.ndarray:
        blocks = [new[start : start + geometry.BLOCK] for start in range(0, len(new), geometry.BLOCK)]
        return np.concatenate([unit(block) @ weights + bias for block in blocks])

    # the pseudo-inverse gives the shortest moves that change a score by one
    read = tuple(f"{axis.name.lower()} {axis.reading}" for axis in pair)
    return geometry.Projection(project(vectors), project, None, np.linalg.pinv(weights).T, read)
