"""Split the vectors of any encoder, prove the split, write text from its vectors, and use all that on every page."""

from __future__ import annotations

from functools import partial
from time import perf_counter

import pandas as pd
import streamlit as st
from streamlit.navigation.page import Page

from app.core import controls, corpora, rows, state
from app.core.address import BOUND
from app.core.markdown import how_to_read, problem, verbatim
from app.core.state import Loaded
from app.core.uploads import dialog
from app.split import compute
from bgt_core.errors import BgtError
from bgt_core.splitting.fit import FACTORED
from bgt_core.splitting.gather import MOST_UNITS, needed_rows

HELP = """
- **Shared part:** what sentences of one meaning have in common in this encoder's vectors. **Private part:** the rest,
  such as the language. Together they give the vector back exactly.
- **bgt:** the linear form of this toolkit's model. **neural:** the same with a trained hidden layer. Both need about
  twice as many pairs as a vector has units. **centring** subtracts each language's mean, **shift** moves each language
  onto the first by the difference of their means, **leace** (Belrose et al. 2023) is the smallest change after which
  no linear probe tells the language, **subspace** (Yang et al. 2021) removes each language's own largest axis.
- All numbers are of pairs that were held out: one in ten, at most 1,000. A part that holds nothing scores 50 on
  paraphrases, where ties count half.
- A good shared part finds translations and does not tell the language; a good private part does the opposite.
- Of the vectors as they are and the shared parts, `*` marks one that is better than all others of its column by more
  than chance, `=` the best and those that do not differ from it.
"""


def page(maps: Page) -> None:
    loaded = state.model()
    st.title("Your encoder")
    st.markdown(
        "Translations share their meaning. From pairs of them, split the vectors of any encoder into what they share "
        "and what each language adds."
    )
    if done := st.session_state.pop("split_done", None):
        st.success(done, icon=":material/check:")
        if loaded.second_latent:
            st.page_link(maps, label="Look at the maps", icon=":material/arrow_forward:")
    another(loaded)
    if loaded.cannot_write:
        writer(loaded)
    made = st.session_state.get("split")
    if made and made.loaded.title == loaded.title:
        result(made)
    elif loaded.second_latent:
        st.info(f"{verbatim(loaded.title)} has two latents already. Open an encoder, or choose one in the sidebar.")
        with st.expander("Split its vectors all the same"):
            divide(loaded)
    else:
        divide(loaded)
    how_to_read(HELP)


def divide(loaded: Loaded) -> None:
    """Choose pairs and a method, and split the encoder's vectors."""
    texts = corpora.aligned(loaded.langs)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = dialog.choose_name(list(texts), "data", width=340, **BOUND)
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
    method = controls.choice("Method", possible, "method" if possible[0] in FACTORED else "simple_method")
    needed = f" Two more methods, *neural* and *bgt*, need {needed_rows(width):,} different sentences on each side."
    more = "" if possible[0] in FACTORED else needed
    st.caption(f"{len(columns[0]):,} pairs; vectors of {width:,} units by {verbatim(loaded.title)}.{more}")
    if st.button("Split", type="primary", icon=":material/call_split:"):
        bar = st.progress(0.0, "Embedding sentences")
        try:
            st.session_state["split"] = compute.make(loaded, texts[name], method, bar.progress)
        except BgtError as error:
            problem(error)
        bar.empty()
    made = st.session_state.get("split")
    if made and made.of == loaded.title:
        result(made)


def another(loaded: Loaded) -> None:
    """Open an encoder that the app was not started with."""
    # another model, another box: the one in which it was opened closes
    first = bool(loaded.second_latent) and loaded.title not in state.own()
    box = st.expander("Open an encoder", first, key=f"opener {loaded.title}", icon=":material/folder_open:")
    with box, st.form("other", border=False):
        name = st.text_input("Encoder", placeholder="all-MiniLM-L6-v2, or a folder or file", key="split_open")
        st.caption(
            "A model of sentence-transformers by its name or folder, an ONNX folder, vectors in a `.npy` file, a run "
            f"of `bgt train`. The kind is guessed; or write it: {', '.join(f'`{kind}`' for kind in compute.KINDS)}. "
            "Your sentences stay on this machine."
        )
        file = st.file_uploader(
            "Or its vectors and their sentences", "npz", max_upload_size=compute.MAX_MEGABYTES, key="split_vectors"
        )
        st.caption(
            "As `numpy.savez(NAME, vectors=vectors, sentences=sentences)` writes them. Then all pages show texts whose "
            "sentences are in the file: upload these as well."
        )
        if st.form_submit_button("Open") and (name.strip() or file):
            start = perf_counter()
            try:
                with st.spinner("Opening", show_time=True):
                    new = compute.uploaded(file.name, file.getvalue()) if file else compute.opened(name.strip())
                    width = new.reader.embed([], lang=new.langs[0]).shape[1]
            except BgtError as error:
                problem(error)
            else:
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
            try:
                new = compute.with_writer(loaded, folder.strip())
            except BgtError as error:
                problem(error)
            else:
                add(new, f"{verbatim(new.title)} generates text on every page.")


def add(loaded: Loaded, done: str) -> None:
    """From now on it is one of the models at the side, and chosen; the page says so."""
    st.session_state["split_done"] = done
    st.session_state["own_models"] = {**state.own(), loaded.title: loaded}
    st.session_state["next_model"] = loaded.title
    st.rerun()


def result(made: compute.Made) -> None:
    """The proof, and what to do with the split."""
    about = made.stored.split.about
    st.caption(
        f"{verbatim(made.loaded.title)}: fitted on {about['rows']:,} pairs. All methods were measured, on "
        f"{about['held_out_rows']:,} others of the same text; used and downloaded is *{made.stored.split.method}*."
    )
    with st.container(horizontal=True):
        used = state.model().title == made.loaded.title
        if not used and st.button("Use it on every page", type="primary", icon=":material/check:"):
            add(made.loaded, f"Done: every page now shows {verbatim(made.loaded.title)}.")
        st.download_button(
            "Download it", partial(compute.archive, made), "split.zip", icon=":material/download:", on_click="ignore",
            help="The folder that --model split:FOLDER opens",
        )  # fmt: skip
    for title, (table, note) in made.report.tables.items():
        st.subheader(verbatim(title))
        st.dataframe(pd.DataFrame(table.lines(), columns=table.columns), hide_index=True, alt=title)
        if note:
            st.caption(verbatim(note))
