"""The length, speed and batch sizes of a training."""

from __future__ import annotations

from dataclasses import dataclass

from bgt_core.data.columns import parse_weights
from bgt_core.device import check_precision
from bgt_core.errors import UsageError, check_choice, check_least


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
        for name in (
            "batch_tokens",
            "micro_tokens",
            "micro_batches",
            "learning_rate",
            "clip",
            "sampling_temperature",
            "valid_every",
            "save_every",
        ):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} {getattr(self, name)} must be above 0")
        for name in (
            "epochs",
            "warmup_steps",
            "weight_decay",
            "composition_l2",
            "table_l2",
            "mega_batch",
            "mega_batch_warmup",
            "mega_batch_start",
            "aggressive_steps",
            "explosion",
        ):
            check_least(0, **{name: getattr(self, name)})
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
