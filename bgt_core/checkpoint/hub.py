"""Fetch models from the Hugging Face hub, and upload them. Needs the extra `hub`.

HF_TOKEN or `hf auth login` identifies the user, HF_ENDPOINT names another hub, HF_HUB_OFFLINE=1 uses the cache alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bgt_core.errors import BgtError, NotFound, UsageError, needs

NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(\S+))?")  # ORG/NAME, ORG/NAME@REVISION
SHIPPED = Path(__file__).resolve().parents[1] / "pretrained"  # a folder for each model inside the package
FILES = ["config.json", "metrics.jsonl", "model.safetensors", "tokenizer.model"]


def folder(name: str | Path) -> Path:
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


def push(name: str, files: Mapping[str, Path | bytes], *, private: bool = False) -> str:
    """Create the repository ORG/NAME unless it exists, and upload all files in one commit; return its address.

    `private` only matters for a new repository. Raises UsageError for another form of name, and NotFound as `folder`.
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
