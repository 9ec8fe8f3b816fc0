"""The app's entry: `streamlit run app/main.py`, or `-- --model PATH` for another checkpoint."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import streamlit as st

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # Streamlit puts this folder on the path, not the one that holds `app`
    sys.path.insert(0, ROOT)

from app import state  # noqa: E402
from app.views import generate, latents, overview  # noqa: E402
from bgt_core import BadInput  # noqa: E402


def main() -> None:
    st.set_page_config("Bilingual Generative Transformer", str(Path(__file__).with_name("icon.svg")), layout="wide")
    two = st.Page(latents.page, title="Two latents", icon=":material/scatter_plot:", url_path="latents")
    style = st.Page(generate.page, title="Change the style", icon=":material/edit_note:", url_path="style")
    home = st.Page(
        partial(overview.page, two, style),
        title="Overview",
        icon=":material/home:",
        url_path="overview",
        default=True,
    )
    page = st.navigation([home, two, style])
    try:
        loaded = state.model()
    except BadInput as error:
        st.title("This model cannot be opened")
        st.error("The app is fine; the checkpoint is not.", icon=":material/error:")
        st.code(str(error), language=None, wrap_lines=True)
        st.caption(
            "Mend it and reload this page, or start the app on another: `streamlit run app/main.py -- --model PATH`"
        )
        return
    sidebar(loaded)
    try:
        page.run()
    except BadInput as error:  # the model is busy with somebody else's request
        st.error(str(error), icon=":material/hourglass:")


def sidebar(loaded: state.Loaded) -> None:
    with st.sidebar:
        st.caption("Model")
        st.text(f"{loaded.name}\n{loaded.languages}\n{loaded.device}")
        st.link_button("The paper", "https://aclanthology.org/2020.emnlp-main.122/", icon=":material/menu_book:")


if __name__ == "__main__":
    main()
