"""The systems of an evaluation: an encoder and one of its latents, under a name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.vectors.compare import ROUNDING

PAIRS = 8_192  # embedded at once: more than any published set has, and memory does not grow with a larger one


@dataclass(frozen=True, eq=False)
class System:
    """An encoder that is compared by one of its latents; errors start with the name."""

    name: str
    encoder: SentenceEncoder
    latent: str = SEMANTIC

    def embed(self, sentences: Sequence[str], lang: str) -> np.ndarray:
        """Embed each distinct sentence once.

        Returns:
            The vector of each of N sentences, (N, D), in float32 or finer.

        Raises:
            DataError: Not one row of finite numbers per distinct sentence.
        """
        rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        distinct = list(rows)
        try:
            vectors = np.asarray(self.encoder.embed(distinct, lang=lang, latent=self.latent))
        except BgtError as error:
            raise type(error)(f"{self.name}: {error}") from None
        if vectors.ndim != 2 or len(vectors) != len(distinct) or vectors.dtype.kind not in "fiu":
            raise DataError(
                f"{self.name}: {len(distinct)} sentences in {lang} gave {vectors.dtype} of shape {vectors.shape}; "
                "expected numbers, a row for each sentence."
            )
        good = np.isfinite(vectors).all(1)
        if not good.all():
            raise DataError(
                f"{self.name}: the vector of '{distinct[int(good.argmin())][:60]}' contains NaN or infinity; "
                f"{int((~good).sum())} of {len(good)} vectors do."
            )
        return vectors.astype(np.result_type(vectors, np.float32), copy=False)[[rows[each] for each in sentences]]

    def similarities(self, left: Sequence[str], right: Sequence[str], left_lang: str, right_lang: str) -> np.ndarray:
        """Compare each sentence with the one of the same row, (N,) float64; equal but for rounding is exactly equal."""
        parts = []
        for start in range(0, len(left), PAIRS):
            sides = left[start : start + PAIRS], right[start : start + PAIRS]
            if left_lang == right_lang:
                vectors = np.split(self.embed([*sides[0], *sides[1]], left_lang), 2)
            else:
                vectors = [self.embed(sides[0], left_lang), self.embed(sides[1], right_lang)]
            self.check_widths(*vectors)
            parts.append(self.encoder.similarity_pairwise(*vectors))
        similarity = np.concatenate(parts).astype(np.float64)
        return np.full_like(similarity, similarity[0]) if np.ptp(similarity) < ROUNDING else similarity

    def check_widths(self, left: np.ndarray, right: np.ndarray) -> None:
        """Raise DataError unless vectors of two languages, (N, D) and (M, D), have as many units."""
        if left.shape[1] != right.shape[1]:
            raise DataError(
                f"{self.name}: vectors of {left.shape[1]} and {right.shape[1]} units can't be compared; "
                "expected as many in both languages."
            )


def systems(
    encoders: Mapping[str, SentenceEncoder],
    langs: Iterable[str],
    latent: str | None = None,
    *,
    across: bool = False,
    reserved: Collection[str] = (),
) -> list[System]:
    """Name each latent of each encoder, before anything is embedded.

    Args:
        encoders: Encoders by name.
        langs: Languages that are embedded; an encoder that lists none takes any.
        latent: The latent to compare by; by default each that an encoder has.
        across: Whether vectors of two languages are compared. Language latents are then left out: those of two
            languages are two spaces.
        reserved: Names of the evaluation's own systems.

    Returns:
        The systems. Their names are those of the encoders, with the latent if an encoder has several.

    Raises:
        UsageError: Two systems of one name; a latent or language that an encoder lacks; a language latent across
            languages.
    """
    named: dict[str, System] = {}
    for name, encoder in encoders.items():
        if latent and latent not in encoder.latents:
            raise UsageError(f"{latent}: {name} has {', '.join(encoder.latents)}.", parameter="latent")
        if missing := [lang for lang in langs if encoder.langs and lang not in encoder.langs]:
            raise UsageError(f"{missing[0]}: {name} has {', '.join(encoder.langs)}.", parameter="lang")
        if across and latent == LANGUAGE:
            raise UsageError(f"{name}: language latents of two languages are two spaces; compare the semantic latent.")
        for each in [latent] if latent else encoder.latents:
            if across and each == LANGUAGE:
                continue
            row = f"{name} {each}" if len(encoder.latents) > 1 else name
            if row in named or row in reserved:
                raise UsageError(f"Two systems are called '{row}'; give one another name.")
            named[row] = System(row, encoder, each)
    return list(named.values())
