"""`bgt` prints results on stdout, prints an expected error as one line on stderr, and leaves no incomplete files."""

import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from streamlit.web import cli

import bgt_core
from app.core import inventory
from bgt_core import checkpoint
from bgt_core.cli.options import rows_bar
from bgt_core.cli.train import show_progress
from bgt_core.generation.generate import candidates, exchanged
from bgt_core.generation.search import decode
from bgt_core.grammar import Pair
from tests.close import BFLOAT16, assert_close

ROOT = Path(__file__).resolve().parents[2]


Bgt = Callable[..., Any]  # runs `bgt`; returns exit code, stdout, stderr


@pytest.fixture
def bgt(bgt: Bgt) -> Bgt:
    """bgt("embed", "-", stdin=b"..."): run a command of `bgt` in this process, with these bytes on stdin."""
    return lambda *arguments, stdin=b"": bgt(*arguments, stdin=io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path, tsv: Path) -> Path:
    """A working folder with a model, a damaged copy of it, and valid and invalid data files."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    shutil.copytree(saved, "corrupt")
    with open("corrupt/model.safetensors", "r+b") as file:
        file.seek(-9, os.SEEK_END)
        file.write(b"!")
    shutil.copy(tsv, "pairs.tsv")
    for name, content in {
        "text.txt": b"The dog sleeps.\nAnna reads.\n",
        "empty.txt": b"",
        "latin.txt": b"fine\ncaf\xe9\n",
        "latin.tsv": b"fine\tbien\ncaf\xe9\tcaf\xe9\n",
        "mine": b"mine",
        "sts/2012/A.tsv": b"5\tThe dog sleeps.\tThe dog sleeps.\n0\tAnna reads.\tA car.\n2\tA car.\tThe red car.\n",
        "sts/2013/bad.tsv": b"5\tone sentence\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    return tmp_path


TRAIN = "train bgt-small --device cpu --out run"
ERRORS = [  # each case: (command, exit code, part of the message)
    ("embed text.txt --out x.npy --model corrupt", 4, r"corrupt/model\.safetensors: damaged"),
    ("embed empty.txt --out x.npy --model model", 4, "empty.txt: empty"),
    ("embed pairs.tsv --out x.npy --model model", 4, r"pairs\.tsv:1: 2 columns \(.* \| .*\); .*cut -f1"),
    ("embed latin.txt --out x.npy --model model", 4, "latin.txt:2: not UTF-8"),
    ("embed text.txt --out x.npy --model model --shard 3/2", 2, r"--shard 3/2: .*from 1 to N"),
    ("embed text.txt --out x.npy --model model --shard half", 2, "--shard half: expected I/N"),
    ("generate --source= --style b --model model", 2, "--source is empty"),
    ("generate --source a --style b --lang= --model model", 2, "--lang '': expected a language code"),
    ("generate --source a --style b --n-best 9 --model model", 2, "--n-best 9"),
    ("generate --source a --style b --n-best 0 --model model", 2, "--n-best 0 must be at least 1"),
    ("evaluate sts sts --sets 2013 --model model", 4, r"bad\.tsv:1"),
    ("evaluate sts sts --sets 2012 --hard --model model", 4, "Hard STS: .*give more data sets"),
    ("train bgt-smal --data pairs.tsv --out run", 2, "'bgt-smal'. Did you mean 'bgt-small'"),
    (f"{TRAIN} --data pairs.tsv --set d_modle=3", 2, "'d_modle'. Did you mean 'd_model'"),
    (f"{TRAIN} --data pairs.tsv --set heads=7 --set vocab_size=400", 2, "7 heads"),
    (TRAIN, 2, "--data is needed"),
    ("train --data pairs.tsv --out run", 2, "RECIPE is needed"),
    (f"{TRAIN} --data latin.tsv --strict", 4, r"latin\.tsv:2: .*UTF-8"),
    (f"{TRAIN} --data pairs.tsv --set vocab_size=90000", 4, "vocab_size 90000 is too large"),
    ("train bgt-small --data pairs.tsv --out mine", 3, "mine: can't be written"),
    ("train bgt-small --data pairs.tsv --out sts", 2, "sts: this folder is neither empty nor a run"),
    ("train --resume --out run", 3, "run: has no run.json"),
    ("train --resume --out run --data pairs.tsv", 2, "--resume"),
]


@pytest.mark.parametrize(("command", "code", "message"), ERRORS)
def test_an_error_is_one_line_and_a_code(command: str, code: int, message: str, bgt: Bgt, here: Path) -> None:
    before = {path: path.is_file() and path.stat().st_mtime_ns for path in here.rglob("*")}
    done = bgt(*command.split(" "))
    assert (done.code, done.out) == (code, ""), done.err
    assert re.search(message, done.err)
    assert done.err.startswith("bgt: ") and done.err.count("\n") == 1
    assert {path: path.is_file() and path.stat().st_mtime_ns for path in here.rglob("*")} == before


EARLY = {  # command -> part of the message about a bad path, which is reported before the missing model
    "embed absent.txt --out x.npy": "IN absent.txt: no such file",
    "embed text.txt --out text.txt/x.npy": "--out text.txt/x.npy: can't be written",
    "embed text.txt --out x.txt": "x.txt: write to a .npy or .safetensors",
    "embed text.txt --out sts/folder.npy": "folder.npy: can't be written (Is a directory)",
    "mine text.txt absent.txt --langs en,fr --out x.tsv": "B absent.txt",
    "split absent.tsv --langs en,fr --out x": "no file absent.tsv",
    "split pairs.tsv --langs en,fr --report --sts-data absent --out x": "--sts-data absent",
    "split pairs.tsv --langs en,fr --out sts": "--out sts: exists already",
    "evaluate inversion text.txt --train absent.txt": "--train absent.txt",
    "evaluate retrieval pairs.tsv --langs en,fr --out text.txt/x.csv": "--out text.txt/x.csv: can't be written",
    "generate --vectors absent.npy": "--vectors absent.npy",
    "retrieve-similar x --build absent.txt": "--build absent.txt",
    "data backtranslate pairs.tsv --langs en,fr --out x.txt": "x.txt: expected a name ending in",
    "train writer --langs en,fr --encoder nowhere --out x --data absent.tsv": "no file absent.tsv",
}


@pytest.mark.parametrize("command", EARLY)
def test_a_wrong_path_is_an_error_before_a_model_opens(command: str, bgt: Bgt, here: Path) -> None:
    Path("sts/folder.npy").mkdir()
    model = () if command.startswith("train") else ("--model", "nowhere")
    done = bgt(*command.split(), *model)
    assert done.code in (2, 3) and EARLY[command] in done.err and done.err.count("\n") == 1
    assert not Path("x").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("info model >&- 2>&-", 0, ""),
        ("info absent >&- 2>&- <&-", 3, ""),
        ("embed - --out x.npy --model model <&-", 4, "bgt: -: empty; expected one sentence per line.\n"),
    ],
)
def test_closed_streams_are_no_error(arguments: str, code: int, message: str, here: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m bgt_core {arguments}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


def test_characters_that_a_stream_can_not_encode_are_escaped(here: Path) -> None:
    code = "from bgt_core.cli import errors; errors.run(lambda **_: print('Où est 猫 ?'), 'bgt')"
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "O\\xf9 est \\u732b ?\n", "")


@pytest.mark.parametrize("latent", ["semantic", "language"])
@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_embed_writes_one_vector_per_line(latent: str, suffix: str, bgt: Bgt, here: Path) -> None:
    lines = ["Le chien dort.", "", "Où est la voiture ?", "Le chien dort."]
    text = "\r\n".join(lines).encode() + b"\r\n"
    out = here / f"vectors{suffix}"
    done = bgt("embed", "-", "--out", out, "--lang", "fr", "--latent", latent, "--model", "model", stdin=text)
    assert (done.code, done.out) == (0, "")
    assert f"{latent} latent" in done.err
    vectors = np.load(out) if suffix == ".npy" else load_file(out)["vectors"]
    expected = bgt_core.load("model").embed(lines, lang="fr", latent=latent)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, expected)
    assert not list(here.glob("*.partial"))


def test_a_language_may_be_spelled_in_several_ways(bgt: Bgt, here: Path) -> None:
    model, lines = bgt_core.load("model"), Path("text.txt").read_text().splitlines()
    for lang in ("FR", "fra", "fra_Latn", "fre"):
        assert bgt("embed", "text.txt", "--out", f"{lang}.npy", "--model", "model", "--lang", lang).code == 0
        np.testing.assert_array_equal(np.load(f"{lang}.npy"), model.embed(lines, lang="fr"))
    for command in (
        "evaluate retrieval pairs.tsv --langs eng_Latn,fra --resamples 100 --model model",
        "generate --source a --style b --lang fre --model model",
        "mine text.txt text.txt --langs EN,FR --out y.tsv --model model",
        "data prepare pairs.tsv --langs eng,fra_Latn --out y.tsv",
    ):
        assert bgt(*command.split()).code == 0
    done = bgt("embed", "text.txt", "--out", "x.npy", "--model", "model", "--lang", "French")
    assert done.code == 2 and "Did you mean 'fr'?" in done.err


def test_an_interruption_reports_what_is_left(bgt: Bgt, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bgt_core.Embedder, "_encode", stop)
    for command, told in {
        "embed text.txt --out x.npy": "Stopped; nothing was written.",
        "mine text.txt text.txt --langs en,fr --out x.tsv": "Stopped; nothing was written.",
        "evaluate retrieval pairs.tsv --langs en,fr": "Stopped.",
        "retrieve-similar store --build text.txt": "Stopped; nothing was written.",
    }.items():
        done = bgt(*command.split(), "--model", "model")
        assert (done.code, done.out, done.err) == (130, "", f"bgt: {told}\n")
        assert not list(here.glob("x*"))


def test_generate_prints_one_line(bgt: Bgt, here: Path) -> None:
    command = shlex.split("generate --source 'The dog sleeps.' --style 'Oh, a car!' --model model --max-length 5")
    done = bgt(*command)
    assert (done.code, done.err) == (0, "")
    model = bgt_core.load("model")
    latents = exchanged(model, ["The dog sleeps."], ["Oh, a car!"], "en", "en")
    (ranked,) = candidates(model, latents, lang="en", search=bgt_core.Beam(8, 3, 1), max_length=5)
    assert done.out == ranked[0].text + "\n"
    assert bgt(*command, "--n-best", 3).out == "".join(each.text + "\n" for each in ranked[:3])
    free = [part for rule in ("no_repeat_ngram=0", "max-run=0", "length_penalty=2") for part in ("--set", rule)]
    free = bgt(*command, "--no-rerank", *free)
    search = bgt_core.Beam(8, length_penalty=2)
    assert free.out == decode(model, latents, lang="en", search=search, max_length=5)[0] + "\n"
    drawn = [bgt(*command, "--set", f"seed={seed}").out for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_info_prints_json_and_text(bgt: Bgt, here: Path) -> None:
    found = json.loads(bgt("info", "model", "--json").out)
    assert found["schema"] == "bgt-info/1"
    assert (found["recipe"], found["step"]) == ("bgt-small", 7)
    text = bgt("info", "model").out
    assert "recipe: bgt-small" in text
    assert found["files"]["model.safetensors"] in text
    shipped = bgt("info", "bgt-en-fr").out
    assert "rows (--json shows them)" in shipped and max(map(len, shipped.splitlines())) < 1_000


def test_export_leaves_the_optimiser_out(bgt: Bgt, here: Path) -> None:
    done = bgt("export", "model", "--out", "half", "--half")
    assert (done.code, done.out) == (0, "half\n")
    assert {path.name for path in Path("half").iterdir()} == {"config.json", "model.safetensors", "tokenizer.model"}
    full, half = (bgt_core.load(name).embed(["The dog sleeps."], lang="en") for name in ("model", "half"))
    assert_close(half, full, BFLOAT16)
    assert not np.array_equal(full, half)


def test_a_trained_model_can_be_described_resumed_and_used(bgt: Bgt, here: Path, grammar: list[Pair]) -> None:
    sizes = "vocab_size=300 d_model=8 semantic_dim=8 language_dim=4 ffn_dim=8 model.heads=1 min_tokens=2".split()
    length = "valid_pairs=10 epochs=0.5 batch_tokens=2000 micro_tokens=2000 train.save_every=1".split()
    sets = [part for text in (*sizes, *length) for part in ("--set", text)]
    done = bgt(*TRAIN.split(), "--data", "pairs.tsv", "--langs", "en,fr", *sets)
    assert done.code == 0, done.err
    last = checkpoint.steps_of(Path("run"))[-1]
    assert done.out == f"{last}\n"
    assert re.search(r"^train \d+/\d+ loss ", done.err, re.M)
    assert re.search(r"^valid \d+/\d+ elbo ", done.err, re.M)
    assert bgt("info", "run").code == 0
    assert bgt("train", "--resume", "--out", "run", "--device", "cpu").out == f"{last}\n"
    again = bgt(*TRAIN.split(), "--data", "pairs.tsv")
    assert (again.code, again.out) == (2, "")
    assert "--resume" in again.err
    assert bgt("embed", "text.txt", "--out", "x.npy", "--model", "run").code == 0
    assert np.isfinite(np.load("x.npy")).all()


def test_version(bgt: Bgt) -> None:
    assert bgt("--version").out == f"{bgt_core.__version__}\n"


def test_the_app_starts_with_the_given_options(bgt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr(cli, "main", lambda arguments, prog_name: given.extend(arguments))
    monkeypatch.setattr("app.serve.prepare", lambda: None)
    done = bgt(
        "app", "--no-browser", "--port", 9000, "--model", "baseline:tfidf", "--data", "en,fr=a.tsv", "--work", "b"
    )
    assert done.code == 0, done.err
    before, after = given[: given.index("--")], given[given.index("--") + 1 :]
    assert before[0] == "run" and Path(before[1]).parts[-2:] == ("app", "main.py") and Path(before[1]).is_file()
    assert before[2:] == ["--server.port=9000", "--server.headless=true"]
    assert after == ["--model", "baseline:tfidf", "--data", "en,fr=a.tsv", "--work", "b"]
    options = inventory.read(after[:4])
    assert next(iter(options.models.values())) == "baseline:tfidf" and "a.tsv (en-fr)" in options.texts


def test_errors_of_the_app_name_the_option_or_the_package(bgt: Bgt, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--port 70000: expected a port from 1 to 65535" in bgt("app", "--port", 70_000).err
    assert "is a file; name a folder" in bgt("app", "--work", __file__).err
    find = importlib.util.find_spec
    monkeypatch.setattr("bgt_core.cli.models.find_spec", lambda name: None if name == "streamlit" else find(name))
    done = bgt("app")
    assert done.code == 3 and 'pip install "bgt[app]"' in done.err


DATA_ROW = {"kind": "data", "pairs": {"kept": 9, "too short": 1}, "skipped": ["a.tsv:2: 1 column, expected 2 (en, fr)"]}
TRAIN_ROW = {"kind": "train", "step": 3, "steps": 10, "loss": 12.5, "tokens_per_second": 4321.0}
VALID_ROW = {"kind": "valid", "step": 3, "steps": 10, "elbo": -81.25}


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_a_bar_on_a_terminal_and_plain_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    shown = []
    for progress, rows in ((show_progress, [(DATA_ROW,), (TRAIN_ROW,), (VALID_ROW,)]), (rows_bar, [(5, 20)])):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
        monkeypatch.setattr("sys.stderr", stream)
        with progress(*["x.npy"] * (progress is rows_bar)) as report:
            for row in rows:
                report(*row)
        shown.append(stream.getvalue())
    if terminal:
        for part in ("loss 12.5, 4,321 tokens/s", "3/10", "valid 3/10 elbo -81.25", "skipped a.tsv:2"):
            assert part in shown[0]
        assert "train 3/10" not in shown[0]  # the progress bar shows the step, so it omits the words "train 3/10"
        assert re.search(r"x\.npy.* 25%", shown[1])
    else:
        lines = ["data: 9 kept, 1 too short", "skipped a.tsv:2: 1 column, expected 2 (en, fr)"]
        lines += ["train 3/10 loss 12.5 tokens_per_second 4321", "valid 3/10 elbo -81.25"]
        assert shown[0].splitlines() == lines and not shown[1]
