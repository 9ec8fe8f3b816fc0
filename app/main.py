"""The app's entry: `streamlit run app/main.py`, with `-- --model PATH` (any number) for other checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import streamlit as st

HERE = Path(__file__).resolve().parent
# Streamlit puts this folder on the path, where the page `probes` would hide the package; `app` is in the parent folder.
# Sessions do this side by side: if the path were assigned, what other threads add or remove meanwhile would be lost.
for part in [*sys.path]:
    if Path(part).resolve() == HERE:
        with suppress(ValueError):  # another session has removed it
            sys.path.remove(part)
if str(HERE.parent) not in sys.path:
    sys.path.insert(0, str(HERE.parent))

from app.core import address, own_texts, startup, state  # noqa: E402
from app.core.markdown import problem, verbatim  # noqa: E402
from app.sentence import page as sentence  # noqa: E402
from app.sentence.tabs import Next  # noqa: E402
from bgt_core.errors import BgtError, Busy  # noqa: E402

MODELS = """\
bgt app --model PATH                              # a checkpoint or run, a folder of them, or ORG/NAME on the hub
  --model sentence-transformers:NAME_OR_FOLDER    # any number of models, of any kind
  --model onnx:FOLDER                             # what `bgt export --to onnx` wrote
  --model python:MODULE:OBJECT                    # your own code; it runs on this machine
  --model vectors:FILE.npy                        # with FILE.txt beside it, a sentence per line
  --model baseline:tfidf                          # or baseline:words, baseline:random"""

LOST = "This link contains sentences or files that the app no longer keeps. Type or upload them again to see them."


def main() -> None:
    st.set_page_config("Bilingual Generative Transformer", str(Path(__file__).with_name("icon.svg")), layout="wide")
    st.html(Path(__file__).with_name("style.css"))
    address.one_entry_per_page()
    try:
        startup.read()
    except BgtError as error:
        refused("The app can't start", "The options after `--` are not understood.", error)
        return
    above = st.empty()
    two = st.Page(view("maps"), title="Two latents", icon=":material/scatter_plot:", url_path="latents")
    style = st.Page(view("rewrite"), title="Meaning by style", icon=":material/edit_note:", url_path="style")
    alike = st.Page(view("similarity"), title="How alike?", icon=":material/compare_arrows:", url_path="similarity")
    where = st.Page(
        partial(view("plane"), two, alike),
        title="Where latents disagree",
        icon=":material/call_split:",
        url_path="plane",
    )
    probes = st.Page(view("probes"), title="Probes", icon=":material/science:", url_path="probes")
    repeats = st.Page(view("questions"), title="Similar questions", icon=":material/quiz:", url_path="questions")
    langs = st.Page(
        partial(view("languages"), probes), title="Compare languages", icon=":material/translate:", url_path="languages"
    )
    several = st.Page(view("models"), title="Compare models", icon=":material/balance:", url_path="models")
    about = st.Page(view("card"), title="Model and data", icon=":material/badge:", url_path="model")
    first = partial(sentence.page, above, Next(two, where, style, alike, probes))
    start = st.Page(first, title="A sentence", icon=":material/home:", default=True)
    split = st.Page(view("split"), title="Your encoder", icon=":material/vertical_split:", url_path="split")
    page = st.navigation([start, two, where, style, alike, repeats, probes, langs, several, split, about])
    if page == start:
        sentence.heading(above)  # shown while the model loads
    if not own_texts.restore():
        st.toast(LOST, icon=":material/upload_file:", duration="infinite")
    picker(state.titles())
    try:
        loaded = state.model()
    except BgtError as error:
        refused("This model cannot be opened", "The app works, but the model given by `--model` does not open.", error)
        st.caption(
            "Choose another model in the sidebar, repair this one and reload the page, or start the app with another "
            "`--model`:"
        )
        st.markdown(f"```sh\n{MODELS}\n```")
        return
    describe(loaded)
    shown(page.run)


def shown(page: Callable[[], None]) -> None:
    """Draw the page; an error appears at the place where it stopped."""
    try:
        page()
    except Busy as error:
        st.warning(verbatim(error), icon=":material/hourglass:")
        st.button("Try again")
    except BgtError as error:  # a file can't be read, or an encoder has no vector for a sentence
        problem(error)


def view(name: str) -> Callable[..., None]:
    """Import the page of a folder when it is opened: its imports are slow."""

    def page(*arguments: object) -> None:
        import_module(f"app.{name}.page").page(*arguments)

    return page


def refused(title: str, explained: str, error: BgtError) -> None:
    st.title(title)
    st.error(explained, icon=":material/error:")
    st.code(str(error), language=None, wrap_lines=True)


def picker(models: list[str]) -> None:
    """Choose the model of this session; the address keeps its name."""
    if chosen := st.session_state.pop("next_model", None):
        st.session_state["ckpt"] = chosen
    linked = st.query_params.get("ckpt")
    with st.sidebar:
        st.selectbox("Model", models, key="ckpt", bind="query-params")
        if linked is not None and linked not in models:
            st.session_state["unknown_model"] = linked[:80]
        if unknown := st.session_state.pop("unknown_model", None):
            st.warning(f"This app was not started with a model called “{verbatim(unknown)}”.")


def describe(loaded: state.Loaded) -> None:
    from app.card import compute

    with st.sidebar:
        st.text(f"{loaded.name}\n{loaded.reads}\n{loaded.device}", help=verbatim(loaded.spec) or None)
        if loaded.info:
            st.link_button("The paper", compute.paper(loaded).address, icon=":material/menu_book:")


if __name__ == "__main__":
    main()
