"""Pairs through a third language: what is joined, what is not, and the card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bgt_core.data.inspection import inspect
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.pivot import pivot
from bgt_core.errors import BgtError, DataError, NotFound, UsageError

FRENCH = [
    "I  see a dog.\tJe vois un chien.",  # one space: the same sentence as in Spanish
    "I see a dog.\tJe vois un chien, moi.",  # a second translation
    "He sleeps.\tIl dort.",
    "He's asleep.\tIl dort !",  # the same French but for punctuation
    "You are here?\tTu es ici ?",  # a question is not the statement
    "Only French.\tSeulement.",
    "OK.\tOK.",
    "no tab",
]
SPANISH = [
    "OK.\tOK!",  # nothing is translated
    "He's asleep.\tDuerme.",
    "He sleeps.\tÉl duerme.",
    "You are here.\tEstás aquí.",
    "I see a dog.\tVeo un perro.",
    "I see a dog.\tYo veo un perro.",
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "en-fr.tsv", tmp_path / "en-es.tsv.gz.tsv"
    for path, rows in zip(paths, (FRENCH, SPANISH), strict=True):
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return paths


def test_sentences_of_both_files_give_a_pair_each(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "fr-es.tsv.gz"
    done = pivot(*files, ("en", "fr", "es"), out)
    pairs = list(read_pairs(out, ("fr", "es"), Skipped(), strict=True))
    assert pairs == [("Il dort !", "Duerme."), ("Je vois un chien.", "Veo un perro.")]
    assert (done.kept, done.dropped) == (2, {"copy": 3})  # OK; Il dort.; the second Spanish of the dog
    assert done.skipped.counts == {"wrong number of columns": 1}
    card = json.loads((tmp_path / "fr-es.tsv.gz.json").read_text("utf-8"))
    assert (
        card["pivot"] == "en" and card["file"]["columns"] == ["fr", "es"] and set(card["sources"]) == {*map(str, files)}
    )
    assert [check.problems for check in inspect(out)] == [[]]


@pytest.mark.parametrize(
    ("langs", "right", "error", "message"),
    [
        ("en,fr", "en-es.tsv.gz.tsv", UsageError, "expected three"),
        ("en,fr,fr", "en-es.tsv.gz.tsv", UsageError, "expected three"),
        ("en,fr,es", "absent.tsv", NotFound, "no file"),
        ("en,fr,es", "other.tsv", DataError, "no sentence in en in common"),
    ],
)
def test_what_gives_no_pair_is_refused_and_leaves_nothing(
    langs: str, right: str, error: type[BgtError], message: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "other.tsv").write_text("Nothing else.\tNada.\n", encoding="utf-8")
    with pytest.raises(error, match=message):
        pivot(files[0], tmp_path / right, langs.split(","), tmp_path / "out.tsv")
    assert not list(tmp_path.glob("out*")) and not list(tmp_path.glob(".out*"))


def test_the_command_writes_what_retrieve_reads(
    bgt: Callable[..., Any], files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "fr-es.tsv"
    done = bgt("data", "pivot", *files, "--langs", "en,fr,es", "--out", out)
    assert (done.code, done.out) == (0, f"{out}\n") and "2 kept, 3 copy, 1 wrong number of columns" in done.err
    document = json.loads(bgt("data", "pivot", *files, "--langs", "en,fr,es", "--out", out, "--json").out)
    assert document["schema"] == "bgt-data-pivot/1" and document["pairs"]["kept"] == 2
    assert bgt("data", "check", out).code == 0
    wrong = bgt("data", "pivot", *files, "--langs", "en,fr", "--out", out)
    assert wrong.code == 2 and "--langs en,fr: expected three" in wrong.err
