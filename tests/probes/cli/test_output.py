"""`bgt-probe` over many cells: kept, stopped, gone on with, compared, written, and partly failed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from pyarrow import parquet

from bgt_core.errors import DataError
from probes.cli import app

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "bgt-probe-options.txt"
QUICK = ("--max-items", "400", "--seeds", "2", "--control", "none", "--no-baselines")


def results(result: Any) -> list[dict]:
    return json.loads(result.out)["results"]


def test_the_same_command_again_is_served_from_what_was_kept(probe: Callable, fake: Any) -> None:
    arguments = ("--lang", "en,fr", "--task", "punct-num", *QUICK)
    first = probe(*arguments)
    assert first.code == 0, first.err
    calls = fake.calls
    again = probe(*arguments)
    assert again.out == first.out
    assert fake.calls == calls
    assert again.err.count("measured 20") == 2
    fresh = probe(*arguments, "--json", "--seed", "1")
    assert fresh.out == probe(*arguments, "--json", "--seed", "1").out
    calls = fake.calls
    probe(*arguments, "--no-cache")
    assert fake.calls == calls + 4


def test_other_probes_use_the_same_vectors(probe: Callable, fake: Any) -> None:
    arguments = ("--lang", "fr", "--task", "punct-num", *QUICK)
    probe(*arguments)
    calls = fake.calls
    entries = results(probe(*arguments, "--probe", "linear,mlp5", "--json"))
    assert fake.calls == calls
    assert [one["rows"][0]["probe"] for one in entries] == ["linear", "mlp5"]


def test_other_weights_are_other_results(probe: Callable, fake: Any) -> None:
    arguments = ("--lang", "fr", "--task", "punct-num", *QUICK)
    probe(*arguments)
    fake.fingerprint = "trained on"
    calls = fake.calls
    probe(*arguments)
    assert fake.calls == 2 * calls


def test_a_stopped_command_keeps_what_is_done_and_goes_on(probe: Callable, fake: Any) -> None:
    def stop() -> None:
        if fake.calls == 3:  # in the middle of the second cell
            raise KeyboardInterrupt

    arguments = ("--lang", "en,fr", "--task", "punct-num", *QUICK, "--json")
    fake.before = stop
    stopped = probe(*arguments)
    assert stopped.code == 130
    assert [one["lang"] for one in results(stopped)] == ["en"]
    assert "continues from there" in stopped.err
    fake.before = lambda: None
    whole = probe(*arguments)
    assert whole.code == 0
    assert fake.calls == 4  # not even the vectors of half a cell are made again
    first, again = ([row | {"note": ""} for row in results(one)[0]["rows"]] for one in (stopped, whole))
    assert first == again  # notes hold p, which Holm corrects over the whole table
    assert [one["lang"] for one in results(whole)] == ["en", "fr"]


def test_stopped_before_anything_is_done(probe: Callable, fake: Any) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    fake.before = stop
    result = probe("--lang", "fr", "--task", "punct-num", *QUICK)
    assert (result.code, result.out) == (130, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Text of two languages; one of them too short to probe."""
    where = tmp_path / "data"
    where.mkdir()
    for lang, count in (("fr", 600), ("en", 30)):
        lines = "".join(f"{lang} {number}{'.' * (number % 2 + 1)}\n" for number in range(count))
        (where / f"{lang}.txt").write_text(lines, encoding="utf-8")
    return where


def test_some_failed_cells_leave_the_others_and_say_so(probe: Callable, fake: Any, folder: Path) -> None:
    result = probe("--lang", "fr,en", "--task", "punct-num", "--data", str(folder), *QUICK, "--json")
    assert result.code == 5
    document = json.loads(result.out)
    assert [one["lang"] for one in document["results"]] == ["fr"]
    assert document["failed"][0]["cell"].startswith("punct-num en")
    assert "bgt-probe: punct-num en" in result.err
    trail = document["results"][0]["trail"]
    assert trail["card"]["sha256"].keys() == {"fr.txt"}
    assert trail["fingerprint"] == "fake"


def test_where_all_cells_fail_the_first_says_the_code(probe: Callable, fake: Any, folder: Path) -> None:
    result = probe("--lang", "fr,en", "--task", "tense", "--data", str(folder), *QUICK)
    assert (result.code, result.out) == (3, "")
    assert "No 'fr' data for task 'tense' in" in result.err
    assert "nothing could be measured" in result.err
    alone = probe("--lang", "fr", "--task", "tense", "--data", str(folder), *QUICK)
    assert alone.code == 3
    assert alone.err.startswith("bgt-probe: No 'fr' data")


def test_groups_take_what_has_a_meaning_and_a_source(probe: Callable, fake: Any, folder: Path) -> None:
    result = probe("--lang", "all", "--task", "paper", "--data", str(folder), *QUICK, "--json")
    tasks = [(one["task"], one["lang"]) for one in results(result)]
    assert tasks == [("punct-num", "fr")]
    assert "skipped: Task 'gender' has no definition for 'en'" in result.err
    assert "skipped: No 'fr' data for task 'subj-num'" in result.err


def test_languages_are_told_apart_each_read_in_its_own(probe: Callable, fake: Any, tmp_path: Path) -> None:
    """The encoder marks the language that it is told: the probe must find it."""
    for lang in ("en", "fr"):
        lines = "".join(f"{lang}{'x' * (number % 7)} {number}\n" for number in range(300))
        (tmp_path / f"{lang}.txt").write_text(lines, encoding="utf-8")
    fake.embed = lambda sentences, lang, latent: np.full((len(sentences), 1), lang == "fr", dtype=np.float32)
    result = probe("--lang", "en-fr", "--task", "lang-id", "--data", str(tmp_path), *QUICK, "--json")
    (entry,) = results(result)
    assert [row["latent"] for row in entry["rows"]] == ["semantic"]
    assert entry["rows"][0]["accuracy"] == 1.0
    both = probe("--lang", "en-fr", "--task", "lang-id", "--data", str(tmp_path), "--latent", "language", *QUICK)
    assert both.code == 2
    assert "--latent language: the latents of en and fr are not comparable; choose semantic" in both.err


def test_several_encoders_side_by_side(probe: Callable, fake: Any, tmp_path: Path) -> None:
    latex, md = tmp_path / "t.tex", tmp_path / "t.md"
    result = probe("--lang", "fr", "--task", "punct-num", *QUICK, "--model", "mine=fake", "--model", "other",
                   "--difference", "mine/language,other", "--latex", str(latex), "--md", str(md))  # fmt: skip
    assert result.code == 0, result.err
    assert "\tmine\tsemantic\t" in result.out
    assert "\tmine/language - other/semantic\t+" in result.out
    assert "mine semantic & mine language & other semantic & other language" in latex.read_text("utf-8")
    assert md.read_text("utf-8").startswith("| task | lang | mine semantic |")


def test_encoder_seeds_are_means_and_untrained_ones_stand_beside(probe: Callable, saved: Path) -> None:
    result = probe("--lang", "fr", "--task", "punct-num", *QUICK, "--model", str(saved), "--encoder-seeds",
                   "baseline:random@4", "--untrained", "--latent", "semantic", "--json")  # fmt: skip
    assert result.code == 0, result.err
    rows = {row["latent"]: row for row in results(result)[0]["rows"]}
    assert rows["semantic"]["encoders"] == 2
    assert rows["untrained encoder"]["encoders"] == 3
    assert "mean of tokens" in rows


def test_files_hold_the_numbers_of_the_json(probe: Callable, fake: Any, tmp_path: Path) -> None:
    names = {"--csv": "t.csv", "--parquet": "t.parquet", "--predictions": "p.parquet"}
    files = {flag: tmp_path / "out" / name for flag, name in names.items()}
    (tmp_path / "out").mkdir()
    flags = [part for flag, file in files.items() for part in (flag, str(file))]
    result = probe("--lang", "fr", "--task", "punct-num,length", *QUICK, "--json", *flags)
    assert result.code == 0, result.err
    assert {file.name for file in (tmp_path / "out").iterdir()} == set(names.values())
    rows = [row for one in results(result) for row in one["rows"]]
    kept = parquet.read_table(files["--parquet"]).to_pylist()
    with files["--csv"].open(encoding="utf-8", newline="") as file:
        text = list(csv.DictReader(file))
    for row, entry, cells in zip(rows, kept, text, strict=True):
        assert {name: entry[name] for name in row} == row
        assert cells["accuracy"] == str(row["accuracy"])
    items = parquet.read_table(files["--predictions"]).to_pylist()
    mine = [item for item in items if (item["task"], item["predictor"]) == ("length", "semantic")]
    right = np.mean([item["predicted"] == item["label"] for item in mine])
    assert right == pytest.approx(next(row["accuracy"] for row in rows if row["task"] == "length"))


def test_the_paper_protocol_says_so(probe: Callable, fake: Any) -> None:
    run = probe("--lang", "fr", "--task", "punct-num", "--max-items", "300", "--senteval", "--json")
    assert run.code == 0, run.err
    assert "SentEval's protocol" in json.loads(run.out)["about"]
    (result,) = results(run)
    assert [row["latent"] for row in result["rows"]] == ["semantic", "language"]


@pytest.mark.parametrize(
    ("rule", "code", "message"),
    [
        ("punct-num<0.99", 7, "punct-num fr, fake semantic: 0."),
        ("punct-num/language<0.3", 0, ""),
        ("punct-num > 0.2", 7, "is above 0.2"),
        ("punct-num/meaning<0.3", 2, "--fail-on punct-num/meaning: was not measured"),
        ("length<0.3", 2, "--fail-on length: was not measured"),
        ("lenght<0.3", 2, "Did you mean 'length'?"),
        ("punct-num<52", 2, "as in gender<0.52"),
        ("punct-num", 2, "as in gender<0.52"),
    ],
)
def test_scores_can_fail_a_build(probe: Callable, fake: Any, rule: str, code: int, message: str) -> None:
    result = probe("--lang", "fr", "--task", "punct-num", *QUICK, "--model", "fake", "--fail-on", rule)
    assert result.code == code, result.err
    assert message in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--difference", "semantic"), 2, "--difference semantic: expected two different names"),
        (("--difference", "semantic,languge"), 2, "--difference 'languge': unknown. Did you mean 'language'?"),
        (("--max-train", "5"), 2, "--max-train 5 must be at least 140"),
        (("--probe", "forest"), 2, "--probe forest: choose linear"),
        (("--control", "shuffle"), 2, "--control 'shuffle': choose from first, rare"),
        (("--erase", "all"), 2, "--erase 'all': choose from leace, inlp"),
        (("--level", "95"), 2, "--level 95.0: choose a level between 0 and 1"),
        (("--predictions", "absent/p.parquet"), 3, "the folder absent does not exist"),
        (("--model", "a", "--model", "b", "--untrained"), 2, "--untrained is for a single --model"),
        (("--model", "a", "--model", "german"), 2, "--lang fr: the model has en, de."),
        (("--model", "phyton:x:y"), 2, "Did you mean 'python:'?"),
        (
            ("--model", "baseline:words", "--untrained"),
            2,
            "--untrained needs a BGT checkpoint",
        ),
        (("--model", "a=x", "--model", "a=y"), 2, "two have the same name"),
        (("--task", "sintax"), 2, "Unknown task 'sintax'. Did you mean 'syntax'?"),
    ],
)
def test_errors_are_one_line_and_a_code(
    probe: Callable,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = probe("--lang", "fr", "--task", "punct-num", *QUICK, *arguments)
    assert message in result.err
    assert result.code == code
    assert result.out == ""
    assert "Traceback" not in result.err
    assert not list(tmp_path.glob("*.html"))


def test_a_cache_that_cannot_be_written_is_said(probe: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    arguments = ("--lang", "fr", "--task", "punct-num", *QUICK)
    result = probe(*arguments, "--cache-dir", str(tmp_path / "file"))
    assert result.code == 3
    assert "can't be written (File exists); choose another folder, or measure without a cache" in result.err
    assert probe(*arguments, "--cache-dir", str(tmp_path / "file"), "--no-cache").code == 0


def test_an_encoder_that_breaks_down_is_a_failed_cell(probe: Callable, fake: Any) -> None:
    def fail() -> None:
        if fake.calls > 1:
            raise DataError("row 3 holds infinity")

    fake.before = fail
    result = probe("--lang", "fr,en", "--task", "punct-num", *QUICK)
    assert result.code == 5
    assert "punct-num en, bgt-en-fr: row 3 holds infinity" in result.err


def test_what_was_kept_is_listed_and_removed(probe: Callable, fake: Any, tmp_path: Path) -> None:
    where = ("--cache-dir", str(tmp_path / "kept"))
    probe("--lang", "fr", "--task", "punct-num", *QUICK, *where)
    listed = probe("cache", "ls", *where).out.splitlines()
    assert listed[0].split("\t") == ["file", "MB", "days since use"]
    assert sorted(line.split("/")[0] for line in listed[1:]) == ["results", "vectors", "vectors"]
    assert probe("cache", "prune", "--days", "1", *where).out.startswith("0 files removed")
    assert probe("cache", "prune", *where).out.startswith("3 files removed")
    assert len(probe("cache", "ls", *where).out.splitlines()) == 1


def test_the_options_are_these() -> None:
    """Written anew by GOLDEN.write_text(...) when an option is meant to change."""
    options = [option for option in typer.main.get_command(app).params if option.name != "help"]
    lines = [f"{'/'.join((*option.opts, *option.secondary_opts))}\t{option.help or ''}" for option in options]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text("utf-8")
