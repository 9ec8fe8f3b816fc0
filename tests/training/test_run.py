"""A run that is killed at any point ends with the same weights after it is resumed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bgt_core import checkpoint, files, training
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, UsageError
from bgt_core.nets.encoders import SIFPooling
from bgt_core.recipes import Recipe
from bgt_core.training.run import KEEP
from tests.close import assert_close

ROOT = Path(__file__).resolve().parents[2]


def sha256(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def rows(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def whole(small_run: Path) -> Path:
    """A run without interruptions."""
    return small_run / "run"


@pytest.fixture
def recipe(whole: Path) -> Recipe:
    return checkpoint.load(whole).recipe


@pytest.fixture
def tsv(small_run: Path) -> Path:
    return small_run / "pairs.tsv"


def one_of_each(reported: list[dict]) -> None:
    """Each step is reported once, in order, and every validation is there."""
    seen = [(row["step"], row["kind"]) for row in reported]
    assert len(seen) == len(set(seen))
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)
    steps = reported[-1]["steps"]
    assert [step for step, kind in seen if kind == "valid"] == [*range(5, steps, 5), steps]
    assert seen[-2:] == [(steps, "train"), (steps, "valid")]


def test_a_run_leaves_what_it_says(whole: Path, recipe: Recipe, tsv: Path) -> None:
    kept = checkpoint.steps_of(whole)
    assert len(kept) == KEEP
    names = {"run.json", "tokenizer.model", "data", "metrics.jsonl"}
    assert {path.name for path in whole.iterdir()} == names | {folder.name for folder in kept}
    reported = checkpoint.load(whole)
    assert reported.folder == kept[-1]
    assert reported.config["step"] == rows(whole)[-1]["steps"] > 15
    assert reported.recipe.arguments == recipe.arguments
    settings = json.loads((whole / "run.json").read_text("utf-8"))
    assert settings == {"recipe": "bgt-small", "arguments": reported.config["arguments"], "data": [f"en-fr={tsv}"]}
    one_of_each(rows(whole))


class Killed(BaseException):
    """What a SIGKILL is to the code it strikes: nothing after it happens."""


@contextlib.contextmanager
def killed(after: int, monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    """The process dies at the `after`-th of the moments at which a run touches the disk."""
    left = [after]

    def fatal(function: Callable) -> Callable:
        def call(*args: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return function(*args, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_tensors", fatal(checkpoint.save_tensors))
        patch.setattr(files, "sync", fatal(files.sync))
        patch.setattr(checkpoint, "sha256_file", fatal(checkpoint.sha256_file))
        patch.setattr(Path, "rename", fatal(Path.rename))
        patch.setattr(os, "replace", fatal(os.replace))
        patch.setattr(shutil, "rmtree", fatal(shutil.rmtree))
        yield


@pytest.mark.slow
def test_a_run_killed_at_any_touch_of_the_disk_ends_in_the_same_weights(
    whole: Path, recipe: Recipe, tsv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed again and again, each time a few moments further on: before, during and after saves."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for folder in checkpoint.steps_of(out):
        shutil.rmtree(folder)  # as after a kill before the first checkpoint
    (out / "metrics.jsonl").write_text("", "utf-8")
    (out / "metrics.jsonl.partial").write_text("{", "utf-8")  # killed while it dropped rows
    draw, deaths, partials = random.Random(1), 0, 0
    while True:
        try:
            with killed(draw.randrange(5, 60), monkeypatch):
                folder = training.resume(out, device="cpu")
            break
        except Killed:
            deaths += 1
            partials += bool(list(out.glob("*.partial")))
            with (out / "metrics.jsonl").open("a", encoding="utf-8") as file:
                file.write('{"kind": "train", "step": 3')  # a row cut off
    assert deaths > 2
    assert partials
    assert sha256(folder) == sha256(checkpoint.steps_of(whole)[-1])
    assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}
    one_of_each(rows(out))


def begin(arguments: list[str]) -> subprocess.Popen:
    """The command in a process of its own, on one thread."""
    code = "import torch; torch.set_num_threads(1); from bgt_core.cli import main; main()"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, "train", *arguments, "--device", "cpu"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_checkpoints(process: subprocess.Popen, out: Path, count: int) -> None:
    """Until the run has saved `count` steps beyond those it began with."""
    before = {path.name for path in checkpoint.steps_of(out)} if out.exists() else set()
    seen: set[str] = set()
    deadline = time.monotonic() + 120
    while len(seen) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "no checkpoint in two minutes"
        if out.exists():
            seen |= {path.name for path in checkpoint.steps_of(out)} - before
        time.sleep(0.002)


@pytest.mark.slow
def test_a_process_killed_or_asked_to_stop_ends_in_the_same_weights(
    whole: Path, recipe: Recipe, tsv: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    sets = [f"--set={name}={json.dumps(value)}" for name, value in recipe.arguments.items() if value != ()]
    last = rows(whole)[-1]["steps"]

    process = begin(["bgt-small", f"--data={tsv}", f"--out={out}", *sets])
    wait_for_checkpoints(process, out, 1)
    process.kill()
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    first = checkpoint.load(out).config["step"]
    assert first < last

    process = begin(["--resume", f"--out={out}"])
    wait_for_checkpoints(process, out, 2)
    process.terminate()
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert output == ""
    assert errors.splitlines()[-1].endswith(f"Continue with: bgt train --resume --out {out}")
    assert "Traceback" not in errors
    second = checkpoint.load(out).config["step"]
    assert first < second < last
    assert rows(out)[-1]["step"] == second
    assert not list(out.glob("*.partial"))

    folder = training.resume(out, device="cpu")
    assert sha256(folder) == sha256(checkpoint.steps_of(whole)[-1])
    reported = rows(out)
    assert len({(row["step"], row["kind"]) for row in reported}) == len(reported)
    assert [row["step"] for row in reported] == sorted(row["step"] for row in reported)


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("trouble", ["bad data", "bad model", "bad tokenizer", "bad device"])
def test_a_run_that_can_not_begin_leaves_nothing(
    existed: bool, trouble: str, tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path
) -> None:
    out, one_column = tmp_path / "run", tmp_path / "pairs.tsv"
    if existed:
        out.mkdir()
    one_column.write_text("only one column\n" * 50, "utf-8")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(BgtError):
        training.train(
            tiny(heads=5) if trouble == "bad model" else tiny(),
            [one_column if trouble == "bad data" else tsv],
            out,
            tokenizer=one_column if trouble == "bad tokenizer" else None,
            device="gpu" if trouble == "bad device" else "cpu",
        )
    assert sorted(tmp_path.iterdir()) == before
    assert not existed or not list(out.iterdir())


def test_a_folder_in_use_is_left_alone(recipe: Recipe, whole: Path, tsv: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for out, message, code in (
        (whole, "resume is needed", 2),
        (tmp_path, "not empty", 2),
        (tmp_path / "notes.txt", "can't be", 3),
        (tmp_path / "notes.txt" / "run", "can't be", 3),
    ):
        with pytest.raises(BgtError, match=message) as error:
            training.train(recipe, [tsv], out, device="cpu")
        assert error.value.exit_code == code
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_no_run_can_not_be_resumed(tmp_path: Path, whole: Path) -> None:
    with pytest.raises(BgtError, match="no run to resume") as error:
        training.resume(tmp_path / "nowhere", device="cpu")
    assert error.value.exit_code == 3
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    for content in ("{", "{}", "[]", '{"recipe": "bgt-small", "arguments": 3}'):
        (out / "run.json").write_text(content)
        with pytest.raises(BgtError, match=r"run\.json: damaged") as error:
            training.resume(out, device="cpu")
        assert error.value.exit_code == 4


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"train.kind_weights": "news:3"}, "no data of kind 'news'; name it with the data"),
        ({"objective.distillation.weight": 1.0}, "is missing: objective.distillation.weight is 1; give vectors"),
        ({"train.mega_batch": 2}, "bgt-small uses no hard negatives"),
        ({"data.vocab_size": 50}, "can't change during a run"),
    ],
)
def test_a_change_that_the_data_do_not_allow_is_refused(
    whole: Path, tmp_path: Path, setting: dict[str, Any], message: str
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    before = (out / "run.json").read_bytes()
    with pytest.raises(UsageError, match=message):
        training.resume(out, device="cpu", overrides=setting)
    assert (out / "run.json").read_bytes() == before


@pytest.mark.slow
def test_defaults_of_torch_change_no_training(tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path) -> None:
    short = tiny("bgt-small", epochs=0.3, batch_tokens=350, micro_tokens=250)
    expected = sha256(training.train(short, [tsv], tmp_path / "plain", device="cpu"))
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        given = training.train(short, [tsv], tmp_path / "other", device="cpu")
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert sha256(given) == expected


SIZES = {
    "average_dim": 12,
    "bound_dim": 8,
    "roles_dim": 16,
    "composed_layers": 1,
    "d_model": 16,
    "ffn_dim": 16,
    "heads": 2,
}
SETTINGS: dict[str, Any] = {f"model.{name}": value for name, value in SIZES.items()} | {
    "model.language_dim": 6,
    "model.decoder_layers": 1,
    "data.vocab_size": 400,
    "data.valid_pairs": 20,
    "train.learning_rate": 1e-2,
    "train.warmup_steps": 0,
}


def average(folder: Path) -> torch.Tensor:
    """The token vectors of a checkpoint's average."""
    parts = checkpoint.load(folder).model.modules()
    return next(part for part in parts if isinstance(part, SIFPooling)).table.weight.detach()


@pytest.fixture
def encoder(tokenizer: Tokenizer, tmp_path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """An encoder that knows the tokens' texts alone, and its vectors."""
    texts = sorted({text.strip() for text in tokenizer.texts()} - {""})
    vectors = np.random.default_rng(0).normal(size=(len(texts), 12)).astype(np.float32)
    np.save(tmp_path / "texts.npy", vectors)
    (tmp_path / "texts.txt").write_text("\n".join(texts), "utf-8")
    return f"vectors:{tmp_path / 'texts.npy'}", dict(zip(texts, vectors, strict=True))


def test_an_average_starts_with_an_encoder_s_vectors_and_a_checkpoint_s_goes_on(
    encoder: tuple[str, dict[str, np.ndarray]], tokenizer: Tokenizer, tsv: Path, tmp_path: Path
) -> None:
    spec, vectors = encoder
    tokenizer.save(tmp_path / "tokenizer.model")
    settings = {**SETTINGS, "model.average_from": spec}
    options: dict[str, Any] = {"tokenizer": tmp_path / "tokenizer.model", "device": "cpu"}
    training.train("bgt-bound", [tsv], tmp_path / "start", overrides=settings | {"train.epochs": 0.0}, **options)
    rows = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    given = np.stack([vectors[text] for text in rows.values()])
    given -= given.mean(0)
    expected = given / np.linalg.norm(given, axis=1).mean()
    assert_close(average(tmp_path / "start")[list(rows)], expected)

    training.train("bgt-bound", [tsv], tmp_path / "learned", overrides=settings | {"train.epochs": 0.2}, **options)
    assert not torch.equal(average(tmp_path / "learned"), average(tmp_path / "start"))
    again = {"train.epochs": 0.0, "data.valid_pairs": 20}
    training.train(
        "bgt-bound", [tsv], tmp_path / "again", init_from=tmp_path / "learned", overrides=again, device="cpu"
    )
    assert torch.equal(average(tmp_path / "again"), average(tmp_path / "learned"))
