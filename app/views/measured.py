"""What was measured of a model: its stored scores with their intervals, and how it did while it was trained."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from app import exports, rows, state
from app.charts import curves, theme
from app.verbatim import written_out
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import split_langs
from bgt_core.evaluation.bootstrap import wilson

COLLAPSED = 0.1  # nats: a latent that costs less carries next to nothing
UNTRAINED = "untrained "  # starts the columns of a card that are of the model before training
ENDS = ("low", "high")  # columns of a card that hold an interval of its column "score"
ONE_DIGIT = re.compile(r"%|x 100|chrF|BLEU")  # scores of these units have one decimal, cosines and correlations two


def scores(loaded: state.Loaded) -> None:
    """A table of what was measured: {measure: number} or {measure: {column: number}}."""
    measures = loaded.info.get("card", {}).get("scores")
    if not measures:
        return
    st.subheader("Measured")
    table = {name: value if isinstance(value, Mapping) else {"score": value} for name, value in measures.items()}
    intervals = {**retrieval_intervals(loaded), **probe_intervals(loaded)}
    names = dict.fromkeys(column.removeprefix(UNTRAINED) for row in table.values() for column in row)
    columns = [column for column in names if column not in ENDS]
    lines = []
    for measure, row in table.items():
        for before, title in (("", measure), (UNTRAINED, f"{measure}, untrained")):  # more columns would fit no phone
            keys = [before + column for column in columns]
            ends = [intervals.get((measure, key)) or own_ends(row, key) for key in keys]
            if {*keys} & {*row}:
                lines.append([title, *(cell(measure, row.get(key), end) for key, end in zip(keys, ends, strict=True))])
    shown = pd.DataFrame(lines, columns=["Measure", *map(str.capitalize, columns)])
    st.table(written_out(shown), border="horizontal", hide_index=True, alt="Scores of this model, one row per measure")
    st.caption(
        "In brackets: 95% intervals, where the card keeps what they follow from. Untrained: the same model before "
        "training. Retrieval is of a published test set of 1,000 pairs; what is found among the pairs held out of "
        "training is further down, and is another set."
        if intervals
        else "In brackets: 95% intervals, where the card keeps them."
    )
    exports.offer(f"bgt-scores-{loaded.short}", shown, latex=shown)


def cell(measure: str, value: object, ends: tuple[float, float] | None) -> str:
    """A number with the decimals of its measure's unit, and its interval."""
    if value is None or isinstance(value, str) or not isinstance(value, int | float) or value != value:
        return "" if value is None or value != value else str(value)
    form = "z.1f" if ONE_DIGIT.search(measure) or abs(value) > 1 else "z.2f"
    interval = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if ends else ""
    return f"{value:{form}}{interval}"


def own_ends(row: Mapping[str, float], column: str) -> tuple[float, float] | None:
    return (row["low"], row["high"]) if column == "score" and {*ENDS} <= {*row} else None


def retrieval_intervals(loaded: state.Loaded) -> dict[tuple[str, str], tuple[float, float]]:
    """Wilson's intervals of precision at 1, in percent, where the card says among how many translations."""
    card = loaded.info["card"]
    how = next((str(row["how"]) for row in card.get("protocol", []) if row["score"] == "Retrieval"), "")
    among = re.search(r"among ([\d,]+) translations", how)
    if not among:
        return {}
    count = int(among[1].replace(",", ""))
    ends = {}
    for measure, row in card["scores"].items():
        if measure.startswith("Retrieval") and isinstance(row, Mapping):
            for column, value in row.items():
                low, high = wilson(value / 100 * count, count)
                ends[measure, column] = (100 * low, 100 * high)
    return ends


def probe_intervals(loaded: state.Loaded) -> dict[tuple[str, str], tuple[float, float]]:
    """The intervals of probes, in percent, by the measure and column that the card has their accuracies in."""
    names = {"majority": "baseline"}
    return {
        (f"{row['task'].capitalize()} probe, accuracy %", names.get(row["latent"], row["latent"])): (
            100 * row["ci_low"],
            100 * row["ci_high"],
        )
        for row in loaded.info["card"].get("probes", [])
    }


def training(loaded: state.Loaded) -> None:
    """The last report on held-out pairs, and the curves that led there."""
    reports = [row for row in loaded.log if row.get("kind") == "valid"]
    held_out = reports[-1] if reports else None
    if not held_out or not any(name == "elbo" or name.startswith(("retrieval/", "kl/")) for name in held_out):
        return
    st.subheader("While it was trained")
    st.markdown(f"On pairs held out of its own training data, after {held_out['step']:,} steps.")
    left, right = st.columns(2, gap="large")
    with left:
        searched(held_out)
    with right:
        latents(held_out)
    if len(reports) < 2 or "elbo" not in held_out:  # no prior, no ELBO
        return
    elbo = partial(curves.elbo_curve, reports)
    st.plotly_chart(
        elbo(state.theme()), alt="The ELBO of held-out pairs over training steps", config=theme.tools("bgt-elbo")
    )
    st.caption(
        "The ELBO bounds the log probability of a pair from below: it is negative, and higher is better. It counts "
        "every KL in full, while training weighs the KL of each latent differently: it may fall while the model "
        "learns to say more."
    )
    kl = partial(curves.kl_curves, reports, loaded.langs)
    st.plotly_chart(
        kl(state.theme()), alt="KL of each latent on held-out pairs over training steps", config=theme.tools("bgt-kl")
    )
    st.caption("How much each latent says about a sentence. Each panel has a scale of its own.")
    validations = curves.validations(reports).drop(columns=["kind", "steps"])
    with st.expander("The same as a table"):
        st.dataframe(validations, hide_index=True, alt="Every report on held-out pairs")
    exports.offer(f"bgt-training-{loaded.short}", validations, lambda theme="light": elbo(theme))


def searched(held_out: Mapping[str, float]) -> None:
    """What is found among the held-out pairs."""
    found = {
        " → ".join(map(rows.language_name, split_langs(name.removeprefix("retrieval/")))): f"{value:.1%}"
        for name, value in held_out.items()
        if name.startswith("retrieval/")
    }
    if found:
        table = pd.DataFrame(found.items(), columns=["Nearest is the other half of the pair", "P@1"])
        st.table(table, border="horizontal", hide_index=True, alt="Precision at 1 among the held-out pairs")


def latents(held_out: Mapping[str, float]) -> None:
    """What each latent costs, and the ELBO."""
    table = [
        (f"KL, {rows.latent_title(name[3:]).lower() if name[3:] == SEMANTIC else rows.language_name(name[3:])}",
         f"{value:.1f}" + (" (possible collapse)" if value < COLLAPSED else ""))
        for name, value in held_out.items()
        if name.startswith("kl/") and value  # exactly 0: a latent without a prior
    ]  # fmt: skip
    if "elbo" in held_out:
        table.insert(0, ("ELBO", f"{held_out['elbo']:.1f}"))
    if table:
        shown = pd.DataFrame(table, columns=["Bound and its parts", "Nats per pair"])
        st.table(shown, border="horizontal", hide_index=True, alt="The ELBO and the KL of each latent, nats per pair")
