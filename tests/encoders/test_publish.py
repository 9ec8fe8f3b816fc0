"""A model that is uploaded to a hub and downloaded again has the same vectors. Each error message is one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import errors

import bgt_core
from bgt_core import checkpoint
from bgt_core.errors import BgtError
from bgt_core.files import sha256_file

NAME = "my-group/my-model"
TEXTS = ["The dog sleeps.", "", "Where is the station?"]


class Hub:
    """A fake of the hub's library with repositories in memory. Its functions raise `error`, if it is set."""

    def __init__(self, cache: Path):
        self.cache = cache
        self.error: Any = None
        self.repositories: dict[str, list[dict[str, bytes]]] = {}
        self.private: dict[str, bool] = {}

    def create_repo(self, name: str, *, private: bool, exist_ok: bool) -> str:
        if self.error:
            raise self.error
        self.private.setdefault(name, private)
        return f"https://hub/{name}"

    def create_commit(self, name: str, additions: list[Any], commit_message: str) -> None:
        given = {each.path_in_repo: each.path_or_fileobj for each in additions}
        files = {path: of if isinstance(of, bytes) else Path(of).read_bytes() for path, of in given.items()}
        self.repositories.setdefault(name, []).append(files)

    def snapshot_download(self, name: str, revision: str | None, **_: object) -> str:
        if self.error:
            raise self.error
        commits = self.repositories[name]
        folder = self.cache / name / str(revision)
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in commits[-1 if revision is None else int(revision)].items():
            (folder / path).write_bytes(content)
        return str(folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path / "cache")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda library_name: hub)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    return hub


@pytest.fixture
def push(bgt: Callable[..., tuple]) -> Callable[..., tuple]:
    """push(path, name, *flags): run `bgt export --to hub` with these arguments; return exit code, stdout and stderr."""
    return lambda path, name, *flags: bgt("export", path, "--to", "hub", "--out", name, *flags)


def test_a_pushed_model_loads_by_its_name(hub: Hub, push: Callable[..., tuple], saved: Path) -> None:
    code, out, err = push(saved, NAME, "--private")
    assert (code, out.strip(), hub.private) == (0, f"https://hub/{NAME}", {NAME: True}), err
    (files,) = hub.repositories[NAME]
    assert files.keys() == {"README.md", "config.json", "model.safetensors", "tokenizer.model"}
    assert files["model.safetensors"] == (saved / "model.safetensors").read_bytes()
    hub.repositories[NAME].append(files | {"config.json": b"{}"})
    expected = bgt_core.load(saved).embed(TEXTS, lang="en")
    assert np.array_equal(bgt_core.load(f"{NAME}@0").embed(TEXTS, lang="en"), expected)
    with pytest.raises(BgtError, match=r"not a checkpoint's configuration"):
        bgt_core.load(NAME)


def test_the_card_states_the_checkpoint_s_own_figures(
    hub: Hub, push: Callable[..., tuple], saved: Path, tmp_path: Path
) -> None:
    loaded = checkpoint.load(saved)
    card = {"scores": {"STS": {"semantic": 61.234, "baseline": 50.0}}, "protocol": [{"score": "STS", "how": "so"}]}
    card |= {"fidelity": [{"written": "en", "chrF": "66.4 [63.4, 69.4]"}], "transfer": [{"style": "tu", "n": "9"}]}
    checkpoint.save(tmp_path / "m", loaded.recipe, loaded.model, loaded.tokenizer, 7, card=card)
    assert push(tmp_path / "m", NAME)[0] == push(saved, "my-group/other")[0] == 0
    readme, other = (hub.repositories[name][0]["README.md"].decode() for name in (NAME, "my-group/other"))
    assert readme.startswith("---\nlanguage: [en, fr]\n")
    assert "| STS | 61.23 | 50 |" in readme and "- STS: so." in readme and f'bgt_core.load("{NAME}")' in readme
    assert "## Generated text, beside reference and style" in readme and "| en | 66.4 [63.4, 69.4] |" in readme
    assert "## Style taken over" in readme and "| tu | 9 |" in readme
    assert loaded.config["files"]["model.safetensors"] in readme and str(tmp_path) not in readme
    assert "Measured" not in other


def answer(kind: type[errors.HfHubHTTPError], status: int) -> errors.HfHubHTTPError:
    response: Any = SimpleNamespace(headers={}, status_code=status, request=None)
    return kind("no", response=response)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (answer(errors.RevisionNotFoundError, 404), "no such revision; leave it out for the newest"),
        (answer(errors.GatedRepoError, 403), "accept its terms first"),
        (answer(errors.RepositoryNotFoundError, 404), "no such model on the hub; if the model is private, log in"),
        (answer(errors.HfHubHTTPError, 403), r"no permission \(403\)"),
        (answer(errors.HfHubHTTPError, 400), "the hub answered 400"),
        (errors.LocalEntryNotFoundError("no"), "no copy in the cache, and the hub can't be reached.*HF_HUB_OFFLINE"),
    ],
)
def test_an_error_of_the_hub_is_one_line(
    hub: Hub, push: Callable[..., tuple], saved: Path, error: Any, message: str
) -> None:
    hub.error = error
    with pytest.raises(BgtError, match=message) as raised:
        bgt_core.load("my-group/never-seen")
    code, out, err = push(saved, NAME)
    assert (raised.value.exit_code, code, out) == (3, 3, "") and err.count("\n") == 1


def test_a_name_has_two_parts_and_a_folder_of_that_name_wins(
    hub: Hub, push: Callable[..., tuple], saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = push(saved, "my-model")
    assert code == 2 and "expected ORG/NAME" in err
    shutil.copytree(saved, tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    assert bgt_core.load(NAME).langs == ("en", "fr") and not hub.cache.exists()


def test_without_the_library_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.errors.find_spec", lambda name: None)
    with pytest.raises(BgtError, match=r'no such checkpoint here.*pip install "bgt\[hub\]"') as error:
        bgt_core.load("my-group/my-model")
    assert error.value.exit_code == 3


def test_a_training_state_is_not_pushed(push: Callable[..., tuple], hub: Hub, saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "m")
    config = json.loads((saved / "config.json").read_text("utf-8"))
    (tmp_path / "m" / "optimizer.safetensors").write_bytes(b"state")
    config["files"]["optimizer.safetensors"] = sha256_file(tmp_path / "m" / "optimizer.safetensors")
    (tmp_path / "m" / "config.json").write_text(json.dumps(config), "utf-8")
    code, _, err = push(tmp_path / "m", NAME)
    assert code == 2 and "bgt export" in err
    assert not hub.repositories
