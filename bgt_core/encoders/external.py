"""Wrap an encoder that is not ours, and check its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.compare import Similarity, cosine_similarity, cosines, paired, sides
from bgt_core.vectors.convert import matrix, numbers

# (sentences, lang, latent) -> vectors (N, D), in any form that `vectors.convert` takes
Encode = Callable[[list[str], str, str], object]


@runtime_checkable
class CountsTruncated(Protocol):
    """An encoder that may cut long sentences, and reports how many."""

    def count_truncated(self, sentences: Sequence[str], *, lang: str) -> int:
        """Count the sentences that are too long for it."""
        ...


class ExternalEncoder:
    """Wrap `encode` as an encoder; `name` appears in messages and records."""

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
        """Without `langs`, it accepts any language. `sample` is a sentence that it can embed, which gives the width of
        vectors for an empty list. `truncated` counts the given sentences that are cut; by default none. `fingerprint`
        is as in `SentenceEncoder`, or a function that computes it when it is first needed."""
        self.name, self.encode, self.sample, self.truncated = name, encode, sample, truncated
        self.langs, self.latents = _names(name, "langs", langs), _names(name, "latents", latents) or (SEMANTIC,)
        self._fingerprint, self._similarity, self._pairwise = fingerprint, similarity, similarity_pairwise
        self.opened_as: Callable[[], object] | None = None  # opens the same encoder in another process

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences: (N, D) float32, in the order given; a single string: (D,).

        Raises UsageError if it lacks the language or the latent, and if `sentences` are not text; DataError if `encode`
        does not return N finite vectors.
        """
        lang = known_lang(lang, self.langs, self.name)
        if latent not in self.latents:
            raise UsageError(f"{latent}: {self.name} has {', '.join(self.latents)}.", parameter="latent")
        given = sentence_list(sentences)
        texts = given or [self.sample]
        vectors = matrix(self.encode(texts, lang, latent), self.name, (len(texts), "D"), texts=texts)[: len(given)]
        return vectors[0] if isinstance(sentences, str) else vectors

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        """Pickle the function that opened the encoder, because parts such as an ONNX session can't be pickled."""
        if self.opened_as is None:
            raise UsageError(f"{self.name} can't be pickled; make it in each process, or open it by `open_encoder`.")
        return self.opened_as, ()

    @cached_property
    def fingerprint(self) -> str:
        """A fingerprint of the vectors; "" if unknown: results are then not cached. DataError if it is not text."""
        given = self._fingerprint() if callable(self._fingerprint) else self._fingerprint
        if not isinstance(given, str | int):
            raise DataError(f"{self.name}: fingerprint is of type {type(given).__name__}; expected text.")
        return str(given)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, D) with each row of right (M, D): (N, M)."""
        left, right = sides(left, right)
        return numbers(self._similarity(left, right), f"{self.name}, similarity", (len(left), len(right)))

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare row i of left (N, D) with row i of right (N, D): (N,); UsageError for different shapes."""
        left, right = paired(left, right)
        return numbers(self._pairwise(left, right), f"{self.name}, similarity_pairwise", left.shape[:-1])

    def count_truncated(self, sentences: str | Iterable[str], *, lang: str) -> int:
        """Count the sentences that are too long for it."""
        return self.truncated(sentence_list(sentences), lang) if self.truncated else 0


def _names(owner: str, what: str, given: object) -> tuple[str, ...]:
    """Return the names that an encoder gives, a string or a sequence of strings; DataError for anything else."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"{owner}: {what} is of type {type(given).__name__}; expected strings, as ('en', 'fr').")
    return names
