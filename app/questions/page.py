"""Stored questions that repeat a typed one."""

from __future__ import annotations

import streamlit as st

from app.core import exports, startup, state
from app.core.address import BOUND
from app.core.markdown import verbatim
from app.core.uploads import formats
from app.questions import compute
from bgt_core.errors import BgtError
from bgt_core.neighbours.questions import QuestionStore

NEAREST = 20
EXAMPLE = "How do I learn a language quickly?"
HOW = """\
bgt retrieve-similar store --build questions.txt --model {model}
bgt app --model {model} --questions store"""


def page() -> None:
    loaded = state.model()
    st.title("Similar questions")
    st.markdown("Has this question been asked before?")
    folder = startup.read().questions
    if folder is None:
        st.info(
            "This page searches a store of questions, and the app was started without one. Put your questions into a "
            "text file, one per line. The first command makes a store of them, the second starts the app with it:"
        )
        st.code(HOW.format(model=startup.portable(loaded.spec)), language="sh", wrap_lines=True)
        return
    try:
        store = compute.opened(loaded, folder)
    except BgtError as error:
        st.error("This model can't open the store of questions. The reason:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    question = st.text_input("Your question", EXAMPLE, max_chars=formats.MAX_CHARACTERS, key="question", **BOUND)
    threshold = threshold_of(store)
    if not question.strip():
        st.warning("Type a question.", icon=":material/edit:")
        return
    answer(loaded, store, question, threshold)


def threshold_of(store: QuestionStore) -> float | None:
    """Choose the minimum probability of a duplicate; None if the store has no probabilities."""
    if not store.card.calibration:
        return None
    return st.slider("A duplicate from this probability on", 0.0, 1.0, 0.5, 0.01, key="threshold", **BOUND)


def answer(loaded: state.Loaded, store: QuestionStore, question: str, threshold: float | None) -> None:
    hits = compute.nearest(store, question, NEAREST)
    near = compute.table(store, hits, threshold)
    if threshold is not None:
        st.subheader(f"Duplicates: {near['Duplicate'].sum()} of the nearest {len(near)}", anchor=False)
    three = st.column_config.NumberColumn(format="%.3f", width="small")
    st.dataframe(
        near,
        hide_index=True,
        column_config={
            "Duplicate": st.column_config.CheckboxColumn(width="small"),
            "Probability": st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0),
            "W2": three,
            "Cosine": three,
        },
        alt=f"The {len(near)} stored questions most like “{question}”, and their ranking scores",
    )
    st.caption(explanation(store))
    exports.offer(f"bgt-questions-{loaded.short}", near, latex=near)


def explanation(store: QuestionStore) -> str:
    """Explain the columns."""
    stored = f"{len(store):,} stored questions."
    if store.card.by != "probability":
        ranked = "Ranked by the cosine of their vectors with the question's."
    else:
        ranked = (
            "W2, the Wasserstein distance of two posteriors, finds the nearest ones; the siamese network ranks them by "
            "the probability that both questions mean the same."
        )
    if store.card.calibrated_on:
        ranked += f" Probabilities are calibrated on {verbatim(store.card.calibrated_on)}, and hold for similar pairs."
    return f"{stored} {ranked}"
