"""Compare sentences by a distance or a probability instead of the cosine, for models of this package.

Distances between posteriors are defined in `posterior.distances`. This module adds two measures: "wmd" is the Word
Mover's Distance between bags of tokens (Kusner et al. 2015); "probability" is the probability that two sentences mean
the same, which a model trained with the recipe `var-siamese` computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bgt_core import load
from bgt_core.contracts import EOS, PAD, SEMANTIC, DuplicateModel, ReferenceModel, SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError, NotFound, UsageError, check_choice, needs
from bgt_core.posterior import Gaussian
from bgt_core.posterior.distances import DISTANCES, similarity
from bgt_core.vectors.arrays import Similarity

PROBABILITY, WMD = "probability", "wmd"
NAMES = (*DISTANCES, WMD, PROBABILITY)
BLOCK = 2**14  # maximum number of sentence pairs that are compared at once


class PosteriorEncoder(ExternalEncoder):
    """An encoder that embeds sentences as Gaussian posteriors, [means ; log-variances], compared by a distance."""

    def __init__(self, embedder: Embedder, distance: str):
        """Compare sentences by `distance`, a name in `posterior.distances.DISTANCES`."""
        super().__init__(
            "this model", self._vectors, embedder.langs, embedder.latents,
            fingerprint=lambda: f"posteriors of {embedder.fingerprint}",
            similarity=partial(each_with_each, self._row_by_row), similarity_pairwise=self._row_by_row,
        )  # fmt: skip
        self._embedder, self._distance = embedder, distance
        self.opened_as = partial(compared_by, embedder, distance)

    def _vectors(self, sentences: list[str], lang: str, latent: str) -> np.ndarray:
        posteriors = self._embedder.posteriors(sentences, lang=lang, latent=latent)
        return torch.cat([posteriors.mean, posteriors.log_variance], dim=-1).numpy()

    def _row_by_row(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        similarities = np.empty(len(left))
        for start in range(0, len(left), BLOCK):
            block = slice(start, start + BLOCK)
            similarities[block] = self.compare(gaussian(left[block]), gaussian(right[block])).cpu().numpy()
        return similarities

    def compare(self, left: Gaussian, right: Gaussian) -> torch.Tensor:
        """Return the similarity of each of P pairs of posteriors: (P, L), (P, L) -> (P,)."""
        return similarity(self._distance, left, right)


class DuplicateEncoder(PosteriorEncoder):
    """An encoder from a model of the recipe `var-siamese`. Similarity is the probability of the same meaning."""

    threshold = 0.5  # pairs with at least this probability count as duplicates

    def __init__(self, embedder: Embedder):
        """Raises UsageError if the model is not a duplicate classifier."""
        super().__init__(embedder, PROBABILITY)
        if not isinstance(embedder.model, DuplicateModel):
            raise UsageError("'probability' needs a duplicate classifier: train a var-siamese.", parameter="distance")
        self._model, self.latents = embedder.model, (SEMANTIC,)

    def compare(self, left: Gaussian, right: Gaussian) -> torch.Tensor:
        """Return the probability that two sentences mean the same, for P pairs: (P, L), (P, L) -> (P,) float64."""
        device = self._embedder.device
        return self._model.duplicate_probability(
            *(Gaussian(side.mean.to(device), side.log_variance.to(device)) for side in (left, right))
        )


def each_with_each(row_by_row: Similarity, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compare each row of left with each row of right: (N, D), (M, D) -> (N, M). `row_by_row` is a function that
    compares row i of left with row i of right."""
    table = np.empty((len(left), len(right)))
    for row, vector in enumerate(left):
        table[row] = row_by_row(np.broadcast_to(vector, right.shape), right)
    return table


def gaussian(vectors: np.ndarray) -> Gaussian:
    """Split vectors [means ; log-variances], (N, 2 L), into N posteriors."""
    copied = torch.tensor(vectors, dtype=torch.float32, device="cpu")  # copied, because rows may share memory
    return Gaussian(*copied.chunk(2, dim=-1))


def compared_by(encoder: SentenceEncoder, distance: str) -> SentenceEncoder:
    """Return an encoder of the same model that compares sentences by `distance`, one of `NAMES`.

    Raises UsageError if the model does not support the distance, or is not ours; NotFound if the distance is wmd and
    the library POT is not installed.
    """
    check_choice(NAMES, distance=distance)
    if not isinstance(encoder, Embedder):
        raise UsageError(f"{distance}: only our models have posteriors; leave the distance out.", parameter="distance")
    if distance == "cosine":
        return encoder
    kinds = {PROBABILITY: DuplicateEncoder, WMD: WordMover}
    return kinds[distance](encoder) if distance in kinds else PosteriorEncoder(encoder, distance)


def with_own_probability(encoder: SentenceEncoder) -> SentenceEncoder:
    """Make a trained `var-siamese` compare sentences by probability. Return any other encoder unchanged."""
    siamese = isinstance(encoder, Embedder) and isinstance(encoder.model, DuplicateModel)
    return compared_by(encoder, PROBABILITY) if siamese else encoder


LONGEST = 256  # maximum number of tokens of a sentence for wmd


class WordMover(ExternalEncoder):
    """Compare sentences by the Word Mover's Distance, which the library POT computes exactly. The vector of a sentence
    contains its padded token ids, (256,); the similarity is the negative distance.

    The distance is the minimum cost of moving the mass of one bag of tokens to the other. The mass of a token is its
    relative frequency in the sentence. The cost of a move is the Euclidean distance between the two tokens' rows of the
    embedding table. EOS counts only in an otherwise empty sentence. Unlike in the paper, stop words count too.
    """

    def __init__(self, embedder: Embedder):
        """Raises NotFound if POT is not installed."""
        needs("ot", "transport")
        super().__init__(
            "this model", self._ids, embedder.langs, fingerprint=lambda: f"token ids of {embedder.fingerprint}",
            similarity=partial(each_with_each, self._compared), similarity_pairwise=self._compared,
        )  # fmt: skip
        self._tokenizer, self.opened_as = embedder.tokenizer, partial(compared_by, embedder, WMD)
        self.table = embedder.model.semantic_table.weight.detach().double().cpu().numpy()  # (V, H)

    def _ids(self, sentences: list[str], lang: str, latent: str) -> np.ndarray:
        """Encode N sentences as token ids, (N, 256) float32, padded with PAD; DataError for a longer sentence."""
        vectors = np.full((len(sentences), LONGEST), PAD, dtype=np.float32)
        for row, ids in enumerate(self._tokenizer.encode(sentences)):
            tokens = [token for token in ids if token != EOS] or [EOS]
            if len(tokens) > LONGEST:
                text = f"{len(tokens)} tokens in {sentences[row][:60]!r}: wmd compares sentences of up to {LONGEST}."
                raise DataError(text)
            vectors[row, : len(tokens)] = tokens
        return vectors

    def _compared(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the negative Word Mover's Distance of sentence i of left and of right, both padded token ids."""
        import ot
        from scipy.spatial.distance import cdist

        similarities = np.zeros(len(left))
        for number, pair in enumerate(zip(left, right, strict=True)):
            bags = [np.unique(row[row != PAD].astype(np.int64), return_counts=True) for row in pair]
            costs = cdist(*(self.table[tokens] for tokens, _ in bags))  # (K, K'), for K and K' distinct tokens
            similarities[number] = -ot.emd2(*(counts / counts.sum() for _, counts in bags), costs)
        return similarities


class ReferenceProbability:
    """Score sentences by a trained classifier. The score is the probability that a person, not a machine translator,
    wrote the sentence. `data.clean.clean(models={"classifier": ...})` selects pairs by this score."""

    def __init__(self, embedder: Embedder):
        """Raises UsageError if the model is not a reference classifier."""
        if not isinstance(embedder.model, ReferenceModel):
            raise UsageError("this model is not a reference classifier: `bgt train reference-classifier`.")
        self._embedder, self._model = embedder, embedder.model

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", precision: str = "fp32") -> ReferenceProbability:
        """Load a checkpoint or run; NotFound if absent, DataError if damaged, UsageError for another kind of model."""
        if not Path(path).exists():
            text = f"{path}: no such run; train one with `bgt train reference-classifier`."
            raise NotFound(text, parameter="classifier")
        try:
            return cls(load(path, device, precision))
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None

    @property
    def fingerprint(self) -> str:
        """One line that identifies the model and thus the scores."""
        return self._embedder.fingerprint

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """Score N sentences: (N,) float64, from 0 to 1."""
        vectors = self._embedder.embed(sentences, lang=self._embedder.langs[0])  # all languages share one encoder
        return self._model.reference_probability(torch.from_numpy(vectors).to(self._embedder.device)).cpu().numpy()
