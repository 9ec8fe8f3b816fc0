"""A writer: text from the vectors of any encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bgt_core.contracts import LANGUAGE
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_least
from bgt_core.models.writer import DRAFT, CorrectingDecoder, DraftReader, LinearMemory, StoredVector, VectorWriter
from bgt_core.nets.encoders import Encoder, GaussianHead
from bgt_core.nets.layers import Transformer, make_embedding
from bgt_core.nets.output import LanguageOutput, TiedOutput
from bgt_core.objectives import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.recipes.bgt import bgt_small
from bgt_core.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class WriterConfig:
    """Another encoder's vector as the semantic latent; Transformers for the language latents; decoders with slots."""

    encoder: str = ""  # the encoder, as `--model` names one; `--encoder` sets these three
    fingerprint: str = ""  # of its vectors; empty: a changed encoder is not noticed
    vector_dim: int = 384  # units of its vectors
    vector_log_variance: float = -5.0  # log of the variance of the noise added in training, as a share of the vectors'
    d_model: int = 256
    language_dim: int = 64
    language_layers: int = 1
    language_log_variance: float = -3.0  # initial value of posteriors
    memory_slots: int = 8  # linear maps of the latents that the decoder attends to
    decoder_layers: int = 3
    ffn_dim: int = 512
    heads: int = 4
    dropout: float = 0.0
    word_dropout: float = 0.1
    draft_layers: int = 2  # of the Transformer that reads drafts, if there is a column of them, such as draft_en
    hidden_share: float = 0.1  # share of training rows without the vector, and without the language latent

    def __post_init__(self) -> None:
        check_least(1, vector_dim=self.vector_dim, memory_slots=self.memory_slots)

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        return self.vector_dim

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> VectorWriter:
        """An untrained model for the columns' languages; UsageError for drafts of a column that is missing."""
        drafts = [column for column in columns if column.startswith(DRAFT)]
        if strays := [column for column in drafts if columns[column] != columns.get(column.removeprefix(DRAFT))]:
            needed = f"{strays[0].removeprefix(DRAFT)}:{columns[strays[0]]}"
            raise UsageError(f"{strays[0]}: holds drafts of the column {needed}, which is missing", parameter="columns")
        langs, latent = dict.fromkeys(columns.values()), self.language_dim + self.vector_dim
        table = make_embedding(tokenizer.vocab_size, self.d_model)
        sizes = self.ffn_dim, self.heads, self.dropout

        def encoder() -> Encoder:
            head = GaussianHead(self.d_model, self.language_dim, self.language_log_variance)
            return Encoder(Transformer(table, self.language_layers, *sizes), head)

        def decoder(lang: str) -> CorrectingDecoder:
            layer = LanguageOutput(TiedOutput(table, latent), lang)
            memory = LinearMemory(latent, self.d_model, self.memory_slots)
            return CorrectingDecoder(
                table, layer, latent, self.decoder_layers, *sizes, self.word_dropout, memory=memory
            )

        return VectorWriter(
            StoredVector(self.vector_dim, self.vector_log_variance, self.encoder, self.fingerprint),
            encoders={lang: encoder() for lang in langs},
            decoders={lang: decoder(lang) for lang in langs},
            hidden_share=self.hidden_share,
            reader=DraftReader(Transformer(table, self.draft_layers, *sizes), self.vector_dim) if drafts else None,
        )


def writer() -> Recipe:
    """Write text back from the vectors of any encoder, which stays as it is.

        bgt train writer --encoder sentence-transformers:all-MiniLM-L6-v2 --data en-fr=pairs.tsv.xz --out runs/writer

    The semantic latent is the encoder's vector. Language latents learn what the vector leaves out; their KL limits how
    much. Vectors are computed once, before training. A checkpoint names the encoder and does not contain it.
    """
    small = bgt_small()
    return Recipe(
        name="writer",
        model=WriterConfig(),
        objective=Sum({"elbo": Elbo(warmup_steps=100, label_smoothing=0.0, weights={LANGUAGE: 0.25})}),
        data=replace(small.data, min_tokens=1),
        train=replace(small.train, epochs=10.0),
    )
