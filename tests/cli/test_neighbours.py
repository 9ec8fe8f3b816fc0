"""Test the output and errors of `bgt mine`. (`tests/neighbours/test_questions.py` tests `bgt retrieve-similar`.)"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from bgt_core import cli
from bgt_core.errors import UsageError

Bgt = Callable[..., tuple[int, str, str]]


class Bag:
    """An encoder that sums the vectors of a sentence's words, which are the same in all languages."""

    langs, latents, fingerprint = ("en", "fr"), ("semantic",), ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        if lang not in self.langs:
            raise UsageError(f"no language '{lang}'")
        vectors = np.zeros((len(sentences), 32), dtype=np.float32)
        for row, sentence in zip(vectors, sentences, strict=True):
            for word in sentence.lower().split():
                row += np.random.default_rng(list(word.encode())).normal(size=32)
        return vectors


ENGLISH = ["The dog sleeps", "A red car", "", "Anna reads books", "The dog sleeps", "Only here in English"]
FRENCH = ["anna books lit", "rien de tel", "le dog sleeps", "une car red"]
PAIRS = {(1, 3), (2, 4), (4, 1)}  # the translations that must be found, as (line of A, line of B)


@pytest.fixture
def bgt(bgt: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bgt:
    """bgt("A B --langs en,fr ..."): run `bgt mine` with the encoder `Bag`, in a folder with texts and vectors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.options, "open_encoder", lambda model, device: Bag())
    for name, lines in (("en.txt", ENGLISH), ("fr.txt", FRENCH)):
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("gold.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in PAIRS))
    for name, lines, lang in (("en.npy", ENGLISH, "en"), ("fr.npy", FRENCH, "fr")):
        np.save(name, Bag().embed(lines, lang=lang))
    Path("folder").mkdir()

    return lambda arguments: bgt("mine", *arguments.split())


def mined(path: str = "pairs.tsv") -> list[list[str]]:
    return [line.split("\t") for line in Path(path).read_text("utf-8").splitlines()]


def test_the_command_writes_pairs_best_first(bgt: Bgt) -> None:
    code, out, err = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    assert (code, out) == (0, "")
    assert err.startswith("pairs.tsv: ") and err.endswith("pairs of 4 x 4 different sentences; exact\n")
    lines = mined()
    scores = [float(line[0]) for line in lines]
    assert scores == sorted(scores, reverse=True)
    assert {(int(one), int(two)) for _, one, two, *_ in lines[:3]} == PAIRS
    for _, one, two, left, right in lines:
        assert (left, right) == (ENGLISH[int(one) - 1], FRENCH[int(two) - 1])


def test_the_command_takes_vectors_of_the_lines(bgt: Bgt) -> None:
    bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    for index in ("exact", "approximate"):
        code, *_ = bgt(f"en.txt fr.txt --vectors en.npy fr.npy --out again.tsv --index {index}")
        assert code == 0
        assert Path("again.tsv").read_text() == Path("pairs.tsv").read_text()


def test_the_command_keeps_pairs_above_the_threshold(bgt: Bgt) -> None:
    bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    every = mined()
    limit = every[1][0]
    bgt(f"en.txt fr.txt --langs en,fr --out pairs.tsv --threshold {float(limit) - 1e-5}")
    assert mined() == every[:2]
    code, _, err = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv --threshold 999")
    assert (code, mined()) == (0, [])
    assert "0 pairs" in err


def test_the_command_scores_against_known_pairs(bgt: Bgt) -> None:
    code, out, _ = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv --gold gold.tsv --threshold 999")
    assert code == 0
    head, *table = [line.split("\t") for line in out.splitlines()]
    assert head == ["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"]
    rows_of = {name: values for name, *values in table}
    assert rows_of["all"][2:] in (["75.0", "100.0", "85.7"], ["100.0", "100.0", "100.0"])
    assert rows_of["--threshold"] == ["999", "0", "0.0", "0.0", "0.0"]
    assert rows_of["best threshold"][1:] == ["3", "100.0", "100.0", "100.0"]
    assert "best of the other half" in rows_of


@pytest.mark.parametrize(
    ("arguments", "expected", "says"),
    [
        ("en.txt fr.txt --out x.tsv", 2, "--langs is needed, unless --vectors"),
        ("en.txt fr.txt --out x.tsv --langs en,fr --vectors en.npy fr.npy", 2, "--langs is needed, unless --vectors"),
        ("en.npy fr.npy --out x.tsv --langs en,fr", 2, "--vectors .*en.npy, which contains vectors"),
        ("en.txt fr.txt --out x.tsv --vectors fr.npy en.npy", 4, "fr.npy: .* each of 6 lines"),
        ("en.txt fr.txt --out no/x.tsv --langs en,fr", 2, "no/x.tsv"),
        ("en.txt fr.txt --out folder --langs en,fr", 2, "folder"),
        ("en.txt fr.txt --out x.tsv --langs en,fr --gold en.txt", 4, "en.txt:1"),
    ],
)
def test_an_error_is_one_line_and_nothing_written(bgt: Bgt, arguments: str, expected: int, says: str) -> None:
    before = set(Path().rglob("*"))
    code, out, err = bgt(arguments)
    assert (code, out) == (expected, "")
    assert re.match(rf"bgt: .*{says}.*\n$", err), err
    assert set(Path().rglob("*")) == before


def test_without_faiss_the_message_says_what_to_install(bgt: Bgt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    code, out, err = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    assert (code, out) == (3, "")
    assert err == 'bgt: Nearest neighbours need FAISS: pip install "bgt[mine]"\n'
