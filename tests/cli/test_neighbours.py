"""`bgt mine`: its output and its errors. (`tests/neighbours/test_questions.py` runs `bgt retrieve-similar`.)"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from bgt_core import cli
from bgt_core.errors import UsageError
from bgt_core.neighbours.bitext import mine

ROOT = Path(__file__).resolve().parents[2]


class Bag:
    """An encoder that sums a fixed vector for each word. Languages share the vectors, as if all words were cognates."""

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
PAIRS = {(1, 3), (2, 4), (4, 1)}  # line of A, line of B


@pytest.fixture
def bgt(bgt: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """bgt("A B --langs en,fr ..."): run `bgt mine` with `Bag` as the model, in a folder with texts and vectors."""
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


def test_the_command_writes_pairs_best_first(bgt: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    assert (code, out) == (0, "")
    assert err.startswith("pairs.tsv: ") and err.endswith("pairs of 4 x 4 different sentences; exact\n")
    lines = mined()
    scores = [float(line[0]) for line in lines]
    assert scores == sorted(scores, reverse=True)
    assert {(int(one), int(two)) for _, one, two, *_ in lines[:3]} == PAIRS
    for _, one, two, left, right in lines:
        assert (left, right) == (ENGLISH[int(one) - 1], FRENCH[int(two) - 1])


def test_the_command_takes_vectors_of_the_lines(bgt: Callable[..., tuple[int, str, str]]) -> None:
    bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    for index in ("exact", "approximate"):
        code, *_ = bgt(f"en.txt fr.txt --vectors en.npy fr.npy --out again.tsv --index {index}")
        assert code == 0
        assert Path("again.tsv").read_text() == Path("pairs.tsv").read_text()


def test_the_command_keeps_pairs_above_the_threshold(bgt: Callable[..., tuple[int, str, str]]) -> None:
    bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    every = mined()
    limit = every[1][0]
    bgt(f"en.txt fr.txt --langs en,fr --out pairs.tsv --threshold {float(limit) - 1e-5}")
    assert mined() == every[:2]
    code, _, err = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv --threshold 999")
    assert (code, mined()) == (0, [])
    assert "0 pairs" in err


def test_the_command_scores_against_known_pairs(bgt: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv --gold gold.tsv --threshold 999")
    assert code == 0
    head, *table = [line.split("\t") for line in out.splitlines()]
    assert head == ["kept", "threshold", "pairs", "precision %", "recall %", "F1 %"]
    rows_of = {name: values for name, *values in table}
    assert rows_of["all"][2:] in (["75.0", "100.0", "85.7"], ["100.0", "100.0", "100.0"])
    assert rows_of["--threshold"] == ["999", "0", "0.0", "0.0", "0.0"]
    assert rows_of["best threshold"][1:] == ["3", "100.0", "100.0", "100.0"]
    assert "best of the other half" in rows_of


def test_copies_in_a_list_count_once() -> None:
    vectors = np.eye(3, dtype=np.float32)

    class Letters:
        langs, latents, fingerprint = ("en", "fr"), ("semantic",), ""

        def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
            return vectors[["abc".index(sentence) for sentence in sentences]]

    mined = mine(["a", "b", "a", "", "c"], ["c", "a", "b", "a"], encoder=Letters(), langs=("en", "fr"), k=1)
    known = np.array([[0, 1], [2, 3], [2, 1], [1, 2], [4, 0]]).T
    every = mined.against(*known)[0]
    assert (every.correct, every.known) == (3, 3)


ERRORS = {  # arguments, exit code, part of the message
    "no vectors": ("en.txt fr.txt --out x.tsv", 2, "--langs or --vectors: give one"),
    "both": ("en.txt fr.txt --out x.tsv --langs en,fr --vectors en.npy fr.npy", 2, "--langs or --vectors: give one"),
    "vectors as text": ("en.npy fr.npy --out x.tsv --langs en,fr", 2, "--vectors .*en.npy, which holds vectors"),
    "not UTF-8": ("latin.txt fr.txt --out x.tsv --langs en,fr", 4, "latin.txt:2: not UTF-8"),
    "swapped vectors": ("en.txt fr.txt --out x.tsv --vectors fr.npy en.npy", 4, "fr.npy: .* each of 6 lines"),
    "no folder": ("en.txt fr.txt --out no/x.tsv --langs en,fr", 2, "no/x.tsv"),
    "a folder in the way": ("en.txt fr.txt --out folder --langs en,fr", 2, "folder"),
    "bad gold": ("en.txt fr.txt --out x.tsv --langs en,fr --gold en.txt", 4, "en.txt:1"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line_and_nothing_written(name: str, bgt: Callable[..., tuple[int, str, str]]) -> None:
    Path("empty.txt").write_text("\n \n")
    Path("latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    np.save("wide.npy", np.ones((4, 33), dtype=np.float32))
    before = set(Path().rglob("*"))
    arguments, expected, says = ERRORS[name]
    code, out, err = bgt(arguments)
    assert (code, out) == (expected, "")
    assert re.match(rf"bgt: .*{says}.*\n$", err), err
    assert set(Path().rglob("*")) == before


def test_without_faiss_the_message_says_what_to_install(
    bgt: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    code, out, err = bgt("en.txt fr.txt --langs en,fr --out pairs.tsv")
    assert (code, out) == (3, "")
    assert err == 'bgt: Nearest neighbours need FAISS: pip install "bgt[mine]"\n'
