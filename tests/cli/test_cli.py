"""The command: results on stdout, expected errors as one line on stderr, and no incomplete files."""

from __future__ import annotations

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

import bgt_core
from bgt_core import bulk, checkpoint
from bgt_core.cli.options import tune_training
from bgt_core.generation.generate import candidates, exchanged
from bgt_core.generation.search import decode
from bgt_core.grammar import Pair
from tests.close import BFLOAT16, assert_close

ROOT = Path(__file__).resolve().parents[2]


Bgt = Callable[..., Any]  # its exit code, stdout, stderr


@pytest.fixture
def bgt(bgt: Bgt) -> Bgt:
    """bgt("embed", "-", stdin=b"..."): the command in this process, through its `main`."""
    return lambda *arguments, stdin=b"": bgt(*arguments, stdin=io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: Path, tsv: Path) -> Path:
    """The working directory, with valid and invalid files."""
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
        "blank.txt": b" \n\n",
        "mark.txt": b"\xef\xbb\xbf\n",
        "empty.tsv": b"",
        "one.tsv": b"only one column\n" * 9,
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
ERRORS: dict[str, tuple[str, int, str]] = {  # command, exit code, part of the message
    "corrupted checkpoint": ("embed text.txt --out x.npy --model corrupt", 4, r"corrupt/model\.safetensors: damaged"),
    "corrupted checkpoint, export": ("export corrupt --out x", 4, "damaged"),
    "a folder without one": ("info sts", 3, "no checkpoint here"),
    "empty file": ("embed empty.txt --out x.npy --model model", 4, "empty.txt: empty"),
    "a table as text": (
        "embed pairs.tsv --out x.npy --model model",
        4,
        r"pairs\.tsv:1: 2 columns \(.* \| .*\); .*cut -f1",
    ),
    "absent file": ("embed absent.txt --out x.npy --model model", 3, "absent.txt"),
    "not UTF-8": ("embed latin.txt --out x.npy --model model", 4, "latin.txt:2: not UTF-8"),
    "unknown language": ("embed text.txt --out x.npy --model model --lang de", 2, "de: .*en, fr"),
    "unknown suffix": ("embed text.txt --out x.pkl --model model", 2, r"x\.pkl.*\.npy or \.safetensors"),
    "no folder for vectors": ("embed text.txt --out nowhere/x.npy --model model", 3, "nowhere/x.npy: can't be written"),
    "a folder in the way": ("embed text.txt --out sts/x.npy --model model", 3, "sts/x.npy: can't be written"),
    "a folder as text": ("embed sts --out x.npy --model model", 3, "sts: can't be read"),
    "no such shard": ("embed text.txt --out x.npy --model model --shard 3/2", 2, r"--shard 3/2: .*from 1 to N"),
    "not a shard": ("embed text.txt --out x.npy --model model --shard half", 2, "--shard half: expected I/N"),
    "empty source": ("generate --source= --style b --model model", 2, "--source is empty"),
    "generate in an unknown language": ("generate --source a --style b --lang de --model model", 2, "--lang de: "),
    "an empty beam": ("generate --source a --style b --beam 0 --model model", 2, "beam 0 must be at least 1"),
    "more than the beam": ("generate --source a --style b --n-best 9 --model model", 2, "--n-best 9"),
    "sts of a bad line": ("evaluate sts sts --sets 2013 --model model", 4, r"bad\.tsv:1"),
    "sts of no set": ("evaluate sts sts --sets soon --model model", 2, "'soon' is not an STS set"),
    "sts without its folder": ("evaluate sts nowhere --model model", 3, "nowhere: no such file or folder"),
    "sts in an unknown language": ("evaluate sts sts --sets 2012 --lang de --model model", 2, "--lang de: "),
    "hard sts of few pairs": ("evaluate sts sts --sets 2012 --hard --model model", 4, "Hard STS: .*pool more"),
    "export over something": ("export model --out sts", 2, "sts: exists already"),
    "unknown recipe": ("train bgt-smal --data pairs.tsv --out run", 2, "'bgt-smal'. Did you mean 'bgt-small'"),
    "unknown setting": (f"{TRAIN} --data pairs.tsv --set d_modle=3", 2, "'d_modle'. Did you mean 'd_model'"),
    "unclear setting": ("train bgt --data pairs.tsv --out run --set weight=3", 2, "'weight' is ambiguous: use "),
    "impossible setting": (f"{TRAIN} --data pairs.tsv --set heads=7 --set vocab_size=400", 2, "7 heads"),
    "no setting": (f"{TRAIN} --data pairs.tsv --set model.d_model", 2, "NAME=VALUE"),
    "one language": (f"{TRAIN} --data pairs.tsv --langs en", 2, "columns en: similarity needs two columns"),
    "no --data": (TRAIN, 2, "--data"),
    "no recipe": ("train --data pairs.tsv --out run", 2, "RECIPE is needed"),
    "absent data": (f"{TRAIN} --data absent.tsv", 3, "absent.tsv"),
    "empty data": (f"{TRAIN} --data empty.tsv", 4, "empty.tsv is empty"),
    "one column": (f"{TRAIN} --data one.tsv", 4, r"one\.tsv:1: 1 column, expected 2"),
    "not UTF-8, strict": (f"{TRAIN} --data latin.tsv --strict", 4, r"latin\.tsv:2: .*UTF-8"),
    "a third language": (f"{TRAIN} --data pairs.tsv --langs en,fr,es", 4, "2 columns, expected 3"),
    "too many tokens": (f"{TRAIN} --data pairs.tsv --set vocab_size=90000", 4, "vocab_size 90000 is too large"),
    "no tokenizer": (f"{TRAIN} --data pairs.tsv --tokenizer absent.model", 3, "absent.model"),
    "a file in the way": ("train bgt-small --data pairs.tsv --out mine", 3, "mine: can't be written"),
    "a folder in use": ("train bgt-small --data pairs.tsv --out sts", 2, "sts: not empty"),
    "nothing to resume": ("train --resume --out run", 3, "run: has no run.json"),
    "resume and more": ("train --resume --out run --data pairs.tsv", 2, "--resume"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line_and_a_code(name: str, bgt: Bgt, here: Path) -> None:
    command, code, message = ERRORS[name]
    if name == "a folder in the way":
        Path("sts/x.npy").mkdir()
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    done = bgt(*command.split(" "))
    assert done.code == code, done.err
    assert done.out == ""
    assert re.search(message, done.err)
    assert done.err.startswith("bgt: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    after = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    assert set(after) == set(before)  # nothing new, nothing lost
    assert {path: time for path, time in after.items() if path.is_file()} == {
        path: time for path, time in before.items() if path.is_file()
    }


EARLY = {  # the wrong path is reported before the model, which does not exist either
    "embed absent.txt --out x.npy": "IN absent.txt: no such file",
    "embed text.txt --out text.txt/x.npy": "--out text.txt/x.npy: can't be written",
    "embed text.txt --out x.txt": "x.txt: write to a .npy or .safetensors",
    "embed text.txt --out sts/folder.npy": "folder.npy: can't be written (Is a directory)",
    "mine text.txt absent.txt --langs en,fr --out x.tsv": "B absent.txt",
    "mine text.txt text.txt --langs en,fr --gold absent.txt --out x.tsv": "--gold absent.txt",
    "split absent.tsv --langs en,fr --out x": "no file absent.tsv",
    "split pairs.tsv --langs en,fr --report --sts-data absent --out x": "--sts-data absent",
    "split pairs.tsv --langs en,fr --out sts": "--out sts: exists already",
    "evaluate inversion text.txt --train absent.txt": "--train absent.txt",
    "evaluate retrieval pairs.tsv --langs en,fr --out text.txt/x.csv": "--out text.txt/x.csv: can't be written",
    "generate --vectors absent.npy": "--vectors absent.npy",
    "diagnose absent.tsv": "FILE absent.tsv",
    "retrieve-similar x --build absent.txt": "--build absent.txt",
    "retrieve-similar x --build text.txt --dev absent.tsv": "--dev absent.tsv",
    "translate absent.txt": "IN absent.txt",
    "data backtranslate absent.tsv --langs en,fr --out x.tsv": "IN absent.tsv",
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


@pytest.mark.parametrize(
    "command", ["embed text.txt", "embed --out x.npy", "train bgt-small --data pairs.tsv", "embde"]
)
def test_usage_errors_say_what_is_missing(command: str, bgt: Bgt, here: Path) -> None:
    done = bgt(*command.split())
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert done.err.startswith("bgt: ")
    assert done.err.endswith(" --help.\n")
    assert done.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("info model >&-", 0, ""),
        ("info model >&- 2>&-", 0, ""),
        ("info absent >&- 2>&- <&-", 3, ""),
        ("embed - --out x.npy --model model <&-", 4, "bgt: -: empty; expected one sentence per line.\n"),
    ],
)
def test_a_closed_stream_leads_nowhere(arguments: str, code: int, message: str, here: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m bgt_core {arguments}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


def test_letters_that_a_stream_does_not_have_are_escaped(here: Path) -> None:
    code = "from bgt_core.cli import errors; errors.run(lambda **_: print('Où est 猫 ?'), 'bgt')"
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "O\\xf9 est \\u732b ?\n", "")


@pytest.mark.parametrize("latent", ["semantic", "language"])
@pytest.mark.parametrize("suffix", [".npy", ".safetensors"])
def test_embed_writes_a_row_a_line(latent: str, suffix: str, bgt: Bgt, here: Path) -> None:
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


@pytest.mark.parametrize("lang", ["FR", "fra", "fra_Latn", "fre"])
def test_a_language_has_one_spelling_in_every_command(lang: str, bgt: Bgt, here: Path) -> None:
    assert bgt("embed", "text.txt", "--out", "x.npy", "--model", "model", "--lang", lang).code == 0
    model, lines = bgt_core.load("model"), Path("text.txt").read_text().splitlines()
    np.testing.assert_array_equal(np.load("x.npy"), model.embed(lines, lang="fr"))
    np.testing.assert_array_equal(
        model.embed(lines, lang=lang, latent="language"), model.embed(lines, lang="fr", latent="language")
    )
    for command in (
        f"evaluate retrieval pairs.tsv --langs eng_Latn,{lang} --resamples 100 --model model",
        f"generate --source a --style b --lang {lang} --model model",
        f"mine text.txt text.txt --langs EN,{lang} --out y.tsv --model model",
        f"data prepare pairs.tsv --langs eng,{lang} --out y.tsv",
    ):
        assert bgt(*command.split()).code == 0
    done = bgt("embed", "text.txt", "--out", "x.npy", "--model", "model", "--lang", "French")
    assert done.code == 2 and "Did you mean 'fr'?" in done.err


def test_an_interruption_tells_what_it_leaves(bgt: Bgt, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bgt_core.Embedder, "_read", stop)
    for command, told in {
        "embed text.txt --out x.npy": "Stopped; nothing was written.",
        "mine text.txt text.txt --langs en,fr --out x.tsv": "Stopped; nothing was written.",
        "evaluate retrieval pairs.tsv --langs en,fr": "Stopped.",
        "retrieve-similar store --build text.txt": "Stopped; nothing was written.",
    }.items():
        done = bgt(*command.split(), "--model", "model")
        assert (done.code, done.out, done.err) == (130, "", f"bgt: {told}\n")
        assert not list(here.glob("x*"))


def test_embed_in_shards(bgt: Bgt, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 1)
    for shard in ("1/2", "2/2"):
        assert bgt("embed", "text.txt", "--out", "x.npy", "--model", "model", "--shard", shard).code == 0
    assert bgt("embed", "text.txt", "--out", "x.npy", "--model", "model").code == 0
    parts = [np.load(f"x-{part}-of-00002.npy") for part in ("00001", "00002")]
    np.testing.assert_array_equal(np.concatenate(parts), np.load("x.npy"))


def test_generate_prints_one_line(bgt: Bgt, here: Path) -> None:
    command = (
        "generate",
        "--source",
        "The dog sleeps.",
        "--style",
        "Oh, a car!",
        "--model",
        "model",
        "--max-length",
        5,
    )
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


def test_train_to_the_end_then_use(bgt: Bgt, here: Path, grammar: list[Pair]) -> None:
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


def test_training_bounds_caches_unless_the_caller_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("THP_MEM_ALLOC_ENABLE", "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        monkeypatch.setenv(name, "")  # so that monkeypatch removes at the end what the call below sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    tune_training()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "256"
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
