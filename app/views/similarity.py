"""How alike are two sentences, and would people agree?"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app import exports, options, rows, scoring, spaces, state, uploads
from app.charts import scores, theme
from bgt_core.errors import BgtError

NEAREST = 10
AMONG = 1_000  # translation pairs to look for near ones in
LISTED = 1_000
EXAMPLE = ("Where is the station?", "Tell me how to get to the train station.")
NAMES = {"left": "Left", "right": "Right", "gold": "Gold", "swer": "Word error rate", **scoring.SYSTEMS}


def page() -> None:
    loaded = state.model()
    st.title("How alike?")
    st.markdown("Do two sentences mean the same, and is it the meaning or the manner that they share?")
    one, many = st.tabs(["Two sentences", "A file of pairs"], key="alike", bind="query-params")
    with one:
        pair(loaded)
    with many:
        file(loaded)


def languages(loaded: state.Loaded, key: str) -> tuple[str, str]:
    langs, found = loaded.bgt.langs, []
    for column, side in zip(st.columns(2), ("left", "right"), strict=True):
        found.append(
            column.segmented_control(
                f"Language of the {side}", langs, default=langs[0], required=True, format_func=rows.name,
                key=f"{key}_{side}_lang", bind="query-params",
            )
        )  # fmt: skip
    return found[0], found[1]


def pair(loaded: state.Loaded) -> None:
    left, right = (
        column.text_area(side.capitalize(), text, key=side, height=80, bind="query-params")
        for column, side, text in zip(st.columns(2), ("left", "right"), EXAMPLE, strict=True)
    )
    langs = languages(loaded, "one")
    if not (left.strip() and right.strip()):
        st.warning("Type two sentences.", icon=":material/edit:")
        return
    found = scoring.alike(loaded, left[: uploads.LONGEST], right[: uploads.LONGEST], *langs)
    with st.container(horizontal=True):
        for row in found.itertuples():
            st.metric(row.measure, f"{row.value:z.2f}", border=True)
    corpus = next((data for data in options.read().data.values() if set(data.langs) <= set(loaded.bgt.langs)), None)
    if loaded.manner and langs[0] != langs[1]:
        st.caption("The language latents of two languages share no axes, so only meaning is compared.")
    if corpus is None:
        return
    if langs[0] in corpus.langs:
        table = spaces.sentences(corpus, AMONG)
        chance = (
            f"{latent} {scoring.random_pairs(loaded, table, latent, langs[0]):.2f}" for latent in loaded.bgt.latents
        )
        st.caption(f"Sentences that have nothing to do with each other, on average: {', '.join(chance)}.")
    st.subheader("What means nearly the same")
    near = []
    for column, text, lang in zip(st.columns(2), (left, right), langs, strict=True):
        near.append(spaces.nearest_to(loaded, text, lang, corpus, AMONG, NEAREST))
        column.markdown("**Nearest to**")
        column.text(text[:80])
        column.dataframe(
            near[-1],
            hide_index=True,
            column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
            alt=f"The {NEAREST} sentences nearest in meaning, with their cosines",
        )
    both = pd.concat([part.assign(To=text) for part, text in zip(near, (left, right), strict=True)], ignore_index=True)
    exports.offer(f"bgt-pair-{loaded.short}", both, latex=found.rename(columns=str.capitalize))


def file(loaded: state.Loaded) -> None:
    st.markdown(
        "Two columns of sentences, and a third of scores that people gave, if there is one (also as the first)."
    )
    given = st.file_uploader("Pairs", uploads.KINDS, max_upload_size=20)
    langs = languages(loaded, "file")
    if given is None:
        st.info("Nothing yet: bring a .tsv or .csv. STS files with the score first are read as they are.")
        return
    try:
        scored = scoring.similarities(loaded, uploads.pairs(given.name, given.getvalue()), *langs)
        if "gold" in scored:
            name = st.segmented_control(
                "Pairs", scoring.SPLITS, default="all", required=True, key="split", bind="query-params",
                help="Hard+ means much and shares few words, Hard- shares many and means little; negation: one of the "
                "two says not. Scores of people are taken as 0 to 5, and shares of word errors are of this file.",
            )  # fmt: skip
            scored = scoring.split(scored, name)
        scatter(loaded, scored) if "gold" in scored else listing(loaded, scored)
    except BgtError as error:
        st.error(str(error))


def scatter(loaded: state.Loaded, scored: pd.DataFrame) -> None:
    found = scoring.correlations(scored)
    with st.container(horizontal=True):
        for row in found.itertuples():
            between = f"95%: {row.ci_low:.1f} to {row.ci_high:.1f}"
            st.metric(f"{row.system}, Pearson × 100", f"{row.pearson:.1f}", between, "off", border=True,
                      delta_arrow="off")  # fmt: skip
    figure = partial(scores.gold_scatter, scored, scoring.SYSTEMS, state.theme())
    st.plotly_chart(
        figure(),
        alt=f"Cosine of each system against the gold score of {len(scored)} pairs; the table below lists them",
        config=theme.tools(f"bgt-similarity-{loaded.short}"),
    )
    listing(loaded, scored, figure, found.rename(columns={"system": "System", "pearson": "Pearson x 100"}))


def listing(
    loaded: state.Loaded, scored: pd.DataFrame, figure: partial | None = None, latex: pd.DataFrame | None = None
) -> None:
    shown = scored.head(LISTED)[[name for name in NAMES if name in scored]].rename(columns=NAMES)
    two = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        shown, hide_index=True, column_config=dict.fromkeys(shown.columns[2:], two), alt="The pairs with every measure"
    )
    exports.offer(f"bgt-similarity-{loaded.short}", scored, figure, latex)
