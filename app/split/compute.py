"""An encoder, opened or split in this session."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bgt_core
from app.core import corpora, startup, state
from app.core.startup import ParallelText
from bgt_core.adapters import with_kind
from bgt_core.adapters.named import identity
from bgt_core.adapters.split import split_encoder
from bgt_core.adapters.vectors import look_up
from bgt_core.adapters.writer import attached
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.evaluation.split_report import Report, report
from bgt_core.splitting import METHODS, store
from bgt_core.splitting.fit import FACTORED, TRAINED_ON, fit
from bgt_core.splitting.gather import gather, needed_rows

MOST = 50_000  # pairs
AT_ONCE = 512  # pairs embedded between two reports of progress
EMBEDDED, FITTED = 0.5, 0.6  # shares of the time until all pairs are embedded, and all methods fitted
RESAMPLES, DRAWN = 500, 400
MAX_MEGABYTES, MAX_UNPACKED = 500, 2**31  # of an uploaded file of vectors; bytes of its arrays
KINDS = tuple(kind for kind in state.RUNS if kind != "python:")  # those that run no foreign code


@dataclass(frozen=True, eq=False)
class Made:
    """A split of the model of the title `of`, as a model of this session."""

    of: str
    stored: store.StoredSplit
    loaded: state.Loaded
    report: Report


def opened(typed: str) -> state.Loaded:
    """Open an encoder, with its kind guessed if it has none; UsageError for a kind that runs code, other errors as
    `open_encoder`."""
    spec = with_kind(typed)
    kind = startup.path_kind(spec)
    if kind and kind not in KINDS:
        raise UsageError(f"{spec}: expected a folder, a file, or a name that begins with {', '.join(KINDS)}.")
    known = startup.read().models | {name: model.spec for name, model in state.own().items()}
    title = next((name for name, given in known.items() if given in (typed, spec)), None)
    return state.of_spec(title or startup.free_name(startup.short_name(spec), state.titles()), spec)


def uploaded(name: str, content: bytes) -> state.Loaded:
    """Open an uploaded file of vectors and their sentences, NAME.npz; DataError as `look_up` or if it is too large."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npz"
        path.write_bytes(content)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as arrays:
                unpacked = sum(array.file_size for array in arrays.infolist())
            if unpacked > MAX_UNPACKED:
                raise DataError(f"{name}: {unpacked >> 20:,} MiB of numbers; expected at most {MAX_UNPACKED >> 20:,}.")
        reader = look_up(path, name)
    title, langs = startup.free_name(name, state.titles()), startup.read().langs
    return state.Loaded(title, reader, langs, {}, [], state.RUNS["vectors:"], f"vectors:{name}")


def with_writer(loaded: state.Loaded, path: str) -> state.Loaded:
    """The encoder with a writer of its vectors, a model that generates; BgtError for a folder without one for it."""
    if not Path(path).is_dir():
        raise NotFound(f"{path}: not a folder; expected a run of `bgt train writer`, or a checkpoint of it.")
    title = startup.free_name(f"{loaded.title}, with {startup.short_name(path)}", state.titles())
    name = loaded.spec or loaded.title
    return state.checkpoint(title, path, lambda folder: attached(bgt_core.load(folder), loaded.reader, name))


def methods(columns: Sequence[Sequence[str]], width: int, langs: Sequence[str]) -> list[str]:
    """Name the methods for which there are enough sentences, the best first; `width` is the units of a vector."""
    enough = min(len(set(column)) for column in columns) >= needed_rows(width)
    several = len(set(langs)) > 1
    ordered = ["neural", "bgt", *(method for method in METHODS if method not in FACTORED)]
    return [method for method in ordered if (enough if method in FACTORED else several)]


def make(loaded: state.Loaded, text: ParallelText, method: str, progress: Callable[[float, str], object]) -> Made:
    """Fit every method that is possible, and measure all; the chosen one becomes a model of the session.

    `progress` is called with the share of the time that has passed, and what is done next.
    """
    columns, langs = corpora.columns_of(text, MOST)
    rows = len(columns[0])
    batches = ([column[start : start + AT_ONCE] for column in columns] for start in range(0, rows, AT_ONCE))

    def embedded(done: int, _: int | None) -> None:
        progress(EMBEDDED * done / rows, f"{done:,} of {rows:,} pairs embedded")

    gathered = gather(
        loaded.encoder,
        [(langs, batches)],
        keep=max(TRAINED_ON.values()),
        report=embedded,
    )
    possible = methods(columns, gathered[0].moments.width, langs)
    splits = {}
    for number, name in enumerate(possible):
        progress(EMBEDDED + (FITTED - EMBEDDED) * number / len(possible), f"Fitting {name}")
        splits[name] = fit(gathered, name)
    held_out = [[column[row] for row in gathered[0].held_out_rows] for column in columns]
    measured = report(
        loaded.encoder,
        loaded.title,
        splits,
        held_out,
        langs,
        resamples=RESAMPLES,
        drawn=DRAWN,
        progress=lambda done, of: progress(FITTED + (1 - FITTED) * done / of, f"Measurement {done + 1} of {of}"),
    )
    title = f"{loaded.title}, split ({method})"
    name = startup.portable(loaded.spec or loaded.title)
    with tempfile.TemporaryDirectory() as folder:  # read again: the same numbers as those of the download
        path = Path(folder) / "split"
        store.save(path, store.StoredSplit(splits[method], name, identity(loaded.reader)))
        stored = store.load(path)
    reader = split_encoder(title, stored.split, loaded.reader, stored.sha256)
    same = (known.title for known in state.own().values() if known.reader.fingerprint == reader.fingerprint != "")
    title = next(same, startup.free_name(title, state.titles()))
    device = f"Splits the vectors of {loaded.title}"
    return Made(loaded.title, stored, state.Loaded(title, reader, stored.split.langs, {}, [], device), measured)


def archive(made: Made) -> bytes:
    """The folder that `bgt split --report` would have written, zipped."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        saved = Path(folder) / "split"
        store.save(saved, made.stored)
        for file in sorted(saved.iterdir()):
            zipped.write(file, f"split/{file.name}")
        zipped.writestr("split/report.md", made.report.page)
    return buffer.getvalue()
