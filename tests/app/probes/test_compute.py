"""Probes run on the spot, and what was predicted of each sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import bgt_core
import probes
from app.core import startup, state
from app.core.results import gather
from app.probes import chart, compute
from bgt_core.errors import BgtError
from probes.data.built_in import grammar_sentences
from probes.result import CurvePoint
from probes.results.store import Cell, all_predictions
from probes.tasks import TASKS

PARSED = """# text = {text}
1\tShe\tshe\tPRON\t_\tNumber=Sing\t2\tnsubj\t_\t_
2\t{verb}\tsing\tVERB\t_\tMood=Ind|Tense={tense}|VerbForm=Fin\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""


def test_predictions_are_read_back_and_compared(cell: Cell, tmp_path: Path) -> None:
    parquet.write_table(all_predictions([cell]), tmp_path / "items.parquet")
    tables = gather.read("items.parquet", (tmp_path / "items.parquet").read_bytes())
    ((key, table),) = tables.items.items()
    assert key[:4] == (cell.model, "length", "en", "linear") and not key.live
    sorted_items = compute.by_information(table, "semantic")
    tested = table.filter(pc.equal(table["predictor"], "semantic"))
    assert len(sorted_items) == len(tested) and sorted_items["pvi"].is_monotonic_decreasing
    information = next(row.information for row in cell.result.rows if row.latent == "semantic")
    assert sorted_items["pvi"].mean() == pytest.approx(information, rel=1e-5)
    gap = compute.difference(key, table, "semantic", "language")
    assert gap.points == pytest.approx(cell.result.difference.points)
    assert 0 <= gap.p <= 1 and (gap.p < 0.05) == (not gap.ci_low <= 0 <= gap.ci_high)


@pytest.mark.slow
@pytest.mark.parametrize("text", [None, startup.GRAMMAR])
def test_a_probe_on_the_spot_is_the_commands(
    text: startup.ParallelText | None, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    reports: list[str] = []
    cell = compute.run(state.model(), "length", "fr", text, "", 300, 1, reports.append)
    config = probes.ProbeConfig(max_items=300, seeds=1)
    lines = grammar_sentences("fr") if text else None  # the command's own choice
    expected = probes.run(bgt_core.load(saved), "length", lines, lang="fr", config=config)
    assert cell.result.as_dict() == expected.as_dict() and reports[0] == "length fr: semantic"
    ((key, items),) = gather.from_cells([cell], live=True).items.items()
    assert key[:5] == (cell.model, "length", "fr", "linear", True) and items.num_rows == len(cell.predictions)


def test_a_learning_curve_is_a_line_a_latent_and_a_mark_a_family() -> None:
    points = [
        vars(CurvePoint(latent, family, n, 0.5 + n / 1000, 0.4, 0.9))
        for latent in ("semantic", "language")
        for family, n in (("linear", 100), ("linear", 200), ("mlp50", 200))
    ]
    curve = pd.DataFrame(points).rename(columns={"probe": "family"})
    traces = {trace.name: trace for trace in chart.learning_curves(curve).data}
    assert set(traces) == {"semantic", "semantic, hidden layer of 50", "language", "language, hidden layer of 50"}
    assert list(traces["semantic"].x) == [100, 200] and list(traces["semantic"].y) == pytest.approx([60, 70])


def test_a_file_of_parses_makes_tense_runnable() -> None:
    verbs = [(f"sing{number}{end}", tense) for number in range(120) for end, tense in (("s", "Pres"), ("ed", "Past"))]
    text = "".join(PARSED.format(text=f"She {verb}.", verb=verb, tense=tense) for verb, tense in verbs)
    file = compute.LabelledFile("mine.conllu", text.encode())
    dataset = compute.load_file(TASKS["tense"], "en", file)
    assert len(dataset.items.labels) == 240 and set(dataset.items.labels) == {"Past", "Pres"}
    assert dataset.about["data"] == "mine.conllu"
    with pytest.raises(BgtError, match=r"^mine\.conllu: task 'top-const'"):
        compute.load_file(TASKS["top-const"], "en", file)
