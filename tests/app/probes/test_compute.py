"""Probes run on the spot, and what was predicted of each sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest

import bgt_core
import probes
from app.core import startup, state
from app.core.results import gather
from app.probes import compute
from bgt_core.errors import BgtError
from probes.data.load import grammar_sentences
from probes.results.store import Cell, write_cells
from probes.tasks import TASKS

PARSED = """# text = {text}
1\tShe\tshe\tPRON\t_\tNumber=Sing\t2\tnsubj\t_\t_
2\t{verb}\tsing\tVERB\t_\tMood=Ind|Tense={tense}|VerbForm=Fin\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""


def test_predictions_are_read_back_and_compared(cell: Cell, tmp_path: Path) -> None:
    write_cells(tmp_path / "items.parquet", [cell])
    ((key, table),) = gather.gathered([tmp_path / "items.parquet"]).items.items()
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


def test_a_file_of_parses_makes_tense_runnable() -> None:
    verbs = [(f"sing{number}{end}", tense) for number in range(120) for end, tense in (("s", "Pres"), ("ed", "Past"))]
    text = "".join(PARSED.format(text=f"She {verb}.", verb=verb, tense=tense) for verb, tense in verbs)
    file = compute.LabelledFile("mine.conllu", text.encode())
    dataset = compute.load_file(TASKS["tense"], "en", file)
    assert len(dataset.items.labels) == 240 and set(dataset.items.labels) == {"Past", "Pres"}
    assert dataset.about["data"] == "mine.conllu"
    with pytest.raises(BgtError, match=r"^mine\.conllu: task 'top-const'"):
        compute.load_file(TASKS["top-const"], "en", file)
