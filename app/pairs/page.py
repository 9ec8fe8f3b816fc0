"""Pairs of sentences and their similarity in both latents: two typed sentences, pairs of a text, or of a file."""

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from app.core import controls, display, exports, inventory, pairs, rows, state, uploads
from app.core.address import BOUND, MAX_ROWS, ROWS, as_ranges, copy_link, go_to
from app.core.display import failing, verbatim
from app.pairs import compute
from app.pairs.compute import GOLD
from bgt_core.contracts import SEMANTIC

COUNTS = [300, 1_000, 5_000, 25_000, 50_000]
EXTREME = 2  # number of pairs listed for each quadrant
WORST = 10  # number of pairs listed on which people and the model differ most
MAX_SELECTED = 1_000  # maximum number of rows in the table of selected pairs
WIDTH = 400  # width in pixels of a column of sentences in that table
TITLES = {  # numbers come first, so that they are visible beside long sentences
    "semantic_rank": "Meaning, %", "style_rank": "Style, %", "left": "Left", "right": "Right",
}  # fmt: skip
ONE_LATENT = (
    "This model has one latent, and this page compares two. Split its vectors into two parts on *Your encoder*, or "
    "choose another model in the sidebar. Here it compares meaning alone."
)
ALT = "Pairs of sentences, with the percentages of random pairs that are less similar in meaning and in style"


@dataclass(frozen=True, eq=False)
class Chosen:
    """The choices made above the plane."""

    text: inventory.ParallelText
    count: int  # maximum number of rows of the text
    source: compute.PairSource
    plane: compute.Plane


def page(loaded: state.Loaded) -> None:
    mine = typed(loaded)
    measured = st.container()
    with st.container(key="strip", horizontal=True, vertical_alignment="bottom"):
        text = controls.choose_text(loaded.langs)
        chosen = None if text is None else choose(loaded, text, mine)
    with measured:
        two_sentences(loaded, mine, chosen)
    if chosen is not None:
        if loaded.second_latent:
            explore(loaded, chosen)
        else:
            st.info(ONE_LATENT, icon=":material/call_split:")
        if GOLD in chosen.plane.pairs:
            with failing():
                judged(loaded, chosen)
    if mine:
        systems = {rows.latent_title(latent): (loaded, latent) for latent in pairs.cosines_of(loaded, mine)}
        with st.expander("What each word of your pair adds"):
            pairs.show_words(systems, mine)
    if text and text.credit:
        st.caption(text.credit)


def typed(loaded: state.Loaded) -> pairs.Pair | None:
    """Ask for two sentences. If one is missing, show a message and return None."""
    known = [pair for pair, _ in pairs.of_start_page(loaded)]
    example = known[0] if known else pairs.Pair("", loaded.langs[0], "", loaded.langs[0])
    fields = []
    for column, side, text, lang in zip(
        st.columns(2), ("left", "right"), (example.text, example.other), (example.lang, example.other_lang), strict=True
    ):
        with column:
            title = side.capitalize()
            text = st.text_area(title, text, key=side, height=68, **BOUND)
            lang = controls.language(f"Language of the {side}", loaded.langs, f"one_{side}_lang", lang)
            text = controls.bounded(text.strip(), uploads.MAX_CHARACTERS, title)
            controls.warn(loaded, [text], lang, title, f"one_{side}_lang")
            fields += [text, lang]
    if not (fields[0] and fields[2]):
        st.warning("Type two sentences.", icon=":material/edit:")
        return None
    return pairs.Pair(*fields)


def choose(loaded: state.Loaded, text: inventory.ParallelText, mine: pairs.Pair | None) -> Chosen | None:
    """Let the user choose the pairs to draw (at first, in the languages of the typed sentences), and their colour."""
    sources = {source.title: source for source in compute.sources(text)}
    langs = (mine.lang, mine.other_lang) if mine else ()
    fitting = [at for at, source in enumerate(sources.values()) if (source.left, source.right) == langs]
    title = st.selectbox("Pairs", list(sources), min(fitting, default=0), key="pairs_of", width=250, **BOUND)
    source = sources[title]
    colour_place = st.container(width=180)
    with st.popover("More"):
        count = controls.count("Pairs at most", COUNTS, "plane_count", width="stretch")
    table, random = compute.compared(loaded, text, count, source)
    if not len(random["semantic"]):
        st.info("Random pairs are drawn from two different pairs or more; this text has one.")
        return None
    own = {column: column.removeprefix(rows.OWN_COLUMN) for column in table if column.startswith(rows.OWN_COLUMN)}
    titles = {"kind": "Kind of pair", **own}
    if GOLD in own:  # human scores are the default
        titles = {GOLD: "", **titles} | {GOLD: "Scores people gave"}
    with colour_place:
        colour = st.selectbox("Colour", list(titles), format_func=titles.__getitem__, key="plane_colour", **BOUND)
    stars = compute.marked(loaded, mine, source.left if source.left == source.right else "", random)
    through = "" if source.left == source.right else ", through translations"
    below = ": % of random pairs below"
    axes = f"{rows.latent_title(SEMANTIC)}{below}", f"{rows.latent_title(loaded.second_latent)}{through}{below}"
    return Chosen(text, count, source, compute.Plane(table, random, stars, colour, titles[colour], axes))


def two_sentences(loaded: state.Loaded, mine: pairs.Pair | None, chosen: Chosen | None) -> None:
    """Show the similarity of the typed sentences by each measure, and compare it with random pairs."""
    if mine is None:
        return
    measures = compute.alike(loaded, mine)
    with st.container(horizontal=True):
        for title, value in measures.items():
            st.metric(title, f"{value:z.2f}", border=True)
    stars = chosen.plane.stars if chosen else pd.DataFrame({"kind": []})
    if len(star := stars[stars["kind"] == compute.MINE]) and chosen:
        st.markdown(f"{nearer(star.iloc[0], chosen)} ★ is this pair below.")
    elif mine.lang != mine.other_lang and loaded.second_latent:
        st.caption(f"Only meaning is compared: {loaded.second_latent} latents of two languages are not comparable.")
    elif chosen and loaded.second_latent:
        st.caption(f"Choose *Within {rows.language_name(mine.lang)}* to see this pair below, among others.")


def nearer(pair: pd.Series, chosen: Chosen) -> str:
    """Describe which percentage of random pairs is less similar than a pair, in each latent."""
    compared, parts = len(chosen.plane.random["semantic"]), []
    for axis, name in zip(compute.AXES, ("meaning", "style"), strict=True):
        rank = pair[f"{axis}_rank"]
        parts += [f"than {compute.share(rank, compared)} in {name}"] if pair[axis] == pair[axis] else []
    return f"Nearer {', '.join(parts)}."


@st.fragment
def explore(loaded: state.Loaded, chosen: Chosen) -> None:
    """Show the plane, the selected pairs, and the extreme pairs. A selection reruns only this fragment."""
    plane, source = chosen.plane, chosen.source
    counts = "; ".join(f"{name}: {len(part):,}" for name, part in plane.quadrants.items())
    left, details = st.columns([2, 1], gap="medium")
    figure = partial(compute.draw, plane)
    with left:
        event = exports.chart(
            f"bgt-plane-{loaded.short}",
            figure,
            f"{len(plane.pairs):,} pairs of sentences by how near they are in both latents; {counts}. Extreme pairs "
            "are listed below.",
            key=f"plane {source.title} {chosen.text.digest} {len(plane.pairs)}",
            on_select="rerun",
            selection_mode=("points", "lasso"),
        )
    if source.built_in:
        st.caption(compute.ordered(plane.pairs))
    places = [point["customdata"] for point in event["selection"]["points"] if "customdata" in point]
    places = [place[0] if isinstance(place, list) else place for place in places]
    selected = plane.pairs.iloc[[place for place in places if place < len(plane.pairs)]]
    with details:
        inspect(chosen, selected) if len(selected) else hints(chosen)
    if len(selected) > 1:
        shown = selected.head(MAX_SELECTED)[[*TITLES]].rename(columns=TITLES)
        formats = dict.fromkeys(shown.columns[:2], "%.1f")
        widths = {title: controls.width(title) for title in formats} | {"Left": WIDTH, "Right": WIDTH}
        height = controls.row_height(shown[["Left", "Right"]], WIDTH)
        display.frame(shown, ALT, formats, widths, height=360, row_height=height)
    extremes(plane.quadrants)
    with st.container(horizontal=True):
        copy_link()
        lines = f"Lines: nearer than {compute.NEAR} % of random pairs."
        caption = f"{len(plane.pairs):,} pairs, {source.title}. {lines} {loaded.title}, weights {loaded.short}."
        exports.offer(f"bgt-pairs-{loaded.short}", plane.pairs, figure, caption=caption)


def hints(chosen: Chosen) -> None:
    """Explain how to select points, and show the number of points of each kind."""
    plane = chosen.plane
    st.markdown(
        "**Click a point** to read its pair. To list several, press the lasso in the row of buttons above the "
        "plane, and draw around them."
    )
    kinds = ", ".join(f"{number:,} {kind.lower()}" for kind, number in plane.pairs["kind"].value_counts().items())
    st.caption(
        f"{kinds}. Near is nearer than {compute.NEAR} % of {len(plane.random['semantic']):,} random pairs: in meaning "
        f"from cosine {plane.lines[0]:z.2f} on, in style from {plane.lines[1]:z.2f} on."
    )
    if len(plane.pairs) > compute.MAX_HOVER:
        st.caption(f"With more than {compute.MAX_HOVER:,} points, click a point to read its text.")


def inspect(chosen: Chosen, selected: pd.DataFrame) -> None:
    """Show the selected pair, compared with random pairs, or the number of selected pairs. Link to the maps."""
    first = selected.iloc[0]
    if len(selected) == 1:
        st.caption(first["kind"])
        for side in ("left", "right"):
            st.text(first[side])
        st.caption(nearer(first, chosen))
        own = {name.removeprefix(rows.OWN_COLUMN): first[name] for name in selected if name.startswith(rows.OWN_COLUMN)}
        if own and first["kind"] != compute.RANDOM:
            st.caption("; ".join(verbatim(f"{name}: {value}") for name, value in own.items()))
        fields = {"left": first["left"], "right": first["right"], "one_left_lang": chosen.source.left,
                  "one_right_lang": chosen.source.right}  # fmt: skip
        if st.button("Compare these two", on_click=st.session_state.update, args=(fields,)):
            st.rerun()  # the fields are outside this fragment
    else:
        st.markdown(f"**{len(selected):,} selected pairs**, listed below")
    if not chosen.source.built_in:  # sentences of built-in pairs are not on the maps
        to_maps(selected, chosen.count)


def to_maps(selected: pd.DataFrame, count: int) -> None:
    """Link to the maps. There, the sentences of these pairs are selected, as many as fit into an address."""
    linked = selected
    while len(ids := as_ranges(list({*linked["left_row"], *linked["right_row"]}))) > MAX_ROWS:
        linked = linked.head(len(linked) // 2)
    needed = next(size for size in controls.COUNTS if size >= min(count, controls.COUNTS[-1]))
    key = st.session_state.get("own_key", "")  # needed if the link is opened in a new tab
    parameters = {"data": st.session_state.get("data", ""), inventory.PARAMETER: key}
    label = "See on the maps" if len(linked) == len(selected) else f"See the first {len(linked)} on the maps"
    more = {name: value for name, value in parameters.items() if value}
    go_to("maps", label, "scatter_plot", **{"pairs": f"{needed:,}", ROWS: ids, **more})


def extremes(parts: dict[str, pd.DataFrame]) -> None:
    """Show the most extreme pairs of each quadrant, in the layout of the quadrants."""
    st.subheader("The most extreme pairs")
    st.caption("The numbers are the percentages of random pairs that are less similar in each latent.")
    names = list(parts)
    for line in (names[:2], names[2:]):
        for column, name in zip(st.columns(2, gap="medium"), line, strict=True):
            with column:
                st.markdown(f"**{name}** ({len(parts[name]):,})")
                if parts[name].empty:
                    st.caption("No pairs.")
                    continue
                table = parts[name].drop_duplicates(["left", "right"]).head(EXTREME)[[*TITLES]].rename(columns=TITLES)
                display.table(table.map(lambda cell: cell if isinstance(cell, str) else f"{cell:.1f}"), ALT)


def judged(loaded: state.Loaded, chosen: Chosen) -> None:
    """Compare the cosines of pairs with human scores, and list the pairs with the largest differences."""
    table, source = chosen.plane.pairs, chosen.source
    given = table[table["kind"] != compute.RANDOM]
    columns = given[["left", "right", "semantic", "style", GOLD]]
    result = compute.judged(columns, loaded.second_latent, (source.left, source.right))
    st.subheader("Compared with people's scores")
    title = f"Pearson × 100, {len(given):,} pairs"
    pairs.show_scores(result, title, f"bgt-similarity-{loaded.short}", "Cosine of")
    st.markdown("**Largest deviations** of the semantic latent from people's scores")
    wrong = compute.misjudged(given)
    worst = given.loc[wrong.abs().sort_values(ascending=False).index[:WORST]]
    shown = {"Scores": worst[GOLD], "Cosine": worst["semantic"], "Misjudged": wrong[worst.index]}
    shown = {name: of.map("{:z.2f}".format) for name, of in shown.items()}
    display.table(pd.DataFrame({**shown, "Left": worst["left"], "Right": worst["right"]}), "The worst misjudged pairs")
    st.caption("Misjudged: the model's standard score minus people's standard score. Above 0, the model's is too high.")
