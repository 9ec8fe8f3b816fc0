"""Pushed to a hub and loaded from it: the same model, and one clear line for each way it can go wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import bgt_core
from bgt_core import checkpoint
from bgt_core.errors import BgtError
from bgt_core.files import sha256_file

if TYPE_CHECKING:
    from conftest import StandIn

NAME = "my-group/my-model"
TEXTS = ["The dog sleeps.", "", "Where is the station?"]


@pytest.fixture
def push(standin: StandIn, monkeypatch: pytest.MonkeyPatch, bgt: Callable[..., tuple]) -> Callable[..., tuple]:
    """push(path, name, *flags) by somebody logged in: (exit code, stdout, stderr)."""

    def call(*arguments: object, token: str = standin.TOKEN) -> tuple[int, str, str]:
        monkeypatch.setenv("HF_TOKEN", token)
        done = bgt("push", *arguments)
        monkeypatch.delenv("HF_TOKEN")
        return done

    return call


def test_a_pushed_model_loads_by_its_name(standin: StandIn, push: Callable[..., tuple], saved: Path) -> None:
    code, out, err = push(saved, NAME)
    assert (code, out.strip()) == (0, f"{standin.address}/{NAME}"), err
    (files,) = standin.repositories[NAME].values()  # one commit
    assert files.keys() == {"README.md", "config.json", "model.safetensors", "tokenizer.model"}
    assert files["model.safetensors"] == (saved / "model.safetensors").read_bytes()
    expected = bgt_core.load(saved).embed(TEXTS, lang="en")
    assert np.array_equal(bgt_core.load(NAME).embed(TEXTS, lang="en"), expected)
    asked = len(standin.asked)
    bgt_core.load(NAME)
    assert not [line for line in standin.asked[asked:] if "/resolve/" in line]  # what was fetched is kept
    sha = next(iter(standin.repositories[NAME]))
    standin.put(NAME, {"config.json": b"{}"})
    assert np.array_equal(bgt_core.load(f"{NAME}@{sha}").embed(TEXTS, lang="en"), expected)
    with pytest.raises(BgtError, match=r"not a checkpoint's configuration"):
        bgt_core.load(NAME)


def test_the_card_states_the_checkpoint_s_own_figures(
    standin: StandIn, push: Callable[..., tuple], saved: Path, tmp_path: Path
) -> None:
    loaded = checkpoint.load(saved)
    card = {"scores": {"STS": {"semantic": 61.234, "baseline": 50.0}}, "protocol": [{"score": "STS", "how": "so"}]}
    card |= {
        "fidelity": [{"written": "en", "chrF": "66.4 [63.4, 69.4]"}],
        "transfer": [{"style": "tu", "sources": "9"}],
    }
    checkpoint.save(tmp_path / "m", loaded.recipe, loaded.model, loaded.tokenizer, 7, card=card)
    assert push(tmp_path / "m", NAME)[0] == 0
    readme = standin.repositories[NAME].popitem()[1]["README.md"].decode()
    assert readme.startswith("---\nlanguage: [en, fr]\n")
    assert "| STS | 61.23 | 50 |" in readme and "- STS: so." in readme and f'bgt_core.load("{NAME}")' in readme
    assert "## Generated text, beside reference and style" in readme and "| en | 66.4 [63.4, 69.4] |" in readme
    assert "## Style taken over" in readme and "| tu | 9 |" in readme
    assert loaded.config["files"]["model.safetensors"] in readme and str(tmp_path) not in readme
    assert push(saved, "my-group/other")[0] == 0
    assert "Measured" not in standin.repositories["my-group/other"].popitem()[1]["README.md"].decode()


def test_private_repositories_open_to_their_owners_alone(
    standin: StandIn, push: Callable[..., tuple], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert push(saved, NAME, "--private")[0] == 0
    assert standin.private == {NAME}
    with pytest.raises(BgtError, match=r"no such model on the hub; for a private one log in") as error:
        bgt_core.load(NAME)
    assert error.value.exit_code == 3
    monkeypatch.setenv("HF_TOKEN", standin.TOKEN)
    assert bgt_core.load(NAME).langs == ("en", "fr")


def test_what_goes_wrong_is_one_line(
    standin: StandIn, push: Callable[..., tuple], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = push(saved, NAME, token="hf_another")
    assert (code, out) == (3, "") and "no permission (403)" in err and err.count("\n") == 1
    code, _, err = push(saved, "my-model")
    assert code == 2 and "expected ORG/NAME" in err
    standin.put(NAME, {"config.json": b"{}"})
    with pytest.raises(BgtError, match=r"no such revision"):
        bgt_core.load(f"{NAME}@v9")
    standin.broken = 400
    with pytest.raises(BgtError, match=r"the hub answered 400"):
        bgt_core.load("my-group/never-seen")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    with pytest.raises(BgtError, match=r"not fetched before, and the hub can't be reached") as error:
        bgt_core.load("my-group/never-seen")
    assert error.value.exit_code == 3
    code, _, err = push(saved, NAME)
    assert code == 3 and "the hub can't be reached" in err


def test_offline_what_was_fetched_still_loads(
    standin: StandIn, push: Callable[..., tuple], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(saved, NAME)
    bgt_core.load(NAME)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    asked = len(standin.asked)
    assert bgt_core.load(NAME).langs == ("en", "fr")
    with pytest.raises(BgtError, match=r"HF_HUB_OFFLINE"):
        bgt_core.load("my-group/never-seen")
    assert len(standin.asked) == asked


def test_a_folder_of_that_name_wins(
    standin: StandIn, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(saved, tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    assert bgt_core.load(NAME).langs == ("en", "fr")
    assert not standin.asked


def test_without_the_library_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.errors.find_spec", lambda name: None)
    with pytest.raises(BgtError, match=r'no such checkpoint here.*pip install "bgt\[hub\]"') as error:
        bgt_core.load("my-group/my-model")
    assert error.value.exit_code == 3


def test_a_training_state_is_not_pushed(
    push: Callable[..., tuple], standin: StandIn, saved: Path, tmp_path: Path
) -> None:
    shutil.copytree(saved, tmp_path / "m")
    config = json.loads((saved / "config.json").read_text("utf-8"))
    (tmp_path / "m" / "optimizer.safetensors").write_bytes(b"state")
    config["files"]["optimizer.safetensors"] = sha256_file(tmp_path / "m" / "optimizer.safetensors")
    (tmp_path / "m" / "config.json").write_text(json.dumps(config), "utf-8")
    code, _, err = push(tmp_path / "m", NAME)
    assert code == 2 and "bgt export" in err
    assert not standin.repositories
