"""A second stage: a classifier of sentence pairs on a trained model.

Trained from a checkpoint:

    bgt train pair-classifier --init-from runs/bgt --columns a:en,b:en,gold:label --data entailment.tsv --out runs/nli
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.classifier import PairClassifier
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.recipes.bgt import BGTSmallConfig
from bgt_core.recipes.recipe import DataConfig, ModelConfig, Recipe
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class PairClassifierConfig:
    """The model underneath, and how many classes there are."""

    base: ModelConfig = field(default_factory=BGTSmallConfig)
    classes: int = 3

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise UsageError(f"classes {self.classes} must be at least 2")

    @property
    def semantic_dim(self) -> int:
        """That of the model underneath."""
        return self.base.semantic_dim

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> PairClassifier:
        """An untrained model for the columns' languages."""
        base = self.base.build(tokenizer, columns)
        return PairClassifier(base, self.semantic_dim, self.classes)


def pair_classifier() -> Recipe:
    """A linear classifier on semantic means that stay as `init_from` left them; `freeze=[]` trains them too.

    The model underneath is that of the checkpoint of `init_from`.
    """
    return Recipe(
        name="pair-classifier",
        base="bgt-small",
        model=PairClassifierConfig(),
        objective=Sum(elbo=Elbo(warmup_steps=0, label_smoothing=0.0)),
        data=DataConfig(columns=("a:en", "b:en", "gold:label"), min_pieces=1, valid_pairs=500),
        train=TrainConfig(epochs=5.0, batch_tokens=5_000, learning_rate=1e-3, warmup_steps=0, weight_decay=0.0),
        freeze=("encoders",),
    )
