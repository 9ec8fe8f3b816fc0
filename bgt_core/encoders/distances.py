"""One of our models, with sentences compared in another way than by the cosine of their vectors.

Ways to compare them, by the names that `--distance` takes:

    cosine          of posterior means
    euclidean       of posterior means
    w2              Wasserstein-2 of posteriors; formulas are those of `posterior.distances`
    mahalanobis     of means, in units of both posteriors' deviations
    jensen-shannon  of posteriors, through the Gaussian nearest to both
    wmd             Word Mover's Distance (Kusner et al. 2015): moves one sentence's tokens to the other's
    probability     that a trained `var-siamese` says two sentences mean the same

And sentences scored by a trained `reference-classifier`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from bgt_core import load
from bgt_core.capabilities import DuplicateModel, ReferenceModel
from bgt_core.contracts import EOS, PAD, SEMANTIC, SentenceEncoder
from bgt_core.data.text import sentence_list
from bgt_core.embedder import Embedder
from bgt_core.errors import DataError, NotFound, UsageError, check_choice, needs
from bgt_core.posterior import Gaussian
from bgt_core.posterior.distances import DISTANCES, similarity
from bgt_core.vectors.compare import paired, sides

PROBABILITY, WMD = "probability", "wmd"
NAMES = (*DISTANCES, WMD, PROBABILITY)
BLOCK = 2**14  # pairs compared at once


class PosteriorEncoder:
    """Sentences as Gaussian posteriors: a vector is [means ; log-variances], (2 L,); similarity is minus a distance.

    It is an encoder like any other (`contracts.SentenceEncoder`): sentences are embedded once, and their vectors can be
    compared any number of times.
    """

    def __init__(self, embedder: Embedder, distance: str):
        """`distance` is one of `posterior.distances.DISTANCES`."""
        self.langs, self.latents = tuple(embedder.langs), tuple(embedder.latents)
        self._embedder, self._distance = embedder, distance

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the vectors, in one line."""
        return f"posteriors of {self._embedder.fingerprint}"

    @property
    def identity(self) -> str:
        """See `encoders.identity`."""
        return f"posteriors of {self._embedder.identity}"

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, 2 L) float32, a single string -> (2 L,); UsageError as `Embedder.posteriors`."""
        posteriors = self._embedder.posteriors(sentences, lang=lang, latent=latent)
        vectors = torch.cat([posteriors.mean, posteriors.log_variance], dim=-1).numpy()
        return vectors[0] if isinstance(sentences, str) else vectors

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, 2 L) with each row of right (M, 2 L): (N, M)."""
        left, right = sides(left, right)
        table = np.empty((len(left), len(right)))
        for row, vector in enumerate(left):
            table[row] = self.similarity_pairwise(np.broadcast_to(vector, right.shape), right)
        return table

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, 2 L) with row i of right (N, 2 L): (N,); UsageError for different shapes."""
        left, right = paired(left, right)
        similarities = np.empty(len(left))
        for start in range(0, len(left), BLOCK):
            block = slice(start, start + BLOCK)
            similarities[block] = self.compare(gaussian(left[block]), gaussian(right[block])).cpu().numpy()
        return similarities

    def compare(self, left: Gaussian, right: Gaussian) -> torch.Tensor:
        """Posteriors (P, L), (P, L) -> similarities, (P,)."""
        return similarity(self._distance, left, right)


class DuplicateEncoder(PosteriorEncoder):
    """A trained `var-siamese`: similarity is the probability that two sentences mean the same.

    classifier = DuplicateEncoder(bgt_core.load("runs/siamese"))
    questions = classifier.embed(["How old is the earth?", "What is the earth's age?"], lang="en")
    classifier.similarity_pairwise(questions[:1], questions[1:])
    """

    threshold = 0.5  # minimum probability of a duplicate

    def __init__(self, embedder: Embedder):
        """Raises UsageError for another model."""
        super().__init__(embedder, PROBABILITY)
        if not isinstance(embedder.model, DuplicateModel):
            raise UsageError("'probability' needs a duplicate classifier; train a var-siamese.", parameter="distance")
        self._model, self.latents = embedder.model, (SEMANTIC,)

    def compare(self, left: Gaussian, right: Gaussian) -> torch.Tensor:
        """Posteriors (P, L), (P, L) -> probabilities, (P,) float64."""
        device = self._embedder.device
        sides = (Gaussian(side.mean.to(device), side.log_variance.to(device)) for side in (left, right))
        return self._model.duplicate_probability(*sides)


def gaussian(vectors: np.ndarray) -> Gaussian:
    """[means ; log-variances] (N, 2 L) -> N posteriors."""
    copied = torch.tensor(vectors, dtype=torch.float32, device="cpu")  # because a repeated row can't be shared
    return Gaussian(*copied.chunk(2, dim=-1))


def compared_by(encoder: SentenceEncoder, distance: str) -> SentenceEncoder:
    """Return the same model, with sentences compared by one of `NAMES`.

    Raises UsageError for another name, for an encoder that is not ours (it has only vectors), and for a model that does
    not support this distance; NotFound for wmd if POT is not installed.
    """
    check_choice(NAMES, distance=distance)
    if not isinstance(encoder, Embedder):
        raise UsageError(
            f"{distance}: only models of ours have posteriors to compare; leave it out.", parameter="distance"
        )
    if distance == "cosine":
        return encoder
    if distance == PROBABILITY:
        return DuplicateEncoder(encoder)
    return WordMover(encoder) if distance == WMD else PosteriorEncoder(encoder, distance)


def with_own_probability(encoder: SentenceEncoder) -> SentenceEncoder:
    """Compare by probability if this is a trained `var-siamese`; return any other encoder unchanged."""
    siamese = isinstance(encoder, Embedder) and isinstance(encoder.model, DuplicateModel)
    return compared_by(encoder, PROBABILITY) if siamese else encoder


# Word Mover's Distance (Kusner et al. 2015) over a model's token vectors, by POT.

LONGEST = 256  # tokens of a sentence


class WordMover:
    """Sentences as bags of tokens: a vector holds token ids, (256,), padded; similarity is minus the distance.

    The distance is the minimum cost of moving the mass of one bag to the other. The mass of a token is its share in the
    sentence; the cost of a move is the Euclidean distance between two token vectors (before any layer). EOS counts only
    in an otherwise empty sentence. Unlike in the paper, stop words count too.
    """

    def __init__(self, embedder: Embedder):
        """Raises NotFound if POT is not installed."""
        needs("ot", "transport")
        self.langs, self.latents = tuple(embedder.langs), (SEMANTIC,)
        self._embedder = embedder
        self.table = embedder.model.semantic_table.weight.detach().double().cpu().numpy()  # (V, H)

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the vectors, in one line."""
        return f"token ids of {self._embedder.fingerprint}"

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> token ids, (N, 256) float32, padded with PAD; a single string -> (256,).

        Raises UsageError as `Embedder.embed`, DataError for a longer sentence.
        """
        self._embedder.encoder(lang, latent)
        texts = sentence_list(sentences)
        vectors = np.full((len(texts), LONGEST), PAD, dtype=np.float32)
        for row, ids in enumerate(self._embedder.tokenizer.encode(texts)):
            tokens = [token for token in ids if token != EOS] or [EOS]
            if len(tokens) > LONGEST:
                raise DataError(
                    f"{len(tokens)} tokens in {texts[row][:60]!r}: wmd compares sentences of up to {LONGEST}."
                )
            vectors[row, : len(tokens)] = tokens
        return vectors[0] if isinstance(sentences, str) else vectors

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, 256) with each row of right (M, 256), one transport problem each: (N, M)."""
        left, right = sides(left, right)
        bags = [[self.bag(row) for row in side] for side in (left, right)]
        return np.array([[-self.distance(a, b) for b in bags[1]] for a in bags[0]]).reshape(len(left), len(right))

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, 256) with row i of right (N, 256): (N,); UsageError for different shapes."""
        left, right = paired(left, right)
        return np.array([-self.distance(self.bag(a), self.bag(b)) for a, b in zip(left, right, strict=True)])

    def bag(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct token ids of a sentence, padded (256,): (K,), and their shares, (K,)."""
        tokens, counts = np.unique(row[row != PAD].astype(np.int64), return_counts=True)
        return tokens, counts / counts.sum()

    def distance(self, left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]) -> float:
        """The distance of two bags; exact, by network simplex."""
        import ot
        from scipy.spatial.distance import cdist

        costs = cdist(self.table[left[0]], self.table[right[0]])  # (K, K')
        return float(ot.emd2(left[1], right[1], costs))


class ReferenceProbability:
    """The probability that a person wrote a sentence, not a machine translator, by a trained classifier.

    Like every score, it can select pairs (`data.clean.clean(models={"classifier": ...})`).
    """

    def __init__(self, embedder: Embedder):
        """Raises UsageError for another model."""
        if not isinstance(embedder.model, ReferenceModel):
            raise UsageError("this model is not a reference classifier; train a reference-classifier.")
        self._embedder, self._model = embedder, embedder.model

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", precision: str = "fp32") -> ReferenceProbability:
        """Load a checkpoint or run; NotFound if absent, DataError if damaged, UsageError for another kind of model."""
        if not Path(path).exists():
            raise NotFound(
                f"{path}: no such run; train one with `bgt train reference-classifier`.", parameter="classifier"
            )
        try:
            return cls(load(path, device, precision))
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the scores, in one line."""
        return self._embedder.fingerprint

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """N sentences -> (N,) float64, from 0 to 1."""
        vectors = self._embedder.embed(sentences, lang=self._embedder.langs[0])  # all its languages have one encoder
        return self._model.reference_probability(torch.from_numpy(vectors).to(self._embedder.device)).cpu().numpy()
