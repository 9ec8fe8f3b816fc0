"""The class `Recipe`, which contains all settings of a run: model, objective, data and training."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from bgt_core.backend import PRECISIONS
from bgt_core.data.columns import parse_columns, parse_weights
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice, check_least
from bgt_core.models.bgt import LatentModel
from bgt_core.objectives import Part, Sum
from bgt_core.objectives.elbo import CrossEntropy, Elbo
from bgt_core.objectives.similarity import AlteredMargin, Composition, Contrast, Distillation, Margin, StyleContrast
from bgt_core.recipes import ModelConfig, flatten, langs_of

PARTS: dict[str, Callable[..., Part]] = {  # name in recipes.toml -> class of the loss
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
    """The settings of a training run: length, batch sizes, learning rate, regularisation, precision."""

    epochs: float = 20.0  # number of passes through the data; 0 saves the untrained model
    batch_tokens: int = 25_000  # number of tokens per update, counted in the longest sentence of each row
    micro_tokens: int = 4_000  # maximum tokens, with padding, of each column of a micro-batch; limits memory
    micro_batches: int = 1  # minimum number of micro-batches per update, so that workers can share them
    learning_rate: float = 5e-4  # Peak learning rate. In the first `warmup_steps` updates, the learning rate rises
    # linearly to its peak; then it falls as 1 / sqrt(step). If `warmup_steps` is 0, the rate is constant.
    # (`objective.elbo.warmup_steps` is another setting, for the weight of the KL.)
    warmup_steps: int = 4_000
    cooldown: float = 0.0  # final share of the run; in it, a factor of the rate falls linearly from 1 to 0
    weight_decay: float = 1e-4  # decoupled weight decay of every parameter, as in the BGT authors' code
    composition_l2: float = 0.0  # weight of an L2 penalty on all parameters except token embeddings
    table_l2: float = 0.0  # weight of an L2 penalty on the change of token embeddings from their initial values
    clip: float = 25.0  # maximum norm of the gradient, in nats per row
    explosion: float = 100.0  # stop when the loss exceeds this multiple of its initial value (`Guard`); 0: never
    sampling_temperature: float = 1.0  # above 1, small corpora are sampled more often
    kind_weights: str = ""  # sampling weights of kinds of text, as in "news:3,docs:0.5"
    scramble: float = 0.0  # share of the training sentences whose tokens are shuffled
    mega_batch: int = 0  # maximum number of updates among whose rows hard negatives are sought; 0: in-batch negatives
    mega_batch_warmup: int = 0  # number of updates after which mega-batches grow by 1 update; 0: full size at once
    mega_batch_start: float = 0.0  # Number of epochs before the search for hard negatives starts.
    # Maximum number of encoder-only updates before each full update (He et al. 2019: 100), until an epoch does not
    # raise the mutual information. 0: ordinary training.
    aggressive_steps: int = 0
    valid_every: int = 1_000  # number of updates between validations
    save_every: int = 1_000  # number of updates between checkpoints
    precision: str = "auto"  # fp32, bf16 (autocast), or auto (bf16 if the device supports it)
    compile: str = "auto"  # compile layers with torch.compile: on, off, or auto (on for a long run on a GPU)
    seed: int = 1

    def __post_init__(self) -> None:
        positive = "batch_tokens micro_tokens micro_batches learning_rate clip sampling_temperature".split()
        shares = {"cooldown": "the run", "scramble": "the sentences"}
        for name, value in vars(self).items():
            if name in (*positive, "valid_every", "save_every"):
                if value <= 0:
                    raise UsageError(f"{name} {value} must be above 0")
            elif name in shares:
                if not 0 <= value <= 1:
                    raise UsageError(f"{name} {value} must be a share of {shares[name]}, from 0 to 1")
            elif isinstance(value, (int, float)) and name != "seed":
                check_least(0, **{name: value})
        if self.aggressive_steps and self.mega_batch:
            raise UsageError("aggressive_steps and mega_batch can't be combined; set one of them to 0")
        if self.mega_batch and self.epochs and self.mega_batch_start >= self.epochs:
            raise UsageError(
                f"mega_batch_start {self.mega_batch_start} must be below epochs ({self.epochs}), because otherwise no "
                "negatives are used"
            )
        parse_weights(self.kind_weights)
        check_choice(("auto", "on", "off"), compile=self.compile)
        check_choice(PRECISIONS, precision=self.precision)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The settings of the training data: columns, tokenizer, lengths, and held-out rows.

    A column is named by its language, "en". If two columns have the same language, each of them also needs a name, as
    in "a:en" and "b:en". The column "gold:label" has a label for each row, for a classifier; a label is a number.
    """

    columns: tuple[str, ...] = ("en", "fr")
    vocab_size: int = 20_000  # number of tokens of the joint SentencePiece model
    lowercase: bool = True
    character_coverage: float = 0.9995  # share of the text's characters covered by tokens; other characters become UNK
    min_tokens: int = 5  # minimum number of tokens in each sentence of a row, without EOS (BGT paper, sec. 4)
    max_tokens: int = 100
    # Approximate number of held-out rows. No sentence of the first column is in both training and held-out data.
    valid_pairs: int = 10_000

    def __post_init__(self) -> None:
        if not 1 <= self.min_tokens <= self.max_tokens:
            raise UsageError(f"min_tokens {self.min_tokens} must be from 1 to max_tokens ({self.max_tokens})")
        if self.valid_pairs < 1:
            raise UsageError(f"valid_pairs {self.valid_pairs} must be at least 1: validation needs held-out rows")
        if not 0.98 <= self.character_coverage <= 1:  # the range that SentencePiece accepts
            raise UsageError(f"character_coverage {self.character_coverage} must be from 0.98 to 1")
        if self.vocab_size < 8:
            raise UsageError(f"vocab_size {self.vocab_size} must be at least 8, to have room for the special tokens")
        parse_columns(self.columns)

    @property
    def langs_of(self) -> dict[str, str]:
        """Map the name of each column of text to its language."""
        return langs_of(self.columns)

    @property
    def langs(self) -> tuple[str, ...]:
        """The different languages of the columns."""
        return tuple(dict.fromkeys(self.langs_of.values()))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All settings of a training run: model, objective, data and training.

    `init_from` names a checkpoint. If the model and the checkpoint have a parameter in common, training begins with its
    value in the checkpoint. Parameters whose names start with an item of `freeze`, such as "decoders", stay fixed.
    """

    name: str
    model: ModelConfig
    objective: Sum
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    base: str = ""  # for a second training stage, the recipe of the first stage's model
    init_from: str = ""
    freeze: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for lang in self.data.langs:
            if hasattr(nn.ModuleDict, lang):  # such as "to", Tongan's code, because torch's modules have a method `to`
                raise UsageError(f"columns: torch reserves the name '{lang}'; choose another code for this language")
        for part in self.objective.counting.values():
            part.check(list(self.data.langs_of), self.train.mega_batch)

    @property
    def arguments(self) -> dict[str, Any]:
        """All settings by their dotted names. A checkpoint stores them, so that the recipe can be rebuilt."""
        return dict(flatten(self))

    def build(self, tokenizer: Tokenizer) -> LatentModel:
        """Build the untrained model of the recipe."""
        return self.model.make_model(tokenizer, self.data.langs_of)
