"""Every reader of files and of what an address holds, on inputs that were right before a few bytes changed.

Held: a result, or an error of ours in one line of a readable length.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from bgt_core.data import manifest
from bgt_core.data.columns import parse_columns, parse_source, parse_weights
from bgt_core.data.conllu import read_conllu
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.targets import read_targets
from bgt_core.data.trees import read_trees
from bgt_core.errors import BgtError
from bgt_core.evaluation.pairs.files import read_labelled
from bgt_core.evaluation.sts import read_sets
from bgt_core.files import parse_json
from bgt_core.recipes import build, parse_overrides
from probes.data.labelled import read_labelled as read_items
from probes.data.texts import read_sentences
from probes.results.store import document_cells

COUNT = 100_000
SECONDS, LONGEST = 5.0, 2_000  # of one input; characters of a message
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
TREE = b"(ROOT (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))\n"
CONLLU = (
    b"# text = The cat sleeps.\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    b"3\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
)
SETTINGS = b'model.d_model=64\nobjective.language.weight=0.4\ntrain.seed=3\ndata.columns=["en","fr"]'
DOCUMENT = json.dumps({"schema": "bgt-probe/4", "results": [{"model": "m", "task": "length", "trail": {}}]}).encode()


def array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(12, dtype=np.float32).reshape(3, 4))
    return file.getvalue()


def settings(lines: str) -> None:
    build("bgt-small", parse_overrides([line for line in lines.split("\n") if line]))


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


Reader = Callable[[Path], object]
READERS: Mapping[str, tuple[bytes, str, Reader]] = {  # name -> a right input, the name of its file, what reads it
    "pairs": (
        b"Hello.\tBonjour.\nYes.\tOui.\n",
        "x.tsv",
        lambda path: list(read_pairs(path, ("en", "fr"), Skipped())),
    ),
    "npy": (array(), "x.npy", read_targets),
    "conllu": (CONLLU, "x.conllu", lambda path: read_conllu([path])),
    "trees": (TREE, "x.mrg", lambda path: read_trees([path])),
    "labelled pairs": (b"1\tA cat.\tThe cat.\n0\tA dog.\tNo.\n", "x.tsv", read_labelled),
    "probing items": (b"tr\t1\tA cat .\nva\t0\tDogs .\nte\t1\tA hen .\n", "x.txt", lambda path: read_items(path, "en")),
    "sentences": (b"A cat.\nThe dog sleeps.\n", "x.txt", read_sentences),
    "sts": (
        b"3.5\tA cat.\tThe cat.\n1\tNo.\tYes.\n",
        "2014/x.tsv",
        lambda path: read_sets(path.parent.parent, ["2014"]),
    ),
    "sets": (b"stsb-dev", "x", lambda path: read_sets(path.parent, [text(path)])),
    "manifest": (
        b'{"schema": "bgt-data/1", "sources": {}, "files": {}}',
        manifest.NAME,
        lambda path: manifest.read_manifest(path.parent),
    ),
    "card": (
        b'{"schema": "bgt-pairs/1", "file": {}}',
        "x.tsv.json",
        lambda path: manifest.read_card(path.with_suffix("")),
    ),
    "results": (DOCUMENT, "x.json", lambda path: document_cells("x.json", path.read_bytes())),
    "json": (b'{"a": [1, 2.5, "x"]}', "x.json", lambda path: parse_json(path.read_bytes(), "x.json")),
    "settings": (SETTINGS, "x", lambda path: settings(text(path))),
    "columns": (b"a:en,b:fr", "x", lambda path: parse_columns(text(path).split(","))),
    "source": (b"news/en-fr=x.tsv", "x", lambda path: parse_source(text(path))),
    "weights": (b"news:3,docs:0.5", "x", lambda path: parse_weights(text(path))),
}


def prepare(data: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def attack(seed: int, prepared: Path, folder: Path) -> str:
    draw = random.Random(seed)
    name = list(READERS)[seed % len(READERS)]
    right, file, read = READERS[name]
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
