"""The model's card: origin, scores, training, files, settings, licence."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from app.card import compute
from app.core import exports, rows, startup, state
from app.core.markdown import frame, table, verbatim
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import split_langs
from bgt_core.errors import BgtError

TITLES = {
    "data": "Training data",
    "protocol": "How it was measured",
    "fidelity": "Fidelity of generated text",
    "kept": "Negation and numbers kept",
    "transfer": "Style taken over",
    "roles": "Who did what to whom",
    "command": "Trained with",
    "training": "Training took",
}
EXAMPLE = "Hello."
WRITING, TRAINING, DATA = "Generated text", "Training", "Data"
TABS = {  # tabs, and the records in them
    WRITING: ("fidelity", "kept", "transfer", "roles"),
    TRAINING: ("command", "training"),
    DATA: ("data", "licence", "limits"),
}
FACT = 160  # pixels of a number
LONG = 12  # rows from which on a table scrolls
HELP_OF = {
    "Updates": "Of its last training, which may have started from another model.",
    "Checkpoint": "The start of the SHA-256 hash of model.safetensors: exported files are named after it.",
}
COLLAPSED = 0.1  # nats; a latent with less KL holds next to no information


def page(loaded: state.Loaded) -> None:
    ours(loaded) if loaded.info else outside(loaded)


def ours(loaded: state.Loaded) -> None:
    """Show the checkpoint's own description."""
    info = loaded.info
    facts = {
        "Languages": str(len(loaded.langs)),
        "Parameters": f"{info['parameters'] / 1e6:.1f} M",
        "Updates": f"{info['step']:,}",
        "Checkpoint": loaded.short,
    }
    with st.container(horizontal=True):  # two in a row on a phone
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
    table(
        pd.DataFrame(files, columns=["File", "MB", "SHA-256"]), "The files of this checkpoint, their sizes and hashes"
    )
    st.caption("Each hash was checked when the model was opened.")
    st.subheader("Settings")
    given = {"recipe": info["recipe"], **info["arguments"]}
    shown = {name: startup.public(compute.readable(value)) for name, value in given.items()}
    meanings = compute.meanings()
    lines = [
        (name, value, next((meanings[end] for end in meanings if name.endswith(end)), ""))
        for name, value in shown.items()
    ]
    settings = pd.DataFrame(lines, columns=["Setting", "Value", "Meaning"])
    st.dataframe(settings, hide_index=True, height=420, alt="The settings of the recipe that trained this model",
                 column_config={"Value": {"width": 95}, "Meaning": {"width": "large"}})  # fmt: skip
    exports.offer(f"bgt-settings-{loaded.short}", settings, latex=settings)
    st.subheader("Cite")
    st.code(compute.paper(loaded).bibtex, language="bibtex", wrap_lines=True)


def outside(loaded: state.Loaded) -> None:
    """Show what is known of an encoder of another kind."""
    st.info(f"This is an external encoder: its card, training and settings are unknown. {loaded.device}.")
    lang = loaded.langs[0]
    try:
        units = f"{loaded.encoder.embed([EXAMPLE], lang=lang).shape[1]:,}"
    except BgtError:  # a file of vectors holds its own sentences only
        units = "unknown"
    known = {
        "Latents": ", ".join(loaded.latents),
        "Units": units,
        "Languages": loaded.reads,
        "Fingerprint": loaded.short,
    }
    table(pd.DataFrame(known.items(), columns=["", "Known"]), "What is known of this encoder")
    st.markdown(
        "Measure it: *What each latent holds* tells what it shows, *Pairs* and *Compare models* how well it finds "
        "sentences of one meaning, and *Your encoder* splits its vectors into what translations share and the rest."
    )


def records(card: Mapping[str, object]) -> None:
    """The model's card: lists of records as tables (data, licences), anything else as a line."""
    for name, value in card.items():
        title = TITLES.get(name, name.capitalize())
        st.subheader(verbatim(title))
        if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            rows_of = pd.DataFrame(value, dtype=object)
            rows_of = rows_of.map(lambda cell: "" if cell != cell else compute.readable(cell))
            rows_of = rows_of.rename(  # units and acronyms keep their case
                columns=lambda title: title[:1].upper() + title[1:] if title.split(" ")[0].islower() else title
            )
            if len(rows_of) > LONG:
                frame(rows_of, f"The model's card: {title}", height=360)
            else:
                table(rows_of, f"The model's card: {title}")
        else:
            st.text(compute.readable(value))


def scores(loaded: state.Loaded) -> None:
    """A table of the card's scores."""
    card = loaded.info.get("card", {})
    if not card.get("scores"):
        return
    st.subheader("Measured")
    shown = compute.score_table(card["scores"], compute.intervals(card))
    table(shown, "Scores of this model, one row per measure")
    st.caption("In brackets: 95% intervals, for scores whose card gives enough to compute them.")
    exports.offer(f"bgt-scores-{loaded.short}", shown, latex=shown)


def training(loaded: state.Loaded) -> None:
    """Show the last report on held-out pairs; the export has them all."""
    reports = [row for row in loaded.log if row.get("kind") == "valid"]
    held_out = reports[-1] if reports else None
    if not held_out or not any(name == "elbo" or name.startswith(("retrieval/", "kl/")) for name in held_out):
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
    """The ELBO and the KL of each latent that has a prior."""
    parts = [("ELBO", f"{held_out['elbo']:.1f}")] if "elbo" in held_out else []
    for name, value in held_out.items():
        latent = name.removeprefix("kl/")
        if latent != name and value:  # exactly 0 for a latent without a prior
            of = rows.latent_title(latent).lower() if latent == SEMANTIC else rows.language_name(latent)
            parts.append((f"KL, {of}", f"{value:.1f}" + " (possible collapse)" * (value < COLLAPSED)))
    return parts
