"""What a recipe is: everything a run needs but the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from bgt_core.contracts import Objective
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True)
class DataConfig:
    """Which pairs are trained on, and how their text is cut into pieces."""

    vocab_size: int  # of the joint SentencePiece model
    lowercase: bool = True
    min_pieces: int = 5  # a pair is kept when every side has so many pieces, EOS not counted (paper, sec. 4)
    max_pieces: int = 100
    valid_pairs: int = 10_000  # held out, about; no sentence of the first language is on both sides

    def __post_init__(self) -> None:
        if not 1 <= self.min_pieces <= self.max_pieces:
            raise UsageError(f"min_pieces {self.min_pieces} must be from 1 to max_pieces ({self.max_pieces})")
        if self.valid_pairs < 1:
            raise UsageError(f"valid_pairs {self.valid_pairs} must be at least 1: validation needs held-out pairs")
        if self.vocab_size < 8:
            raise UsageError(f"vocab_size {self.vocab_size} is too small to hold the special pieces")


@dataclass(frozen=True)
class Recipe:
    """One system: how its model is built, what it minimises, on which data, how long.

    `name` and `arguments` are the call that made it; a checkpoint stores them and nothing else of it.
    """

    name: str
    arguments: Mapping[str, object]
    langs: tuple[str, ...]
    model: Callable[[Tokenizer], nn.Module]
    objective: Objective
    data: DataConfig
    train: TrainConfig
    reads: tuple[str, ...] = ()  # languages the model can embed; unless named, all of `langs`

    def __post_init__(self) -> None:
        codes = [lang for lang in self.langs if isinstance(lang, str) and re.fullmatch(r"[a-z]{2,3}(-\w+)?", lang)]
        if len(set(codes)) < max(2, len(self.langs)):
            found = ", ".join(map(str, self.langs))
            raise UsageError(f"langs {found}: expected two language codes or more, each once, as in en, fr")
        for lang in codes:
            if hasattr(nn.ModuleDict, lang):  # "to" is Tongan; torch keeps the name for itself
                raise UsageError(f"langs: '{lang}' can't name a part of a model; choose another code")
        if not self.reads:
            object.__setattr__(self, "reads", self.langs)
