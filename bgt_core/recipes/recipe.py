"""The definition of a recipe: everything a run needs except the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from bgt_core.backend import check_precision
from bgt_core.data.columns import LABEL, parse_columns, parse_weights
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice, check_least
from bgt_core.models.latent import LatentModel
from bgt_core.objectives import Part, Sum
from bgt_core.objectives.elbo import CrossEntropy, Elbo
from bgt_core.objectives.similarity import AlteredMargin, Composition, Contrast, Distillation, Margin, StyleContrast
from bgt_core.recipes import ModelConfig, flatten, langs_of

PARTS: dict[str, Callable[..., Part]] = {  # of objectives, by their names in recipes.toml
    "elbo": Elbo,
    "margin": Margin,
    "contrast": Contrast,
    "composition": Composition,
    "altered": AlteredMargin,
    "distillation": Distillation,
    "style": StyleContrast,
    "cross_entropy": CrossEntropy,
    "paraphrase": CrossEntropy,
    "position": CrossEntropy,
}


@dataclass(frozen=True)
class TrainConfig:
    """The length, speed and batch sizes of a training."""

    epochs: float = 20.0  # passes through the data; 0: the untrained model
    batch_tokens: int = 25_000  # tokens per update (the longer side of each pair), on any device
    micro_tokens: int = 4_000  # padded tokens per side of a micro-batch: as many as fit the device's memory
    micro_batches: int = 1  # minimum number of micro-batches per update, of equal size, for workers to share
    learning_rate: float = 5e-4  # the peak
    warmup_steps: int = 4_000  # linear to the peak, then 1 / sqrt(step); 0: constant
    cooldown: float = 0.0  # share of the run, at its end, in which the rate also falls linearly to 0
    weight_decay: float = 1e-4  # decoupled, on every parameter, as in the released code
    # Weight decay in the loss: half of it times the squared norm of all parameters except token tables (Wieting et al.
    # 2017, eq. 4: lambda_c).
    composition_l2: float = 0.0
    table_l2: float = 0.0  # half of it times the squared distance of token tables to their initial values (lambda_w)
    clip: float = 25.0  # maximum norm of the gradient, nats per row
    explosion: float = 100.0  # stop when the loss exceeds this multiple of its initial value (`Guard`); 0: never
    sampling_temperature: float = 1.0  # above 1, small corpora (files of other columns) are sampled more often
    kind_weights: str = ""  # weights of kinds of text in sampling, as in news:3,docs:0.5
    scramble: float = 0.0  # share of the training sentences whose tokens are permuted
    mega_batch: int = 0  # maximum number of updates searched together for negatives; 0: use in-batch negatives only
    mega_batch_warmup: int = 0  # updates until a mega-batch grows by one update, from 1; 0: full size at once
    mega_batch_start: float = 0.0  # epochs before the search for negatives starts
    # Maximum number of encoder-only updates before each full update, while they raise the mutual information (He et al.
    # 2019: 100); 0: ordinary training.
    aggressive_steps: int = 0
    valid_every: int = 1_000  # updates
    save_every: int = 1_000  # updates
    precision: str = "auto"  # fp32, bf16 (autocast), or auto: bf16 if the device supports it
    compile: str = "auto"  # layers by torch.compile: on, off, or auto: on for a long run on a GPU
    seed: int = 1

    def __post_init__(self) -> None:
        positive = (
            "batch_tokens micro_tokens micro_batches learning_rate clip sampling_temperature valid_every save_every"
        )
        for name in positive.split():
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} {getattr(self, name)} must be above 0")
        not_negative = """epochs warmup_steps weight_decay composition_l2 table_l2 mega_batch mega_batch_warmup
            mega_batch_start aggressive_steps explosion"""
        check_least(0, **{name: getattr(self, name) for name in not_negative.split()})
        for name, whole in (("cooldown", "the run"), ("scramble", "the sentences")):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} {getattr(self, name)} is a share of {whole}, from 0 to 1")
        if self.aggressive_steps and self.mega_batch:
            raise UsageError("aggressive_steps and mega_batch: they can't be combined; set one to 0")
        if self.mega_batch and self.epochs and self.mega_batch_start >= self.epochs:
            raise UsageError(
                f"mega_batch_start {self.mega_batch_start} must be below epochs ({self.epochs}), or no negatives are "
                "used"
            )
        parse_weights(self.kind_weights)
        check_choice(("auto", "on", "off"), compile=self.compile)
        check_precision(self.precision)


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
        return langs_of(self.columns)

    @property
    def langs(self) -> tuple[str, ...]:
        """The languages, each once."""
        return tuple(dict.fromkeys(self.langs_of.values()))

    @property
    def labelled(self) -> bool:
        """Whether a column holds labels."""
        return LABEL in parse_columns(self.columns).values()


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
