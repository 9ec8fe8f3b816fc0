"""Compare two models on pairs: the pairs on which they disagree most, and how many translations each of them finds."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, exports, inventory, pairs, rows
from app.core.display import NOTES, frame, verbatim
from app.core.state import BY_DIGEST, Loaded
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.systems import System, disagreement
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of

MAX_PAIRS = 1_000  # maximum number of pairs for retrieval, whose time is quadratic
SHOWN = 20  # number of pairs listed in the table
GAP = "Second minus first"
DISAGREEMENTS, RETRIEVAL = "Disagreements", "Translations found"


@st.fragment
def compare(models: Sequence[Loaded], shown: inventory.ParallelText | None) -> None:
    """Compare the semantic latents of two models on the pairs of `shown`, or of the first text that both can read. User
    actions in this part rerun only this fragment."""
    st.header(" and ".join(verbatim(model.title) for model in models), anchor=False)
    langs = [lang for lang in models[0].langs if lang in models[1].langs]
    found = [
        text for text in inventory.readable(langs, 2).values() if all(text in of.texts(2).values() for of in models)
    ]
    texts = sorted(found, key=lambda text: text != shown)
    if not texts:
        st.info("The app has no pairs of sentences in languages that both models read. Upload some.")
        return
    translations = [text for text in texts if len(text.langs) > 1]
    views = [DISAGREEMENTS, *([RETRIEVAL] if translations else [])]
    by_retrieval = controls.choice("Compare by", views, "by") == RETRIEVAL
    text = translations[0] if by_retrieval else texts[0]
    for fitted in filter(None, (model.fitted_on(text) for model in models)):
        st.caption(verbatim(fitted))
    (retrieval if by_retrieval else disagreements)(models, text)


def disagreements(models: Sequence[Loaded], text: inventory.ParallelText) -> None:
    """Show the pairs on whose similarity two models differ most, and the effect of each word of one pair."""
    (left, right, *_), langs = inventory.columns_of(text, MAX_PAIRS)
    titles = [model.title for model in models]
    made = disagreement(dict(zip(titles, models, strict=True)), left, right, (langs[0], langs[1]))
    ranks = pd.DataFrame(100 * made.ranks, columns=titles).assign(**{GAP: 100 * made.gaps})
    similarities = pd.DataFrame(made.similarities, columns=titles).add_prefix("similarity, ")
    table = ranks.assign(Left=left, Right=right).join(similarities).iloc[made.order]
    st.caption(f"{len(table):,} pairs. {NOTES['ranks']} {text.credit}")
    formats = dict.fromkeys(titles, "%.0f") | {GAP: "%+.0f"}
    shown = table.head(SHOWN)[[*formats, "Left", "Right"]]
    event = frame(
        shown,
        "Pairs with the largest gaps between the ranks of both models",
        formats,
        {title: controls.width(title) for title in formats} | {"Left": 270, "Right": 270},
        row_height=controls.row_height(shown[["Left", "Right"]], 270),
        on_select="rerun", selection_mode="single-row", key="cmp_row",
    )  # fmt: skip
    exports.offer("bgt-models-disagreements", table, title="Export all pairs")
    row = table.iloc[next((at for at in event.selection.rows if at < len(table)), 0)]
    st.markdown("**What each word adds**. Choose a row above to see the words of another pair.")
    systems = {model.title: (model, SEMANTIC) for model in models}
    pair = pairs.Pair(row["Left"], langs[0], row["Right"], langs[1])
    pairs.show_words(systems, pair, controls.by_gradients(models, "cmp_words_by"))


def retrieval(models: Sequence[Loaded], text: inventory.ParallelText) -> None:
    """Show how often each model's nearest neighbour of a sentence is its translation."""
    left, right, *more = text.langs
    if more:
        with st.container(horizontal=True):
            left = controls.language("From", text.langs, "cmp_from")
            right = controls.language("Into", [lang for lang in text.langs if lang != left], "cmp_into")
    table = inventory.sentences(text, MAX_PAIRS)
    sides = [tuple(table.loc[table["lang"] == lang, "text"]) for lang in (left, right)]
    count = len(sides[0])
    found = {model.title: translations_found(model, (left, right), *sides) for model in models}
    forward, backward = ({name: way[at] for name, way in found.items()} for at in (0, 1))
    both = {name: (forward[name].astype(float) + backward[name]) / 2 for name in forward}
    st.caption(f"{count:,} pair{'s' * (count != 1)}; by chance {100 / count:.1f}% would be found. {text.credit}")
    names = rows.language_name(left), rows.language_name(right)
    ways = {"Both ways": both, "{} finds {}".format(*names): forward, "{1} finds {0}".format(*names): backward}
    for title, hits in ways.items():
        pairs.show_scores(pairs.shares(hits), f"{title}, %", f"bgt-models-{title.replace(' ', '-').lower()}")


@st.cache_data(max_entries=32, show_spinner="Looking for translations", hash_funcs=BY_DIGEST)
def translations_found(
    model: Loaded, langs: tuple[str, str], left: Sequence[str], right: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return masks (N,) of the left sentences whose nearest right sentence is their translation, and the reverse."""
    system = System(model.title, model)
    of_left, of_right = (embed_distinct(system, side, lang) for side, lang in zip((left, right), langs, strict=True))
    return hits_of(of_left, of_right, model.similarity)
