"""Results of probes: read as `bgt-probe` writes them, gathered without mixing models, drawn as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bgt_core
from app import options, results
from app.charts import scores
from bgt_core import BadInput
from probes.cli import write_csv
from probes.result import Difference, ProbeResult, Row
from probes.run import run_probe

LATENTS = {"semantic": 0.4, "language": 0.7, "majority": 0.2}


@pytest.fixture
def made() -> Callable[..., dict]:
    """made(model, lang, points): a document of `bgt-probe --json`, two tasks."""

    def make(model: str = "m", lang: str = "en", points: float = -30.0) -> dict:
        found = []
        for task in ("length", "punctuation"):
            found_rows = [
                Row(task, lang, name, 800, 100, 5, value, value - 0.1, value + 0.1, 0.01)
                for name, value in LATENTS.items()
            ]
            gap = Difference(task, lang, "semantic", "language", points, points - 5, points + 5, 0.01)
            found.append(ProbeResult(task, lang, 1, 0, 0.95, found_rows, gap, 0).as_dict())
        return {"schema": "bgt-probe/1", "model": model, "data": "built-in grammar", "results": found}

    return make


def read(document: object) -> results.Results:
    return results.read("r.json", json.dumps(document).encode())


def test_a_document_becomes_a_row_a_latent_and_a_gap_a_task(made: Callable) -> None:
    found = read(made())
    assert len(found.scores) == 6 and list(found.scores) == [*results.SCORES, *results.MORE]
    assert found.scores.set_index(["task", "latent"])["accuracy"]["length", "language"] == 0.7
    assert found.gaps["points"].tolist() == [-30, -30] and list(found.gaps) == results.GAPS


def test_it_reads_what_bgt_probe_writes(made: Callable, tmp_path: Path) -> None:
    (parts,) = [ProbeResult(**{**made()["results"][0], "rows": [], "difference": None})]
    rows = [Row(**row) for row in made()["results"][0]["rows"]]
    write_csv([ProbeResult("length", "en", 1, 0, 0.95, rows, None, parts.left_out)], tmp_path / "mine.csv")
    found = results.read("mine.csv", (tmp_path / "mine.csv").read_bytes())
    assert found.scores["model"].unique().tolist() == ["mine"]
    assert found.scores["accuracy"].tolist() == list(LATENTS.values()) and found.gaps.empty


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", b"{", "no JSON document"),
        ("a.json", b"[1]", "no JSON document"),
        ("a.json", b"\xff", "no JSON document"),
        ("a.json", b'{"schema": "bgt-probe/9"}', "bgt-probe/9.*reads bgt-probe/1"),
        ("a.json", b'{"schema": "bgt-probe/1", "model": "m", "results": [{"rows": [{}]}]}', "not whole"),
        ("a.csv", b"", "no table"),
        ("a.csv", b"x,y\n1,2\n", "no table"),
    ],
)
def test_other_files_are_refused_by_name(name: str, content: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        results.read(name, content)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"absent.json: can't be read"):
        results.gathered([tmp_path / "absent.json"], [])


def test_models_are_called_by_name_and_never_mixed(
    made: Callable, tmp_path: Path, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    for number, model in enumerate((saved, "runs/fr", "other/es", "runs/fr")):
        document = json.dumps(made(str(model), points=-number))
        (tmp_path / f"{number}.json").write_text(document, "utf-8")
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    found = results.gathered([tmp_path], [])
    assert set(found.scores["model"]) == {"model", "fr", "es"}
    assert found.gaps.groupby("model")["points"].unique().map(list).to_dict() == {"model": [0], "fr": [-3], "es": [-2]}
    same_end = results.gathered([], [read(made("a/run")), read(made("b/run"))])
    assert set(same_end.scores["model"]) == {"a/run", "b/run"}


def test_a_gap_of_english_belongs_to_the_other_language_of_its_model(
    made: Callable, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    found = results.gathered([], [read(made(str(saved), "en")), read(made("unknown", "en")), read(made("x", "tr"))])
    placed = results.placed(found.gaps).groupby("model")["other"].first().to_dict()
    assert placed == {"model": "fr", "unknown": "en", "x": "tr"}


def test_trends_need_three_languages(made: Callable) -> None:
    points = {"fr": -10.0, "tr": -20.0, "ja": -40.0}
    found = results.gathered([], [read(made(f"en-{lang}", lang, gap)) for lang, gap in points.items()])
    trends = results.trends(results.placed(found.gaps), "weeks")
    assert trends["length"].langs == ("fr", "tr", "ja") and trends["length"].pearson < -0.9
    two = results.gathered([], [read(made(f"en-{lang}", lang, points[lang])) for lang in ("fr", "tr")])
    assert results.trends(results.placed(two.gaps), "weeks") == {}


def test_a_probe_on_the_spot_is_the_commands(saved: Path, start: Callable[..., None]) -> None:
    start("--model", saved)
    from app import state

    said: list[str] = []
    document = results.compute(state.model(), "length", "fr", options.GRAMMAR, 300, 1, said.append)
    expected = run_probe(bgt_core.load(saved), "length", "fr", max_items=300, seeds=1)
    assert document["results"] == [expected.as_dict()] and document["schema"] == "bgt-probe/1"
    assert said[0] == "length fr: semantic"


def test_dots_stand_at_their_numbers_with_their_intervals(made: Callable) -> None:
    table = read(made()).scores
    traces = {trace.name: trace for trace in scores.probe_dots(table).data}
    assert set(traces) == set(LATENTS)
    for name, value in LATENTS.items():
        assert traces[name].x == pytest.approx([100 * value] * 2)
        assert traces[name].error_x.array == pytest.approx([10, 10])
    assert traces["semantic"].marker.color != traces["majority"].marker.color


def test_gaps_are_drawn_for_each_language_and_distance(made: Callable) -> None:
    found = results.gathered([], [read(made(f"en-{lang}", lang, gap)) for lang, gap in (("fr", -1.0), ("ja", 2.0))])
    gaps = results.placed(found.gaps)
    dots = scores.gap_dots(gaps, ["fr", "ja"]).data
    assert {trace.name: list(trace.x) for trace in dots} == {
        "French · en-fr": [-1.0, -1.0],
        "Japanese · en-ja": [2.0, 2.0],
    }
    weeks, axis = results.DISTANCES["weeks"]
    lines = scores.gap_by_distance(gaps, weeks, axis).data
    assert {trace.name for trace in lines} == {"length", "punctuation"}
    assert list(lines[0].x) == [30, 88] and list(lines[0].y) == [-1.0, 2.0]
