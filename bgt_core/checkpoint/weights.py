"""Save and load a checkpoint: its model with weights, tokenizer and the state of an optimiser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bgt_core import __version__, recipes
from bgt_core.checkpoint import CONFIG, FORMAT, METRICS, OPTIMIZER, TOKENIZER, WEIGHTS, find, read_config, verify
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, Diverged, NotFound, UsageError
from bgt_core.files import atomic_folder, sha256_file
from bgt_core.models.latent import LatentModel
from bgt_core.recipes import Recipe


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint that was read and verified."""

    folder: Path
    config: Mapping[str, Any]
    recipe: Recipe
    model: LatentModel
    tokenizer: Tokenizer


class WithoutValues(TorchFunctionMode):
    """Leave new parameters without initial values: stored ones replace them. On the meta device, drawing them imports
    torch's compiler, which takes a second."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == nn.init.__name__:
            return kwargs["tensor"]
        return func(*args, **kwargs)


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
    if wrong := next((name for name, value in weights.items() if not value.isfinite().all()), None):
        raise Diverged(f"{folder}: not saved: the weights of '{wrong}' contain NaN or infinity")
    with atomic_folder(folder) as partial:
        save_tensors(weights, partial / WEIGHTS)
        tokenizer.save(partial / TOKENIZER)
        if metrics:
            (partial / METRICS).write_bytes(metrics)
        if optimizer is not None:
            state = {  # AdamW's, as "exp_avg/encoders.en..."; a frozen parameter has none
                f"{key}/{name}": value.detach().cpu().contiguous()
                for name, parameter in model.named_parameters()
                for key, value in optimizer.state[parameter].items()
            }
            save_tensors(state, partial / OPTIMIZER)
        config = {
            "format": FORMAT,
            "version": __version__,
            "recipe": recipe.name,
            "arguments": recipe.arguments,
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
        with torch.device("meta"), WithoutValues():
            check_shapes(recipe.build(tokenizer), folder / WEIGHTS)
        with torch.device("cpu"), WithoutValues():  # whatever torch's default device and type are
            model = recipe.build(tokenizer).float()
    except UsageError as error:
        raise DataError(f"{folder / CONFIG}: {error}") from None
    fill(model, load_tensors(folder / WEIGHTS), folder / WEIGHTS)
    return Checkpoint(folder, config, recipe, model.to(device), tokenizer)


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
    """Copy weights into the model, which must have been checked against the file (`check_shapes`)."""
    for name, tensor in tensors(model):
        if name not in weights:
            raise DataError(f"{path}: parameter '{name}' is missing.")
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


def copy(tensor: Tensor, value: Tensor, name: str, path: Path) -> None:
    """Read one tensor; DataError if the shapes differ, or an entry is NaN or infinite."""
    if not value.isfinite().all():
        raise DataError(f"{path}: parameter '{name}' contains NaN or infinity: its training diverged.")
    if tensor.shape != value.shape:
        shapes = f"has shape {list(value.shape)}, the recipe makes {list(tensor.shape)}"
        raise DataError(f"{path}: parameter '{name}' {shapes}.")
    with torch.no_grad():
        tensor.copy_(value)


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
