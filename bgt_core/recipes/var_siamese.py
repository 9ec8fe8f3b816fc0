"""The variational siamese network of Deudon (2018), and another classifier of sentence pairs.

The network is trained in two stages. First it learns to repeat and to reformulate questions, then to compare them.

    bgt train var-siamese-reformulate --data quora.tsv --out runs/vae             # columns gold:label, a:en, b:en
    bgt train var-siamese --init-from runs/vae --data quora.tsv --out runs/siamese
    bgt evaluate pairs test.tsv --model runs/siamese --dev dev.tsv --train quora.tsv

| first stage | published: accuracy on Quora's dev / test, and area under the ROC curve on test for the score -W2 |
|---|---|
| var-siamese-repeat | 88.18 / 88.24, 86.74 |
| var-siamese-reformulate | 89.05 / 88.86, 86.27 |
| var-siamese without `--init-from` | 62.16 / 62.48, the share of pairs that are not duplicates |

In the first stage, rows with label 1 are paraphrases; in a file without labels, all rows are paraphrases. In the second
stage, a classifier compares two posteriors by `model.features`: one or more of w2, mahalanobis, jensen-shannon,
euclidean, cosine and hadamard (see `posterior.distances`). `freeze=["encoders"]` leaves the posteriors of the first
stage unchanged.

Sizes, learning rates and the annealing of the KL, sigmoid(0.002 (step - 2500)), are as in the paper.

docs/differences.md lists the differences from the paper. We have not trained the network at the paper's size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bgt_core.backend import Linear
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Posterior, Prediction, Readout, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_least
from bgt_core.models.bgt import LatentModel, WritingModel
from bgt_core.nets.encoders import Encoder, GaussianHead
from bgt_core.nets.layers import Dropout, make_embedding
from bgt_core.nets.lstm import FinalStates, FirstCellDecoder
from bgt_core.nets.operations import exact
from bgt_core.nets.output import LabelPrediction, Perceptron, PlainOutput
from bgt_core.posterior import Gaussian, readout_named, sample
from bgt_core.posterior.distances import FEATURES, features, terms_named
from bgt_core.recipes import ModelConfig


@dataclass(frozen=True, kw_only=True)
class ParaphraseVAEConfig:
    """A VAE with a BiLSTM encoder and an LSTM decoder as wide as the latent, which share token embeddings."""

    reformulate: bool = True  # also generate each sentence from its paraphrase
    d_model: int = 300  # width of token vectors
    hidden_dim: int = 1_000  # width of the encoder's states in each direction
    semantic_dim: int = 1_000  # width of the latent, and of the decoder's states
    dropout: float = 0.0  # dropout of token vectors and of the decoder's states
    word_dropout: float = 0.4  # share of the previous tokens that are hidden from the decoder
    readout: str = "sample"
    log_variance: float = 0.0  # initial log variance of posteriors

    def __post_init__(self) -> None:
        check_least(1, hidden_dim=self.hidden_dim, semantic_dim=self.semantic_dim)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> ParaphraseVAE:
        if self.reformulate and len(columns) < 2:
            raise UsageError(
                f"{', '.join(columns)}: var-siamese-reformulate needs two columns; add one, or use var-siamese-repeat",
                parameter="columns",
            )
        vocab_size, width, langs = tokenizer.vocab_size, self.semantic_dim, tuple(dict.fromkeys(columns.values()))
        table = make_embedding(vocab_size, self.d_model)
        head = GaussianHead(2 * self.hidden_dim, width, self.log_variance, bias=True)
        encoder = Encoder(FinalStates(table, self.hidden_dim, self.dropout), head)

        def decoder() -> FirstCellDecoder:
            layer = PlainOutput.untied(vocab_size, width)
            return FirstCellDecoder(table, layer, width, self.dropout, self.word_dropout)

        readout = readout_named(self.readout)
        return ParaphraseVAE(langs, encoder, {lang: decoder() for lang in langs}, self.reformulate, readout)


@dataclass(frozen=True, kw_only=True)
class SecondStageConfig:
    """A classifier of sentence pairs, which uses the encoders that a first training stage has trained."""

    base: ModelConfig  # the model of the first training stage

    @property
    def semantic_dim(self) -> int:
        return self.base.semantic_dim


@dataclass(frozen=True, kw_only=True)
class VarSiameseConfig(SecondStageConfig):
    """A classifier of sentence pairs: a perceptron with one hidden layer; its input compares the two posteriors."""

    features: tuple[str, ...] = ("w2", "hadamard")
    hidden_dim: int = 1_000  # width of the perceptron's hidden layer
    dropout: float = 0.0  # dropout of the perceptron's input and of its hidden units

    def __post_init__(self) -> None:
        if not self.features:
            raise UsageError(f"features: choose one or more of {', '.join(FEATURES)}")
        for name in self.features:
            terms_named(name, FEATURES)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> VarSiamese:
        base = self.base.make_model(tokenizer, columns)
        return VarSiamese(base, self.semantic_dim, self.features, self.hidden_dim, self.dropout)


@dataclass(frozen=True, kw_only=True)
class PairClassifierConfig(SecondStageConfig):
    """A linear classifier of sentence pairs. Its input consists of the semantic means of both sentences."""

    classes: int = 3

    def __post_init__(self) -> None:
        check_least(2, classes=self.classes)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> PairClassifier:
        return PairClassifier(self.base.make_model(tokenizer, columns), self.semantic_dim, self.classes)


DUPLICATE = 1  # the label of two sentences with the same meaning


class ParaphraseVAE(WritingModel):
    """A VAE that reconstructs each sentence from a sample of its posterior. If `reformulate` is true, it also generates
    the sentence's paraphrase from this sample.

    The sentences of a row are paraphrases if the row's label is 1, or if rows have no labels. A paraphrase is generated
    from the latent of the column `Batch.source`. `decoders` has p(sentence | z) for each language.
    """

    def __init__(
        self,
        langs: Sequence[str],
        encoder: nn.Module,
        decoders: Mapping[str, nn.Module],
        reformulate: bool,
        readout: Readout = sample,
    ):
        super().__init__(langs, {SEMANTIC: encoder})
        self.decoders = nn.ModuleDict(decoders)
        self.reformulate, self.readout = reformulate, readout

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        z = {column: readout(posterior) for column, posterior in semantic.items()}  # (B, L), one draw per sentence
        predictions: list[Prediction] = [
            self.decoders[side.lang]("reconstruct", column, z[column], side) for column, side in batch.sides.items()
        ]
        if self.reformulate:
            predictions += self.reformulations(batch, z)
        posteriors = {SEMANTIC: {f"{SEMANTIC}/{column}": posterior for column, posterior in semantic.items()}}
        return Outputs(semantic, posteriors, predictions)

    def reformulations(self, batch: Batch, z: Mapping[str, Tensor]) -> list[Prediction]:
        """Predict each sentence from the latent of its paraphrase in another column; `z`: column -> latents (B, L)."""
        rows, predictions = None, []  # None means all rows; labels on the meta device have no values
        if batch.labels is not None and not batch.labels.is_meta:
            rows = (batch.labels == DUPLICATE).nonzero().squeeze(1)
            if not len(rows):
                return []
        for column, side in batch.sides.items():
            if (source := batch.source(column)) == column:  # true if the corpus has only one column
                continue
            latent = z[source]
            if rows is not None:
                latent, side = latent[rows], Tokens.of(side.ids[rows], side.mask[rows], side.lang)
            predictions.append(self.decoders[side.lang]("paraphrase", column, latent, side))
        return predictions

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Return the input of a decoder: the semantic latent, (B, L)."""
        return latents[SEMANTIC]


class SecondStage(LatentModel):
    """A classifier of sentence pairs, which predicts labels from the semantic posteriors of both sentences.

    The encoders are taken from `base`. They keep their parameter names, so that a checkpoint of `base` can be loaded.
    The decoders of `base` are dropped.
    """

    def __init__(self, base: LatentModel):
        super().__init__(base.langs, dict(base.encoders.items()))

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if batch.labels is None or len(batch.sides) < 2:
            raise UsageError("a classifier of pairs needs two columns and labels, as in columns a:en, b:en, gold:label")
        semantic = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        left, right = [*semantic.values()][:2]
        return Outputs(semantic, {}, [LabelPrediction(self.logits(left, right), batch.labels)])

    def logits(self, left: Posterior, right: Posterior) -> Tensor:
        """Return scores (B, K) for K classes, given the semantic posteriors of the left and right sentences, (B, L)."""
        raise NotImplementedError


class PairClassifier(SecondStage):
    """Classify two means u and v by a linear map of [u ; v ; |u - v| ; u * v] (Conneau et al. 2017, sec. 3.1)."""

    def __init__(self, base: LatentModel, width: int, classes: int):
        super().__init__(base)
        self.classifier = nn.Linear(4 * width, classes)

    def logits(self, left: Posterior, right: Posterior) -> Tensor:
        u, v = left.mean, right.mean
        return self.classifier(torch.cat([u, v, (u - v).abs(), u * v], dim=-1))


class VarSiamese(SecondStage):
    """Classify whether two sentences have the same meaning (class 1).

    A perceptron with one hidden layer gets the terms of `measures`, which compare the two posteriors. All measures are
    symmetric (`posterior.distances.FEATURES`).
    """

    def __init__(self, base: LatentModel, width: int, measures: Sequence[str], hidden: int, dropout: float):
        super().__init__(base)
        self.measures = tuple(measures)
        self.perceptron = Perceptron(len(self.measures) * width, hidden, 1)
        self.dropout = Dropout(dropout)
        self.classifier = Linear(hidden, 2)

    def logits(self, left: Posterior, right: Posterior) -> Tensor:
        measured = features(self.measures, gaussian(left), gaussian(right))  # (B, K L)
        return self.classifier(self.dropout(self.perceptron(self.dropout(measured))))

    @torch.no_grad()
    def duplicate_probability(self, left: Gaussian, right: Gaussian) -> Tensor:
        """Return the probability that the sentences of each pair mean the same, (B,) float64. Posteriors are (B, L)."""
        return self.logits(left, right).double().softmax(-1)[:, DUPLICATE]


def gaussian(posterior: Posterior) -> Gaussian:
    """Return a posterior in at least single precision; UsageError if it is not Gaussian."""
    if not isinstance(posterior, Gaussian):
        raise UsageError(
            "var-siamese compares Gaussian posteriors, but the base model has other posteriors; choose another base"
        )
    return Gaussian(exact(posterior.mean), exact(posterior.log_variance))
