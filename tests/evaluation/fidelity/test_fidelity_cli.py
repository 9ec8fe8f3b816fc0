"""`bgt fidelity`: its tables, its JSON, and a line for what is foreseeable."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import bgt_core
from bgt_core.evaluation.fidelity import fidelity
from bgt_core.generation.options import GREEDY
from bgt_core.generation.writer import Writer
from bgt_core.grammar import Pair

Bgt = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def bgt(bgt: Callable) -> Bgt:
    """bgt("pairs.tsv --langs en,fr"): exit code, stdout, stderr."""
    return lambda arguments: bgt("fidelity", *arguments.split(), "--device", "cpu")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path, grammar: list[Pair]) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    for name, pairs in {"a.tsv": grammar[:12], "train.tsv": grammar[12:40], "one.tsv": grammar[:1]}.items():
        lines = ["\t".join(pair.texts.values()) + "\n" for pair in pairs]
        Path(name).write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_three_tables_and_one_of_all_numbers(bgt: Bgt) -> None:
    code, out, err = bgt(
        "a.tsv --langs en,fr --model model --train train.tsv --roles 2 --beam 1 --limit 6 --csv all.csv"
    )
    assert code == 0, err
    written, kept, roles = (
        [line.split("\t") for line in part.splitlines()] for part in out.removesuffix("\n").split("\n\n")
    )
    head = "written,meaning of,manner of,by,chrF,BLEU,exact %,length r x 100,words off,style r x 100,same mark %"
    head += ",other mark taken %"
    assert written[0] == head.split(",")
    assert len(written) == len(kept) == 1 + 8 * 4
    assert written[2][:4] == ["en", "its own", "its own", "source copied"] and written[2][4].startswith("100.0 [")
    assert [row[:5] for row in roles[1:3]] == [
        ["en", "its own", "its own", "giver and receiver", "1"],
        ["en", "its own", "its own", "subject and object", "1"],
    ]
    assert "6 pairs, beam 1, seed 0; chrF and BLEU of sacrebleu, lower-cased" in err
    with Path("all.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"chrF", "same mark %", "right likelier %"} <= {row["measure"] for row in rows}
    assert float(rows[0]["value ci_low"]) <= float(rows[0]["value"]) <= float(rows[0]["value ci_high"])


@pytest.mark.usefixtures("here")
def test_few_pairs_have_few_role_pairs(bgt: Bgt) -> None:
    code, out, err = bgt("a.tsv --langs en,fr --model model --beam 1 --limit 4 --json")
    assert code == 0, err
    roles = json.loads(out)["roles"]
    assert {scores["sentences"] for one in roles for scores in one["scores"].values()} == {2}  # of each of two kinds


@pytest.mark.usefixtures("here")
def test_json_is_what_the_library_measures(bgt: Bgt, grammar: list[Pair]) -> None:
    code, out, err = bgt("a.tsv --langs en,fr --model model --roles 0 --beam 1 --seed 3 --json --min-words 4 --limit 5")
    assert code == 0, err
    document = json.loads(out)
    assert (document["schema"], document["beam"], document["cased"], document["roles"]) == (
        "bgt-fidelity/1",
        1,
        False,
        [],
    )
    long = [pair.texts for pair in grammar[:12] if len(pair.texts["en"].split()) >= 4]
    chosen = [long[number * len(long) // 5] for number in range(5)]
    columns = {lang: [texts[lang] for texts in chosen] for lang in ("en", "fr")}
    writer = Writer(bgt_core.load("model", "cpu"), GREEDY)
    expected = fidelity(writer, columns, role_pairs=0, seed=3).as_dict()
    assert document["written"] == json.loads(json.dumps(expected["written"]))
    assert "Without --train" in err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("a.tsv --langs en", 2, "--langs en: expected two languages"),
        ("a.tsv --langs en,en", 2, "expected two languages"),
        ("a.tsv --langs en,de", 2, "no language 'de'; it has en, fr"),
        ("a.tsv --langs en,fr --limit 1", 2, "--limit 1: must be at least 2"),
        ("a.tsv --langs en,fr --roles -1", 2, "--roles -1: must be at least 0"),
        ("a.tsv --langs en,fr --beam 0", 2, "A beam of 0"),
        ("a.tsv --langs en,fr --csv - --json", 2, "stdout holds one document"),
        ("absent.tsv --langs en,fr", 3, "no file absent.tsv"),
        ("one.tsv --langs en,fr", 4, "1 of 1 pairs"),
        ("a.tsv --langs en,fr --min-words 90", 4, "0 of 12 pairs"),
        ("a.tsv --langs en,fr --model nowhere", 3, "nowhere: no such checkpoint"),
    ],
)
def test_bad_input_is_one_line(bgt: Bgt, arguments: str, code: int, message: str) -> None:
    status, out, err = bgt(arguments if "--model" in arguments else f"{arguments} --model model")
    assert (status, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
