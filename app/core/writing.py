"""Generate sentences from latents, and interpolate between two sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls
from app.core.address import BOUND
from app.core.markdown import failing, verbatim, written
from app.core.state import Loaded, embed, inference
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.generation import generate
from bgt_core.generation.generate import Candidate
from bgt_core.generation.options import DEFAULT_SEARCH, Search

MAX_LENGTH = 60  # maximum number of generated tokens
MAX_CHARACTERS = 500  # maximum length of a source sentence, far longer than training sentences
STEPS = 9  # number of steps of an interpolation


def candidates(
    loaded: Loaded, semantic: np.ndarray, second: np.ndarray, lang: str, search: Search = DEFAULT_SEARCH
) -> list[list[Candidate]]:
    """Generate candidates in `lang` for each row of `semantic` (N, L) and `second` (N, M), the most faithful first."""
    latents = {SEMANTIC: semantic, loaded.second_latent: second}
    with inference():
        return generate.candidates(loaded.bgt, latents, lang=lang, search=search, max_length=MAX_LENGTH)


def write(
    loaded: Loaded, semantic: np.ndarray, second: np.ndarray, lang: str, search: Search = DEFAULT_SEARCH
) -> list[str]:
    """Generate candidates for each row of both latents, and return the most faithful candidate of each row."""
    return [best.text for best, *_ in candidates(loaded, semantic, second, lang, search)]


def interpolate(
    loaded: Loaded, start: str, end: str, lang: str, moved: Sequence[str], steps: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Generate a sentence at each step of the straight line between two sentences' latents. Also return the `moved`
    latents, {latent: (steps, D)}; the other latents stay as in the sentence `start`."""
    fraction = np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    latents = {}
    for latent in (SEMANTIC, loaded.second_latent):
        first, last = embed(loaded, [start, end], lang, latent)
        latents[latent] = first + fraction * ((last if latent in moved else first) - first)
    texts = write(loaded, latents[SEMANTIC], latents[loaded.second_latent], lang)
    vectors = embed(loaded, [start, end, *texts], lang, SEMANTIC)
    similarities = loaded.similarity(vectors[2:], vectors[:2])  # (steps, 2)
    table = pd.DataFrame(
        {"step": range(1, steps + 1), "text": texts, "to_start": similarities[:, 0], "to_end": similarities[:, 1]}
    )
    return table, {latent: latents[latent] for latent in moved}


@dataclass(frozen=True, eq=False)
class Interpolation:
    """The sentences generated between two sentences, and the moved latents, (steps, D) each."""

    model: str  # the model's digest
    start: str
    end: str
    lang: str
    table: pd.DataFrame
    latents: Mapping[str, np.ndarray]


def form(loaded: Loaded, ends: Sequence[str], langs: Sequence[str]) -> Interpolation | None:
    """Show the form for two sentences, by default `ends`, and the last interpolation, which is also returned."""
    st.subheader("Between two sentences")
    if loaded.cannot_write:
        st.info(loaded.cannot_write, icon=":material/edit_off:")
        return None
    st.markdown("Move through a latent in a straight line, and generate a sentence at every step.")
    second = loaded.second_latent
    names = ("Meaning", "Style") if second == LANGUAGE else (SEMANTIC.capitalize(), second.capitalize())
    moves = {names[0]: (SEMANTIC,), names[1]: (second,), "Both": (SEMANTIC, second)}
    with st.form("way"):
        left, right = st.columns(2)
        start = left.text_input("From", ends[0], key="start", max_chars=MAX_CHARACTERS, **BOUND)
        end = right.text_input("To", ends[1], key="end", max_chars=MAX_CHARACTERS, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            moved = controls.choice("Move", list(moves), "move")
            lang = controls.language("Language of both", langs, "way_lang")
            st.space("stretch")
            submitted = st.form_submit_button("Interpolate", type="primary")
    walk = st.session_state.get("walked")
    walk = walk if walk and walk.model == loaded.digest and walk.lang in langs else None
    if submitted:
        with failing(), st.spinner("Writing"):
            table_of_steps, latents = interpolate(loaded, start, end, lang, moves[moved], STEPS)
            walk = st.session_state["walked"] = Interpolation(loaded.digest, start, end, lang, table_of_steps, latents)
    if walk:
        follow(walk)
    return walk


@st.fragment
def follow(walk: Interpolation) -> None:
    """Show a slider for the steps, and the sentence at the chosen step. All texts are in `walk` already."""
    texts = walk.table["text"].tolist()
    ends = (end if len(end) <= 28 else end[:27].rstrip() + "…" for end in (walk.start, walk.end))
    way = " to ".join(f"“{verbatim(end)}”" for end in ends)
    step = st.slider(f"Step of {len(texts)}, from {way}", 1, len(texts), 1 + len(texts) // 2)
    row = walk.table.iloc[step - 1]
    written(row["text"])
    if len(set(texts)) == 1:
        st.caption("The model writes the same sentence at every step.")
    st.caption(f"Meaning: cosine {row['to_start']:z.2f} to the first sentence, {row['to_end']:z.2f} to the last.")
