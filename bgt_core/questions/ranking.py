"""Compare stored questions with a new one: first by a distance that FAISS supports, then by the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from bgt_core.adapters.distances import DuplicateEncoder, with_own_probability
from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import DataError
from bgt_core.vectors.compare import unit

TINY = 1e-300  # smaller probabilities have no log odds in double precision


class Ranking(Protocol):
    """An encoder, with the search and scoring of its vectors (N, D)."""

    by: str  # the meaning of a score: "probability" or "cosine"
    encoder: SentenceEncoder

    def points(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (N, D) -> points (N, P) float32 for a search by Euclidean distance."""

    def scores(self, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Compare a query (D,) with N vectors (N, D): (N,) float64, higher means more similar."""


class DuplicateRanking:
    """Ranking by a trained `var-siamese`: W2 selects candidates, log odds of being duplicates rank them.

    Between Gaussians with diagonal covariances W2^2 = |mu1 - mu2|^2 + |sigma1 - sigma2|^2: the Euclidean distance of
    points [mu ; sigma], so that FAISS finds the nearest by W2 exactly.
    """

    by = "probability"

    def __init__(self, encoder: DuplicateEncoder):
        self.encoder: SentenceEncoder = encoder

    def points(self, vectors: np.ndarray) -> np.ndarray:
        """[means ; log-variances] (N, 2 L) -> [means ; standard deviations], (N, 2 L)."""
        points = np.array(vectors, dtype=np.float32)
        deviations = points[:, points.shape[1] // 2 :]
        np.exp(0.5 * deviations, out=deviations)
        return points

    def scores(self, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Log odds of the model's probability, (N,)."""
        queries = np.repeat(query[None], len(vectors), axis=0)
        probabilities = self.encoder.similarity_pairwise(queries, vectors).astype(np.float64)
        return logit(probabilities.clip(TINY, 1 - np.finfo(np.float64).epsneg))


class CosineRanking:
    """Ranking by cosine, for any other encoder. The distance of points of length 1 falls with their cosine."""

    by = "cosine"

    def __init__(self, encoder: SentenceEncoder):
        self.encoder = encoder

    def points(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors scaled to length 1, (N, D)."""
        return np.ascontiguousarray(unit(np.asarray(vectors, dtype=np.float32)), dtype=np.float32)

    def scores(self, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Cosines, (N,)."""
        return (self.points(vectors) @ self.points(query[None])[0]).astype(np.float64)


def ranking_of(encoder: SentenceEncoder) -> Ranking:
    """Rank by probability if the encoder is a trained `var-siamese`, else by cosine."""
    encoder = with_own_probability(encoder)
    return DuplicateRanking(encoder) if isinstance(encoder, DuplicateEncoder) else CosineRanking(encoder)


# Turn scores of pairs into calibrated probabilities: Platt's scaling (1999).


@dataclass(frozen=True)
class Platt:
    """probability = 1 / (1 + exp(-(slope score + offset)))."""

    slope: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Scores (N,) -> probabilities, (N,)."""
        return expit(self.slope * scores + self.offset)


UNCALIBRATED = Platt(1.0, 0.0)  # for scores that are log odds already


def fit_platt(scores: np.ndarray, labels: np.ndarray) -> Platt:
    """Fit the slope and offset that maximise the likelihood of labels (N,) bool of pairs with these scores (N,).

    As in Platt's paper, a label of the P positive pairs counts as (P + 1) / (P + 2), and one of the N others as 1 / (N
    + 2), so that the slope stays finite if a score separates both kinds. Raises DataError if scores do not rise with
    labels, because they then give no probability.
    """
    positive = int(labels.sum())
    targets = np.where(labels, (positive + 1) / (positive + 2), 1 / (len(labels) - positive + 2))
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    scaled = (scores - centre) / spread  # both parameters get a similar scale, for Newton's steps

    def nats(numbers: np.ndarray) -> tuple[float, np.ndarray]:
        logits = numbers[0] * scaled + numbers[1]
        errors = expit(logits) - targets
        loss = np.logaddexp(0, logits) - targets * logits
        return float(loss.mean()), np.array([(errors * scaled).mean(), errors.mean()])

    slope, offset = minimize(nats, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    if not slope > 0:
        raise DataError(
            f"On {len(labels)} labelled pairs the model's scores do not rise with the labels (slope {slope:.3g}); "
            "label pairs that mean the same 1, or give another model."
        )
    return Platt(float(slope / spread), float(offset - slope * centre / spread))
