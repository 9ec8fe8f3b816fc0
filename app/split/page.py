"""Split the vectors of any encoder, prove the split, write text from its vectors, and use all that on every page."""

from __future__ import annotations

from functools import partial
from time import perf_counter

import pandas as pd
import streamlit as st

from app.core import corpora, rows, state, theme, upload_dialog
from app.core.address import BOUND, go_to
from app.core.markdown import failing, frame, verbatim
from app.core.state import Loaded
from app.split import compute
from bgt_core.splitting.fit import FACTORED, ROWS
from bgt_core.splitting.gather import MOST_UNITS, needed_rows

ALT = "Two maps of the held-out sentences: the vectors as they are, and the shared parts"
METHODS = {  # what each does, beside its name
    "bgt": "what translations share",
    "neural": "the same, with a trained hidden layer",
    "centring": "less each language's mean",
    "leace": "no linear probe tells the language",
    "shift": "each language moved onto the first",
    "subspace": "less each language's largest axis",
}


def page(loaded: Loaded) -> None:
    if done := st.session_state.pop("split_done", None):
        st.success(done, icon=":material/check:")
        if loaded.second_latent:
            go_to("maps", "Look at the maps")
    another(loaded)
    made = corpora.of_session().split
    if made and made.loaded.title == loaded.title:
        result(made)
    elif loaded.second_latent:
        st.info(f"{verbatim(loaded.title)} has two latents already. Open an encoder, or choose one in the sidebar.")
        with st.expander("Split its vectors all the same"):
            divide(loaded)
    else:
        divide(loaded)
    if loaded.cannot_write:
        writer(loaded)


def divide(loaded: Loaded) -> None:
    """Choose pairs and a method, and split the encoder's vectors."""
    texts = corpora.readable(loaded.langs, 2)
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        name = upload_dialog.choose_name(list(texts), "data", width=300, **BOUND)
    if name is None:
        st.info(f"No pairs of sentences in {', '.join(map(rows.language_name, loaded.langs))}. Upload some.")
        return
    columns, langs = corpora.columns_of(texts[name], compute.MOST)
    width = loaded.encoder.embed(columns[0][:1], lang=langs[0]).shape[1]
    if width > MOST_UNITS:
        st.info(
            f"Vectors of {width:,} units can't be split: at most {MOST_UNITS:,} can. Reduce them first, as the guide "
            "shows (docs/guide/split.md)."
        )
        return
    possible = compute.methods(columns, width, langs)
    if not possible:
        st.info(f"{len(columns[0]):,} pairs of one language are too few for vectors of {width} units; upload more.")
        return
    key = "method" if possible[0] in FACTORED else "simple_method"
    with controls:
        titles = {name: f"{name}: {METHODS[name]}" for name in possible}
        title_of = titles.__getitem__
        method = st.selectbox("Method", possible, key=key, format_func=title_of, width=300, **BOUND) or possible[0]
        pressed = st.button("Split", type="primary", icon=":material/call_split:")
    needed = f" Two more methods, *neural* and *bgt*, need {needed_rows(width):,} different sentences on each side."
    more = "" if possible[0] in FACTORED else needed
    st.caption(f"{len(columns[0]):,} pairs; vectors of {width:,} units by {verbatim(loaded.title)}.{more}")
    if pressed:
        bar = st.progress(0.0, "Embedding sentences")
        with failing():
            corpora.change(split=compute.make(loaded, texts[name], method, bar.progress))
        bar.empty()
    made = corpora.of_session().split
    if made and made.source.title == loaded.title:
        result(made)


def another(loaded: Loaded) -> None:
    """Open an encoder that the app was not started with."""
    # another model, another box: the one in which it was opened closes
    first = bool(loaded.second_latent) and loaded.title not in corpora.of_session().models
    box = st.expander("Open an encoder", first, key=f"opener {loaded.title}", icon=":material/folder_open:")
    with box, st.form("other", border=False):
        name = st.selectbox(
            "Encoder", compute.on_this_machine(), None, placeholder="all-MiniLM-L6-v2, or a folder or file",
            accept_new_options=True, key="split_open",
        )  # fmt: skip
        st.caption(
            "Type a name or folder of sentence-transformers, an ONNX folder, a file of vectors, a run of `bgt train`; "
            "the list has what was found on this machine. Its kind is guessed; or write it: "
            f"{', '.join(f'`{kind}`' for kind in compute.KINDS)}. Your sentences stay on this machine."
        )
        file = st.file_uploader(
            "Or its vectors and their sentences", "npz", max_upload_size=compute.MAX_MEGABYTES, key="split_vectors"
        )
        st.caption(
            "As `numpy.savez(NAME, vectors=vectors, sentences=sentences)` writes them. Then all pages show texts whose "
            "sentences are in the file: upload these as well."
        )
        if st.form_submit_button("Open") and (name or file):
            start = perf_counter()
            with failing(), st.spinner("Opening", show_time=True):
                new = compute.uploaded(file.name, file.getvalue()) if file else compute.opened((name or "").strip())
                width = new.reader.embed([], lang=new.langs[0]).shape[1]
                langs = new.languages if new.reader.langs else "any language"
                took = f"{perf_counter() - start:.1f} seconds"
                add(new, f"{verbatim(new.title)} is open: vectors of {width:,} units, {langs}, {took}.")


def writer(loaded: Loaded) -> None:
    """Open a writer of the chosen encoder's vectors."""
    with st.expander("Write text from its vectors", icon=":material/edit_note:"), st.form("writer", border=False):
        folder = st.text_input("Writer", placeholder="FOLDER", key="split_writer")
        st.caption(
            f"A run of `bgt train writer --encoder NAME`, trained for {verbatim(loaded.title)}. With it, all pages "
            "that generate text do so from its vectors."
        )
        if st.form_submit_button("Use this writer") and folder.strip():
            with failing():
                new = compute.with_writer(loaded, folder.strip())
                add(new, f"{verbatim(new.title)} generates text on every page.")


def add(loaded: Loaded, done: str) -> None:
    """From now on it is one of the models at the side, and chosen; the page says so."""
    st.session_state["split_done"] = done
    corpora.change(models={**corpora.of_session().models, loaded.title: loaded})
    st.session_state["next_model"] = loaded.title
    st.rerun()


def result(made: compute.Made) -> None:
    """What the split does, in one picture, and what to do with it."""
    about = made.stored.split.about
    st.subheader(made.verdict, anchor=False)
    st.caption(
        f"{verbatim(made.source.title)}, split by *{made.stored.split.method}*. Fitted on {about['rows']:,} pairs, "
        f"measured on {min(ROWS, about['held_out_rows']):,} others: how often is the nearest sentence, of all "
        "languages, the translation?"
    )
    st.plotly_chart(compute.before_and_after(made.maps, made.langs, made.sentences, theme.current()), alt=ALT)
    near = pd.DataFrame(made.neighbours, columns=["sentence", "nearest, before", "nearest, after"])
    frame(near, "The nearest other sentence of four sentences, before and after the split")
    with st.container(horizontal=True):
        used = state.model().title == made.loaded.title
        if not used and st.button("Use it on every page", type="primary", icon=":material/check:"):
            add(made.loaded, f"Done: every page now shows {verbatim(made.loaded.title)}.")
        st.download_button(
            "Download it", partial(compute.archive, made), "split.zip", icon=":material/download:",
            on_click="ignore", help="The folder that --model split:FOLDER opens",
        )  # fmt: skip
    st.caption("`bgt split --report` fits every method to your pairs, and measures all of them.")
