"""An encoder, opened or split in this session, and the picture of a split."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

import bgt_core
from app.core import corpora, startup, state
from app.core.latents import geometry
from app.core.latents.chart import AXIS, LARGER
from app.core.rows import language_name
from app.core.startup import ParallelText
from app.core.theme import SYMBOLS, cycled, finish, lang_colour, lang_place, plain
from bgt_core.checkpoint import KINDS_OF_FOLDERS
from bgt_core.encoders import identity, with_kind
from bgt_core.encoders.ours import attached
from bgt_core.encoders.split import split_encoder
from bgt_core.encoders.vectors import look_up
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.splitting import METHODS, parts
from bgt_core.splitting.fit import FACTORED, TRAINED_ON, fit, verdict
from bgt_core.splitting.gather import gather, needed_rows
from bgt_core.vectors.compare import cosine_similarity

Progress = Callable[[float, str], object]  # takes the share that is done, and what is done next

MOST = 50_000  # pairs
AT_ONCE = 512  # pairs embedded between two reports of progress
EMBEDDED, FITTED = 0.7, 0.8  # shares of the progress when all pairs are embedded, and when the split is fitted
DRAWN = 400  # pairs on the maps
HEIGHT, SIZE = 330, 5  # pixels of the picture, and of its points
SHOWN = 4  # sentences whose neighbours are shown
FOUND = 50  # encoders found on this machine that are offered
MAX_MEGABYTES, MAX_UNPACKED = 500, 2**31  # of an uploaded file of vectors; bytes of its arrays
KINDS = tuple(kind for kind in state.RUNS if kind != "python:")  # those that run no foreign code


@dataclass(frozen=True, eq=False)
class Made:
    """A split of `source`, as a model of this session, and what it does to held-out pairs."""

    source: state.Loaded
    text: ParallelText
    stored: parts.StoredSplit
    loaded: state.Loaded
    verdict: str
    maps: Mapping[str, np.ndarray]  # by title, (M, 2): the vectors as they are, and the shared parts
    langs: np.ndarray  # (M,) of these points, one column of the pairs after another
    sentences: Sequence[str]  # (M,)
    neighbours: Sequence[tuple[str, str, str]]  # a sentence, and the nearest other one before and after


def on_this_machine() -> list[str]:
    """Names of encoders in the hub's cache, and in the current folder and those in it, for `opened`."""
    cache = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface")) / "hub"
    cached = {path.parents[2].name for path in cache.glob("models--*/snapshots/*/modules.json")}
    names = [f"sentence-transformers:{'/'.join(name.split('--')[1:])}" for name in sorted(cached)]
    here = [path for path in (*Path().glob("*"), *Path().glob("*/*")) if not path.parts[0].startswith(".")]
    files = [
        str(path) for path in here if path.suffix == ".npz" or any((path / name).is_file() for name in KINDS_OF_FOLDERS)
    ]
    return [*names, *sorted(files)][:FOUND]


def opened(typed: str) -> state.Loaded:
    """Open an encoder, with its kind guessed if it has none; UsageError for a kind that runs code, other errors as
    `open_encoder`."""
    spec = with_kind(typed)
    kind = startup.path_kind(spec)
    if kind and kind not in KINDS:
        raise UsageError(f"{spec}: expected a folder, a file, or a name that begins with {', '.join(KINDS)}.")
    known = startup.read().models | {name: model.spec for name, model in corpora.of_session().models.items()}
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
    ordered = ["bgt", "neural", *(method for method in METHODS if method not in FACTORED)]
    return [method for method in ordered if (enough if method in FACTORED else several)]


def make(loaded: state.Loaded, text: ParallelText, method: str, progress: Progress) -> Made:
    """Fit a split, and look at what it does to the held-out pairs; `progress` is called with the share that is done."""
    columns, langs = corpora.columns_of(text, MOST)
    count, start = len(columns[0]), perf_counter()

    def embedded(done: int, _: int | None) -> None:
        left = (perf_counter() - start) * (count - done) / done
        progress(EMBEDDED * done / count, f"{done:,} of {count:,} pairs embedded, {left:.0f} seconds left")

    batches = ([column[first : first + AT_ONCE] for column in columns] for first in range(0, count, AT_ONCE))
    (gathered,) = gather(loaded.encoder, [(langs, batches)], keep=TRAINED_ON.get(method, 0), report=embedded)
    progress(EMBEDDED, f"Fitting {method}")
    split = fit([gathered], method)
    title = f"{loaded.title}, split ({method})"
    name = startup.portable(loaded.spec or loaded.title)
    with tempfile.TemporaryDirectory() as folder:  # read again: the same numbers as those of the download
        path = Path(folder) / "split"
        parts.save(path, parts.StoredSplit(split, name, identity(loaded.reader)))
        stored = parts.load(path)
    reader = split_encoder(title, stored.split, loaded.reader, stored.sha256)
    known = corpora.of_session().models.values()
    same = (model.title for model in known if model.reader.fingerprint == reader.fingerprint != "")
    title = next(same, startup.free_name(title, state.titles()))
    device = f"Splits the vectors of {loaded.title}"
    progress(FITTED, "Drawing maps")
    _, held_out = gathered.sample(gathered.held_out)
    vectors = [column[:DRAWN] for column in held_out]
    sentences = [column[row] for column in columns for row in gathered.held_out_rows[:DRAWN]]
    before = np.concatenate(vectors)
    after = np.concatenate([split.shared(column, lang) for column, lang in zip(vectors, langs, strict=True)])
    maps = {
        heading: geometry.fit(of, geometry.Method("t-SNE")).xy
        for heading, of in ((f"{loaded.title}, before", before), ("After: the shared part", after))
    }
    return Made(
        loaded,
        text,
        stored,
        state.Loaded(title, reader, stored.split.langs, {}, [], device),
        verdict(split.about["scores"]),
        maps,
        np.repeat(langs, len(vectors[0])),
        sentences,
        [*zip(sentences[:SHOWN], *(nearest(of, sentences) for of in (before, after)), strict=True)],
    )


def nearest(vectors: np.ndarray, sentences: Sequence[str]) -> list[str]:
    """Of each of the first sentences, the nearest other one."""
    similarity = cosine_similarity(vectors[:SHOWN], vectors)
    same = np.array(sentences[:SHOWN])[:, None] == np.array(sentences)
    return [sentences[row] for row in np.where(same, -np.inf, similarity).argmax(1)]


def archive(made: Made) -> bytes:
    """The folder that `bgt split` would have written, zipped."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        saved = Path(folder) / "split"
        parts.save(saved, made.stored)
        for file in sorted(saved.iterdir()):
            zipped.write(file, f"split/{file.name}")
    return buffer.getvalue()


def before_and_after(
    maps: Mapping[str, np.ndarray], langs: np.ndarray, sentences: Sequence[str], theme: str
) -> go.Figure:
    """Draw maps (M, 2) of the same sentences beside each other; marks of the first language are larger, so that both
    are seen where they coincide."""
    figure = make_subplots(1, len(maps), subplot_titles=[plain(title) for title in maps], horizontal_spacing=0.03)
    known = list(dict.fromkeys(langs))
    for column, xy in enumerate(maps.values(), start=1):
        for lang in known:
            rows = np.flatnonzero(langs == lang)
            marker = {
                "color": lang_colour(lang, theme), "symbol": cycled(SYMBOLS, lang_place(lang)),
                "size": SIZE + LARGER * (lang == known[0]), "opacity": 0.7,
            }  # fmt: skip
            figure.add_trace(
                go.Scatter(
                    x=xy[rows, 0], y=xy[rows, 1], mode="markers", marker=marker, name=language_name(lang),
                    text=[plain(sentences[int(row)]) for row in rows], hovertemplate="%{text}<extra></extra>",
                    showlegend=column == 1,
                ),
                row=1, col=column,
            )  # fmt: skip
    finish(figure, "", HEIGHT, theme)
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    return figure
