"""The definition of a recipe: everything a run needs except the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import nn

from bgt_core.data.columns import LABEL, parse_columns
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.objectives.combine import Sum
from bgt_core.recipes.settings import flatten
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The training rows, and how their text is split into tokens.

    A column is named by its language, "en", or freely, "a:en", if two columns have the same language. "gold:label" is a
    column of numbers, one for each row, for a classifier.
    """

    columns: tuple[str, ...] = ("en", "fr")
    vocab_size: int = 20_000  # of the joint SentencePiece model
    lowercase: bool = True
    character_coverage: float = 0.9995  # share of the text's characters to cover; rarer ones become UNK
    min_tokens: int = 5  # minimum tokens of every side of a row, EOS not counted (paper, sec. 4)
    max_tokens: int = 100
    valid_pairs: int = 10_000  # approximate number of held-out rows; no sentence of the first column is in both parts

    def __post_init__(self) -> None:
        if not 1 <= self.min_tokens <= self.max_tokens:
            raise UsageError(f"min_tokens {self.min_tokens} must be from 1 to max_tokens ({self.max_tokens})")
        if self.valid_pairs < 1:
            raise UsageError(f"valid_pairs {self.valid_pairs} must be at least 1: validation needs held-out rows")
        if not 0.98 <= self.character_coverage <= 1:  # the range that SentencePiece accepts
            raise UsageError(f"character_coverage {self.character_coverage} must be from 0.98 to 1")
        if self.vocab_size < 8:
            raise UsageError(f"vocab_size {self.vocab_size} is too small to hold the special tokens")
        parse_columns(self.columns)

    @property
    def langs_of(self) -> dict[str, str]:
        """The language of each column of text."""
        return {column: lang for column, lang in parse_columns(self.columns).items() if lang != LABEL}

    @property
    def langs(self) -> tuple[str, ...]:
        """The languages, each once."""
        return tuple(dict.fromkeys(self.langs_of.values()))

    @property
    def labelled(self) -> bool:
        """Whether a column holds labels."""
        return LABEL in parse_columns(self.columns).values()


class ModelConfig(Protocol):
    """The sizes of a model family, and the code that builds a model: a frozen dataclass."""

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        ...

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> LatentModel:
        """Build an untrained model for these columns, each with its language."""
        ...


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One system: its model, objective, data and length of training.

    With `init_from`, training starts from the parameters that the model shares with that checkpoint. Parameters whose
    names start with one of `freeze` ("decoders", "encoders.semantic") stay fixed. A checkpoint stores `name` and all
    settings, from which it is rebuilt.
    """

    name: str
    model: ModelConfig
    objective: Sum
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    base: str = ""  # the recipe of the model under a second stage
    init_from: str = ""
    freeze: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for lang in self.data.langs:
            if hasattr(nn.ModuleDict, lang):  # "to" is Tongan, but a name that torch reserves
                raise UsageError(f"columns: '{lang}' can't name a part of a model; choose another code")

        for part in self.objective.counting.values():
            part.check(list(self.data.langs_of), self.train.mega_batch)

    @property
    def arguments(self) -> dict[str, Any]:
        """All settings by their dotted names, from which a checkpoint rebuilds the recipe."""
        return dict(flatten(self))

    def build(self, tokenizer: Tokenizer) -> LatentModel:
        """Build an untrained model."""
        return self.model.build(tokenizer, self.data.langs_of)
