"""STS files in all common layouts give the same data sets; errors name the invalid line."""

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from bgt_core.errors import BgtError
from bgt_core.evaluation.sts_files import StsSet, dataset_warnings, read_sets

Write = Callable[[str, str | bytes], None]
PLAIN = "4.5\tA man plays.\tA man is playing.\n0\tThe cat.\tA car.\n2.25\tOne.\tTwo.\n"
SENTENCES = "A man plays.\tA man is playing.\nNever scored.\tIt has no gold.\nThe cat.\tA car.\nOne.\tTwo.\n"
GOLD = "4.5\n\n0\n2.25\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def call(name: str, content: str | bytes) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return call


def contents(data: StsSet) -> tuple:
    return str(data), data.gold.tolist(), list(data.left), list(data.right), data.left_lang, data.right_lang


EXPECTED = ([4.5, 0, 2.25], ["A man plays.", "The cat.", "One."], ["A man is playing.", "A car.", "Two."], "en", "en")
COMPRESS = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_are_the_same(suffix: str, write: Write, tmp_path: Path) -> None:
    for name, content in {
        "a/2012/OnWN.tsv": PLAIN,
        "a/STS/STS13-en-test/STS.input.OnWN.txt": SENTENCES,
        "a/STS/STS13-en-test/STS.gs.OnWN.txt": GOLD,
        "a/stsb/dev.tsv": PLAIN,
        "a/sick/test.tsv": PLAIN,
        "a/sts17/STS.input.track5.en-en.txt": SENTENCES,
        "a/sts17/gs/STS.gs.track5.en-en.txt": GOLD,
    }.items():
        write(name, content)
        write(name.replace("a/", "b/", 1) + suffix, COMPRESS[suffix](content.encode()))
    names = ["2012", "2013", "stsb-dev", "sick", "sts17"]
    plain, packed = (list(map(contents, read_sets(tmp_path / folder, names))) for folder in ("a", "b"))
    assert packed == plain and len(plain) == 5


@pytest.mark.parametrize(("place", "year"), [
    ("STS2012-en-test/test-gold/STS.{}.surprise.OnWN.txt", "2012"),  # a folder in SemEval's archive
    ("test-gold/STS.{}.surprise.OnWN.txt", "2012"), ("test-gs/STS.{}.OnWN.txt", "2013"),
    ("sts-en-test-gs-2014/STS.{}.OnWN.txt", "2014"), ("test_evaluation_task2a/STS.{}.OnWN.txt", "2015"),
    ("sts2016-english-with-gs-v1.0/STS2016.{}.OnWN.txt", "2016"),
    ("STS/STS12-en-test/STS.{}.surprise.OnWN.txt", "2012"),  # a folder in SentEval's data
    ("2012/OnWN.tsv", "2012"), ("sts/2012/surprise.OnWN.tsv", "2012"),
])  # fmt: skip
def test_a_year_is_the_same_in_every_layout(place: str, year: str, write: Write, tmp_path: Path) -> None:
    if place.endswith(".tsv"):
        write(place, PLAIN)
    else:
        write(place.format("input"), SENTENCES)
        write(place.format("gs"), GOLD)
    sets = read_sets(tmp_path, [year])
    assert list(map(contents, sets)) == [(f"{year} OnWN", *EXPECTED)]


def test_training_data_and_hidden_files_are_not_a_year(write: Write, tmp_path: Path) -> None:
    write("sts/2012/b.tsv", PLAIN)
    write("sts/2012/a.tsv", PLAIN)
    write("sts/2012/._a.tsv", b"\x00\xff")
    write("sts/2012-train/a.tsv", PLAIN)
    write("sts/STS2012-train/STS.input.MSRpar.txt", SENTENCES)
    write("pairs/2013.tsv", PLAIN)
    assert [str(data) for data in read_sets(tmp_path, ["2012"])] == ["2012 a", "2012 b"]
    assert [str(data) for data in read_sets(tmp_path / "sts" / "2012", ["2012"])] == ["2012 a", "2012 b"]


def test_sentences_are_kept_as_they_are(write: Write, tmp_path: Path) -> None:
    write("2012/a.tsv", '\ufeff4.5\tA "quoted" one.\tUn\u2028deux\tmore\r\n0\tleft\tright\r\n')
    (data,) = read_sets(tmp_path, ["2012"], lang="fr")
    assert (data.left, data.right) == (['A "quoted" one.', "left"], ["Un\u2028deux", "right"])
    assert (data.left_lang, data.right_lang) == ("fr", "fr")


STSB = [("main-captions", "MSRvid", "2012test"), ("main-news", "headlines", "2016"), ("main-x", "track5.en-en", "2017")]


@pytest.mark.parametrize("official", [True, False])
def test_the_benchmark_and_its_years(official: bool, write: Write, tmp_path: Path) -> None:
    rows = [("1.5", "a", "b"), ("2.5", "c", 'd "'), ("3.5", "e", "f")]
    for row, origin in zip(rows * 2, [*STSB, STSB[0], STSB[1], STSB[0]], strict=True):
        line = (*origin, "0001", *row, "link") if official else (*row, "/".join(origin))
        name = tmp_path / ("STSBenchmark/sts-dev.csv" if official else "stsb/dev.tsv")
        name.parent.mkdir(exist_ok=True)
        with name.open("a") as file:
            file.write("\t".join(line) + "\n")
    (whole,) = read_sets(tmp_path, ["stsb-dev"])
    assert (str(whole), len(whole.gold), whole.right[1]) == ("stsb dev", 6, 'd "')
    (part,) = read_sets(tmp_path, ["stsb-dev"], without=["2016", "2017"])
    assert (str(part), part.gold.tolist()) == ("stsb dev without 2016, 2017", [1.5, 1.5, 3.5])


def test_a_translated_benchmark_has_its_language(write: Write, tmp_path: Path) -> None:
    write("stsb/fr/dev.tsv", PLAIN)
    write("stsb/dev.tsv", PLAIN + "1\tx\ty\n")
    with pytest.raises(BgtError, match=re.escape("no files of stsb-dev-..; it has stsb-dev, stsb-dev-fr")):
        read_sets(tmp_path, ["stsb-dev-.."])  # a name is not a regular expression
    (french,) = read_sets(tmp_path, ["stsb-dev-fr"])
    assert contents(french) == ("stsb dev-fr", *EXPECTED[:3], "fr", "fr")
    assert len(read_sets(tmp_path, ["stsb-dev"])[0].gold) == 4
    with pytest.raises(BgtError, match="'' is not a year of STS Benchmark"):
        read_sets(tmp_path, ["stsb-dev"], without=["2016", ""])
    with pytest.raises(BgtError, match="1: 3 columns, expected 4: gold, sentence, sentence, year"):
        read_sets(tmp_path, ["stsb-dev"], without=["2016"])


@pytest.mark.parametrize("layout", ["SICK/SICK_test_annotated.txt", "sick/test.tsv"])
def test_sick_is_the_same_in_every_layout(layout: str, write: Write, tmp_path: Path) -> None:
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    official = head + "1\ta\tb\t4.5\tNEUTRAL\n3\tc\td\t2\tNEUTRAL\n"
    write(layout, official if layout.endswith(".txt") else "4.5\ta\tb\tNEUTRAL\n2\tc\td\tNEUTRAL\n")
    (data,) = read_sets(tmp_path, ["sick"])
    assert contents(data) == ("sick test", [4.5, 2], ["a", "c"], ["b", "d"], "en", "en")


def test_tracks_have_english_on_the_left(write: Write, tmp_path: Path) -> None:
    for track in ("track2.ar-en", "track3.es-es", "track4a.es-en", "track4b.es-en"):
        write(f"STS2017.eval.v1.1/STS.input.{track}.txt", "one\ttwo\nthree\tfour\n")
        write(f"STS2017.gs/STS.gs.{track}.txt", "1\n2\n")
    sets = {data.name: (data.left[0], data.left_lang, data.right_lang) for data in read_sets(tmp_path, ["sts17"])}
    assert sets == {
        "en-ar": ("one", "en", "ar"),  # the first column is English, although the file name has ar-en
        "en-es": ("two", "en", "es"),
        "en-es news": ("two", "en", "es"),
        "es-es": ("one", "es", "es"),
    }
    for name in ("sts17-es-en", "sts17-en-es"):
        assert [str(data) for data in read_sets(tmp_path, [name])] == ["sts17 en-es", "sts17 en-es news"]
    write("mine/sts17/en-tr.tsv", PLAIN)
    assert contents(read_sets(tmp_path / "mine", ["sts17"])[0])[-2:] == ("en", "tr")


BAD: list[tuple[dict[str, str | bytes], str, int, str]] = [  # each case: (files, name of the set, exit code, message)
    ({"2012/bad.tsv": "4\ta\tb\nfour\ta\tb\n"}, "2012",
     4, r"bad\.tsv:2: the gold score is not a number: 'four'; expected one with a decimal point, as 4.5\.$"),
    ({"2012/bad.tsv": "score\ta\tb\n"}, "2012", 4, r"bad\.tsv:1: .*'score'.*remove the line if it is"),
    ({"2012/bad.tsv": "4\ta\tb\n"}, "2012", 4, r"bad\.tsv: 2012 bad: 1 pairs"),
    ({"2012/bad.tsv": "4\ta\tb\n4\ta\tc\n"}, "2012", 4, r"bad\.tsv: .*every gold score is 4"),
    ({"2012/STS.input.A.txt": SENTENCES}, "2012", 3, r"the file of its gold scores, STS\.gs\.A\.txt, is missing"),
    ({"2012/STS.input.A.txt": SENTENCES, "2012/STS.gs.A.txt": "1\n2\n"}, "2012",
     4, r"2 lines of gold scores for the 4 pairs"),
    ({"2012/STS.input.A.txt": "a\tb\n", "2012/STS.gs.A.txt": "x\n"}, "2012",
     4, r"gs\.A\.txt:1: the gold score is not a number"),
    ({"2012/STS.input.A.txt": "a b\n", "2012/STS.gs.A.txt": "1\n"}, "2012", 4, r"input\.A\.txt:1: expected sen"),
    ({"x/STS.input.track1.ar-ar.txt": SENTENCES}, "sts17", 3, r"STS\.gs\.track1.* is missing"),
    ({"x/a.tsv": PLAIN}, "2015", 3, r"it has no STS files\. Expected 2012/NAME\.tsv, stsb/dev\.tsv"),
    ({"a/2012/a.tsv": PLAIN, "b/2012/a.tsv": PLAIN}, "2012", 4, "2012 a exists twice: .*Give a folder"),
    ({"sts17/en-ar.tsv": PLAIN}, "sts17-en-es", 3, "no files of sts17-en-es; it has sts17-en-ar"),
    ({"2012/a.tsv": PLAIN}, "stsb", 2, "'stsb' is not an STS set; expected names as in 2012-2016"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "name", "code", "message"), BAD)
def test_errors_name_the_file_and_the_line(
    files: dict, name: str, code: int, message: str, write: Write, tmp_path: Path
) -> None:
    for place, content in files.items():
        write(place, content)
    with pytest.raises(BgtError, match=message) as error:
        read_sets(tmp_path, [name])
    assert error.value.exit_code == code


def test_differences_from_the_published_sets_are_warned_of(write: Write, tmp_path: Path) -> None:
    write("2013/FNWN.tsv", PLAIN)
    write("2013/headlines.tsv", PLAIN + "".join(f"1\t{n}\tx\n" for n in range(747)))
    count, missing = dataset_warnings(read_sets(tmp_path, ["2013"]))
    assert count == "2013 FNWN has 3 pairs; the published data set has 189."
    assert missing.startswith("2013 lacks OnWN: ")  # SMT is missing, too, but no warning names it
