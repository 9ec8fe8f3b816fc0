"""Classifiers: of sentence pairs, a second stage on a trained model, and of references against translations.

bgt train pair-classifier --init-from runs/bgt --columns a:en,b:en,gold:label --data entailment.tsv --out runs/nli
bgt train reference-classifier --columns reference:en,translation:en --data back-translated.tsv --out runs/refs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import nn

from bgt_core.data.text import Tokenizer
from bgt_core.errors import check_choice, check_least
from bgt_core.models.classifier import PairClassifier, ReferenceClassifier
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.lstm import LastState
from bgt_core.nets.pooling import MeanPooling
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.cross_entropy import CrossEntropy
from bgt_core.posterior import Point
from bgt_core.recipes.bgt import BGTSmallConfig
from bgt_core.recipes.recipe import DataConfig, ModelConfig, Recipe
from bgt_core.training.config import TrainConfig

READERS = ("average", "lstm")


@dataclass(frozen=True, kw_only=True)
class PairClassifierConfig:
    """The model underneath, and the number of classes."""

    base: ModelConfig = field(default_factory=BGTSmallConfig)
    classes: int = 3

    def __post_init__(self) -> None:
        check_least(2, classes=self.classes)

    @property
    def semantic_dim(self) -> int:
        """The width of the model underneath."""
        return self.base.semantic_dim

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> PairClassifier:
        """An untrained model for the columns' languages."""
        base = self.base.build(tokenizer, columns)
        return PairClassifier(base, self.semantic_dim, self.classes)


def pair_classifier() -> Recipe:
    """A linear classifier on semantic means, which stay fixed as in `init_from`; `freeze=[]` trains them too.

    The model underneath is that of the checkpoint `init_from`.
    """
    return Recipe(
        name="pair-classifier",
        base="bgt-small",
        model=PairClassifierConfig(),
        objective=Sum({"cross_entropy": CrossEntropy()}),
        data=DataConfig(columns=("a:en", "b:en", "gold:label"), min_tokens=1, valid_pairs=500),
        train=TrainConfig(epochs=5.0, batch_tokens=5_000, learning_rate=1e-3, warmup_steps=0, weight_decay=0.0),
        freeze=("encoders",),
    )


@dataclass(frozen=True, kw_only=True)
class ReferenceClassifierConfig:
    """The encoder of a sentence: an average of token vectors, or the last state of an LSTM."""

    body: str = "average"
    d_model: int = 300
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice(READERS, body=self.body)
        check_least(1, d_model=self.d_model)

    @property
    def semantic_dim(self) -> int:
        """Units of the vector that is classified."""
        return self.d_model

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> ReferenceClassifier:
        """An untrained model."""
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # N(0, 1)
        body = LastState(table, self.dropout) if self.body == "lstm" else MeanPooling(table, self.dropout)
        return ReferenceClassifier(tuple(dict.fromkeys(columns.values())), Encoder(body, Point), self.d_model)


def reference_classifier() -> Recipe:
    """Classify references (the first column) and translations (the second), with the paper's rate and epochs.

    `model.body` is average or lstm. A reference with several translations, one row each, is used equally often with
    each: on average that equals the paper's random choice among them. Validation reports `accuracy/COLUMN`: the share
    of references classified as references, and of translations as translations (the paper's + and - Acc).

    The paper starts from the word vectors of paragram-sl999; `init_from` takes those of a trained `sp` or `avg` of the
    same `d_model`.
    """
    return Recipe(
        name="reference-classifier",
        model=ReferenceClassifierConfig(),
        objective=Sum({"cross_entropy": CrossEntropy()}),
        data=DataConfig(columns=("reference:en", "translation:en"), min_tokens=1, valid_pairs=5_000),
        train=TrainConfig(epochs=10.0, batch_tokens=2_500, learning_rate=1e-3, warmup_steps=0, weight_decay=0.0),
    )
