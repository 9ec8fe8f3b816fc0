"""Pairs of sentences by their similarity in both latents: where do the latents disagree?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from app.core import controls, corpora, exports, markdown, rows, startup, state
from app.core.address import BOUND, MAX_ROWS, ROWS, as_ranges, go_to
from app.core.component import copy_link
from app.core.markdown import verbatim
from app.plane import compute
from bgt_core.contracts import SEMANTIC

COUNTS = [300, 1_000, 5_000, 25_000, 50_000]
GOLD = f"{rows.OWN_COLUMN}gold"
EXTREME = 3  # pairs listed of each quadrant
MAX_SELECTED = 1_000  # rows of the table of selected pairs
WIDTH = 400  # pixels of a sentence in that table
TITLES = {  # numbers first, so that no long sentence pushes them out of sight
    "semantic_rank": "Meaning, %", "style_rank": "Style, %", "left": "Left", "right": "Right",
}  # fmt: skip
PAIRS = "Pairs of sentences, with the share of random pairs that are less alike in meaning and in style"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is chosen above the plane, and the pairs that it gives."""

    text: startup.ParallelText
    count: int  # rows of the text at most
    source: compute.PairSource
    colour: str
    colour_title: str
    percentiles: tuple[int, int]  # of random pairs that a near pair exceeds, in meaning and in style
    pairs: pd.DataFrame
    random: pd.DataFrame  # the background of random pairs


def page(loaded: state.Loaded) -> None:
    with st.container(key="strip", horizontal=True, vertical_alignment="bottom"):
        text = controls.choose_text(loaded.langs)
        if text is None:
            return
        sources = {source.title: source for source in compute.sources(text)}
        source = sources[st.selectbox("Pairs", list(sources), key="pairs_of", width=250, **BOUND)]
        colour_place = st.container(width=180)
        with st.popover("More"):
            count = controls.count("Pairs at most", COUNTS, "plane_count", width="stretch")
            meaning, style = (
                st.slider(f"Near in {name}: nearer than this share of random pairs, %", 50, 99, 95, key=key, **BOUND)
                for name, key in (("meaning", "meaning_line"), ("style", "style_line"))
            )
    pairs = compute.pairs(loaded, text, count, source)
    random = compute.background(loaded, text, count, source)
    if random.empty:
        st.info("Random pairs are drawn from two different pairs or more; this text has one.")
        return
    own = {column: column.removeprefix(rows.OWN_COLUMN) for column in pairs if column.startswith(rows.OWN_COLUMN)}
    titles = {"kind": "Kind of pair", "overlap": "Words in common", "length": "Difference in length", **own}
    if GOLD in own:  # people's scores come first
        titles = {GOLD: "", **titles} | {GOLD: "Scores people gave"}
    with colour_place:
        colour = st.selectbox("Colour", list(titles), format_func=titles.__getitem__, key="plane_colour", **BOUND)
    explore(loaded, Chosen(text, count, source, colour, titles[colour], (meaning, style), pairs, random))
    if text.credit:
        st.caption(text.credit)


@st.fragment
def explore(loaded: state.Loaded, chosen: Chosen) -> None:
    """The plane, the pairs that are selected on it, and the extreme ones; a selection reruns only this."""
    pairs, random, source, percentiles = chosen.pairs, chosen.random, chosen.source, chosen.percentiles
    cuts = compute.cuts(random, percentiles)
    parts = compute.quadrants(pairs, cuts)
    counts = {name: len(part) for name, part in parts.items()}
    through = "" if source.left == source.right else ", through translations"
    axes = f"{rows.latent_title(SEMANTIC)}", f"{rows.latent_title(loaded.second_latent)}{through}"
    titles = (*(f"{axis}: % of random pairs below" for axis in axes), chosen.colour_title)
    ticks = compute.ticks(random)
    figure = partial(compute.plane, pairs, chosen.colour, cuts, counts, titles, ticks, len(random))
    left, details = st.columns([2, 1], gap="medium")
    with left:
        event = exports.chart(
            f"bgt-plane-{loaded.short}",
            figure,
            f"{len(pairs):,} pairs of sentences by how near they are in both latents; "
            + "; ".join(f"{name}: {count:,}" for name, count in counts.items())
            + ". Extreme pairs are listed below.",
            key=f"plane {source.title} {chosen.text.digest} {len(pairs)}",
            on_select="rerun",
            selection_mode=("points", "lasso"),
        )
    if source.built_in:
        st.caption(compute.ordered(pairs))
    places = [point["customdata"] for point in event["selection"]["points"] if "customdata" in point]
    places = [place[0] if isinstance(place, list) else place for place in places]
    selected = pairs.iloc[[place for place in places if place < len(pairs)]]
    with details:
        if len(selected):
            inspect(loaded, chosen, selected)
        else:
            hints(chosen, cuts)
    if len(selected) > 1:
        shown = selected.head(MAX_SELECTED)[[*TITLES]].rename(columns=TITLES)
        formats = dict.fromkeys(shown.columns[:2], "%.1f")
        widths = {title: controls.width(title) for title in formats} | {"Left": WIDTH, "Right": WIDTH}
        height = controls.row_height(shown[["Left", "Right"]], WIDTH)
        markdown.frame(shown, PAIRS, formats, widths, height=360, row_height=height)
    extremes(parts)
    meaning, style = percentiles
    lines = f"Lines: nearer than {meaning} % and {style} % of random pairs."
    with st.container(horizontal=True):
        copy_link()
        caption = f"{len(pairs):,} pairs, {source.title}. {lines} {loaded.name}."
        exports.offer(f"bgt-pairs-{loaded.short}", pairs, figure, caption=caption)


def hints(chosen: Chosen, cuts: tuple[float, float]) -> None:
    """Say what can be clicked, and what is drawn."""
    pairs, (meaning, style) = chosen.pairs, chosen.percentiles
    st.markdown(
        "**Click a point** to read its pair. To list several, press the lasso in the row of buttons above the "
        "plane, and draw around them."
    )
    kinds = ", ".join(f"{number:,} {kind.lower()}" for kind, number in pairs["kind"].value_counts().items())
    st.caption(
        f"{kinds}. Near in meaning: nearer than {meaning} % of {len(chosen.random):,} random pairs, from "
        f"cosine {cuts[0]:z.2f} on. Near in style: than {style} %, from {cuts[1]:z.2f} on."
    )
    made = not (chosen.source.given or chosen.source.built_in)
    if made and len(pairs) and chosen.count > compute.MAX_SEARCHED:
        st.caption(f"Searched: the first {compute.MAX_SEARCHED:,} different sentences.")
    if len(pairs) > compute.MAX_HOVER:
        st.caption(f"With more than {compute.MAX_HOVER:,} points, click a point to read its text.")


def inspect(loaded: state.Loaded, chosen: Chosen, selected: pd.DataFrame) -> None:
    """Show the selected pairs, compared with random ones, and links to the maps and to How alike?"""
    first, compared = selected.iloc[0], len(chosen.random)
    if len(selected) == 1:
        st.caption(first["kind"])
        for side in ("left", "right"):
            st.text(first[side])
        with st.container(horizontal=True):
            for title, value in (
                ("Meaning", f"{first['semantic']:z.2f}"), ("Style", f"{first['style']:z.2f}"),
                ("Words in common", f"{first['overlap']:.0%}"),
            ):  # fmt: skip
                st.metric(title, value, width="content")
        nearer = (compute.share(first[f"{axis}_rank"], compared) for axis in compute.AXES)
        st.caption("Nearer than {} in meaning, than {} in style.".format(*nearer))
        own = {name.removeprefix(rows.OWN_COLUMN): first[name] for name in selected if name.startswith(rows.OWN_COLUMN)}
        if own and first["kind"] != compute.RANDOM:
            st.caption("; ".join(verbatim(f"{name}: {value}") for name, value in own.items()))
    else:
        st.markdown(f"**{len(selected):,} selected pairs**, listed below")
    with st.container(horizontal=True):
        if not chosen.source.built_in:  # its sentences are not on the maps
            to_maps(selected, chosen.count)
        if len(selected) == 1:
            sides = {"left": chosen.source.left, "right": chosen.source.right}
            langs = {f"one_{side}_lang": rows.language_name(lang) for side, lang in sides.items()}
            texts = {side: first[side] for side in sides}
            go_to("similarity", "How alike?", "compare_arrows", **texts, **langs)


def to_maps(selected: pd.DataFrame, count: int) -> None:
    """Link to the sentences of as many pairs as fit an address; the maps then show as many rows as needed."""
    linked = selected
    while len(ids := as_ranges(list({*linked["left_row"], *linked["right_row"]}))) > MAX_ROWS:
        linked = linked.head(len(linked) // 2)
    needed = next(size for size in controls.COUNTS if size >= min(count, controls.COUNTS[-1]))
    key = st.session_state.get("own_key", "")  # needed if the link is opened in a new tab
    parameters = {"data": st.session_state.get("data", ""), corpora.PARAMETER: key}
    label = "See on the maps" if len(linked) == len(selected) else f"See the first {len(linked)} on the maps"
    more = {name: value for name, value in parameters.items() if value}
    go_to("maps", label, "scatter_plot", **{"pairs": f"{needed:,}", ROWS: ids, **more})


def extremes(parts: dict[str, pd.DataFrame]) -> None:
    """The most extreme pairs of each quadrant, laid out as the quadrants are."""
    st.subheader("The most extreme pairs")
    st.caption("The numbers are shares of random pairs that are less alike, in each latent.")
    names = list(parts)
    for line in (names[:2], names[2:]):
        for column, name in zip(st.columns(2, gap="medium"), line, strict=True):
            with column:
                st.markdown(f"**{name}** ({len(parts[name]):,})")
                if parts[name].empty:
                    st.caption("No pairs.")
                    continue
                table = parts[name].drop_duplicates(["left", "right"]).head(EXTREME)[[*TITLES]].rename(columns=TITLES)
                markdown.table(table.map(lambda cell: cell if isinstance(cell, str) else f"{cell:.1f}"), PAIRS)
