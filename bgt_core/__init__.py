"""Bilingual Generative Transformer: sentence embeddings that keep meaning and manner apart."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

PRETRAINED = Path(__file__).parent / "pretrained" / "bgt-en-fr"

# Names are imported when they are first used, so that `bgt --help` starts without torch.
_HOMES = {
    "Beam": "generation.options",
    "BeamTranslator": "generation.translate",
    "Embedder": "embedder",
    "GREEDY": "generation.options",
    "RECIPES": "recipes",
    "Sample": "generation.options",
    "evaluate": "evaluation.task",
    "info": "checkpoint",
    "mine": "mining",
    "open_encoder": "adapters",
    "train": "run",
    "transfer": "generation.search",
}

__all__ = [
    "GREEDY",
    "PRETRAINED",
    "RECIPES",
    "Beam",
    "BeamTranslator",
    "BgtError",
    "DataError",
    "Embedder",
    "NotFound",
    "Sample",
    "UsageError",
    "evaluate",
    "info",
    "load",
    "mine",
    "open_encoder",
    "train",
    "transfer",
]

from bgt_core.errors import BgtError, DataError, NotFound, UsageError  # noqa: E402

if TYPE_CHECKING:
    import torch

    from bgt_core.adapters import open_encoder as open_encoder
    from bgt_core.checkpoint import info as info
    from bgt_core.embedder import Embedder as Embedder
    from bgt_core.evaluation.task import evaluate as evaluate
    from bgt_core.generation.options import GREEDY as GREEDY
    from bgt_core.generation.options import Beam as Beam
    from bgt_core.generation.options import Sample as Sample
    from bgt_core.generation.search import transfer as transfer
    from bgt_core.generation.translate import BeamTranslator as BeamTranslator
    from bgt_core.mining import mine as mine
    from bgt_core.recipes import RECIPES as RECIPES
    from bgt_core.run import train as train


def load(path: str | Path = PRETRAINED, device: str | torch.device = "auto", precision: str = "auto") -> Embedder:
    """The model in a checkpoint, or in the newest of a run; without a path the one that ships.

    `path` may name a model that ships, as "bgt-multilingual". Where it is no folder here and reads as ORG/NAME or
    ORG/NAME@REVISION, it is fetched from the hub.

    `device` is "cpu", "cuda", "cuda:1", a device of torch, or "auto": a GPU where there is one. `precision` is "fp32",
    "bf16", "auto" (bf16 where the device multiplies it natively), or on a CPU "int8", for embedding. Raises BgtError
    for a folder that is missing, incomplete or damaged, and where the hub can't give it.
    """
    from bgt_core import checkpoint
    from bgt_core.device import pick_device
    from bgt_core.embedder import Embedder

    loaded = checkpoint.load(path, pick_device(device))
    return Embedder(loaded.model, loaded.tokenizer, loaded.model.langs, precision)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bgt_core' has no attribute '{name}'")
    return getattr(import_module(f"bgt_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
