"""Cleaning: what stays, what is counted and why, the same bytes again, a card that accounts for everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bgt_core.data.clean import CleaningRules, clean
from bgt_core.data.inspection import inspect
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError

LANGS = ("en", "fr")
ROWS = [
    "Hello  there.\tBonjour à vous.",
    "hello there\tbonjour à vous !",  # a copy but for case and punctuation
    "Hello there.\tSalut.",  # another translation: no copy
    "one two three four\tun",  # ratio 4
    "Paris\tParis!",
    "A man plays.\tUn homme joue.",  # in the evaluation set
    "word " * 9 + "\tmot",
    "no tab",
    "\tvide",
    "Ten birds fly away.\tDix oiseaux s'envolent.",
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "in.tsv"
    path.write_text("\n".join(ROWS) + "\n", encoding="utf-8")
    (tmp_path / "sts").mkdir()
    (tmp_path / "sts/eval.tsv").write_text("3.5\ta man plays\tsomething else\n", encoding="utf-8")
    return path


def read(path: Path) -> list[tuple[str, ...]]:
    return list(read_pairs(path, LANGS, Skipped(), strict=True))


def test_each_rule_drops_its_own(pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv.gz"
    done = clean(
        [pairs], LANGS, out, CleaningRules(max_length=8, max_ratio=3.0), exclude=[tmp_path / "sts"], licence="CC0"
    )
    assert read(out) == [
        ("Hello there.", "Bonjour à vous."),
        ("Hello there.", "Salut."),
        ("Ten birds fly away.", "Dix oiseaux s'envolent."),
    ]
    dropped = {"copy": 1, "ratio": 1, "same on both sides": 1, "evaluated on": 1, "length": 1}
    assert {rule: count for rule, count in done.dropped.items() if count} == dropped
    assert done.skipped.counts == {"wrong number of columns": 1, "empty side": 1}
    assert done.kept + sum(done.dropped.values()) + done.skipped.counts.total() == len(ROWS)
    card = json.loads((tmp_path / "out.tsv.gz.json").read_text("utf-8"))
    assert card["licence"] == "CC0" and card["file"]["rows"] == 3 and card["rules"]["max_ratio"] == 3.0
    assert set(card["sources"]) == {str(pairs)} and set(card["excluded"]) == {str(tmp_path / "sts/eval.tsv")}
    assert inspect(out)[0].problems == []


@pytest.mark.parametrize("name", ["o.tsv", "o.tsv.gz", "o.tsv.xz", "o.tsv.zst", "o.parquet"])
def test_every_format_holds_the_same_pairs_in_the_same_bytes(name: str, pairs: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "1" / name, tmp_path / "2" / name
    for out in (one, two):
        clean([pairs], LANGS, out)
    clean([pairs], LANGS, tmp_path / "plain.tsv")
    assert read(one) == read(tmp_path / "plain.tsv")
    assert one.read_bytes() == two.read_bytes()
    assert {path.name for path in one.parent.iterdir()} == {name, name + ".json"}


def test_a_sample_is_of_its_size_nested_and_blind_to_order(tmp_path: Path) -> None:
    rows = [f"sentence {number}\tphrase {number}\n" for number in range(5000)]
    samples: dict[tuple, set] = {}
    for order, lines in (("forth", rows), ("back", rows[::-1])):
        (tmp_path / order).write_text("".join(lines), encoding="utf-8")
        for size in (50, 100):
            out = tmp_path / f"{order}.{size}.tsv"
            done = clean([tmp_path / order], LANGS, out, CleaningRules(max_pairs=size))
            assert (done.kept, done.dropped["not in the sample"]) == (size, 5000 - size)
            samples[order, size] = set(read(out))
    assert samples["forth", 100] == samples["back", 100] > samples["forth", 50]
    places = [int(english.split()[1]) for english, _ in samples["forth", 100]]
    assert 2000 < sum(places) / 100 < 3000  # uniform: mean 2500, standard error 144
    other = clean([tmp_path / "forth"], LANGS, tmp_path / "o.tsv", CleaningRules(max_pairs=100, seed=2))
    assert other.kept == 100 and set(read(tmp_path / "o.tsv")) != samples["forth", 100]
    all_of_them = clean([tmp_path / "forth"], LANGS, tmp_path / "o.tsv", CleaningRules(max_pairs=9000))
    assert all_of_them.kept == 5000


def test_copies_are_found_across_sources(pairs: Path, tmp_path: Path) -> None:
    once = clean([pairs], LANGS, tmp_path / "1.tsv")
    twice = clean([pairs, pairs], LANGS, tmp_path / "2.tsv")
    assert twice.kept == once.kept and twice.dropped["copy"] == 2 * once.dropped["copy"] + once.kept
    assert (tmp_path / "1.tsv").read_bytes() == (tmp_path / "2.tsv").read_bytes()


def test_the_licence_of_prepared_sources_goes_on(pairs: Path, tmp_path: Path) -> None:
    clean([pairs], LANGS, tmp_path / "1.tsv", licence="CC BY 2.0 FR")
    clean([tmp_path / "1.tsv", pairs], LANGS, tmp_path / "2.tsv")
    card = json.loads((tmp_path / "2.tsv.json").read_text("utf-8"))
    assert card["licence"] == "CC BY 2.0 FR; not recorded"


def test_lengths_in_characters_and_pieces(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "in.tsv").write_text("The dog sleeps.\tLe chien dort.\nYes.\tOui.\n", encoding="utf-8")
    kept = clean([tmp_path / "in.tsv"], LANGS, tmp_path / "o.tsv", CleaningRules(min_length=5, unit="characters"))
    assert kept.dropped["length"] == 1
    tokenizer.save(tmp_path / "t.model")
    longest = max(len(ids) - 1 for ids in tokenizer.encode(["The dog sleeps.", "Le chien dort."]))
    for most, expected in ((longest, 1), (longest - 1, 0)):
        rules = CleaningRules(min_length=longest - 1, max_length=most, max_ratio=99, unit="pieces")
        if expected:
            done = clean([tmp_path / "in.tsv"], LANGS, tmp_path / "p.tsv", rules, tokenizer=tmp_path / "t.model")
            assert read(tmp_path / "p.tsv")[0] == ("The dog sleeps.", "Le chien dort.") and done.kept >= expected


@pytest.mark.parametrize(
    ("rules", "langs", "out", "how", "message", "code"),
    [
        ({"min_length": 0}, LANGS, "o.tsv", {}, "^min_length 0: expected 1 or more", 2),
        ({"min_length": 9, "max_length": 8}, LANGS, "o.tsv", {}, r"up to the maximum length \(8\)", 2),
        ({"max_ratio": 0.5}, LANGS, "o.tsv", {}, "max_ratio 0.5", 2),
        ({"max_pairs": 0}, LANGS, "o.tsv", {}, "max_pairs 0", 2),
        ({"unit": "bytes"}, LANGS, "o.tsv", {}, "unit 'bytes'", 2),
        ({"unit": "pieces"}, LANGS, "o.tsv", {}, "needs a tokenizer", 2),
        ({}, LANGS, "o.tsv", {"tokenizer": Path("t")}, "needs a tokenizer", 2),
        ({}, ("en", "ja"), "o.tsv", {}, "ja has no spaces", 2),
        ({}, ("en",), "o.tsv", {}, "in two languages", 2),
        ({}, LANGS, "o.txt", {}, "expected a name ending in", 2),
        ({}, LANGS, "in.tsv", {}, "is one of the sources", 2),
        ({}, LANGS, "o.tsv", {"exclude": [Path("nowhere")]}, "nowhere: no such", 3),
        ({}, LANGS, "o.tsv", {"strict": True}, "in.tsv:8: 1 column", 4),
        ({"min_length": 50}, LANGS, "o.tsv", {}, "no pair is left .* 8 length", 4),
        ({}, LANGS, "in.tsv/o.tsv", {}, "can't be written", 3),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    rules: dict, langs: tuple, out: str, how: dict, message: str, code: int, pairs: Path, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(BgtError, match=message) as error:
        clean([pairs], langs, tmp_path / out, CleaningRules(**rules), **how)
    assert error.value.exit_code == code and "\n" not in str(error.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
