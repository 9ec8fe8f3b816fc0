"""What can be read from each latent?"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app import exports, options, results, rows, state
from app.charts import look, scores
from bgt_core import BadInput

FIRST = "length"  # the task shown first: any language and any sentences have it
NAMES = {
    "model": "Model",
    "lang": "Language",
    "task": "Task",
    "latent": "Latent or baseline",
    "accuracy": "Accuracy, %",
    "ci_low": "from",
    "ci_high": "to",
    "selectivity": "Selectivity, points",
    "compression": "Compression",
    "information": "Bits an item",
    "n_test": "Tested on",
    "classes": "Classes",
    "note": "Note",
}


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
    browse(found)


def small(loaded: state.Loaded) -> None:
    """A probe trained while one waits."""
    with st.container(border=True):
        st.markdown("**Run a small probe**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            lang = st.segmented_control(
                "Language", loaded.bgt.langs, default=loaded.bgt.langs[0], required=True, format_func=rows.name,
                key="plang", bind="query-params",
            )  # fmt: skip
            tasks = results.tasks(lang)
            task = st.selectbox("Task", tasks, tasks.index(FIRST), key="ptask", bind="query-params", width=170)
            items = st.selectbox(
                "Sentences at most", [500, 1_000, 2_000], 1, format_func="{:,}".format, key="items",
                bind="query-params", width=160,
            )  # fmt: skip
            seeds = st.selectbox("Seeds", [1, 3, 5], 0, key="pseeds", bind="query-params", width=90)
            corpora = {name: data for name, data in options.read().data.items() if lang in data.langs}
            name = st.selectbox("On", list(corpora) or ["(none)"], key="pdata", bind="query-params", width=220)
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
            made = results.compute(loaded, task, lang, corpora.get(name), items, seeds, report)
        except BadInput as error:
            place.empty()
            st.error(str(error))
            return
        place.empty()
        st.session_state.setdefault("probed", []).append(results.of_document(made))
        st.success("Done: the result is below, and on the page that compares languages.")
        for warning in made["results"][0].get("warnings", []):
            st.caption(f"Mind: {warning}")


def bring() -> None:
    """Files that stay for this session."""
    given = st.file_uploader("Files of bgt-probe --json or --csv", ["json", "csv"], True, max_upload_size=5)
    brought = st.session_state["brought"] = []
    for file in given:
        try:
            brought.append(results.read(file.name, file.getvalue()))
        except BadInput as error:
            st.error(str(error))


def everything() -> results.Results:
    """The files named at the start, those brought, and what was run in this session."""
    session = [*st.session_state.get("brought", []), *st.session_state.get("probed", [])]
    return results.gathered(options.read().results, session)


def browse(found: results.Results) -> None:
    st.subheader("Results")
    table = found.scores
    with st.container(horizontal=True):
        for column, title in (("model", "Model"), ("lang", "Language"), ("task", "Task")):
            values = sorted(table[column].unique())
            kept = st.multiselect(title, values, key=f"only_{column}", placeholder="All")
            table = table[table[column].isin(kept)] if kept else table
    if table.empty:
        st.info("No result is all of that; take a filter away.")
        return
    figure = partial(scores.probe_dots, table, state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Test accuracy with intervals of {table['latent'].nunique()} latents and baselines; the table has it too",
        config=look.tools("bgt-probes"),
    )
    st.caption(
        "Bars are 95% intervals over test sentences. A latent knows something only where it beats what never saw the "
        "model: the majority, the length, a bag of words. Selectivity is what is left once the probe's own strength "
        "is taken off: accuracy minus that on a task of random labels."
    )
    shown = results.percentages(table)
    one = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(
        shown.rename(columns=NAMES),
        hide_index=True,
        column_config={NAMES[name]: one for name in ("accuracy", "ci_low", "ci_high", "selectivity")}
        | {NAMES[name]: st.column_config.NumberColumn(format="%.2f") for name in ("compression", "information")},
        placeholder="",
        alt="Accuracy of every latent and baseline, with its interval",
    )
    gaps(found.gaps, table)
    exports.offer("bgt-probes", table, figure, partial(exports.as_latex, results.printable(shown)))


def gaps(all_gaps: pd.DataFrame, table: pd.DataFrame) -> None:
    """Differences of two latents on the same sentences."""
    keys = ["model", "lang", "task"]
    shown = all_gaps.merge(table[keys].drop_duplicates(), on=keys)
    if shown.empty:
        return
    st.markdown("**Difference of the two latents on the same sentences**")
    named = {**NAMES, "points": "Points", "ci_low": "from", "ci_high": "to", "mcnemar_p": "McNemar p"}
    named |= {"first": "First", "second": "minus second"}
    one = st.column_config.NumberColumn(format="%+.1f")
    st.dataframe(
        shown.rename(columns=named),
        hide_index=True,
        column_config={"Points": one, "from": one, "to": one,
                       "McNemar p": st.column_config.NumberColumn(format="%.2g")},
        alt="Accuracy of the first latent minus the second, in points, with its interval and McNemar's p",
    )  # fmt: skip
