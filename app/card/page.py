"""The page about a model: its origin, scores, training, files, settings and licence."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app.core import controls, exports, inventory, results, rows, state
from app.core.display import NOTES, frame, table, verbatim
from bgt_core.contracts import LANGUAGE
from bgt_core.data.columns import split_langs
from bgt_core.evaluation.bootstrap import wilson
from bgt_core.splitting.fit import ROWS, verdict
from probes.results.store import MAJORITY

HERE = Path(__file__).parent
FIELDS = tomllib.loads((HERE / "fields.toml").read_text("utf-8"))
ENDS = ("low", "high")  # keys beside "score" in a card: both ends of the score's confidence interval
ONE_DIGIT = re.compile(r"%|x 100|chrF|BLEU")  # units whose numbers are rounded to one decimal
WRITING, TRAINING = "Generated text", "Training"  # names of tabs
FACT = 160  # width in pixels of the box that shows one number
WIDE = 3  # maximum number of columns with scores; more are shown in further tables, to fit the page
WRITTEN, BY = "written", "by"  # columns of scores of generated text: its language; the model or a baseline
FROM = "Generated from"
HASH = "The start of the hash of model.safetensors. Names of exported files contain it."
COLLAPSED = 0.1  # nats; a latent with a smaller KL holds almost no information about its sentence


def page(loaded: state.Loaded) -> None:
    second = state.second()
    if second and second.short == loaded.short:
        st.caption(f"{verbatim(second.title)} has the same weights: its card is the same.")
        second = None
    models = [model for model in (loaded, second) if model]
    for column, model in zip(st.columns(len(models), gap="large"), models, strict=True):
        with column:
            controls.model_title(model)
            (one if model.info else outside)(model)


def one(loaded: state.Loaded) -> None:
    """Show the card of one model."""
    info = loaded.info
    facts = {"Languages": str(len(loaded.langs)), "Parameters": f"{info['parameters'] / 1e6:.1f} M"}
    facts |= {"Updates": f"{info['step']:,}", "Checkpoint": loaded.short}
    with st.container(horizontal=True):  # a horizontal container keeps two numbers side by side on a phone
        for title, value in facts.items():
            st.metric(title, value, border=True, help=HASH if title == "Checkpoint" else None, width=FACT)
    st.markdown(f"Reads {loaded.translates or loaded.languages}. {origin(info)}")
    card = {name: value for name, value in info.get("card", {}).items() if name not in ("scores", "probes", "schema")}
    every = {name: {key: card.pop(key) for key in keys if key in card} for name, keys in FIELDS["tabs"].items()}
    of_tab = {name: kept for name, kept in every.items() if kept or name != WRITING}
    measured, *others, files = st.tabs(["Scores", *of_tab, "Files and settings"])
    with measured:
        scores(loaded)
        if not info.get("card"):
            st.info("This checkpoint has no card; `bgt export --card FILE` adds one: data, licences, limits.")
        records(card, loaded.short)
    for tab, (name, kept) in zip(others, of_tab.items(), strict=True):
        with tab:
            if name == TRAINING:
                training(loaded)
            records(kept, loaded.short)
    with files:
        stored(loaded)


def origin(info: Mapping[str, Any]) -> str:
    """Say in a few sentences how a model was made, from what its checkpoint stores."""
    data = [row for row in info.get("card", {}).get("data", []) if isinstance(row, Mapping)]
    units = {"pairs": "pairs", "sentences": "single sentences"}
    counts = {unit: sum(row[unit] for row in data if isinstance(row.get(unit), int)) for unit in units}
    seen = " and ".join(f"{count:,} {units[unit]}" for unit, count in counts.items() if count)
    teachers = ", ".join(str(row["source"]).partition(",")[0] for row in data if row.get("kind") == "teacher")
    earlier = ", starting from earlier weights" * bool(info["arguments"].get("init_from"))
    taught = f", on {seen}" * bool(seen) + f". {verbatim(teachers)} was its teacher" * bool(teachers)
    made = f"It was trained with the recipe {info['recipe']} for {info['step']:,} updates{earlier}{taught}"
    steps = ", and README.md beside the weights has every step" * (Path(info["folder"]) / "README.md").is_file()
    return f"{made}. *Training* and *Data* say more{steps}."


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
    known |= {"Languages": loaded.reads, "Hash of its weights": loaded.fingerprint[:8] or loaded.short}
    if about := loaded.about:
        st.markdown(f"{loaded.device}. **{verdict(about['scores'])}**")
        titles = FIELDS["split_scores"]
        shown = 100 * pd.DataFrame(about["scores"]).T.reindex(columns=list(titles)).rename(columns=titles)
        shown.insert(0, "Of", shown.index.map(FIELDS["parts"]))
        frame(shown, "Scores of the split on held-out pairs", dict.fromkeys(titles.values(), "%.1f"))
        known |= {"Method": about["method"], "Made from": f"{about['rows']:,} pairs"}
        known |= {"Measured on": f"{min(ROWS, about['held_out_rows']):,} other pairs"}
    else:
        st.info(f"This is an external encoder: its card, training and settings are unknown. {loaded.device}.")
    table(pd.DataFrame(known.items(), columns=["", "Known"]), "The known properties of this encoder")


def records(card: Mapping[str, object], key: str) -> None:
    """Show the fields of the model card: a list of dicts, such as the data sets, as a table; other values as text. The
    user chooses the language of the text whose scores are shown."""
    lists = {name: value for name, value in card.items() if isinstance(value, list) and value}
    tables = {
        name: pd.DataFrame(lines, dtype=object).map(lambda cell: "" if cell != cell else readable(cell))
        for name, lines in lists.items() if all(isinstance(line, Mapping) for line in lines)
    }  # fmt: skip
    langs = dict.fromkeys(lang for shown in tables.values() for lang in shown.get(WRITTEN, []))
    lang = controls.language("Language of the text", [*langs], f"written_{key}") if langs else ""
    for name, value in card.items():
        title = FIELDS["titles"].get(name, name.capitalize())
        if WRITTEN in tables.get(name, ()):
            in_lang = tables[name][tables[name][WRITTEN] == lang].copy()
            with st.expander(verbatim(title), expanded=name == next(iter(card))):
                generated(in_lang, f"The model's card: {title}") if len(in_lang) else st.text("Not measured.")
            continue
        st.subheader(verbatim(title))
        if name in tables:
            capital = [each.capitalize() if each.islower() else each for each in tables[name]]  # not acronyms
            table(tables[name].set_axis(capital, axis=1), f"The model's card: {title}")
        else:
            st.text(readable(value))


def generated(scores: pd.DataFrame, alt: str) -> None:
    """Show scores of generated text, a row for each kind of text, with the scores of baselines in parentheses."""
    known = pd.read_csv(HERE / "columns.tsv", sep="\t", index_col="column", keep_default_na=False)
    titles = {name: known["title"].get(name, name) for name in scores}
    kinds = [name for name, title in titles.items() if "{}" in title]
    measured = [name for name in scores if name not in (*kinds, WRITTEN, BY)]
    named = scores[kinds].map(lambda value: results.task_title(rows.language_name(value))).to_dict("records")
    scores[FROM] = ["; ".join(titles[of].replace("{}", row[of]) for of in row) for row in named]
    again = scores.groupby([FROM, *{BY} & {*scores}]).cumcount()  # a kind of text may have results on several texts
    joined = scores.groupby([FROM, again], sort=False)[measured].agg(
        lambda cells: " ".join([cells.iloc[0], *(f"({cell.partition(' ')[0]})" for cell in cells[1:] if cell)])
    )
    shown = joined.droplevel(1).reset_index().rename(columns=titles)
    parts = [shown.columns[at : at + WIDE] for at in range(1, len(shown.columns), WIDE)]
    for tab, part in zip(st.tabs([" · ".join(part) for part in parts] or [FROM]), parts, strict=False):
        with tab:
            table(shown[[FROM, *part]], alt)
    about = known["meaning"][[name for name in known.index if name in scores and known["meaning"][name]]]
    st.caption("\n".join(f"- **{known['title'][name]}:** {text}." for name, text in about.items()))


def scores(loaded: state.Loaded) -> None:
    """Show the scores of the model card as a table."""
    card = loaded.info.get("card", {})
    if not card.get("scores"):
        return
    st.subheader("Measured")
    shown = score_table(card)
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
    found = [
        (" → ".join(map(rows.language_name, split_langs(name.removeprefix("retrieval/")))), f"{value:.1%}")
        for name, value in held_out.items()
        if name.startswith("retrieval/")
    ]
    tables = {("Translation found", "P@1"): found, ("Bound and its parts", "Nats per pair"): bound(held_out)}
    for column, (titles, lines) in zip(st.columns(2, gap="large"), tables.items(), strict=True):
        if lines:
            with column:
                table(pd.DataFrame(lines, columns=titles), f"{', '.join(titles)}, of held-out pairs")
    if "elbo" in held_out:
        st.caption(NOTES["elbo"])
    exports.offer(f"bgt-training-{loaded.short}", pd.DataFrame(reports).drop(columns=["kind", "steps"]))


def bound(held_out: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the ELBO on held-out pairs and its parts, each as (title, value in nats)."""
    parts = [("ELBO", f"{held_out['elbo']:.1f}")] if "elbo" in held_out else []
    for name, value in held_out.items():
        kind, *of = name.split("/")
        if kind == "reconstruct":
            parts.append((f"Negative log-likelihood, {rows.language_name(of[0])}", f"{value:.1f}"))
        elif kind == "kl" and value:  # the KL is exactly 0 for a latent without a prior
            latent = next((each for each in of if each in results.LATENTS), LANGUAGE)
            langs = "".join(f", {rows.language_name(each)}" for each in of if each != latent)
            collapsed = " (possible collapse)" * (value < COLLAPSED)
            parts.append((f"KL of the {latent} latent{langs}", f"{value:.1f}{collapsed}"))
    return parts


def paper(loaded: state.Loaded) -> tuple[str, str]:
    """Return the URL of the paper that introduced the recipe's model, and the paper's BibTeX entry."""
    name = FIELDS["papers"].get(loaded.info.get("recipe", ""), "wieting2020bilingual")
    entries = (HERE / "papers.bib").read_text("utf-8").strip().split("\n\n")
    entry = next(entry for entry in entries if name in entry)
    return entry.partition("url       = {")[2].partition("}")[0], entry


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
        if isinstance(row, Mapping) and {*ENDS} <= {*row}:
            ends[measure, "score"] = (row["low"], row["high"])
        if count and measure.startswith("Retrieval") and isinstance(row, Mapping):
            for column, value in row.items():
                low, high = wilson(value / 100 * count, count)
                ends[measure, column] = (100 * low, 100 * high)
    for row in card.get("probes", []):
        title = "Punctuation" if row["task"] == "punct-num" else row["task"].capitalize()
        column = "baseline" if row["latent"] == MAJORITY else row["latent"]
        ends[f"{title} probe, accuracy %", column] = (100 * row["ci_low"], 100 * row["ci_high"])
    return ends


def score_table(card: Mapping[str, Any]) -> pd.DataFrame:
    """Return a table of the card's scores as text, one row per measure."""
    table = {name: value if isinstance(value, Mapping) else {"score": value} for name, value in card["scores"].items()}
    columns = dict.fromkeys(column for row in table.values() for column in row if column not in ENDS)
    lines, ends = [], intervals(card)
    for measure, row in table.items():
        cells = (cell(measure, row.get(column), ends.get((measure, column))) for column in columns)
        lines.append([measure, *cells])
    return pd.DataFrame(lines, columns=["Measure", *map(str.capitalize, columns)])
