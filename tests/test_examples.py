"""Each example runs as a script with small sizes, and prints the expected line. Dask examples are tested elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
RUNS = {
    "ledger.py": ("--limit 20", "| en | all | sentence | bgt-en-fr | 35.9 ["),
    "questions_by_topic.py": ("OUT/questions.txt Late? --topics 3", "  Why are you late?"),
    "your_encoder_on_the_bench.py": ("--items 300", "yours        70.1"),
    "your_evaluation.py": ("", "| ! | 100 | 100.0 ["),
    "your_model_family.py": ("--pairs 400 --epochs 2", "after 2 epochs: "),
    "your_objective.py": ("--pairs 400 --epochs 2", "weight 1: squared distance "),
    "your_probing_task.py": ("--items 300 --seeds 1 --lang fr", "  semantic  "),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    arguments, promised = RUNS[name]
    questions = "Why are you late?\nWhere is the station?\nWho wrote this book?\nIs it raining?\nHow old is he?\n"
    (tmp_path / "questions.txt").write_text(questions, "utf-8")
    command = [sys.executable, str(EXAMPLES / name), *arguments.replace("OUT", str(tmp_path)).split()]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert promised in done.stdout
    assert not done.stderr


def test_every_example_is_run() -> None:
    on_dask = {"embed_on_dask.py", "mine_on_dask.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*RUNS, *on_dask}
