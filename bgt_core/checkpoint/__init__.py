"""A checkpoint: a folder of plain files, each checked against its hash when it is read.

    config.json             recipe, arguments, step, sizes, hashes; written last
    model.safetensors       weights
    tokenizer.model         SentencePiece
    optimizer.safetensors   only while training: AdamW's moments
    metrics.jsonl           only of an exported model: the rows of its run

Nothing is ever unpickled. A folder is written under another name and then renamed, so a checkpoint is always whole.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bgt_core import __version__, recipes
from bgt_core.checkpoint import card as cards
from bgt_core.checkpoint import hub
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, Diverged, NotFound, UsageError
from bgt_core.files import atomic_folder, read_json, sha256_file
from bgt_core.models.latent import LatentModel
from bgt_core.recipes import Recipe

CONFIG, WEIGHTS, TOKENIZER, OPTIMIZER = "config.json", "model.safetensors", "tokenizer.model", "optimizer.safetensors"
METRICS = "metrics.jsonl"
PLAIN = re.compile(r"[\w-][\w.-]{0,199}")  # the name of a file in the checkpoint's own folder
MAYBE = {"version": str, "parameters": int}  # optional entries of a configuration
FORMAT = 2


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint that was read and verified."""

    folder: Path
    config: Mapping[str, Any]
    recipe: Recipe
    model: LatentModel
    tokenizer: Tokenizer


def save(
    folder: Path,
    recipe: Recipe,
    model: LatentModel,
    tokenizer: Tokenizer,
    step: int,
    optimizer: torch.optim.Optimizer | None = None,
    dtype: torch.dtype = torch.float32,
    metrics: bytes = b"",
    card: Mapping[str, object] | None = None,
) -> None:
    """Write a new folder, whole or not at all. UsageError if it exists already, Diverged for weights with NaN or
    infinity, NotFound if it can't be written.

    `metrics` are the rows of the run so far, `card` holds measured scores. With the optimiser's state, training can
    continue.
    """
    weights = {
        name: value.detach().to("cpu", dtype if value.is_floating_point() else value.dtype).contiguous()
        for name, value in tensors(model)
    }
    if wrong := next((name for name, value in weights.items() if not finite(value)), None):
        raise Diverged(f"{folder}: not saved: the weights of '{wrong}' contain NaN or infinity")
    with atomic_folder(folder) as partial:
        save_tensors(weights, partial / WEIGHTS)
        tokenizer.save(partial / TOKENIZER)
        if metrics:
            (partial / METRICS).write_bytes(metrics)
        if optimizer is not None:
            save_tensors(optimizer_state(model, optimizer), partial / OPTIMIZER)
        config = {
            "format": FORMAT,
            "version": __version__,
            "recipe": recipe.name,
            "arguments": dict(recipe.arguments or {}),
            "step": step,
            "parameters": sum(value.numel() for value in model.parameters()),
            "files": {path.name: sha256_file(path) for path in sorted(partial.iterdir())},
            **({"card": card} if card else {}),
        }
        (partial / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        for path in partial.glob("*.safetensors"):  # safetensors creates files that only their owner can read
            shutil.copymode(partial / CONFIG, path)


def load(path: Path | str, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint, or the newest of a run, or one on the hub. BgtError says which file is missing, damaged or
    unknown."""
    folder = find(path)
    config = read_config(folder)
    verify(folder, config)
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    try:
        recipe = recipes.build(config["recipe"], config["arguments"])
        # takes no memory, even if the configuration claims sizes that the weights don't have
        with torch.device("meta"):
            check_shapes(recipe.build(tokenizer), folder / WEIGHTS)
        with torch.device("cpu"):  # whatever torch's default device and type are
            model = recipe.build(tokenizer).float()
    except UsageError as error:
        raise DataError(f"{folder / CONFIG}: {error}") from None
    fill(model, load_tensors(folder / WEIGHTS), folder / WEIGHTS)
    return Checkpoint(folder, config, recipe, model.to(device), tokenizer)


def find(path: Path | str) -> Path:
    """The checkpoint at `path`: itself, or a run's newest; ORG/NAME or ORG/NAME@REVISION of the hub."""
    path = hub.folder(path)
    if other := kind_of_folder(path):
        raise UsageError(f"{path}: a folder of {other}, not a checkpoint of ours: spell it {other}:{path}")
    if (path / CONFIG).is_file():
        return path
    if newest := steps_of(path):
        return newest[-1]
    if not path.exists():
        raise NotFound(
            f"{path}: no such checkpoint. Train one with `bgt train`, or leave --model out for the one that ships."
        )
    raise NotFound(f"{path}: no checkpoint here: it has no {CONFIG} and no step-* folder with one.")


def steps_of(run: Path) -> list[Path]:
    """The complete checkpoints of a run, oldest first."""
    return sorted(path for path in run.glob("step-*") if path.name[5:].isdigit() and (path / CONFIG).is_file())


def kind_of_folder(folder: Path) -> str:
    """The kind of encoder whose files the folder holds, if it is not ours; "" for a checkpoint, or for other
    folders."""
    modules = folder / "modules.json"
    # our own exported folders are checkpoints too
    if modules.is_file() and "bgt_core" not in modules.read_text("utf-8"):
        return "sentence-transformers"
    return "onnx" if (folder / "onnx.json").is_file() else ""


def read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = read_json(path)
    except DataError as error:
        raise DataError(f"{error} Copy the checkpoint again.") from None
    kinds = {"format": int, "recipe": str, "arguments": dict, "files": dict, "step": int}
    config = config if isinstance(config, dict) else {}
    wrong = [key for key, kind in kinds.items() if not isinstance(config.get(key), kind)]
    wrong += [key for key, kind in MAYBE.items() if not isinstance(config.get(key, kind()), kind)]
    if wrong:
        raise DataError(f"{path}: not a checkpoint's configuration: {', '.join(wrong)} missing or of a wrong kind.")
    cards.checked(config.get("card", {}), str(path))
    if config["format"] != FORMAT:
        raise DataError(
            f"{path}: format {config['format']}, this version reads {FORMAT}. Install the version that wrote it."
        )
    return config


def verify(folder: Path, config: Mapping[str, Any]) -> None:
    """Every file named in the configuration is there with its hash."""
    files = config["files"]
    for name in (WEIGHTS, TOKENIZER):
        if name not in files:
            raise DataError(f"{folder / CONFIG}: names no {name}; a checkpoint needs one.")
    for name, expected in files.items():
        if not PLAIN.fullmatch(name):
            raise DataError(f"{folder / CONFIG}: names {name!r}; expected the names of files beside it.")
        if not (folder / name).is_file():
            raise DataError(f"{folder / name}: missing. Copy the checkpoint again.")
        actual = sha256_file(folder / name)
        if actual != expected:
            raise DataError(
                f"{folder / name}: damaged: its hash is {actual[:12]}, {CONFIG} says {str(expected)[:12]}. "
                "Copy the checkpoint again."
            )


def save_tensors(values: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file; NotFound if it can't be written."""
    try:
        save_file(dict(values), path)
    except SafetensorError as error:  # safetensors wraps the system's error
        raise NotFound(f"{path}: can't be written ({error}).") from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file ({error}). Copy the checkpoint again.") from None


def tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Name every parameter and every persistent buffer; one shared by several parts counts once."""
    persistent = model.state_dict(keep_vars=True)
    seen: set[int] = set()
    for name, tensor in [*model.named_parameters(), *persistent.items()]:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def check_shapes(outline: nn.Module, path: Path) -> None:
    """Raise DataError unless the model and the file name the same tensors with the same shapes; reads no values."""
    try:
        with safe_open(path, "pt") as file:
            stored = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file ({error}). Copy the checkpoint again.") from None
    own = {name: list(tensor.shape) for name, tensor in tensors(outline)}
    for name in sorted(own.keys() ^ stored.keys()):
        raise DataError(f"{path}: parameter '{name}' is {'missing' if name in own else 'not in this recipe'}.")
    for name, shape in own.items():
        if shape != stored[name]:
            raise DataError(f"{path}: parameter '{name}' has shape {stored[name]}, the recipe makes {shape}.")


def fill(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Copy weights into the model; both must name the same tensors and shapes."""
    own = dict(tensors(model))
    for name in sorted(own.keys() ^ weights.keys()):
        raise DataError(f"{path}: parameter '{name}' is {'missing' if name in own else 'not in this recipe'}.")
    for name, tensor in own.items():
        copy(tensor, weights[name], name, path)


def warm_start(model: nn.Module, folder: Path) -> list[str]:
    """Copy the weights that the checkpoint and the model share; return the names of the others, which keep their
    initial values.

    Raises DataError if they share none, or a shape differs.
    """
    path = folder / WEIGHTS
    weights, own = load_tensors(path), dict(tensors(model))
    if not own.keys() & weights.keys():
        raise DataError(f"{path}: init_from: none of its parameters is in this recipe's model.")
    for name in own.keys() & weights.keys():
        copy(own[name], weights[name], name, path)
    return [name for name in own if name not in weights]


def finite(value: Tensor) -> bool:
    """Whether every entry is a finite number."""
    return bool(value.isfinite().all())


def copy(tensor: Tensor, value: Tensor, name: str, path: Path) -> None:
    """Read one tensor; DataError if the shapes differ, or an entry is NaN or infinite."""
    if not finite(value):
        raise DataError(f"{path}: parameter '{name}' contains NaN or infinity: its training diverged.")
    if tensor.shape != value.shape:
        shapes = f"has shape {list(value.shape)}, the recipe makes {list(tensor.shape)}"
        raise DataError(f"{path}: parameter '{name}' {shapes}.")
    with torch.no_grad():
        tensor.copy_(value)


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """AdamW's state by parameter name: "exp_avg/encoders.en...", "step/..."; a frozen parameter has none."""
    return {
        f"{key}/{name}": value.detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state[parameter].items()
    }


def fill_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
    """Restore AdamW's state from a checkpoint that was saved while training."""
    path = folder / OPTIMIZER
    if not path.is_file():
        raise NotFound(f"{path}: missing: this checkpoint is for use only; training can't continue from it.")
    state = load_tensors(path)
    for name, parameter in model.named_parameters():
        for key in ("step", "exp_avg", "exp_avg_sq"):
            if (value := state.get(f"{key}/{name}")) is not None:  # parameters without a gradient so far have no state
                optimizer.state[parameter][key] = value.to(parameter.device)


def info(path: Path | str) -> dict[str, Any]:
    """Describe a checkpoint: check every hash, and give each file's size in bytes."""
    folder = find(path)
    config = read_config(folder)
    verify(folder, config)
    return {
        "folder": str(folder),
        **config,
        "bytes": {name: (folder / name).stat().st_size for name in config["files"]},
    }
