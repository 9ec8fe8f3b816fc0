"""Read malicious checkpoints, splits and archives: wrong sizes, names or types, deep nesting, links, zip bombs.

Each file must raise a one-line error within seconds, change nothing outside its folder, and need little memory.
"""

import gzip
import hashlib
import io
import json
import random
import resource
import shutil
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bgt_core
from bgt_core import checkpoint
from bgt_core.data.fetch import unpack
from bgt_core.encoders.publish import model_card
from bgt_core.errors import BgtError
from bgt_core.files import sha256_file
from bgt_core.splitting import parts as split
from tests.reliability import commands

SEEDS = 24
SECONDS, BYTES = 10.0, 512 * 2**20  # maximum time and memory for one file
VALUES = [10**9, 10**30, -1, 0, 1e308, "x" * 10**5, "../../x", "/etc/passwd", None, [], {}, True, "\0", [[[[]]]], 2**31]
NAMES = ["../out", "/etc/passwd", "a/../../b", "", ".", "..", "x\0y", "C:\\x", "a" * 400, "con", "~/x", "./x"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an untrained model, and a split fitted to random vectors."""
    folder = tmp_path_factory.mktemp("hostile")
    data = commands.shared_data(folder / "data")
    (folder / "model").symlink_to(data / "model")
    vectors = np.random.default_rng(0).normal(size=(60, 12)).astype("f4")
    made = bgt_core.split(None, [(["en", "fr"], [vectors, vectors + 1])], method="centring")
    split.save(folder / "split", split.StoredSplit(made, "", ""))
    return folder


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_does_harm_is_one_line(seed: int, prepared: Path, tmp_path: Path) -> None:
    draw = random.Random(seed)
    (tmp_path / "canary").write_text("here", "utf-8")
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        (archive, damaged_checkpoint, damaged_split)[seed % 3](draw, prepared, tmp_path / "inside")
    except BgtError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message and len(message) <= 2_000
    assert time.monotonic() - begun < SECONDS
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < BYTES
    assert {path.name for path in tmp_path.iterdir()} <= {"inside", "canary"}
    assert (tmp_path / "canary").read_text("utf-8") == "here"


def damaged_checkpoint(draw: random.Random, prepared: Path, folder: Path) -> None:
    """Change one value of the configuration, and update the hashes. Then load the checkpoint."""
    shutil.copytree(prepared / "model", folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    kind = draw.randrange(6)
    if kind == 0:
        config["arguments"][draw.choice(list(config["arguments"]))] = draw.choice(VALUES)
    elif kind == 1:
        config[draw.choice(list(config))] = draw.choice(VALUES)
    elif kind == 2:
        config["files"][draw.choice(NAMES)] = config["files"]["model.safetensors"]
    elif kind == 3:
        header = json.dumps({"w": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4]}}).encode()
        content = len(header).to_bytes(8, "little") + header + bytes(4)
        (folder / "model.safetensors").write_bytes(draw.choice([content, b"", b"\xff" * 64, draw.randbytes(99)]))
        config["files"]["model.safetensors"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    elif kind == 5:
        name, value = draw.choice(("scores", "probes", "protocol", "data", "fidelity", "x")), draw.choice(VALUES)
        config["card"] = {name: draw.choice((value, [value], {"a": value}, {"a": {"b": value}}, [{"score": value}]))}
    text = json.dumps(config)
    if kind == 4:
        text = draw.choice(["[" * 10**5, "1" * 10**5, text[: draw.randrange(len(text))], text.replace("1", "NaN", 1)])
    (folder / "config.json").write_text(text, "utf-8")
    model_card("x", checkpoint.load(folder), "")  # the changed value may be valid, so that loading succeeds


def damaged_split(draw: random.Random, prepared: Path, folder: Path) -> None:
    """Change a value of the description or an array, and update the hashes. If the split loads, it must work."""
    shutil.copytree(prepared / "split", folder)
    about = json.loads((folder / split.ABOUT).read_text("utf-8"))
    tensors = load_file(folder / split.WEIGHTS)
    name = draw.choice(list(tensors))
    shape = draw.choice(((), (0,), (1,), (12,), (13,), (1, 13), (12, 12), (3, 3, 3)))
    array = np.full(shape, draw.choice((0, 1, np.nan, np.inf)), draw.choice(("f4", "f2", "f8")))
    if (kind := draw.randrange(3)) == 0:
        about[draw.choice(list(about))] = draw.choice(VALUES)
    elif kind == 1:
        tensors[draw.choice((name, draw.choice(NAMES)))] = array
    else:
        del tensors[name]
    save_file(tensors, folder / split.WEIGHTS)
    if isinstance(about["files"], dict):
        about["files"][split.WEIGHTS] = sha256_file(folder / split.WEIGHTS)
    (folder / split.ABOUT).write_text(json.dumps(about), "utf-8")
    opened = split.load(folder)
    shared, private = opened.split.parts(np.ones((2, 12), np.float32), "en")
    again = opened.split.join(shared, private, "en")
    assert np.abs(again - 1).max() <= np.finfo(np.float16).eps * max(1, np.abs(shared).max()), f"{name} {array.shape}"


def archive(draw: random.Random, prepared: Path, folder: Path) -> None:
    """Make a zip, tar or gz file with a malicious name, link or size. Then unpack the file."""
    folder.mkdir()
    kind, name = draw.choice(("zip", "tar", "gz")), draw.choice(NAMES)
    path = folder / f"a.{kind}"
    content = b"a line\n" * draw.choice((1, 10**7 + 5 * 10**6))
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as inside:
            entry = zipfile.ZipInfo(name or "x")
            entry.external_attr = draw.choice((0, 0o120777 << 16))
            inside.writestr(entry, content, zipfile.ZIP_DEFLATED)
    elif kind == "tar":
        with tarfile.open(path, "w") as tar:
            member = tarfile.TarInfo(name.replace("\0", "") or "x")
            member.type = draw.choice((tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE))
            member.linkname = draw.choice(("/etc/passwd", "../canary"))
            member.size = 7 if member.type == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(content[:7]))
    else:
        path.write_bytes(gzip.compress(content))
    files = unpack(path, folder / "out")
    outside = [file for file in files if (folder / "out").resolve() not in file.resolve().parents]
    assert not outside
