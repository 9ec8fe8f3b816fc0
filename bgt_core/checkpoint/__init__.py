"""A checkpoint: a folder of plain files, each checked against its hash when it is read.

    config.json             recipe, arguments, step, sizes, hashes; written last
    model.safetensors       weights
    tokenizer.model         SentencePiece
    optimizer.safetensors   only while training: AdamW's moments
    metrics.jsonl           only of an exported model: the rows of its run

Nothing is ever unpickled. A folder is written under another name and then renamed, so a checkpoint is always whole.
What reads or writes weights is in `weights`; it is imported when it is used, because torch takes a second.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bgt_core.errors import BgtError, DataError, NotFound, UsageError, needs
from bgt_core.files import read_json, sha256_file

if TYPE_CHECKING:
    from bgt_core.checkpoint.weights import Checkpoint as Checkpoint
    from bgt_core.checkpoint.weights import fill_optimizer as fill_optimizer
    from bgt_core.checkpoint.weights import load as load
    from bgt_core.checkpoint.weights import load_tensors as load_tensors
    from bgt_core.checkpoint.weights import save as save
    from bgt_core.checkpoint.weights import save_tensors as save_tensors
    from bgt_core.checkpoint.weights import warm_start as warm_start

CONFIG, WEIGHTS, TOKENIZER, OPTIMIZER = "config.json", "model.safetensors", "tokenizer.model", "optimizer.safetensors"
METRICS = "metrics.jsonl"
KINDS_OF_FOLDERS = {"modules.json": "sentence-transformers", "onnx.json": "onnx", "split.json": "split"}
PLAIN = re.compile(r"[\w-][\w.-]{0,199}")  # the name of a file in the checkpoint's own folder
MAYBE = {"version": str, "parameters": int}  # optional entries of a configuration
FORMAT = 3


def find(path: Path | str) -> Path:
    """The checkpoint at `path`: itself, or a run's newest; ORG/NAME or ORG/NAME@REVISION of the hub."""
    if not isinstance(path, str | PathLike):
        raise UsageError(f"{path}: expected a folder, or the name of a model", parameter="path")
    path = folder_of(path)
    if not os.path.exists(path):
        raise NotFound(
            f"{path}: no such checkpoint. Train one with `bgt train`, or leave --model out for the one that ships."
        )
    if other := kind_of_folder(path):
        raise UsageError(f"{path}: a folder of {other}, not a checkpoint of ours: spell it {other}:{path}")
    if (path / CONFIG).is_file():
        return path
    if newest := steps_of(path):
        return newest[-1]
    raise NotFound(f"{path}: no checkpoint here: it has no {CONFIG} and no step-* folder with one.")


def steps_of(run: Path) -> list[Path]:
    """The complete checkpoints of a run, oldest first."""
    found = [path for path in run.glob("step-*") if path.name[5:].isdigit() and (path / CONFIG).is_file()]
    return sorted(found, key=lambda path: int(path.name[5:]))


def kind_of_folder(folder: Path) -> str:
    """The kind of encoder whose files the folder holds, if it is not ours; "" for a checkpoint, or for other folders.
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
    """Whether a folder of sentence-transformers has modules of ours alone: it is then a checkpoint, and no other
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
    if not isinstance(card, dict):
        raise DataError(f"{source}: its card is not a JSON object.")
    scores = card.get("scores", {})
    if not isinstance(scores, dict) or not all(_is_plain(row) or _is_record(row) for row in scores.values()):
        raise DataError(f"{source}: the scores of its card are not {{measure: {{column: number}}}}.")
    for name, needed in CARD_LISTS.items():
        records = card.get(name, [])
        if not isinstance(records, list) or not all(map(_is_record, records)):
            raise DataError(f"{source}: '{name}' in its card is not a list of records.")
        for record in records:
            if missing := [key for key, kind in needed.items() if not isinstance(record.get(key), kind)]:
                raise DataError(f"{source}: '{name}' in its card has a record without '{missing[0]}'.")
    for name in ("fidelity", "kept", "transfer", "roles"):
        if len({tuple(record) for record in card.get(name, [])}) > 1:
            raise DataError(f"{source}: the records of '{name}' in its card have different columns.")
    return card


def _is_plain(value: object) -> bool:
    """Whether it is a single value: a number, a text, or null."""
    return value is None or isinstance(value, int | float | str)


def _is_record(value: object) -> bool:
    """Whether it is a JSON object of such values, or of lists of them."""
    if not isinstance(value, dict):
        return False
    return all(_is_plain(cell) for cells in value.values() for cell in (cells if isinstance(cells, list) else [cells]))


# Fetch models from the Hugging Face hub, and upload them. Needs the extra `hub`. HF_TOKEN or `hf auth login` identifies
# the user, HF_ENDPOINT names another hub, HF_HUB_OFFLINE=1 uses the cache alone.

NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(\S+))?")  # ORG/NAME, ORG/NAME@REVISION
SHIPPED = Path(__file__).resolve().parents[1] / "pretrained"  # a folder for each model inside the package
FILES = ["config.json", "metrics.jsonl", "model.safetensors", "tokenizer.model"]


def folder_of(name: str | Path) -> Path:
    """Find the folder that `name` means: an existing folder, the model that ships under that name, or a download from
    the hub.

    Files are kept in the hub's own cache, and fetched again only when they have changed. Raises NotFound without such a
    model or revision, permission, or connection.
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
    """Whether a name that is no folder here is a path of this machine, not one to look for on the hub."""
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
    from huggingface_hub import errors

    try:
        yield
    except (errors.LocalEntryNotFoundError, errors.HTTPError, ConnectionError) as error:
        # LocalEntryNotFoundError only says that the cache has no copy either; its cause is the hub's error
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else error
        raise NotFound(f"{name}: {_reason(cause)}") from None


def _reason(error: BaseException | None) -> str:
    from huggingface_hub import constants, errors

    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else None
    match error:
        case errors.RevisionNotFoundError():
            return "the model on the hub has no such revision; leave it out for the newest."
        case errors.GatedRepoError():
            return "the hub asks you to accept its terms first, on the model's page."
        case errors.RepositoryNotFoundError():
            login = "for a private one log in (`hf auth login`, or set HF_TOKEN)"
            return f"no such folder here and no such model on the hub; {login}."
        case _ if status in (401, 403):
            return f"no permission ({status}); log in with `hf auth login`, or set HF_TOKEN."
        case _ if status:
            return f"the hub answered {status}; try again later."
    from bgt_core.data.web import proxy_of

    through, advice = proxy_of(constants.ENDPOINT), "check the network, HF_ENDPOINT and HF_HUB_OFFLINE"
    return f"no such folder here, not fetched before, and the hub can't be reached{through}; {advice}."


def __getattr__(name: str) -> Any:
    if name not in {"Checkpoint", "fill_optimizer", "load", "load_tensors", "save", "save_tensors", "warm_start"}:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module("bgt_core.checkpoint.weights"), name)
