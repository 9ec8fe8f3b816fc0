"""Plans of generation: whose meaning, in which language, in whose style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bgt_core.contracts import SEMANTIC
from bgt_core.data.languages import lang_hint
from bgt_core.errors import BgtError, UsageError

OWN, REFERENCE, RANDOM, SWAPPED = "its own", "the reference", "a random sentence", "the swapped sentence"
Columns = Mapping[str, Sequence[str]]  # language -> N sentences, translations of each other


@runtime_checkable
class Writer(Protocol):
    """A model that generates from its latents (`generation.writer.Writer`)."""

    @property
    def langs(self) -> Sequence[str]: ...

    @property
    def latents(self) -> Sequence[str]: ...

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Embed N sentences: (N, D)."""

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compare each row of left (N, D) with each row of right (M, D): (N, M)."""

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        """Generate a sentence of `lang` for each row of the latents, (N, L) each under its name."""

    def log_likelihood(self, latents: Mapping[str, np.ndarray], sentences: Sequence[str], *, lang: str) -> np.ndarray:
        """log p(sentence | latents) in nats, one row of the latents per sentence: (N,)."""


@dataclass(frozen=True, eq=False)
class Writing:
    """N sentences generated in `lang`: the meaning of row n of `source_lang` in the style of row `styles[n]` of `lang`.

    The reference is row n of `lang`.
    """

    source_lang: str
    lang: str
    style_of: str  # OWN, REFERENCE, RANDOM or SWAPPED
    styles: np.ndarray  # (N,) rows

    @property
    def needs_style(self) -> bool:
        """Whether only a model with language latents can generate it."""
        return self.style_of in (RANDOM, SWAPPED)


def writers(models: Mapping[str, Any], langs: Sequence[str], beam: int) -> dict[str, Writer]:
    """Wrap the models, by name, with beam search, unless they are `Writer`s already.

    Raises:
        UsageError: A model without a decoder, or without one of these languages.
    """
    from bgt_core.generation.options import Beam

    # imports torch, which the command's help does not need
    from bgt_core.generation.writer import Writer as SearchingWriter

    named: dict[str, Writer] = {}
    for name, model in models.items():
        try:
            writer = model if isinstance(model, Writer) else SearchingWriter(model, Beam(beam))
        except BgtError as error:
            raise type(error)(f"{name}: {error}") from None
        if missing := [lang for lang in langs if lang not in writer.langs]:
            hint = lang_hint(missing[0], writer.langs)
            raise UsageError(f"{missing[0]}: {name} has {', '.join(writer.langs)}.{hint}", parameter="langs")
        named[name] = writer
    return named


def writings(langs: Sequence[str], rows: int, styles: bool, seed: int) -> list[Writing]:
    """The plans for a file of pairs of `langs`; without `styles` those that need no language latent."""
    own = np.arange(rows)
    rng = np.random.default_rng(seed)
    other = {lang: (own + rng.integers(1, rows, rows)) % rows for lang in langs}  # never its own row
    plan = [Writing(lang, lang, OWN, own) for lang in langs]
    plan += [Writing(source, lang, REFERENCE, own) for lang, source in permutations(langs, 2)]
    if styles:
        plan += [Writing(source, lang, RANDOM, other[lang]) for lang, source in permutations(langs, 2)]
        plan += [Writing(lang, lang, RANDOM, other[lang]) for lang in langs]
    return plan


def role_writings(langs: Sequence[str], rows: int, styles: bool) -> list[Writing]:
    """The plans for minimal pairs, twins side by side. In the twin's style, only the semantic latent holds the
    roles."""
    own, twin = np.arange(rows), np.arange(rows) ^ 1
    plan = [Writing(lang, lang, OWN, own) for lang in langs]
    plan += [Writing(source, lang, REFERENCE, own) for lang, source in permutations(langs, 2)]
    if styles:
        plan += [Writing(source, lang, SWAPPED, twin) for lang in langs for source in langs]
    return plan


class Latents:
    """The latents of some columns, each embedded once, as inputs of generation."""

    def __init__(self, writer: Writer, columns: Columns):
        self.vectors = {
            (latent, lang): writer.embed(texts, lang=lang, latent=latent)
            for lang, texts in columns.items()
            for latent in writer.latents
        }

    def of(self, writing: Writing) -> dict[str, np.ndarray]:
        """(N, L) by latent."""
        of_style = {
            latent: each[writing.styles] for (latent, lang), each in self.vectors.items() if lang == writing.lang
        }
        return of_style | {SEMANTIC: self.vectors[SEMANTIC, writing.source_lang]}
