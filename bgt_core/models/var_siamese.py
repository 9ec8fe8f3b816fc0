"""The variational siamese network (Deudon 2018): a sentence's posterior, learnt by writing it and its paraphrase, and
then by telling from two posteriors whether they mean the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout, Tokens
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel, WritingModel
from bgt_core.nets.dropout import Dropout
from bgt_core.nets.forms import exact
from bgt_core.nets.mlp_output import Perceptron
from bgt_core.nets.prediction import LabelPrediction
from bgt_core.posterior import Gaussian, readout_named
from bgt_core.posterior.distances import features

DUPLICATE = 1  # the label of two sentences that mean the same


class ParaphraseVAE(WritingModel):
    """Repeats each sentence from a draw of its posterior, and with `reformulate` writes its paraphrase from it too.

    A row's columns are paraphrases of each other where its label is 1, or where rows have no labels. Each is written
    from `Batch.source` of it. `decoders` holds p(sentence | z) under each language; a readout given with a batch takes
    the place of `readout`, "sample" or "mean".
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
        meaning = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        z = {column: readout(posterior) for column, posterior in meaning.items()}  # (B, L), one draw a sentence
        predictions: list[Prediction] = [
            self.decoders[side.lang]("reconstruct", column, z[column], side) for column, side in batch.sides.items()
        ]
        if self.reformulate:
            predictions += self.reformulations(batch, z)
        pays = {SEMANTIC: {f"{SEMANTIC}/{column}": posterior for column, posterior in meaning.items()}}
        return Outputs(meaning, pays, predictions)

    def reformulations(self, batch: Batch, z: Mapping[str, Tensor]) -> list[Prediction]:
        """What is said of each column of the rows that are paraphrases, from the latents (B, L) of its source."""
        rows = paraphrases(batch.labels)
        if rows is not None and not len(rows):
            return []
        predictions = []
        for column, side in batch.sides.items():
            if (source := batch.source(column)) == column:  # of a corpus with one column
                continue
            latent = z[source]
            if rows is not None:
                latent, side = latent[rows], Tokens.of(side.ids[rows], side.mask[rows], side.lang)
            predictions.append(self.decoders[side.lang]("paraphrase", column, latent, side))
        return predictions

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """What a decoder reads: the semantic latent, (B, L)."""
        return latents[SEMANTIC]


def paraphrases(labels: Tensor | None) -> Tensor | None:
    """The rows with label 1, of labels (B,): int64; None where all rows count: there are no labels, or no values."""
    if labels is None or labels.is_meta:  # of a model without values only shapes are asked
        return None
    return (labels == DUPLICATE).nonzero().squeeze(1)


class VarSiamese(LatentModel):
    """Says whether the first two columns of a batch mean the same (class 1) from their semantic posteriors.

    A perceptron with one hidden layer reads the terms of `measures` (`posterior.distances.FEATURES`) between the two;
    which sentence is first makes no difference to them. The encoders are those of `base` and keep its names for
    parameters, so that they can be taken from its checkpoint; what `base` writes with is not kept.
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
        meaning = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        left, right = [gaussian(posterior) for posterior in meaning.values()][:2]
        return Outputs(meaning, {}, [LabelPrediction(self.logits(left, right), batch.labels)])

    def logits(self, left: Gaussian, right: Gaussian) -> Tensor:
        """Semantic posteriors of two times B sentences, (B, L) -> scores of "not" and "the same", (B, 2)."""
        read = features(self.measures, left, right)  # (B, K L)
        return self.classifier(self.dropout(self.perceptron(self.dropout(read))))

    @torch.no_grad()
    def duplicate_probability(self, left: Gaussian, right: Gaussian) -> Tensor:
        """That sentences mean the same, from their semantic posteriors, (B, L) each: (B,) float64."""
        return self.logits(left, right).double().softmax(-1)[:, DUPLICATE]


def gaussian(posterior: Posterior) -> Gaussian:
    """The posterior in single precision or better; UsageError where it is of another family."""
    if not isinstance(posterior, Gaussian):
        raise UsageError(
            "var-siamese compares Gaussian posteriors, and the model underneath has others; give another base"
        )
    return Gaussian(exact(posterior.mean), exact(posterior.log_variance))
