"""Evaluation tasks of this and of other packages are listed, found by name, and run by `evaluate`."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import UsageError
from bgt_core.evaluation.task import evaluate, find_task, one_path, task_names
from bgt_core.evaluation.tasks.triples import TriplesTask

Bgt = Callable[..., tuple[int, str, str]]

OUTSIDE = Path(__file__).resolve().parents[2] / "examples" / "your_evaluation.py"


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package with an evaluation task (module and entry point). Return a text file to evaluate."""
    (tmp_path / "own_evaluation.py").write_text(OUTSIDE.read_text("utf-8"), "utf-8")
    about = tmp_path / "own_evaluation-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-evaluation\nVersion: 1\n", "utf-8")
    (about / "entry_points.txt").write_text("[bgt.evaluations]\nmarks = own_evaluation:Marks\n", "utf-8")
    (tmp_path / "text.txt").write_text("The dog sleeps.\nAnna reads a book.\nIt rains.\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "text.txt"


def test_another_package_adds_an_evaluation_with_one_file(bgt: Bgt, outside: Path) -> None:
    listed = bgt("evaluate", "--help").out
    assert "Marks: is a sentence nearer to a copy" in " ".join(listed.split()) and "retrieval" in listed
    assert "--marks" in bgt("evaluate", "marks", "--help").out
    code, out, err = bgt("evaluate", "marks", outside, "--marks", "!?", "--model", "baseline:words", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["task"], document["settings"]) == ("Marks", {"marks": "!?", "lang": "en"})
    assert [(row["mark"], row["sentences"]) for row in document["scores"]] == [("!", 3), ("?", 3)]
    assert document["scores"][0]["value"] == 100
    result = bgt_core.evaluate("marks", bgt_core.open_encoder("baseline:words"), outside, resamples=100)
    assert result.value(("!",)) == 100


def test_the_tasks_are_listed_and_found_by_name(bgt: Bgt) -> None:
    names = "fidelity inversion minimal-pairs pairs retrieval sts style syntax transfer triples"
    assert task_names() == names.split()
    assert find_task("triples") is TriplesTask
    with pytest.raises(UsageError, match=r"task tripels: no such task; .* Did you mean 'triples'"):
        find_task("tripels")
    done = bgt("evaluate", "tripels")
    assert (done.code, done.out) == (2, "") and "Did you mean 'triples'" in done.err


def test_two_tasks_of_one_name_are_refused(outside: Path) -> None:
    (outside.parent / "own_evaluation-1.dist-info" / "entry_points.txt").write_text(
        "[bgt.evaluations]\nsts = own_evaluation:Marks\n", "utf-8"
    )
    with pytest.raises(UsageError, match="task sts: two packages have a task with this name"):
        find_task("sts")


def test_a_task_takes_items_or_one_file_and_the_result_has_the_settings() -> None:
    task, encoder = TriplesTask(lang="en"), ExternalEncoder("ones", lambda texts, *_: np.ones((len(texts), 2)))
    items = task.load([], seed=2)
    result = evaluate(task, encoder, items, resamples=150, level=0.9, seed=2)
    assert (result.task, result.settings) == ("triples", {"count": None, "lang": "en", "latent": None})
    assert (result.systems, result.level, result.resamples, result.seed) == (["model"], 0.9, 150, 2)
    with pytest.raises(UsageError, match="resamples 9"):
        evaluate("triples", encoder, "absent.tsv", resamples=9)
    with pytest.raises(UsageError, match=r"data must be a file \(got 2 paths\)"):
        one_path([Path("a"), Path("b")], "a file")
