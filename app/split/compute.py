"""An encoder, opened or split in this session."""

from __future__ import annotations

import hashlib
import io
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bgt_core
from app.core import corpora, startup, state
from app.core.startup import ParallelText
from bgt_core.adapters.named import identity
from bgt_core.adapters.split import split_encoder
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import UsageError
from bgt_core.evaluation.split_report import Report, report
from bgt_core.splitting import METHODS, Split, store
from bgt_core.splitting.fit import FACTORED, TRAINED_ON, fit
from bgt_core.splitting.gather import gather, needed_rows

MOST = 50_000  # pairs
RESAMPLES, TRIPLES = 500, 300
KINDS = ("sentence-transformers:", "onnx:", "vectors:", "split:", "baseline:")  # kinds that run no foreign code


@dataclass(frozen=True, eq=False)
class Made:
    """A split of the chosen model's vectors, as a model of this session."""

    split: Split
    of: str  # the encoder's name for `open_encoder`
    fingerprint: str
    loaded: state.Loaded
    report: Report


def opened(name: str) -> state.Loaded:
    """Open an encoder by its name; UsageError for a kind that runs code, other errors as `open_encoder`."""
    kind = startup.path_kind(name)
    if kind not in KINDS:
        raise UsageError(f"{name}: expected a name that begins with {', '.join(KINDS)}")
    reader = bgt_core.open_encoder(name)
    if SEMANTIC not in reader.latents:
        raise UsageError(f"{name}: has the latent {', '.join(reader.latents)}; expected one called semantic")
    return state.Loaded(name, reader, reader.langs or startup.read().langs, {}, [], state.RUNS[kind])


def texts(langs: Sequence[str]) -> dict[str, ParallelText]:
    """The texts whose rows have two sentences of one meaning or more, in these languages."""
    return {name: text for name, text in corpora.readable(langs).items() if len(text.columns or text.langs) > 1}


def columns_of(text: ParallelText) -> tuple[list[list[str]], list[str]]:
    """The sentences of a text, a column each, and the columns' languages."""
    if text.table is not None:
        sides = text.sides
        return [text.table[side].head(MOST).tolist() for side in sides], [text.columns[int(side)] for side in sides]
    table = corpora.sentences(text, MOST)
    return [table.loc[table["lang"] == lang, "text"].tolist() for lang in text.langs], list(text.langs)


def methods(rows: int, width: int, langs: Sequence[str]) -> list[str]:
    """The methods that so many rows of so many units allow, the best first."""
    enough = rows >= needed_rows(width)
    several = len(set(langs)) > 1
    ordered = ["neural", "bgt", *(method for method in METHODS if method not in FACTORED)]
    return [method for method in ordered if (enough if method in FACTORED else several)]


def make(loaded: state.Loaded, text: ParallelText, method: str, progress: Callable[[int, int | None], None]) -> Made:
    """Fit every method that is possible, and measure all; the chosen one becomes a model of the session."""
    columns, langs = columns_of(text)
    gathered = gather(loaded.encoder, [(langs, columns)], keep=max(TRAINED_ON.values()), report=progress)
    possible = methods(len(columns[0]), gathered[0].moments.width, langs)
    splits = {name: fit(gathered, name) for name in dict.fromkeys([method, *possible])}
    held_out = [[column[row] for row in gathered[0].held_out_rows] for column in columns]
    measured = report(loaded.encoder, loaded.title, splits, held_out, langs, resamples=RESAMPLES, triples=TRIPLES)
    split = splits[method]
    hashed = hashlib.sha256(b"".join(part.read.tobytes() for part in split.maps.values())).hexdigest()
    title = f"{loaded.title}, split ({method})"
    reader = split_encoder(title, split, loaded.reader, hashed)
    device = f"Splits the vectors of {loaded.title}"
    made = state.Loaded(title, reader, split.langs, {}, [], device)
    return Made(split, startup.read().models.get(loaded.title, loaded.title), identity(loaded.reader), made, measured)


def archive(made: Made) -> bytes:
    """The folder that `bgt split --report` would have written, zipped."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        saved = Path(folder) / "split"
        store.save(saved, store.StoredSplit(made.split, made.of, made.fingerprint))
        for file in sorted(saved.iterdir()):
            zipped.write(file, f"split/{file.name}")
        zipped.writestr("split/report.md", made.report.page)
    return buffer.getvalue()
