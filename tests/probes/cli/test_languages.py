"""`bgt-probe compare-languages`: the paper's claims on language distance, judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bgt_core.evaluation.bootstrap import NOT_RUN
from probes.result import Difference, ProbeResult, ProbeScore
from probes.results.store import PREDICTIONS, Cell, write_cells


def test_the_command(probe: Callable, tmp_path: Path) -> None:
    """The length of English sentences, a model for each language; and STS of one."""
    cells = []
    for lang, points in {"fr": -4.0, "es": -3.0, "tr": -6.0, "ja": -9.0}.items():
        gap = Difference("length", "en", "semantic", "language", points, points - 1.96, points + 1.96, 0.01)
        rows = [ProbeScore("length", "en", "semantic", 9, 9, 2, 0.5, 0.4, 0.6, 0.0)]
        trail = {"fingerprint": lang, "langs": ["en", lang], "latents": [], "probe": "linear", "data": "D"}
        result = ProbeResult("length", "en", 5, 0, rows, gap, 0)
        cells.append(Cell(f"en-{lang}", result, PREDICTIONS.empty_table(), trail))
    write_cells(tmp_path / "run.parquet", cells)
    sts = tmp_path / "sts.json"
    row = {"dataset": "average", "first": "a language", "second": "a semantic", "value": -9.0}
    row |= {"ci_low": -11, "ci_high": -7}
    sts.write_text(json.dumps({"level": 0.95, "differences": [{**row, "dataset": "all"}, row]}))
    command = ["compare-languages", str(tmp_path / "run.parquet"), "--sts", f"fr={sts}"]
    document = json.loads(probe(*command, "--json").out)
    assert {"other": "fr", "task": "sts", "points": 9.0, "error": pytest.approx(1.02, abs=0.01)} in document["gaps"]
    claims = {(row["claim"], row["distance"]): row for row in document["claims"]}
    assert {row["ours"] for row in claims.values()} == {NOT_RUN}  # a claim is of three tasks, and one was measured
    shown = probe(*command).out
    assert "fr\t30\t0.397" in shown and "word content goes" not in shown  # that needs --pairs
    nouns = ["dog chien", "cat chat", "boy garçon", "girl fille", "horse cheval", "house maison", "tree arbre"]
    words = [noun.split() for noun in nouns]
    rows = [f"the {a} sees the {b}\tle {x} voit le {y}\n" for a, x in words for b, y in words]
    (tmp_path / "en-fr.tsv").write_text("".join(rows * 200))
    done = probe("compare-languages", "--pairs", f"en-fr={tmp_path / 'en-fr.tsv'}", "--vocab-size", "40")
    assert done.code == 0 and "word content goes" in done.out, done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sts", "FILE"], "expected fr=FILE"),
        (["--sts", "fr=absent.json"], "absent.json: can't be read (No such file"),
        (["--pairs", "fr-es=x.tsv"], "expected English and one other"),
        (["absent.parquet"], "no such file or folder"),
    ],
)
def test_bad_input_is_named(probe: Callable, arguments: list[str], message: str) -> None:
    done = probe("compare-languages", *arguments)
    assert done.code in (2, 3) and message in done.err
