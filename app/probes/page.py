"""The page on probes: the user trains a small probe, uploads results, and looks at all results."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc
import streamlit as st

import probes
from app.core import controls, exports, inventory, results, rows, state
from app.core.address import BOUND
from app.core.display import NOTES, failing, frame, problem, verbatim
from app.probes import chart
from bgt_core.contracts import LANGUAGE, SEMANTIC, SYNTACTIC
from bgt_core.data.examples import CREDIT, LANGS
from bgt_core.errors import BgtError
from probes import tables
from probes.data.load import EXAMPLES, label_sentences
from probes.languages import PUBLISHED, other_language
from probes.results.store import Cell, read_cells
from probes.tasks import TASKS

FIRST = "sentence-type"  # the default task: it exists in all languages, and only one latent predicts it well
COLUMNS = tomllib.loads(Path(__file__).with_name("columns.toml").read_text("utf-8"))
TITLES, ITEM_TITLES = COLUMNS["results"], COLUMNS["items"]  # name of a column -> title
ACCURACY, DIFFERENCE = "Right answers", "Latents compared"  # names of the two views of results
SHARED_FORM = ("length", "punct-num", "punct-first")  # tasks about form whose labels translations mostly share
EXPECTED = dict.fromkeys((*SHARED_FORM, "gender"), -1)  # -1: the paper expects the second latent to be more accurate
MUCH = 10  # if the KL of both latents is over 10 times the second's, the semantic latent also encodes form


def page(loaded: state.Loaded) -> None:
    with st.expander("Run a small probe, or upload results", icon=":material/add:"):
        run_small(loaded)
        upload()
    uploaded = [cell for cells in st.session_state.get("uploaded", []) for cell in cells]
    known = results.gathered(inventory.read().results, uploaded, st.session_state.get("probed", []))
    if loaded.title not in set(known.scores["model"]):
        how = f"run `bgt-probe --lang {loaded.langs[0]} --model PATH --out FILE.parquet` and upload the file"
        st.info(f"No results of this model yet. Run a small probe above, or {how}.", icon=":material/science:")
    if not known.scores.empty:
        show(known, loaded)


def run_small(loaded: state.Loaded) -> None:
    """Show a form that trains a probe on few sentences, and show its result."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lang = controls.language("Language", loaded.langs, "plang")
        tasks = results.tasks_in_order([*TASKS])
        task = st.selectbox(
            "Task", tasks, tasks.index(FIRST), format_func=results.task_title, key="ptask", width=230, **BOUND
        )
        items = controls.count("Sentences at most", [500, 1_000, 2_000], "items", 1, 160)
        seeds = controls.count("Seeds", [1, 3, 5], "pseeds", width=90)
        texts = loaded.texts() if loaded.sentences else texts_of(lang)
        name = st.selectbox("On", list(texts) or ["(none)"], key="pdata", width=220, **BOUND)
        reason = results.why_not_run(task, lang)
        pressed = st.button("Run", type="primary", icon=":material/play_arrow:", disabled=bool(reason))
    about = TASKS[task].about  # what the probe predicts, as a question about a sentence
    st.caption(f"{about[:1].upper()}{about[1:]} {reason}")
    if not pressed:
        return
    slot = st.empty()
    with slot.container(horizontal=True, vertical_alignment="center"):
        box = st.status("Computing: embedding")
        st.button("Stop", key="stop_probe", icon=":material/stop:")

    def report(line: str) -> None:
        """Show a step of the probe. Streamlit ends the script here if the user pressed Stop or left the page."""
        box.update(label=f"Computing: {line}")

    try:
        cell = run(loaded, task, lang, texts.get(name), name, items, seeds, report)
    except BgtError as error:
        slot.empty()
        problem(error)
        return
    slot.empty()
    st.session_state.setdefault("probed", []).append(cell)
    st.success("Done: this is now the first result below, marked “run here”; stored results stay.")
    named = results.gathered([], probed=[cell])
    listed(results.by_result(named.scores, named.gaps))
    for warning in cell.result.warnings:
        st.caption(f"Note: {verbatim(warning)}")
    if cell.trail["data"] == EXAMPLES:
        st.caption(CREDIT)
    elif texts.get(name) is None:
        st.caption("Note: this task labels too few of the example sentences, so it used the built-in grammar.")


def run(
    loaded: state.Loaded,
    task: str,
    lang: str,
    text: inventory.ParallelText | None,
    source: str,
    items: int,
    seeds: int,
    report: Callable[[str], None],
) -> Cell:
    """Train and test a probe as `bgt-probe` does, on at most `items` sentences of the text named `source`; without
    `text`, on the task's default data. `report` is called with each step, and stops the probe by raising."""
    config = probes.ProbeConfig(max_items=items, seeds=seeds)
    dataset = None
    if text:
        table = inventory.sentences(text, items)
        dataset = label_sentences(TASKS[task], table.loc[table["lang"] == lang, "text"].tolist(), lang, source=source)
    return probes.measure_cell(loaded, task, dataset, lang=lang, name=loaded.title, config=config, report=report)


def texts_of(lang: str) -> dict[str, inventory.ParallelText | None]:
    """Return all texts with sentences in a language by name. None stands for the built-in example sentences."""
    examples = {inventory.EXAMPLES: None} if lang in LANGS else {}
    others = {**inventory.read().texts, **inventory.of_session().uploaded}
    return examples | {name: text for name, text in others.items() if lang in text.langs and not text.credit}


def upload() -> None:
    """Let the user upload results of probes. They stay, although Streamlit clears the upload field on other pages."""
    if "result_files" not in st.session_state:
        st.session_state["earlier"] = st.session_state.get("uploaded", [])
    files = st.file_uploader(
        "Files of `bgt-probe --out FILE.parquet`", "parquet", True, key="result_files", max_upload_size=20
    )
    earlier = st.session_state["earlier"]
    if earlier:
        st.button(f"Remove earlier uploads ({len(earlier)})", on_click=st.session_state.update, kwargs={"earlier": []})
    uploaded = st.session_state["uploaded"] = list(earlier)
    for file in files:
        try:
            uploaded.append(read_cells(file.name, file.getvalue()))
        except BgtError as error:
            problem(error)


def show(known: results.ResultTables, loaded: state.Loaded) -> None:
    """Show results as accuracies or as differences between latents, filtered by model, language and task."""
    own = [model.title for model in (loaded, state.second()) if model and model.title in set(known.scores["model"])]
    st.subheader("Results" if loaded.title in own else "Results of other models")
    live = known.scores["live"].astype(bool)
    table = pd.concat([known.scores[live][::-1], known.scores[~live]])  # the latest run comes first
    usual = own or [known.scores["model"].iloc[-1]]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        view = controls.choice("Show", [ACCURACY, DIFFERENCE], "show")
        table = table[table["model"].isin(controls.chosen_models(table, loaded, usual))]
        table = narrowed(table, "lang", "Language", results.language_names)
        table = narrowed(table, "task", "Task", results.task_title)
    # the differences for the chosen models, languages and tasks, in the order of `table`
    gaps = with_paper(table[results.CELL].drop_duplicates().merge(known.gaps, on=results.CELL))
    if table.empty:
        st.info("No result matches all filters; remove one.")
        return
    if view == DIFFERENCE and gaps.empty:
        st.info("None of these results compares two latents.")
        return
    wide, long = results.by_result(table, gaps), results.percentages(table)
    if pairs := len(table[results.other_sentences(table)].drop_duplicates(["task", "lang"])):
        st.warning(NOTES["other-sentences"].format(pairs, chart.OTHERS), icon=":material/balance:")
    if view == ACCURACY:
        ahead = (wide["best"] > wide[[name for name in results.LATENTS if name in wide]].max(axis=1)).sum()
        st.markdown(f"A baseline that never saw the model is ahead of every latent in {ahead} of {len(wide)} results.")
        figure = partial(chart.probe_dots, table)
        alt = "Test accuracy of each latent with its interval, and of the best baseline. The table has the same numbers"
        about = NOTES["accuracies"]
    else:
        figure = partial(chart.gap_dots, gaps)
        alt = "Accuracy on the semantic minus that on the second latent, with intervals, in points, as in the table"
        agreement, contrary = verdict(gaps)
        st.markdown(f"**{agreement}**")
        if loaded.title in set(gaps["model"]) and (cause := reason(loaded, contrary)):
            st.caption(cause)
        about = NOTES["differences"] + NOTES["paper"] * bool(gaps["paper_gap"].notna().any())
    exports.chart("bgt-probes", figure, alt)
    st.caption(about)
    with st.expander("The same as a table, and the sentences of each result"):
        st.caption(verbatim(results.provenance(table)))
        listed(wide)
        st.markdown("**Every latent and baseline, with its interval**")
        long["task"], long["lang"] = long["task"].map(results.task_title), long["lang"].map(results.language_names)
        digits = dict.fromkeys(("accuracy", "ci_low", "ci_high", "selectivity"), "%.1f") | {"information": "%.2f"}
        frame(
            long.rename(columns=TITLES),
            "Accuracy of every latent and baseline, with its interval",
            {TITLES[name]: form for name, form in digits.items()},
            placeholder="",
        )
    caption = f"{about.partition('. ')[0]}. {results.provenance(table)}"
    exports.offer("bgt-probes", table if view == ACCURACY else gaps, figure, wide, caption=caption)
    items = {key: items for key, items in known.items.items() if key.task in set(table["task"])}
    if not items:
        st.caption("For results sentence by sentence, upload a file of `bgt-probe --out FILE.parquet`.")
        return
    with st.expander("Sentence by sentence"):
        by_sentence(items)


def narrowed(table: pd.DataFrame, column: str, title: str, name: Callable[[str], str]) -> pd.DataFrame:
    """Show a filter for the values of a column, and return the rows that pass it."""
    values = sorted(table[column].unique(), key=name)
    only = st.multiselect(title, values, format_func=name, key=f"only_{column}", placeholder="All", wrap=True, **BOUND)
    return table[table[column].isin(only)] if only else table


def with_paper(gaps: pd.DataFrame) -> pd.DataFrame:
    """Select the differences between the semantic and the second latent. Add `paper_gap`: the difference in percentage
    points that the paper reports for a model of the same two languages; NaN if the paper reports no such result."""
    own = gaps[(gaps["first"] == SEMANTIC) & gaps["second"].isin((LANGUAGE, SYNTACTIC))]
    cells = [
        PUBLISHED.get((other_language(row.lang, row.langs.split()), row.task, row.lang))
        if row.second == LANGUAGE else None
        for row in own.itertuples()
    ]  # fmt: skip
    return own.assign(paper_gap=[float("nan") if cell is None else cell[0] - cell[1] for cell in cells])


def verdict(gaps: pd.DataFrame) -> tuple[str, list[str]]:
    """Return a sentence that counts the results that agree with the paper's claim, and the tasks that contradict it."""
    signs = {results.MEANING: 1, results.ADDED: -1}
    expected = [EXPECTED.get(task, signs.get(results.task_group(task), 0)) for task in gaps["task"]]
    low, high = (gaps[end] * expected for end in ("ci_low", "ci_high"))
    claimed, agree, against = sum(sign != 0 for sign in expected), low.clip(upper=high) > 0, high.clip(lower=low) < 0
    contrary = results.tasks_in_order(gaps.loc[against, "task"].unique().tolist())
    named = f" ({', '.join(results.task_title(task).lower() for task in contrary)})" if contrary else ""
    unclear = claimed - agree.sum() - against.sum()
    return NOTES["claim"].format(claimed, agree.sum(), against.sum(), named, unclear), contrary


def reason(loaded: state.Loaded, contrary: Sequence[str]) -> str:
    """Explain why a semantic latent with much information predicts form better than the paper claims, or return ""."""
    own, both = results.nats(loaded.log, loaded.langs)
    if set(SHARED_FORM).isdisjoint(contrary) or not both > MUCH * own:
        return ""
    return NOTES["much-information"].format(model=loaded.title, nats=both - own)


def listed(wide: pd.DataFrame) -> None:
    """Show a table of results. The numbers are next to the task, so that both fit on a phone."""
    latents = {name: f"{name.capitalize()}, %" for name in results.LATENTS if name in wide}
    formats = dict.fromkeys((*latents.values(), TITLES["best"]), "%.1f")
    formats |= {TITLES[name]: "%+.1f" for name in ("points", "ci_low", "ci_high", "paper_gap")}
    frame(
        wide.rename(columns=TITLES | latents),
        "Accuracy of each latent in percent, their difference in points with its interval and p, the best baseline",
        formats,
        {title: controls.width(title) for title in ("Language", *formats)},
        {"Task": {"width": 150, "pinned": True}, "p": {"width": 70, "alignment": "right"}},
        placeholder="",
    )


def by_sentence(items: Mapping[results.Key, Cell]) -> None:
    """Show the predictions for each test sentence of one result, and compare two latents or baselines."""

    def title_of(key: results.Key) -> str:
        tested = pc.count_distinct(items[key].predictions["item"]).as_py()
        title = f"{results.task_title(key.task)}, {rows.language_name(key.lang)}, {key.model}"
        return f"{title}, {tested:,} sentences" + (", run here" if key.live else "")

    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = st.selectbox("Of", list(items), format_func=title_of, key="items_of", **BOUND)
        cell = items[key]
        names = cell.predictions["predictor"].unique().to_pylist()
        name = st.selectbox("Latent or baseline", names, key="items_name", width=200, **BOUND)
        others = [other for other in names if other != name]
        other = st.selectbox("Compared with", others, key="items_other", width=200, **BOUND)
    if other:
        with failing():
            gap = tables.gap(cell, name, cell, other)
            interval = f"95%: {gap.ci_low:+.1f} to {gap.ci_high:+.1f}; p {results.p_value(gap.p)}"
            head, points = verbatim(f"{name} minus {other}, points"), f"{gap.points:+z.1f}"
            st.metric(head, points, interval, "off", border=True, delta_arrow="off", width="content")
    # If several probes have tested a sentence, the prediction of the first is shown. "pvi" is the pointwise
    # V-information of the latent about the sentence's label, in bits (Ethayarajh et al. 2022).
    predictions = cell.predictions.filter(pc.equal(cell.predictions["predictor"], name)).to_pandas()
    sentences = predictions.drop_duplicates("item")[["sentence", "label", "predicted", "pvi"]]
    sentences = sentences.sort_values("pvi", ascending=False, kind="stable", ignore_index=True)
    frame(
        sentences[list(ITEM_TITLES)].rename(columns=ITEM_TITLES),
        "Test sentences with their label, the predicted label, and the pointwise V-information in bits",
        {ITEM_TITLES["pvi"]: "%+.2f"},
        {ITEM_TITLES["pvi"]: 85, "Sentence": 500},
    )
    st.caption(NOTES["pvi"])
    exports.offer(f"bgt-items-{key.task}-{key.lang}-{name}", sentences)
