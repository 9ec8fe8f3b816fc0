"""An encoder that is not ours, behind our protocol: its vectors are checked once, here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, UsageError

# (sentences, lang, latent) -> what can be made an array (N, D)
Encode = Callable[[list[str], str, str], object]


@dataclass(frozen=True)
class ExternalEncoder:
    """`encode` as an encoder; `name` is what messages and records call it."""

    name: str
    encode: Encode
    langs: tuple[str, ...] = ()  # any
    latents: tuple[str, ...] = (SEMANTIC,)
    sample: str = "a"  # a sentence that it can embed: tells the width where there is none to embed
    cut: Callable[[list[str]], int] | None = None  # how many sentences it reads the beginning of; none: it reads all
    fingerprint: str = (
        ""  # what decides the vectors, as `Embedder.fingerprint`; none: nobody knows, so nothing is cached
    )

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, D) float32, in the order given.

        Raises BgtError for a language or latent it does not have, and for anything but N finite vectors.
        """
        if self.langs and lang not in self.langs:
            raise UsageError(f"{self.name} has no language '{lang}'; it has {', '.join(self.langs)}.")
        if latent not in self.latents:
            raise UsageError(f"{self.name} has no latent '{latent}'; it has {', '.join(self.latents)}.")
        texts = list(sentences) or [self.sample]
        return checked(self.encode(texts, lang, latent), texts, self.name)[: len(sentences)]

    def shortened(self, sentences: Sequence[str], *, lang: str) -> int:
        """How many of the sentences are longer than it reads."""
        return self.cut(list(sentences)) if self.cut else 0


def checked(vectors: object, sentences: Sequence[str], name: str) -> np.ndarray:
    """What an encoder gave for N sentences -> (N, D) float32; BgtError unless it is that, and finite."""
    try:
        found = np.asarray(vectors)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of different lengths; a tensor on a GPU
        raise DataError(f"{name}: its vectors are no array of numbers ({error}).") from None
    if found.dtype.kind not in "fiu" or found.ndim != 2 or len(found) != len(sentences) or not found.shape[1]:
        shape = f"{found.dtype} of shape {found.shape}"
        raise DataError(f"{name}: expected numbers, {len(sentences)} rows of one width, found {shape}.")
    with np.errstate(over="ignore"):  # what float32 can't hold is found below
        found = found.astype(np.float32, copy=False)
    bad = np.flatnonzero(~np.isfinite(found).all(1))
    if len(bad):
        text = sentences[bad[0]][:60]
        raise DataError(f"{name}: row {bad[0] + 1} of {len(found)} holds infinity or no number, for {text!r}.")
    return found
