"""Word Mover's Distance (Kusner et al. 2015) over a model's token vectors, by POT."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bgt_core.contracts import EOS, PAD, SEMANTIC
from bgt_core.data.text import sentence_list
from bgt_core.embedder import Embedder
from bgt_core.errors import DataError, needs
from bgt_core.vectors.compare import paired, sides

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
