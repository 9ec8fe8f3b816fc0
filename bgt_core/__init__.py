"""Bilingual Generative Transformer: sentence embeddings with one latent for meaning and one for style."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0"

PRETRAINED = Path(__file__).parent / "pretrained" / "bgt-en-fr"

# The public names of each module. A module is imported only when one of its names is first used, so that `bgt --help`
# does not import torch.
_NAMES = {
    "checkpoint": ("info",),
    "embedder": ("Embedder",),
    "encoders": ("load", "open_encoder"),
    "evaluation.task": ("evaluate",),
    "generation.generate": ("BeamTranslator", "generate"),
    "generation.options": ("GREEDY", "Beam", "Sample"),
    "neighbours.bitext": ("mine",),
    "recipes": ("RECIPES",),
    "splitting": ("split",),
    "training": ("train",),
}

__all__ = [  # literal strings, because the generator of the API pages does not run code
    "GREEDY", "PRETRAINED", "RECIPES", "Beam", "BeamTranslator", "BgtError", "DataError", "Embedder", "NotFound",
    "Sample", "UsageError", "evaluate", "generate", "info", "load", "mine", "open_encoder", "split", "train",
]  # fmt: skip

from bgt_core.errors import BgtError, DataError, NotFound, UsageError  # noqa: E402

if TYPE_CHECKING:
    from bgt_core.checkpoint import info
    from bgt_core.embedder import Embedder
    from bgt_core.encoders import load, open_encoder
    from bgt_core.evaluation.task import evaluate
    from bgt_core.generation.generate import BeamTranslator, generate
    from bgt_core.generation.options import GREEDY, Beam, Sample
    from bgt_core.neighbours.bitext import mine
    from bgt_core.recipes import RECIPES
    from bgt_core.splitting import split
    from bgt_core.training import train


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"bgt_core.{module}"), name)
    raise AttributeError(f"module 'bgt_core' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
