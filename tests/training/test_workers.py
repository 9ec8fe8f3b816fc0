"""Several processes train the same weights with the same losses as one process; more or fewer can resume a run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bgt_core import training
from bgt_core.errors import BgtError, NotFound, UsageError
from bgt_core.recipes import Recipe, TrainConfig
from bgt_core.training.workers import Workers, check_workers, joined, usual_workers
from tests.close import assert_close
from tests.runs import metrics

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the lists that Linux keeps")


@pytest.fixture(autouse=True)
def main(monkeypatch: pytest.MonkeyPatch) -> None:
    """New processes import the main module, which must be empty; after tests of Streamlit, it would be the app."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def last(out: Path) -> str:
    return sorted(folder.name for folder in out.glob("step-*"))[-1]


def assert_same_run(out: Path, whole: Path) -> None:
    reported, expected = metrics(out), metrics(whole)
    assert [row["step"] for row in reported] == [row["step"] for row in expected]
    for row, reference in zip(reported, expected, strict=True):
        assert row.pop("kind") == reference.pop("kind")
        assert row == pytest.approx(reference, rel=1e-5)
    weights = load_file(whole / last(whole) / "model.safetensors")
    rate = json.loads((whole / last(whole) / "config.json").read_text("utf-8"))["arguments"]["train.learning_rate"]
    for name, tensor in load_file(out / last(whole) / "model.safetensors").items():
        expected = weights[name]
        if name.endswith("qkv.bias"):  # attention ignores the keys' bias, so its gradient is only rounding error
            tensor, expected = (bias.view(3, -1)[[0, 2]] for bias in (tensor, expected))
        # Adam moves a weight by about the learning rate for any gradient, however small, so this rate is the scale
        assert_close(tensor, expected, 1e-2, scale=rate)


@pytest.mark.slow
def test_torchrun_trains_the_model_of_one_process_which_can_resume_the_run(
    whole: Path, recipe: Recipe, tsv: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    values = [f"{name}={json.dumps(value)}" for name, value in recipe.arguments.items() if value != ()]
    sets = [part for setting in values for part in ("--set", setting)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "bgt_core"]
    done = subprocess.run(
        [*command, "train", recipe.name, "--data", str(tsv), *sets, "--out", str(out), "--device", "cpu"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(metrics(out)) > 3
    assert_same_run(out, whole)
    assert done.stdout.splitlines() == [str(out / last(out))]  # only one process prints
    shutil.rmtree(out / last(out))
    training.resume(out, device="cpu")
    assert_same_run(out, whole)


def sums(workers: Workers) -> None:
    """Check that gradients and values are summed over all processes with the same bits in each. Some processes lack
    some gradients."""
    model = nn.ModuleDict({name: nn.Linear(30, 31) for name in ("all", "last", "none", "frozen")})
    model["frozen"].requires_grad_(False)
    torch.manual_seed(workers.rank)
    own = {}
    for name in ("all", "last"):
        model[name].load_state_dict({"weight": torch.ones(31, 30), "bias": torch.ones(31)})
        if name == "all" or workers.rank == workers.count - 1:
            model[name](torch.randn(8, 30)).square().sum().backward()
            own[name] = model[name].weight.grad.clone()
    workers.sum_gradients(model)
    parts = workers.every(own)
    for name in ("all", "last"):
        expected = torch.stack([part[name] for part in parts if name in part]).sum(0)
        assert_close(model[name].weight.grad, expected)
        assert all(torch.equal(model[name].weight.grad, each) for each in workers.every(model[name].weight.grad))
    assert model["none"].weight.grad is None and model["frozen"].weight.grad is None
    assert workers.gather(torch.full((workers.rank, 2), float(workers.rank))).tolist() == [[1.0, 1.0]]
    totals = workers.sum_over_ranks({"both": torch.tensor(1.0), **({} if workers.rank else {"main": torch.ones(2)})})
    assert {name: value.tolist() for name, value in totals.items()} == {"both": 2.0, "main": [1.0, 1.0]}
    assert workers.any(workers.rank == 1, False) == [True, False]
    assert workers.sum(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.slow
def test_gradients_and_values_of_two_workers_are_summed() -> None:
    threads = torch.get_num_threads()
    with joined(2, sums) as workers:
        sums(workers)
    assert torch.get_num_threads() == threads and not torch.distributed.is_initialized()


@pytest.mark.slow
def test_workers_train_the_model_of_one_process(whole: Path, recipe: Recipe, tsv: Path, tmp_path: Path) -> None:
    assert training.train(recipe, [tsv], tmp_path / "run", device="cpu", workers=2) == tmp_path / "run" / last(whole)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.slow
@LINUX
def test_a_killed_worker_ends_the_run_which_can_be_resumed(whole: Path, tmp_path: Path) -> None:
    begun = Path(shutil.copytree(whole, tmp_path / "run"))
    shutil.rmtree(begun / last(begun))

    def kill(row: dict[str, object]) -> None:
        for worker in torch.multiprocessing.get_context("spawn").active_children():
            os.kill(worker.pid, signal.SIGKILL)  # type: ignore[arg-type]

    with pytest.raises(BgtError, match=f"worker 1 of 2 was killed by signal 9. Continue .* --resume --out {begun}$"):
        training.resume(begun, device="cpu", workers=2, report=kill)
    assert not torch.distributed.is_initialized()
    training.resume(begun, device="cpu")
    assert_same_run(begun, whole)


def fails(workers: Workers) -> None:
    raise MemoryError("no room")


def test_a_worker_that_fails_says_why() -> None:
    with pytest.raises(BgtError, match=r"worker 1 of 2 failed: MemoryError: no room"), joined(2, fails) as workers:
        workers.wait()


def test_a_script_without_a_main_block_ends_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("from bgt_core.training.workers import joined\nwith joined(2, print): pass\n")
    command = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=120)
    assert done.returncode and b"worker 1 of 2 ended with exit code 1." in done.stderr


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_command(number: int, whole: Path, tmp_path: Path) -> None:
    """SIGKILL is sent only to the command's process, SIGINT to all its processes, as by Ctrl+C in a terminal."""
    out, log = tmp_path / "run", tmp_path / "log"
    shutil.copytree(whole, out)
    for folder in out.glob("step-*"):
        shutil.rmtree(folder)
    (out / "metrics.jsonl").unlink()
    settings = json.loads((out / "run.json").read_text("utf-8"))
    settings["arguments"]["train.epochs"] = 1000.0  # the run must outlast the test
    (out / "run.json").write_text(json.dumps(settings), "utf-8")
    command = [sys.executable, "-m", "bgt_core", "train", "--resume", "--out", str(out), "--workers", "2"]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, "--device", "cpu"], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        deadline = time.monotonic() + 120
        while not list(out.glob("step-*")):
            assert time.monotonic() < deadline, log.read_text()
            assert process.poll() is None, log.read_text()
            time.sleep(0.02)
        workers = children(process.pid)
        (os.kill if number == signal.SIGKILL else os.killpg)(process.pid, number)
        output, _ = process.communicate(timeout=120)
    assert output == b""
    assert "Traceback" not in log.read_text()
    while any(map(alive, workers)):
        assert time.monotonic() < deadline + 60
        time.sleep(0.02)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert log.read_text().splitlines()[-1].endswith(f"Continue with: bgt train --resume --out {out}")
        assert metrics(out, "train")[-1]["step"] == int(last(out).removeprefix("step-"))  # the run saved its last step


@pytest.mark.parametrize(
    ("threads", "sizes", "count"),
    [
        (1, {"batch_tokens": 2000, "micro_tokens": 100}, 1),
        (2, {"batch_tokens": 2000, "micro_tokens": 2000}, 2),
        (2, {"batch_tokens": 2000, "micro_tokens": 2001}, 1),
        (2, {"batch_tokens": 2000, "micro_tokens": 2000, "micro_batches": 2}, 2),
        (16, {"batch_tokens": 25_000, "micro_tokens": 4_000, "micro_batches": 3}, 12),
    ],
)
def test_there_is_a_worker_per_core_but_at_most_one_per_micro_batch(
    threads: int, sizes: dict[str, int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    config = TrainConfig(**sizes)
    assert usual_workers(config, torch.device("cpu")) == count
    assert usual_workers(config, torch.device("meta")) == 1


def test_invalid_numbers_of_workers_are_refused() -> None:
    with pytest.raises(UsageError, match="workers 0 must be at least 1"):
        check_workers(0, "cpu", Workers())
    with pytest.raises(UsageError, match="workers 2: torchrun has already started 3 workers"):
        check_workers(2, "cpu", Workers(0, 3))
    check_workers(None, "cpu", Workers(0, 3))
    if not torch.cuda.is_available():
        with pytest.raises(NotFound, match="cuda:7"):
            check_workers(2, "cuda:7", Workers())
