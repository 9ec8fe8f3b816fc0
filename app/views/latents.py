"""What does each latent see of the same sentences?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pandas as pd
import streamlit as st

from app import controls, exports, rows, spaces, state
from app.address import BOUND
from app.views import interpolation, linked_maps


def page() -> None:
    loaded = state.model()
    st.title("Two latents")
    st.markdown("What does each latent see? Draw around points on one map: the same sentences light up on the other.")
    if not loaded.second_latent:
        st.caption("This model has one latent, and no language latents to compare it with.")
    choice = controls.choose(loaded)
    if choice is None:
        return
    langs = choice.text.langs
    shown = loaded.digest, choice.text
    if st.session_state.setdefault("chosen_of", shown) != shown:  # other sentences: the old selection means nothing
        linked_maps.forget()
        st.session_state["chosen_of"] = shown
    corpus = spaces.sentences(choice.text, choice.count)
    count, different = len(corpus) // len(langs), corpus["text"].nunique()
    unit = choice.text.unit
    if count < 3 or different < 3:
        st.info(f"A map needs 3 {unit} and 3 different sentences; {choice.text.file} has {count} and {different}.")
        return
    if count < choice.count:
        st.caption(f"There are {count:,} {unit}; all are shown.")
    elif choice.text.file:
        st.caption(f"Shown: the first {choice.count:,} {unit} of {choice.text.file.name}.")
    if choice.text.credit:
        st.caption(choice.text.credit)
    table = pd.concat([corpus, *controls.own_rows(langs)], ignore_index=True)
    linked = st.query_params.get("find", "").strip()
    if linked and "chosen" not in st.session_state:
        st.session_state["chosen"] = rows.matching(table, linked)
    method, fitted = controls.fitted(loaded, table, choice)
    coloured = spaces.coloured(fitted, choice.colour)
    above = st.container()
    walk = interpolation.form(loaded, coloured.semantic.rows, langs) if loaded.second_latent else None
    with above:
        linked_maps.explore(loaded, coloured, method, choice, interpolation.paths(walk, coloured, method))
    scores(loaded, coloured, langs)


def scores(loaded: state.Loaded, fitted: spaces.Spaces, langs: Sequence[str]) -> None:
    """What the maps suggest, measured in the full space: of translations, and of a model that has a second latent."""
    parts = [translation] * (len(langs) > 1) + [manner] * bool(fitted.second)
    if not parts:
        return
    st.subheader("Measured in the full space")
    tables = []
    for column, part in zip(st.columns(2, gap="large"), parts, strict=False):
        with column:
            tables.append(part(loaded, fitted, langs))
    table = pd.concat(tables).reset_index(names="Measure")
    exports.offer(f"bgt-measures-{loaded.short}", table, latex=table.fillna(""), title="Export measures")


def translation(loaded: state.Loaded, fitted: spaces.Spaces, langs: Sequence[str]) -> pd.DataFrame:
    st.markdown("**Does the nearest sentence translate it?**")
    retrieval = spaces.pair_table(loaded, fitted.semantic, *language_pair(langs))
    st.table(
        retrieval,
        border="horizontal",
        alt="Translation retrieval, P@1 both ways, and the mean cosine of translations, beside chance",
    )
    st.caption(f"P@1: the fraction whose nearest sentence is their translation, of up to {spaces.MAX_SCORED:,} pairs.")
    return retrieval


def manner(loaded: state.Loaded, fitted: spaces.Spaces, langs: Sequence[str]) -> pd.DataFrame:
    st.markdown("**Does the nearest sentence share its manner?**")
    shared = spaces.agreements(loaded, fitted, list(rows.COUNTED))
    st.table(
        shared,
        border="horizontal",
        alt="How often a sentence's nearest has the same final mark, length, punctuation: each latent, and chance",
    )
    same = "in the same language " if len(langs) > 1 else ""
    st.caption(f"The fraction whose nearest sentence {same}has the same.")
    return shared


def language_pair(langs: Sequence[str]) -> tuple[str, str]:
    """The two languages to compare: the user's choice where there are more."""
    pairs = list(combinations(langs, 2))
    if len(pairs) == 1:
        return pairs[0]

    def title(pair: tuple[str, str]) -> str:
        return " and ".join(map(rows.language_name, pair))

    return st.selectbox("Languages", pairs, format_func=title, key="lang_pair", **BOUND)
