"""What can be read from each latent?"""

from __future__ import annotations

import streamlit as st

from app import probe_results, rows, running, startup, state
from app.address import BOUND
from app.views import browse
from bgt_core.data.examples import CREDIT, LANGS
from bgt_core.errors import BgtError
from probes.data.built_in import EXAMPLES

FIRST = "length"  # the task shown first: it is defined for any language and any sentences


def page() -> None:
    loaded = state.model()
    st.title("Probes")
    st.markdown("What can a small classifier read from each latent, and would it manage without the model?")
    run_small(loaded)
    with st.expander("Upload results of `bgt-probe`"):
        upload()
    results = all_results()
    if loaded.title not in set(results.scores["model"]):
        st.info(
            "No results of this model yet. Run a small probe above, or a whole one from the command line:",
            icon=":material/science:",
        )
        st.code(probe_results.COMMAND.format(lang=loaded.langs[0], model="PATH"), language="sh")
    if results.scores.empty:
        return
    browse.page(results, loaded)


def run_small(loaded: state.Loaded) -> None:
    """A probe trained while one waits."""
    with st.container(border=True):
        st.markdown("**Run a small probe**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            langs = loaded.langs
            lang = st.segmented_control(
                "Language", langs, default=langs[0], required=True, format_func=rows.language_name, key="plang", **BOUND
            )
            tasks = running.tasks(lang)
            task = st.selectbox("Task", tasks, tasks.index(FIRST), key="ptask", width=170, **BOUND)
            items = st.selectbox(
                "Sentences at most", [500, 1_000, 2_000], 1, format_func=lambda number: f"{number:,}", key="items",
                width=160, **BOUND,
            )  # fmt: skip
            seeds = st.selectbox("Seeds", [1, 3, 5], 0, key="pseeds", width=90, **BOUND)
            texts = texts_of(lang)
            name = st.selectbox("On", list(texts) or ["(none)"], key="pdata", width=220, **BOUND)
            curve = st.toggle("Learning curve", key="pcurve", **BOUND)
            pressed = st.button("Run", type="primary", icon=":material/play_arrow:")
        if not pressed:
            return
        slot = st.empty()
        with slot.container(horizontal=True, vertical_alignment="center"):
            box = st.status("Computing: embedding")
            st.button("Stop", key="stop_probe", icon=":material/stop:")

        def report(line: str) -> None:
            """Where somebody pressed Stop, or left, Streamlit ends the script here."""
            box.update(label=f"Computing: {line}")

        try:
            cell = running.run(loaded, task, lang, texts.get(name), items, seeds, report, curve)
        except BgtError as error:
            slot.empty()
            st.error(str(error))
            return
        slot.empty()
        st.session_state.setdefault("probed", []).append(probe_results.from_cells([cell], live=True))
        st.success("Done: the result is the first one below, marked “run here”; nothing stored is changed by it.")
        for warning in cell.result.warnings:
            st.caption(f"Note: {warning}")
        if cell.trail["data"] == EXAMPLES:
            st.caption(CREDIT)
        elif texts.get(name) is None:
            st.caption("Note: the task can label few of the example sentences, so this is on the built-in grammar.")


def texts_of(lang: str) -> dict[str, startup.ParallelText | None]:
    """The texts with sentences of a language; None stands for the example sentences of any pair."""
    examples = {startup.EXAMPLES: None} if lang in LANGS else {}
    given = {name: text for name, text in startup.read().texts.items() if lang in text.langs and not text.credit}
    return examples | given


def upload() -> None:
    """Files that stay for this session."""
    files = st.file_uploader("Files of --json, --csv or --predictions", probe_results.KINDS, True, max_upload_size=20)
    uploaded = st.session_state["uploaded"] = []
    for file in files:
        try:
            uploaded.append(probe_results.read(file.name, file.getvalue()))
        except BgtError as error:
            st.error(str(error))


def all_results() -> probe_results.ResultTables:
    """Those in the files named at the start, those uploaded, and those of probes run in this session."""
    session = [*st.session_state.get("uploaded", []), *st.session_state.get("probed", [])]
    return probe_results.gathered(startup.read().results, session)
