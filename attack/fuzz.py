"""Every reader of files and of what an address holds, on inputs that were right before a few bytes changed.

Held: a result, or an error of ours in one line of a readable length.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from attack import commands
from attack.readers import readers
from bgt_core.errors import BgtError

COUNT = 300_000
SECONDS, LONGEST = 5.0, 2_000  # time limit of one input; maximum characters of a message
TOKENS = [
    b"\t",
    b"\n",
    b"\0",
    b"\xff\xfe",
    b"NaN",
    b"-1",
    b"9" * 400,
    b"[",
    b"{",
    b'"',
    b"\xef\xbb\xbf",
    b"..",
    b"(",
    b")",
]


def prepare(data: Path, folder: Path) -> Path:
    """A folder of what a small training, a small probe and a split leave."""
    for name in ("train", "probe", "split"):
        command = commands.commands()[name]
        end = commands.run(command.arguments, folder / name, data)
        if end.code:
            raise RuntimeError(f"{name}: {end.errors[-500:]}")
    files = folder / "files"
    files.mkdir()
    (cell,) = (folder / "probe" / "cache").rglob("*.parquet")
    shutil.copy(cell, files / "cell.parquet")
    for name in ("tokenizer.model", "data/store.json"):
        shutil.copy(folder / "train" / "run" / name, files)
    shutil.copytree(folder / "split" / "split", files / "split")
    return files


def attack(seed: int, prepared: Path, folder: Path) -> str:
    draw, known = random.Random(seed), list(readers(prepared).items())
    name, (right, file, read) = known[seed % len(known)]
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(mutated(right, draw))
    begun = time.monotonic()
    try:
        read(path)
    except BgtError as error:
        if "\n" in str(error) or len(str(error)) > LONGEST:
            return f"{name}: an error of {len(str(error)):,} characters, {str(error)[:100]!r}"
    except Exception as error:  # noqa: BLE001  this is what is looked for
        return f"{name}: {type(error).__name__}: {str(error)[:150]!r} for {path.read_bytes()[:60]!r}"
    if time.monotonic() - begun > SECONDS:
        return f"{name}: took {time.monotonic() - begun:.0f} seconds"
    return ""


def mutated(right: bytes, draw: random.Random) -> bytes:
    """The input with one to five changes: bytes, blocks, tokens that readers stumble over."""
    content = bytearray(right)
    for _ in range(draw.randint(1, 5)):
        place = draw.randrange(len(content) + 1)
        match draw.randrange(6):
            case 0 if place < len(content):
                content[place] ^= 1 << draw.randrange(8)
            case 1:
                content[place:place] = draw.choice(TOKENS)
            case 2:
                del content[place : place + draw.randrange(1, 9)]
            case 3:
                content[place:place] = content[draw.randrange(len(content) + 1) :][: draw.randrange(1, 40)]
            case 4:
                del content[place:]
            case _:
                content[place:place] = draw.randbytes(draw.randrange(1, 6))
    return bytes(content)
