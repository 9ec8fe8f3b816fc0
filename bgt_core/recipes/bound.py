"""`bgt-bound`: a BGT that keeps word order in its semantic latent, and learns to combine latents of two sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Outputs, Prediction, Readout, Styled, Tokens
from bgt_core.data.properties import signature
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_least
from bgt_core.models.bgt import BGT, cosine_to_targets
from bgt_core.nets import bound
from bgt_core.nets.bound import BoundPooling, ClosingMarks, MemoryReader, RolePooling, TaggedDecoder, WithoutLanguage
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import Encoder, GaussianHead, SharedVarianceHead, SIFPooling
from bgt_core.nets.layers import EncoderLayer, Transformer, make_embedding
from bgt_core.nets.output import LanguageOutput, OutputLayer, TiedOutput


@dataclass(frozen=True, kw_only=True)
class BoundConfig:
    """A BGT whose semantic latent has three parts: an average of token vectors, a part for word order, and roles.

    In the second part, states are bound to positions (`nets.bound`). Roles encode who does what to whom. All nets share
    token embeddings. Decoders attend to vectors that are computed from the latents.
    """

    d_model: int = 256
    average_dim: int = 384  # units of the average of token vectors
    train_rarity: bool = False  # learn each token's weight in the average; needs `--teacher`
    average_from: str = ""  # an encoder that embeds each token's text; its vectors initialise the token vectors
    bound_dim: int = 384  # units of the part that encodes word order; an even number
    bound_share: float = 0.03  # weight of word order in the cosine of two latents; a larger weight lowers STS scores
    roles_dim: int = 256  # units of the part that encodes who does what to whom; a multiple of 16
    roles_share: float = 0.2  # weight of the part for roles in the cosine of two semantic latents
    composed_layers: int = 3  # number of layers of the Transformer for the part that encodes word order
    roles_layers: int = 2  # Number of layers of the Transformer for roles.
    # Decoders attend to the word-order vectors of this many positions. Later vectors are only added to decoder inputs.
    memory_slots: int = 24
    tag_dim: int = 0  # units of the trained vector of each language, if languages share nets; 0: no sharing
    language_dim: int = 64
    language_layers: int = 1
    decoder_layers: int = 2
    ffn_dim: int = 512
    heads: int = 4
    dropout: float = 0.0
    word_dropout: float = 0.2
    # Share of sentences that are generated from their own semantic latent; the others, from a translation's latent.
    own_share: float = 0.5
    borrowed_share: float = 0.5  # share of sentences that get another sentence's language latent
    exchanged_marks: float = 0.5  # Share of sentences that get another sentence's closing mark.
    # Initial log variances of the posteriors; the noise of a wide semantic posterior hides words of long sentences
    semantic_log_variance: float = -6.0
    language_log_variance: float = -3.0
    teacher_dim: int = 0  # dimension of the teacher's vectors (`--teacher`): average_dim, or 0 without a teacher
    train_decoders: bool = True  # if false, only the semantic encoder learns; train the rest later (--init-from)

    def __post_init__(self) -> None:
        if self.teacher_dim not in (0, self.average_dim):
            raise UsageError(f"teacher_dim {self.teacher_dim}: must equal average_dim ({self.average_dim})")
        check_least(1, roles_layers=self.roles_layers, memory_slots=self.memory_slots)
        for name in ("own_share", "borrowed_share", "exchanged_marks"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} {getattr(self, name)} must be a share of the rows, from 0 to 1")

    @property
    def semantic_dim(self) -> int:
        return self.average_dim + self.bound_dim + self.roles_dim

    @property
    def composed(self) -> tuple[slice, ...]:
        """The units of the semantic latent that encode word order, and those that encode roles, as two slices."""
        roles = self.average_dim + self.bound_dim
        return slice(self.average_dim, roles), slice(roles, self.semantic_dim)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> RecombiningBGT:
        langs, semantic, language = dict.fromkeys(columns.values()), self.semantic_dim, self.language_dim
        table = make_embedding(tokenizer.vocab_size, self.d_model)
        marks = ClosingMarks(torch.from_numpy(tokenizer.closing_marks()))

        def body(layers: int) -> Transformer:
            return Transformer(table, layers, self.ffn_dim, self.heads, self.dropout)

        probabilities = torch.from_numpy(tokenizer.probabilities())
        average = SIFPooling(probabilities, self.average_dim, trained=self.train_rarity)
        layer = partial(EncoderLayer, self.d_model, self.ffn_dim, self.heads, self.dropout)
        roles = RolePooling([layer() for _ in range(self.roles_layers)], self.average_dim, self.roles_dim)
        shares = {"bound_share": self.bound_share, "roles_share": self.roles_share}
        parts = BoundPooling(average, body(self.composed_layers), roles, self.bound_dim, **shares)
        widths = self.average_dim, self.bound_dim, self.roles_dim
        # Differences between languages are removed twice. The first removal keeps the length of each part, and so moves
        # the languages' means a little apart again. The second removal corrects that.
        nearly = WithoutLanguage(bound.WithoutClosingMarks(parts, marks), list(langs), widths)
        reader = WithoutLanguage(nearly, list(langs))
        shared = body(self.language_layers) if self.tag_dim else None

        def encoder() -> Encoder:
            own = shared or body(self.language_layers)
            return Encoder(own, GaussianHead(self.d_model, language, self.language_log_variance))

        def decoder(layer: OutputLayer, latent: int) -> TransformerDecoder:
            sized = partial(TransformerDecoder, layers=self.decoder_layers, ffn_dim=self.ffn_dim, heads=self.heads)
            memory = MemoryReader(language + self.average_dim, self.bound_dim, self.d_model, self.memory_slots)
            return sized(table, layer, latent, dropout=self.dropout, word_dropout=self.word_dropout, memory=memory)

        latent = language + semantic
        if self.tag_dim:
            tied = TiedOutput(table, latent + self.tag_dim)
            one = decoder(tied, latent + self.tag_dim)
            decoders: dict[str, nn.Module] = {
                lang: TaggedDecoder(one, LanguageOutput(tied, lang), self.tag_dim) for lang in langs
            }
        else:
            decoders = {lang: decoder(LanguageOutput(TiedOutput(table, latent), lang), latent) for lang in langs}
        encoders = {
            SEMANTIC: Encoder(reader, SharedVarianceHead(semantic, self.semantic_log_variance)),
            **{lang: encoder() for lang in langs},
        }
        return RecombiningBGT(self, encoders, decoders, marks, partial(number_styles, tokenizer))


def number_styles(tokenizer: Tokenizer, sides: Mapping[str, Tokens]) -> dict[str, Tensor]:
    """Return style ids, (B,) int64 per column; sentences of the same style (equal `signature`) have the same id."""
    numbers: dict[tuple[str | bool, ...], int] = {}
    drawn: dict[str, Tensor] = {}
    for column, side in sides.items():
        if side.ids.is_meta:  # on the meta device, tensors have no values
            drawn[column] = side.ids[:, 0]
            continue
        keys = [(side.lang, *signature(text, side.lang)) for text in tokenizer.decode(side.ids.tolist())]
        styles = [numbers.setdefault(key, len(numbers)) for key in keys]
        drawn[column] = torch.tensor(styles, device=side.ids.device)
    return drawn


class RecombiningBGT(BGT):
    """A BGT that generates each sentence from latents of different sentences.

    In training, three random choices are made for each row:

    - A share `exchanged_marks` of the sentences get the closing mark of another sentence, so that only the language
      latent encodes the mark.
    - A share `own_share` of the sentences are generated from their own semantic latent. The others are generated from
      the semantic latent of a translation, which does not encode the wording. Only these other sentences give the
      language latent a gradient.
    - A share `borrowed_share` of the sentences are generated with the language latent of another sentence in the same
      style, so that decoders use only the style in this latent, and no content.

    The model has no translators. In evaluation its decoders predict each sentence twice, both times with its own
    language latent: `reconstruct` uses its own semantic latent, and `translate` uses a translation's semantic latent.

    `marks` finds the tokens that are closing marks. `styles` returns a style id for each sentence, as `number_styles`
    does.
    """

    def __init__(
        self,
        config: BoundConfig,
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        marks: ClosingMarks,
        styles: Callable[[Mapping[str, Tokens]], dict[str, Tensor]],
    ):
        super().__init__(encoders, decoders, {}, train_decoders=config.train_decoders)
        self.config, self.marks, self.styles = config, marks, styles

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout, config, sides = readout or self.readout, self.config, batch.sides
        if self.training and config.exchanged_marks:
            sides = {column: self.marks.exchange(side, config.exchanged_marks) for column, side in sides.items()}
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in sides.items()}
        altered = {column: self.encoders[SEMANTIC](side) for column, side in batch.altered.items()}
        shared = {SEMANTIC: {SEMANTIC: semantic[batch.anchor]}}
        agreement = {}
        if batch.targets is not None:  # (B, D): the teacher model's vectors
            means = {column: posterior.mean[:, : config.average_dim] for column, posterior in semantic.items()}
            agreement = {column: cosine_to_targets(average, batch.targets) for column, average in means.items()}
        encoded = Outputs(semantic, shared, agreement=agreement, altered=altered, composed=config.composed)
        if not self.train_decoders:
            return encoded
        language = {column: self.encoders[side.lang](side) for column, side in sides.items()}
        drawn = {column: readout(posterior) for column, posterior in semantic.items()}  # (B, L) per column
        numbers = self.styles(sides) if self.training else {}
        predictions: list[Prediction] = []
        for column, side in sides.items():
            decoder, source = self.decoders[side.lang], batch.source(column)
            style = readout(language[column])
            if self.training:
                own = torch.rand(len(batch), 1, device=style.device) < config.own_share
                style = self.borrowed(torch.where(own, style.detach(), style), numbers[column])
                latent = self.join({LANGUAGE: style, SEMANTIC: torch.where(own, drawn[column], drawn[source])})
                predictions.append(decoder("recombine", column, latent, side))
                continue
            latent = self.join({LANGUAGE: style, SEMANTIC: drawn[column]})
            predictions.append(decoder("reconstruct", column, latent, side))
            if source != column:
                latent = self.join({LANGUAGE: style, SEMANTIC: drawn[source]})
                predictions.append(decoder("translate", column, latent, side))
        if not self.training:  # in evaluation, each column's own semantic latent needs a KL term
            shared = {SEMANTIC: {f"{SEMANTIC}/{column}": posterior for column, posterior in semantic.items()}}
        styles = {}
        for lang in dict.fromkeys(sides[column].lang for column in numbers):
            of = [column for column in numbers if sides[column].lang == lang]
            latents = torch.cat([language[column].mean for column in of])
            styles[lang] = Styled(latents, torch.cat([numbers[column] for column in of]))
        posteriors = {**shared, LANGUAGE: language}
        return replace(encoded, posteriors=posteriors, predictions=predictions, styles=styles)

    def borrowed(self, style: Tensor, number: Tensor) -> Tensor:
        """Replace a random share of the language latents (B, L) by latents of other sentences in the same style. A
        sentence that is alone in its style keeps its own latent."""
        takes = torch.rand(len(style), device=style.device) < self.config.borrowed_share
        if style.is_meta or not takes.any():  # on the meta device, tensors have no values
            return style
        lends = (number[:, None] == number).float().fill_diagonal_(0)  # (B, B)
        lends[:, 0] += lends.sum(1) == 0  # multinomial fails if all weights are 0; this draw is discarded below
        other = torch.multinomial(lends, 1).squeeze(1)
        takes &= number == number[other]
        return torch.where(takes[:, None], style[other], style)
