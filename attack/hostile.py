"""Checkpoints, splits and archives that do harm: other sizes, names, kinds, depths; links, bombs, paths that lead out.

Held: one clear line within seconds, nothing outside the folder is touched, and memory stays bounded.
"""

from __future__ import annotations

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
from safetensors.numpy import load_file, save_file

from attack import commands
from bgt_core import checkpoint
from bgt_core.adapters.modelcard import model_card
from bgt_core.data.fetch.unpack import unpack
from bgt_core.errors import BgtError
from bgt_core.files import sha256_file
from bgt_core.splitting import store as split

COUNT = 240
SECONDS, BYTES = 10.0, 512 * 2**20  # that reading one may take
VALUES = [10**9, 10**30, -1, 0, 1e308, "x" * 10**5, "../../x", "/etc/passwd", None, [], {}, True, "\0", [[[[]]]], 2**31]
NAMES = ["../out", "/etc/passwd", "a/../../b", "", ".", "..", "x\0y", "C:\\x", "a" * 400, "con", "~/x", "./x"]


def prepare(data: Path, folder: Path) -> Path:
    """A folder with an untrained model and a split of its vectors."""
    end = commands.run(commands.commands()["split"].arguments, folder, data)
    if end.code:
        raise RuntimeError(f"split: {end.errors[-500:]}")
    shutil.copytree(data / "model", folder / "model")
    return folder


def attack(seed: int, prepared: Path, folder: Path) -> str:
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    (folder / "canary").write_text("here", "utf-8")
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    what = draw.choice((archive, damaged_checkpoint, damaged_split))
    failure = ""
    try:
        failure = what(draw, prepared, folder / "inside")
    except BgtError as error:
        if "\n" in str(error) or len(str(error)) > 2_000:
            failure = f"an error of {len(str(error))} characters: {str(error)[:80]!r}"
    except Exception as error:  # noqa: BLE001  this is what is looked for
        failure = f"{type(error).__name__}: {str(error)[:200]}"
    if time.monotonic() - begun > SECONDS:
        failure = failure or f"took {time.monotonic() - begun:.0f} seconds"
    if 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) > BYTES:
        failure = failure or "took more than half a gigabyte"
    left = {path.name for path in folder.iterdir()} - {"inside", "canary"}
    if left or (folder / "canary").read_text("utf-8") != "here":
        failure = failure or f"wrote outside its folder: {left}"
    shutil.rmtree(folder)
    return f"{what.__name__}: {failure}" if failure else ""


def damaged_checkpoint(draw: random.Random, prepared: Path, folder: Path) -> str:
    """One value of its configuration is another; hashes are right."""
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
    model_card("x", checkpoint.load(folder), "")
    return ""  # a value that changes nothing


def damaged_split(draw: random.Random, prepared: Path, folder: Path) -> str:
    """One value of its description, or one array, is another; hashes are right. If it opens, it splits vectors."""
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
    return "" if np.allclose(again, 1, atol=1e-3) else f"{name} {array.shape}: the parts do not give the vector again"


def archive(draw: random.Random, prepared: Path, folder: Path) -> str:
    """A zip, tar or gz with a name, a link or a size that does harm."""
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
    return f"unpacked {outside}" if outside else ""
