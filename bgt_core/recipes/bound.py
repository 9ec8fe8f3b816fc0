"""A BGT with word order in its semantic latent, trained for recombination."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout, Styled, Tokens
from bgt_core.data.properties import signature
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_least
from bgt_core.models.bgt import BGT
from bgt_core.models.latent import cosine_to_targets
from bgt_core.nets.bound import (
    BoundPooling,
    ClosingMarks,
    MemoryReader,
    RolePooling,
    TaggedDecoder,
    WithoutClosingMarks,
    WithoutLanguage,
)
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import Encoder, GaussianHead, SharedVarianceHead, SIFPooling
from bgt_core.nets.layers import EncoderLayer, Transformer, make_embedding
from bgt_core.nets.output import LanguageOutput, OutputLayer, TiedOutput


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
        # Twice: the first keeps each part's length, which moves the languages' means apart again, a little.
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
            styles=partial(number_styles, tokenizer),
            own_share=self.own_share,
            borrowed_share=self.borrowed_share,
            exchanged_marks=self.exchanged_marks,
            train_decoders=self.train_decoders,
        )


def number_styles(tokenizer: Tokenizer, sides: Mapping[str, Tokens]) -> dict[str, Tensor]:
    """Number the styles of the sentences of a batch, (B,) int64 for each column: those of one signature have one."""
    numbers: dict[tuple[str | bool, ...], int] = {}

    def number(side: Tokens) -> Tensor:
        if side.ids.is_meta:  # on the meta device only shapes are needed
            return side.ids[:, 0]
        texts = tokenizer.decode(side.ids.tolist())
        drawn = [numbers.setdefault((side.lang, *signature(text, side.lang)), len(numbers)) for text in texts]
        return torch.tensor(drawn, device=side.ids.device)

    return {column: number(side) for column, side in sides.items()}


class RecombiningBGT(BGT):
    """A BGT that generates each sentence from latents of different sentences.

    In training, three inputs vary from row to row. In `exchanged_marks` of the rows the sentence has the closing
    mark of another sentence, so only the language latent holds it. In `own_share` of the rows the semantic latent is
    the sentence's own; in all others it is a translation's, which does not contain the wording. In `borrowed_share` of
    the rows the language latent is that of another sentence of the same style (`data.properties.signature`), so that
    decoders take style from it, and no content.

    In rows with the sentence's own semantic latent, its language latent gets no gradient. The model has no
    translators. In evaluation its decoders predict each sentence twice: `reconstruct` from its own semantic latent, and
    `translate` from a translation's, both with its own language latent.

    Args:
        encoders, decoders, train_decoders: As `BGT`.
        composed: The units of the semantic latent that a network composes, after those that are an average.
        marks: The tokens that are closing marks.
        styles: The number of each sentence's style, (B,) int64 for each column: sentences of one number may lend to
            each other.
        own_share, borrowed_share, exchanged_marks: Shares of the rows, from 0 to 1.

    Raises:
        UsageError: A share is below 0 or above 1.
    """

    def __init__(
        self,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        composed: Sequence[slice],
        marks: ClosingMarks,
        styles: Callable[[Mapping[str, Tokens]], dict[str, Tensor]],
        own_share: float,
        borrowed_share: float,
        exchanged_marks: float,
        train_decoders: bool = True,
    ):
        super().__init__(encoders, decoders, {}, train_decoders=train_decoders)
        for name, share in (
            ("own_share", own_share),
            ("borrowed_share", borrowed_share),
            ("exchanged_marks", exchanged_marks),
        ):
            if not 0 <= share <= 1:
                raise UsageError(f"{name} {share} is a share of the rows, from 0 to 1")
        self.composed, self.marks, self.styles = composed, marks, styles
        self.own_share, self.borrowed_share, self.exchanged_marks = own_share, borrowed_share, exchanged_marks

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        sides = batch.sides
        if self.training and self.exchanged_marks:
            sides = {column: self.marks.exchange(side, self.exchanged_marks) for column, side in sides.items()}
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in sides.items()}
        altered = {column: self.encoders[SEMANTIC](side) for column, side in batch.altered.items()}
        shared = {SEMANTIC: {SEMANTIC: semantic[batch.anchor]}}
        agreement = self.agreement(semantic, batch.targets)
        encoded = Outputs(semantic, shared, agreement=agreement, altered=altered, composed=self.composed)
        if not self.train_decoders:
            return encoded
        language = {column: self.encoders[side.lang](side) for column, side in sides.items()}
        drawn = {column: readout(posterior) for column, posterior in semantic.items()}  # (B, L) each
        numbers = self.styles(sides) if self.training else {}
        predictions: list[Prediction] = []
        for column, side in sides.items():
            decoder, source = self.decoders[side.lang], batch.source(column)
            style = readout(language[column])
            if self.training:
                own = torch.rand(len(batch), 1, device=style.device) < self.own_share
                style = self.borrowed(torch.where(own, style.detach(), style), numbers[column])
                latent = self.join({LANGUAGE: style, SEMANTIC: torch.where(own, drawn[column], drawn[source])})
                predictions.append(decoder("recombine", column, latent, side))
                continue
            latent = self.join({LANGUAGE: style, SEMANTIC: drawn[column]})
            predictions.append(decoder("reconstruct", column, latent, side))
            if source != column:
                latent = self.join({LANGUAGE: style, SEMANTIC: drawn[source]})
                predictions.append(decoder("translate", column, latent, side))
        if not self.training:  # each column was reconstructed from its own semantic latent
            shared = {SEMANTIC: {f"{SEMANTIC}/{column}": posterior for column, posterior in semantic.items()}}
        return replace(
            encoded,
            posteriors={**shared, LANGUAGE: language},
            predictions=predictions,
            styles=styled(sides, language, numbers),
        )

    def agreement(self, semantic: Mapping[str, Posterior], targets: Tensor | None) -> dict[str, Tensor]:
        """Return the cosine of each column's average and the teacher's vectors (B, D), as (B,); empty for a batch
        without targets."""
        if targets is None:
            return {}
        average = slice(self.composed[0].start)
        return {
            column: cosine_to_targets(posterior.mean[:, average], targets) for column, posterior in semantic.items()
        }

    def borrowed(self, style: Tensor, number: Tensor) -> Tensor:
        """Exchange about `borrowed_share` of the language latents (B, L) for those of other sentences of the same
        style. A sentence that is alone in its style keeps its own."""
        takes = torch.rand(len(style), device=style.device) < self.borrowed_share
        if style.is_meta or not takes.any():  # on the meta device only shapes are needed
            return style
        lends = (number[:, None] == number).float().fill_diagonal_(0)  # (B, B)
        lends[:, 0] += lends.sum(1) == 0  # a row for multinomial to draw from; not taken
        other = torch.multinomial(lends, 1).squeeze(1)
        takes &= number == number[other]
        return torch.where(takes[:, None], style[other], style)


def styled(
    sides: Mapping[str, Tokens], language: Mapping[str, Posterior], numbers: Mapping[str, Tensor]
) -> dict[str, Styled]:
    """Collect the language latents of each language, from all columns whose styles are numbered."""
    columns: dict[str, list[str]] = {}
    for column in numbers:
        columns.setdefault(sides[column].lang, []).append(column)
    return {
        lang: Styled(torch.cat([language[name].mean for name in of]), torch.cat([numbers[name] for name in of]))
        for lang, of in columns.items()
    }
