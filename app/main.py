"""The app's entry: `streamlit run app/main.py`, with `-- --model PATH` (any number) for other checkpoints."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import streamlit as st

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # Streamlit puts this folder on the path, not the one that holds `app`
    sys.path.insert(0, ROOT)

from app import startup, state  # noqa: E402
from app.views import card, compare, generate, latents, overview, probing, questions, similarity  # noqa: E402
from bgt_core.errors import BgtError  # noqa: E402

# Streamlit writes on its main buttons in white, which the light blue of the dark theme leaves unreadable.
BUTTON_STYLE = '<style>button[kind^="primary"] p, button[kind^="primary"] span { color: #0e1117 !important; }</style>'


def main() -> None:
    st.set_page_config("Bilingual Generative Transformer", str(Path(__file__).with_name("icon.svg")), layout="wide")
    two = st.Page(latents.page, title="Two latents", icon=":material/scatter_plot:", url_path="latents")
    style = st.Page(generate.page, title="Meaning by manner", icon=":material/edit_note:", url_path="style")
    alike = st.Page(similarity.page, title="How alike?", icon=":material/compare_arrows:", url_path="similarity")
    probes = st.Page(probing.page, title="Probes", icon=":material/science:", url_path="probes")
    repeats = st.Page(questions.page, title="Similar questions", icon=":material/quiz:", url_path="questions")
    langs = st.Page(
        partial(compare.page, probes), title="Compare languages", icon=":material/translate:", url_path="languages"
    )
    about = st.Page(card.page, title="Model and data", icon=":material/badge:", url_path="model")
    home = st.Page(
        partial(overview.page, two, style, alike, probes),
        title="Overview",
        icon=":material/home:",
        url_path="overview",
        default=True,
    )
    if state.theme() == "dark":
        st.html(BUTTON_STYLE)
    page = st.navigation([home, two, style, alike, repeats, probes, langs, about])
    try:
        models = startup.read().models
    except BgtError as error:
        refused("The app can't start like this", "The options after `--` are not understood.", error)
        return
    picker(models)
    try:
        loaded = state.model()
    except BgtError as error:
        refused("This model cannot be opened", "The app is fine; the checkpoint is not.", error)
        st.caption(
            "Choose another model at the side, or repair this one and reload the page, "
            "or restart the app: `streamlit run app/main.py -- --model PATH`"
        )
        return
    describe(loaded)
    try:
        page.run()
    except BgtError as error:  # the model is busy with another session's request, or a file can't be read
        st.error(str(error), icon=":material/hourglass:")
        st.button("Try again")


def refused(title: str, explained: str, error: BgtError) -> None:
    st.title(title)
    st.error(explained, icon=":material/error:")
    st.code(str(error), language=None, wrap_lines=True)


def picker(models: dict[str, str]) -> None:
    """The model of this session; the address keeps its name."""
    linked = st.query_params.get("ckpt")
    with st.sidebar:
        st.selectbox("Model", list(models), key="ckpt", bind="query-params")
        if linked is not None and linked not in models:
            st.session_state["unknown_model"] = linked[:80]
        if unknown := st.session_state.pop("unknown_model", None):
            st.warning(f"This app was not started with a model called “{unknown}”.")


def describe(loaded: state.Loaded) -> None:
    with st.sidebar:
        st.text(f"{loaded.name}\n{loaded.translates or loaded.languages}\n{loaded.device}")
        st.link_button("The paper", card.paper(loaded).address, icon=":material/menu_book:")


if __name__ == "__main__":
    main()
