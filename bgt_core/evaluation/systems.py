"""The systems of an evaluation: an encoder and one of its latents, with a name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.languages import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.vectors.compare import rounded
from bgt_core.vectors.convert import matrix, numbers

PAIRS = 8_192  # pairs embedded at once: more than any published set has; bounds memory for larger ones


@dataclass(frozen=True, eq=False)
class System:
    """An encoder with the latent to compare by; errors start with the name."""

    name: str
    encoder: SentenceEncoder
    latent: str = SEMANTIC

    def embed(self, sentences: Sequence[str], lang: str) -> np.ndarray:
        """Embed each distinct sentence once.

        Returns:
            The vector of each of N sentences, (N, D), in float32 or finer.

        Raises:
            UsageError: As `sentence_list`.
            DataError: Not one row of finite numbers per distinct sentence.
        """
        sentences = sentence_list(sentences)
        rows = {sentence: row for row, sentence in enumerate(dict.fromkeys(sentences))}
        distinct = list(rows)
        try:
            vectors = self.encoder.embed(distinct, lang=lang, latent=self.latent)
        except BgtError as error:
            raise type(error)(f"{self.name}: {error}") from None
        vectors = matrix(vectors, self.name, (len(distinct), "D"), texts=distinct, dtype=None)
        return vectors.astype(np.result_type(vectors, np.float32), copy=False)[[rows[each] for each in sentences]]

    def similarities(self, left: Sequence[str], right: Sequence[str], left_lang: str, right_lang: str) -> np.ndarray:
        """Compare each sentence with the one of the same row, (N,) float64, by `rounded`: equal ones tie.

        A string is one sentence. Raises UsageError for different numbers of sentences, DataError for a similarity that
        is not finite.
        """
        left, right = sentence_list(left, "left"), sentence_list(right, "right")
        if len(left) != len(right):
            raise UsageError(f"has {len(left)} sentences, right {len(right)}; expected pairs.", parameter="left")
        parts = []
        for start in range(0, len(left), PAIRS):
            sides = left[start : start + PAIRS], right[start : start + PAIRS]
            if left_lang == right_lang:
                vectors = np.split(self.embed([*sides[0], *sides[1]], left_lang), 2)
            else:
                vectors = [self.embed(sides[0], left_lang), self.embed(sides[1], right_lang)]
            self.check_widths(*vectors)
            given = self.encoder.similarity_pairwise(*vectors)
            parts.append(numbers(given, f"{self.name}, similarity_pairwise", (len(sides[0]),)))
        similarity = np.concatenate(parts)
        if not (finite := np.isfinite(similarity)).all():
            row = int(finite.argmin())
            pair = f"'{left[row][:60]}' and '{right[row][:60]}'"
            raise DataError(f"{self.name}: the similarity of {pair} is {similarity[row]}; expected a number.")
        return rounded(similarity)

    def check_widths(self, left: np.ndarray, right: np.ndarray) -> None:
        """Raise DataError unless the vectors of two languages, (N, D) and (M, D), have the same width."""
        if left.shape[1] != right.shape[1]:
            raise DataError(
                f"{self.name}: vectors of {left.shape[1]} and {right.shape[1]} units can't be compared; "
                "expected the same width in both languages."
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
        langs: Languages to embed; an encoder without a list takes any.
        latent: The latent to compare by; by default each latent of an encoder.
        across: Whether vectors of two languages are compared. Language latents are then left out, because they are
            not comparable across languages.
        reserved: Names of the evaluation's own systems.

    Returns:
        The systems. Their names are those of the encoders, with the latent if an encoder has several.

    Raises:
        UsageError: Two systems with the same name; a latent or language that an encoder lacks; a language latent across
            languages.
    """
    named: dict[str, System] = {}
    for name, encoder in encoders.items():
        if latent and latent not in encoder.latents:
            raise UsageError(f"{latent}: {name} has {', '.join(encoder.latents)}.", parameter="latent")
        for lang in langs:
            known_lang(lang, encoder.langs, name)
        if across and latent == LANGUAGE:
            raise UsageError(
                f"{name}: language latents are not comparable across languages; compare the semantic latent."
            )
        for each in [latent] if latent else encoder.latents:
            if across and each == LANGUAGE:
                continue
            row = f"{name} {each}" if len(encoder.latents) > 1 else name
            if row in named or row in reserved:
                raise UsageError(f"Two systems are named '{row}'; rename one.")
            named[row] = System(row, encoder, each)
    return list(named.values())
