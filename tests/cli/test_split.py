"""Test `bgt split`, and commands whose option `--model` names the folder that `bgt split` has written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.evaluation.split_report import Report
from bgt_core.splitting import parts

Bgt = Callable[..., Any]  # runs `bgt`; returns exit code, stdout, stderr


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"the {noun} {number}\tle {noun} {number}" for noun in ("cat", "dog", "hat") for number in range(40)]
    Path("pairs.tsv").write_text("\n".join(rows), "utf-8")
    Path("few.tsv").write_text("\n".join(rows[:20]), "utf-8")
    Path("there").mkdir()
    for lang in ("en", "fr"):
        np.save(f"stored.{lang}.npy", np.random.default_rng(lang == "fr").standard_normal((100, 8)).astype(np.float16))
    return tmp_path


@pytest.mark.slow
def test_a_split_is_stored_printed_and_opened(bgt: Bgt, pairs: Path) -> None:
    done = bgt(*"split pairs.tsv --langs en,fr --model baseline:random --method leace --out made".split())
    assert done.code == 0, done.err
    assert "shared units of" in done.out and "language told %" in done.out
    Path("text.en").write_text("the cat 3\n", "utf-8")
    command = ["embed", "text.en", "--lang", "en", "--model", "split:made"]
    assert bgt(*command, "--out", "semantic.npy").code == 0
    assert bgt(*command, "--latent", "language", "--out", "language.npy").code == 0
    assert np.load("semantic.npy").shape == np.load("language.npy").shape
    searched = bgt(*"evaluate retrieval pairs.tsv --langs en,fr --model split:made --resamples 100".split())
    assert searched.code == 0, searched.err


@pytest.mark.slow
def test_a_report_has_each_method_that_the_number_of_rows_allows(
    bgt: Bgt, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def report(encoder: Any, model: str, splits: Any, columns: Any, langs: Any, **settings: Any) -> Report:
        given.extend([set(splits), len(columns[0]), langs, settings["seed"]])
        return Report({}, {}, "measured")

    monkeypatch.setattr("bgt_core.evaluation.split_report.report", report)
    done = bgt(
        *"split pairs.tsv --langs en,fr --model baseline:random --method centring --out made --report --seed 3".split()
    )
    assert done.code == 0 and done.out.endswith("made/report.md\n"), done.err
    assert done.err.count("not in the report: ") == 2  # the methods bgt and neural need more rows
    assert given == [{"centring", "leace", "shift", "subspace"}, 12, ("en", "fr"), 3]
    assert Path("made/report.md").read_text("utf-8").strip() == "measured" and Path("made/report.json").exists()


@pytest.mark.slow
def test_several_files_give_one_split_and_a_report_each(bgt: Bgt, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.tsv").write_text(Path("pairs.tsv").read_text("utf-8").replace("le ", "der "), "utf-8")
    done = bgt(*"split en-fr=pairs.tsv en-de=other.tsv --model baseline:words --method leace --out made".split())
    assert done.code == 4 and "of 8,192 units: at most 4,096" in done.err
    np.save("stored.de.npy", np.random.default_rng(2).standard_normal((100, 8)))
    done = bgt("split", "en-fr=stored", "en-de=stored", "--out", "made", "--method", "bgt")
    assert done.code == 0 and "from 180 rows" in done.out and "The encoder of the stored vectors is unknown" in done.out
    assert parts.load(Path("made")).split.langs == ("en", "fr", "de")
    opened = bgt("embed", "pairs.tsv", "--lang", "en", "--model", "split:made", "--out", "x.npy")
    assert opened.code == 2 and "of an unknown encoder. Fit it again with --model" in opened.err
    made = "bgt_core.evaluation.split_report.report"
    monkeypatch.setattr(made, lambda *given, **_: Report({}, {}, f"{given[4]} {len(given[3][0])}"))
    twice = bgt(
        *"split en-fr=pairs.tsv fr-en=pairs.tsv --model baseline:random --method shift --out two --report".split()
    )
    assert twice.code == 0, twice.err
    for langs in (("en", "fr"), ("fr", "en")):
        assert Path(f"two/report-{'-'.join(langs)}.md").read_text("utf-8").strip() == f"{langs} 12"
    named = bgt(*"split a-b=pairs.tsv --langs a:en,b:fr --model baseline:random --method shift --out named".split())
    assert named.code == 0 and parts.load(Path("named")).split.langs == ("en", "fr")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("pairs.tsv --langs en,fr --out no/new", 3, "the folder no does not exist"),
        ("en,fr,_=pairs.tsv --out new", 4, "2 columns, expected 3"),
        ("pairs.tsv --out new", 2, "add the columns of the file, as in en-fr=pairs.tsv"),
        ("pairs.tsv --langs en,en --out new", 2, "add names, as in a:en,b:en"),
        ("en-fr=pairs.tsv en-de=pairs.tsv --out new", 2, "--langs de: the encoder supports en, fr"),
        ("en-fr=stored --out new --report", 2, "--report needs the sentences"),
        ("en-fr=stored --out new --method leace", 4, "of 8 and of 1024 units"),
        ("en-fr=pairs.tsv en-fr=few.tsv --out new", 2, "few.tsv has 20 rows; at least 50 are needed"),
        ("en-fr=pairs.tsv --out new", 2, "pairs.tsv must have at least 2,276 different rows in en (got "),
        ("pairs.tsv --langs en,fr --out new --method pca", 2, "pca"),
        ("pairs.tsv --langs en,fr --out new --sts-data there", 2, "--sts-data is used only for the report: add"),
    ],
)
def test_an_error_is_one_line(bgt: Bgt, pairs: Path, arguments: str, code: int, message: str) -> None:
    done = bgt("split", *arguments.split(), "--model", "baseline:random")
    assert done.code == code and message in done.err, done.err
    assert done.err.startswith("bgt: ") and done.err.count("\n") == 1
    assert not Path("new").exists()
