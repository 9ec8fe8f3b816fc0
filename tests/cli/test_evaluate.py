"""Test the tables, JSON, files and one-line errors of all tasks of `bgt evaluate`."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bgt_core
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.grammar import Pair, triples
from bgt_core.tables import ROWS

Bgt = Callable[[str], tuple[int, str, str]]
TREES = [f"(S (NP (DT d{n}) (NN n{n % 7})) (VP (VB v{n % 5})))" for n in range(40)]


@pytest.fixture
def bgt(bgt: Callable) -> Bgt:
    """bgt("sts sts --json"): run `bgt evaluate` with few bootstrap resamples; return exit code, stdout and stderr."""

    def run(arguments: str) -> tuple[int, str, str]:
        few = () if "--resamples" in arguments else ("--resamples", "100")
        return bgt("evaluate", *arguments.split(), *few, "--device", "cpu")

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path, grammar: list[Pair]) -> Path:
    """A working folder with a model, and with a small data set for every task."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    rows = "5\tThe dog sleeps.\tThe dog sleeps.\n0\tAnna reads.\tA car.\n2\tA car.\tThe red car.\n"
    labelled = "".join(f"{n % 2}\thow old is city {n}\thow old is {'that ' * (n % 2)}city {n}\n" for n in range(30))
    pairs = "".join("\t".join(pair.texts.values()) + "\n" for pair in grammar[:12])
    of_kinds = "".join("\t".join([each.kind, *each.texts["en"]]) + "\n" for each in triples(20))
    files = {
        "sts/2012/A.tsv": rows, "labels.tsv": labelled, "pairs.tsv": pairs,
        "triples.tsv": of_kinds, "trees.mrg": "\n".join(TREES), "side.tsv": "one side\n", "bad.mrg": "word",
    }  # fmt: skip
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8")
    return tmp_path


def lines(out: str) -> list[list[list[str]]]:
    """Parse the printed tables: for each table, a list of rows, which are lists of cells."""
    return [[line.split("\t") for line in part.splitlines()] for part in out.split("\n\n")]


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "head", "first", "rows", "differences", "note"),
    [
        ("sts sts --sets 2012 --model model --aggregate all", "year dataset score pairs model-semantic model-language",
         "2012 A Pearson 3", 8, 8, "2012 lacks MSRpar"),
        ("pairs labels.tsv --dev labels.tsv --model m=model --latent semantic --distance w2 --distance cosine",
         "system accuracy F1 AUC threshold", "m-w2-semantic", 4, 18, "30 pairs, 15 of them (50.0%) duplicates"),
        ("triples triples.tsv --model m=model --model baseline:words",
         "kind triples m-semantic m-language baseline:words", "giver-and-receiver 4", 6, 18, "triples.tsv: 20 triples"),
        ("retrieval pairs.tsv --langs en,fr --model model --model again=./model",
         "file by system en-to-fr fr-to-en", "pairs.tsv cosine model-semantic", 2, 2, "repeated sentences: 0 in en"),
        ("syntax trees.mrg --limit 15 --model m=model --model baseline:words", "system labelled-F1 tree-edit-distance "
         "POS-accuracy", "random-neighbour", 5, 18, "15 queries, "),
        ("fidelity pairs.tsv --langs en,fr --train pairs.tsv --beam 1 --limit 6 --model model",
         "written meaning-of style-of system chrF BLEU length-r-x-100 words-off style-r-x-100 exact-% same-mark-%",
         "en its-own its-own model", 32, 0, "6 pairs, beam 1; chrF and BLEU of sacrebleu, lower-cased"),
        ("minimal-pairs --count 2 --beam 1 --model model", "written meaning-of style-of roles system both-named-% "
         "roles-right-% right-likelier-%", "en its-own its-own giver-and-receiver model", 16, 0, "2 minimal pairs"),
        ("style --lang en --model model", "measure lang style quadruples model-semantic model-language tf-idf-of-words "
         "tf-idf-of-character-trigrams", "STEL en contraction 112", 2, 12, "112 quadruples in en; x 100: "),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) and "--" in value else "",
)  # fmt: skip
def test_a_table_of_systems_and_their_differences(
    bgt: Bgt, arguments: str, head: str, first: str, rows: int, differences: int, note: str
) -> None:
    code, out, err = bgt(f"{arguments} --out result.json")
    assert code == 0, err
    (table,) = lines(out)
    columns, row = ([text.replace(" ", "-") for text in line] for line in table[:2])
    assert columns[: len(head.split())] == head.split() and row[: len(first.split())] == first.split()
    assert len(table) == 1 + rows
    assert note in err
    document = json.loads(Path("result.json").read_text("utf-8"))
    assert (document["schema"], document["task"]) == ("bgt-evaluate/2", arguments.split()[0])
    assert len(document["differences"]) == differences
    shown = {cell for line in table for cell in line}
    for cell in (score for score in document["scores"] if "ci_low" in score):
        text = f"{cell['value']:z.1f} [{cell['ci_low']:z.1f}, {cell['ci_high']:z.1f}]"
        assert {text, f"{text} *", f"{text} ="} & shown


@pytest.mark.usefixtures("here")
def test_the_library_returns_the_result_that_the_command_prints(bgt: Bgt) -> None:
    model = bgt_core.load("model", "cpu")
    document = json.loads(bgt("sts sts --sets 2012 --model model --json").out)
    expected = evaluate(Sts(sets="2012"), {"model": model}, "sts", resamples=100)
    assert json.loads(json.dumps(expected.as_dict())) == document


@pytest.mark.usefixtures("here")
def test_the_ending_of_the_output_file_sets_its_format(bgt: Bgt) -> None:
    command = "sts sts --sets 2012 --model m=model --model baseline:words"
    for ending in ("parquet", "csv", "md", "tex"):
        assert bgt(f"{command} --out t.{ending}").code == 0
    rows, document = pq.read_table("t.parquet").to_pylist(), json.loads(bgt(f"{command} --json").out)["scores"]
    assert list(rows[0]) == list(ROWS)
    for row, score in zip(rows, document, strict=True):
        name = score["system"]
        part = {"m semantic": "semantic", "m language": "language"}.get(name, name)
        assert (row["system"], row["model"]) == (part, name.split()[0]) and not row["baseline"]
        assert row["score"] == f"{score['year']} / {score['dataset']} / {score['score']}" and row["n"] == score["pairs"]
        assert (row["value"], row["low"], row["high"]) == (score["value"], score["ci_low"], score["ci_high"])
        assert (row["task"], row["lang"], row["seed"], row["source"]) == ("sts", "en", 0, "sts") and row["fingerprint"]
    with Path("t.csv").open(newline="") as file:
        assert [float(row["value"]) for row in csv.DictReader(file)] == [row["value"] for row in rows]
    for ending in ("md", "tex"):
        text = Path(f"t.{ending}").read_text("utf-8")
        assert f"{rows[0]['value']:.1f}" in text and "m semantic - m language" in text and "p (Holm)" in text


@pytest.mark.usefixtures("here")
def test_pairs_are_written_and_baselines_are_marked(bgt: Bgt) -> None:
    assert bgt("sts sts --sets 2012 --model model --items items.parquet").code == 0 and Path("items.parquet").exists()
    assert bgt("pairs labels.tsv --model baseline:words --out t.parquet").code == 0
    assert {row["system"]: row["baseline"] for row in pq.read_table("t.parquet").to_pylist()} == {
        "baseline:words": False, "bag of words": True, "tf-idf": True
    }  # fmt: skip


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("sts sts --resamples 3", 2, "--resamples 3"),
        ("sts sts --sets 2014-2012", 2, "--sets 2014-2012: the earlier year must be first"),
        ("sts sts --sets 2012 --aggregate median", 2, "--aggregate 'median': choose from mean"),
        ("sts", 2, "DATA must be a folder of STS files (got 0 paths)"),
        ("sts sts --sets 2012 --out t.xlsx", 2, "--out t.xlsx: expected a file that ends in .parquet, .json, .csv"),
        ("sts sts --sets 2012 --out no/t.json", 3, "the folder no does not exist"),
        ("sts sts --sets 2012 --latent style", 2, "--latent style: model has"),
        ("sts sts --sets 2012 --model model --model other=x/model", 3, "x/model"),
        ("pairs labels.tsv --columns a,b", 2, "--columns a,b: expected label, a and b"),
        ("triples triples.tsv --count 9", 2, "--count only applies to triples of the grammar"),
        ("triples --count 1000000", 2, "0 to 2,000 triples"),
        ("retrieval pairs.tsv --langs en", 2, "--langs en: expected two languages"),
        ("syntax trees.mrg --lengths 29", 2, "--lengths 29: expected the minimum and maximum number of words"),
        ("syntax trees.mrg --lengths 9-300", 2, "9-300: expected a range within 1-200"),
        ("syntax bad.mrg", 4, "bad.mrg:1: 'word' outside any bracket"),
        ("fidelity pairs.tsv --langs en,de", 2, "--langs de: model supports en, fr"),
        ("fidelity pairs.tsv --langs en,fr --lengths 90-99", 4, "0 of 12 pairs"),
        ("fidelity pairs.tsv --langs en,fr --model baseline:words", 2, "can't generate"),
        ("inversion side.tsv", 4, "side.tsv: 1 sentences; expected 2 or more"),
        ("inversion pairs.tsv --corrections -1", 2, "--corrections -1 must not be negative"),
        ("transfer pairs.tsv --langs en,fr --limit 9", 2, "--limit 9 must be at least 20"),
        ("style pairs.tsv", 4, "pairs.tsv: no column 'Anchor 1'; expected a header with Anchor 1, Anchor 2, "),
        ("style --lang ar", 2, "--lang ar: the built-in set supports de, en, es, fr, ja, tr"),
    ],
)
def test_an_error_is_one_line(bgt: Bgt, arguments: str, code: int, message: str) -> None:
    got, out, err = bgt(arguments if "--model" in arguments else f"{arguments} --model model")
    assert (got, out) == (code, ""), err
    assert message in err
    assert err.count("\n") == 1 and err.startswith("bgt: ")
