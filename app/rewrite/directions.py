"""A tab: a sentence made a question, more formal or contracted, by moving its style along a direction."""

from __future__ import annotations

import streamlit as st

from app.core import controls, exports, markdown, startup, state, writing
from app.core.address import BOUND
from app.core.markdown import how_to_read, problem, written
from app.rewrite import compute
from bgt_core.errors import BgtError
from bgt_core.vectors.maps import Directions

HELP = """
- A slider moves the sentence's second latent along one straight line; the semantic latent stays. The model then
  generates a sentence from both.
- **A step** is half the way from a statement to a question, or from one form (tu, full, plain) to the other (vous,
  contracted, polite), as least squares found it in real sentences.
- Several sliders add up. They are not independent in the sentences that they were learnt from (questions are shorter),
  so the larger of two moves may win.
- **How well it is read** is the correlation of the true and the predicted number on held-out sentences; near 0 the
  direction means nothing.
"""
EXAMPLES = {"en": "I will go to the station tomorrow.", "fr": "Tu es fatigué."}


def page(loaded: state.Loaded) -> None:
    langs = loaded.langs
    texts = startup.read().texts_in(langs).values()
    usable = [lang for lang in langs if any(lang in text.langs for text in texts)]
    if not usable:
        st.info(
            "Directions are learnt from sentences; start the app with a file in this model's languages, by `--data`."
        )
        return
    st.markdown(
        f"Each slider moves the **{loaded.second_latent} latent** in the direction in which real sentences become "
        "questions, more formal, or contracted. The semantic latent stays."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lang = controls.language("Language", usable, "dlang")
        source = st.text_input("Sentence", EXAMPLES.get(lang, ""), key=f"sentence_{lang}", width=420, **BOUND)
    if not source.strip():
        st.warning("Type a sentence to say in another way.", icon=":material/edit:")
        return
    source = source[: writing.MAX_CHARACTERS]
    text = next(text for text in texts if lang in text.langs)
    try:
        directions = compute.fitted_directions(loaded, text, lang)
        sliders(loaded, directions, source, lang)
        steps(loaded, directions, source, lang, text.credit)
    except BgtError as error:
        problem(error)


@st.fragment
def sliders(loaded: state.Loaded, directions: Directions, source: str, lang: str) -> None:
    """Show one slider per direction; every move generates a sentence at once, and reruns only this."""
    moves = []
    low, high = float(compute.STEPS[0]), float(compute.STEPS[-1])
    for column, name in zip(st.columns(len(directions.names)), directions.names, strict=True):
        moves.append(column.slider(compute.TITLES[name], low, high, 0.0, 0.5, key=f"move_{name}", **BOUND))
    try:
        with st.spinner("Writing"):
            (text,) = compute.write_moved(loaded, directions, source, lang, [moves])
    except BgtError as error:
        problem(error)
        return
    written(text)


def steps(loaded: state.Loaded, directions: Directions, source: str, lang: str, credit: str) -> None:
    st.subheader("Every direction, step by step")
    with st.spinner("Generating every step"):
        table = compute.every_step(loaded, directions, source, lang)
    titles = {"direction": "Direction", "step": "Step", "text": "Written there"}
    still = table.groupby("direction", sort=False)["text"].transform("nunique") == 1
    if still.any():
        unmoved = " and ".join(table.loc[still, "direction"].unique())
        st.caption(f"{unmoved}: no effect on this sentence at any step.")
    markdown.table(
        table.loc[~still, list(titles)].rename(columns=titles),
        "The sentence generated at every step of every direction",
    )
    names = [compute.TITLES[name].lower() for name in directions.names]
    read = (f"{name} {r:.2f}" for name, r in zip(names, directions.read, strict=True))
    st.caption(f"How well each can be read from held-out sentences, as a correlation: {', '.join(read)}.")
    st.caption("Far steps leave what the decoder was trained on: nonsense there is expected.")
    if credit:
        st.caption(f"Directions were found on real text. {credit}")
    exports.offer(f"bgt-directions-{loaded.short}-{lang}", table)
    how_to_read(HELP)
