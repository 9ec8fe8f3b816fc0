"""The frame of the app: the list of pages, and everything around a page. A page is a folder whose `page.py` has a
function `page(loaded)`; it is imported when the user opens it, because imports are slow. The frame opens the model, and
draws the heading, the page (or why it does not suit the model), an error if the page raises one, the help text
`help/FOLDER.md`, and a link to this view. To add a page, add a folder and a section of `pages.toml`."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.core import address, inventory, state
from app.core.display import NOTES, help_of, problem, verbatim
from app.sentence import page as sentence
from bgt_core.contracts import LANGUAGE
from bgt_core.errors import BgtError, Busy

HERE = Path(__file__).parent
TEXTS = ("data", "pdata")  # URL parameters whose values are names of texts


@dataclass(frozen=True)
class Page:
    """A page in the app's navigation."""

    folder: str
    path: str  # path of the page in its URL
    title: str
    icon: str
    about: str = ""  # text under the title, with {second} for the second latent; "" if the page draws its own heading
    lacks: Callable[[state.Loaded], str] = lambda loaded: ""  # returns why a model does not fit the page, or ""
    shown: Callable[[inventory.StartOptions], bool] = lambda options: True
    link: bool = True  # whether the frame shows the link to this view; if not, a Streamlit fragment of the page does


RULES: dict[str, dict[str, Any]] = {
    "rewrite": {"lacks": attrgetter("cannot_write")},
    "questions": {"shown": lambda options: options.questions is not None},
}
_PAGES = tomllib.loads((HERE / "pages.toml").read_text("utf-8"))
PAGES = {folder: Page(folder, **fields, **RULES.get(folder, {})) for folder, fields in _PAGES.items()}


def main() -> None:
    """Draw the app: the sidebar, and the page whose path is in the URL."""
    st.set_page_config(page_icon=str(HERE / "icon.svg"), layout="wide")
    st.html(HERE / "style.css")
    address.set_up_browser()
    try:
        inventory.read()
    except BgtError as error:
        refused("The app can't start", "The options after `--` are not understood.", error)
        return
    above = st.empty()
    st.session_state["pages"] = pages = {
        name: st.Page(partial(draw, page, above), title=page.title, icon=f":material/{page.icon}:",
                      url_path=page.path or None, default=not page.path)
        for name, page in PAGES.items() if page.shown(inventory.read())
    }  # fmt: skip
    chosen = st.navigation([*pages.values()])
    st.set_page_config(f"{chosen.title} · Bilingual Generative Transformer")
    try:
        kept = inventory.restore()
    except BgtError as error:
        refused("Your own sentences can't be opened", "They are in a file in the folder of `--work`.", error)
        return
    if "lost" not in st.session_state:
        st.session_state["lost"] = not_here(kept)
    lost = st.session_state["lost"]
    if chosen == pages["sentence"] and not lost:
        sentence.heading(above)  # shown while the model loads
    if following := st.session_state.pop("next_model", None):
        st.session_state["ckpt"] = following
    for key in {*address.FIELDS} & {*st.session_state}:  # otherwise, Streamlit forgets fields not on this page
        st.session_state[key] = st.session_state[key]
    with st.sidebar:
        st.selectbox("Model", state.titles(), key="ckpt", on_change=go_on, **address.BOUND)
    if lost:
        st.title("This link can't be opened here")
        st.error(f"This app lacks: {verbatim(', '.join(lost))}.", icon=":material/link_off:")
        st.markdown(NOTES["lost"])
        st.button("Open the page without it", on_click=go_on)
        return
    try:
        loaded = state.model()
    except BgtError as error:
        above.empty()
        refused("This model cannot be opened", "The app works, but the model given by `--model` does not open.", error)
        st.caption("Choose a model in the sidebar, repair this one and reload the page, or start the app with another:")
        st.markdown(NOTES["models"])
        return
    from app.card.page import paper

    with st.sidebar:
        compare_with(loaded)
        st.text(f"{loaded.name}\n{loaded.reads}\n{loaded.device}", help=verbatim(loaded.spec) or None)
        if loaded.info:
            st.link_button("The paper", paper(loaded)[0], icon=":material/menu_book:")
    chosen.run()


def compare_with(loaded: state.Loaded) -> None:
    """Let the user choose a second model, whose results every page shows beside those of the first."""
    others = [title for title in state.titles() if title != loaded.title]
    chosen = st.selectbox("Compare with", others, None, placeholder="No model", key="with", **address.BOUND)
    st.session_state["second"] = None
    try:
        st.session_state["second"] = state.opened(chosen) if chosen else None
    except BgtError as error:
        problem(error)


def draw(page: Page, above: DeltaGenerator) -> None:
    """Draw a page, and below it the error that stopped it, if any. A page with its own heading draws it at `above`."""
    loaded = state.model()
    module = import_module(f"app.{page.folder}.page")
    if page.about:
        st.title(page.title)
    else:
        module.heading(above, loaded)
    if lacks := page.lacks(loaded):
        st.info(f"{lacks} You can choose another model in the sidebar.", icon=f":material/{page.icon}:")
        return
    if page.about:
        st.markdown(page.about.format(second=loaded.second_latent or LANGUAGE))
    try:
        module.page(loaded)
    except Busy as error:
        st.warning(verbatim(error), icon=":material/hourglass:")
        st.button("Try again")
    except BgtError as error:  # for example, a file can't be read, or an encoder has no vector for a sentence
        problem(error)
    if (HERE / "help" / f"{page.folder}.md").is_file():
        models = [model for model in (loaded, state.second()) if model]
        kinds = {"trained": any(model.info for model in models), "split": any(model.about for model in models)}
        help_of(page.folder, loaded.second_latent, writes=not loaded.cannot_write, **kinds)
    if page.link:
        address.copy_link()


def refused(title: str, explained: str, error: BgtError) -> None:
    """Explain why the page can't be shown."""
    st.set_page_config(title)
    st.title(title)
    st.error(explained, icon=":material/error:")
    st.code(str(error), language=None, wrap_lines=True)


def not_here(kept: bool) -> list[str]:
    """List the models and texts that the link names but this app lacks. `kept` says whether the user's own texts and
    encoders are still in memory."""
    linked = {name: st.query_params.get_all(name) for name in ("ckpt", "with", *TEXTS)}
    models = [name for name in (*linked["ckpt"], *linked["with"]) if name and name not in state.titles()]
    every = [inventory.EXAMPLES, *inventory.read().texts, *inventory.of_session().uploaded]
    every += [f"{inventory.EXAMPLES} ({lang})" for lang in inventory.LANGS]
    texts = [name for key in TEXTS for name in linked[key] if name and name not in every]
    named = [*(f"the model “{name}”" for name in models), *(f"the sentences “{name}”" for name in texts)]
    return [*dict.fromkeys(named), *["sentences, files or encoders that are not kept any more"] * (not kept)]


def go_on() -> None:
    st.session_state["lost"] = []
