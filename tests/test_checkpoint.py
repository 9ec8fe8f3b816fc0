"""Damaged checkpoints are refused, checkpoints are found by name, and loading never unpickles code."""

import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import bgt_core
from bgt_core import checkpoint, files, recipes
from bgt_core.contracts import Batch
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError
from bgt_core.recipes import Recipe


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def rehash(folder: Path) -> None:
    """Update the hashes in a checkpoint's configuration after files have changed, as an attacker would."""
    change(folder, lambda config: config["files"].update({name: sha256(folder / name) for name in config["files"]}))


def change(folder: Path, edit: Callable[[dict], object]) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    edit(config)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def weights(folder: Path) -> Path:
    return folder / "model.safetensors"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def rewrite(folder: Path, edit: Callable[[dict], object]) -> None:
    tensors = load_file(weights(folder))
    edit(tensors)
    save_file(tensors, weights(folder))
    rehash(folder)


def name_of(folder: Path, part: str) -> str:
    return next(name for name in load_file(weights(folder)) if part in name)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped bit": (lambda path: flip(weights(path)), r"model\.safetensors: damaged"),
    "weights that are a pickle": (
        lambda path: (weights(path).write_bytes(pickle.dumps({"a": 1})), rehash(path)),
        r"model\.safetensors: not a safetensors file",
    ),
    "no tokenizer": (lambda path: (path / "tokenizer.model").unlink(), r"tokenizer\.model: missing"),
    "another tokenizer": (
        lambda path: ((path / "tokenizer.model").write_bytes(b"words"), rehash(path)),
        r"tokenizer\.model: .*SentencePiece",
    ),
    "a parameter less": (
        lambda path: rewrite(path, lambda tensors: tensors.pop(name_of(path, "norm_feed.bias"))),
        r"model\.safetensors: parameter '.*norm_feed\.bias' is missing",
    ),
    "a parameter more": (
        lambda path: rewrite(path, lambda tensors: tensors.update(extra=torch.zeros(1))),
        r"model\.safetensors: parameter 'extra' is not in this recipe",
    ),
    "another shape": (
        lambda path: rewrite(path, lambda tensors: tensors.update({name_of(path, "norm_feed.bias"): torch.zeros(3)})),
        r"model\.safetensors: parameter '.*norm_feed\.bias' has shape \[3\], but the recipe needs \[16\]",
    ),
    "no JSON": (lambda path: (path / "config.json").write_text("{", "utf-8"), r"config\.json: not valid JSON"),
    "JSON of something else": (lambda path: (path / "config.json").write_text("3"), r"config\.json: .*recipe"),
    "arguments that are a list": (
        lambda path: change(path, lambda config: config.update(arguments=["d_model"])),
        r"config\.json: .*arguments",
    ),
    "another format": (
        lambda path: change(path, lambda config: config.update(format=99)),
        r"config\.json: has format 99",
    ),
    "an unknown recipe": (
        lambda path: change(path, lambda config: config.update(recipe="gpt")),
        r"config\.json: .*'gpt'",
    ),
    "an unknown argument": (
        lambda path: change(path, lambda config: config["arguments"].update(depth=3)),
        r"config\.json: .*'depth'",
    ),
    "an impossible argument": (
        lambda path: change(path, lambda config: config["arguments"].update({"model.heads": 5})),
        r"config\.json: .*5 heads",
    ),
    "weights it does not name": (
        lambda path: change(path, lambda config: config["files"].pop("model.safetensors")),
        r"config\.json: does not list model\.safetensors",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_with_its_file(copy: Path, damage: str) -> None:
    harm, message = DAMAGE[damage]
    checkpoint.load(copy)  # the undamaged copy loads
    harm(copy)
    with pytest.raises(BgtError, match=message) as error:
        bgt_core.load(copy)
    assert error.value.exit_code == 4
    assert str(copy) in str(error.value)


def test_what_is_not_there_is_absent(tmp_path: Path) -> None:
    for folder, message in ((tmp_path / "nowhere", "no such checkpoint.* bgt-en-fr"), (tmp_path, "no checkpoint here")):
        with pytest.raises(BgtError, match=message) as error:
            bgt_core.load(folder)
        assert error.value.exit_code == 3
        assert str(folder) in str(error.value)


def test_training_does_not_continue_without_the_optimizers_state(saved: Path) -> None:
    model = checkpoint.load(saved).model
    with pytest.raises(BgtError, match=r"optimizer\.safetensors: missing") as error:
        checkpoint.fill_optimizer(model, torch.optim.AdamW(model.parameters()), saved)
    assert error.value.exit_code == 3


def test_nothing_is_unpickled(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pickle was read")

    monkeypatch.setattr(torch, "load", refuse)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert bgt_core.load(copy).embed(["The dog."], lang="en").shape == (1, 12)


def test_loading_is_exact_and_from_a_run_takes_the_newest(saved: Path, tmp_path: Path) -> None:
    for step in (3, 12, 7):
        shutil.copytree(saved, tmp_path / f"step-{step:07d}")
        change(tmp_path / f"step-{step:07d}", lambda config, step=step: config.update(step=step))
    shutil.copytree(saved, tmp_path / "step-0000099.partial")
    (tmp_path / "step-0000050").mkdir()
    loaded = checkpoint.load(tmp_path)
    assert loaded.config["step"] == 12
    for name, parameter in loaded.model.named_parameters():
        assert torch.equal(parameter, load_file(weights(saved))[name])


def test_saving_replaces_nothing(saved: Path, copy: Path, tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    before = {path.name: sha256(path) for path in copy.iterdir()}
    with pytest.raises(BgtError, match="exists already") as error:
        checkpoint.save(copy, tiny(), tiny().build(tokenizer), tokenizer, step=1)
    assert error.value.exit_code == 2
    assert {path.name: sha256(path) for path in copy.iterdir()} == before


def test_a_save_that_dies_leaves_nothing_that_loads(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny()
    model = recipe.build(tokenizer)
    calls = []

    def die(path: Path) -> None:
        calls.append(path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync", die)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.save(tmp_path / "step-0000001", recipe, model, tokenizer, step=1)
    assert calls
    assert not (tmp_path / "step-0000001").exists()
    with pytest.raises(BgtError, match="no checkpoint here"):
        checkpoint.load(tmp_path)
    checkpoint.save(tmp_path / "step-0000001", recipe, model, tokenizer, step=1)  # saving removes partial files
    assert checkpoint.load(tmp_path).config["step"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["step-0000001"]


def test_half_precision_is_near_and_half_as_large(
    saved: Path, tmp_path: Path, batch: Batch, tokenizer: Tokenizer
) -> None:
    loaded = checkpoint.load(saved)
    checkpoint.save(tmp_path / "half", loaded.recipe, loaded.model, tokenizer, step=7, dtype=torch.float16)
    assert weights(tmp_path / "half").stat().st_size < 0.6 * weights(saved).stat().st_size
    again = checkpoint.load(tmp_path / "half")
    side = batch.sides["en"]
    for name, one, other in zip("sef", loaded.model.encoders.values(), again.model.encoders.values(), strict=True):
        full, half = one.eval()(side).mean, other.eval()(side).mean
        assert half.dtype == torch.float32
        assert (full - half).norm() < 5e-3 * full.norm(), name


def test_info_says_what_there_is(saved: Path, copy: Path) -> None:
    loaded = checkpoint.info(saved)
    assert json.loads(json.dumps(loaded)) == loaded
    assert (loaded["recipe"], loaded["step"], loaded["format"]) == ("bgt-small", 7, 3)
    assert loaded["arguments"]["model.semantic_dim"] == 12
    assert loaded["files"] == {name: sha256(saved / name) for name in ("model.safetensors", "tokenizer.model")}
    assert loaded["bytes"]["model.safetensors"] == weights(saved).stat().st_size
    flip(weights(copy))
    with pytest.raises(BgtError, match="damaged"):
        checkpoint.info(copy)


@pytest.mark.parametrize("folder", sorted(bgt_core.PRETRAINED.parent.iterdir()), ids=lambda folder: folder.name)
def test_a_model_that_ships_says_how_it_was_made(folder: Path) -> None:
    config = checkpoint.read_config(folder)
    settings = json.loads(json.dumps(dict(recipes.configure(config["recipe"], config["arguments"]).arguments or {})))
    assert config["arguments"].items() <= settings.items()
    assert config["card"]["scores"]


def test_models_that_ship_are_opened_by_name_unless_a_folder_is_called_so(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = bgt_core.load("bgt-multilingual")
    assert shipped.fingerprint == bgt_core.load(bgt_core.PRETRAINED.parent / "bgt-multilingual").fingerprint
    assert shipped.fingerprint != bgt_core.load().fingerprint
    copy.rename(tmp_path / "bgt-multilingual")
    assert bgt_core.load("bgt-multilingual").fingerprint != shipped.fingerprint
    for name in ("bgt-other", "..", ""):
        with pytest.raises(BgtError):
            bgt_core.load(name)


class Counting(nn.Module):
    """A model with a linear layer and three buffers, one of them not persistent."""

    mean: torch.Tensor
    batches: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scratch", torch.zeros(5), persistent=False)
        self.same = self.linear  # a second name for the same weights, which are stored once


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_buffers_that_persist_are_kept(
    dtype: torch.dtype, tiny: Callable[..., Recipe], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = Counting()
    model.mean += torch.tensor([0.5, -2.0, 3.0])
    model.batches += 123_457  # float16 can't represent this number
    checkpoint.save(tmp_path / "model", tiny(), model, tokenizer, step=1, dtype=dtype)  # type: ignore[arg-type]
    stored = load_file(tmp_path / "model" / "model.safetensors")
    assert set(stored) == {"linear.weight", "linear.bias", "mean", "batches"}
    again = Counting()
    assert checkpoint.fill(again, tmp_path / "model" / "model.safetensors") == []
    assert again.mean.tolist() == [0.5, -2.0, 3.0]
    assert again.batches.item() == 123_457
    assert torch.equal(again.linear.weight.to(dtype), model.linear.weight.to(dtype))
