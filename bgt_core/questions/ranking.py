"""How stored questions are compared with a new one: first by a distance that FAISS knows, then by the model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import logit

from bgt_core.adapters.distances import DuplicateEncoder, PosteriorEncoder, with_own_probability
from bgt_core.contracts import SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.vectors.compare import unit

TINY = 1e-300  # probabilities below have no log odds in double precision


class Ranking(Protocol):
    """An encoder, and how its vectors (N, D) are searched and scored."""

    by: str  # what a score stands for: "probability" or "cosine"
    encoder: SentenceEncoder

    def points(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (N, D) -> points (N, P) float32 whose Euclidean distance is searched by."""

    def scores(self, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """A query (D,) with N vectors (N, D): (N,) float64, the higher the more alike."""


class DuplicateRanking:
    """Of a trained `var-siamese`: W2 nominates, log odds of being duplicates decide.

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
    """Of any other encoder: by cosine alone. Points of length 1 are as far apart as their cosine is low."""

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
    """By probability where the encoder is a trained `var-siamese`, else by cosine."""
    encoder = with_own_probability(encoder)
    return DuplicateRanking(encoder) if isinstance(encoder, DuplicateEncoder) else CosineRanking(encoder)


def identity(encoder: SentenceEncoder) -> str:
    """Its fingerprint; of ours without precision and device, which move vectors by less than they differ."""
    ours = isinstance(encoder, Embedder | PosteriorEncoder)
    return encoder.fingerprint.rsplit(" ", 2)[0] if ours else encoder.fingerprint
