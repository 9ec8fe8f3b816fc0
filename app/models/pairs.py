"""Pairs of sentences by several models: two sentences and their words, pairs with scores, and disagreements."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.core import controls, corpora, exports, resampling, word_effects
from app.core.address import BOUND
from app.core.markdown import problem, verbatim
from app.core.state import Loaded
from app.core.uploads import dialog, formats
from app.models import compute
from app.models.parts import differences, names_of, two_sentences
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

EXAMPLE = ("Can you help me?", "Could you give me a hand?")
SHOWN = 20  # pairs
GAP = "Second minus first"


def similarity(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    keys = {"cmp_left": "One sentence", "cmp_right": "Another"}
    (one, one_lang), (other, other_lang) = two_sentences(keys, EXAMPLE, langs, formats.MAX_CHARACTERS)
    if one.strip() and other.strip():
        pair = pd.DataFrame({"left": [one], "right": [other]})
        scores = compute.similarities(models, pair, (one_lang, other_lang))
        with st.container(horizontal=True):
            for title, score in scores.items():
                st.metric(verbatim(title), f"{score[0]:z.2f}", border=True, help="Similarity in meaning, 1 at most.")
        st.caption("Models use their scales differently: compare which pair is nearer, not one number with another.")
        word_effects.show(systems(models), one, other, (one_lang, other_lang))
    else:
        st.caption("Type two sentences.")
    st.subheader("A file of scored pairs", anchor=False)
    st.caption("Two columns of sentences, and one of scores that people gave.")
    chosen = dialog.choose_pairs(langs, "cmp_pairs")
    if chosen is None:
        return
    _, pairs, (one_lang, other_lang) = chosen
    try:
        scores = compute.similarities(models, pairs, (one_lang, other_lang))
        if "gold" not in pairs:
            st.info("Choose the column that holds people's scores.")
        else:
            st.caption(f"{len(pairs):,} pairs, read as {names_of([one_lang, other_lang])}.")
            result = resampling.correlations(scores, pairs["gold"].to_numpy(float))
            differences(compute.beside_first(result), "Pearson × 100", "sts")
        exports.offer("bgt-models-pairs", pairs.assign(**scores), title="Export the pairs")
    except BgtError as error:
        problem(error)


def disagreements(models: Sequence[Loaded], langs: Sequence[str]) -> None:
    """Pairs that one model finds much more alike than another does, and the words of one of them."""
    first, *others = models
    texts = corpora.aligned(langs)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = dialog.choose_name(list(texts), "cmp_aligned", width=280, **BOUND)
        titles = [model.title for model in others]
        chosen = st.selectbox("The first model and", titles, width=280) if len(others) > 1 else titles[0]
    if name is None:
        st.info(f"No pairs of sentences in {names_of(langs)}. Upload some.")
        return
    both = [first, others[titles.index(chosen)]]
    table, text_langs = compute.disagreements(both, texts[name])
    st.caption(
        f"{len(table):,} pairs. A pair's rank, in percent, is the share of the others that are less similar: models "
        f"use their scales differently. The largest gaps of both ranks come first. {texts[name].credit}"
    )
    ranks = {f"{side} rank": model.title for side, model in zip(compute.SIDES, both, strict=True)}
    shown = table.head(SHOWN)[["left", "right", *ranks, "gap"]]
    number = st.column_config.NumberColumn
    event = st.dataframe(
        shown.rename(columns={"left": "Left", "right": "Right", **ranks, "gap": GAP}), hide_index=True,
        row_height=controls.row_height(shown[["left", "right"]], 270),
        column_config=dict.fromkeys(("Left", "Right"), st.column_config.TextColumn(width=270))
        | {title: number(format="%.0f", width=controls.width(title)) for title in ranks.values()}
        | {GAP: number(format="%+.0f", width=controls.width(GAP))},
        on_select="rerun", selection_mode="single-row", key="cmp_row",
        alt="Pairs with the largest gaps between the ranks of both models",
    )  # fmt: skip
    exports.offer("bgt-models-disagreements", table, title="Export all pairs")
    row = table.iloc[next((at for at in event.selection.rows if at < len(table)), 0)]
    word_effects.show(systems(both), row["left"], row["right"], (text_langs[0], text_langs[1]))
    if len(shown) > 1:
        st.caption("Choose a row above to see the words of another pair.")


def systems(models: Sequence[Loaded]) -> dict[str, tuple[Loaded, str]]:
    """Each model with its semantic latent, by its title."""
    return {model.title: (model, SEMANTIC) for model in models}
