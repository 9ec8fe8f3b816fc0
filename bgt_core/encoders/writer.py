"""An encoder that joins a writer, which generates text from another encoder's vectors, with that encoder."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder, VectorModel
from bgt_core.data.columns import known_lang
from bgt_core.data.text import sentence_list
from bgt_core.embedder import Embedder
from bgt_core.encoders import Opens, identity, named_encoder
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.arrays import matrix, unit


class WriterEmbedder(Embedder):
    """A model that generates text from another encoder's vectors. `opens` opens this encoder at its first use."""

    def __init__(self, writer: Embedder, opens: Opens) -> None:
        super().__init__(writer.model, writer.tokenizer, writer.langs, writer.precision)
        self.stored, self.opens = cast(VectorModel, writer.model).stored, opens

    def __reduce__(self) -> tuple[type[Embedder], tuple[object, ...]]:
        return type(self), (Embedder(self.model, self.tokenizer, self.langs, self.precision), self.opens)

    @cached_property
    def inner(self) -> SentenceEncoder:
        """The encoder of the semantic vectors; DataError if it has changed since the writer was trained."""
        return named_encoder(self.stored.encoder, self.stored.fingerprint, self.opens, "the writer")

    def embed(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC, **options: Any) -> np.ndarray:
        """Embed sentences as `Embedder.embed` does. `inner` makes the semantic vectors, and gets no `batch_size`."""
        if latent != SEMANTIC:
            return super().embed(sentences, lang=lang, latent=latent, **options)
        lang = known_lang(lang, self.langs, "this model")
        texts = sentence_list(sentences)
        vectors = matrix(self.inner.embed(texts, lang=lang), self.stored.encoder, (len(texts), "D"), texts=texts)
        if vectors.shape[-1] != self.width(lang):
            raise DataError(
                f"{self.stored.encoder}: its vectors have {vectors.shape[-1]} units, but this writer was trained on "
                f"vectors of {self.width(lang)} units."
            )
        vectors = unit(vectors) if options.get("normalize") else vectors
        return vectors[0] if isinstance(sentences, str) else vectors

    def width(self, lang: str, latent: str = SEMANTIC) -> int:
        """Return the number of units of a latent."""
        return len(self.stored.mean) if latent == SEMANTIC else super().width(lang, latent)

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes if the vectors change; "" if the fingerprint of the encoder `inner` is unknown."""
        inner = self.stored.fingerprint
        return f"{super().fingerprint} of {inner}" if inner else ""


def attached(embedder: Embedder, encoder: SentenceEncoder, name: str) -> Embedder:
    """Connect a writer with the encoder that it was trained for, which is already open. `name` is the encoder's name,
    as for --model. Raises UsageError if the model is not a writer, or was trained for another encoder."""
    if not isinstance(embedder.model, VectorModel):
        raise UsageError("This model encodes sentences itself; expected a writer of `bgt train writer`.")
    stored = embedder.model.stored
    if name != stored.encoder and not (stored.fingerprint and identity(encoder) == stored.fingerprint):
        raise UsageError(f"This writer was trained for {stored.encoder}, not for {name}; open another writer.")
    return WriterEmbedder(embedder, lambda _: encoder)
