"""What a recipe is: everything a run needs but the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import nn

from bgt_core.contracts import Objective
from bgt_core.data.columns import LABEL, parse_columns
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.objectives.combine import parts_of
from bgt_core.objectives.contrast import Contrast
from bgt_core.objectives.margin import Margin
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which rows are trained on, and how their text is cut into pieces.

    A column is named as its language, "en", or freely, "a:en", where two columns hold one language. "gold:label" is a
    column of numbers, one for each row: what a classifier learns.
    """

    columns: tuple[str, ...] = ("en", "fr")
    vocab_size: int = 20_000  # of the joint SentencePiece model
    lowercase: bool = True
    character_coverage: float = 0.9995  # of the text; rarer ones become UNK
    min_pieces: int = 5  # a row is kept when every side has this many pieces, EOS not counted (paper, sec. 4)
    max_pieces: int = 100
    valid_pairs: int = 10_000  # rows held out, about; no sentence of the first column is on both sides

    def __post_init__(self) -> None:
        if not 1 <= self.min_pieces <= self.max_pieces:
            raise UsageError(f"min_pieces {self.min_pieces} must be from 1 to max_pieces ({self.max_pieces})")
        if self.valid_pairs < 1:
            raise UsageError(f"valid_pairs {self.valid_pairs} must be at least 1: validation needs held-out rows")
        if not 0.98 <= self.character_coverage <= 1:  # what SentencePiece takes
            raise UsageError(f"character_coverage {self.character_coverage} must be from 0.98 to 1")
        if self.vocab_size < 8:
            raise UsageError(f"vocab_size {self.vocab_size} is too small to hold the special pieces")
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
    """The sizes of a model family, and how a model is built of them: a frozen dataclass."""

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        ...

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> LatentModel:
        """An untrained model for these columns, each with its language."""
        ...


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One system: how its model is built, what it minimises, on which data, for how long.

    With `init_from`, training starts from the parameters of that checkpoint that the model has too. Parameters whose
    names start with one of `freeze` ("decoders", "encoders.semantic") stay as they are. A checkpoint stores `name` and
    all settings, which is how it is built again.
    """

    name: str
    model: ModelConfig
    objective: Objective
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    base: str = ""  # the recipe whose model a second stage stands on
    init_from: str = ""
    freeze: tuple[str, ...] = ()
    arguments: Mapping[str, Any] | None = None  # all settings by their dotted names; filled in by `recipes.build`

    def __post_init__(self) -> None:
        for lang in self.data.langs:
            if hasattr(nn.ModuleDict, lang):  # "to" is Tongan; torch keeps the name for itself
                raise UsageError(f"columns: '{lang}' can't name a part of a model; choose another code")

        mined_only = any(isinstance(part, Margin) and part.mined_only for part in parts_of(self.objective))
        if mined_only and not self.train.mega_batch:
            raise UsageError(
                "mega_batch 0: margin.mined_only waits for negatives that nobody searches for; set train.mega_batch, "
                "or objective.margin.mined_only=false for the hardest of each batch"
            )
        compares = any(isinstance(part, Contrast | Margin) for part in parts_of(self.objective))
        if len(self.data.langs_of) < 2 and compares:
            columns = ", ".join(self.data.langs_of)
            raise UsageError(
                f"{columns}: similarity is learnt from two; give another, or its loss a weight of 0",
                parameter="columns",
            )

    def build(self, tokenizer: Tokenizer) -> LatentModel:
        """An untrained model."""
        return self.model.build(tokenizer, self.data.langs_of)
