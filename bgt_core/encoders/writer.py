"""A writer (`recipes.writer`), together with the encoder whose vectors it generates text from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast

import numpy as np

from bgt_core.capabilities import VectorModel
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.embedder import Embedder
from bgt_core.encoders import Opens, identity, named_encoder
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.compare import unit
from bgt_core.vectors.convert import matrix


class WriterEmbedder(Embedder):
    """A writer whose semantic latent is computed by the encoder that it was trained for, opened when first needed.

    Args:
        writer: The embedder of a writer's model.
        opens: Opens an encoder by its name, as `open_encoder`.
    """

    def __init__(self, writer: Embedder, opens: Opens) -> None:
        super().__init__(writer.model, writer.tokenizer, writer.langs, writer.precision)
        self.stored, self.opens = cast(VectorModel, writer.model).stored, opens

    def __reduce__(self) -> tuple[type[Embedder], tuple[object, ...]]:
        return type(self), (Embedder(self.model, self.tokenizer, self.langs, self.precision), self.opens)

    @cached_property
    def inner(self) -> SentenceEncoder:
        """The encoder; DataError if it has changed since the writer was trained."""
        return named_encoder(self.stored.encoder, self.stored.fingerprint, self.opens, "the writer")

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC, **options: Any) -> np.ndarray:
        """See `Embedder.embed`. Semantic vectors are the encoder's, (N, D), and its batches are its own choice."""
        if latent != SEMANTIC:
            return super().embed(sentences, lang=lang, latent=latent, **options)
        lang = known_lang(lang, self.langs, "this model")
        texts = sentence_list(sentences)
        vectors = matrix(self.inner.embed(texts, lang=lang), self.stored.encoder, (len(texts), "D"), texts=texts)
        if vectors.shape[-1] != self.width(lang):
            raise DataError(
                f"{self.stored.encoder}: its vectors have {vectors.shape[-1]} units; this model was trained on vectors "
                f"of {self.width(lang)}."
            )
        vectors = unit(vectors) if options.get("normalize") else vectors
        return vectors[0] if isinstance(sentences, str) else vectors

    def width(self, lang: str, latent: str = SEMANTIC) -> int:
        """Return the number of units of a latent."""
        return len(self.stored.mean) if latent == SEMANTIC else super().width(lang, latent)

    @cached_property
    def fingerprint(self) -> str:
        """See `Embedder.fingerprint`; empty if the encoder's is unknown."""
        inner = self.stored.fingerprint
        return f"{super().fingerprint} of {inner}" if inner else ""


def attached(embedder: Embedder, encoder: SentenceEncoder, name: str) -> Embedder:
    """Give a writer an encoder that is open already, instead of one that it opens by name.

    Args:
        embedder: The writer.
        encoder: The encoder that it was trained for.
        name: The encoder's name, as `--model` takes it.

    Raises:
        UsageError: The model is not a writer, or it was trained for another encoder.
    """
    if not isinstance(embedder.model, VectorModel):
        raise UsageError("This model reads sentences itself; expected a writer, as `bgt train writer` makes it.")
    stored = embedder.model.stored
    if name != stored.encoder and not (stored.fingerprint and identity(encoder) == stored.fingerprint):
        raise UsageError(f"This writer was trained for {stored.encoder}, not for {name}; open one trained for it.")
    return WriterEmbedder(embedder, lambda _: encoder)
