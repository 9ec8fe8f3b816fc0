"""Save, find and load checkpoints. A checkpoint is a folder with these files:

    config.json             recipe, arguments, step, number of parameters, and the hashes of the other files
    model.safetensors       weights
    tokenizer.model         SentencePiece model
    optimizer.safetensors   the state of AdamW; only in checkpoints from which training can continue
    metrics.jsonl           the metrics of the training run; only in exported models

Loading compares each file with its hash, and unpickles nothing. Saving writes the folder under another name and then
renames it, so that no checkpoint is incomplete. Only functions that need torch import it: the import takes a second.
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
    from bgt_core.models.bgt import LatentModel
    from bgt_core.recipes import Recipe

CONFIG, WEIGHTS, TOKENIZER, OPTIMIZER = "config.json", "model.safetensors", "tokenizer.model", "optimizer.safetensors"
METRICS = "metrics.jsonl"
KINDS_OF_FOLDERS = {"modules.json": "sentence-transformers", "onnx.json": "onnx", "split.json": "split"}
PLAIN = re.compile(r"[\w-][\w.-]{0,199}")  # pattern of a file name without a folder
MAYBE = {"version": str, "parameters": int}  # optional entries of config.json, and their types
FORMAT = 3


def find(path: Path | str) -> Path:
    """Return the folder of a checkpoint. `path` is this folder, the folder of a training run (whose newest checkpoint
    is used), the name of a shipped model, or ORG/NAME or ORG/NAME@REVISION on the Hugging Face hub."""
    if not isinstance(path, str | PathLike):
        raise UsageError(f"{path}: expected a folder, or the name of a model", parameter="path")
    path = folder_of(path)
    if not os.path.exists(path):
        names = ", ".join(sorted(os.listdir(SHIPPED)))
        raise NotFound(f"{path}: no such checkpoint. Train one with `bgt train`, or use a shipped model: {names}.")
    if other := kind_of_folder(path):
        raise UsageError(f"{path}: contains an encoder of the kind {other}, not a bgt checkpoint; write {other}:{path}")
    if (path / CONFIG).is_file():
        return path
    if newest := steps_of(path):
        return newest[-1]
    raise NotFound(f"{path}: no checkpoint here: expected {CONFIG} in this folder, or in a folder step-* inside it.")


def steps_of(run: Path) -> list[Path]:
    """List the checkpoints of a training run, oldest first."""
    found = [path for path in run.glob("step-*") if path.name[5:].isdigit() and (path / CONFIG).is_file()]
    return sorted(found, key=lambda path: int(path.name[5:]))


def kind_of_folder(folder: Path) -> str:
    """Return "sentence-transformers", "onnx" or "split" if a folder contains a model in this format, and "" for all
    other folders, such as checkpoints. UsageError if a folder contains models in two of these formats."""
    kinds = [kind for name, kind in KINDS_OF_FOLDERS.items() if (folder / name).is_file()]
    # A checkpoint that was exported for sentence-transformers counts as a checkpoint, not as another encoder.
    if kinds[:1] == ["sentence-transformers"] and "bgt_core" in (folder / "modules.json").read_text("utf-8", "replace"):
        kinds = kinds[1:]
    if len(kinds) > 1:
        spellings = " or ".join(f"{kind}:{folder}" for kind in kinds)
        raise UsageError(f"{folder}: contains encoders of several kinds; choose one with {spellings}")
    return kinds[0] if kinds else ""


def own_modules(folder: Path) -> bool:
    """Whether all modules of a sentence-transformers folder are from this package. If so, `load` can open the folder as
    a checkpoint, without running code of other packages."""
    path = folder / "modules.json"
    modules = read_json(path) if path.is_file() else []
    types = [module.get("type") if isinstance(module, dict) else None for module in modules]
    return bool(types) and all(each == "bgt_core.encoders.sentence_transformers.BGTModule" for each in types)


def read_config(folder: Path) -> dict[str, Any]:
    """Read and check the configuration of a checkpoint. DataError if it is damaged or has another format version."""
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
        raise DataError(f"{path}: not a checkpoint's configuration: {', '.join(wrong)} missing or of a wrong type.")
    check_card(config.get("card", {}), str(path))
    if config["format"] != FORMAT:
        raise DataError(
            f"{path}: has format {config['format']}, but this version of bgt reads only format {FORMAT}. Install the "
            "version that wrote the checkpoint."
        )
    return config


def verify(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise DataError unless each file that the configuration lists exists and has the listed hash."""
    files = config["files"]
    for name in (WEIGHTS, TOKENIZER):
        if name not in files:
            raise DataError(f"{folder / CONFIG}: does not list {name}, a file that every checkpoint needs.")
    for name, expected in files.items():
        if not PLAIN.fullmatch(name):
            raise DataError(f"{folder / CONFIG}: lists {name!r}; expected the names of files in the same folder.")
        if not (folder / name).is_file():
            raise DataError(f"{folder / name}: missing. Copy the checkpoint again.")
        actual = sha256_file(folder / name)
        if actual != expected:
            raise DataError(
                f"{folder / name}: damaged: the hash of this file is {actual[:12]}, but {CONFIG} lists "
                f"{str(expected)[:12]}. Copy the checkpoint again."
            )


def info(path: Path | str) -> dict[str, Any]:
    """Check the hashes of a checkpoint. Return its configuration, its folder and the size of each file in bytes."""
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
    """A loaded checkpoint: its folder, configuration, model and tokenizer."""

    folder: Path
    config: Mapping[str, Any]
    model: LatentModel
    tokenizer: Tokenizer

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe with all settings of the checkpoint; DataError if a setting is invalid."""
        with _blamed(self.folder):
            return recipes.configure(self.config["recipe"], self.config["arguments"])


@contextmanager
def _blamed(folder: Path) -> Iterator[None]:
    """Turn a UsageError about a setting that is stored in a checkpoint into a DataError that names the checkpoint."""
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
    """Save a checkpoint as a new folder.

    Args:
        folder: The folder to create.
        recipe, model, tokenizer: The trained model, its recipe and its tokenizer.
        step: Number of updates so far.
        optimizer: The AdamW optimiser. If it is given, training can continue from the checkpoint.
        dtype: Precision of the stored weights, by default float32.
        metrics: The content of the run's metrics.jsonl.
        card: The content of the model card, such as scores.

    Raises:
        UsageError: The folder exists already.
        Diverged: The weights contain NaN or infinity.
        NotFound: The folder can't be written.
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
            state = {  # keys look like "exp_avg/encoders.en.body..."; frozen parameters have no state
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
        for path in partial.glob("*.safetensors"):  # safetensors lets only the owner read its files
            shutil.copymode(partial / CONFIG, path)


def load(path: Path | str, device: torch.device | str = "cpu") -> Checkpoint:
    """Load the checkpoint that `find` returns for `path`. NotFound or DataError if a file is missing or damaged."""
    import torch
    from torch.overrides import TorchFunctionMode

    from bgt_core.data.text import Tokenizer

    class WithoutValues(TorchFunctionMode):
        """A context that skips the random initialisation of a model's parameters, because `load` replaces their values.
        On the meta device, initialisation would also import torch's compiler, which takes a second."""

        def __torch_function__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__module__", "") == torch.nn.init.__name__:
                return kwargs["tensor"]
            if func in (torch.Tensor.uniform_, torch.Tensor.normal_):
                return args[0]
            return func(*args, **(kwargs or {}))

    folder = find(path)
    config = read_config(folder)
    verify(folder, config)
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    with _blamed(folder):
        sizes, columns = recipes.stored_model(config["recipe"], config["arguments"])
        # Check shapes on the meta device, which needs no memory even if a damaged configuration demands a huge model.
        with torch.device("meta"), WithoutValues():
            check_shapes(sizes.make_model(tokenizer, columns), folder / WEIGHTS, all_names=True)
        with torch.device("cpu"), WithoutValues():  # on the CPU even if torch's default device is another
            model = sizes.make_model(tokenizer, columns).float()
    fill(model, folder / WEIGHTS)
    return Checkpoint(folder, config, model.to(device), tokenizer)


def save_tensors(values: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file; NotFound if it can't be written."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(dict(values), path)
    except SafetensorError as error:  # safetensors raises this error instead of OSError
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
    """Yield (name, tensor) for all parameters and persistent buffers; a shared tensor is yielded once."""
    persistent = model.state_dict(keep_vars=True)
    seen: set[int] = set()
    for name, tensor in [*model.named_parameters(), *persistent.items()]:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def check_shapes(model: nn.Module, path: Path, all_names: bool) -> None:
    """Raise DataError if a tensor has another shape in the model than in the file. With `all_names`, also raise it if a
    tensor is missing in the model or in the file. Reads only the file's header."""
    from safetensors import safe_open

    with _readable(path), safe_open(path, "pt") as file:
        stored = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    own = {name: list(tensor.shape) for name, tensor in tensors(model)}
    for name in sorted(own.keys() ^ stored.keys() if all_names else ()):
        raise DataError(f"{path}: parameter '{name}' is {'missing' if name in own else 'not in this recipe'}.")
    for name in sorted(own.keys() & stored.keys()):
        if own[name] != stored[name]:
            raise DataError(f"{path}: parameter '{name}' has shape {stored[name]}, but the recipe needs {own[name]}.")


def warm_start(model: nn.Module, folder: Path) -> list[str]:
    """Copy the weights of a checkpoint to the model's tensors of the same names. Return the names of all other tensors
    of the model, which keep their values. DataError if no name matches, or if shapes differ."""
    path = folder / WEIGHTS
    check_shapes(model, path, all_names=False)
    others = fill(model, path)
    if len(others) == len(list(tensors(model))):
        raise DataError(f"{path}: can't be used for init_from: it has no parameter that the model of this recipe has.")
    return others


def fill(model: nn.Module, path: Path) -> list[str]:
    """Copy the tensors of a safetensors file to the model's tensors with the same names. Return the names of all other
    tensors of the model. DataError if a stored tensor contains NaN or infinity."""
    weights, others = load_tensors(path), []
    for name, tensor in tensors(model):
        if (value := weights.get(name)) is None:
            others.append(name)
            continue
        # If any value is NaN or infinite, so is the minimum or the maximum. Testing only these is 30 times as fast.
        if value.is_floating_point() and value.numel() and not all(end.isfinite() for end in value.aminmax()):
            raise DataError(
                f"{path}: parameter '{name}' contains NaN or infinity: training diverged. Use an older checkpoint."
            )
        tensor.detach().copy_(value)
    return others


def fill_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> None:
    """Restore AdamW's state from a checkpoint; NotFound if the checkpoint does not contain this state."""
    path = folder / OPTIMIZER
    if not path.is_file():
        raise NotFound(f"{path}: missing. Training can only continue from checkpoints of runs, not from exported ones.")
    state = load_tensors(path)
    for name, parameter in model.named_parameters():
        for key in ("step", "exp_avg", "exp_avg_sq"):
            if (value := state.get(f"{key}/{name}")) is not None:  # parameters that never had a gradient have no state
                optimizer.state[parameter][key] = value.to(parameter.device)


CARD_LISTS: Mapping[str, Mapping[str, Any]] = {  # name of a list of objects in a model card -> required fields
    "protocol": {"score": str, "how": str},
    "probes": {"task": str, "latent": str, "ci_low": int | float, "ci_high": int | float},
    "data": {"source": str},
    "fidelity": {},
    "kept": {},
    "transfer": {},
    "roles": {},
}


def check_card(card: object, source: str) -> Mapping[str, Any]:
    """Check that a model card has the form that the app and the model's README need. If not, raise a DataError that
    names `source`.

    The entry `scores` must be {measure: number} or {measure: {column: number or text}}. The entries that are in
    `CARD_LISTS` must be lists of JSON objects. Each object must have the fields that `CARD_LISTS` requires; if it
    requires none, all objects of the list must have the same fields. Other entries are not checked.
    """

    def is_plain(value: object) -> bool:
        return value is None or isinstance(value, int | float | str)

    def is_record(value: object) -> bool:  # a JSON object of numbers, strings, and lists of these
        return isinstance(value, dict) and all(
            all(map(is_plain, cells)) if isinstance(cells, list) else is_plain(cells) for cells in value.values()
        )

    if not isinstance(card, dict):
        raise DataError(f"{source}: the model card must be a JSON object.")
    scores = card.get("scores", {})
    if not isinstance(scores, dict) or not all(is_plain(row) or is_record(row) for row in scores.values()):
        raise DataError(f"{source}: the scores of the model card must be {{measure: {{column: number}}}}.")
    for name, needed in CARD_LISTS.items():
        records = card.get(name, [])
        if not isinstance(records, list) or not all(map(is_record, records)):
            raise DataError(f"{source}: '{name}' in the model card must be a list of JSON objects.")
        for record in records:
            if missing := [key for key, kind in needed.items() if not isinstance(record.get(key), kind)]:
                raise DataError(f"{source}: '{name}' in the model card has an item without a valid '{missing[0]}'.")
        if not needed and len({tuple(record) for record in records}) > 1:
            raise DataError(f"{source}: all items of '{name}' in the model card must have the same fields.")
    return card


# The rest of this module downloads models from the Hugging Face hub, and uploads them. It needs the extra `hub`. Users
# log in with HF_TOKEN or `hf auth login`. HF_ENDPOINT sets another hub. With HF_HUB_OFFLINE=1, only the cache is used.

NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(\S+))?")  # matches ORG/NAME and ORG/NAME@REVISION
SHIPPED = Path(__file__).resolve().parent / "pretrained"  # the folder with the shipped models
FILES = ["config.json", "metrics.jsonl", "model.safetensors", "tokenizer.model"]


def folder_of(name: str | Path) -> Path:
    """Return the folder with this name: an existing folder, a shipped model, or a model that we download from the hub.

    Downloads stay in the cache of `huggingface_hub`. Raises NotFound if the model or revision is unknown, if the user
    has no permission, and if there is no connection.
    """
    if os.path.exists(name):  # Path.exists would raise an error for a name that is too long
        return Path(name)
    if re.fullmatch(r"\w[\w.-]*", str(name)) and os.path.isdir(SHIPPED / name):
        return SHIPPED / name
    match = NAME.fullmatch(str(name))
    if not match or is_path(str(name)):
        return Path(name)
    try:
        needs("huggingface_hub", "hub")
    except BgtError as error:
        raise NotFound(f"{name}: no such checkpoint here, and the hub can't be searched. {error}") from None
    from huggingface_hub import snapshot_download

    repository, revision = match.groups()
    with _explained(str(name)):
        return Path(snapshot_download(repository, revision=revision, allow_patterns=FILES, library_name="bgt"))


def is_path(name: str) -> bool:
    """Whether a name looks like a path on this machine, not like a model on the hub. The path need not exist."""
    parts = re.split(r"[/\\]", name)
    usual = parts[0] == "runs" or os.path.isdir(os.path.dirname(name))
    return len(parts) > 2 or name[:1] in ("~", ".") or (len(parts) > 1 and usual)


def upload(name: str, files: Mapping[str, Path | bytes], *, private: bool = False) -> str:
    """Upload files to the repository ORG/NAME on the hub in one commit, and return the repository's URL.

    Creates the repository if it does not exist; `private` then makes it private. Raises UsageError if the name is not
    ORG/NAME, and NotFound in the same cases as `folder_of`.
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
    """Turn errors of the hub or the network into a NotFound error with a message of one line."""
    from huggingface_hub import constants, errors

    from bgt_core.data.fetch import proxy_of

    try:
        yield
    except (errors.LocalEntryNotFoundError, errors.HTTPError, ConnectionError) as error:
        # LocalEntryNotFoundError only says that the files are missing; its cause is the hub's own error
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else error
        status = cause.response.status_code if isinstance(cause, errors.HfHubHTTPError) else None
        if isinstance(cause, errors.RevisionNotFoundError):
            reason = "the model on the hub has no such revision; leave it out for the newest."
        elif isinstance(cause, errors.GatedRepoError):
            reason = "accept its terms first, on the model's page on the hub."
        elif isinstance(cause, errors.RepositoryNotFoundError):
            login = "if the model is private, log in (`hf auth login`, or set HF_TOKEN)"
            reason = f"no such folder here and no such model on the hub; {login}."
        elif status in (401, 403):
            reason = f"no permission ({status}); log in with `hf auth login`, or set HF_TOKEN."
        elif status:
            reason = f"the hub answered {status}; try again later."
        else:
            through, advice = proxy_of(constants.ENDPOINT), "check the network, HF_ENDPOINT and HF_HUB_OFFLINE"
            reason = f"no such folder here, no copy in the cache, and the hub can't be reached{through}; {advice}."
        raise NotFound(f"{name}: {reason}") from None
