"""Pairs of sentences by their similarity in both latents: where do the latents disagree?"""

from __future__ import annotations

from functools import partial
from typing import Literal

import pandas as pd
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.core import controls, exports, own_texts, rows, startup, state
from app.core.address import BOUND, MAX_ROWS, ROWS, as_ranges
from app.core.component import copy_link
from app.core.markdown import how_to_read, verbatim
from app.plane import chart, compute
from bgt_core.contracts import SEMANTIC

COUNTS = [300, 1_000, 5_000, 25_000, 50_000]
EXTREME = 5  # pairs listed of each quadrant
MAX_SELECTED = 1_000  # rows of the table of selected pairs
HELP = """
- **A point is a pair of sentences.** To the right the *semantic* latent finds them more alike: they mean nearly the
  same. Upwards the *{second}* latent does: they are written alike, in length, in mood, in how they begin and end.
  Both are cosines: 1 is the same direction, 0 nothing in common.
- **The dashed lines** are similarity thresholds: 95 % of random pairs are below each. The sliders change the share.
  They only sort pairs into quadrants.
- **The model was trained to make the latents disagree**: lower right are pairs that mean much the same and are written
  differently, upper left pairs that are written the same way and mean something else.
- **Which pairs?** *Within* a language each sentence is paired with its nearest in meaning, its nearest in style and a
  random one, so the shares of these three kinds say nothing about the language. Your own pairs are
  drawn as they are, beside random ones.
- **Translations** are in two languages, whose {second} latents can't be compared by cosine. Instead, each
  sentence's cosines with up to {anchors} sentences of its own language are compared with those of its translation to
  *their* translations: 1 if both have the same relations to the others, 0 if they have nothing in common.
- **The extreme pairs** below are those farthest from both lines, in standard deviations of all pairs.
"""


def page(maps: StreamlitPage, alike: StreamlitPage) -> None:
    """`maps` and `alike` are the pages that a pair can be opened in."""
    loaded = state.model()
    second = loaded.second_latent
    st.title("Where they disagree")
    if not second:
        st.info(
            "This model has one latent, and this page compares two. Choose another model in the sidebar. *How alike?* "
            "compares this model's cosines with people's scores."
        )
        return
    st.markdown(
        "Each point is a pair of sentences: the farther right, the more alike in **meaning**; the higher up, the more "
        "alike in **style**."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = controls.choose_text(loaded.langs)
        if text is None:
            return
        sources = {source.title: source for source in compute.sources(text)}
        source = sources[st.selectbox("Pairs", list(sources), key="pairs_of", width=170, **BOUND)]
        colour_place = st.container(width=180)
        with st.popover("More"):
            count = controls.count("Pairs at most", COUNTS, "plane_count", width="stretch")
            percentiles = tuple(
                st.slider(f"Alike in {name}: above this share of random pairs, %", 50, 99, 95, key=key, **BOUND)
                for name, key in (("meaning", "meaning_line"), ("style", "style_line"))
            )
    pairs = compute.pairs(loaded, text, count, source)
    with colour_place:
        colour, colour_title = choose_colour(pairs)
    explore(loaded, pairs, (colour, colour_title), percentiles, source, (text, count), (maps, alike))
    if text.credit:
        st.caption(text.credit)
    how_to_read(HELP.format(second=second, anchors=compute.ANCHORS))


def choose_colour(pairs: pd.DataFrame) -> tuple[str, str]:
    """Choose a column to colour by, with its title: the kind of pair, a count, or one of the user's columns."""
    own = {column: column.removeprefix("own:") for column in pairs if column.startswith("own:")}
    titles = {"kind": "Kind of pair", "overlap": "Words in common", "length": "Difference in length", **own}
    if "own:gold" in own:  # people's scores come first
        titles = {"own:gold": "", **titles} | {"own:gold": "Scores people gave"}
    colour = st.selectbox("Colour", list(titles), format_func=titles.__getitem__, key="plane_colour", **BOUND)
    return colour, titles[colour]


@st.fragment
def explore(
    loaded: state.Loaded,
    pairs: pd.DataFrame,
    colour: tuple[str, str],
    percentiles: tuple[int, ...],
    source: compute.PairSource,
    text: tuple[startup.ParallelText, int],
    pages: tuple[StreamlitPage, StreamlitPage],
) -> None:
    """The plane, the pairs that are selected on it, and the extreme ones; a selection reruns only this."""
    cuts = compute.cuts(pairs, (percentiles[0], percentiles[1]))
    parts = compute.quadrants(pairs, cuts)
    style = rows.latent_title(loaded.second_latent)
    y_title = f"{style}, cosine" if source.left == source.right else f"{style}, similarity through translations"
    counts = {name: len(part) for name, part in parts.items()}
    titles = (f"{rows.latent_title(SEMANTIC)}, cosine", y_title, colour[1])
    figure = partial(chart.plane, pairs, colour[0], cuts, counts, titles)
    left, details = st.columns([2, 1], gap="medium")
    with left:
        event = exports.chart(
            f"bgt-plane-{loaded.short}",
            figure,
            f"{len(pairs):,} pairs of sentences by how alike they are in meaning and in style; "
            + "; ".join(f"{name}: {count:,}" for name, count in counts.items())
            + ". Extreme pairs are listed below.",
            key=f"plane {source.title} {text[0].digest} {len(pairs)}",
            on_select="rerun",
            selection_mode=("points", "lasso"),
        )
    with details:
        places = [point["customdata"] for point in event["selection"]["points"] if "customdata" in point]
        places = [place[0] if isinstance(place, list) else place for place in places]
        selected = pairs.iloc[[place for place in places if place < len(pairs)]]
        if len(selected):
            inspect(loaded, selected, source, text, pages)
        else:
            st.markdown(
                "**Click a point** to read its pair. To list several, press *Lasso Select* above the plane and draw "
                "around them."
            )
            kinds = ", ".join(f"{number:,} {kind.lower()}" for kind, number in pairs["kind"].value_counts().items())
            st.caption(
                f"{kinds}. The lines: a pair counts as alike in meaning from {cuts[0]:z.2f} on, where "
                f"{percentiles[0]} % of random pairs stay below, and in style from {cuts[1]:z.2f} on, where "
                f"{percentiles[1]} % do."
            )
            if not source.given and len(pairs) and text[1] > compute.MAX_SEARCHED:
                st.caption(f"Searched: the first {compute.MAX_SEARCHED:,} different sentences.")
            if len(pairs) > chart.MAX_HOVER:
                st.caption(f"With more than {chart.MAX_HOVER:,} points, click a point to read its text.")
    extremes(parts)
    with st.container(horizontal=True):
        copy_link()
        exports.offer(
            f"bgt-pairs-{loaded.short}",
            pairs,
            figure,
            caption=f"{len(pairs):,} pairs, {source.title}. Lines: {percentiles[0]} % and {percentiles[1]} % of random "
            f"pairs are less alike. {loaded.name}.",
        )


def inspect(
    loaded: state.Loaded,
    selected: pd.DataFrame,
    source: compute.PairSource,
    text: tuple[startup.ParallelText, int],
    pages: tuple[StreamlitPage, StreamlitPage],
) -> None:
    """Show the selected pairs, with links to the maps and to How alike?"""
    first = selected.iloc[0]
    if len(selected) == 1:
        st.caption(first["kind"])
        for side in ("left", "right"):
            st.text(first[side])
        with st.container(horizontal=True):
            st.metric("Meaning", f"{first['semantic']:z.2f}", width="content")
            st.metric("Style", f"{first['style']:z.2f}", width="content")
            st.metric("Words in common", f"{first['overlap']:.0%}", width="content")
        own = {name.removeprefix("own:"): first[name] for name in selected if name.startswith("own:")}
        if own and first["kind"] != compute.RANDOM:
            st.caption("; ".join(verbatim(f"{name}: {value}") for name, value in own.items()))
    else:
        st.markdown(f"**{len(selected):,} selected pairs**")
        listing(selected.head(MAX_SELECTED), height=360)
    maps, alike = pages
    with st.container(horizontal=True):
        to_maps(selected, text[1], maps)
        if len(selected) == 1:
            langs = {
                f"one_{side}_lang": rows.language_name(lang)
                for side, lang in (("left", source.left), ("right", source.right))
            }
            st.page_link(
                alike,
                label="How alike?",
                icon=":material/compare_arrows:",
                query_params={"left": first["left"], "right": first["right"], **langs},
            )


def to_maps(selected: pd.DataFrame, count: int, maps: StreamlitPage) -> None:
    """Link to the sentences of as many pairs as fit an address; the maps then show as many rows as needed."""
    linked = selected
    while len(ids := as_ranges(list({*linked["left_row"], *linked["right_row"]}))) > MAX_ROWS:
        linked = linked.head(len(linked) // 2)
    needed = next(size for size in controls.COUNTS if size >= min(count, controls.COUNTS[-1]))
    data = {"data": st.session_state["data"]} if "data" in st.session_state else {}
    own = own_texts.in_link()  # for a tab of its own
    st.page_link(
        maps,
        label="See on the maps" if len(linked) == len(selected) else f"See the first {len(linked)} on the maps",
        icon=":material/scatter_plot:",
        query_params={"pairs": f"{needed:,}", ROWS: ids, **data, **own},
    )


def extremes(parts: dict[str, pd.DataFrame]) -> None:
    """The most extreme pairs of each quadrant, laid out as the quadrants are."""
    st.subheader("The most extreme pairs")
    names = list(parts)
    for line in (names[:2], names[2:]):
        for column, name in zip(st.columns(2, gap="medium"), line, strict=True):
            with column:
                st.markdown(f"**{name}** ({len(parts[name]):,})")
                if len(parts[name]):
                    listing(parts[name].drop_duplicates(["left_row", "right_row"]).head(EXTREME), height="content")
                else:
                    st.caption("No pairs.")


def listing(pairs: pd.DataFrame, height: Literal["content"] | int) -> None:
    """Numbers first, so that no long sentence pushes them out of sight."""
    titles = {"semantic": "Meaning", "style": "Style", "left": "Left", "right": "Right"}
    two = st.column_config.NumberColumn(format="%.2f", width=66)
    st.dataframe(
        pairs[list(titles)].rename(columns=titles),
        hide_index=True,
        height=height,
        row_height=84,  # four lines of text
        column_config={"Meaning": two, "Style": two, "Left": {"width": 112}, "Right": {"width": 112}},
        alt="Pairs of sentences with how alike they are in meaning and in style",
    )
