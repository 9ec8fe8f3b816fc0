"""A training run that was killed at any point and resumed ends with the same weights; invalid runs are refused."""

import contextlib
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
from tests.runs import weights

ROOT = Path(__file__).resolve().parents[2]


def rows(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]


def one_of_each(reported: list[dict]) -> None:
    """Check that no row of the metrics occurs twice, that all validations are there, and that steps are in order."""
    seen = [(row["step"], row["kind"]) for row in reported]
    assert len(seen) == len(set(seen))
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)
    steps = reported[-1]["steps"]
    assert [step for step, kind in seen if kind == "valid"] == [*range(5, steps, 5), steps]
    assert seen[-2:] == [(steps, "train"), (steps, "valid")]


def test_a_run_folder_has_its_files(whole: Path, small_run: Path) -> None:
    kept = checkpoint.steps_of(whole)
    assert len(kept) == KEEP
    names = {"run.json", "tokenizer.model", "data", "metrics.jsonl"}
    assert {path.name for path in whole.iterdir()} == names | {folder.name for folder in kept}
    reported = checkpoint.load(whole)
    assert reported.folder == kept[-1]
    assert reported.config["step"] == rows(whole)[-1]["steps"] > 15
    settings, data = json.loads((whole / "run.json").read_text("utf-8")), [f"en-fr={small_run / 'pairs.tsv'}"]
    assert settings == {"recipe": "bgt-small", "arguments": reported.config["arguments"], "data": data}
    one_of_each(rows(whole))


class Killed(BaseException):
    """Raised instead of SIGKILL; no code of this project catches it."""


@contextlib.contextmanager
def killed(after: int, monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    """A context in which the process may write to the disk `after` times; the next write raises `Killed`."""
    left = [after]

    def fatal(function: Callable) -> Callable:
        def call(*args: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return function(*args, **options)

        return call

    with monkeypatch.context() as patch:
        named = [(checkpoint, "save_tensors"), (checkpoint, "sha256_file"), (files, "sync"), (Path, "rename")]
        for owner, name in (*named, (os, "replace"), (shutil, "rmtree")):
            patch.setattr(owner, name, fatal(getattr(owner, name)))
        yield


@pytest.mark.slow
def test_a_run_killed_at_any_write_ends_in_the_same_weights(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed many times: before, while and after it saves a checkpoint."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for folder in checkpoint.steps_of(out):
        shutil.rmtree(folder)  # the state after a kill before the first checkpoint
    (out / "metrics.jsonl").write_text("", "utf-8")
    (out / "metrics.jsonl.partial").write_text("{", "utf-8")  # the state after a kill while metrics are shortened
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
                file.write('{"kind": "train", "step": 3')  # an incomplete row, as a kill may leave it
    assert deaths > 2
    assert partials
    assert weights(folder) == weights(checkpoint.steps_of(whole)[-1])
    assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}
    one_of_each(rows(out))


def begin(arguments: list[str]) -> subprocess.Popen:
    """Start `bgt train` with these arguments in another process with one thread."""
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
    """Wait until the run of this process has saved `count` new checkpoints."""
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
    out = tmp_path / "a run"
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
    assert errors.splitlines()[-1].endswith(f"Continue with: bgt train --resume --out '{out}'")
    assert "Traceback" not in errors
    second = checkpoint.load(out).config["step"]
    assert first < second < last
    assert rows(out)[-1]["step"] == second
    assert not list(out.glob("*.partial"))

    folder = training.resume(out, device="cpu")
    assert weights(folder) == weights(checkpoint.steps_of(whole)[-1])
    one_of_each(rows(out))


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
        (tmp_path, "neither empty nor a run", 2),
        (tmp_path / "notes.txt", "can't be", 3),
        (tmp_path / "notes.txt" / "run", "can't be", 3),
    ):
        with pytest.raises(BgtError, match=message) as error:
            training.train(recipe, [tsv], out, device="cpu")
        assert error.value.exit_code == code
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_without_valid_settings_can_not_be_resumed(tmp_path: Path, whole: Path) -> None:
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
        ({"train.kind_weights": "news:3"}, "no data file has the kind 'news'; name the kind of a file"),
        (
            {"objective.distillation.weight": 1.0},
            "is missing: objective.distillation.weight is 1; give a teacher's vectors",
        ),
        ({"train.mega_batch": 2}, "bgt-small uses no hard negatives"),
        ({"data.vocab_size": 50}, "can't change during a run"),
    ],
)
def test_a_change_that_does_not_fit_the_run_is_refused(
    whole: Path, tmp_path: Path, setting: dict[str, Any], message: str
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "run"))
    before = (out / "run.json").read_bytes()
    with pytest.raises(UsageError, match=message):
        training.resume(out, device="cpu", overrides=setting)
    assert (out / "run.json").read_bytes() == before


@pytest.mark.slow
def test_defaults_of_torch_change_no_training(recipe: Recipe, whole: Path, tsv: Path, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        last = training.train(recipe, [tsv], tmp_path / "run", device="cpu")
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert weights(last) == weights(checkpoint.steps_of(whole)[-1])


def average(folder: Path) -> torch.Tensor:
    """Return the token vectors of a checkpoint whose model averages them."""
    parts = checkpoint.load(folder).model.modules()
    return next(part for part in parts if isinstance(part, SIFPooling)).table.weight.detach()


@pytest.fixture
def encoder(tokenizer: Tokenizer, tmp_path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The name of an encoder that can embed only single tokens, and its vectors by token."""
    texts = sorted({text.strip() for text in tokenizer.texts()} - {""})
    vectors = np.random.default_rng(0).normal(size=(len(texts), 12)).astype(np.float32)
    np.save(tmp_path / "texts.npy", vectors)
    (tmp_path / "texts.txt").write_text("\n".join(texts), "utf-8")
    return f"vectors:{tmp_path / 'texts.npy'}", dict(zip(texts, vectors, strict=True))


def test_an_average_starts_from_an_encoder_s_vectors_or_from_a_checkpoint_s(
    encoder: tuple[str, dict[str, np.ndarray]],
    tiny: Callable[..., Recipe],
    tokenizer: Tokenizer,
    tsv: Path,
    tmp_path: Path,
) -> None:
    spec, vectors = encoder
    tokenizer.save(tmp_path / "tokenizer.model")

    def trained(name: str, epochs: float, **settings: str) -> torch.Tensor:
        recipe = tiny("bgt-bound", average_from=spec, epochs=epochs, **settings)
        training.train(recipe, [tsv], tmp_path / name, tokenizer=tmp_path / "tokenizer.model", device="cpu")
        return average(tmp_path / name)

    texts = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    given = np.stack([vectors[text] for text in texts.values()])
    given -= given.mean(0)
    start, learned = trained("start", 0.0), trained("learned", 0.2)
    assert_close(start[list(texts)], given / np.linalg.norm(given, axis=1).mean())
    assert not torch.equal(learned, start)
    assert torch.equal(trained("again", 0.0, init_from=str(tmp_path / "learned")), learned)
