"""What can be read from each latent?"""

from __future__ import annotations

import streamlit as st

from app import options, results, rows, running, state
from app.views import browse
from bgt_core.errors import BgtError

FIRST = "length"  # the task shown first: any language and any sentences have it


def page() -> None:
    loaded = state.model()
    st.title("Probes")
    st.markdown("What can a small classifier read from each latent, and would it manage without the model?")
    small(loaded)
    with st.expander("Bring results of `bgt-probe`"):
        bring()
    found = everything()
    if found.scores.empty:
        st.info(
            "Nothing yet. Run a small probe above, or a whole one from the command line:", icon=":material/science:"
        )
        st.code(results.COMMAND.format(lang=loaded.bgt.langs[0], model="PATH"), language="sh")
        return
    browse.page(found)


def small(loaded: state.Loaded) -> None:
    """A probe trained while one waits."""
    with st.container(border=True):
        st.markdown("**Run a small probe**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            lang = st.segmented_control(
                "Language", loaded.bgt.langs, default=loaded.bgt.langs[0], required=True, format_func=rows.name,
                key="plang", bind="query-params",
            )  # fmt: skip
            tasks = running.tasks(lang)
            task = st.selectbox("Task", tasks, tasks.index(FIRST), key="ptask", bind="query-params", width=170)
            items = st.selectbox(
                "Sentences at most", [500, 1_000, 2_000], 1, format_func="{:,}".format, key="items",
                bind="query-params", width=160,
            )  # fmt: skip
            seeds = st.selectbox("Seeds", [1, 3, 5], 0, key="pseeds", bind="query-params", width=90)
            corpora = {name: data for name, data in options.read().data.items() if lang in data.langs}
            name = st.selectbox("On", list(corpora) or ["(none)"], key="pdata", bind="query-params", width=220)
            curve = st.toggle("Learning curve", key="pcurve", bind="query-params")
            asked = st.button("Run", type="primary", icon=":material/play_arrow:")
        if not asked:
            return
        place = st.empty()
        with place.container(horizontal=True, vertical_alignment="center"):
            box = st.status("Computing: embedding")
            st.button("Stop", key="stop_probe", icon=":material/stop:")
        # where somebody pressed Stop, or left, Streamlit ends the script at the next report
        report = lambda line: box.update(label=f"Computing: {line}")  # noqa: E731
        try:
            made = running.measured(loaded, task, lang, corpora.get(name), items, seeds, report, curve)
        except BgtError as error:
            place.empty()
            st.error(str(error))
            return
        place.empty()
        st.session_state.setdefault("probed", []).append(results.of_cell(made))
        st.success("Done: the result is below, and on the page that compares languages.")
        for warning in made.result.warnings:
            st.caption(f"Mind: {warning}")


def bring() -> None:
    """Files that stay for this session."""
    given = st.file_uploader("Files of --json, --csv or --predictions", results.KINDS, True, max_upload_size=20)
    brought = st.session_state["brought"] = []
    for file in given:
        try:
            brought.append(results.read(file.name, file.getvalue()))
        except BgtError as error:
            st.error(str(error))


def everything() -> results.Results:
    """The files named at the start, those brought, and what was run in this session."""
    session = [*st.session_state.get("brought", []), *st.session_state.get("probed", [])]
    return results.gathered(options.read().results, session)
