"""Results of probes: read as `bgt-probe` writes them, gathered without mixing models, drawn as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from pyarrow import compute, parquet

import bgt_core
import probes
from app import languages, predictions, probe_results, probe_tables, running, startup, state, task_names
from app.charts import gaps as gap_charts
from app.charts import probes as probe_charts
from app.charts import theme
from bgt_core.errors import BgtError
from bgt_core.tables import save
from probes.cli.output import document
from probes.data.built_in import grammar_sentences
from probes.result import SCHEMA, CurvePoint, Difference, ProbeResult, ProbeScore
from probes.results.store import Cell, all_predictions
from probes.results.tables import long_table
from probes.tasks import TASKS

LATENTS = {"semantic": 0.4, "language": 0.7, "majority": 0.2}


@pytest.fixture
def document_of() -> Callable[..., dict]:
    """document_of(model, lang, points, fingerprint, probe): a document of `bgt-probe --json`, two tasks."""

    def make(
        model: str = "m",
        lang: str = "en",
        points: float = -30.0,
        fingerprint: str | None = None,
        probe: str = "linear",
        langs: tuple[str, ...] = ("en", "fr"),
    ) -> dict:
        fingerprint = f"{model} fp32 cpu" if fingerprint is None else fingerprint
        entries = []
        for task in ("length", "punct-num"):
            rows = [
                ProbeScore(task, lang, name, 800, 100, 5, value, value - 0.1, value + 0.1, 0.01)
                for name, value in LATENTS.items()
            ]
            gap = Difference(task, lang, "semantic", "language", points, points - 5, points + 5, 0.01)
            result = ProbeResult(task, lang, 1, 0, 0.95, rows, gap, 0).as_dict()
            entries.append(
                {"model": model, **result, "trail": {"fingerprint": fingerprint, "probe": probe, "langs": langs}}
            )
        return {"schema": SCHEMA, "results": entries}

    return make


def read(document: object) -> probe_results.ResultTables:
    return probe_results.read("r.json", json.dumps(document).encode())


def test_a_document_becomes_a_row_a_latent_and_a_gap_a_task(document_of: Callable) -> None:
    tables = read(document_of())
    assert len(tables.scores) == 6 and list(tables.scores) == [*probe_results.SCORES, *probe_results.OPTIONAL]
    assert tables.scores.set_index(["task", "latent"])["accuracy"]["length", "language"] == 0.7
    assert tables.gaps["points"].tolist() == [-30, -30]


def test_the_files_of_bgt_probe_say_the_same(cell: Cell, tmp_path: Path) -> None:
    by_json = read(json.loads(json.dumps(document([cell], [], []))))
    save(long_table([cell]), {"csv": tmp_path / "mine.csv"})
    by_csv = probe_results.read("mine.csv", (tmp_path / "mine.csv").read_bytes())
    expected = [row.accuracy for row in cell.result.rows]
    assert by_json.scores["accuracy"].tolist() == by_csv.scores["accuracy"].tolist() == expected
    for tables in (by_json, by_csv):
        assert set(tables.scores["model"]) == {cell.model}
        assert set(tables.scores["fingerprint"]) == {cell.trail["fingerprint"].split()[0]}
    assert probe_results.gathered([], [by_json, by_csv]).scores["accuracy"].tolist() == expected  # equal rows are one
    assert by_csv.gaps.empty and by_json.gaps["points"].tolist() == [cell.result.difference.points]
    assert by_json.curve["accuracy"].tolist() == [point.accuracy for point in cell.result.curve]


def test_predictions_are_read_back_and_compared(cell: Cell, tmp_path: Path) -> None:
    parquet.write_table(all_predictions([cell]), tmp_path / "items.parquet")
    tables = probe_results.read("items.parquet", (tmp_path / "items.parquet").read_bytes())
    ((key, table),) = tables.items.items()
    assert key[:4] == (cell.model, "length", "en", "linear") and not key.live
    sorted_items = predictions.by_information(table, "semantic")
    tested = table.filter(compute.equal(table["predictor"], "semantic"))
    assert len(sorted_items) == len(tested) and sorted_items["pvi"].is_monotonic_decreasing
    information = next(row.information for row in cell.result.rows if row.latent == "semantic")
    assert sorted_items["pvi"].mean() == pytest.approx(information, abs=1e-5)
    gap = predictions.difference(key, table, "semantic", "language")
    assert gap.points == pytest.approx(cell.result.difference.points)
    assert 0 <= gap.p <= 1 and (gap.p < 0.05) == (not gap.ci_low <= 0 <= gap.ci_high)


def test_files_of_the_former_schema_are_read(document_of: Callable, cell: Cell, tmp_path: Path) -> None:
    document = document_of()
    text = json.dumps({**document, "schema": "bgt-probe/3"}).replace('"fingerprint"', '"made_of"')
    assert probe_results.read("r.json", text.encode()).scores.equals(read(document).scores)
    save(long_table([cell]), {"csv": tmp_path / "mine.csv"})
    content = (tmp_path / "mine.csv").read_bytes()
    former = probe_results.read("mine.csv", content.replace(b"fingerprint", b"made_of", 1))
    assert former.scores.equals(probe_results.read("mine.csv", content).scores)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", "no JSON document"),
        ("a.json", b"[1]", "no JSON document"),
        ("a.json", b"\xff", "no JSON document"),
        ("a.json", b'{"schema": "bgt-probe/9"}', "bgt-probe/9.*reads bgt-probe/4"),
        ("a.json", b'{"schema": "bgt-probe/4", "results": [{"model": "m", "rows": [{}]}]}', "incomplete"),
        ("a.json", b'{"schema": "bgt-probe/4", "results": [3]}', "incomplete"),
        ("a.parquet", b"PAR1", "no predictions"),
        ("a.csv", b"", "no table"),
        ("a.csv", b"x,y\n1,2\n", "no table"),
    ],
)
def test_other_files_are_refused_by_name(name: str, content: bytes, message: str) -> None:
    with pytest.raises(BgtError, match=message):
        probe_results.read(name, content)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BgtError, match=r"absent.json: can't be read"):
        probe_results.gathered([tmp_path / "absent.json"], [])


def test_models_are_called_by_name_and_never_mixed(
    document_of: Callable, tmp_path: Path, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    for number, model in enumerate((saved, "runs/fr", "other/es", "runs/fr")):
        document = json.dumps(document_of(str(model), points=-number))
        (tmp_path / f"{number}.json").write_text(document, "utf-8")
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    tables = probe_results.gathered([tmp_path], [])
    assert set(tables.scores["model"]) == {"model", "fr", "es"}
    points = tables.gaps.groupby("model")["points"].unique().map(list).to_dict()
    assert points == {"model": [0], "fr": [-1, -3], "es": [-2]}  # neither of the two is replaced
    same_end = probe_results.gathered([], [read(document_of("a/run")), read(document_of("b/run"))])
    assert set(same_end.scores["model"]) == {"a/run", "b/run"}


def test_trainings_of_one_name_and_kinds_of_probe_stay_apart(document_of: Callable) -> None:
    given = [("0 fp32 cpu", "linear", 1.0), ("0 bf16 cuda", "linear", 2.0), ("1 fp32 cpu", "linear", 3.0),
             ("1 fp32 cpu", "mlp50", 4.0)]  # fmt: skip
    tables = probe_results.gathered(
        [], [read(document_of("m", "en", points, of, probe)) for of, probe, points in given]
    )
    points = tables.gaps.groupby("model")["points"].unique().map(list).to_dict()
    assert points == {"m 0": [1, 2], "m 1": [3], "m 1, mlp50": [4]}  # the same weights elsewhere are the same model
    assert set(tables.scores["model"]) == set(points)


def test_the_same_weights_under_two_names_are_one_model(
    document_of: Callable, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    tables = probe_results.gathered(
        [],
        [
            read(document_of("elsewhere", fingerprint="7 fp32 cpu")),
            read(document_of(str(saved), fingerprint="7 bf16 cuda")),
        ],
    )
    assert set(tables.scores["model"]) == {"model"} and len(tables.scores) == 6


def test_a_gap_of_english_belongs_to_the_other_language_of_its_model(document_of: Callable) -> None:
    given = [
        read(document_of("a", "en")),
        read(document_of("b", "en", langs=("en", "fr", "tr"))),
        read(document_of("c", "tr", langs=("en", "tr"))),
    ]
    gaps = languages.with_paper(probe_results.gathered([], given).gaps)
    assert gaps.groupby("model")["other"].first().to_dict() == {"a": "fr", "b": "en", "c": "tr"}


def test_trends_need_three_languages(document_of: Callable) -> None:
    points = {"fr": -10.0, "tr": -20.0, "ja": -40.0}
    tables = probe_results.gathered([], [read(document_of(f"en-{lang}", lang, gap)) for lang, gap in points.items()])
    trends = languages.trends(languages.with_paper(tables.gaps), "weeks")
    assert trends["length"].langs == ("fr", "tr", "ja") and trends["length"].pearson < -0.9
    two = probe_results.gathered([], [read(document_of(f"en-{lang}", lang, points[lang])) for lang in ("fr", "tr")])
    assert languages.trends(languages.with_paper(two.gaps), "weeks") == {}


def test_the_papers_numbers_stand_beside_where_it_has_any(document_of: Callable) -> None:
    tables = probe_results.gathered(
        [], [read(document_of("m", "en")), read(document_of("x", "de", langs=("en", "de")))]
    )
    gaps = languages.with_paper(tables.gaps).set_index(["lang", "task"])
    assert gaps.loc[("en", "length"), languages.PAPER].tolist() == pytest.approx([73.0, 80.2, -7.2])  # table 3, en-fr
    assert gaps.loc["de"][languages.PAPER].isna().all(axis=None)
    dots = gap_charts.gap_dots(gaps.reset_index()).data
    (grey,) = (trace for trace in dots if trace.name == gap_charts.PAPER)
    assert list(grey.x) == pytest.approx([-7.2, 60.7 - 65.3])
    (own,) = (trace for trace in dots if trace.name.startswith("English"))
    assert grey.marker.symbol == f"{own.marker.symbol}-open" and grey.marker.color == theme.SOFT["light"]
    latents = languages.of_latents(tables.scores)
    both = [trace for trace in probe_charts.probe_dots(latents, paper=gaps.reset_index()).data if trace.x is not None]
    assert [list(trace.x) for trace in both[-2:]] == [[73.0, 60.7], [80.2, 65.3]]
    assert [trace.marker.symbol for trace in both[-2:]] == [f"{trace.marker.symbol}-open" for trace in both[:2]]


@pytest.mark.parametrize("text", [None, startup.GRAMMAR])
def test_a_probe_on_the_spot_is_the_commands(
    text: startup.ParallelText | None, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    reports: list[str] = []
    cell = running.run(state.model(), "length", "fr", text, "", 300, 1, reports.append)
    config = probes.ProbeConfig(max_items=300, seeds=1)
    lines = grammar_sentences("fr") if text else None  # the command's own choice
    expected = probes.run(bgt_core.load(saved), "length", lines, lang="fr", config=config)
    assert cell.result.as_dict() == expected.as_dict() and reports[0] == "length fr: semantic"
    ((key, items),) = probe_results.from_cells([cell], live=True).items.items()
    assert key[:5] == (cell.model, "length", "fr", "linear", True) and items.num_rows == len(cell.predictions)


def test_a_run_with_fewer_sentences_stands_beside_the_stored_one(document_of: Callable, cell: Cell) -> None:
    rows = [replace(row, n_train=80, n_test=20, accuracy=row.accuracy / 2) for row in cell.result.rows]
    gap = replace(cell.result.difference, points=-1.5, ci_low=-9.0, ci_high=6.0)
    trail = {**cell.trail, "data": "Built-in grammar", "items_sha256": "0" * 64}
    short = replace(cell, result=replace(cell.result, seeds=1, rows=rows, difference=gap), trail=trail)
    stored, live = probe_results.from_cells([cell]), probe_results.from_cells([short], live=True)
    tables = probe_results.gathered([], [stored, live, stored, live])  # the same twice is not doubled
    by_origin = {bool(live): part for live, part in tables.scores.groupby("live")}
    assert by_origin[False]["accuracy"].tolist() == [row.accuracy for row in cell.result.rows]
    assert by_origin[True]["accuracy"].tolist() == [row.accuracy for row in rows]
    assert by_origin[False]["n_test"].iloc[0] > 20 == by_origin[True]["n_test"].iloc[0]
    assert set(by_origin[True]["mark"]) == {"run here: 80 + 20 sentences, 1 seed, Built-in grammar"}
    assert set(by_origin[False]["mark"]).isdisjoint({"", *by_origin[True]["mark"]})
    points = tables.gaps.set_index("live")["points"].to_dict()
    assert points == {False: cell.result.difference.points, True: -1.5}
    assert {key.live for key in tables.items} == {False, True}
    drawn = {trace.name: list(trace.x) for trace in gap_charts.gap_dots(languages.with_paper(tables.gaps)).data}
    drawn.pop(gap_charts.PAPER)
    assert sorted(drawn.values()) == sorted([[points[False]], [-1.5]])  # each is a mark of its own
    dots = probe_charts.probe_dots(tables.scores)
    assert len(set(dots.data[0].y)) == 2 and [shape.type for shape in dots.layout.shapes] == ["rect"]


def test_results_in_the_folder_of_a_model_are_its_own(
    document_of: Callable, saved: Path, start: Callable[..., None]
) -> None:
    start("--model", saved)
    tables = probe_results.gathered(startup.read().results, [])
    assert set(tables.scores["model"]) == {name for name in startup.shipped() if name.startswith("bgt-")}


def test_a_learning_curve_is_a_line_a_latent_and_a_mark_a_family() -> None:
    points = [
        vars(CurvePoint(latent, family, n, 0.5 + n / 1000, 0.4, 0.9))
        for latent in ("semantic", "language")
        for family, n in (("linear", 100), ("linear", 200), ("mlp50", 200))
    ]
    curve = pd.DataFrame(points).rename(columns={"probe": "family"})
    traces = {trace.name: trace for trace in probe_charts.learning_curves(curve).data}
    assert set(traces) == {"semantic", "semantic, mlp50", "language", "language, mlp50"}
    assert list(traces["semantic"].x) == [100, 200] and list(traces["semantic"].y) == pytest.approx([60, 70])


def test_dots_stand_at_their_numbers_with_their_intervals(document_of: Callable) -> None:
    table = read(document_of()).scores
    traces = {trace.name: trace for trace in probe_charts.probe_dots(table).data}
    assert set(traces) == {"semantic", "language", probe_charts.BASELINE}
    for name in ("semantic", "language"):
        assert traces[name].x == pytest.approx([100 * LATENTS[name]] * 2)
        assert traces[name].error_x.array == pytest.approx([10, 10])
        assert traces[name].marker.color == theme.latent_colour(name, "light")
    assert traces[probe_charts.BASELINE].x == pytest.approx([100 * LATENTS["majority"]] * 2)
    assert traces[probe_charts.BASELINE].marker.symbol not in {trace.marker.symbol for trace in traces.values()} - {
        "line-ns"
    }


def test_lines_are_grouped_and_sorted_by_the_lead_of_the_semantic_latent(document_of: Callable) -> None:
    table = read(document_of()).scores
    others = table.assign(task=table["task"].map({"length": "tense", "punct-num": "subj-num"}))
    leads = others["accuracy"].where((others["task"] != "subj-num") | (others["latent"] != "semantic"), 0.9)
    own = table[table["task"] == "length"].assign(task="mine")
    lines = probe_charts.in_order(pd.concat([table, own, others.assign(accuracy=leads)]), "accuracy")
    assert list(zip(lines["group"], lines["task"], strict=True)) == [
        ("Meaning", "subj-num"), ("Meaning", "tense"), ("Surface", "length"), ("Surface", "punct-num"),
        (task_names.OTHERS, "mine"),
    ]  # fmt: skip


def test_gaps_are_drawn_for_each_language_and_distance(document_of: Callable) -> None:
    tables = probe_results.gathered(
        [], [read(document_of(f"en-{lang}", lang, gap)) for lang, gap in (("fr", -1.0), ("ja", 2.0))]
    )
    gaps = languages.with_paper(tables.gaps)
    dots = {trace.name: trace for trace in gap_charts.gap_dots(gaps).data}
    assert {name: list(trace.x) for name, trace in dots.items()} == {
        "French · en-fr": [-1.0, -1.0],
        "Japanese · en-ja": [2.0, 2.0],
    }
    for name, lang in (("French · en-fr", "fr"), ("Japanese · en-ja", "ja")):  # the same in every figure
        assert dots[name].marker.color == theme.lang_colour(lang, "light")
        assert dots[name].marker.symbol == theme.SYMBOLS[theme.lang_place(lang)]
    weeks, axis = languages.DISTANCES["weeks"]
    line, *marks = gap_charts.gap_by_distance(gaps, "length", weeks, axis).data
    assert [(*trace.x, *trace.y, *trace.text) for trace in marks] == [(30, -1.0, "French"), (88, 2.0, "Japanese")]
    assert list(line.x) == [30, 88] and list(line.y) == pytest.approx([-1.0, 2.0])
    for name, lang in (("French", "fr"), ("Japanese", "ja")):
        (mark,) = (trace for trace in marks if trace.name == name)
        assert mark.marker.symbol == theme.SYMBOLS[theme.lang_place(lang)]


def test_a_row_per_result_has_both_latents_their_difference_and_the_best_baseline(document_of: Callable) -> None:
    tables = probe_results.gathered([], [read(document_of())])
    row = probe_tables.by_result(tables.scores, tables.gaps).iloc[0].to_dict()
    assert list(row)[:5] == ["task", "lang", "semantic", "language", "points"]  # a phone shows the first ones
    expected = {"semantic": 40, "language": 70, "points": -30, "best": 20, "which": "majority", "p": "0.010"}
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["task"] == "Length" and row["run"] == "800 + 100 sentences, 1 seed"
    assert [probe_tables.p_value(p) for p in (2e-9, 0.0009, 0.0312, float("nan"))] == [
        "< 0.001",
        "< 0.001",
        "0.031",
        "",
    ]


def test_every_task_has_a_name_a_line_of_help_and_a_group() -> None:
    assert set(task_names.TITLES) == set(task_names.HELP) == set(TASKS)
    assert all(task_names.group(task) in task_names.GROUPS for task in TASKS)
    assert not task_names.defined("gender", "ja") and task_names.defined("gender", "fr")
    assert not task_names.defined("length", "en-fr") and task_names.defined("lang-id", "en-fr")
    assert task_names.why_not("length", "ja") == "" and "es, fr" in task_names.why_not("gender", "en").replace(
        "fr, es", "es, fr"
    )
    assert "CoNLL-U" in task_names.why_not("tense", "fr")


PARSED = """# text = {text}
1\tShe\tshe\tPRON\t_\tNumber=Sing\t2\tnsubj\t_\t_
2\t{verb}\tsing\tVERB\t_\tMood=Ind|Tense={tense}|VerbForm=Fin\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""


def test_a_file_of_parses_makes_tense_runnable() -> None:
    verbs = [(f"sing{number}{end}", tense) for number in range(120) for end, tense in (("s", "Pres"), ("ed", "Past"))]
    text = "".join(PARSED.format(text=f"She {verb}.", verb=verb, tense=tense) for verb, tense in verbs)
    file = running.LabelledFile("mine.conllu", text.encode())
    dataset = running.load_file(TASKS["tense"], "en", file)
    assert len(dataset.items.labels) == 240 and set(dataset.items.labels) == {"Past", "Pres"}
    assert dataset.about["data"] == "mine.conllu"
    with pytest.raises(BgtError, match=r"^mine\.conllu: task 'top-const'"):
        running.load_file(TASKS["top-const"], "en", file)
