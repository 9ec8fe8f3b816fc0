"""Split an encoder's vectors into two latents; open other encoders, and writers, which generate text from vectors."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from timeit import timeit

import numpy as np
import pandas as pd
import streamlit as st

import bgt_core
from app.core import display, inventory, rows, state, uploads
from app.core.address import BOUND, go_to
from app.core.display import NOTES, failing, plain, problem, verbatim
from app.core.latents import chart, geometry
from bgt_core.checkpoint import KINDS_OF_FOLDERS
from bgt_core.encoders import identity, split, vectors, with_kind, writer
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.splitting import METHODS, parts
from bgt_core.splitting.fit import FACTORED, ROWS, TRAINED_ON, fit, verdict
from bgt_core.splitting.gather import MOST_UNITS, gather, needed_rows
from bgt_core.vectors.arrays import cosine_similarity

Progress = Callable[[float, str], object]  # called with the completed fraction and the name of the next step

MOST = 50_000  # maximum number of pairs of sentences that a split uses
AT_ONCE = 64  # number of pairs embedded between two progress reports
# What the steps after embedding cost, in singular value decompositions of a matrix of `SIZE` x `SIZE`, whose time is
# measured: maps, per sentence; fitting *bgt*, per (units of a vector / `SIZE`)^3; training *neural*, per pair and unit
SIZE, DRAWING, FITTING, TRAINING = 256, 0.3, 3, 4e-5
DRAWN = 400  # maximum number of pairs shown on the maps
SHOWN = 4  # number of sentences whose neighbours are shown
FOUND = 50  # maximum number of encoders on this machine that are listed
MAX_MEGABYTES, MAX_UNPACKED = 500, 2**31  # maximum size of a file of vectors in MB; of its arrays in bytes
KINDS = tuple(kind for kind in state.RUNS if kind != "python:")  # kinds of encoders that do not run foreign code
ALT = "Two maps of the held-out sentences: the vectors as they are, and the shared parts"
ON_COMMAND_LINE = re.compile(r"[.;:] ?[^.;:]*(`bgt |--model|one of PATH,).*")  # advice about bgt's command line
ABOUT = tomllib.loads(Path(__file__).with_name("methods.toml").read_text("utf-8"))  # method -> description


def page(loaded: state.Loaded) -> None:
    if done := st.session_state.pop("split_done", None):
        st.toast(done, icon=":material/check:", duration="long")  # a toast is visible at any scroll position
    another(loaded)
    made = inventory.of_session().split
    if made and made.loaded.title == loaded.title:
        result(made)
    elif loaded.second_latent:
        st.info(f"{verbatim(loaded.title)} has two latents already. Open an encoder, or choose one in the sidebar.")
        with st.expander("Split its vectors all the same", key=f"splitter {loaded.title}"):  # with a key, it stays open
            divide(loaded)
    else:
        divide(loaded)
    if loaded.cannot_write:
        use_writer(loaded)


def divide(loaded: state.Loaded) -> None:
    """Let the user choose pairs of sentences and a method, and split the encoder's vectors into two latents."""
    texts = loaded.texts(2)
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        name = uploads.choose_name(list(texts), "data", width=300, **BOUND)
    if name is None:
        st.info(f"No pairs of sentences in {loaded.languages}{' with vectors' * bool(loaded.sentences)}. Upload some.")
        return
    columns, langs = inventory.columns_of(texts[name], MOST)
    width = loaded.embed([], lang=langs[0]).shape[1]
    if width > MOST_UNITS:
        st.info(NOTES["too-wide"].format(width, MOST_UNITS))
        return
    possible = methods(columns, width, langs)
    if not possible:
        st.info(f"For vectors of {width} units, {len(columns[0]):,} pairs of one language are too few; upload more.")
        return
    key = "method" if possible[0] in FACTORED else "simple_method"
    with controls:
        titles = {name: f"{name}: {ABOUT[name]}" for name in possible}
        title_of = titles.__getitem__
        method = st.selectbox("Method", possible, key=key, format_func=title_of, width=300, **BOUND) or possible[0]
        pressed = st.button("Split", type="primary", icon=":material/call_split:")
    more = f" The methods *neural* and *bgt* need {needed_rows(width):,} different sentences on each side."
    more *= possible[0] not in FACTORED
    st.caption(f"Pairs: {len(columns[0]):,}; vectors of {width:,} units by {verbatim(loaded.title)}.{more}")
    if pressed:
        bar = st.progress(0.0, "Embedding the first pairs")
        with failing():
            inventory.change(split=make(loaded, texts[name], method, bar.progress))
        bar.empty()
    made = inventory.of_session().split
    if made and made.source.title == loaded.title:
        result(made)


def another(loaded: state.Loaded) -> None:
    """Let the user open an encoder, by its name or from a file of vectors."""
    # The box's key contains the model's title: a new model gets a new box, which is open only if `first` is true.
    first = bool(loaded.second_latent) and loaded.title not in inventory.of_session().models
    box = st.expander("Open an encoder", first, key=f"opener {loaded.title}", icon=":material/folder_open:")
    with box, st.form("another", border=False):
        name = st.selectbox(
            "Encoder", on_this_machine(), None, placeholder="all-MiniLM-L6-v2, or a folder or file",
            accept_new_options=True, key="split_open",
        )  # fmt: skip
        st.caption(NOTES["encoders"].format(", ".join(f"`{kind}`" for kind in KINDS)))
        file = st.file_uploader(
            "Or its vectors and their sentences", "npz", max_upload_size=MAX_MEGABYTES, key="split_vectors"
        )
        st.caption(NOTES["vectors"])
        if st.form_submit_button("Open"):
            with explaining("Type another name or folder, choose one from the list, or upload its vectors."):
                if bool(name) == bool(file):
                    raise UsageError("Type or choose an encoder, or upload a file of vectors: one of the two.")
                new = uploaded(file.name, file.getvalue()) if file else opened((name or "").strip())
                width = new.reader.embed([], lang=new.langs[0]).shape[1]
                langs = new.languages if new.reader.langs else "any language"
                add(new, f"{verbatim(new.title)} is open: vectors of {width:,} units, {langs}.")


@contextmanager
def explaining(advice: str) -> Iterator[None]:
    """Show an error that is raised inside the `with` block. `advice` replaces its advice to use the command line."""
    try:
        with st.spinner("Opening; a model of the hub is downloaded if it is not on this machine", show_time=True):
            yield
    except BgtError as error:
        message, count = ON_COMMAND_LINE.subn(".", str(error).replace("no such checkpoint", "no such name or folder"))
        advice = "Then start the app again, or upload the vectors." if "pip install" in message else advice * count
        problem(UsageError(f"{message} {advice}".strip()))


def use_writer(loaded: state.Loaded) -> None:
    """Let the user open a writer, which generates text from the vectors of the chosen encoder."""
    with st.expander("Write text from its vectors", icon=":material/edit_note:"), st.form("writer", border=False):
        folder = st.text_input("Writer", placeholder="FOLDER", key="split_writer")
        st.caption(NOTES["writer"].format(verbatim(loaded.title)))
        if st.form_submit_button("Use this writer") and folder.strip():
            with explaining("Train a writer for this encoder, as the guide shows (docs/guide/write.md)."):
                new = with_writer(loaded, folder.strip())
                add(new, f"{verbatim(new.title)} generates text on every page.")


def add(loaded: state.Loaded, done: str) -> None:
    """Add a model to the list in the sidebar and choose it. The page then shows the message `done`."""
    st.session_state["split_done"] = done
    inventory.change(models={**inventory.of_session().models, loaded.title: loaded})
    st.session_state["next_model"] = loaded.title
    st.rerun()


def result(made: Made) -> None:
    """Show a figure of the vectors before and after the split, and buttons that use the split encoder."""
    about, langs = made.stored.split.about, made.stored.split.langs
    count, sides = min(ROWS, about["held_out_rows"]), max(2, len(langs))  # paraphrases have two sides in one language
    ends = (wilson(about["scores"][part]["pool"] * count, count) for part in ("vectors", "shared"))
    before, after = (f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in ends)
    by_majority = f"; the most frequent answer tells the language for {100 / sides:.0f} %" * (len(langs) > 1)
    st.subheader(verdict(about["scores"]), anchor=False)
    st.caption(
        f"{verbatim(made.source.title)}, split by *{made.stored.split.method}*, made from {about['rows']:,} pairs. In "
        f"{count:,} held-out pairs, the nearest sentence of all languages is the translation for {before} before and "
        f"{after} after (95% intervals); by chance for {100 * (sides - 1) / (sides * count - 1):.2g} %{by_majority}."
    )
    figure = chart.latent_map(made.maps, "lang", langs, side_by_side=True, theme=display.current_theme(), height=330)
    st.plotly_chart(figure.update_layout(dragmode=False), alt=ALT, config={"displayModeBar": False})
    near = pd.DataFrame(made.neighbours, columns=["Sentence", "Nearest before", "Nearest after"])
    display.table(near, "The nearest other sentence of some held-out sentences, before and after the split")
    st.caption("Held-out sentences, drawn at random. ✓ is the translation: the heading has the shares over all pairs.")
    with st.container(horizontal=True):
        if state.model().title == made.loaded.title:
            go_to("maps", "Look at the maps")
        elif st.button("Show this split on all pages", type="primary", icon=":material/check:"):
            add(made.loaded, f"Done: every page now shows {verbatim(made.loaded.title)}.")
        st.download_button(
            "Download it", partial(archive, made), "split.zip", icon=":material/download:",
            on_click="ignore", help="The folder that --model split:FOLDER opens",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Made:
    """The encoder `source` split into two latents: a model of this session, with scores on held-out pairs."""

    source: state.Loaded
    stored: parts.StoredSplit
    loaded: state.Loaded
    maps: Mapping[str, pd.DataFrame]  # title -> rows of a map: of the vectors before the split, or of semantic latents
    neighbours: Sequence[tuple[str, ...]]  # a sentence, its nearest sentence before the split, and after it


def on_this_machine() -> list[str]:
    """List encoders in the Hugging Face cache, this folder and its subfolders, by names that `opened` accepts."""
    cache = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface")) / "hub"
    cached = {path.parents[2].name for path in cache.glob("models--*/snapshots/*/modules.json")}
    names = [f"sentence-transformers:{'/'.join(name.split('--')[1:])}" for name in sorted(cached)]
    here = [path for path in (*Path().glob("*"), *Path().glob("*/*")) if not path.parts[0].startswith(".")]
    files = [
        str(path) for path in here if path.suffix == ".npz" or any((path / name).is_file() for name in KINDS_OF_FOLDERS)
    ]
    return [*names, *sorted(files)][:FOUND]


def opened(typed: str) -> state.Loaded:
    """Open an encoder, and guess its kind if it is not given. Raises UsageError for a kind that runs foreign code."""
    spec = with_kind(typed)
    kind = inventory.path_kind(spec)
    if kind and kind not in KINDS:
        raise UsageError(f"{spec}: expected a folder, a file, or a name that begins with {', '.join(KINDS)}.")
    known = inventory.read().models | {name: model.spec for name, model in inventory.of_session().models.items()}
    title = next((name for name, given in known.items() if given in (typed, spec)), None)
    return state.of_spec(title or inventory.free_name(inventory.short_name(spec), state.titles()), spec)


def uploaded(name: str, content: bytes) -> state.Loaded:
    """Open an uploaded file of vectors and their sentences. Raises DataError if it is too large or damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npz"
        path.write_bytes(content)
        if not zipfile.is_zipfile(path):
            raise DataError(f"{name}: not an .npz file; numpy.savez writes one, as shown below the field.")
        with zipfile.ZipFile(path) as arrays:
            unpacked = sum(array.file_size for array in arrays.infolist())
        if unpacked > MAX_UNPACKED:
            raise DataError(f"{name}: {unpacked >> 20:,} MiB of numbers; expected at most {MAX_UNPACKED >> 20:,}.")
        reader = vectors.look_up(path, name)
    title, langs = inventory.free_name(name, state.titles()), inventory.read().langs
    return state.Loaded(title, reader, langs, {}, [], state.RUNS["vectors:"], f"vectors:{name}")


def with_writer(loaded: state.Loaded, path: str) -> state.Loaded:
    """Combine an encoder with the writer in a folder. Raises BgtError if the folder has no writer for this encoder."""
    if not Path(path).is_dir():
        raise NotFound(f"{path}: not a folder; expected a run of `bgt train writer`, or a checkpoint of it.")
    title = inventory.free_name(f"{loaded.title}, with {inventory.short_name(path)}", state.titles())
    name = loaded.spec or loaded.title
    return state.checkpoint(title, path, lambda folder: writer.attached(bgt_core.load(folder), loaded.reader, name))


def methods(columns: Sequence[Sequence[str]], width: int, langs: Sequence[str]) -> list[str]:
    """Return the methods for which there are enough sentences, the best first. `width` is the size of a vector."""
    enough = min(len(set(column)) for column in columns) >= needed_rows(width)
    several = len(set(langs)) > 1
    ordered = ["bgt", "neural", *(method for method in METHODS if method not in FACTORED)]
    return [method for method in ordered if (enough if method in FACTORED else several)]


def make(loaded: state.Loaded, text: inventory.ParallelText, method: str, progress: Progress) -> Made:
    """Split an encoder, and measure the effect on held-out pairs. `progress` gets the fraction done and next step."""
    columns, langs = inventory.columns_of(text, MOST)
    count, width = len(columns[0]), loaded.embed([], lang=langs[0]).shape[1]
    cost = FITTING * (width * len(langs) / 2 / SIZE) ** 3 * (method in FACTORED)
    cost += TRAINING * count * width * (method in TRAINED_ON) + DRAWING * min(DRAWN, count // 10) * len(langs)
    after = cost * timeit(partial(np.linalg.svd, np.random.default_rng(0).normal(size=(SIZE, SIZE))), number=5) / 5
    start = perf_counter()

    def step(name: str, left: float) -> None:
        gone = perf_counter() - start
        progress(gone / (gone + left), f"{name}: about {left:.0f} seconds left")

    def embedded(done: int, _: int | None) -> None:
        step(f"{done:,} of {count:,} pairs embedded", (perf_counter() - start) / done * (count - done) + after)

    batches = ([column[first : first + AT_ONCE] for column in columns] for first in range(0, count, AT_ONCE))
    (gathered,) = gather(loaded, [(langs, batches)], keep=TRAINED_ON.get(method, 0), report=embedded)
    step(f"Fitting {method}, then drawing maps", after)
    fitted = fit([gathered], method)
    title = f"{loaded.title}, split ({method})"
    name = inventory.portable(loaded.spec or loaded.title)
    with tempfile.TemporaryDirectory() as folder:  # measure the split as saved, like the downloaded file
        path = Path(folder) / "split"
        parts.save(path, parts.StoredSplit(fitted, name, identity(loaded.reader)))
        stored = parts.load(path)
    _, places, whole = gathered.held_out.rows()
    order = np.random.default_rng(0).permutation(len(places[:ROWS]))  # a random order of the pairs that were measured
    before = np.split(whole[order], len(langs), axis=1)
    shared = [fitted.shared(column, lang) for column, lang in zip(before, langs, strict=True)]
    pairs = pd.DataFrame({str(at): [column[row] for row in places[order]] for at, column in enumerate(columns)})
    sentences = [*zip(np.repeat(langs, len(order)).tolist(), pairs.to_numpy().T.ravel(), strict=True)]
    known = dict(zip(sentences, np.concatenate(before), strict=True))
    reader = split.split_encoder(title, stored.split, loaded.reader, stored.sha256, known)
    models = inventory.of_session().models.values()
    same = (model.title for model in models if model.reader.fingerprint == reader.fingerprint != "")
    title = next(same, inventory.free_name(title, state.titles()))
    work = inventory.read().work
    if work and not (kept := work / title.replace("/", " ")).exists():
        parts.save(kept, replace(stored, encoder=loaded.spec or name))
    table, maps = rows.translations(pairs.head(DRAWN).to_numpy().tolist(), langs), {}
    for heading, of in ((f"{loaded.title}, before", before), ("After: the shared part", shared)):
        x, y = geometry.fit(np.concatenate([column[:DRAWN] for column in of]), geometry.Method("t-SNE")).xy.T
        maps[plain(heading)] = table.assign(id=table.index, x=x, y=y)
    credit = f"The neighbours are sentences of {len(pairs):,} held-out pairs, from which the split was not made."
    corpus = inventory.ParallelText(tuple(dict.fromkeys(langs)), None, credit, tuple(langs), pairs, stored.sha256)
    about = f"Splits the vectors of {loaded.title}"
    new = state.Loaded(title, reader, stored.split.langs, {}, [], about, held_out={text: places}, corpus=corpus)
    return Made(loaded, stored, new, maps, nearest(pairs.to_numpy().T, before, shared))


def nearest(sentences: np.ndarray, *spaces: Sequence[np.ndarray]) -> list[tuple[str, ...]]:
    """Return the first `SHOWN` sentences of (columns, N), in turn from each column. Behind each is its nearest other
    sentence by the vectors (N, D) of the columns in each of the `spaces`, with a tick if it is the translation."""
    texts, count = sentences.ravel(), sentences.shape[1]
    rows = np.arange(min(SHOWN, count))
    queries = rows % len(sentences) * count + rows
    lines = [texts[queries]]
    for of in map(np.concatenate, spaces):
        similarity = np.where(texts[queries, None] == texts, -np.inf, cosine_similarity(of[queries], of))
        places = similarity.argmax(1)
        lines.append(np.where(places % count == rows, "✓ ", "") + texts[places])
    return [*zip(*lines, strict=True)]


def archive(made: Made) -> bytes:
    """Return a zip file of the folder that the command `bgt split` would have written."""
    with tempfile.TemporaryDirectory() as folder:
        parts.save(Path(folder, "zipped", "split"), made.stored)
        return Path(shutil.make_archive(f"{folder}/split", "zip", f"{folder}/zipped")).read_bytes()
