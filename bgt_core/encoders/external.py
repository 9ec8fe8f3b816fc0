"""A wrapper for encoders of other libraries and users, which checks their vectors."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.arrays import Similarity, cosine_similarity, cosines, matrix, numbers, paired, sides

# (sentences, lang, latent) -> vectors (N, D), in any form that `vectors.arrays` accepts
Encode = Callable[[list[str], str, str], object]


class ExternalEncoder:
    """An encoder made of a function `encode`; `name` appears in messages and results."""

    def __init__(
        self,
        name: str,
        encode: Encode,
        langs: Sequence[str] = (),
        latents: Sequence[str] = (SEMANTIC,),
        *,
        sample: str = "a",
        truncated: Callable[[list[str], str], int] | None = None,
        fingerprint: str | Callable[[], str] = "",
        similarity: Similarity = cosine_similarity,
        similarity_pairwise: Similarity = cosines,
    ):
        """If `langs` is empty, any language is accepted. `sample` is a sentence that `encode` accepts; it is encoded in
        place of an empty list, to find the width of the vectors. `truncated` counts the sentences that `encode` cuts
        because they are too long; without it, the count is 0. `fingerprint` is as in `SentenceEncoder`, or a
        function that computes the fingerprint at the first use."""
        self.name, self.encode, self.sample, self.truncated = name, encode, sample, truncated
        self.langs, self.latents = _names(name, "langs", langs), _names(name, "latents", latents) or (SEMANTIC,)
        self._fingerprint, self._similarity, self._pairwise = fingerprint, similarity, similarity_pairwise
        self.about: Mapping[str, Any] = {}  # for a split encoder: the split's method, numbers of rows, and scores
        self.sentences: Container[str] = ()  # normalised; the only ones that stored vectors have, () for other encoders
        self.opened_as: Callable[[], object] | None = None  # a function that opens the same encoder in another process

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences: (N, D) float32, in the given order, or (D,) for a single string.

        Raises UsageError if the encoder lacks the language or the latent, or if `sentences` are not text; DataError if
        `encode` does not return N finite vectors.
        """
        lang = known_lang(lang, self.langs, self.name)
        if latent not in self.latents:
            raise UsageError(f"{latent}: {self.name} has the latents {', '.join(self.latents)}.", parameter="latent")
        given = sentence_list(sentences)
        texts = given or [self.sample]
        vectors = matrix(self.encode(texts, lang, latent), self.name, (len(texts), "D"), texts=texts)[: len(given)]
        return vectors[0] if isinstance(sentences, str) else vectors

    def __repr__(self) -> str:
        return f"<ExternalEncoder {self.name}: {', '.join(self.langs) or 'any language'}; {', '.join(self.latents)}>"

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        """Pickle the function that opens the encoder, because parts such as an ONNX session can't be pickled."""
        if self.opened_as is None:
            raise UsageError(f"{self.name} can't be pickled: make it in each process, or open it by `open_encoder`.")
        return self.opened_as, ()

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes with the vectors; "" if unknown: results are then not cached. DataError if not text."""
        given = self._fingerprint() if callable(self._fingerprint) else self._fingerprint
        if not isinstance(given, str | int):
            raise DataError(f"{self.name}: fingerprint is of type {type(given).__name__}; expected text.")
        return str(given)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the similarity of each row of left (N, D) and each row of right (M, D): (N, M)."""
        left, right = sides(left, right)
        return numbers(self._similarity(left, right), f"{self.name}, similarity", (len(left), len(right)))

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the similarity of row i of left and row i of right, (N, D) each: (N,). UsageError for other shapes."""
        left, right = paired(left, right)
        return numbers(self._pairwise(left, right), f"{self.name}, similarity_pairwise", left.shape[:-1])

    def count_truncated(self, sentences: str | Iterable[str], *, lang: str) -> int:
        """Count the sentences that are longer than the encoder's maximum length."""
        return self.truncated(sentence_list(sentences), lang) if self.truncated else 0


def _names(owner: str, what: str, given: object) -> tuple[str, ...]:
    """Return an encoder's languages or latents as a tuple; DataError unless they are a string or several strings."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"{owner}: {what} is of type {type(given).__name__}; expected strings, such as ('en', 'fr').")
    return names
