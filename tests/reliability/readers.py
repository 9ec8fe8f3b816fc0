"""All functions that read files or texts from users or other programs, each with a valid input."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet
from safetensors.torch import save

from app.core import address, state, uploads
from bgt_core import checkpoint
from bgt_core.bulk import read as read_vectors
from bgt_core.data import manifest
from bgt_core.data.columns import parse_columns, parse_source, parse_weights
from bgt_core.data.fetch import unpack
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.store import open_corpus, read_targets
from bgt_core.data.text import Tokenizer
from bgt_core.data.trees import read_conllu, read_trees
from bgt_core.encoders.vectors import look_up
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.tasks.pairs import read_labelled
from bgt_core.files import parse_json
from bgt_core.neighbours.questions import CARD, StoreCard
from bgt_core.recipes import configure, parse_overrides
from bgt_core.splitting import parts as split
from bgt_core.training.run import rows_until
from bgt_core.training.setup import SETTINGS, read_settings
from probes.data.load import read_labelled as read_items
from probes.data.load import read_sentences
from probes.results.store import read_cells


class Reader(NamedTuple):
    """A function that reads a file, a valid input for it, and the name of the file to which tests write the input."""

    right: bytes | str  # the valid content, or the path of a valid file in the folder `prepared`
    file: str
    read: Callable[[Path], object]
    beside: str = ""  # a file in `prepared` that the reader needs in the same folder


TREE = b"(ROOT (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))\n"
CONLLU = (
    b"# text = The cat sleeps.\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    b"3\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
)
PAIRS = b"Hello.\tBonjour.\nYes.\tOui.\n"
OVERRIDES = b'model.d_model=64\nobjective.margin.weight=0.4\ntrain.seed=3\ndata.columns=["en","fr"]'
CONFIG = {"format": checkpoint.FORMAT, "recipe": "bgt-small", "arguments": {"model.d_model": 64}, "step": 1}
CONFIG |= {"files": {"a": "0"}}
RUN = {"recipe": "bgt-small", "arguments": {"train.seed": 3}, "data": ["en-fr=pairs.tsv"]}
STORE = {"schema": "bgt-questions/2", "calibration": None, "questions": 2, "text": "0", "encoder": "e", "model": "m"}
STORE |= {"by": "cosine", "lang": "en", "calibrated_on": "", "version": "1"}


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def written(write: Callable[..., object], *arguments: Any, **named: Any) -> bytes:
    """Return the bytes that the function `write` writes to a file object."""
    file = io.BytesIO()
    write(file, *arguments, **named)
    return file.getvalue()


def as_parquet(**columns: object) -> bytes:
    return written(lambda file: parquet.write_table(pa.table(columns), file))


def write_archive(file: io.BytesIO) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as inside:
        inside.writestr("a/b.txt", "a line\n" * 20)
        inside.writestr("c.txt", "another")


ARRAY = written(np.save, np.arange(12, dtype=np.float32).reshape(3, 4))
NPZ = written(np.savez, vectors=np.ones((2, 3), np.float32), sentences=np.array(["a", "b"]))


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def overrides(path: Path) -> None:
    configure("bgt-small", parse_overrides([line for line in text(path).split("\n") if line]))


def rows(path: Path) -> object:
    return list(read_pairs(path, ("en", "fr"), Skipped()))


def upload(path: Path) -> object:
    return uploads.cells(path.name, path.read_bytes())


def with_lines(path: Path) -> object:
    path.with_suffix(".txt").write_text("a\nb\nc\n", "utf-8")
    return look_up(path)


def with_record(path: Path) -> object:
    vectors = path.with_name("x.npy")
    vectors.write_bytes(ARRAY)
    return read_vectors(vectors)


READERS = {
    "pairs": Reader(PAIRS, "x.tsv", rows),
    "packed pairs": Reader(gzip.compress(PAIRS, mtime=0), "x.tsv.gz", rows),
    "parquet": Reader(as_parquet(en=["Hello.", "Yes."], fr=["Bonjour.", "Oui."]), "x.parquet", rows),
    "npy": Reader(ARRAY, "x.npy", read_targets),
    "vectors": Reader(ARRAY, "x.npy", with_lines),
    "npz": Reader(NPZ, "x.npz", look_up),
    "record": Reader(as_json({"rows": 3, "width": 4, "text": "0"}), "x.npy.json", with_record),
    "conllu": Reader(CONLLU, "x.conllu", lambda path: read_conllu([path])),
    "trees": Reader(TREE, "x.mrg", lambda path: read_trees([path])),
    "labelled pairs": Reader(b"1\tA cat.\tThe cat.\n0\tA dog.\tNo.\n", "x.tsv", read_labelled),
    "items": Reader(b"tr\t1\tA cat .\nva\t0\tDogs .\nte\t1\tA hen .\n", "x.txt", lambda path: read_items(path, "en")),
    "sentences": Reader(b"A cat.\nThe dog sleeps.\n", "x.txt", read_sentences),
    "sts": Reader(
        b"3.5\tA cat.\tThe cat.\n1\tNo.\tYes.\n", "2014/x.tsv", lambda path: read_sets(path.parent.parent, ["2014"])
    ),
    "sets": Reader(b"stsb-dev", "x", lambda path: read_sets(path.parent, [text(path)])),
    "manifest": Reader(
        as_json({"schema": "bgt-data/1", "sources": {}, "files": {}}),
        manifest.NAME,
        lambda path: manifest.read_manifest(path.parent),
    ),
    "card": Reader(
        as_json({"schema": "bgt-pairs/1", "file": {}}),
        "x.tsv.json",
        lambda path: manifest.read_card(path.with_suffix("")),
    ),
    "questions": Reader(as_json(STORE), CARD, lambda path: StoreCard.load(path.parent)),
    "archive": Reader(written(write_archive), "x.zip", lambda path: unpack(path, path.parent / "unpacked")),
    "json": Reader(as_json({"a": [1, 2.5, "x"]}), "x.json", lambda path: parse_json(path.read_bytes(), "x.json")),
    "configuration": Reader(as_json(CONFIG), checkpoint.CONFIG, lambda path: checkpoint.read_config(path.parent)),
    "weights": Reader(save({"w": torch.ones(2, 3)}), "x.safetensors", checkpoint.load_tensors),
    "tokenizer": Reader("tokenizer.model", "x.model", Tokenizer.load),
    "run": Reader(as_json(RUN), SETTINGS, lambda path: read_settings(path.parent)),
    "metrics": Reader(
        b'{"kind": "train", "step": 1}\n', "x.jsonl", lambda path: (rows_until(path, 9), state.read_log(path, 9))
    ),
    "store": Reader("store.json", "store.json", lambda path: open_corpus(path.parent)),
    "overrides": Reader(OVERRIDES, "x", overrides),
    "columns": Reader(b"a:en,b:fr", "x", lambda path: parse_columns(text(path).split(","))),
    "source": Reader(b"news/en-fr=x.tsv", "x", lambda path: parse_source(text(path))),
    "kinds": Reader(b"news:3,docs:0.5", "x", lambda path: parse_weights(text(path))),
    "probe parquet": Reader("cell.parquet", "x.parquet", read_cells),
    "split": Reader(
        f"split/{split.ABOUT}", split.ABOUT, lambda path: split.load(path.parent), f"split/{split.WEIGHTS}"
    ),
    "upload tsv": Reader(b"en\tfr\n" + PAIRS, "x.tsv", upload),
    "upload csv": Reader(b'en,fr\n"Yes, he is.",Oui.\n', "x.csv", upload),
    "rows of a link": Reader(b"en3-4.7~fr2", "x", lambda path: address.in_ranges(text(path), ["en3", "fr2"])),
}
