"""A BGT whose decoders are trained on recombinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from bgt_core.contracts import LANGUAGE, SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout, Styled, Tokens
from bgt_core.errors import UsageError
from bgt_core.models.bgt import BGT
from bgt_core.models.latent import cosine_to_targets
from bgt_core.nets.bound.erasing import ClosingMarks


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
        """Cosine of each column's average with the teacher's vectors (B, D): (B,); empty for a batch without
        targets."""
        if targets is None:
            return {}
        average = slice(self.composed[0].start)
        return {
            column: cosine_to_targets(posterior.mean[:, average], targets) for column, posterior in semantic.items()
        }

    def borrowed(self, style: Tensor, number: Tensor) -> Tensor:
        """Language latents (B, L), `borrowed_share` of those that can from another sentence of the same style; a
        sentence that is alone in its style keeps its own."""
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
    """The language latents of each language, from all columns that have numbers of styles."""
    columns: dict[str, list[str]] = {}
    for column in numbers:
        columns.setdefault(sides[column].lang, []).append(column)
    return {
        lang: Styled(torch.cat([language[name].mean for name in of]), torch.cat([numbers[name] for name in of]))
        for lang, of in columns.items()
    }
