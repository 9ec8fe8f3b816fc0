"""The page on probes: train a small probe, upload results, and look at all results."""

from __future__ import annotations

import streamlit as st

from app.core import controls, corpora, startup, state
from app.core.address import BOUND
from app.core.markdown import problem, verbatim
from app.core.results import gather, reading, task_names
from app.probes import compute, results
from bgt_core.data.examples import CREDIT, LANGS
from bgt_core.errors import BgtError
from probes.data.load import EXAMPLES
from probes.results.store import read_cells
from probes.tasks import TASKS

FIRST = "length"  # the task shown first; it is defined for all languages and sentences


def page(loaded: state.Loaded) -> None:
    run_small(loaded)
    with st.expander("Upload results of `bgt-probe`"):
        upload()
    known = gather.all_results()
    if loaded.title not in set(known.scores["model"]):
        st.info(
            "No results of this model yet. Run a small probe above, or a whole one from the command line:",
            icon=":material/science:",
        )
        st.code(gather.COMMAND.format(lang=loaded.langs[0], model="PATH"), language="sh")
    if not known.scores.empty:
        results.page(known, loaded)


def run_small(loaded: state.Loaded) -> None:
    """Show the form that trains a probe, and the result."""
    with st.container(border=True):
        st.markdown("**Run a small probe**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            langs = loaded.langs
            lang = controls.language("Language", langs, "plang")
            tasks = task_names.ordered([*TASKS])
            task = st.selectbox(
                "Task", tasks, tasks.index(FIRST), format_func=task_names.title, key="ptask", width=230, **BOUND
            )
            items = controls.count("Sentences at most", [500, 1_000, 2_000], "items", 1, 160)
            seeds = controls.count("Seeds", [1, 3, 5], "pseeds", width=90)
            texts = texts_of(lang)
            name = st.selectbox("On", list(texts) or ["(none)"], key="pdata", width=220, **BOUND)
            reason = task_names.why_not(task, lang)
            pressed = st.button("Run", type="primary", icon=":material/play_arrow:", disabled=bool(reason))
        st.caption(f"{task_names.question(task)} {reason}")
        if not pressed:
            return
        slot = st.empty()
        with slot.container(horizontal=True, vertical_alignment="center"):
            box = st.status("Computing: embedding")
            st.button("Stop", key="stop_probe", icon=":material/stop:")

        def report(line: str) -> None:
            """Show a step; Streamlit ends the script here if the user pressed Stop or left the page."""
            box.update(label=f"Computing: {line}")

        try:
            cell = compute.run(loaded, task, lang, texts.get(name), name, items, seeds, report)
        except BgtError as error:
            slot.empty()
            problem(error)
            return
        slot.empty()
        st.session_state.setdefault("probed", []).append(cell)
        st.success("Done: this is now the first result below, marked “run here”; stored results stay.")
        named = gather.gathered([], probed=[cell])
        results.listed(reading.by_result(named.scores, named.gaps))
        for warning in cell.result.warnings:
            st.caption(f"Note: {verbatim(warning)}")
        if cell.trail["data"] == EXAMPLES:
            st.caption(CREDIT)
        elif texts.get(name) is None:
            st.caption("Note: this task labels too few of the example sentences, so it used the built-in grammar.")


def texts_of(lang: str) -> dict[str, startup.ParallelText | None]:
    """Return the texts with sentences of a language, also the user's; None stands for the built-in examples."""
    examples = {startup.EXAMPLES: None} if lang in LANGS else {}
    others = {**startup.read().texts, **corpora.of_session().uploaded}
    return examples | {name: text for name, text in others.items() if lang in text.langs and not text.credit}


def upload() -> None:
    """Upload files, which stay for this session; the uploader itself is empty when the page is opened again."""
    if "result_files" not in st.session_state:
        st.session_state["earlier"] = st.session_state.get("uploaded", [])
    files = st.file_uploader(
        "Files of `bgt-probe --out FILE.parquet`", "parquet", True, key="result_files", max_upload_size=20
    )
    earlier = st.session_state["earlier"]
    if earlier:
        st.button(f"Remove {len(earlier)} uploaded before", on_click=st.session_state.update, kwargs={"earlier": []})
    uploaded = st.session_state["uploaded"] = list(earlier)
    for file in files:
        try:
            uploaded.append(read_cells(file.name, file.getvalue()))
        except BgtError as error:
            problem(error)
