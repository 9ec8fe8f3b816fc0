"""How alike are two sentences, and would people agree?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import checks, exports, scoring, spaces, startup, state, uploading, uploads
from app.address import BOUND
from app.components.copy import copy_link
from app.views import pair_file
from app.views.help import how_to_read
from bgt_core.contracts import SEMANTIC

NEAREST = 10
SEARCHED = 1_000  # translations among which near sentences are looked for
HELP = """
- **More is more alike**, in every number here. A *cosine* is 1 for the same direction and about 0 for sentences that
  have nothing in common; what random pairs score stands below the numbers, and is what to compare with.
- **Semantic latent**: do they mean the same? **Language latent**: are they written alike? It is a space of its own in
  each language, so it compares sentences of one language only.
- **Words (tf-idf)**: the cosine of the words alone, rare ones weighted more: what a model must beat. **Words in
  common**: the share of their different words that both have. The *word error rate* in a file's table goes the other
  way: 0 for the same words, more for less alike.
- **Pearson × 100** of a file with scores: how well a system's cosines go with what people said, 100 at best. The
  interval holds the value in 95 of 100 such samples of pairs.
"""
EXAMPLE = ("Where is the station?", "Tell me how to get to the train station.")


def page() -> None:
    loaded = state.model()
    st.title("How alike?")
    st.markdown("Do two sentences mean the same, and is it the meaning or the style that they share?")
    two_sentences, file_of_pairs = st.tabs(["Two sentences", "A file of pairs"], key="alike", **BOUND)
    with two_sentences:
        pair(loaded)
    with file_of_pairs:
        pair_file.upload(loaded)
    how_to_read(HELP)


def pair(loaded: state.Loaded) -> None:
    example = EXAMPLE if "en" in loaded.langs else ("", "")
    left, right = (
        column.text_area(side.capitalize(), text, key=side, height=80, **BOUND)
        for column, side, text in zip(st.columns(2), ("left", "right"), example, strict=True)
    )
    langs = pair_file.languages(loaded, "one")
    copy_link()
    if not (left.strip() and right.strip()):
        st.warning("Type two sentences.", icon=":material/edit:")
        return
    for side, sentence, lang in zip(("Left", "Right"), (left, right), langs, strict=True):
        if len(sentence) > uploads.MAX_CHARACTERS:
            st.warning(f"{side} is long: only its first {uploads.MAX_CHARACTERS:,} characters are read.")
        for warning in checks.warnings(loaded, [sentence[: uploads.MAX_CHARACTERS]], lang):
            st.warning(f"{side}: {warning}", icon=":material/translate:")
    left, right = left[: uploads.MAX_CHARACTERS], right[: uploads.MAX_CHARACTERS]
    scored = scoring.alike(loaded, left, right, *langs)
    with st.container(horizontal=True):
        for row in scored.itertuples():
            st.metric(row.measure, f"{row.value:z.2f}", border=True)
    if loaded.second_latent and langs[0] != langs[1]:
        st.caption(f"The {loaded.second_latent} latents of two languages share no axes, so only meaning is compared.")
    texts = list(uploading.texts_in(loaded.langs).values())
    if not texts:
        return
    text = next((text for text in texts if langs[0] in text.langs), texts[0])
    chance(loaded, text, langs[0])
    st.subheader("What means nearly the same")
    table, near = spaces.sentences(text, SEARCHED), []
    vectors = spaces.vectors_of(loaded, table, SEMANTIC)
    left_out = ["id", "To"] if len(text.langs) > 1 else ["id", "To", "In"]
    for column, sentence, lang in zip(st.columns(2), (left, right), langs, strict=True):
        near.append(spaces.nearest_to(loaded, sentence, lang, SEMANTIC, table, vectors, NEAREST).assign(To=sentence))
        column.markdown("**Nearest to**")
        column.text(sentence[:80])
        column.dataframe(
            near[-1].drop(columns=left_out),
            hide_index=True,
            row_height=66,  # three lines of text
            column_config={
                "Cosine": st.column_config.NumberColumn(format="%.2f", width=66),
                "In": st.column_config.Column(width=40),
                "Sentence": st.column_config.Column(width=250),
            },
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
