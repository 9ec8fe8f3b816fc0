"""`writer`: a model that generates text from the vectors of any other encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Outputs, Readout, Role, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_least
from bgt_core.models.bgt import WritingModel
from bgt_core.nets.decoder import KVCache, Memory, TransformerDecoder
from bgt_core.nets.encoders import Encoder, GaussianHead
from bgt_core.nets.layers import CrossAttention, Transformer, make_embedding, xavier_linear
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import LanguageOutput, SentencePrediction, TiedOutput
from bgt_core.posterior import Gaussian, sample


@dataclass(frozen=True, kw_only=True)
class WriterConfig:
    """A model whose semantic latent is another encoder's vector. Its language latents come from Transformers.

    The option `--encoder` sets the first three settings.
    """

    encoder: str = ""  # name of the encoder, as in the option `--model`
    fingerprint: str = ""  # fingerprint of the encoder's vectors; if empty, a changed encoder is not noticed
    vector_dim: int = 384  # units of the encoder's vectors
    vector_log_variance: float = -5.0  # log variance of the noise, relative to the vectors' variance
    d_model: int = 256
    language_dim: int = 64
    language_layers: int = 1
    language_log_variance: float = -3.0  # initial log variance of the posteriors
    memory_slots: int = 8  # number of vectors that decoders attend to; each is a linear map of the latents
    decoder_layers: int = 3
    ffn_dim: int = 512
    heads: int = 4
    dropout: float = 0.0
    word_dropout: float = 0.1
    draft_layers: int = 2  # layers of the Transformer that encodes drafts, if a column such as draft_en has drafts
    hidden_share: float = 0.1  # share of training rows in which each of the two latents is hidden

    def __post_init__(self) -> None:
        check_least(1, vector_dim=self.vector_dim, memory_slots=self.memory_slots)

    @property
    def semantic_dim(self) -> int:
        return self.vector_dim

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> VectorWriter:
        drafts = [column for column in columns if column.startswith(DRAFT)]
        if strays := [column for column in drafts if columns[column] != columns.get(column.removeprefix(DRAFT))]:
            needed = f"{strays[0].removeprefix(DRAFT)}:{columns[strays[0]]}"
            raise UsageError(f"{strays[0]}: has drafts of the missing column {needed}; add it", parameter="columns")
        langs, latent = dict.fromkeys(columns.values()), self.language_dim + self.vector_dim
        table = make_embedding(tokenizer.vocab_size, self.d_model)
        sizes: dict[str, Any] = {"ffn_dim": self.ffn_dim, "heads": self.heads, "dropout": self.dropout}

        def encoder() -> Encoder:
            head = GaussianHead(self.d_model, self.language_dim, self.language_log_variance)
            return Encoder(Transformer(table, self.language_layers, **sizes), head)

        def decoder(lang: str) -> CorrectingDecoder:
            layer = LanguageOutput(TiedOutput(table, latent), lang)
            memory = LinearMemory(latent, self.d_model, self.memory_slots)
            return CorrectingDecoder(
                table, layer, latent, self.decoder_layers, **sizes, word_dropout=self.word_dropout, memory=memory
            )

        return VectorWriter(
            StoredVector(self.vector_dim, self.vector_log_variance, self.encoder, self.fingerprint),
            encoders={lang: encoder() for lang in langs},
            decoders={lang: decoder(lang) for lang in langs},
            hidden_share=self.hidden_share,
            reader=DraftReader(Transformer(table, self.draft_layers, **sizes), self.vector_dim) if drafts else None,
        )


class LinearMemory(Memory):
    """Linear maps of a latent: one for each vector that tokens attend to, and one that is added to all tokens."""

    def __init__(self, latent: int, width: int, slots: int):
        super().__init__()
        self.width = width
        self.own, self.slot = xavier_linear(latent, width), xavier_linear(latent, slots * width)
        # Without this bias, a layer norm's input would be 0 where both the word and the latent are hidden, and the
        # gradient would explode.
        nn.init.normal_(self.own.bias, std=width**-0.5)

    def at(self, latent: Tensor, positions: Tensor, layout: PackedLayout) -> Tensor:
        return layout.repeat(self.own(latent))

    def states(self, latent: Tensor) -> Tensor:
        return self.slot(latent).unflatten(-1, (-1, self.width))


@dataclass(frozen=True, eq=False)
class Drafted:
    """The input of a `CorrectingDecoder`: the latents of B sentences, and the encoded drafts to be corrected."""

    latent: Tensor  # (B, L)
    states: Tensor  # (R, H): encoder states of the drafts' R tokens
    drafts: Tokens  # (B, T)

    def __len__(self) -> int:
        return len(self.latent)

    @property
    def device(self) -> torch.device:
        return self.latent.device


class DraftReader(nn.Module):
    """Encodes drafts, earlier versions of sentences, with a Transformer. To each state, it adds a linear map of the
    sentence's vector minus the draft's vector, (..., `units`)."""

    def __init__(self, body: Transformer, units: int):
        super().__init__()
        self.body, self.lacking = body, xavier_linear(units, body.width, bias=False)

    def forward(self, latent: Tensor, drafts: Tokens, lacking: Tensor) -> Drafted:
        """Encode drafts (B, T), given latents (B, L) and `lacking`, sentence vectors minus draft vectors, (B, D)."""
        layout = PackedLayout.of(drafts)
        return Drafted(latent, self.body.states(drafts, layout) + layout.repeat(self.lacking(lacking)), drafts)


class CorrectingDecoder(TransformerDecoder):
    """A decoder p(sentence | latent, draft), which attends to the draft's tokens and to vectors made from the latent.
    Without a draft, it computes the same as a `TransformerDecoder`, which has the same parameters."""

    def forward(self, role: Role, column: str, context: Tensor | Drafted, target: Tokens) -> SentencePrediction:
        """Predict the target sentences (B, T) from latents (B, L), with or without drafts."""
        latent, attended, real = self.given(context)
        return self.predict(role, column, latent, target, attended, real)

    def start(self, context: Tensor | Drafted) -> KVCache:
        """Return the initial state of beam search or sampling, given latents with or without drafts."""
        latent, attended, real = self.given(context)
        return self.begin(latent, latent, attended, real)

    def given(self, context: Tensor | Drafted) -> tuple[Tensor, list[Tensor | None], Tensor | None]:
        """Return latents (B, L), keys and values for each layer (2, B, heads, S, H/heads), and a mask of real keys."""
        if isinstance(context, Tensor):
            return context, self.slots(context), None
        layout = PackedLayout.of(context.drafts)
        slots = cast(list[Tensor], self.slots(context.latent))
        drafts = [cast(CrossAttention, layer.cross).keys_values(context.states, layout) for layer in self.layers]
        always = layout.mask.new_ones(len(context), slots[0].shape[3])
        real = torch.cat([always, layout.mask], dim=1)[:, None, None]  # (B, 1, 1, S)
        return context.latent, [torch.cat(pair, dim=3) for pair in zip(slots, drafts, strict=True)], real


DRAFT = "draft_"  # prefix of a column's name: the column "draft_en" has drafts of the column "en"
LENGTH = 16.0  # length of standardised vectors of any width, so that one learning rate suits all encoders


class StoredVector(nn.Module):
    """Takes the place of a semantic encoder: a latent is another encoder's vector of `units` units plus Gaussian noise.

    `log_variance` is the log of the noise's variance, relative to the variance of the vectors.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, units: int, log_variance: float, encoder: str, fingerprint: str = ""):
        super().__init__()
        self.log_variance = log_variance + math.log(LENGTH**2 / units)
        self.encoder, self.fingerprint = encoder, fingerprint
        self.register_buffer("mean", torch.zeros(units))
        self.register_buffer("scale", torch.ones(()))

    @torch.no_grad()
    def fit(self, vectors: Tensor) -> None:
        """Compute and store the mean of the training text's vectors (N, D), and one scale by which they are divided."""
        exponent = int(torch.frexp(vectors.abs().max()).exponent)
        power = 2.0 ** min(exponent, 127)  # vectors are divided by it, so that squares neither overflow nor vanish
        vectors = vectors / power
        mean = vectors.mean(0)
        length = (vectors - mean).square().sum(1).mean().sqrt()
        self.mean.copy_(mean * power)
        self.scale.copy_(length.clamp(min=1e-6) / LENGTH * power)

    def standardise(self, vectors: Tensor) -> Tensor:
        """Shift vectors to mean 0, and scale them to a root mean square length of `LENGTH`: (B, D) -> (B, D)."""
        return (vectors - self.mean) / self.scale

    def forward(self, side: Tokens, layout: PackedLayout | None = None) -> Gaussian:
        """Raise UsageError, because the other encoder reads text, not tokens."""
        raise UsageError(
            f"This model generates text from vectors of {self.encoder}, which embeds text, not tokens. Open the model "
            "with `bgt_core.open_encoder`, or give vectors."
        )


class VectorWriter(WritingModel):
    """A writer, which generates sentences from language latents and from another encoder's vectors.

    Only the language encoders and the decoders learn. `Batch.targets` are the encoder's vectors of the C columns,
    concatenated, (B, C * D); without targets, each row has the mean vector. In training, each of the two latents is
    hidden in a share `hidden_share` of the rows, independently of the other: the decoder then gets the mean of the
    prior instead. So the model can also generate from one latent, which shows how much each latent lowers the loss.

    The input of a decoder is [language latent ; standardised vector]. `reader` encodes drafts; it is None for a model
    without drafts.
    """

    def __init__(
        self,
        semantic: StoredVector,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        hidden_share: float,
        reader: DraftReader | None = None,
    ):
        super().__init__(tuple(decoders), {SEMANTIC: semantic, **encoders})
        if not 0 <= hidden_share < 1:
            raise UsageError(f"hidden_share {hidden_share} must be a share of the rows, from 0 to below 1")
        self.decoders, self.reader = nn.ModuleDict(decoders), reader
        self.hidden_share, self.readout = hidden_share, sample

    @property
    def stored(self) -> StoredVector:
        """The module that takes the place of the semantic encoder."""
        return self.encoders[SEMANTIC]  # type: ignore[return-value]

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout, predictions = readout or self.readout, []
        vectors = self.stored.mean.expand(len(batch), len(batch.sides), -1)
        if batch.targets is not None:
            vectors = batch.targets.view(vectors.shape)
        given = {column: vectors[:, number] for number, column in enumerate(batch.sides)}
        written = {column: side for column, side in batch.sides.items() if not column.startswith(DRAFT)}
        means = {column: self.stored.standardise(given[column]) for column in written}
        noise = self.stored.log_variance
        semantic = {column: Gaussian(mean, torch.full_like(mean, noise)) for column, mean in means.items()}
        language = {column: self.encoders[side.lang](side) for column, side in written.items()}
        for column, side in written.items():
            parts = [self.hidden(readout(posterior[column])) for posterior in (language, semantic)]
            context: Tensor | Drafted = torch.cat(parts, dim=-1)
            drafts = batch.sides.get(DRAFT + column)
            if self.reader and drafts and not (self.training and torch.rand(()) < self.hidden_share):
                context = self.reader(context, drafts, self.lacking(given[column], given[DRAFT + column]))
            predictions.append(self.decoders[side.lang]("reconstruct", column, context, side))
        return Outputs(semantic, {LANGUAGE: language}, predictions)

    def lacking(self, vectors: Tensor, of_drafts: Tensor) -> Tensor:
        """Return the scaled difference between sentences' vectors and drafts' vectors: (B, D), (B, D) -> (B, D)."""
        return (vectors - of_drafts) / self.stored.scale

    def drafted(self, latents: Mapping[str, Tensor], drafts: Tokens, of_drafts: Tensor) -> Drafted:
        """Make a decoder's input for correcting drafts, (B, T). `latents` are the same as for `join`; `of_drafts` are
        the encoder's vectors of the drafts, (B, D). UsageError if the model was trained without drafts."""
        if self.reader is None:
            raise UsageError("This writer was trained without drafts; train one with a column such as draft_en.")
        return self.reader(self.join(latents), drafts, self.lacking(latents[SEMANTIC], of_drafts))

    @property
    def semantic_table(self) -> nn.Embedding:
        """The token embeddings of the decoders, (V, H), because the semantic encoder is not part of this model."""
        return next(part for part in self.decoders.modules() if isinstance(part, nn.Embedding))

    def hidden(self, latent: Tensor) -> Tensor:
        """In training, replace the latent of random rows by the prior's mean, 0: (B, L) -> (B, L)."""
        if not self.training or not self.hidden_share:
            return latent
        return latent * (torch.rand(len(latent), 1, device=latent.device) >= self.hidden_share)

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Make the input of a decoder, (B, L_lang + D), from language latents and the encoder's unscaled vectors."""
        return torch.cat([latents[LANGUAGE], self.stored.standardise(latents[SEMANTIC])], dim=-1)

    def prior_mean(self, latent: str, like: Tensor) -> Tensor:
        return self.stored.mean.expand_as(like) if latent == SEMANTIC else super().prior_mean(latent, like)
