"""The page that finds stored questions with the same meaning as a typed question."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from app.core import controls, exports, inventory, state, uploads
from app.core.address import BOUND
from app.core.display import NOTES, frame, verbatim
from bgt_core.errors import BgtError
from bgt_core.neighbours.questions import CARD, Hit, QuestionStore

NEAREST = 20
EXAMPLE = "How do I learn a language quickly?"


def page(loaded: state.Loaded) -> None:
    folder = inventory.read().questions
    assert folder is not None  # the app has no such page without a store of questions
    card = folder / CARD
    try:
        store = opened(loaded, folder, card.stat().st_mtime_ns if card.is_file() else 0)
    except BgtError as error:
        st.error("This model can't open the store of questions. The reason:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    question = st.text_input("Your question", EXAMPLE, max_chars=uploads.MAX_CHARACTERS, key="question", **BOUND)
    threshold = None
    if store.card.calibration:
        label = "A duplicate from this probability on"
        threshold = st.slider(label, 0.0, 1.0, 0.5, 0.01, key="threshold", **BOUND)
    if not question.strip():
        st.warning("Type a question.", icon=":material/edit:")
        return
    controls.warn(loaded, [question], store.card.lang)
    with state.inference():
        (hits,) = store.query([question], k=NEAREST)
    near = table(store, hits, threshold)
    if threshold is not None:
        st.subheader(f"Duplicates: {near['Duplicate'].sum()} of the nearest {len(near)}", anchor=False)
    percent = st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0)
    alt = f"The {len(near)} stored questions most similar to “{question}”, with the scores by which they are ranked"
    frame(near, alt, {"W2": "%.3f", "Cosine": "%.3f"}, {"W2": 75, "Cosine": 75}, {"Probability": percent})
    ranked = NOTES["w2" if store.card.by == "probability" else "cosine"]
    if store.card.calibrated_on:
        ranked += f" Probabilities are calibrated on {verbatim(store.card.calibrated_on)}, and valid for similar pairs."
    st.caption(f"{len(store):,} stored questions. {ranked}")
    exports.offer(f"bgt-questions-{loaded.short}", near, latex=near)


@st.cache_resource(max_entries=3, show_spinner="Reading the questions", hash_funcs=state.BY_DIGEST)
def opened(loaded: state.Loaded, folder: Path, written_ns: int) -> QuestionStore:
    """Open the store of questions in a folder, once for all sessions. Raises BgtError if another model made it."""
    return QuestionStore.open(folder, loaded.reader)


def table(store: QuestionStore, hits: Sequence[Hit], threshold: float | None) -> pd.DataFrame:
    """Return a table of the questions found, with the columns that this store has."""
    near = pd.DataFrame({"Question": [hit.question for hit in hits]})
    if threshold is not None:
        near["Probability"] = [hit.probability for hit in hits]
        near.insert(0, "Duplicate", near["Probability"] >= threshold)
    name = "W2" if store.card.by == "probability" else "Cosine"
    return near.assign(**{name: [getattr(hit, name.lower()) for hit in hits]})
