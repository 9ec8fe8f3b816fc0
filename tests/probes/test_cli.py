"""Test the output, the files and the errors of `bgt-probe`, with a fake model."""

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.errors import DataError
from probes.results.store import read_cells
from probes.tables import long_table

BARE = ("--max-items", "400", "--seeds", "2", "--no-control", "--no-baselines")
QUICK = ("--lang", "fr", "--task", "punct-num", *BARE)


def results(result: Any) -> list[dict]:
    return json.loads(result.out)["results"]


def test_the_table_is_on_stdout_and_progress_on_stderr(probe: Callable, fake: Any) -> None:
    result = probe(*QUICK[:4], "--max-items", "400", "--seeds", "2")
    assert result.code == 0, result.err
    head, *rows = (line.split("\t") for line in result.out.split("\n\n")[0].splitlines())
    assert head[:9] == ["task", "lang", "latent", "train", "test", "classes", "accuracy", "95% CI", "sd"]
    assert head[9:] == ["over best baseline", "note"]  # too few test items for the column selectivity
    grams = ["word 1-2-grams", "character 3-5-grams"]
    assert [row[2] for row in rows] == ["semantic", "language", "semantic, translation", "majority", "length", *grams]
    assert all(row[4] == "80" for row in rows) and rows[0][-1].startswith("not separable from majority")
    assert "semantic - language" in result.out
    assert "punct-num fr: semantic" in result.err and "punct-num fr: semantic" not in result.out


def test_files_have_the_format_of_their_ending_and_the_numbers_of_the_json(
    probe: Callable, fake: Any, tmp_path: Path
) -> None:
    files = {ending: tmp_path / f"t.{ending}" for ending in ("parquet", "csv", "md", "tex", "json")}
    given = [part for file in files.values() for part in ("--out", str(file))]
    result = probe(*QUICK, "--task", "length", "--json", *given)
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["schema"] == "bgt-probe/6" and document == json.loads(files["json"].read_text("utf-8"))
    assert [one["task"] for one in document["results"]] == ["punct-num", "length"]
    cells = read_cells(files["parquet"])
    assert [cell.as_dict() for cell in cells] == document["results"]
    items = cells[1].predictions.to_pylist()
    right = [item["predicted"] == item["label"] for item in items if item["predictor"] == "semantic"]
    assert np.mean(right) == pytest.approx(cells[1].row("semantic").accuracy)
    with files["csv"].open(encoding="utf-8", newline="") as file:
        accuracies = [row["accuracy"] for row in csv.DictReader(file)]
    assert accuracies == [str(row["accuracy"]) for row in long_table(cells).records()]
    assert files["md"].read_text("utf-8").startswith("| task | lang | semantic |")
    assert "task & lang & semantic & language" in files["tex"].read_text("utf-8")


def test_several_encoders_side_by_side(probe: Callable, fake: Any) -> None:
    result = probe(*QUICK, "--model", "mine=fake", "--model", "other")
    assert result.code == 0, result.err
    assert "\tmine\tsemantic\t" in result.out
    assert "task\tlang\tmine semantic\tmine language\tother semantic" in result.out


def test_untrained_models_are_rows(probe: Callable, saved: Path) -> None:
    result = probe(*QUICK, "--model", str(saved), "--untrained", "--latent", "semantic", "--json")
    assert result.code == 0, result.err
    rows = {row["latent"]: row for row in results(result)[0]["rows"]}
    assert rows["semantic"]["encoders"] == 1 and rows["untrained encoder"]["encoders"] == 3
    assert "mean of tokens" in rows


def test_sentevals_protocol_is_named(probe: Callable, fake: Any) -> None:
    run = probe(*QUICK, "--senteval", "--json")
    assert run.code == 0, run.err
    assert "SentEval's protocol" in json.loads(run.out)["about"]
    assert [row["latent"] for row in results(run)[0]["rows"]] == ["semantic", "language"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with text in two languages. The English text is too short for a probe."""
    for lang, count in (("fr", 600), ("en", 30)):
        lines = "".join(f"{lang} {number}{'.' * (number % 2 + 1)}\n" for number in range(count))
        (tmp_path / f"{lang}.txt").write_text(lines, encoding="utf-8")
    return tmp_path


def test_a_stopped_or_failing_command_writes_the_finished_results(
    probe: Callable, fake: Any, folder: Path, tmp_path: Path
) -> None:
    def stop(error: BaseException) -> None:
        if fake.calls == 3:  # interrupts while the second task is measured
            raise error

    arguments = ("--lang", "en,fr", *QUICK[2:], "--json", "--out", str(tmp_path / "r.parquet"))
    for error, code, message in (
        (KeyboardInterrupt(), 130, "bgt-probe: stopped after 1 results"),
        (DataError("row 3 holds infinity"), 5, "punct-num fr, bgt-en-fr: row 3 holds infinity"),
    ):
        fake.calls, fake.before = 0, partial(stop, error)
        done = probe(*arguments)
        assert done.code == code and message in done.err
        assert [one["lang"] for one in results(done)] == ["en"] and len(read_cells(tmp_path / "r.parquet")) == 1
    fake.calls = 9
    result = probe("--lang", "fr,en", *QUICK[2:], "--data", str(folder), "--json")
    document = json.loads(result.out)
    assert result.code == 5 and [one["lang"] for one in document["results"]] == ["fr"]
    assert document["failed"][0]["cell"].startswith("punct-num en") and "punct-num en: Task" in result.err
    assert document["results"][0]["trail"]["card"]["sha256"].keys() == {"fr.txt"}


def test_if_all_cells_fail_the_first_error_has_the_exit_code(probe: Callable, fake: Any, folder: Path) -> None:
    result = probe("--lang", "fr,en", "--task", "tense", "--data", str(folder), *BARE)
    assert (result.code, result.out) == (3, "") and "No 'fr' data for task 'tense' in" in result.err
    assert result.err.rstrip().endswith("So nothing could be measured.")
    alone = probe("--lang", "fr", "--task", "tense", "--data", str(folder), *BARE)
    assert alone.code == 3 and alone.err.startswith("bgt-probe: No 'fr' data")
    (folder / "one.tsv").write_text("".join(f"tr\tA\tWord {number} .\n" for number in range(300)), "utf-8")
    last = probe("--lang", "en", "--data", str(folder / "one.tsv")).err.splitlines()[-1]
    assert last.startswith("bgt-probe: ") and "with the label 'A' alone; it needs 140 items with 2 labels" in last


def test_tasks_of_a_group_without_a_definition_or_a_source_are_skipped(
    probe: Callable, fake: Any, folder: Path
) -> None:
    result = probe("--lang", "all", "--task", "paper", "--data", str(folder), *BARE, "--json")
    assert [(one["task"], one["lang"]) for one in results(result)] == [("punct-num", "fr")]
    assert "skipped: Task 'gender' is not defined for 'en'" in result.err
    assert "skipped: No 'fr' data for task 'subj-num'" in result.err


def test_sentences_are_embedded_in_the_language_of_their_label(probe: Callable, fake: Any, tmp_path: Path) -> None:
    """The fake encoder's vectors depend only on `lang`, so that a probe predicts the language perfectly."""
    for lang in ("en", "fr"):
        lines = "".join(f"{lang}{'x' * (number % 7)} {number}\n" for number in range(300))
        (tmp_path / f"{lang}.txt").write_text(lines, encoding="utf-8")
    fake.embed = lambda sentences, lang, latent: np.full((len(sentences), 1), lang == "fr", dtype=np.float32)
    arguments = ("--lang", "en-fr", "--task", "lang-id", "--data", str(tmp_path), *BARE)
    ((row,),) = (entry["rows"] for entry in results(probe(*arguments, "--json")))
    assert (row["latent"], row["accuracy"]) == ("semantic", 1.0)
    both = probe(*arguments, "--latent", "language")
    assert both.code == 2
    assert "--latent language: the latents of en and fr are not comparable; choose semantic" in both.err


def test_listing_tasks_needs_no_model(probe: Callable) -> None:
    result = probe("--list-tasks")
    assert result.code == 0
    rows = dict(line.split("\t")[:2] for line in result.out.splitlines()[1:])
    assert len(rows) == 18 and next(iter(rows)) == "subj-num"
    assert (rows["gender"], rows["depth"], rows["politeness"]) == ("fr, es", "any", "ja")


OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {})  # torch's error for a full GPU has this name


@pytest.mark.parametrize("error", [MemoryError, OutOfMemoryError, RuntimeError, KeyError])
def test_out_of_memory_has_an_exit_code_and_internal_errors_are_raised(
    probe: Callable, fake: Any, error: type[Exception]
) -> None:
    def fail() -> None:
        raise error("no")

    fake.before = fail
    if error in (RuntimeError, KeyError):
        with pytest.raises(error, match="no"):
            probe(*QUICK)
        return
    result = probe(*QUICK)
    assert result.code == 6 and "out of memory: give --max-items" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--probe", "mlp0"), 2, "--probe mlp0: choose linear, or mlp50"),
        (("--seeds", "99"), 2, "--seeds 99: choose 1 to 10"),
        (("--resamples", "10"), 2, "--resamples 10 must be at least 100"),
        (("--max-items", "10"), 2, "--max-items 10 must be at least 140"),
        (("--out", "absent/p.parquet"), 3, "the folder absent does not exist"),
        (("--out", "table.xlsx"), 2, "--out table.xlsx: expected a file that ends in .parquet, .json"),
        (("--data", "absent.txt"), 3, "--data absent.txt: no such file or folder."),
        (("--latent", "meaning"), 2, "--latent 'meaning': choose from semantic, language."),
        (("--model", "a", "--model", "b", "--untrained"), 2, "--untrained can be used with only one --model"),
        (("--senteval", "--untrained"), 2, "--untrained is not part of SentEval's protocol"),
        (("--model", "a", "--model", "german"), 2, "--lang fr: the model supports en, de."),
        (("--model", "baseline:words", "--untrained"), 2, "--untrained needs a BGT checkpoint"),
        (("--model", "a=x", "--model", "a=y"), 2, "two have the same name"),
        (("--task", "sintax"), 2, "Unknown task 'sintax'. Did you mean 'syntax'?"),
        (("--task", "tense"), 2, "can't be labelled from sentences alone: it needs past_present.txt"),
        (("--lang", "en-fr"), 2, "Task 'punct-num' needs one language, not 'en-fr'"),
        (("--lang", "es"), 2, "--lang es: the model supports en, fr."),
    ],
)
def test_an_error_has_a_message_and_an_exit_code_and_writes_no_file(
    probe: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], code: int,
    message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    result = probe(*QUICK, *arguments)
    assert message in result.err and "Traceback" not in result.err
    assert (result.code, result.out) == (code, "") and not list(tmp_path.iterdir())


def test_without_a_language_or_a_cell_to_measure_there_is_an_error(probe: Callable, fake: Any) -> None:
    assert "--lang is needed" in probe().err
    nothing = probe("--lang", "en-fr", "--task", "syntax")
    assert (nothing.code, nothing.out, nothing.err.count("\n")) == (2, "", 1)
    assert "none of syntax can be measured in en-fr" in nothing.err


def test_json_is_ascii_for_an_ascii_terminal(
    probe: Callable, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"Oui {n}, là{'…' if n % 2 else ' ?'}\n«{n}» non.\n" for n in range(150))
    (tmp_path / "é.txt").write_text(lines, "utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert probe("--lang", "fr", "--task", "punct-first", "--data", tmp_path / "é.txt", *BARE, "--json").code == 0
    terminal.seek(0)
    assert json.load(terminal)["results"][0]["labels"] == [",", "«"]
