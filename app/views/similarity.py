"""How alike are two sentences, and would people agree?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import exports, scoring, spaces, startup, state, uploads
from app.address import BOUND
from app.views import pair_file
from bgt_core.contracts import SEMANTIC

NEAREST = 10
SEARCHED = 1_000  # translations among which near sentences are looked for
EXAMPLE = ("Where is the station?", "Tell me how to get to the train station.")


def page() -> None:
    loaded = state.model()
    st.title("How alike?")
    st.markdown("Do two sentences mean the same, and is it the meaning or the manner that they share?")
    two_sentences, file_of_pairs = st.tabs(["Two sentences", "A file of pairs"], key="alike", **BOUND)
    with two_sentences:
        pair(loaded)
    with file_of_pairs:
        pair_file.upload(loaded)


def pair(loaded: state.Loaded) -> None:
    example = EXAMPLE if "en" in loaded.langs else ("", "")
    left, right = (
        column.text_area(side.capitalize(), text, key=side, height=80, **BOUND)
        for column, side, text in zip(st.columns(2), ("left", "right"), example, strict=True)
    )
    langs = pair_file.languages(loaded, "one")
    if not (left.strip() and right.strip()):
        st.warning("Type two sentences.", icon=":material/edit:")
        return
    scored = scoring.alike(loaded, left[: uploads.MAX_CHARACTERS], right[: uploads.MAX_CHARACTERS], *langs)
    with st.container(horizontal=True):
        for row in scored.itertuples():
            st.metric(row.measure, f"{row.value:z.2f}", border=True)
    if loaded.second_latent and langs[0] != langs[1]:
        st.caption(f"The {loaded.second_latent} latents of two languages share no axes, so only meaning is compared.")
    texts = list(startup.read().texts_in(loaded.langs).values())
    if not texts:
        return
    text = next((text for text in texts if langs[0] in text.langs), texts[0])
    chance(loaded, text, langs[0])
    st.subheader("What means nearly the same")
    table, near = spaces.sentences(text, SEARCHED), []
    vectors = spaces.vectors_of(loaded, table, SEMANTIC)
    left_out = ["To"] if len(text.langs) > 1 else ["To", "In"]
    for column, sentence, lang in zip(st.columns(2), (left, right), langs, strict=True):
        near.append(spaces.nearest_to(loaded, sentence, lang, SEMANTIC, table, vectors, NEAREST).assign(To=sentence))
        column.markdown("**Nearest to**")
        column.text(sentence[:80])
        column.dataframe(
            near[-1].drop(columns=left_out),
            hide_index=True,
            column_config={"Cosine": st.column_config.NumberColumn(format="%.2f", width="small")},
            alt=f"The {NEAREST} sentences nearest in meaning, with their cosines",
        )
    if text.credit:
        st.caption(text.credit)
    exports.offer(
        f"bgt-pair-{loaded.short}",
        pd.concat(near, ignore_index=True),
        latex=scored.rename(columns=str.capitalize),
    )


def chance(loaded: state.Loaded, text: startup.ParallelText, lang: str) -> None:
    """What unrelated sentences score."""
    if lang not in text.langs:
        return
    table = spaces.sentences(text, SEARCHED)
    means = (f"{latent} {scoring.random_pairs(loaded, table, latent, lang):.2f}" for latent in loaded.latents)
    st.caption(f"Sentences that have nothing to do with each other, on average: {', '.join(means)}.")
