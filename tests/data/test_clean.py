"""Cleaning drops bad pairs, counts them by reason, always writes the same bytes, and describes its output in a card.

From back-translations, it keeps pairs whose scores are in given ranges, and at most one pair per reference.
"""

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.data import manifest
from bgt_core.data.clean import CleaningRules, Seen, clean, copy_key, join_copies, key
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.scores import ScoreRange
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError

LANGS = ("en", "fr")
ROWS = [
    "Hello  there.\tBonjour à vous.",
    "hello there\tbonjour à vous !",  # equals the first row except for case and punctuation
    "Hello there.\tSalut.",  # not a copy, because the French differs
    "one two three four\tun",  # the English is four times as long as the French
    "Paris\tParis!",
    "A man plays.\tUn homme joue.",  # the English sentence is in the evaluation set
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
    assert card["licence"] == "CC0" and card["rules"]["max_ratio"] == 3.0
    assert set(card["sources"]) == {str(pairs)} and set(card["excluded"]) == {str(tmp_path / "sts/eval.tsv")}
    assert card["file"] == {**manifest.facts(out), "columns": list(LANGS), "rows": 3}


@pytest.mark.parametrize("name", ["o.tsv", "o.tsv.gz", "o.tsv.xz", "o.tsv.zst"])
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
        (tmp_path / order).write_text("".join([*lines, *rows[:1000]]), encoding="utf-8")  # these 1000 are copies
        for size in (50, 100):
            out = tmp_path / f"{order}.{size}.tsv"
            done = clean([tmp_path / order], LANGS, out, CleaningRules(max_pairs=size))
            assert (done.kept, done.dropped["not in the sample"], done.dropped["copy"]) == (size, 5000 - size, 1000)
            samples[order, size] = set(read(out))
    assert samples["forth", 100] == samples["back", 100] > samples["forth", 50]
    places = [int(english.split()[1]) for english, _ in samples["forth", 100]]
    assert 2000 < sum(places) / 100 < 3000  # the mean index of a uniform sample is 2500, with standard error 144
    other = clean([tmp_path / "forth"], LANGS, tmp_path / "o.tsv", CleaningRules(max_pairs=100, seed=2))
    assert other.kept == 100 and set(read(tmp_path / "o.tsv")) != samples["forth", 100]
    all_of_them = clean([tmp_path / "forth"], LANGS, tmp_path / "o.tsv", CleaningRules(max_pairs=9000))
    assert all_of_them.kept == 5000


def test_copies_are_found_across_sources(pairs: Path, tmp_path: Path) -> None:
    once = clean([pairs], LANGS, tmp_path / "1.tsv")
    twice = clean([pairs, pairs], LANGS, tmp_path / "2.tsv")
    assert twice.kept == once.kept and twice.dropped["copy"] == 2 * once.dropped["copy"] + once.kept
    assert (tmp_path / "1.tsv").read_bytes() == (tmp_path / "2.tsv").read_bytes()


def test_lengths_in_characters_and_tokens(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "in.tsv").write_text("The dog sleeps.\tLe chien dort.\nYes.\tOui.\n", encoding="utf-8")
    tokenizer.save(tmp_path / "t.model")
    longest = max(len(ids) - 1 for ids in tokenizer.encode(["The dog sleeps.", "Le chien dort."]))
    for rules, model in (
        (CleaningRules(5, unit="characters"), None),
        (CleaningRules(longest - 1, longest, 99, unit="tokens"), tmp_path / "t.model"),
    ):
        done = clean([tmp_path / "in.tsv"], LANGS, tmp_path / "o.tsv", rules, tokenizer=model)
        assert (done.dropped["length"], read(tmp_path / "o.tsv")) == (1, [("The dog sleeps.", "Le chien dort.")])


@pytest.mark.parametrize(
    ("rules", "langs", "out", "how", "message", "code"),
    [
        ({"min_length": 0}, LANGS, "o.tsv", {}, "^min_length 0: expected 1 or more", 2),
        ({"min_length": 9, "max_length": 8}, LANGS, "o.tsv", {}, r"up to the maximum length \(8\)", 2),
        ({"max_ratio": 0.5}, LANGS, "o.tsv", {}, "max_ratio 0.5", 2),
        ({"max_pairs": 0}, LANGS, "o.tsv", {}, "max_pairs 0", 2),
        ({"unit": "bytes"}, LANGS, "o.tsv", {}, "unit 'bytes'", 2),
        ({"unit": "tokens"}, LANGS, "o.tsv", {}, "unit tokens needs a tokenizer", 2),
        ({}, LANGS, "o.tsv", {"tokenizer": Path("t")}, "unit tokens needs a tokenizer", 2),
        ({}, ("en", "ja"), "o.tsv", {}, "ja is written without spaces", 2),
        ({}, LANGS, "o.txt", {}, "expected a name ending in", 2),
        ({}, LANGS, "in.tsv", {}, "is one of the sources", 2),
        ({}, LANGS, "o.tsv", {"exclude": [Path("nowhere")]}, "nowhere: no such", 3),
        ({}, LANGS, "o.tsv", {"strict": True}, "in.tsv:8: 1 column", 4),
        ({"min_length": 50}, LANGS, "o.tsv", {}, "no pair is left .* 8 length", 4),
        ({}, LANGS, "in.tsv/o.tsv", {}, "can't be written", 3),
        ({"keep": (ScoreRange("cost", most=1),)}, LANGS, "o.tsv", {}, "keep cost=... needs a column of costs", 2),
        ({"keep": (ScoreRange("blue", most=1),)}, LANGS, "o.tsv", {}, "no score 'blue'; .*Did you mean 'bleu'", 2),
        ({"keep": (ScoreRange("bleu", 0), ScoreRange("bleu"))}, LANGS, "o.tsv", {}, "one range for each score", 2),
        ({}, ("a:en", "cost:label"), "o.tsv", {}, "two columns of", 2),
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


COLUMNS = ("reference:en", "translation:en", "cost:label")
NAMED = "--langs=a:en,b:en,c:label"


TRANSLATIONS = [
    "the old dog sleeps\tthe old dog sleeps\t0.1",  # dropped, because both sides are the same
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
def translations(tmp_path: Path) -> Path:
    path = tmp_path / "in.tsv"
    path.write_text("\n".join(TRANSLATIONS) + "\n", encoding="utf-8")
    return path


def kept(translations: Path, out: Path, *ranges: str, columns: tuple[str, ...] = COLUMNS, **rules: Any) -> list[int]:
    """Return the indices of the rows that cleaning keeps. Check that it changes no cell of these rows."""
    clean([translations], columns, out, CleaningRules(keep=tuple(map(ScoreRange.parse, ranges)), **rules))
    return [TRANSLATIONS.index(line) for line in out.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("ranges", "rows"),
    [
        ([], [1, 2, 3, 4, 7, 8]),
        (["cost=..0.4"], [1, 7, 8]),
        (["cost=0.4..0.7"], [1, 3, 4]),
        (["words=0..3"], [4, 7, 8]),
        (["words=4..100", "cost=..0.5"], [1, 3]),
        (["overlap-1=0.1..0.7"], [3, 4, 7]),  # rows 1, 2, 3, 4, 7, 8 score 3/4, 0, 1/2, 1/2, 1/2, 1
        (["overlap-2=0.5.."], [1, 8]),  # rows 1, 2, 3, 4, 7, 8 score 2/3, 0, 0, 0, 0, 1
        (["overlap-3=..0"], [2, 3, 4, 7, 8]),  # row 1 scores 1/2, and these rows score 0
        (["bleu=0.49.."], [1, 8]),  # rows 1, 2, 3, 4, 7, 8 score 0.495, 0, 0.15, 0.486, 0.45, 0.687
    ],
)
def test_a_score_keeps_its_range(ranges: list[str], rows: list[int], translations: Path, tmp_path: Path) -> None:
    assert kept(translations, tmp_path / "o.tsv", *ranges) == rows


def test_each_reference_is_used_once_with_its_first_good_translation(translations: Path, tmp_path: Path) -> None:
    assert kept(translations, tmp_path / "1.tsv", first_of_reference=True) == [1, 3, 7]
    assert kept(translations, tmp_path / "2.tsv", "cost=0.6..", first_of_reference=True) == [2, 4]
    card = json.loads((tmp_path / "2.tsv.json").read_text("utf-8"))
    assert card["file"]["columns"] == ["reference", "translation", "cost"]
    assert card["rules"]["keep"] == ["cost=0.6.."]
    assert {name: count for name, count in card["dropped"].items() if count} == {"same on both sides": 1, "cost": 4}
    assert card["skipped"] == {"no number": 2} and card["models"] == {}
    card = json.loads((tmp_path / "1.tsv.json").read_text("utf-8"))
    assert card["dropped"]["another of its reference"] == 3 and "copy" not in card["dropped"]
    assert card["file"].items() >= {**manifest.facts(tmp_path / "1.tsv"), "rows": 3}.items()


def test_the_numbers_may_stand_anywhere(translations: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.tsv"
    lines = (line.split("\t") for line in TRANSLATIONS)
    moved.write_text("".join(f"{one}\t{cost}\t{two}\n" for one, two, cost in lines), encoding="utf-8")
    columns, rules = ("a:en", "c:label", "b:en"), CleaningRules(keep=(ScoreRange("cost", most=0.4),))
    clean([moved], columns, tmp_path / "o.tsv.xz", rules)
    clean([tmp_path / "o.tsv.xz"], columns, tmp_path / "o.tsv", rules)
    expected = ["the old dog sleeps\t0.4\tthe old dog is sleeping", "it rains\t0.20\tit is raining"]
    assert (tmp_path / "o.tsv").read_text("utf-8").splitlines() == [*expected, "she sings\t0.3\tshe sings on"]


def test_the_command_filters_by_scores_and_a_language_model(
    bgt: Callable[..., Any], translations: Path, tmp_path: Path
) -> None:
    (tmp_path / "references.txt").write_text("she does sing\nit is raining\n" * 9, encoding="utf-8")
    for options, rows in (
        (("--keep", "cost=..0.5", "--keep", "words=..8", "--first-of-reference"), [1, 3, 7]),
        (("--keep", "perplexity=..3", "--language-model", tmp_path / "references.txt"), [4, 7]),
    ):
        done = bgt("data", "prepare", translations, "--langs", ",".join(COLUMNS), "--out", tmp_path / "o.tsv", *options)
        assert (done.code, done.out) == (0, f"{tmp_path / 'o.tsv'}\n"), done.err
        assert "in.tsv:6: the cost is not a number" in done.err
        assert (tmp_path / "o.tsv").read_text("utf-8").splitlines() == [TRANSLATIONS[row] for row in rows]
    (fingerprint,) = json.loads((tmp_path / "o.tsv.json").read_text("utf-8"))["models"].values()
    assert fingerprint.startswith("nltk WittenBell")


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (f"{NAMED} --keep=perplexity=..9", "--keep perplexity=MIN..MAX and --language-model go together", 2),
        (f"{NAMED} --classifier=nowhere", "--keep classifier=MIN..MAX and --classifier go together", 2),
        (f"{NAMED} --classifier=nowhere --keep=classifier=0.5..", "--classifier nowhere: no such run; train one", 3),
    ],
)
def test_the_command_refuses_in_one_line(
    options: str, message: str, code: int, bgt: Callable[..., Any], translations: Path, tmp_path: Path
) -> None:
    done = bgt("data", "prepare", translations, "--out", tmp_path / "o.tsv", *options.split())
    assert (done.code, done.out) == (code, "")
    assert message in done.err and done.err.count("\n") == 1
    assert not list(tmp_path.glob("o.tsv*"))


COPIES = [
    "DÉJÀ vu, Straße…", "déjà  vu,\u00a0straße…\n", "de\u0301ja\u0300 vu, straße…", "déjà vu, STRASSE...",
    "dé\u00adjà\u200b vu,\ufeff straße\u200d…", "déjà ｖｕ， straße…",
]  # fmt: skip


def test_copies_differ_in_case_spaces_unicode_form_and_invisible_characters_only() -> None:
    same = copy_key("déjà vu, straße…")
    assert [copy_key(other) for other in (*COPIES, same)] == [same] * 7
    assert same not in map(copy_key, ("deja vu, straße…", "déjà vu straße…", "déjàvu, straße…", ""))


def test_groups_are_joined_in_a_chain_and_others_keep_theirs() -> None:
    assert join_copies(["a", "b", "c", "A", "B ", "d"], [5, 6, 7, 8, 8, 9]) == [5, 5, 7, 5, 5, 9]
    assert len(set(join_copies(["a", "b", "B", "c", "C", "A"], [0, 1, 2, 2, 3, 3]))) == 1
    assert join_copies([], []) == []


def test_a_key_is_letters_marks_and_digits_or_the_text_itself() -> None:
    assert key("Straße, 3 km²!") == "strasse3km2"
    assert key("...") == "..."
    assert key("हिन्दी भाषा") == "हिन्दीभाषा"
    assert key("私は、学生です。") == "私は学生です"


def test_seen_is_a_set() -> None:
    draw, expected, seen = random.Random(3), set(), Seen()
    for _ in range(300):
        some = [draw.randrange(3000) for _ in range(draw.randrange(60))]
        fresh = seen.new(np.array(some, np.uint64)).tolist()
        for hash_, new in zip(some, fresh, strict=True):
            assert new == (hash_ not in expected)
            expected.add(hash_)
    assert len(seen) == len(expected)
    assert seen.smallest(100) == sorted(expected)[99]
    assert seen.holds(np.arange(3000, dtype=np.uint64)).tolist() == [number in expected for number in range(3000)]


def test_seen_takes_eight_bytes_a_hash() -> None:
    count = 200_000
    draws = np.random.default_rng(0).integers(0, 2**63, count).astype(np.uint64)
    tracemalloc.start()
    seen = Seen()
    for start in range(0, count, 2000):
        seen.new(draws[start : start + 2000])
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 9 * count
    assert peak < 26 * count  # in bytes: merging needs the old arrays of hashes, the new one, and a buffer for sorting
