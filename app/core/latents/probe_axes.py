"""Maps whose axes are scores of linear probes: the length of a sentence, whether it asks, whether it denies.

  score (N,) = unit vectors (N, D) @ weights (D,) + bias, by ridge regression on the example sentences

A score is in standard deviations of the factor among those sentences, from its mean there, so that both axes of a map
have the same scale. The quality of an axis is measured on sentences that it was not fitted on, in five folds;
translations of one sentence are in the same fold.
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


# Factors for an axis: their value for a sentence of a language, and the languages in which a rule can label it. A
# plural needs a parsed sentence to be labelled, and the example sentences are not parsed; Japanese has no spaces.
FACTORS: dict[str, tuple[Callable[[str, str], float], Sequence[str]]] = {
    "Longer": (lambda text, lang: float(rows.words(text)), [lang for lang in LANGS if lang != "ja"]),
    "Question": (lambda text, lang: float(text.rstrip()[-1:] in ("?", "？", "؟")), LANGS),
    "Negation": (lambda text, lang: float(rows.negated(text, lang)), rows.NEGATION_LANGS),
}


@dataclass(frozen=True)
class Reading:
    """How well a factor is read from sentences that the axis was not fitted on, with a 95% interval."""

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
    spread: float  # the factor's standard deviation: a score of 1 is this many words, or this share
    weights: np.ndarray
    bias: float
    reading: Reading


def offered(langs: Sequence[str]) -> list[str]:
    """The axes that can be fitted in all of these languages."""
    return [name for name, (_, labelled) in FACTORS.items() if set(langs) <= set(labelled)]


def axes(loaded: Loaded, langs: Sequence[str], latent: str, names: tuple[str, str]) -> tuple[Axis, Axis]:
    """Both axes of a map of a latent, read from the example sentences of these languages."""
    return axis(loaded, tuple(langs), latent, names[0]), axis(loaded, tuple(langs), latent, names[1])


@st.cache_resource(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def axis(loaded: Loaded, langs: tuple[str, ...], latent: str, name: str) -> Axis:
    """One axis. NotFound for one that is not offered in these languages."""
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
    """The axis of N sentences (N, D) with these values (N,). Sentences with the same English translation
    (N,) are in one fold, and count once in the interval."""
    folds = np.array([crc32(sentence.encode()) % FOLDS for sentence in english])
    held_out = np.empty(len(values))
    for fold in range(FOLDS):
        test = folds == fold
        weights, bias = ridge(vectors[~test], values[~test])
        # relative to the mean of the other scores, which is lower if these are higher
        held_out[test] = vectors[test] @ weights + bias - values[~test].mean()
    spread = float(values.std())
    weights, bias = ridge(vectors, (values - values.mean()) / spread)
    return Axis(name, spread, weights, bias, reading(held_out, values, len(set(english))))


def ridge(vectors: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights (D,) and bias of the ridge regression whose strength has the least leave-one-out error."""
    from sklearn.linear_model import RidgeCV

    variance = float(np.square(vectors - vectors.mean(0, dtype=float)).sum() / vectors.shape[1])
    fitted = RidgeCV(STRENGTHS * variance).fit(vectors.astype(float), values)
    return fitted.coef_, float(fitted.intercept_)


def reading(scores: np.ndarray, values: np.ndarray, different: int) -> Reading:
    """Of a factor that is 0 or 1 the area under the ROC curve (interval: Hanley and McNeil 1982), of another the
    correlation (interval: Fisher's z). The interval is that of `different` sentences: translations count once."""
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
    """The map of vectors (N, D) whose axes are these."""
    weights = np.column_stack([axis.weights for axis in pair]).astype(np.float32)  # (D, 2)
    bias = np.array([axis.bias for axis in pair], np.float32)

    def project(new: np.ndarray) -> np.ndarray:
        blocks = [new[start : start + geometry.BLOCK] for start in range(0, len(new), geometry.BLOCK)]
        return np.concatenate([unit(block) @ weights + bias for block in blocks])

    # the shortest of all moves that change the scores by one
    read = tuple(f"{axis.name.lower()} {axis.reading}" for axis in pair)
    return geometry.Projection(project(vectors), project, None, np.linalg.pinv(weights).T, read)
