"""Load a checkpoint as an embedder."""

from __future__ import annotations

from pathlib import Path

import torch

from bgt_core import PRETRAINED, checkpoint
from bgt_core.device import pick_device
from bgt_core.embedder import Embedder


def load(path: str | Path = PRETRAINED, device: str | torch.device = "auto", precision: str = "auto") -> Embedder:
    """Open the model in a checkpoint, or in the newest of a run.

    Args:
        path: A folder; the name of a model that ships, as "bgt-multilingual"; or ORG/NAME or ORG/NAME@REVISION, which
            is fetched from the hub unless a folder has that name. By default the model that ships.
        device: "cpu", "cuda", "cuda:1", a device of torch, or "auto": a GPU if there is one.
        precision: "fp32", "bf16", "auto" (bf16 where the device multiplies it natively), or on a CPU "int8".

    Returns:
        The model with its tokenizer.

    Raises:
        BgtError: A folder that is missing, incomplete or damaged, or an error of the hub.
    """
    loaded = checkpoint.load(path, pick_device(device))
    return Embedder(loaded.model, loaded.tokenizer, loaded.model.langs, precision)
