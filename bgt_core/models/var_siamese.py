"""The variational siamese network (Deudon 2018): posteriors of sentences are first trained to generate the sentence and
its paraphrase, and then to tell whether two sentences mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout, Tokens
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel, WritingModel
from bgt_core.nets.layers import Dropout
from bgt_core.nets.operations import exact
from bgt_core.nets.output import LabelPrediction, Perceptron
from bgt_core.posterior import Gaussian, readout_named
from bgt_core.posterior.distances import features

DUPLICATE = 1  # the label of two sentences that mean the same


class ParaphraseVAE(WritingModel):
    """Repeat each sentence from a draw of its posterior, and with `reformulate` also generate its paraphrase.

    The columns of a row are paraphrases if its label is 1, or if rows have no labels. Each is generated from its
    `Batch.source`. `decoders` holds p(sentence | z) under each language; a readout given with a batch overrides
    `readout`, "sample" or "mean".
    """

    def __init__(
        self,
        langs: Sequence[str],
        encoder: nn.Module,
        decoders: Mapping[str, nn.Module],
        reformulate: bool,
        readout: str = "sample",
    ):
        super().__init__(langs, {SEMANTIC: encoder})
        self.decoders = nn.ModuleDict(decoders)
        self.reformulate = reformulate
        self.readout = readout_named(readout)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        z = {column: readout(posterior) for column, posterior in semantic.items()}  # (B, L), one draw per sentence
        predictions: list[Prediction] = [
            self.decoders[side.lang]("reconstruct", column, z[column], side) for column, side in batch.sides.items()
        ]
        if self.reformulate:
            predictions += self.reformulations(batch, z)
        pays = {SEMANTIC: {f"{SEMANTIC}/{column}": posterior for column, posterior in semantic.items()}}
        return Outputs(semantic, pays, predictions)

    def reformulations(self, batch: Batch, z: Mapping[str, Tensor]) -> list[Prediction]:
        """Predict each column of the rows that are paraphrases, from the latents (B, L) of its source."""
        rows = paraphrases(batch.labels)
        if rows is not None and not len(rows):
            return []
        predictions = []
        for column, side in batch.sides.items():
            if (source := batch.source(column)) == column:  # a corpus with one column
                continue
            latent = z[source]
            if rows is not None:
                latent, side = latent[rows], Tokens.of(side.ids[rows], side.mask[rows], side.lang)
            predictions.append(self.decoders[side.lang]("paraphrase", column, latent, side))
        return predictions

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """The input of a decoder: the semantic latent, (B, L)."""
        return latents[SEMANTIC]


def paraphrases(labels: Tensor | None) -> Tensor | None:
    """The rows with label 1, of labels (B,): int64; None if all rows count, without labels or on the meta device."""
    if labels is None or labels.is_meta:  # on the meta device only shapes are needed
        return None
    return (labels == DUPLICATE).nonzero().squeeze(1)


class VarSiamese(LatentModel):
    """Tell whether the first two columns of a batch mean the same (class 1) from their semantic posteriors.

    A perceptron with one hidden layer gets the terms of `measures` (`posterior.distances.FEATURES`) between the two,
    which are symmetric. The encoders are those of `base` and keep its parameter names, so that its checkpoint fits; the
    decoders of `base` are dropped.
    """

    def __init__(self, base: LatentModel, width: int, measures: Sequence[str], hidden: int, dropout: float):
        super().__init__(base.langs, dict(base.encoders.items()))
        self.measures = tuple(measures)
        self.perceptron = Perceptron(len(self.measures) * width, hidden, 1)
        self.dropout = Dropout(dropout)
        self.classifier = Linear(hidden, 2)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if batch.labels is None or len(batch.sides) < 2:
            raise UsageError("var-siamese needs two columns and labels: columns gold:label, a:en, b:en")
        semantic = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        left, right = [gaussian(posterior) for posterior in semantic.values()][:2]
        return Outputs(semantic, {}, [LabelPrediction(self.logits(left, right), batch.labels)])

    def logits(self, left: Gaussian, right: Gaussian) -> Tensor:
        """Semantic posteriors of B pairs of sentences, (B, L) each -> scores of "different" and "same", (B, 2)."""
        read = features(self.measures, left, right)  # (B, K L)
        return self.classifier(self.dropout(self.perceptron(self.dropout(read))))

    @torch.no_grad()
    def duplicate_probability(self, left: Gaussian, right: Gaussian) -> Tensor:
        """The probability that sentences mean the same, from their semantic posteriors, (B, L) each: (B,) float64."""
        return self.logits(left, right).double().softmax(-1)[:, DUPLICATE]


def gaussian(posterior: Posterior) -> Gaussian:
    """The posterior in single precision or better; UsageError if it is not Gaussian."""
    if not isinstance(posterior, Gaussian):
        raise UsageError(
            "var-siamese compares Gaussian posteriors, and the model underneath has others; give another base"
        )
    return Gaussian(exact(posterior.mean), exact(posterior.log_variance))
