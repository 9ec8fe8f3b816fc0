"""A training run survives divergence, a second process, damaged or changed files, and a full disk."""

import errno
import itertools
import json
import math
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from bgt_core import checkpoint, training
from bgt_core.data.clean import clean
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, Diverged, NotFound, UsageError
from bgt_core.files import file_lock
from bgt_core.recipes import Recipe
from bgt_core.training.loop import WINDOW, Guard, Sums


@pytest.fixture(scope="module")
def recipe(tiny: Callable[..., Recipe]) -> Recipe:
    return tiny("bgt-small", epochs=1.0, batch_tokens=350, micro_tokens=250, save_every=3)


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tsv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    training.train(recipe, [tsv], out, device="cpu")
    return out


@pytest.fixture
def ended(whole: Path, tmp_path: Path) -> Path:
    """A copy of a finished training run."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture
def begun(ended: Path) -> Path:
    """A training run whose last checkpoint is removed, as if the run had been stopped before this checkpoint."""
    shutil.rmtree(checkpoint.steps_of(ended)[-1])
    return ended


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_a_rate_that_diverges_keeps_the_last_good_state(begun: Path, whole: Path) -> None:
    (kept,) = checkpoint.steps_of(begun)
    before = weights(kept)
    message = rf"update \d+: .* is (nan|inf).*after update {int(kept.name[5:])} is kept"
    with pytest.raises(Diverged, match=message) as error:
        training.resume(begun, device="cpu", overrides={"train.learning_rate": 1e30})
    assert error.value.exit_code == 8 and "--resume" in str(error.value)
    assert weights(kept) == before and checkpoint.steps_of(begun) == [kept]
    last = training.resume(begun, device="cpu", overrides={"train.learning_rate": 1e-4})  # lower than before
    assert all(value.isfinite().all() for value in load_file(last / "model.safetensors").values())
    assert last.name == checkpoint.steps_of(whole)[-1].name
    assert json.loads((begun / "run.json").read_text())["arguments"]["train.learning_rate"] == 1e-4


def test_a_run_that_diverges_at_once_leaves_no_checkpoint(
    tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path
) -> None:
    wild = tiny("bgt-small", learning_rate=1e30, epochs=1.0, **{"train.warmup_steps": 0})
    with pytest.raises(Diverged, match="Nothing was saved yet"):
        training.train(wild, [tsv], tmp_path / "run", device="cpu")
    assert not checkpoint.steps_of(tmp_path / "run")
    assert training.resume(tmp_path / "run", device="cpu", overrides={"train.learning_rate": 1e-4}).is_dir()


def sums(loss: float, rows: int = 4) -> Sums:
    return Sums({"loss": torch.tensor(rows * loss)}, {"loss": rows})


def test_a_loss_diverges_above_a_multiple_of_its_first_value_or_as_nan_in_a_micro_batch() -> None:
    guard, patient = Guard(10.0, torch.device("cpu")), Guard(0.0, torch.device("cpu"))
    for loss in [2.0] * WINDOW + [19.0] * WINDOW:
        guard.add(sums(loss)), patient.add(sums(1e9 * loss))
        assert not guard.diverged(True) and not patient.diverged(True)
    for _ in range(WINDOW):
        guard.add(sums(21.0))
    assert guard.diverged(True) and "21" in guard.reason and "10 times" in guard.reason
    update, one = sums(1.0), torch.tensor(1.0)
    update.micro_batches = {4: {"loss": one}, 5: {"loss": one, "kl/en": torch.tensor(math.nan)}}
    patient.add(update)
    assert patient.diverged(False) and patient.reason == "kl/en of micro-batch 5 is nan"


def test_weights_that_are_no_numbers_are_neither_saved_nor_read(saved: Path, tmp_path: Path) -> None:
    loaded = checkpoint.load(saved)
    with torch.no_grad():
        next(loaded.model.parameters()).view(-1)[3] = math.nan
    with pytest.raises(Diverged, match="not saved: the weights of"):
        checkpoint.save(tmp_path / "new", loaded.recipe, loaded.model, loaded.tokenizer, 3)
    assert not any(tmp_path.iterdir())
    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    tensors = load_file(folder / "model.safetensors")
    next(iter(tensors.values())).view(-1)[0] = math.inf
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["files"]["model.safetensors"] = checkpoint.sha256_file(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match="contains NaN or infinity: training diverged"):
        checkpoint.load(folder)


def test_two_processes_do_not_train_in_one_folder(begun: Path, recipe: Recipe, tsv: Path, tmp_path: Path) -> None:
    for folder in (begun, tmp_path / "new"):
        start = partial(training.resume, begun) if folder == begun else partial(training.train, recipe, [tsv], folder)
        with file_lock(folder / "run.lock"), pytest.raises(UsageError, match="another process trains in this folder"):
            start(device="cpu")
    training.resume(begun, device="cpu")
    assert not (begun / "run.lock").exists()


def test_what_a_killed_preparation_left_is_no_obstacle(recipe: Recipe, tsv: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    (out / "data").mkdir(parents=True)
    (out / ".data.99.partial").mkdir()
    for name in ("run.lock", "data/train.ids", "data.partial.lock", "tokenizer.model"):
        (out / name).write_text("half")
    last = training.train(recipe, [tsv], out, device="cpu")
    assert weights(last) == weights(checkpoint.steps_of(whole)[-1])
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_a_damaged_checkpoint_is_set_aside_for_the_one_before(ended: Path) -> None:
    older, newest = checkpoint.steps_of(ended)
    expected = weights(newest)
    (newest / "model.safetensors").write_bytes(b"\0" * 100)
    notes: list[dict] = []
    assert training.resume(ended, device="cpu", report=notes.append) == newest
    assert weights(newest) == expected  # repeating the lost updates gave equal results
    assert next(row["text"] for row in notes if row["kind"] == "note").endswith(
        "Continuing from the checkpoint before it."
    )
    assert (ended / f"{newest.name}.damaged").is_dir()
    for folder in (older, newest):
        if folder.exists():
            (folder / "model.safetensors").write_bytes(b"\0")
    with pytest.raises(DataError, match="damaged"):
        training.resume(ended, device="cpu")


def test_a_change_of_settings_holds_from_the_checkpoint_that_was_left(ended: Path) -> None:
    newest = checkpoint.steps_of(ended)[-1]
    (newest / "model.safetensors").write_bytes(b"\0" * 100)
    training.resume(ended, device="cpu", overrides={"train.learning_rate": 1e-4})
    assert training.resume(ended, device="cpu") == newest
    assert checkpoint.read_config(newest)["arguments"]["train.learning_rate"] == 1e-4


def with_entry(file: str, entry: str, value: Any) -> Callable[[Path], None]:
    """Return a function that changes an entry in a JSON file of a run, as a user might. Dictionaries are merged."""

    def change(run: Path) -> None:
        content = json.loads((run / file).read_text())
        content[entry] = content[entry] | value if entry == "arguments" else value
        (run / file).write_text(json.dumps(content))

    return change


def reverse_ids(run: Path) -> None:
    ids = next((run / "data").glob("*.ids"))
    ids.write_bytes(ids.read_bytes()[::-1])


def replace_tokenizer(run: Path) -> None:
    texts = [f"{one} {two} of other words" for one, two in itertools.permutations("abcdefghijklmnop", 2)]
    Tokenizer.train(texts, 25, lowercase=True).save(run / "tokenizer.model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_entry("run.json", "arguments", {"model.d_model": 32}), "model.d_model"),
        (with_entry("run.json", "arguments", {"data.min_tokens": 3}), "data.min_tokens"),
        (with_entry("run.json", "arguments", {"train.seed": 9}), "train.seed"),
        (with_entry("data/store.json", "files", {"../../run.json": "0" * 64}), "start a new run"),
        (with_entry("data/store.json", "files", {"vaLid.index": "0" * 64}), "start a new run"),
        (with_entry("data/store.json", "files", ["valid.index"]), "start a new run"),
        (reverse_ids, "changed since the text was tokenised"),
        (replace_tokenizer, "not the tokenizer with which the run began"),
    ],
)
def test_a_run_whose_files_were_changed_is_not_resumed(
    begun: Path, change: Callable[[Path], None], message: str
) -> None:
    change(begun)
    with pytest.raises(DataError, match=message):
        training.resume(begun, device="cpu")


def test_metrics_that_are_no_rows_are_dropped(begun: Path) -> None:
    metrics = begun / "metrics.jsonl"
    rows = metrics.read_bytes()
    metrics.write_bytes(b"\0\0\0\n[1]\n\xff\xfe\n" + rows)
    training.resume(begun, device="cpu")
    before, kept = ([json.loads(line) for line in lines.splitlines()] for lines in (rows, metrics.read_bytes()))
    assert all(row["kind"] for row in kept)
    steps, again = ({row["step"] for row in each if row["kind"] == "valid"} for each in (before, kept))
    assert steps <= again  # only validation metrics are compared; other rows depend on the machine's speed


def test_a_link_that_a_stranger_left_is_removed_and_not_followed(begun: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    (begun / "step-0000099.partial").symlink_to(elsewhere)
    training.resume(begun, device="cpu")
    assert (elsewhere / "file").read_text() == "mine" and not (begun / "step-0000099.partial").exists()


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_and_the_older_state_stays(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept,) = checkpoint.steps_of(begun)

    def full_of_tensors(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    for failing in (full, full_of_tensors):
        with monkeypatch.context() as patch:
            patch.setattr("safetensors.torch.save_file", failing)
            with pytest.raises(NotFound, match=r"can't be written .*[Nn]o space left"):
                training.resume(begun, device="cpu")
        assert checkpoint.steps_of(begun) == [kept] and not list(begun.glob("*.partial"))
    training.resume(begun, device="cpu")


def test_what_a_killed_writer_left_is_removed_by_the_next(tsv: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean.tsv"
    for name in ("clean.tsv.99.partial", "clean.tsv.partial.lock", "clean.tsv.gz.99.partial"):
        (tmp_path / name).write_text("half")
    clean([tsv], ("en", "fr"), out)
    assert {path.name for path in tmp_path.iterdir()} == {"clean.tsv", "clean.tsv.json", "clean.tsv.gz.99.partial"}
    with file_lock(tmp_path / "clean.tsv.partial.lock"), pytest.raises(UsageError, match="another process is writing"):
        clean([tsv], ("en", "fr"), out)
