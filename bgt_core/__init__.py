"""Bilingual Generative Transformer: sentence embeddings with one latent for meaning and one for style."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

PRETRAINED = Path(__file__).parent / "pretrained" / "bgt-en-fr"

# The module of each name, which is imported at the first use, so that `bgt --help` starts without torch.
_HOMES = {
    "Beam": "generation.options",
    "BeamTranslator": "generation.translate",
    "Embedder": "embedder",
    "GREEDY": "generation.options",
    "RECIPES": "recipes",
    "Sample": "generation.options",
    "evaluate": "evaluation.task",
    "generate": "generation.generate",
    "info": "checkpoint",
    "load": "encoders",
    "mine": "neighbours.bitext",
    "open_encoder": "encoders",
    "split": "splitting",
    "train": "training",
}

__all__ = [  # literal strings, because the tool that makes the API pages reads no other form
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
    "generate",
    "info",
    "load",
    "mine",
    "open_encoder",
    "split",
    "train",
]

from bgt_core.errors import BgtError, DataError, NotFound, UsageError  # noqa: E402

if TYPE_CHECKING:
    from bgt_core.checkpoint import info
    from bgt_core.embedder import Embedder
    from bgt_core.encoders import load, open_encoder
    from bgt_core.evaluation.task import evaluate
    from bgt_core.generation.generate import generate
    from bgt_core.generation.options import GREEDY, Beam, Sample
    from bgt_core.generation.translate import BeamTranslator
    from bgt_core.neighbours.bitext import mine
    from bgt_core.recipes import RECIPES
    from bgt_core.splitting import split
    from bgt_core.training import train


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bgt_core' has no attribute '{name}'")
    return getattr(import_module(f"bgt_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
