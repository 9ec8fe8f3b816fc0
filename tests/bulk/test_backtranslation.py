"""A table of back-translations has the same rows for any number of shards and any compression."""

import json
import math
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from bgt_core.bulk import backtranslation
from bgt_core.bulk.backtranslation import backtranslate
from bgt_core.data import manifest
from bgt_core.data.parallel import Translation
from bgt_core.data.textfile import lines
from bgt_core.errors import DataError, NotFound, UsageError

Names = Callable[[], list[str]]
ROOT = Path(__file__).resolve().parents[2]
CHUNK = 3
LANGS = ["en", "fr"]


class Shouts:
    """A fake translator into capitals and, at a higher cost, into capitals with "!". It can't translate "rien"."""

    def __init__(self, fingerprint: str = "shouts"):
        self.fingerprint = fingerprint
        self.read: list[list[str]] = []  # the sentences that each call of `translate` received

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        self.read.append(list(sentences))
        return [
            [] if text == "rien" else [Translation(text.upper(), 0.5), Translation(f"{text.upper()}!", math.pi)]
            for text in sentences
        ]


@pytest.fixture
def bitext(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of eleven translations. The fourth row lacks a column, and the sixth cannot be translated back."""
    monkeypatch.setattr(backtranslation, "CHUNK", CHUNK)
    monkeypatch.chdir(tmp_path)
    rows = [f"sentence {number}\tphrase  {number}" for number in range(1, 12)]
    rows[3], rows[5] = "only one column", "nothing\trien"
    path = Path("text.tsv")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


SOUND = [number for number in range(1, 12) if number not in (4, 6)]
TABLE = "".join(
    f"sentence {n}\tPHRASE {n}\t0.5000\t{n}\nsentence {n}\tPHRASE {n}!\t3.1416\t{n}\n" for n in SOUND
).encode()


def test_a_row_for_each_translation(bitext: Path, names: Names) -> None:
    translator, done = Shouts(), []
    result = backtranslate(
        translator, bitext, Path("out.tsv"), langs=LANGS, into="en", report=lambda *row: done.append(row)
    )
    assert Path("out.tsv").read_bytes() == TABLE
    assert (result.path, result.rows, result.sentences, result.untranslated) == (Path("out.tsv"), 18, 9, 1)
    assert result.skipped.counts == {"wrong number of columns": 1}
    assert result.skipped.examples == ["text.tsv:4: 1 column, expected 2 (en, fr)"]
    assert done == [(rows, 11) for rows in (0, 3, 6, 9, 11)]
    assert [len(portion) for portion in translator.read] == [3, 2, 3, 2]
    assert translator.read[0] == ["phrase 1", "phrase 2", "phrase 3"]  # double spaces became single spaces
    assert names() == ["out.tsv", "out.tsv.json", "text.tsv"]


def test_either_side_can_be_translated_and_other_columns_are_left_out(bitext: Path) -> None:
    Path("wide.tsv").write_text("x\tone\ty\tun\n1\ttwo\t\tdeux\n", encoding="utf-8")
    backtranslate(Shouts(), Path("wide.tsv"), Path("out.tsv"), langs=["_", "en", "_", "fr"], into="fr")
    lines = Path("out.tsv").read_text("utf-8").splitlines()
    assert lines[0] == "un\tONE\t0.5000\t1" and lines[2] == "deux\tTWO\t0.5000\t2"


def test_the_card_says_what_it_is_made_of(bitext: Path) -> None:
    manifest.write_card(bitext, LANGS, 11, [], {}, "CC0 1.0")
    out = Path("out.tsv.xz")
    backtranslate(Shouts(), bitext, out, langs=LANGS, into="en")
    card, columns = json.loads(Path("out.tsv.xz.json").read_text("utf-8")), ["reference", "translation", "cost", "row"]
    assert card["file"] == {**manifest.facts(out), "columns": columns, "rows": 18}
    assert card["sources"] == {"text.tsv": manifest.facts(bitext)}
    assert (card["licence"], card["translator"], card["into"]) == ("CC0 1.0", "shouts", "en")
    assert (card["rows"], card["sentences"], card["untranslated"], card["read"]) == (18, 9, 1, 11)


def test_a_complete_table_is_left_alone(bitext: Path) -> None:
    out, translator = Path("out.tsv"), Shouts()
    backtranslate(translator, bitext, out, langs=LANGS, into="en")
    before, calls = out.stat().st_mtime_ns, len(translator.read)
    result = backtranslate(translator, bitext, out, langs=LANGS, into="en")
    assert (result.rows, out.stat().st_mtime_ns, len(translator.read)) == (18, before, calls)
    out.write_bytes(TABLE[:-3])  # a truncated table is made again
    backtranslate(translator, bitext, out, langs=LANGS, into="en")
    assert out.read_bytes() == TABLE and len(translator.read) == 2 * calls
    translator.fingerprint = ""  # an empty fingerprint means unknown, so nothing is reused
    backtranslate(translator, bitext, out, langs=LANGS, into="en")
    assert out.read_bytes() == TABLE and len(translator.read) == 3 * calls


@pytest.mark.parametrize("shards", [1, 2, 6])
@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".tsv.xz", ".tsv.zst"])
def test_shards_one_after_another_are_the_whole(shards: int, suffix: str, bitext: Path) -> None:
    out, whole = Path(f"out{suffix}"), Path(f"whole{suffix}")
    parts = [
        backtranslate(Shouts(), bitext, out, langs=LANGS, into="en", shard=(number, shards)).path
        for number in range(shards, 0, -1)
    ]
    assert sorted(parts)[0].name == f"out-00001-of-{shards:05}{suffix}"
    whole.write_bytes(b"".join(path.read_bytes() for path in sorted(parts)))
    assert b"".join(line + b"\n" for line in lines(whole)) == TABLE


def test_text_that_changes_meanwhile_is_not_taken_for_the_same(bitext: Path) -> None:
    counter = count()

    def report(done: int, total: int) -> None:
        if next(counter) == 2:
            bitext.write_bytes(bitext.read_bytes() + b"one\tun\n")

    with pytest.raises(DataError, match=r"text\.tsv: changed while it was read; translate it again"):
        backtranslate(Shouts(), bitext, Path("out.tsv"), langs=LANGS, into="en", report=report)
    assert not Path("out.tsv").exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"langs": ["en"]}, UsageError, "langs en: expected two different languages"),
        ({"into": "de"}, UsageError, "into de: expected one of en and fr"),
        ({"out": "out.parquet"}, UsageError, r"expected a name ending in \.tsv"),
        ({"out": "no/out.tsv"}, NotFound, r"no/out\.tsv: can't be written"),
        ({"shard": (3, 2)}, UsageError, "shard 3/2"),
        ({"source": "absent.tsv"}, NotFound, r"no file absent\.tsv"),
        ({"strict": True}, DataError, r"text\.tsv:4: 1 column, expected 2"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_and_leaves_nothing(
    options: dict, error: type[Exception], message: str, bitext: Path, names: Names
) -> None:
    translator = Shouts()
    arguments = {"source": bitext, "out": "out.tsv", "langs": LANGS, "into": "en"} | options
    source, out = Path(arguments.pop("source")), Path(arguments.pop("out"))
    with pytest.raises(error, match=message) as raised:
        backtranslate(translator, source, out, **arguments)
    assert "\n" not in str(raised.value)
    assert not translator.read and names() == ["text.tsv"]


def test_a_text_without_any_translation_is_an_error(bitext: Path) -> None:
    bitext.write_text("nothing\trien\n" * 5, encoding="utf-8")
    with pytest.raises(DataError, match=r"text\.tsv: none of the 5 rows could be translated"):
        backtranslate(Shouts(), bitext, Path("out.tsv"), langs=LANGS, into="en")
    assert not Path("out.tsv").exists()
