"""The page about a model: its origin, scores, training, files, settings and licence."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, exports, inventory, rows, state
from app.core.display import frame, table, verbatim
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import split_langs
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.splitting.fit import ROWS, verdict
from probes.results.store import MAJORITY

PROBE_TITLES = {"punct-num": "Punctuation"}  # titles of probing tasks that differ from the task's name
HERE = Path(__file__).parent
BGT = "wieting2020bilingual"
ADDRESSES = {  # key in `papers.bib` -> URL of the paper
    BGT: "https://aclanthology.org/2020.emnlp-main.122/",
    "chen2019multitask": "https://aclanthology.org/N19-1254/",
    "wieting2017backtranslated": "https://aclanthology.org/D17-1026/",
}
PAPERS = {  # recipe -> key of its paper; all other recipes are from the BGT paper
    "vgvae": "chen2019multitask", **dict.fromkeys(("avg", "gran", "translator"), "wieting2017backtranslated"),
}  # fmt: skip
ENDS = ("low", "high")  # keys beside "score" in a card: both ends of the score's confidence interval
ONE_DIGIT = re.compile(r"%|x 100|chrF|BLEU")  # units whose numbers are rounded to one decimal
TITLES = {
    "data": "Training data", "protocol": "How it was measured", "fidelity": "Fidelity of generated text",
    "kept": "Negation and numbers kept", "transfer": "Style taken over", "roles": "Who did what to whom",
    "command": "Trained with", "training": "Training took",
}  # fmt: skip
PARTS = {"vectors": "the vectors", "shared": "the semantic latent", "private": "the language latent"}
SPLIT_SCORES = {  # name of a measure of split encoders -> title in the table
    "found": "Translation found, %", "pool": "of all languages, %", "language_told": "Language told, %",
}  # fmt: skip
WRITING, TRAINING, DATA = "Generated text", "Training", "Data"
TABS = {  # the fields of the model card that each tab shows
    WRITING: ("fidelity", "kept", "transfer", "roles"),
    TRAINING: ("command", "training"),
    DATA: ("data", "licence", "limits"),
}
FACT = 160  # width in pixels of the box that shows one number
WIDE = 4  # maximum number of columns with scores; more are shown in further tables, to fit the page
LONG = 12  # a table with more rows than this scrolls
HELP_OF = {
    "Updates": "Number of updates in the last training, which may have started from another model.",
    "Checkpoint": "The start of the SHA-256 hash of model.safetensors. The names of exported files contain it.",
}
COLLAPSED = 0.1  # nats; a latent with a smaller KL holds almost no information about its sentence


def page(loaded: state.Loaded) -> None:
    models = [model for model in (loaded, state.second()) if model]
    for column, model in zip(st.columns(len(models), gap="large"), models, strict=True):
        with column:
            controls.model_title(model)
            one(model)


def one(loaded: state.Loaded) -> None:
    """Show the card of one model."""
    if not loaded.info:
        outside(loaded)
        return
    info = loaded.info
    facts = {"Languages": str(len(loaded.langs)), "Parameters": f"{info['parameters'] / 1e6:.1f} M"}
    facts |= {"Updates": f"{info['step']:,}", "Checkpoint": loaded.short}
    with st.container(horizontal=True):  # a horizontal container keeps two numbers side by side on a phone
        for title, value in facts.items():
            st.metric(title, value, border=True, help=HELP_OF.get(title), width=FACT)
    st.caption(f"Reads {loaded.translates or loaded.languages}.")
    card = {name: value for name, value in info.get("card", {}).items() if name not in ("scores", "probes", "schema")}
    of_tab = {name: {key: card.pop(key) for key in keys if key in card} for name, keys in TABS.items()}
    if not of_tab[WRITING]:
        del of_tab[WRITING]
    measured, *others, files = st.tabs(["Scores", *of_tab, "Files and settings"])
    with measured:
        scores(loaded)
        if not info.get("card"):
            st.info("This checkpoint has no card; `bgt export --card FILE` adds one: data, licences, limits.")
        records(card)
    for tab, (name, kept) in zip(others, of_tab.items(), strict=True):
        with tab:
            if name == TRAINING:
                training(loaded)
            records(kept)
    with files:
        stored(loaded)


def stored(loaded: state.Loaded) -> None:
    """Show the checkpoint's files and settings, and how to cite it."""
    info = loaded.info
    st.subheader("Files")
    files = [(name, f"{size / 1e6:.1f}", info["files"][name]) for name, size in info["bytes"].items()]
    table(pd.DataFrame(files, columns=["File", "MB", "SHA-256"]), "The files of this checkpoint, with sizes and hashes")
    st.caption("Each hash was checked when the model was opened.")
    st.subheader("Settings")
    given = {"recipe": info["recipe"], **info["arguments"]}
    shown = {name: inventory.public(readable(value)) for name, value in given.items()}
    explained = (HERE / "settings.tsv").read_text("utf-8").splitlines()  # columns: end of a setting's name; meaning
    known = dict(line.split("\t") for line in explained)
    settings = pd.DataFrame(shown.items(), columns=["Setting", "Value"])
    settings["Meaning"] = [next((known[end] for end in known if name.endswith(end)), "") for name in shown]
    frame(settings, "Settings of the recipe that trained this model", widths={"Value": 95, "Meaning": 400}, height=420)
    exports.offer(f"bgt-settings-{loaded.short}", settings, latex=settings)
    st.subheader("Cite")
    st.code(paper(loaded)[1], language="bibtex", wrap_lines=True)


def outside(loaded: state.Loaded) -> None:
    """Show what is known about a model without a card: an encoder from another library, or a split encoder."""
    widths = {latent: loaded.embed([], lang=loaded.langs[0], latent=latent).shape[1] for latent in loaded.latents}
    known = {f"Units of the {latent} latent": f"{width:,}" for latent, width in widths.items()}
    known |= {"Languages": loaded.reads, "Fingerprint": loaded.fingerprint[:8] or loaded.short}
    if about := loaded.about:
        st.markdown(f"{loaded.device}. **{verdict(about['scores'])}**")
        shown = pd.DataFrame(about["scores"]).T.reindex(columns=list(SPLIT_SCORES)) * 100
        shown.insert(0, "part", shown.index.map(PARTS))
        digits = dict.fromkeys(SPLIT_SCORES.values(), "%.1f")
        frame(shown.rename(columns={"part": "Of", **SPLIT_SCORES}), "Scores of the split on held-out pairs", digits)
        known |= {"Method": about["method"], "Fitted on": f"{about['rows']:,} pairs"}
        known |= {"Measured on": f"{min(ROWS, about['held_out_rows']):,} other pairs"}
    else:
        st.info(f"This is an external encoder: its card, training and settings are unknown. {loaded.device}.")
    table(pd.DataFrame(known.items(), columns=["", "Known"]), "The known properties of this encoder")


def records(card: Mapping[str, object]) -> None:
    """Show the fields of the model card: a list of dicts, such as the data sets, as a table; other values as text."""
    for name, value in card.items():
        title = TITLES.get(name, name.capitalize())
        st.subheader(verbatim(title))
        if not (isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value)):
            st.text(readable(value))
            continue
        rows_of = pd.DataFrame(value, dtype=object).map(lambda cell: "" if cell != cell else readable(cell))
        rows_of = rows_of.rename(  # capitalise titles that begin with a lower-case word, but not acronyms such as BLEU
            columns=lambda title: title[:1].upper() + title[1:] if title.split(" ")[0].islower() else title
        )
        measured = [name for name, column in rows_of.items() if column.str.contains("[", regex=False).any()]
        for part in np.array_split(measured, -(-len(measured) // WIDE) or 1):
            shown, alt = rows_of.drop(columns=[*{*measured} - {*part}]), f"The model's card: {title}"
            frame(shown, alt, height=360) if len(shown) > LONG else table(shown, alt)


def scores(loaded: state.Loaded) -> None:
    """Show the scores of the model card as a table."""
    card = loaded.info.get("card", {})
    if not card.get("scores"):
        return
    st.subheader("Measured")
    shown = score_table(card["scores"], intervals(card))
    table(shown, "Scores of this model, one row per measure")
    st.caption("In brackets: 95% intervals, for scores whose card gives enough to compute them.")
    exports.offer(f"bgt-scores-{loaded.short}", shown, latex=shown)


def training(loaded: state.Loaded) -> None:
    """Show the metrics of the last evaluation on held-out pairs. The page's export has all evaluations."""
    reports = [row for row in loaded.log if row.get("kind") == "valid"]
    # metrics of columns such as "en2", the second text in a language, are only in the page's export
    held_out = {name: value for name, value in (reports or [{}])[-1].items() if not any(map(str.isdigit, name))}
    if not any(name == "elbo" or name.startswith(("retrieval/", "kl/")) for name in held_out):
        return
    st.subheader("Training")
    st.markdown(f"Measured on pairs held out of the training data, after {held_out['step']:,} steps.")
    left, right = st.columns(2, gap="large")
    found_by = {
        " → ".join(map(rows.language_name, split_langs(name.removeprefix("retrieval/")))): f"{value:.1%}"
        for name, value in held_out.items()
        if name.startswith("retrieval/")
    }
    if found_by:
        with left:
            titles = ["The nearest sentence is its translation", "P@1"]
            table(pd.DataFrame(found_by.items(), columns=titles), "Precision at 1 among the held-out pairs")
    if parts := bound(held_out):
        with right:
            shown = pd.DataFrame(parts, columns=["Bound and its parts", "Nats per pair"])
            table(shown, "The ELBO and the KL of each latent, nats per pair")
    if "elbo" in held_out:
        st.caption(
            "The ELBO bounds the log probability of a pair from below: it is negative, and higher is better. It counts "
            "every KL in full, while training weighs the KL of each latent differently."
        )
    exports.offer(f"bgt-training-{loaded.short}", pd.DataFrame(reports).drop(columns=["kind", "steps"]))


def bound(held_out: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the ELBO on held-out pairs, and the KL of each latent that has a prior, as (title, value in nats)."""
    parts = [("ELBO", f"{held_out['elbo']:.1f}")] if "elbo" in held_out else []
    for name, value in held_out.items():
        latent, _, lang = name.removeprefix("kl/").partition("/")
        if name.startswith("kl/") and value:  # the KL is exactly 0 for a latent without a prior
            of = "semantic latent" if latent == SEMANTIC else f"latent of {rows.language_name(latent)}"
            of += f", {rows.language_name(lang)}" * bool(lang)
            parts.append((f"KL of the {of}", f"{value:.1f}" + " (possible collapse)" * (value < COLLAPSED)))
    return parts


def paper(loaded: state.Loaded) -> tuple[str, str]:
    """Return the URL of the paper that introduced the recipe's model, and the paper's BibTeX entry."""
    name = PAPERS.get(loaded.info.get("recipe", ""), BGT)
    entries = (HERE / "papers.bib").read_text("utf-8").strip().split("\n\n")
    return ADDRESSES[name], next(entry for entry in entries if name in entry)


def readable(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return ", ".join(map(readable, value)) if isinstance(value, list) else str(value).replace("`", "")


def cell(measure: str, value: object, ends: tuple[float, float] | None) -> str:
    """Format a value as text. A number gets as many decimals as suit its unit, and its confidence interval if known."""
    if not isinstance(value, int | float) or value != value:
        return "" if value is None or value != value else str(value)
    form = "z.1f" if ONE_DIGIT.search(measure) or abs(value) > 1 else "z.2f"
    interval = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else ""
    return f"{value:{form}}{interval}"


def intervals(card: Mapping[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return each score's confidence interval in percent, by (row, column) of the table of scores, if known."""
    ends = {}
    how = next((str(row["how"]) for row in card.get("protocol", []) if row["score"] == "Retrieval"), "")
    among = re.search(r"among ([\d,]+) translations", how)
    count = int(among[1].replace(",", "")) if among else 0
    for measure, row in card["scores"].items():
        if count and measure.startswith("Retrieval") and isinstance(row, Mapping):
            for column, value in row.items():
                low, high = wilson(value / 100 * count, count)
                ends[measure, column] = (100 * low, 100 * high)
    for row in card.get("probes", []):
        title = PROBE_TITLES.get(row["task"], row["task"].capitalize())
        column = "baseline" if row["latent"] == MAJORITY else row["latent"]
        ends[f"{title} probe, accuracy %", column] = (100 * row["ci_low"], 100 * row["ci_high"])
    return ends


def score_table(
    measures: Mapping[str, float | Mapping[str, float]], intervals: Mapping[tuple[str, str], tuple[float, float]]
) -> pd.DataFrame:
    """Return a table of formatted scores, one row per measure. The function `intervals` returns `intervals`."""
    table = {name: value if isinstance(value, Mapping) else {"score": value} for name, value in measures.items()}
    columns = dict.fromkeys(column for row in table.values() for column in row if column not in ENDS)
    lines = []
    for measure, row in table.items():
        own = {"score": (row["low"], row["high"])} if {*ENDS} <= {*row} else {}
        ends = {column: intervals.get((measure, column)) or own.get(column) for column in columns}
        lines.append([measure, *(cell(measure, row.get(column), ends[column]) for column in columns)])
    return pd.DataFrame(lines, columns=["Measure", *map(str.capitalize, columns)])
