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

LOST = (
    "Sentences, files and encoders of your own are kept until the app stops or needs the memory. The page is not "
    "shown, because it would show another model or text."
)
TEXTS = ("data", "pdata", "cmp_text1", "cmp_text2", "cmp_aligned")  # parameters of the address that name sentences


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
    split = st.Page(
        partial(view("split"), two), title="Your encoder", icon=":material/vertical_split:", url_path="split"
    )
    page = st.navigation([start, two, where, style, alike, repeats, probes, langs, several, split, about])
    kept = own_texts.restore()
    if "lost" not in st.session_state:
        st.session_state["lost"] = not_here(kept)
    lost = st.session_state["lost"]
    if page == start and not lost:
        sentence.heading(above)  # shown while the model loads
    picker(state.titles())
    if lost:
        st.title("This link can't be opened here")
        st.error(f"It needs what this app does not have: {verbatim(', '.join(lost))}.", icon=":material/link_off:")
        st.markdown(LOST)
        st.button("Open the page without it", on_click=go_on)
        return
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


def not_here(kept: bool) -> list[str]:
    """Name what the link that opened the session needs and this app does not have; `kept`: whether it has its texts."""
    linked = {name: st.query_params.get_all(name) for name in ("ckpt", "models", *TEXTS)}
    models = [name for name in (*linked["ckpt"], *linked["models"]) if name and name not in state.titles()]
    every = [startup.EXAMPLES, *startup.read().texts, *own_texts.of_session().uploaded]
    every += [f"{startup.EXAMPLES} ({lang})" for lang in startup.LANGS]
    texts = [name for key in TEXTS for name in linked[key] if name and name not in every]
    named = [*(f"the model “{name}”" for name in models), *(f"the sentences “{name}”" for name in texts)]
    return [*dict.fromkeys(named), *["sentences, files or encoders that are not kept any more"] * (not kept)]


def go_on() -> None:
    st.session_state["lost"] = []


def picker(models: list[str]) -> None:
    """Choose the model of this session; the address keeps its name."""
    if chosen := st.session_state.pop("next_model", None):
        st.session_state["ckpt"] = chosen
    with st.sidebar:
        st.selectbox("Model", models, key="ckpt", bind="query-params", on_change=go_on)


def describe(loaded: state.Loaded) -> None:
    from app.card import compute

    with st.sidebar:
        st.text(f"{loaded.name}\n{loaded.reads}\n{loaded.device}", help=verbatim(loaded.spec) or None)
        if loaded.info:
            st.link_button("The paper", compute.paper(loaded).address, icon=":material/menu_book:")


if __name__ == "__main__":
    main()
