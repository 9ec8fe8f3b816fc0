"""Pairs of sentences by their similarity in both latents: where do the latents disagree?"""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from app.core import controls, exports, markdown, own_texts, rows, startup, state
from app.core.address import BOUND, MAX_ROWS, ROWS, as_ranges
from app.core.component import copy_link
from app.core.markdown import how_to_read, verbatim
from app.plane import chart, compute
from bgt_core.contracts import SEMANTIC

COUNTS = [300, 1_000, 5_000, 25_000, 50_000]
GOLD = f"{rows.OWN_COLUMN}gold"
EXTREME = 3  # pairs listed of each quadrant
MAX_SELECTED = 1_000  # rows of the table of selected pairs
WIDTH = 400  # pixels of a sentence in that table
SHARES = ("Meaning, %", "Style, %")
PAIRS = "Pairs of sentences, with the share of random pairs that are less alike in meaning and in style"
HELP = """
- **A point is a pair of sentences.** The farther right, the nearer in the *semantic* latent; the higher up, the nearer
  in the *{second}* latent. Points are placed by cosine; the marks on the axes are percentiles of random pairs: at 99 %
  a pair is nearer than 99 % of random pairs.
- **Near** is measured against random pairs, and is no claim about meaning: a sentence and its negation are nearer than
  nearly all random pairs. *Paraphrases, negations, roles* shows how far each model tells them apart.
- **The dashed lines** sort pairs into quadrants: near is nearer than 95 % of random pairs. The sliders change that.
- **Paraphrases, negations, roles** are pairs of the built-in grammar: the same meaning in other words or another order,
  one of the two negated, or who does what to whom exchanged. A good semantic latent puts paraphrases to the right of
  the others. Random pairs are of the chosen sentences: {background:,}, or all that there are.
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
    st.title("Where latents disagree")
    if not second:
        st.info(f"{controls.ONE_LATENT} *How alike?* compares this model's cosines with people's scores.")
        return
    st.markdown(
        f"Each point is a pair of sentences: the farther right, the nearer in the **semantic** latent (meaning); the "
        f"higher up, the nearer in the **{second}** latent (style)."
    )
    with st.container(key="strip", horizontal=True, vertical_alignment="bottom"):
        text = controls.choose_text(loaded.langs)
        if text is None:
            return
        sources = {source.title: source for source in compute.sources(text)}
        source = sources[st.selectbox("Pairs", list(sources), key="pairs_of", width=250, **BOUND)]
        colour_place = st.container(width=180)
        with st.popover("More"):
            count = controls.count("Pairs at most", COUNTS, "plane_count", width="stretch")
            percentiles = tuple(
                st.slider(f"Near in {name}: nearer than this share of random pairs, %", 50, 99, 95, key=key, **BOUND)
                for name, key in (("meaning", "meaning_line"), ("style", "style_line"))
            )
    pairs = compute.pairs(loaded, text, count, source)
    random = compute.background(loaded, text, count, source)
    if random.empty:
        st.info("Random pairs are drawn from two different pairs or more; this text has one.")
        return
    with colour_place:
        colour, colour_title = choose_colour(pairs)
    explore(loaded, (pairs, random), (colour, colour_title), percentiles, source, (text, count), (maps, alike))
    if text.credit:
        st.caption(text.credit)
    how_to_read(HELP.format(second=second, anchors=compute.ANCHORS, background=compute.BACKGROUND))


def choose_colour(pairs: pd.DataFrame) -> tuple[str, str]:
    """Choose a column to colour by, with its title: the kind of pair, a count, or one of the user's columns."""
    own = {column: column.removeprefix(rows.OWN_COLUMN) for column in pairs if column.startswith(rows.OWN_COLUMN)}
    titles = {"kind": "Kind of pair", "overlap": "Words in common", "length": "Difference in length", **own}
    if GOLD in own:  # people's scores come first
        titles = {GOLD: "", **titles} | {GOLD: "Scores people gave"}
    colour = st.selectbox("Colour", list(titles), format_func=titles.__getitem__, key="plane_colour", **BOUND)
    return colour, titles[colour]


@st.fragment
def explore(
    loaded: state.Loaded,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    colour: tuple[str, str],
    percentiles: tuple[int, ...],
    source: compute.PairSource,
    text: tuple[startup.ParallelText, int],
    pages: tuple[StreamlitPage, StreamlitPage],
) -> None:
    """The plane, the pairs that are selected on it, and the extreme ones; a selection reruns only this.

    `tables` are the pairs, and the background of random ones.
    """
    pairs, random = tables
    cuts = compute.cuts(random, (percentiles[0], percentiles[1]))
    parts = compute.quadrants(pairs, cuts)
    style = rows.latent_title(loaded.second_latent)
    through = "" if source.left == source.right else ", through translations"
    counts = {name: len(part) for name, part in parts.items()}
    below = "% of random pairs below"
    titles = (f"{rows.latent_title(SEMANTIC)}: {below}", f"{style}{through}: {below}", colour[1])
    figure = partial(chart.plane, pairs, colour[0], cuts, counts, titles, compute.ticks(random), len(random))
    left, details = st.columns([2, 1], gap="medium")
    with left:
        event = exports.chart(
            f"bgt-plane-{loaded.short}",
            figure,
            f"{len(pairs):,} pairs of sentences by how near they are in both latents; "
            + "; ".join(f"{name}: {count:,}" for name, count in counts.items())
            + ". Extreme pairs are listed below.",
            key=f"plane {source.title} {text[0].digest} {len(pairs)}",
            on_select="rerun",
            selection_mode=("points", "lasso"),
        )
    if source.built_in:
        st.caption(compute.ordered(pairs))
    with details:
        places = [point["customdata"] for point in event["selection"]["points"] if "customdata" in point]
        places = [place[0] if isinstance(place, list) else place for place in places]
        selected = pairs.iloc[[place for place in places if place < len(pairs)]]
        if len(selected):
            inspect(loaded, selected, len(random), source, text, pages)
        else:
            st.markdown(
                "**Click a point** to read its pair. To list several, press the lasso in the row of buttons above the "
                "plane, and draw around them."
            )
            kinds = ", ".join(f"{number:,} {kind.lower()}" for kind, number in pairs["kind"].value_counts().items())
            st.caption(
                f"{kinds}. Near in meaning: nearer than {percentiles[0]} % of {len(random):,} random pairs, from "
                f"cosine {cuts[0]:z.2f} on. Near in style: than {percentiles[1]} %, from {cuts[1]:z.2f} on."
            )
            if not (source.given or source.built_in) and len(pairs) and text[1] > compute.MAX_SEARCHED:
                st.caption(f"Searched: the first {compute.MAX_SEARCHED:,} different sentences.")
            if len(pairs) > chart.MAX_HOVER:
                st.caption(f"With more than {chart.MAX_HOVER:,} points, click a point to read its text.")
    if len(selected) > 1:
        listing(selected.head(MAX_SELECTED))
    extremes(parts)
    with st.container(horizontal=True):
        copy_link()
        exports.offer(
            f"bgt-pairs-{loaded.short}",
            pairs,
            figure,
            caption=f"{len(pairs):,} pairs, {source.title}. Lines: nearer than {percentiles[0]} % and "
            f"{percentiles[1]} % of random pairs. {loaded.name}.",
        )


def inspect(
    loaded: state.Loaded,
    selected: pd.DataFrame,
    compared: int,
    source: compute.PairSource,
    text: tuple[startup.ParallelText, int],
    pages: tuple[StreamlitPage, StreamlitPage],
) -> None:
    """Show the selected pairs, compared with `compared` random ones, and links to the maps and to How alike?"""
    first = selected.iloc[0]
    if len(selected) == 1:
        st.caption(first["kind"])
        for side in ("left", "right"):
            st.text(first[side])
        with st.container(horizontal=True):
            st.metric("Meaning", f"{first['semantic']:z.2f}", width="content")
            st.metric("Style", f"{first['style']:z.2f}", width="content")
            st.metric("Words in common", f"{first['overlap']:.0%}", width="content")
        st.caption(
            f"Nearer than {chart.share(first['semantic_rank'], compared)} in meaning, than "
            f"{chart.share(first['style_rank'], compared)} in style."
        )
        own = {name.removeprefix(rows.OWN_COLUMN): first[name] for name in selected if name.startswith(rows.OWN_COLUMN)}
        if own and first["kind"] != compute.RANDOM:
            st.caption("; ".join(verbatim(f"{name}: {value}") for name, value in own.items()))
    else:
        st.markdown(f"**{len(selected):,} selected pairs**, listed below")
    maps, alike = pages
    with st.container(horizontal=True):
        if not source.built_in:  # its sentences are not on the maps
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
    st.caption("The numbers are shares of random pairs that are less alike, in each latent.")
    names = list(parts)
    for line in (names[:2], names[2:]):
        for column, name in zip(st.columns(2, gap="medium"), line, strict=True):
            with column:
                st.markdown(f"**{name}** ({len(parts[name]):,})")
                if len(parts[name]):
                    table = listed(parts[name].drop_duplicates(["left", "right"]).head(EXTREME))
                    markdown.table(table.map(lambda cell: cell if isinstance(cell, str) else f"{cell:.1f}"), PAIRS)
                else:
                    st.caption("No pairs.")


def listing(pairs: pd.DataFrame) -> None:
    """A table of selected pairs."""
    table = listed(pairs)
    share = {title: st.column_config.NumberColumn(format="%.1f", width=controls.width(title)) for title in SHARES}
    st.dataframe(
        table,
        hide_index=True,
        height=360,
        row_height=controls.row_height(table[["Left", "Right"]], WIDTH),
        column_config=share | {"Left": {"width": WIDTH}, "Right": {"width": WIDTH}},
        alt=PAIRS,
    )


def listed(pairs: pd.DataFrame) -> pd.DataFrame:
    """Numbers first, so that no long sentence pushes them out of sight."""
    titles = {"semantic_rank": SHARES[0], "style_rank": SHARES[1], "left": "Left", "right": "Right"}
    return pairs[list(titles)].rename(columns=titles)
