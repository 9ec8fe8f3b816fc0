"""What `bgt-probe` can be asked besides tasks: splits by hand, a plan, stdout, downloads, corrections; its ends."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.data import sources
from probes.data.splitfile import read_splits, with_splits
from probes.task import Items

QUICK = ("--lang", "fr", "--task", "punct-num", "--max-items", "400", "--seeds", "2", "--control", "none")


def documents(result: Any) -> list[dict]:
    return json.loads(result.out)["results"]


def test_a_table_on_stdout_is_alone_there(probe: Callable, fake: Any, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    printed = probe(*QUICK, "--csv", "-", "--latex", str(tmp_path / "t.tex"))
    probe(*QUICK, "--csv", str(file))
    assert printed.out == file.read_text("utf-8")
    assert [row["latent"] for row in csv.DictReader(io.StringIO(printed.out))][:2] == ["semantic", "language"]
    assert probe(*QUICK, "--latex", "-").out == (tmp_path / "t.tex").read_text("utf-8")
    assert probe(*QUICK, "--md", "-").out.startswith("| task | lang | semantic |")


SENTENCES = [f"Phrase {number}{'.' * (1 + number % 2)}" for number in range(400)]


@pytest.fixture
def own(tmp_path: Path) -> tuple[str, ...]:
    """--data with 400 sentences of a mark or two, and splits for 300 of them."""
    (tmp_path / "own.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    names = ["tr"] * 200 + ["dev"] * 60 + ["te"] * 40
    lines = "".join(f"{name}\t{sentence}\n" for name, sentence in zip(names, SENTENCES, strict=False))
    (tmp_path / "splits.tsv").write_text(lines, "utf-8")
    return "--data", str(tmp_path / "own.txt"), "--split-file", str(tmp_path / "splits.tsv")


def test_splits_by_hand_are_kept_to(probe: Callable, fake: Any, own: tuple[str, ...], tmp_path: Path) -> None:
    result = probe(*QUICK[:4], "--seeds", "1", "--control", "none", *own, "--json")
    assert result.code == 0, result.err
    (entry,) = documents(result)
    assert (entry["rows"][0]["n_train"], entry["rows"][0]["n_test"]) == (200, 40)
    assert entry["trail"]["split_file"].endswith("splits.tsv")
    from pyarrow import parquet

    probe(*QUICK[:4], "--seeds", "1", "--control", "none", *own, "--predictions", str(tmp_path / "p.parquet"))
    assert set(parquet.read_table(tmp_path / "p.parquet")["sentence"].to_pylist()) == set(SENTENCES[260:300])


def test_a_version_follows_the_sentence_that_is_named_and_test_wins(tmp_path: Path) -> None:
    items = Items(["le a", "la a", "le b", "la b", "le c", "le d"], list("xyxyxy"), [0, 0, 1, 1, 2, 3])
    kept = with_splits(items, {"le a": "train", "le b": "train", "la b": "test", "le c": "dev"})
    assert (kept.sentences, kept.splits) == (
        ["le a", "la a", "le b", "la b", "le c"],
        ["train", "train", "test", "test", "dev"],
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train\ta\nfit\tb\n", ":2: expected a split (tr, va, te, train, dev, test)"),
        ("train\n", ":1: expected a split"),
        ("train\ta\tb\n", ":1: expected a split"),
        ("train\ta\ntest\ta\n", ":2: 'a' is in two splits"),
        ("train\tPhrase 1..\ntest\tPhrase 2.\n", "assigns no sentence of this task to dev"),
    ],
)
def test_bad_splits_are_named(
    probe: Callable, fake: Any, own: tuple[str, ...], tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "splits.tsv").write_text(text, "utf-8")
    result = probe(*QUICK[:4], *own)
    assert result.code == 4
    assert message in result.err


def test_the_reason_is_the_last_line(probe: Callable, fake: Any, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("".join(f"tr\tA\tWord {number} .\n" for number in range(300)), "utf-8")
    (tmp_path / "none").mkdir()
    for data, reason in (
        ("one.tsv", "with the label 'A' alone; it needs at least 140 and 2"),
        ("none", "No 'en' data"),
    ):
        for mode in ((), ("--dry-run",)):
            result = probe("--lang", "en", "--data", str(tmp_path / data), *mode)
            assert result.code in (3, 4) and result.err.count("\n") > 5
            last = result.err.splitlines()[-1]
            assert last.startswith("bgt-probe: ") and reason in last, last


def test_split_names_are_sentevals_or_whole_words(tmp_path: Path) -> None:
    (tmp_path / "s.tsv").write_text("va\t a  B \ntest\tc\n", "utf-8")
    assert read_splits(tmp_path / "s.tsv") == {"a b": "dev", "c": "test"}  # in any case


def test_a_dry_run_says_what_is_left_to_do_and_does_nothing(probe: Callable, fake: Any) -> None:
    arguments = ("--lang", "en,fr", *QUICK[2:])
    head, *rows = (line.split("\t") for line in probe(*arguments, "--dry-run").out.splitlines())
    assert fake.calls == 0
    assert head[4:] == ["items", "train", "test", "classes", "vectors", "probes", "result"]
    assert [row[1] for row in rows] == ["en", "fr"]
    assert rows[1][4:7] + rows[1][8:] == ["400", "320", "40", "800", "4", "to measure"]  # 2 latents, 2 seeds
    probe("--lang", "fr", *QUICK[2:])
    plan = json.loads(probe(*arguments, "--dry-run", "--json").out)
    assert plan["schema"] == "bgt-probe-plan/1"
    assert [(row["vectors"], row["probes"], row["result"]) for row in plan["plan"]] == [
        (800, 4, "to measure"),
        (0, 0, "kept"),
    ]


def test_resamples_and_a_penalty_of_ones_own(probe: Callable, fake: Any) -> None:
    one = (*QUICK, "--seeds", "1")
    (few,), (many,) = (documents(probe(*one, "--resamples", count, "--json")) for count in ("100", "3000"))
    assert (few["resamples"], many["resamples"]) == (100, 3_000)
    assert few["rows"][0]["accuracy"] == many["rows"][0]["accuracy"]
    assert few["rows"][1]["boot_low"] != many["rows"][1]["boot_low"]
    (strong,) = documents(probe(*QUICK, "--l2", "1e9", "--json"))
    rows = {row["latent"]: row for row in strong["rows"]}
    assert rows["language"]["accuracy"] == rows["majority"]["accuracy"]  # nothing is left but the shares


def test_corrections_differ_and_are_named(probe: Callable, fake: Any) -> None:
    by_correction = {}
    for name in ("holm", "bonferroni", "none"):
        result = probe(*QUICK, "--correction", name, "--json")
        gaps = [gap for one in documents(result) for gap in (one["difference"], *one["over_baseline"])]
        by_correction[name] = np.array([[gap["p"], gap["adjusted_p"]] for gap in gaps])
    p = by_correction["holm"][:, 0]
    np.testing.assert_array_equal(by_correction["none"][:, 1], p)
    np.testing.assert_allclose(by_correction["bonferroni"][:, 1], np.minimum(1, 3 * p))
    assert (by_correction["holm"][:, 1] <= by_correction["bonferroni"][:, 1]).all()
    assert "p (Bonferroni)" in probe(*QUICK, "--correction", "bonferroni").out


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """SentEval's sets come from a folder of ours; yields what was said when they were asked for."""
    (tmp_path / "site").mkdir()
    rows = [
        f"{'va' if n % 10 == 8 else 'te' if n % 10 == 9 else 'tr'}\t{n // 10 % 2}\tWord {'x ' * (n // 10 % 2)}{n} ."
        for n in range(400)
    ]
    (tmp_path / "site" / "subj_number.txt").write_text("\n".join(rows) + "\n", "utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "site"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/subj_number.txt"
    source = sources.DataSource("senteval-probing", "sets", "no licence stated", (address,))
    monkeypatch.setattr(sources, "SOURCES", (source,))
    yield []
    server.shutdown()
    server.server_close()


def test_sentevals_sets_are_downloaded_once(probe: Callable, fake: Any, site: list[str], tmp_path: Path) -> None:
    arguments = (
        "--lang",
        "en",
        "--task",
        "subj-num",
        "--data",
        str(tmp_path / "sets"),
        "--seeds",
        "1",
        "--control",
        "none",
    )
    without = probe(*arguments)
    assert without.code == 3
    (tmp_path / "sets").mkdir()
    without = probe(*arguments)
    assert without.code == 3
    assert "No 'en' data for task 'subj-num'" in without.err
    assert without.err.rstrip().endswith("Get it with bgt-probe --download.")
    result = probe(*arguments, "--download", "--json")
    assert result.code == 0, result.err
    assert "no licence stated" in result.err
    assert documents(result)[0]["rows"][0]["n_train"] == 320
    again = probe(*arguments, "--download", "--json")
    assert again.out == result.out
    assert "no licence stated" not in again.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--csv", "-", "--json"), 2, "--csv - and --json: stdout holds one document"),
        (("--csv", "-", "--latex", "-"), 2, "--csv - and --latex -: stdout holds one document"),
        (("--parquet", "-"), 2, "--parquet -: only csv, latex, md can go to stdout"),
        (("--predictions", "-"), 2, "--predictions -: only csv"),
        (("--split-file", "absent.tsv"), 3, "--split-file absent.tsv: no such file or folder."),
        (("--correction", "fdr"), 2, "--correction 'fdr': choose from holm, bonferroni, none."),
        (("--resamples", "10"), 2, "--resamples 10 must be at least 100"),
        (("--l2", "0"), 2, "--l2 0: choose a penalty above 0"),
        (("--max-items", "10"), 2, "--max-items 10 must be at least 140"),
        (("--download",), 2, "--download gets SentEval's sets, which are English: give --lang en and --data FOLDER."),
        (("--download", "--data", "."), 2, "give --lang en"),
        (("--task", "gender", "--lang", "ar"), 2, "Task 'gender' has no definition for 'ar'; available: fr, es."),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_a_code(
    probe: Callable,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = probe(*QUICK, *arguments)
    assert message in result.err
    assert (result.code, result.out) == (code, "")
    assert "Traceback" not in result.err
    assert not list(tmp_path.iterdir())


class OutOfMemoryError(RuntimeError):
    """As torch calls that of a GPU."""


def raising(error: type[Exception]) -> Callable[[], None]:
    def fail() -> None:
        raise error("no")

    return fail


@pytest.mark.parametrize("error", [MemoryError, OutOfMemoryError])
def test_out_of_memory_has_its_own_code(probe: Callable, fake: Any, error: type[Exception]) -> None:
    fake.before = raising(error)
    result = probe(*QUICK)
    assert result.code == 6
    assert "out of memory: give --max-items" in result.err


@pytest.mark.parametrize("error", [RuntimeError, KeyError])
def test_a_fault_of_ours_is_not_hidden(probe: Callable, fake: Any, error: type[Exception]) -> None:
    fake.before = raising(error)
    with pytest.raises(error, match="no"):
        probe(*QUICK)


def test_a_damaged_checkpoint_is_said(probe: Callable, saved: Path, tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(saved, tmp_path / "copy"))
    weights = next(copy.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    result = probe(*QUICK, "--model", str(copy))
    assert result.code == 4
    assert "damaged: its hash is" in result.err
    absent = probe(*QUICK, "--model", str(tmp_path / "absent"))
    assert absent.code == 3


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_alone_is_no_error(tmp_path: Path) -> None:
    code = (
        "import numpy as np, bgt_core.encoders.ours as encoders\n"
        "class Fake:\n"
        "    langs, latents, fingerprint = ('fr',), ('semantic',), ''\n"
        "    def embed(self, sentences, *, lang, latent): return np.ones((len(sentences), 1), np.float32)\n"
        "encoders.load = lambda *_: Fake()\n"
        "from probes.cli import main; main()"
    )
    lines = "".join(f"Oui {n}, là{'…' if n % 2 else ' ?'}\n«{n}» non.\n" for n in range(150))
    (tmp_path / "é.txt").write_text(lines, "utf-8")
    arguments = ["--lang", "fr", "--task", "punct-first", "--data", str(tmp_path / "é.txt"), "--seeds", "1",
                 "--no-cache", "--no-baselines", "--control", "none", "--latent", "semantic"]  # fmt: skip
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for more in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments, *more], capture_output=True, check=False, env=env
        )
        assert done.returncode == 0, done.stderr.decode()
        done.stdout.decode("ascii")
    assert json.loads(done.stdout)["results"][0]["labels"] == [",", "«"]


def test_data_may_come_from_a_pipe(probe: Callable, fake: Any, tmp_path: Path) -> None:
    """As from `cat own.txt | bgt-probe --data /dev/stdin` and from process substitution."""
    text = "".join(f"Number{' a' * (number % 9)} {number}{'.' * (number % 2 + 1)}\n" for number in range(400))
    (tmp_path / "own.txt").write_text(text, "utf-8")
    arguments = ("--lang", "fr", "--task", "length,punct-num", "--seeds", "2", "--control", "none", "--json")
    expected = documents(probe(*arguments, "--data", str(tmp_path / "own.txt")))
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "w", encoding="utf-8") as file:
            file.write(text)

    writer = threading.Thread(target=write)
    writer.start()
    result = probe(*arguments, "--data", f"/dev/fd/{reading}")
    writer.join()
    os.close(reading)
    assert result.code == 0, result.err
    assert [each["rows"] for each in documents(result)] == [each["rows"] for each in expected] != []


def test_a_cache_that_cannot_be_written_is_refused_before_anything_is_computed(
    probe: Callable, fake: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = probe(*QUICK, "--cache-dir", str(tmp_path / "file" / "cache"))
    assert result.code == 3 and fake.calls == 0
    assert "cache: can't be written (Not a directory); choose another folder" in result.err


@pytest.mark.parametrize("mode", [(), ("--dry-run",), ("--csv", "FOLDER/rows.csv"), ("--json",)])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lang", "en-fr", "--task", "length"), "Task 'length' needs one language, not 'en-fr'"),
        (("--lang", "fr", "--task", "lang-id", "--data", "FOLDER"), "needs two or more languages, as in en-fr, not"),
        (("--lang", "en-fr", "--task", "syntax"), "none of syntax can be measured in en-fr"),
    ],
)
def test_what_can_measure_nothing_is_an_error(
    probe: Callable, fake: Any, tmp_path: Path, arguments: Sequence[str], message: str, mode: Sequence[str]
) -> None:
    result = probe(*(text.replace("FOLDER", str(tmp_path)) for text in (*arguments, *mode)))
    assert (result.code, result.out) == (2, "")
    assert message in result.err and result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
