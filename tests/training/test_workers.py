"""Several processes against one: the same curve, the same weights, either resumes the other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bgt_core import run
from bgt_core.errors import BgtError, NotFound, UsageError
from bgt_core.recipes import Recipe
from bgt_core.run import processes
from bgt_core.training.config import TrainConfig
from bgt_core.training.workers import Workers
from tests.close import assert_close

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the lists that Linux keeps")


@pytest.fixture(scope="module")
def recipe(tiny: Callable[..., Recipe]) -> Recipe:
    """Some updates of several micro-batches; dropout, word dropout and sampled latents included. In bfloat16, products
    would enlarge what sums in another order differ by."""
    sizes = {"batch_tokens": 1000, "micro_tokens": 300, "valid_every": 1, "save_every": 3}
    return tiny("bgt-small", epochs=1.0, precision="fp32", **sizes)


@pytest.fixture(scope="module")
def alone(recipe: Recipe, tsv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    run.train(recipe, [tsv], out, device="cpu")
    return out


def two_workers(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`bgt train` in two processes that torchrun starts."""
    return torchrun("-m", "bgt_core", "train", *arguments, "--device", "cpu")


def torchrun(*arguments: str, processes: int = 2) -> subprocess.CompletedProcess[str]:
    count = ["--nproc-per-node", str(processes)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *count, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def last(out: Path) -> str:
    return sorted(folder.name for folder in out.glob("step-*"))[-1]


def curve(out: Path, kind: str = "valid") -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    return [row for row in rows if row.pop("kind") == kind]


def assert_same_run(out: Path, alone: Path) -> None:
    reported, expected = curve(out), curve(alone)
    assert [row["step"] for row in reported] == [row["step"] for row in expected]
    for row, reference in zip(reported, expected, strict=True):
        assert row == pytest.approx(reference, rel=1e-5)
    weights = load_file(alone / last(alone) / "model.safetensors")
    rate = json.loads((alone / last(alone) / "config.json").read_text("utf-8"))["arguments"]["train.learning_rate"]
    for name, tensor in load_file(out / last(alone) / "model.safetensors").items():
        expected = weights[name]
        if name.endswith("qkv.bias"):  # the keys' part adds the same to all scores of a query: its gradient is rounding
            tensor, expected = (bias.view(3, -1)[[0, 2]] for bias in (tensor, expected))
        # Adam moves a weight by about the rate, however small its gradient: so rounding counts relative to the rate
        assert_close(tensor, expected, 1e-2, scale=rate)


@pytest.mark.slow
def test_two_workers_learn_what_one_learns(alone: Path, recipe: Recipe, tsv: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    told = [f"{name}={json.dumps(value)}" for name, value in recipe.arguments.items() if value != ()]
    sets = [part for setting in told for part in ("--set", setting)]
    done = two_workers(recipe.name, "--data", str(tsv), "--out", str(out), *sets)
    assert len(curve(out)) > 4
    assert_same_run(out, alone)
    reported, expected = curve(out, "train"), curve(alone, "train")
    if len(reported) == len(expected) == 1:  # a slow machine reports more often, over other steps
        for name in {*expected[0]} - {"tokens_per_second"}:
            assert reported[0][name] == pytest.approx(expected[0][name], rel=1e-4), name
    assert done.stdout.splitlines() == [str(out / last(out))]  # one process speaks
    shutil.rmtree(out / last(out))
    run.resume(out, device="cpu")
    assert_same_run(out, alone)


@pytest.mark.slow
def test_two_workers_go_on_where_one_stopped(alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(alone, out)
    shutil.rmtree(out / last(out))
    two_workers("--resume", "--out", str(out))
    assert_same_run(out, alone)


@pytest.mark.slow
@LINUX
def test_no_thread_outlives_the_group(tmp_path: Path) -> None:
    """One that does needs the interpreter after its end, and aborts the process."""
    script = tmp_path / "threads.py"
    script.write_text(
        "import sys\nimport torch\nfrom pathlib import Path\nfrom bgt_core.training.workers import Workers\n"
        "def loops():\n"
        "    return [path.read_text() for path in Path('/proc/self/task').glob('*/comm')].count('pt_gloo_runloop\\n')\n"
        "with Workers.from_environment() as workers:\n"
        "    torch.optim.Adam([torch.ones(1)])\n"
        "    workers.wait()\n"
        "    during = loops()\n"
        "sys.stdout.write(f'{during > 0} {loops()}\\n')\n",
        encoding="utf-8",
    )
    assert torchrun(str(script)).stdout.splitlines() == ["True 0"] * 2


SUMS = r"""
import os
import sys
import torch
from pathlib import Path
from torch import nn
from bgt_core.training.workers import Workers

torch.manual_seed(0)
model = nn.ModuleDict({name: nn.Linear(300, 301) for name in ("all", "last", "none", "frozen")})
for parameter in model["frozen"].parameters():
    parameter.requires_grad_(False)

def summed(workers, step):
    torch.manual_seed(1000 * step + workers.rank)
    model.zero_grad()
    for name in ("all", "last"):
        if name == "all" or workers.rank == workers.count - 1:
            model[name](torch.randn(8, 300)).square().sum().backward()
    workers.sum_gradients(model)
    return {name: parameter.grad for name, parameter in model.named_parameters()}

before = set(Path("/dev/shm").glob("*"))
with Workers.from_environment() as workers:
    for step in range(3):
        here = {name: value.clone() for name, value in summed(workers, step).items() if value is not None}
        assert workers.shared is not None
        others, workers.shared, workers.local = workers.shared, None, False
        sent = summed(workers, step)
        assert workers.shared is None
        workers.shared = others
        assert {name.split(".")[0] for name in here} == {"all", "last"}, here.keys()
        largest = max(value.abs().max() for value in sent.values() if value is not None)
        for name, value in sent.items():
            assert (value is None) == (name not in here), name
            if value is not None:
                assert (here[name] - value).abs().max() <= 1e-5 * largest, name
        for row in workers.gather(torch.cat([value.flatten() for value in here.values()])[None]):
            assert row.equal(torch.cat([value.flatten() for value in here.values()]))  # all have the same bits
    assert set(Path("/dev/shm").glob("*")) <= before
sys.stdout.write("equal\n")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory without a name is Linux's")
def test_gradients_summed_in_shared_memory_are_those_summed_by_messages(tmp_path: Path) -> None:
    script = tmp_path / "sums.py"
    script.write_text(SUMS, encoding="utf-8")
    assert torchrun(str(script), processes=3).stdout.splitlines() == ["equal"] * 3


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[processes.Helper]:
    """The helpers that are started."""
    every: list[processes.Helper] = []

    class Noted(processes.Helper):
        def __init__(self, *arguments: object):
            super().__init__(*arguments)
            every.append(self)

    monkeypatch.setattr(processes, "Helper", Noted)
    return every


@pytest.mark.slow
def test_helpers_learn_what_one_process_learns(
    alone: Path, recipe: Recipe, tsv: Path, tmp_path: Path, started: list[processes.Helper]
) -> None:
    out, threads = tmp_path / "run", torch.get_num_threads()
    assert run.train(recipe, [tsv], out, device="cpu", workers=2) == out / last(alone)
    assert_same_run(out, alone)
    assert len(started) == 1
    assert started[0].process.returncode is not None
    assert torch.get_num_threads() == threads
    assert not torch.distributed.is_initialized()


@pytest.mark.slow
def test_a_killed_helper_ends_the_run_which_can_be_resumed(
    alone: Path, tmp_path: Path, started: list[processes.Helper]
) -> None:
    out = tmp_path / "run"
    shutil.copytree(alone, out)
    shutil.rmtree(out / last(out))
    with pytest.raises(BgtError, match=f"worker 2 of 3 was killed by signal 9. Continue .* --resume --out {out}$"):
        run.resume(out, device="cpu", workers=3, report=lambda row: os.kill(started[1].process.pid, signal.SIGKILL))
    assert all(helper.process.returncode is not None for helper in started)
    assert not torch.distributed.is_initialized()
    run.resume(out, device="cpu")
    assert_same_run(out, alone)


def test_a_helper_that_fails_says_why(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    shutil.copytree(alone, out)
    shutil.rmtree(out / last(out))
    monkeypatch.setattr(processes, "COMMAND", (sys.executable, "-c", "raise SystemExit('no room')"))
    with pytest.raises(BgtError, match=r"worker 1 of 2 ended with exit code 1. no room"):
        run.resume(out, device="cpu", workers=2)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_helpers_end_with_their_command(number: int, alone: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    shutil.copytree(alone, out)
    for folder in out.glob("step-*"):
        shutil.rmtree(folder)
    (out / "metrics.jsonl").unlink()
    settings = json.loads((out / "run.json").read_text("utf-8"))
    settings["arguments"]["train.epochs"] = 1000.0  # longer than the test
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
        (helper,) = children(process.pid)
        os.killpg(process.pid, number)  # as a terminal does
        output, _ = process.communicate(timeout=120)
    assert output == b""
    assert "Traceback" not in log.read_text()
    if number == signal.SIGKILL:
        while alive(helper):
            assert time.monotonic() < deadline + 60
            time.sleep(0.02)
        return
    assert process.returncode == 130
    assert not alive(helper)
    assert log.read_text().splitlines()[-1].endswith(f"Continue with: bgt train --resume --out {out}")
    saved = int(last(out).removeprefix("step-"))
    assert curve(out, "train")[-1]["step"] == saved  # it stopped there


@pytest.mark.parametrize(
    ("threads", "sizes", "count"),
    [
        (1, {"batch_tokens": 2000, "micro_tokens": 100}, 1),
        (2, {"batch_tokens": 2000, "micro_tokens": 1000}, 2),
        (2, {"batch_tokens": 2000, "micro_tokens": 2000}, 2),
        (2, {"batch_tokens": 2000, "micro_tokens": 2001}, 1),
        (2, {"batch_tokens": 2000, "micro_tokens": 2000, "micro_batches": 2}, 2),
        (16, {"batch_tokens": 25_000, "micro_tokens": 4_000}, 8),
        (16, {"batch_tokens": 25_000, "micro_tokens": 4_000, "micro_batches": 3}, 12),
        (2, {"batch_tokens": 25_000, "micro_tokens": 4_000}, 2),
    ],
)
def test_a_worker_for_each_core_but_none_idles(
    threads: int, sizes: dict[str, int], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    config = TrainConfig(**sizes)
    assert processes.usual_workers(config, torch.device("cpu")) == count
    assert processes.usual_workers(config, torch.device("meta")) == 1


def test_numbers_of_workers_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="workers 0 must be at least 1"):
        processes.check_workers(0, "cpu", Workers())
    with pytest.raises(UsageError, match="workers 2: torchrun has started 3 already"):
        processes.check_workers(2, "cpu", Workers(0, 3))
    processes.check_workers(None, "cpu", Workers(0, 3))
    if not torch.cuda.is_available():
        with pytest.raises(NotFound, match="cuda:7"):
            processes.check_workers(2, "cuda:7", Workers())


def test_one_worker_needs_no_group() -> None:
    with Workers() as workers:
        assert workers.is_main
        assert workers.any(True, False) == [True, False]
        assert workers.sum_over_ranks({"a": torch.tensor(2.5)}) == {"a": torch.tensor(2.5, dtype=torch.float64)}
        assert workers.gather(torch.eye(2)).equal(torch.eye(2))
        model = nn.Linear(2, 1)
        model(torch.ones(1, 2)).backward()
        before = model.weight.grad.clone()
        workers.sum_gradients(model)
        torch.testing.assert_close(model.weight.grad, before, rtol=0, atol=0)
