"""Split an encoder's vectors into two latents; open other encoders, and writers, which generate text from vectors."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import streamlit as st

import bgt_core
from app.core import display, inventory, rows, state, uploads
from app.core.address import BOUND, go_to
from app.core.display import failing, frame, plain, problem, verbatim
from app.core.inventory import ParallelText
from app.core.latents import geometry
from app.core.latents.chart import latent_map
from app.core.state import Loaded
from bgt_core.checkpoint import KINDS_OF_FOLDERS
from bgt_core.encoders import identity, with_kind
from bgt_core.encoders.split import split_encoder
from bgt_core.encoders.vectors import look_up
from bgt_core.encoders.writer import attached
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.splitting import METHODS, parts
from bgt_core.splitting.fit import FACTORED, ROWS, TRAINED_ON, fit, verdict
from bgt_core.splitting.gather import MOST_UNITS, gather, needed_rows
from bgt_core.vectors.arrays import cosine_similarity

Progress = Callable[[float, str], object]  # called with the completed fraction and the name of the next step

MOST = 50_000  # maximum number of pairs of sentences that a split uses
AT_ONCE = 512  # number of pairs embedded between two progress reports
EMBEDDED, FITTED = 0.7, 0.8  # values of the progress bar when all pairs are embedded, and when the split is fitted
DRAWN = 400  # maximum number of pairs shown on the maps
SHOWN = 4  # number of sentences whose neighbours are shown
FOUND = 50  # maximum number of encoders on this machine that are listed
MAX_MEGABYTES, MAX_UNPACKED = 500, 2**31  # maximum size of a file of vectors in MB; of its arrays in bytes
KINDS = tuple(kind for kind in state.RUNS if kind != "python:")  # kinds of encoders that do not run foreign code
ALT = "Two maps of the held-out sentences: the vectors as they are, and the shared parts"
ON_COMMAND_LINE = re.compile(r"[.;:] ?[^.;:]*(`bgt |--model|one of PATH,).*")  # advice about bgt's command line
ABOUT = {  # a description of each method, shown after its name
    "bgt": "factors that translations share",
    "neural": "the same, with a trained hidden layer",
    "centring": "subtracts each language's mean",
    "leace": "no linear probe predicts the language",
    "shift": "each language moved onto the first",
    "subspace": "removes each language's largest axis",
}


def page(loaded: Loaded) -> None:
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
        writer(loaded)


def divide(loaded: Loaded) -> None:
    """Let the user choose pairs of sentences and a method, and split the encoder's vectors into two latents."""
    texts = inventory.readable(loaded.langs, 2)
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        name = uploads.choose_name(list(texts), "data", width=300, **BOUND)
    if name is None:
        st.info(f"No pairs of sentences in {', '.join(map(rows.language_name, loaded.langs))}. Upload some.")
        return
    columns, langs = inventory.columns_of(texts[name], MOST)
    try:
        width = loaded.embed(columns[0][:1], lang=langs[0]).shape[1]
    except DataError as error:  # the encoder is a file of vectors, without this sentence
        st.info(f"{verbatim(error)} Choose or upload pairs of sentences whose vectors the file has.")
        return
    if width > MOST_UNITS:
        st.info(
            f"Vectors of {width:,} units can't be split: at most {MOST_UNITS:,} can. Reduce them first, as the guide "
            "shows (docs/guide/split.md)."
        )
        return
    possible = methods(columns, width, langs)
    if not possible:
        st.info(f"{len(columns[0]):,} pairs of one language are too few for vectors of {width} units; upload more.")
        return
    key = "method" if possible[0] in FACTORED else "simple_method"
    with controls:
        titles = {name: f"{name}: {ABOUT[name]}" for name in possible}
        title_of = titles.__getitem__
        method = st.selectbox("Method", possible, key=key, format_func=title_of, width=300, **BOUND) or possible[0]
        pressed = st.button("Split", type="primary", icon=":material/call_split:")
    needed = f" The methods *neural* and *bgt* need {needed_rows(width):,} different sentences on each side."
    more = "" if possible[0] in FACTORED else needed
    st.caption(f"{len(columns[0]):,} pairs; vectors of {width:,} units by {verbatim(loaded.title)}.{more}")
    if pressed:
        bar = st.progress(0.0, "Embedding sentences")
        with failing():
            inventory.change(split=make(loaded, texts[name], method, bar.progress))
        bar.empty()
    made = inventory.of_session().split
    if made and made.source.title == loaded.title:
        result(made)


def another(loaded: Loaded) -> None:
    """Let the user open an encoder, by its name or from a file of vectors."""
    # The box's key contains the model's title: a new model gets a new box, which is open only if `first` is true.
    first = bool(loaded.second_latent) and loaded.title not in inventory.of_session().models
    box = st.expander("Open an encoder", first, key=f"opener {loaded.title}", icon=":material/folder_open:")
    with box, st.form("another", border=False):
        name = st.selectbox(
            "Encoder", on_this_machine(), None, placeholder="all-MiniLM-L6-v2, or a folder or file",
            accept_new_options=True, key="split_open",
        )  # fmt: skip
        st.caption(
            "Type the name or folder of a sentence-transformers model, an ONNX folder, a file of vectors, or a run of "
            "`bgt train`. The list has encoders on this machine. The kind is guessed, or you can write it first: "
            f"{', '.join(f'`{kind}`' for kind in KINDS)}. Your sentences stay on this machine."
        )
        file = st.file_uploader(
            "Or its vectors and their sentences", "npz", max_upload_size=MAX_MEGABYTES, key="split_vectors"
        )
        st.caption(
            "A file by `numpy.savez(NAME, vectors=vectors, sentences=sentences)`. The pages can then show texts that "
            "consist of these sentences: upload such texts as well."
        )
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
        with st.spinner("Opening", show_time=True):
            yield
    except BgtError as error:
        message, count = ON_COMMAND_LINE.subn(".", str(error).replace("no such checkpoint", "no such name or folder"))
        advice = "Then start the app again, or upload the vectors." if "pip install" in message else advice * count
        problem(UsageError(f"{message} {advice}".strip()))


def writer(loaded: Loaded) -> None:
    """Let the user open a writer, which generates text from the vectors of the chosen encoder."""
    with st.expander("Write text from its vectors", icon=":material/edit_note:"), st.form("writer", border=False):
        folder = st.text_input("Writer", placeholder="FOLDER", key="split_writer")
        st.caption(
            f"A run of `bgt train writer --encoder NAME` for {verbatim(loaded.title)}. All pages that generate text "
            "then do so from the encoder's vectors."
        )
        if st.form_submit_button("Use this writer") and folder.strip():
            with explaining("Train a writer for this encoder, as the guide shows (docs/guide/write.md)."):
                new = with_writer(loaded, folder.strip())
                add(new, f"{verbatim(new.title)} generates text on every page.")


def add(loaded: Loaded, done: str) -> None:
    """Add a model to the list in the sidebar and choose it. The page then shows the message `done`."""
    st.session_state["split_done"] = done
    inventory.change(models={**inventory.of_session().models, loaded.title: loaded})
    st.session_state["next_model"] = loaded.title
    st.rerun()


def result(made: Made) -> None:
    """Show a figure of the vectors before and after the split, and buttons that use the split encoder."""
    about = made.stored.split.about
    st.subheader(made.verdict, anchor=False)
    st.caption(
        f"{verbatim(made.source.title)}, split by *{made.stored.split.method}*. Fitted on {about['rows']:,} pairs, "
        f"measured on {min(ROWS, about['held_out_rows']):,} others: how often is the nearest sentence, of all "
        "languages, the translation?"
    )
    langs = next(iter(made.maps.values()))["lang"].unique().tolist()
    figure = latent_map(made.maps, "lang", langs, side_by_side=True, theme=display.current_theme(), height=330)
    st.plotly_chart(figure.update_layout(dragmode=False), alt=ALT, config={"displayModeBar": False})
    near = pd.DataFrame(made.neighbours, columns=["sentence", "nearest, before", "nearest, after"])
    frame(near, "The nearest other sentence of four sentences, before and after the split")
    with st.container(horizontal=True):
        if state.model().title == made.loaded.title:
            go_to("maps", "Look at the maps")
        elif st.button("Use it on every page", type="primary", icon=":material/check:"):
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
    verdict: str
    maps: Mapping[str, pd.DataFrame]  # title -> rows of a map: of the vectors before the split, or of semantic latents
    neighbours: Sequence[tuple[str, str, str]]  # a sentence, its nearest sentence before the split, and after it


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
        reader = look_up(path, name)
    title, langs = inventory.free_name(name, state.titles()), inventory.read().langs
    return state.Loaded(title, reader, langs, {}, [], state.RUNS["vectors:"], f"vectors:{name}")


def with_writer(loaded: state.Loaded, path: str) -> state.Loaded:
    """Combine an encoder with the writer in a folder. Raises BgtError if the folder has no writer for this encoder."""
    if not Path(path).is_dir():
        raise NotFound(f"{path}: not a folder; expected a run of `bgt train writer`, or a checkpoint of it.")
    title = inventory.free_name(f"{loaded.title}, with {inventory.short_name(path)}", state.titles())
    name = loaded.spec or loaded.title
    return state.checkpoint(title, path, lambda folder: attached(bgt_core.load(folder), loaded.reader, name))


def methods(columns: Sequence[Sequence[str]], width: int, langs: Sequence[str]) -> list[str]:
    """Return the methods for which there are enough sentences, the best first. `width` is the size of a vector."""
    enough = min(len(set(column)) for column in columns) >= needed_rows(width)
    several = len(set(langs)) > 1
    ordered = ["bgt", "neural", *(method for method in METHODS if method not in FACTORED)]
    return [method for method in ordered if (enough if method in FACTORED else several)]


def make(loaded: state.Loaded, text: ParallelText, method: str, progress: Progress) -> Made:
    """Split an encoder, and measure the effect on held-out pairs. `progress` gets the fraction done and next step."""
    columns, langs = inventory.columns_of(text, MOST)
    count, start = len(columns[0]), perf_counter()

    def embedded(done: int, _: int | None) -> None:
        left = (perf_counter() - start) * (count - done) / done
        progress(EMBEDDED * done / count, f"{done:,} of {count:,} pairs embedded, {left:.0f} seconds left")

    batches = ([column[first : first + AT_ONCE] for column in columns] for first in range(0, count, AT_ONCE))
    (gathered,) = gather(loaded, [(langs, batches)], keep=TRAINED_ON.get(method, 0), report=embedded)
    progress(EMBEDDED, f"Fitting {method}")
    split = fit([gathered], method)
    title = f"{loaded.title}, split ({method})"
    name = inventory.portable(loaded.spec or loaded.title)
    with tempfile.TemporaryDirectory() as folder:  # measure the split as saved, like the downloaded file
        path = Path(folder) / "split"
        parts.save(path, parts.StoredSplit(split, name, identity(loaded.reader)))
        stored = parts.load(path)
    reader = split_encoder(title, stored.split, loaded.reader, stored.sha256)
    known = inventory.of_session().models.values()
    same = (model.title for model in known if model.reader.fingerprint == reader.fingerprint != "")
    title = next(same, inventory.free_name(title, state.titles()))
    device = f"Splits the vectors of {loaded.title}"
    progress(FITTED, "Drawing maps")
    _, held_out = gathered.sample(gathered.held_out)
    vectors = [column[:DRAWN] for column in held_out]
    sentences = [column[row] for column in columns for row in gathered.held_out_rows[:DRAWN]]
    before = np.concatenate(vectors)
    after = np.concatenate([split.shared(column, lang) for column, lang in zip(vectors, langs, strict=True)])
    table = pd.DataFrame(
        {"lang": np.repeat(langs, len(vectors[0])), "text": sentences, "translation": "", "own": False}
    )
    maps = {}
    for heading, of in ((f"{loaded.title}, before", before), ("After: the shared part", after)):
        x, y = geometry.fit(of, geometry.Method("t-SNE")).xy.T
        maps[plain(heading)] = table.assign(id=table.index, x=x, y=y)
    new = state.Loaded(title, reader, stored.split.langs, {}, [], device, held_out={text: gathered.held_out_rows})
    near = [*zip(sentences[:SHOWN], *(nearest(of, sentences) for of in (before, after)), strict=True)]
    return Made(loaded, stored, new, verdict(split.about["scores"]), maps, near)


def nearest(vectors: np.ndarray, sentences: Sequence[str]) -> list[str]:
    """Return the nearest other sentence of each of the first `SHOWN` sentences."""
    similarity = cosine_similarity(vectors[:SHOWN], vectors)
    same = np.array(sentences[:SHOWN])[:, None] == np.array(sentences)
    return [sentences[row] for row in np.where(same, -np.inf, similarity).argmax(1)]


def archive(made: Made) -> bytes:
    """Return a zip file of the folder that the command `bgt split` would have written."""
    with tempfile.TemporaryDirectory() as folder:
        parts.save(Path(folder, "zipped", "split"), made.stored)
        return Path(shutil.make_archive(f"{folder}/split", "zip", f"{folder}/zipped")).read_bytes()
