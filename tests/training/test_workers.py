"""Several processes under torchrun against one: the same curve, the same weights, either resumes the other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bgt_core import run
from bgt_core.recipes import Recipe
from bgt_core.training.workers import Workers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def recipe(tiny: Callable[..., Recipe]) -> Recipe:
    """Some updates of several micro-batches; dropout, word dropout and sampled latents included."""
    return tiny("bgt-small", epochs=1.0, batch_tokens=1000, micro_tokens=300, valid_every=1, save_every=3)


@pytest.fixture(scope="module")
def alone(recipe: Recipe, tsv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    run.start(recipe, [tsv], out, device="cpu")
    return out


def two_workers(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`bgt train` in two processes that talk over gloo."""
    return torchrun("-m", "bgt_core", "train", *arguments, "--device", "cpu")


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]
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
    for name, tensor in load_file(out / last(alone) / "model.safetensors").items():
        torch.testing.assert_close(
            tensor, weights[name], rtol=1e-4, atol=1e-4
        )  # Adam enlarges what sums in another order differ by


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


def test_two_workers_go_on_where_one_stopped(alone: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(alone, out)
    shutil.rmtree(out / last(out))
    two_workers("--resume", "--out", str(out))
    assert_same_run(out, alone)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the list of threads that Linux keeps")
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
