"""An encoder that is not ours, behind our protocol: its vectors are checked once, here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.data.text import sentence_list
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.compare import Similarity, check_paired, cosine_similarity, cosines

# (sentences, lang, latent) -> what can be made an array (N, D)
Encode = Callable[[list[str], str, str], object]


@runtime_checkable
class CountsTruncated(Protocol):
    """An encoder that may read only the beginning of long sentences, and says of how many."""

    def count_truncated(self, sentences: Sequence[str], *, lang: str) -> int:
        """How many of the sentences are longer than it reads."""
        ...


class ExternalEncoder:
    """`encode` as an encoder; `name` is what messages and records call it."""

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
        """No `langs` are any. `sample` is a sentence that it can embed: it tells the width where there is none to
        embed. `truncated` counts which of (sentences, lang) it cuts short; without it, it reads all. `fingerprint` says
        what decides the vectors, as `SentenceEncoder.fingerprint`, or works it out when it is first asked for.
        """
        self.name, self.encode, self.sample, self.truncated = name, encode, sample, truncated
        self.langs, self.latents = tuple(langs), tuple(latents)
        self._fingerprint, self._similarity, self._pairwise = fingerprint, similarity, similarity_pairwise
        self.opened_as: Callable[[], object] | None = None  # opens the same encoder in another process

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, D) float32, in the order given; a single string -> (D,).

        Raises UsageError for a language or latent it does not have, and for anything but a string or strings in an
        order; DataError for anything but N finite vectors.
        """
        if self.langs and lang not in self.langs:
            raise UsageError(f"{lang}: {self.name} has {', '.join(self.langs)}.", parameter="lang")
        if latent not in self.latents:
            raise UsageError(f"{latent}: {self.name} has {', '.join(self.latents)}.", parameter="latent")
        given = sentence_list(sentences)
        texts = given or [self.sample]
        vectors = checked(self.encode(texts, lang, latent), texts, self.name)[: len(given)]
        return vectors[0] if isinstance(sentences, str) else vectors

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        """Pickled is how it was opened: what it computes with, such as a session of ONNX Runtime, mostly can't be."""
        if self.opened_as is None:
            raise UsageError(f"{self.name} can't be pickled; make it in each process, or open it by `open_encoder`.")
        return self.opened_as, ()

    @cached_property
    def fingerprint(self) -> str:
        """What decides the vectors; "" where nobody knows, so that nothing is reused."""
        return self._fingerprint if isinstance(self._fingerprint, str) else self._fingerprint()

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Of each row of left (N, D) with each row of right (M, D): (N, M)."""
        return self._similarity(left, right)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Of each row of left (N, D) with the same row of right (N, D): (N,); UsageError for other shapes."""
        check_paired(left, right)
        return self._pairwise(left, right)

    def count_truncated(self, sentences: str | Iterable[str], *, lang: str) -> int:
        """How many of the sentences are longer than it reads."""
        return self.truncated(sentence_list(sentences), lang) if self.truncated else 0


def checked(vectors: object, sentences: Sequence[str], name: str) -> np.ndarray:
    """What an encoder gave for N sentences -> (N, D) float32; DataError unless it is that, and finite."""
    try:
        array = np.asarray(vectors)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of different lengths; a tensor on a GPU
        raise DataError(f"{name}: its vectors are no array of numbers ({error}).") from None
    if array.dtype.kind not in "fiu" or array.ndim != 2 or len(array) != len(sentences) or not array.shape[1]:
        shape = f"{array.dtype} of shape {array.shape}"
        raise DataError(f"{name}: expected numbers, {len(sentences)} rows of one width, found {shape}.")
    with np.errstate(over="ignore"):  # what float32 can't hold is found below
        array = array.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(array).all(1))
    if len(bad):
        text = sentences[bad[0]][:60]
        raise DataError(f"{name}: row {bad[0] + 1} of {len(array)} holds infinity or no number, for {text!r}.")
    return array
