"""Results of probes: read as `bgt-probe` writes them, gathered without mixing models, drawn as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import compute, parquet

import bgt_core
import probes
from app import items, languages, options, results, running, state
from app.charts import scores, theme
from bgt_core.errors import BgtError
from bgt_core.tables import save
from probes.cli.output import document
from probes.result import SCHEMA, CurvePoint, Difference, ProbeResult, ProbeScore
from probes.results.store import Cell, all_predictions
from probes.results.tables import long_table

LATENTS = {"semantic": 0.4, "language": 0.7, "majority": 0.2}


@pytest.fixture
def made() -> Callable[..., dict]:
    """made(model, lang, points, fingerprint, probe): a document of `bgt-probe --json`, two tasks."""

    def make(
        model: str = "m",
        lang: str = "en",
        points: float = -30.0,
        fingerprint: str | None = None,
        probe: str = "linear",
        langs: tuple[str, ...] = ("en", "fr"),
    ) -> dict:
        fingerprint = f"{model} fp32 cpu" if fingerprint is None else fingerprint
        found = []
        for task in ("length", "punct-num"):
            rows = [
                ProbeScore(task, lang, name, 800, 100, 5, value, value - 0.1, value + 0.1, 0.01)
                for name, value in LATENTS.items()
            ]
            gap = Difference(task, lang, "semantic", "language", points, points - 5, points + 5, 0.01)
            result = ProbeResult(task, lang, 1, 0, 0.95, rows, gap, 0).as_dict()
            found.append(
                {"model": model, **result, "trail": {"fingerprint": fingerprint, "probe": probe, "langs": langs}}
            )
        return {"schema": SCHEMA, "results": found}

    return make


def read(document: object) -> results.Results:
    return results.read("r.json", json.dumps(document).encode())


def test_a_document_becomes_a_row_a_latent_and_a_gap_a_task(made: Callable) -> None:
    found = read(made())
    assert len(found.scores) == 6 and list(found.scores) == [*results.SCORES, *results.MORE]
    assert found.scores.set_index(["task", "latent"])["accuracy"]["length", "language"] == 0.7
    assert found.gaps["points"].tolist() == [-30, -30]


def test_the_files_of_bgt_probe_say_the_same(cell: Cell, tmp_path: Path) -> None:
    by_json = read(json.loads(json.dumps(document([cell], [], []))))
    save(long_table([cell]), {"csv": tmp_path / "mine.csv"})
    by_csv = results.read("mine.csv", (tmp_path / "mine.csv").read_bytes())
    expected = [row.accuracy for row in cell.result.rows]
    assert by_json.scores["accuracy"].tolist() == by_csv.scores["accuracy"].tolist() == expected
    for found in (by_json, by_csv):
        assert set(found.scores["model"]) == {cell.model}
        assert set(found.scores["fingerprint"]) == {cell.trail["fingerprint"].split()[0]}
    assert results.gathered([], [by_json, by_csv]).scores["accuracy"].tolist() == expected  # equal rows are one
    assert by_csv.gaps.empty and by_json.gaps["points"].tolist() == [cell.result.difference.points]
    assert by_json.curve["accuracy"].tolist() == [point.accuracy for point in cell.result.curve]


def test_predictions_are_read_back_and_compared(cell: Cell, tmp_path: Path) -> None:
    parquet.write_table(all_predictions([cell]), tmp_path / "items.parquet")
    found = results.read("items.parquet", (tmp_path / "items.parquet").read_bytes())
    ((place, table),) = found.items.items()
    assert place == (cell.model, "length", "en", "linear")
    known = items.by_information(table, "semantic")
    tested = table.filter(compute.equal(table["predictor"], "semantic"))
    assert len(known) == len(tested) and known["pvi"].is_monotonic_decreasing
    information = next(row.information for row in cell.result.rows if row.latent == "semantic")
    assert known["pvi"].mean() == pytest.approx(information, abs=1e-5)
    gap = items.difference(place, table, "semantic", "language")
    assert gap.points == pytest.approx(cell.result.difference.points)
    assert 0 <= gap.p <= 1 and (gap.p < 0.05) == (not gap.ci_low <= 0 <= gap.ci_high)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", b"{", "no JSON document"),
        ("a.json", b"[1]", "no JSON document"),
        ("a.json", b"\xff", "no JSON document"),
        ("a.json", b'{"schema": "bgt-probe/9"}', "bgt-probe/9.*reads bgt-probe/3"),
        ("a.json", b'{"schema": "bgt-probe/3", "results": [{"model": "m", "rows": [{}]}]}', "not whole"),
        ("a.json", b'{"schema": "bgt-probe/3", "results": [3]}', "not whole"),
        ("a.parquet", b"PAR1", "no predictions"),
        ("a.csv", b"", "no table"),
        ("a.csv", b"x,y\n1,2\n", "no table"),
    ],
)
def test_other_files_are_refused_by_name(name: str, content: bytes, said: str) -> None:
    with pytest.raises(BgtError, match=said):
        results.read(name, content)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BgtError, match=r"absent.json: can't be read"):
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


def test_trainings_of_one_name_and_kinds_of_probe_stay_apart(made: Callable) -> None:
    given = [("0 fp32 cpu", "linear", 1.0), ("0 bf16 cuda", "linear", 2.0), ("1 fp32 cpu", "linear", 3.0),
             ("1 fp32 cpu", "mlp50", 4.0)]  # fmt: skip
    found = results.gathered([], [read(made("m", "en", points, of, probe)) for of, probe, points in given])
    kept = found.gaps.groupby("model")["points"].first().to_dict()
    assert kept == {"m 0": 2.0, "m 1": 3.0, "m 1, mlp50": 4.0}  # the same weights elsewhere are the same model
    assert set(found.scores["model"]) == set(kept)


def test_the_same_weights_under_two_names_are_one_model(
    made: Callable, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    found = results.gathered(
        [], [read(made("elsewhere", fingerprint="7 fp32 cpu")), read(made(str(saved), fingerprint="7 bf16 cuda"))]
    )
    assert set(found.scores["model"]) == {"model"} and len(found.scores) == 6


def test_a_gap_of_english_belongs_to_the_other_language_of_its_model(made: Callable) -> None:
    given = [
        read(made("a", "en")),
        read(made("b", "en", langs=("en", "fr", "tr"))),
        read(made("c", "tr", langs=("en", "tr"))),
    ]
    placed = languages.placed(results.gathered([], given).gaps)
    assert placed.groupby("model")["other"].first().to_dict() == {"a": "fr", "b": "en", "c": "tr"}


def test_trends_need_three_languages(made: Callable) -> None:
    points = {"fr": -10.0, "tr": -20.0, "ja": -40.0}
    found = results.gathered([], [read(made(f"en-{lang}", lang, gap)) for lang, gap in points.items()])
    trends = languages.trends(languages.placed(found.gaps), "weeks")
    assert trends["length"].langs == ("fr", "tr", "ja") and trends["length"].pearson < -0.9
    two = results.gathered([], [read(made(f"en-{lang}", lang, points[lang])) for lang in ("fr", "tr")])
    assert languages.trends(languages.placed(two.gaps), "weeks") == {}


def test_the_papers_numbers_stand_beside_where_it_has_any(made: Callable) -> None:
    found = results.gathered([], [read(made("m", "en")), read(made("x", "de", langs=("en", "de")))])
    placed = languages.placed(found.gaps).set_index(["lang", "task"])
    assert placed.loc[("en", "length"), languages.PAPER].tolist() == pytest.approx([73.0, 80.2, -7.2])  # table 3, en-fr
    assert placed.loc["de"][languages.PAPER].isna().all(axis=None)
    dots = scores.gap_dots(placed.reset_index()).data
    (grey,) = (trace for trace in dots if trace.name == "the paper")
    assert list(grey.x) == pytest.approx([-7.2, 60.7 - 65.3]) and grey.marker.color == theme.REST
    both = scores.paper_dots(scores.probe_dots(languages.both(found.scores)), placed.reset_index()).data
    assert [list(trace.x) for trace in both[-2:]] == [[73.0, 60.7], [80.2, 65.3]]


def test_a_probe_on_the_spot_is_the_commands(saved: Path, start: Callable[..., None]) -> None:
    start("--model", saved)
    said: list[str] = []
    found = running.measured(state.model(), "length", "fr", options.GRAMMAR, 300, 1, said.append)
    config = probes.ProbeConfig(max_items=300, seeds=1)
    expected = probes.run(bgt_core.load(saved), "length", lang="fr", config=config)
    assert found.result.as_dict() == expected.as_dict() and said[0] == "length fr: semantic"
    assert results.of_cell(found).items[found.model, "length", "fr", "linear"].num_rows == len(found.predictions)


def test_a_learning_curve_is_a_line_a_latent_and_a_mark_a_family() -> None:
    points = [
        vars(CurvePoint(latent, family, n, 0.5 + n / 1000, 0.4, 0.9))
        for latent in ("semantic", "language")
        for family, n in (("linear", 100), ("linear", 200), ("mlp50", 200))
    ]
    curve = pd.DataFrame(points).rename(columns={"probe": "family"})
    traces = {trace.name: trace for trace in scores.learning_curves(curve).data}
    assert set(traces) == {"semantic", "semantic, mlp50", "language", "language, mlp50"}
    assert list(traces["semantic"].x) == [100, 200] and list(traces["semantic"].y) == pytest.approx([60, 70])


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
    gaps = languages.placed(found.gaps)
    dots = scores.gap_dots(gaps).data
    assert {trace.name: list(trace.x) for trace in dots} == {
        "French · en-fr": [-1.0, -1.0],
        "Japanese · en-ja": [2.0, 2.0],
    }
    assert len({trace.marker.symbol for trace in dots if trace.name != "the paper"}) == 2  # never by colour alone
    weeks, axis = languages.DISTANCES["weeks"]
    lines = scores.gap_by_distance(gaps, weeks, axis).data
    assert {trace.name for trace in lines} == {"length", "punct-num"}
    assert list(lines[0].x) == [30, 88] and list(lines[0].y) == [-1.0, 2.0]
