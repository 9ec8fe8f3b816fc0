"""The definition of a recipe: everything a run needs except the text; and its settings by dotted names.

A setting is named `train.learning_rate`, or `learning_rate` while only one setting ends in that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Protocol

from torch import nn

from bgt_core.backend import check_precision
from bgt_core.data.columns import LABEL, parse_columns, parse_weights
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, UsageError, check_choice, check_least, did_you_mean
from bgt_core.files import parse_json
from bgt_core.models.latent import LatentModel
from bgt_core.objectives import Sum


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
    clip: float = 25.0  # maximum norm of the gradient, nats per pair
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


class WideAsTokens:
    """The sizes of a model whose semantic latent is as wide as its token vectors."""

    d_model: int

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        return self.d_model


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


LARGEST = 2**31


# upper limits of sizes, by the end of a setting's name
SIZES = {"layers": 2**10, "heads": 2**12, "_dim": 2**18, "d_model": 2**18}
HIDDEN = ("name",)  # of a recipe: no setting


def flatten(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting's dotted name and value; settings are the fields of dataclasses and the keys of mappings."""
    for name, value in members(config).items():
        if is_dataclass(value) or isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def members(config: Any) -> dict[str, Any]:
    """The named values of a dataclass or a mapping."""
    if isinstance(config, Mapping):
        return dict(config)
    return {field.name: getattr(config, field.name) for field in fields(config) if field.name not in HIDDEN}


def override(config: Any, overrides: Mapping[str, Any]) -> Any:
    """The same configuration with other values at these dotted names, each checked against the value it replaces."""
    current = members(config)
    here: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for name, value in overrides.items():
        head, dot, rest = name.partition(".")
        if dot:
            below.setdefault(head, {})[rest] = value
        else:
            here[head] = checked(name, value, current[head])
    for head, nested in below.items():
        here[head] = override(current[head], nested)
    if not isinstance(config, Mapping):
        return replace(config, **here)
    rebuilt: Callable[[dict[str, Any]], Any] = type(config)  # a type that is made from a mapping
    return rebuilt({**current, **here})


def checked(name: str, value: Any, default: Any) -> Any:
    """Convert the value, a list to a tuple; UsageError if its type differs from the default's."""
    kinds: Any = {float: (float, int), tuple: (list, tuple)}.get(type(default), type(default))
    if not isinstance(value, kinds) or isinstance(value, bool) != isinstance(default, bool):
        raise UsageError(f"{name}={value!r} should be like its default, {default!r}.")
    if isinstance(value, int):
        limit = next((size for ending, size in SIZES.items() if name.endswith(ending)), None)
        least, most = (1 - LARGEST, LARGEST) if limit is None else (0, limit)
        if not least <= value < most:
            raise UsageError(f"{name}={str(value)[:40]} should be a number from {least:,} to {most - 1:,}.")
    if isinstance(default, float):
        if not math.isfinite(value):
            raise UsageError(f"{name}={value!r} should be a finite number.")
        return float(value)
    return tuple(value) if isinstance(default, tuple) else value


def full_name(config: Any, name: str) -> str:
    """The dotted name of a setting that is given in full or by its end; UsageError if it is unknown or ambiguous."""
    known = [key for key, _ in flatten(config)]
    if name in known:
        return name
    ends = [key for key in known if key.endswith("." + name)]
    if len(ends) > 1:
        raise UsageError(f"'{name}' is ambiguous: use {' or '.join(ends)}.")
    if not ends:
        short = [key.rpartition(".")[2] for key in known]
        raise UsageError(f"no setting '{name}'.{did_you_mean(name, [*known, *short])} Choose from {', '.join(known)}.")
    return ends[0]


def parse_overrides(texts: list[str]) -> dict[str, object]:
    """["d_model=128", "readout=mean"] -> {"d_model": 128, "readout": "mean"}."""
    overrides: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise UsageError(f"'{text}' is not of the form NAME=VALUE, as in d_model=128.")
        overrides[key] = value
        with suppress(DataError):  # text
            overrides[key] = parse_json(value, text)
    return overrides
