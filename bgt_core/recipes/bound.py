"""A BGT with word order in its semantic latent, trained for recombination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Tokens
from bgt_core.data.properties import signature
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_least
from bgt_core.models.recombining import RecombiningBGT
from bgt_core.nets.bound.binding import BoundPooling, MemoryReader, RolePooling, TaggedDecoder
from bgt_core.nets.bound.erasing import ClosingMarks, WithoutClosingMarks, WithoutLanguage
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import Encoder, GaussianHead, SharedVarianceHead, SIFPooling
from bgt_core.nets.layers import EncoderLayer, Transformer, make_embedding
from bgt_core.nets.output import LanguageOutput, OutputLayer, TiedOutput
from bgt_core.objectives import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.objectives.similarity import AlteredMargin, Composition, Distillation, Margin, StyleContrast
from bgt_core.recipes.bgt import bgt_small
from bgt_core.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class BoundConfig:
    """An average beside a Transformer's states bound to positions; decoders with a memory; one token table for all."""

    d_model: int = 256
    average_dim: int = 384  # units of the semantic latent that are an average of token vectors
    train_rarity: bool = False  # learn the weight of each token in the average, with a teacher
    average_from: str = ""  # an encoder whose vectors of the tokens' texts initialise the average
    bound_dim: int = 384  # units that hold states bound to positions; an even number
    bound_share: float = 0.03  # of the cosine; more costs STS
    roles_dim: int = 256  # units that encode who does what to whom, in any position; a multiple of 16
    roles_share: float = 0.2  # of the cosine
    composed_layers: int = 3  # of the Transformer under the bound part
    roles_layers: int = 2  # of the Transformer that finds roles
    memory_slots: int = 24  # positions for attention; later ones are read only at the token's own position
    tag_dim: int = 0  # width of the vector that marks the language in shared nets; 0: each language has its own nets
    language_dim: int = 64
    language_layers: int = 1
    decoder_layers: int = 2
    ffn_dim: int = 512
    heads: int = 4
    dropout: float = 0.0
    word_dropout: float = 0.2
    own_share: float = 0.5  # share of rows with their own semantic latent; the others get a translation's
    borrowed_share: float = 0.5  # share of rows with the language latent of another sentence of the same style
    exchanged_marks: float = 0.5  # share of rows with the closing mark of another sentence
    # initial value of posteriors; a wide posterior hides the words of a long sentence
    semantic_log_variance: float = -6.0
    language_log_variance: float = -3.0
    teacher_dim: int = 0  # units of the vectors that --teacher gives: average_dim, or 0 without a teacher
    train_decoders: bool = True  # if false, only the semantic encoder learns: a first stage, for --init-from

    def __post_init__(self) -> None:
        if self.teacher_dim not in (0, self.average_dim):
            raise UsageError(f"teacher_dim {self.teacher_dim}: must equal average_dim ({self.average_dim})")
        check_least(1, roles_layers=self.roles_layers, memory_slots=self.memory_slots)

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        return self.average_dim + self.bound_dim + self.roles_dim

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> RecombiningBGT:
        """An untrained model for the columns' languages."""
        langs, semantic, language = dict.fromkeys(columns.values()), self.semantic_dim, self.language_dim
        table = make_embedding(tokenizer.vocab_size, self.d_model)
        marks = ClosingMarks(torch.from_numpy(tokenizer.closing_marks()))

        def body(layers: int) -> Transformer:
            return Transformer(table, layers, self.ffn_dim, self.heads, self.dropout)

        probabilities = torch.from_numpy(tokenizer.probabilities())
        average = SIFPooling(probabilities, self.average_dim, trained=self.train_rarity)
        layer = partial(EncoderLayer, self.d_model, self.ffn_dim, self.heads, self.dropout)
        roles = RolePooling([layer() for _ in range(self.roles_layers)], self.average_dim, self.roles_dim)
        shares = self.bound_share, self.roles_share
        parts = BoundPooling(average, body(self.composed_layers), roles, self.bound_dim, *shares)
        widths = self.average_dim, self.bound_dim, self.roles_dim
        nearly = WithoutLanguage(WithoutClosingMarks(parts, marks), list(langs), widths)
        reader = WithoutLanguage(nearly, list(langs))
        shared = body(self.language_layers) if self.tag_dim else None

        def encoder() -> Encoder:
            own = shared or body(self.language_layers)
            return Encoder(own, GaussianHead(self.d_model, language, self.language_log_variance))

        def decoder(layer: OutputLayer, latent: int) -> TransformerDecoder:
            sizes = self.decoder_layers, self.ffn_dim, self.heads
            memory = MemoryReader(language + self.average_dim, self.bound_dim, self.d_model, self.memory_slots)
            return TransformerDecoder(table, layer, latent, *sizes, self.dropout, self.word_dropout, memory=memory)

        latent, composed = language + semantic, self.average_dim + self.bound_dim
        if self.tag_dim:
            tied = TiedOutput(table, latent + self.tag_dim)
            one = decoder(tied, latent + self.tag_dim)
            decoders: dict[str, nn.Module] = {
                lang: TaggedDecoder(one, LanguageOutput(tied, lang), self.tag_dim) for lang in langs
            }
        else:
            decoders = {lang: decoder(LanguageOutput(TiedOutput(table, latent), lang), latent) for lang in langs}
        return RecombiningBGT(
            encoders={
                SEMANTIC: Encoder(reader, SharedVarianceHead(semantic, self.semantic_log_variance)),
                **{lang: encoder() for lang in langs},
            },
            decoders=decoders,
            composed=(slice(self.average_dim, composed), slice(composed, semantic)),
            marks=marks,
            styles=partial(styles, tokenizer),
            own_share=self.own_share,
            borrowed_share=self.borrowed_share,
            exchanged_marks=self.exchanged_marks,
            train_decoders=self.train_decoders,
        )


def styles(tokenizer: Tokenizer, sides: Mapping[str, Tokens]) -> dict[str, Tensor]:
    """Number the styles of the sentences of a batch, (B,) int64 for each column: those of one signature have one."""
    numbers: dict[tuple[str | bool, ...], int] = {}

    def number(side: Tokens) -> Tensor:
        if side.ids.is_meta:  # on the meta device only shapes are needed
            return side.ids[:, 0]
        texts = tokenizer.decode(side.ids.tolist())
        drawn = [numbers.setdefault((side.lang, *signature(text, side.lang)), len(numbers)) for text in texts]
        return torch.tensor(drawn, device=side.ids.device)

    return {column: number(side) for column, side in sides.items()}


def bgt_bound() -> Recipe:
    """Word order in the semantic latent, style in the language latents. The models that ship were trained so.

        bgt train bgt-bound --langs en,fr --data pairs.tsv.xz --out runs/bound

    Unlike in `bgt-small`, part of the semantic latent holds a Transformer's states, each bound to its position, and
    decoders attend to them (docs/binding.md). Semantic encoders do not see closing marks. Decoders are trained on
    recombinations (`models.recombining`).
    """
    small = bgt_small()
    return Recipe(
        name="bgt-bound",
        model=BoundConfig(),
        objective=Sum(
            {
                "elbo": Elbo(
                    warmup_steps=100,
                    label_smoothing=0.0,
                    weights={SEMANTIC: 0.01, LANGUAGE: 0.1},
                    free_nats={SEMANTIC: 0.0, LANGUAGE: 0.0},
                ),
                "margin": Margin(margin=0.6, weight=200.0),
                "composition": Composition(),
                "altered": AlteredMargin(),
                "distillation": Distillation(weight=0.0),
                "style": StyleContrast(weight=0.0),
            }
        ),
        data=small.data,
        train=replace(small.train, epochs=10.0),
    )
