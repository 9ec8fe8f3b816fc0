"""A checkpoint: a folder of plain files, each checked against its hash when it is read.

    config.json             recipe, arguments, step, sizes, hashes; written last
    model.safetensors       weights
    tokenizer.model         SentencePiece
    optimizer.safetensors   only while training: AdamW's moments
    metrics.jsonl           only of an exported model: the rows of its run

Nothing is ever unpickled. A folder is written under another name and then renamed, so a checkpoint is always whole.
Functions that read or write weights import torch when they are called, because the import takes a second.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgt_core import __version__, recipes
from bgt_core.errors import BgtError, DataError, Diverged, NotFound, UsageError, needs
from bgt_core.files import atomic_folder, read_json, sha256_file

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from bgt_core.data.text import Tokenizer
    from bgt_core.models.latent import LatentModel
    from bgt_core.recipes import Recipe

CONFIG, WEIGHTS, TOKENIZER, OPTIMIZER = "config.json", "model.safetensors", "tokenizer.model", "optimizer.safetensors"
METRICS = "metrics.jsonl"
KINDS_OF_FOLDERS = {"modules.json": "sentence-transformers", "onnx.json": "onnx", "split.json": "split"}
PLAIN = re.compile(r"[\w-][\w.-]{0,199}")  # the name of a file in the checkpoint's own folder
MAYBE = {"version": str, "parameters": int}  # optional entries of a configuration
FORMAT = 3


def find(path: Path | str) -> Path:
    """Find a checkpoint: a folder, the newest of a run's folder, or ORG/NAME or ORG/NAME@REVISION on the hub."""
    if not isinstance(path, str | PathLike):
        raise UsageError(f"{path}: expected a folder, or the name of a model", parameter="path")
    path = folder_of(path)
    if not os.path.exists(path):
        raise NotFound(
            f"{path}: no such checkpoint. Train one with `bgt train`, or leave --model out to use bgt-en-fr."
        )
    if other := kind_of_folder(path):
        raise UsageError(f"{path}: a folder of {other}, not a checkpoint of ours: spell it {other}:{path}")
    if (path / CONFIG).is_file():
        return path
    if newest := steps_of(path):
        return newest[-1]
    raise NotFound(f"{path}: no checkpoint here: it has no {CONFIG} and no step-* folder with one.")


def steps_of(run: Path) -> list[Path]:
    """List the complete checkpoints of a run, oldest first."""
    found = [path for path in run.glob("step-*") if path.name[5:].isdigit() and (path / CONFIG).is_file()]
    return sorted(found, key=lambda path: int(path.name[5:]))


def kind_of_folder(folder: Path) -> str:
    """Return the kind of encoder that a folder holds, or "" for a checkpoint of ours and for any other folder.
    UsageError for files of two kinds."""
    kinds = [kind for name, kind in KINDS_OF_FOLDERS.items() if (folder / name).is_file()]
    # our own exported folders are checkpoints too
    if kinds[:1] == ["sentence-transformers"] and "bgt_core" in (folder / "modules.json").read_text("utf-8", "replace"):
        kinds = kinds[1:]
    if len(kinds) > 1:
        spellings = " or ".join(f"{kind}:{folder}" for kind in kinds)
        raise UsageError(f"{folder}: holds files of several kinds of encoders; spell it {spellings}")
    return kinds[0] if kinds else ""


def own_modules(folder: Path) -> bool:
    """Whether a folder of sentence-transformers has only our modules. It is then a checkpoint too, and runs no other
    code."""
    path = folder / "modules.json"
    modules = read_json(path) if path.is_file() else []
    types = [module.get("type") if isinstance(module, dict) else None for module in modules]
    return bool(types) and all(each == "bgt_core.encoders.sentence_transformers.BGTModule" for each in types)


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
    check_card(config.get("card", {}), str(path))
    if config["format"] != FORMAT:
        raise DataError(
            f"{path}: format {config['format']}, this version reads {FORMAT}. Install the version that wrote it."
        )
    return config


def verify(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise DataError unless every file named in the configuration exists and has the hash given there."""
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


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint that was read and verified."""

    folder: Path
    config: Mapping[str, Any]
    model: LatentModel
    tokenizer: Tokenizer

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe with all its settings; DataError if they are invalid."""
        with _blamed(self.folder):
            return recipes.build(self.config["recipe"], self.config["arguments"])


@contextmanager
def _blamed(folder: Path) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise DataError(f"{folder / CONFIG}: {error}") from None


def save(
    folder: Path,
    recipe: Recipe,
    model: LatentModel,
    tokenizer: Tokenizer,
    step: int,
    optimizer: torch.optim.Optimizer | None = None,
    dtype: torch.dtype | None = None,
    metrics: bytes = b"",
    card: Mapping[str, object] | None = None,
) -> None:
    """Write a new folder, complete or not at all. UsageError if it exists already, Diverged for weights with NaN or
    infinity, NotFound if it can't be written.

    `metrics` are the rows of the run so far, `card` holds measured scores. With the optimiser's state, training can
    continue.
    """
    import torch

    dtype = dtype or torch.float32
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
            state = {  # of AdamW, named as "exp_avg/encoders.en..."; frozen parameters have no state
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
    """Read the checkpoint that `find` finds. A BgtError says which file is missing, damaged or unknown."""
    import torch
    from torch.overrides import TorchFunctionMode

    from bgt_core.data.text import Tokenizer

    class WithoutValues(TorchFunctionMode):
        """Leave new parameters without initial values: stored ones replace them. On the meta device, drawing them
        imports torch's compiler, which takes a second."""

        def __torch_function__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__module__", "") == torch.nn.init.__name__:
                return kwargs["tensor"]
            return func(*args, **(kwargs or {}))

    folder = find(path)
    config = read_config(folder)
    verify(folder, config)
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    with _blamed(folder):
        sizes, columns = recipes.stored_model(config["recipe"], config["arguments"])
        # takes no memory, even if the configuration claims sizes that the weights don't have
        with torch.device("meta"), WithoutValues():
            check_shapes(sizes.build(tokenizer, columns), folder / WEIGHTS)
        with torch.device("cpu"), WithoutValues():  # whatever torch's default device and type are
            model = sizes.build(tokenizer, columns).float()
    weights = load_tensors(folder / WEIGHTS)
    for name, tensor in tensors(model):
        copy(tensor, weights, name, folder / WEIGHTS)
    return Checkpoint(folder, config, model.to(device), tokenizer)


def save_tensors(values: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file; NotFound if it can't be written."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(dict(values), path)
    except SafetensorError as error:  # safetensors wraps the system's error
        raise NotFound(f"{path}: can't be written ({error}).") from None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file ({error}). Copy the checkpoint again.") from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    with _readable(path):
        return load_file(path)


def tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter and every persistent buffer with its name, and shared ones only once."""
    persistent = model.state_dict(keep_vars=True)
    seen: set[int] = set()
    for name, tensor in [*model.named_parameters(), *persistent.items()]:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def check_shapes(outline: nn.Module, path: Path) -> None:
    """Raise DataError unless the model and the file have tensors of the same names and shapes. Values are not read."""
    from safetensors import safe_open

    with _readable(path), safe_open(path, "pt") as file:
        stored = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    own = {name: list(tensor.shape) for name, tensor in tensors(outline)}
    for name in sorted(own.keys() ^ stored.keys()):
        raise DataError(f"{path}: parameter '{name}' is {'missing' if name in own else 'not in this recipe'}.")
    for name, shape in own.items():
        if shape != stored[name]:
            raise DataError(f"{path}: parameter '{name}' has shape {stored[name]}, the recipe makes {shape}.")


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
        copy(own[name], weights, name, path)
    return [name for name in own if name not in weights]


def copy(tensor: Tensor, weights: Mapping[str, Tensor], name: str, path: Path) -> None:
    """Copy a stored tensor into `tensor`; DataError if it is missing, the shapes differ, or it has NaN or infinity."""
    if name not in weights:
        raise DataError(f"{path}: parameter '{name}' is missing.")
    value = weights[name]
    if not value.isfinite().all():
        raise DataError(f"{path}: parameter '{name}' contains NaN or infinity: its training diverged.")
    if tensor.shape != value.shape:
        shapes = f"has shape {list(value.shape)}, the recipe makes {list(tensor.shape)}"
        raise DataError(f"{path}: parameter '{name}' {shapes}.")
    tensor.detach().copy_(value)


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


CARD_LISTS: Mapping[str, Mapping[str, Any]] = {  # lists of records, and the fields that each record must have
    "protocol": {"score": str, "how": str},
    "probes": {"task": str, "latent": str, "ci_low": int | float, "ci_high": int | float},
    "data": {"source": str},
    "fidelity": {},
    "kept": {},
    "transfer": {},
    "roles": {},
}


def check_card(card: object, source: str) -> Mapping[str, Any]:
    """Check that a card has the form that pages and READMEs rely on; DataError, which names `source`, if not.

    `scores` are {measure: number} or {measure: {column: number or text}}; the lists of `CARD_LISTS` are records with
    the same columns; other entries are shown unchanged.
    """

    def is_plain(value: object) -> bool:
        return value is None or isinstance(value, int | float | str)

    def is_record(value: object) -> bool:  # of single values, or lists of them
        return isinstance(value, dict) and all(
            all(map(is_plain, cells)) if isinstance(cells, list) else is_plain(cells) for cells in value.values()
        )

    if not isinstance(card, dict):
        raise DataError(f"{source}: its card is not a JSON object.")
    scores = card.get("scores", {})
    if not isinstance(scores, dict) or not all(is_plain(row) or is_record(row) for row in scores.values()):
        raise DataError(f"{source}: the scores of its card are not {{measure: {{column: number}}}}.")
    for name, needed in CARD_LISTS.items():
        records = card.get(name, [])
        if not isinstance(records, list) or not all(map(is_record, records)):
            raise DataError(f"{source}: '{name}' in its card is not a list of records.")
        for record in records:
            if missing := [key for key, kind in needed.items() if not isinstance(record.get(key), kind)]:
                raise DataError(f"{source}: '{name}' in its card has a record without '{missing[0]}'.")
        if not needed and len({tuple(record) for record in records}) > 1:
            raise DataError(f"{source}: the records of '{name}' in its card have different columns.")
    return card


# Fetch models from the Hugging Face hub, and upload them. Needs the extra `hub`. HF_TOKEN or `hf auth login` identifies
# the user, HF_ENDPOINT names another hub, HF_HUB_OFFLINE=1 uses the cache alone.

NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(\S+))?")  # ORG/NAME, ORG/NAME@REVISION
SHIPPED = Path(__file__).resolve().parent / "pretrained"  # a folder for each model inside the package
FILES = ["config.json", "metrics.jsonl", "model.safetensors", "tokenizer.model"]


def folder_of(name: str | Path) -> Path:
    """Find the folder that `name` means: an existing folder, a model inside this package, or a download from the hub.

    Files are kept in the hub's own cache, and fetched again only when they have changed. Raises NotFound for an unknown
    model or revision, and without permission or connection.
    """
    if os.path.exists(name):  # unlike Path.exists, False for a name that is too long
        return Path(name)
    if re.fullmatch(r"\w[\w.-]*", str(name)) and os.path.isdir(SHIPPED / name):
        return SHIPPED / name
    match = NAME.fullmatch(str(name))
    if not match or is_path(str(name)):
        return Path(name)
    try:
        needs("huggingface_hub", "hub")
    except BgtError as error:
        raise NotFound(f"{name}: no such checkpoint here; it may be one on the hub. {error}") from None
    from huggingface_hub import snapshot_download

    repository, revision = match.groups()
    with _explained(str(name)):
        return Path(snapshot_download(repository, revision=revision, allow_patterns=FILES, library_name="bgt"))


def is_path(name: str) -> bool:
    """Whether a name means a path on this machine, and not a model on the hub. No such folder exists."""
    parts = re.split(r"[/\\]", name)
    usual = parts[0] == "runs" or os.path.isdir(os.path.dirname(name))
    return len(parts) > 2 or name[:1] in ("~", ".") or (len(parts) > 1 and usual)


def upload(name: str, files: Mapping[str, Path | bytes], *, private: bool = False) -> str:
    """Create the repository ORG/NAME unless it exists, and upload all files in one commit; return its address.

    `private` only matters for a new repository. Raises UsageError for another form of name, NotFound as `folder_of`.
    """
    if not re.fullmatch(r"[^@]+", name) or not NAME.fullmatch(name):
        raise UsageError(f"{name}: expected ORG/NAME, as in my-group/my-model.")
    needs("huggingface_hub", "hub")
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(library_name="bgt")
    with _explained(name):
        address = api.create_repo(name, private=private, exist_ok=True)
        additions = [CommitOperationAdd(path, value) for path, value in files.items()]
        api.create_commit(name, additions, commit_message="BGT model")
    return str(address)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn errors of the hub or the network into NotFound, one line each."""
    from huggingface_hub import constants, errors

    from bgt_core.data.sources import proxy_of

    try:
        yield
    except (errors.LocalEntryNotFoundError, errors.HTTPError, ConnectionError) as error:
        # LocalEntryNotFoundError only says that the cache has no copy either; its cause is the hub's error
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else error
        status = cause.response.status_code if isinstance(cause, errors.HfHubHTTPError) else None
        if isinstance(cause, errors.RevisionNotFoundError):
            reason = "the model on the hub has no such revision; leave it out for the newest."
        elif isinstance(cause, errors.GatedRepoError):
            reason = "the hub asks you to accept its terms first, on the model's page."
        elif isinstance(cause, errors.RepositoryNotFoundError):
            login = "for a private one log in (`hf auth login`, or set HF_TOKEN)"
            reason = f"no such folder here and no such model on the hub; {login}."
        elif status in (401, 403):
            reason = f"no permission ({status}); log in with `hf auth login`, or set HF_TOKEN."
        elif status:
            reason = f"the hub answered {status}; try again later."
        else:
            through, advice = proxy_of(constants.ENDPOINT), "check the network, HF_ENDPOINT and HF_HUB_OFFLINE"
            reason = f"no such folder here, not fetched before, and the hub can't be reached{through}; {advice}."
        raise NotFound(f"{name}: {reason}") from None
