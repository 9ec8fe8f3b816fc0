"""Cleaning of back-translated text: scores as filters, a column of costs, one translation of each reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.data.clean import CleaningRules, clean
from bgt_core.data.filters.scores import ScoreRange
from bgt_core.data.inspection import inspect
from bgt_core.errors import BgtError

COLUMNS = ("reference:en", "translation:en", "cost:label")
ROWS = [
    "the old dog sleeps\tthe old dog sleeps\t0.1",  # the same on both sides
    "the old dog sleeps\tthe old dog is sleeping\t0.4",
    "the old dog sleeps\tan aged hound rests\t0.9",
    "she sings\tshe is singing a very long song today\t0.5",
    "she sings\tshe does sing\t0.7",
    "we left\tno cost\tcheap",
    "it rains\train falls\tinf",
    "it rains\tit is raining\t0.20",
    "she sings\tshe sings on\t0.3",
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "in.tsv"
    path.write_text("\n".join(ROWS) + "\n", encoding="utf-8")
    return path


def kept(pairs: Path, out: Path, *ranges: str, columns: tuple[str, ...] = COLUMNS, **rules: Any) -> list[int]:
    """Which of the rows are written; cells stay as they are, the number's too."""
    clean([pairs], columns, out, CleaningRules(keep=tuple(map(ScoreRange.parse, ranges)), **rules))
    return [ROWS.index(line) for line in out.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("ranges", "rows"),
    [
        ([], [1, 2, 3, 4, 7, 8]),
        (["cost=..0.4"], [1, 7, 8]),
        (["cost=0.4..0.7"], [1, 3, 4]),
        (["words=0..3"], [4, 7, 8]),
        (["words=4..100", "cost=..0.5"], [1, 3]),
        (["overlap-1=0.1..0.7"], [3, 4, 7]),  # 3/4, 0, 1/2, 1/2, 1/2, 1
        (["overlap-2=0.5.."], [1, 8]),  # 2/3, 0, 0, 0, 0, 1
        (["overlap-3=..0"], [2, 3, 4, 7, 8]),  # 1/2 and no trigram
        (["bleu=0.49.."], [1, 8]),  # 0.495, 0, 0.15, 0.486, 0.45, 0.687
    ],
)
def test_a_score_keeps_its_range(ranges: list[str], rows: list[int], pairs: Path, tmp_path: Path) -> None:
    assert kept(pairs, tmp_path / "o.tsv", *ranges) == rows


def test_each_reference_is_used_once_with_its_first_good_translation(pairs: Path, tmp_path: Path) -> None:
    assert kept(pairs, tmp_path / "1.tsv", first_of_reference=True) == [1, 3, 7]
    assert kept(pairs, tmp_path / "2.tsv", "cost=0.6..", first_of_reference=True) == [2, 4]
    card = json.loads((tmp_path / "2.tsv.json").read_text("utf-8"))
    assert card["file"]["columns"] == ["reference", "translation", "cost"]
    assert card["rules"]["keep"] == [{"score": "cost", "least": 0.6, "most": None}]
    assert {name: count for name, count in card["dropped"].items() if count} == {"same on both sides": 1, "cost": 4}
    assert card["skipped"] == {"no number": 2} and card["models"] == {}
    card = json.loads((tmp_path / "1.tsv.json").read_text("utf-8"))
    assert card["dropped"]["another of its reference"] == 3 and "copy" not in card["dropped"]
    assert inspect(tmp_path / "1.tsv")[0].problems == []


def test_a_sample_is_of_references(tmp_path: Path) -> None:
    path = tmp_path / "many.tsv"
    rows = [f"sentence number {i}\tphrase {i} {turn}\t{turn}\n" for i in range(300) for turn in range(3)]
    path.write_text("".join(rows), encoding="utf-8")
    rules = {"keep": (ScoreRange("cost", least=1),), "first_of_reference": True}
    samples = {}
    for size in (50, 100, 1000):
        done = clean([path], COLUMNS, tmp_path / "o.tsv", CleaningRules(max_pairs=size, **rules))
        samples[size] = (tmp_path / "o.tsv").read_text("utf-8").splitlines()
        assert done.kept == len(samples[size]) == min(size, 300)
        assert all(line.endswith("\t1") for line in samples[size])  # the first that is in the range
    assert set(samples[50]) < set(samples[100]) < set(samples[1000])


def test_a_model_scores_translations_and_is_on_the_card(pairs: Path, tmp_path: Path) -> None:
    class Length:
        fingerprint = "length 1"

        def __call__(self, sentences: list[str]) -> np.ndarray:
            return np.array([len(sentence) for sentence in sentences], float)

    rules = CleaningRules(keep=(ScoreRange("length", most=13),))
    clean([pairs], COLUMNS, tmp_path / "o.tsv", rules, models={"length": Length()})
    assert (tmp_path / "o.tsv").read_text("utf-8").splitlines() == [ROWS[4], ROWS[7], ROWS[8]]
    assert json.loads((tmp_path / "o.tsv.json").read_text("utf-8"))["models"] == {"length": "length 1"}


def test_the_numbers_may_stand_anywhere_and_are_written_in_every_format(pairs: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.tsv"
    lines = (line.split("\t") for line in ROWS)
    moved.write_text("".join(f"{one}\t{cost}\t{two}\n" for one, two, cost in lines), encoding="utf-8")
    columns, rules = ("a:en", "c:label", "b:en"), CleaningRules(keep=(ScoreRange("cost", most=0.4),))
    clean([moved], columns, tmp_path / "o.parquet", rules)
    clean([tmp_path / "o.parquet"], columns, tmp_path / "o.tsv", rules)
    expected = ["the old dog sleeps\t0.4\tthe old dog is sleeping", "it rains\t0.20\tit is raining"]
    assert (tmp_path / "o.tsv").read_text("utf-8").splitlines() == [*expected, "she sings\t0.3\tshe sings on"]


@pytest.mark.parametrize(
    ("columns", "rules", "message", "code"),
    [
        (("a:en", "b:en"), {"keep": (ScoreRange("cost", most=1),)}, "keep cost=...: costs are a column", 2),
        (COLUMNS, {"keep": (ScoreRange("perplexity", most=9),)}, r"keep 'perplexity=..9': no score", 2),
        (COLUMNS, {"words": "tabs"}, "words 'tabs': choose from spaces, 13a", 2),
        (("a:en", "cost:label"), {}, "in two languages", 2),
        (("a:en", "a:en", "cost:label"), {}, "'a' comes twice", 2),
        (("a:en", "b:label", "cost:label"), {}, "at most one may hold labels", 2),
        (COLUMNS, {"keep": (ScoreRange("words", least=50),)}, "no pair is left of .* 6 words", 4),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    columns: tuple[str, ...], rules: dict, message: str, code: int, pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(BgtError, match=message) as error:
        clean([pairs], columns, tmp_path / "o.tsv", CleaningRules(**rules))
    assert error.value.exit_code == code and "\n" not in str(error.value)
    assert not list(tmp_path.glob("o.tsv*"))


def test_the_commands_do_the_same(bgt: Callable[..., Any], pairs: Path, tmp_path: Path) -> None:
    named = ("--columns", ",".join(COLUMNS))
    options = ("--keep", "cost=..0.5", "--keep", "words=..8", "--first-of-reference")
    done = bgt("data", "prepare", pairs, *named, "--out", tmp_path / "o.tsv", *options)
    assert (done.code, done.out) == (0, f"{tmp_path / 'o.tsv'}\n"), done.err
    assert "in.tsv:6: the cost is no number" in done.err and "1 another of its reference" in done.err
    assert (tmp_path / "o.tsv").read_text("utf-8").splitlines() == [ROWS[1], ROWS[3], ROWS[7]]
    done = bgt("data", "compare", tmp_path / "o.tsv", *named)
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[0] == ["", "references", "translations", "difference", "rho, translations", "rho, all"]
    values = {line[0]: line[1:3] for line in lines[1:]}
    assert values["words"] == ["2.67", "5.33"] and values["cost"] == ["", "0.37"]
    document = json.loads(bgt("data", "compare", tmp_path / "o.tsv", *named, "--json", "--idf", pairs).out)
    assert (document["schema"], document["pairs"]) == ("bgt-data-compare/1", 3)
    assert document["statistics"]["cost"]["translation"] == pytest.approx(1.1 / 3)


def test_a_language_model_filters_too(bgt: Callable[..., Any], pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "references.txt").write_text("she does sing\nit is raining\n" * 9, encoding="utf-8")
    options = ("--keep", "perplexity=..3", "--language-model", tmp_path / "references.txt")
    done = bgt("data", "prepare", pairs, "--columns", ",".join(COLUMNS), "--out", tmp_path / "o.tsv", *options)
    assert done.code == 0, done.err
    assert (tmp_path / "o.tsv").read_text("utf-8").splitlines() == [ROWS[4], ROWS[7]]


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ((), "--langs or --columns says", 2),
        (("--columns=a:en,b:en", "--langs=en,fr"), "give one of them", 2),
        (
            ("--columns=a:en,b:en,c:label", "--keep=perplexity=..9"),
            "--keep perplexity=MIN..MAX needs --language-model",
            2,
        ),
        (("--columns=a:en,b:en,c:label", "--classifier=nowhere"), "--keep classifier=MIN..MAX needs --classifier", 2),
        (
            ("--columns=a:en,b:en,c:label", "--classifier=nowhere", "--keep=classifier=0.5.."),
            "--classifier nowhere: no such run; train one",
            3,
        ),
        (("--columns=a:en,b:en,c:label", "--keep=bleu"), "--keep 'bleu': expected SCORE=MIN..MAX", 2),
        (("--columns=a:en,b:en,c:label", "--words=tabs"), "--words 'tabs'", 2),
    ],
)
def test_the_command_refuses_in_one_line(
    options: tuple[str, ...], message: str, code: int, bgt: Callable[..., Any], pairs: Path, tmp_path: Path
) -> None:
    done = bgt("data", "prepare", pairs, "--out", tmp_path / "o.tsv", *options)
    assert (done.code, done.out) == (code, "")
    assert message in done.err and done.err.count("\n") == 1
    assert not list(tmp_path.glob("o.tsv*"))


@pytest.mark.parametrize(
    ("columns", "message", "code"),
    [
        ("a:en,b:en,cost:label", r"in.tsv:6: the cost is no number", 4),
        ("a:en,cost:label", "--columns a:en,cost:label: expected two of text", 2),
        ("a:en,b:en", "3 columns, expected 2", 4),
    ],
)
def test_the_comparison_refuses_in_one_line(
    columns: str, message: str, code: int, bgt: Callable[..., Any], pairs: Path
) -> None:
    done = bgt("data", "compare", pairs, "--columns", columns)
    assert (done.code, done.out) == (code, "")
    assert message in done.err and done.err.count("\n") == 1
