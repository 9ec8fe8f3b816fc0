"""The page "Pairs": similarities of typed pairs, pairs of a text, or a file, in both latents and by two models."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from app.core import controls, display, exports, inventory, pairs, rows, state, uploads
from app.core.address import BOUND, MAX_ROWS, ROWS, as_ranges, copy_link, go_to, mounted
from app.pairs import compute
from app.pairs.compute import GOLD
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.systems import System, disagreement
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of

MINE, EXAMPLES, FILE = "My sentences", "Example sentences", "A file"  # where the pairs come from
REMEMBERED = 20  # maximum number of earlier typed pairs in the figure
COUNTS = [300, 1_000, 5_000, 25_000, 50_000]
WORST = 10  # number of listed pairs on which the model and human scores differ most
MAX_SELECTED = 1_000  # maximum number of rows in the table of selected pairs
WIDTH = 400  # width in pixels of a column of sentences in the table of selected pairs
MAX_PAIRS = 1_000  # maximum number of pairs for retrieval, whose time is quadratic
COMPARED = 20  # number of pairs listed in the table
GAP = "Second minus first"
DISAGREEMENTS, RETRIEVAL = "Disagreements", "Translations found"
ALT = "Pairs of sentences, with the percentages of random pairs that are less similar in meaning and in style"
_plane = mounted("plane", "../../maps/js/points", "keys")


@dataclass(frozen=True, eq=False)
class Chosen:
    """The settings that the user chose above the figure."""

    text: inventory.ParallelText
    count: int  # maximum number of rows of the text
    source: compute.PairSource
    plane: compute.Plane
    own: bool  # whether the figure shows only the user's typed pairs and random pairs


def page(loaded: state.Loaded) -> None:
    mine = typed(loaded)
    measured = st.container()
    with st.container(key="strip", horizontal=True, vertical_alignment="bottom"):
        chosen = choose(loaded, mine)
    with measured:
        two_sentences(loaded, mine, chosen)
    controls.model_title(loaded)
    if chosen is not None:
        if loaded.second_latent:
            explore(loaded, chosen)
        else:
            st.info(display.NOTES["one-latent"], icon=":material/call_split:")
        if GOLD in chosen.plane.pairs:
            with display.failing():
                judged(loaded, chosen)
    if mine:
        systems = {rows.latent_title(latent): (loaded, latent) for latent in pairs.cosines_of(loaded, [mine])[0]}
        with st.expander("What each word of your pair adds"):
            pairs.show_words(systems, mine, controls.by_gradients([loaded]))
    if second := state.second():
        compare((loaded, second), chosen.text if chosen else None)
    if chosen and chosen.text.credit:
        st.caption(chosen.text.credit)


def typed(loaded: state.Loaded) -> pairs.Pair | None:
    """Ask for two sentences. If one is missing, show a message and return None."""
    left, right = st.columns(2)
    with left:
        usual, example = ("en", controls.EXAMPLE) if "en" in loaded.langs else (loaded.langs[0], "")
        hint = partial(compute.suggested, loaded, "", "")
        text, lang = controls.sentence(loaded, "Your sentence", ("sentence", "language"), usual, hint, example)
    with right:
        keys, hint = ("other", "other_language"), partial(compute.suggested, loaded, text, lang)
        other, other_lang = controls.sentence(loaded, "The other sentence", keys, lang, hint)
    if not (text and other):
        st.warning(f"{'Upload' if loaded.sentences else 'Type'} two sentences.", icon=":material/edit:")
        return None
    return pairs.Pair(text, lang, other, other_lang)


def remembered(mine: pairs.Pair | None) -> list[pairs.Pair]:
    """Return the pairs that the user compared earlier in this session, and remember the present pair."""
    known = [pair for pair in st.session_state.get("typed_pairs", []) if pair != mine]
    st.session_state["typed_pairs"] = [*known, *([mine] if mine else [])][-REMEMBERED:]
    return known


def choose(loaded: state.Loaded, mine: pairs.Pair | None) -> Chosen | None:
    """Let the user choose where the pairs come from, which pairs to draw, and their colours."""
    texts = loaded.texts()
    files = {name: text for name, text in texts.items() if text.file or text.table is not None}
    linked = st.session_state.get("data") or st.query_params.get("data")
    usual = FILE if linked in files else EXAMPLES if "data" in st.query_params else MINE
    points = controls.choice("Points", [MINE, EXAMPLES, FILE], "points", usual)
    langs = (mine.lang, mine.other_lang) if mine else (loaded.langs[0],) * 2
    offered = files if points == FILE else {name: text for name, text in texts.items() if name not in files}
    if points == MINE:  # the user's pair is compared with random pairs of the first text in its languages
        name = next((name for name, text in (offered | files).items() if {*langs} <= {*text.langs}), None)
    elif points == EXAMPLES and offered:
        if linked not in offered:
            st.session_state.pop("data", None)
        name = st.selectbox("Sentences", list(offered), key="data", width=220, **BOUND)
    else:
        name = uploads.choose_name(list(offered), "data", width=220, **BOUND)
        uploads.remove_button(name or "", "data", list(offered))
    if name is None:
        spoken = " and ".join(dict.fromkeys(map(rows.language_name, langs)))
        missing = f"The app has no pairs of example sentences in {spoken}. Choose *{FILE}* above. " * (points == MINE)
        st.info(f"{missing}{display.NOTES['no-file']}")
        return None
    text, count = texts[name], COUNTS[0]
    sources = {source.title: source for source in compute.sources(text) if not (source.built_in and loaded.sentences)}
    fitting = [source for source in sources.values() if {source.left, source.right} == {*langs}]
    if points == MINE:
        source = next(source for source in fitting if source.given == (len({*langs}) > 1))
    else:
        at = [*sources.values()].index(fitting[0]) if fitting else 0
        source = sources[st.selectbox("Which pairs", list(sources), at, key="pairs_of", width=250, **BOUND)]
        with st.popover("More"):
            count = controls.count("Pairs at most", COUNTS, "plane_count", width="stretch")
    table, random = compute.compared(loaded, text, count, source)
    if not len(random["semantic"]):
        st.info("Random pairs are drawn from two different pairs or more; this text has one.")
        return None
    if points == MINE:
        table = table[table["kind"] == compute.RANDOM].reset_index(drop=True)
    own = {column: column.removeprefix(rows.OWN_COLUMN) for column in table if column.startswith(rows.OWN_COLUMN)}
    gold = {GOLD: "Scores people gave"} if GOLD in own else {}  # human scores are the default colour, if there are any
    colours = {**gold, "kind": "Kind of pair", **own, **gold}
    colour = "kind"
    if own:
        colour = st.selectbox("Colour", list(colours), format_func=colours.__getitem__, key="plane_colour", **BOUND)
    stars = compute.marked(loaded, mine, remembered(mine), source, inventory.sentences(text, count), random)
    through = "" if source.left == source.right else ", through translations"
    below = ": % of random pairs below"
    axes = f"{rows.latent_title(SEMANTIC)}{below}", f"{rows.latent_title(loaded.second_latent)}{through}{below}"
    plane = compute.Plane(table, random, stars, colour, colours[colour], axes)
    return Chosen(text, count, source, plane, points == MINE)


def two_sentences(loaded: state.Loaded, mine: pairs.Pair | None, chosen: Chosen | None) -> None:
    """Show the similarity of the typed sentences by each measure and model, and compare it with random pairs."""
    if mine is None:
        return
    for model in filter(None, (loaded, state.second())):
        controls.model_title(model)
        if {mine.lang, mine.other_lang} <= {*model.langs} and model.embeds(mine.text, mine.other):
            with st.container(horizontal=True):
                for title, value in compute.alike(model, mine).items():
                    st.metric(title, f"{value:z.2f}", border=True)
        else:
            st.caption(state.STORED if model.sentences else f"This model reads {model.languages}.")
    if chosen and len(star := chosen.plane.stars[chosen.plane.stars["kind"] == compute.MINE]):
        of = f"**{display.verbatim(loaded.title)}**: " * bool(state.second())
        st.markdown(f"{of}{nearer(star.iloc[0], chosen)} ★ is this pair below.")
    elif chosen and loaded.second_latent:
        st.caption(f"Choose *{MINE}* to see this pair below.")


def nearer(pair: pd.Series, chosen: Chosen) -> str:
    """Say which percentage of random pairs is less similar than this pair in each latent."""
    count, names = len(chosen.plane.random["semantic"]), zip(compute.AXES, ("meaning", "style"), strict=True)
    ranks = {name: pair[f"{axis}_rank"] for axis, name in names if pair[axis] == pair[axis]}
    return f"Nearer {' and '.join(f'than {compute.share(rank, count)} in {name}' for name, rank in ranks.items())}."


@st.fragment
def explore(loaded: state.Loaded, chosen: Chosen) -> None:
    """Show the figure, the selected pairs, and the extreme pairs. A new selection reruns only this fragment."""
    plane, source = chosen.plane, chosen.source
    counts = "; ".join(f"{name}: {len(part):,}" for name, part in plane.quadrants.items())
    left, details = st.columns([2, 1], gap="medium")
    figure = partial(compute.draw, plane)
    with left:
        event = exports.chart(
            f"bgt-plane-{loaded.short}",
            figure,
            f"{len(plane.pairs):,} pairs by how near they are in both latents; {counts}. Some are listed below.",
            key=f"plane {source.title} {chosen.text.digest} {len(plane.pairs)}",
            on_select="rerun",
            selection_mode=("points", "lasso"),
        )
        _plane(data={"of": hash(chosen)}, key="plane_keys")
    if source.built_in:
        st.caption(compute.ordered(plane.pairs))
    elif fitted := loaded.fitted_on(chosen.text):
        st.caption(display.verbatim(fitted))
    places = [point["customdata"] for point in event["selection"]["points"] if "customdata" in point]
    places = [place[0] if isinstance(place, list) else place for place in places]
    selected = plane.pairs.iloc[[place for place in places if place < len(plane.pairs)]]
    with details:
        inspect(chosen, selected) if len(selected) else hints(chosen)
    about, listed = "The most extreme pairs", plane.extremes
    if len(selected) > 1:
        about, listed = f"{len(selected):,} selected pairs", selected.assign(label=selected["kind"]).head(MAX_SELECTED)
    elif chosen.own:
        about, listed = "Your pair, and those of the start page", plane.stars.iloc[::-1]
    shown = listed[["label", "left", "right"]].set_axis(["", "Left", "Right"], axis=1)
    for at, (axis, title) in enumerate(zip(compute.AXES, ("Meaning", "Style"), strict=True), 1):
        cells = zip(listed[axis], listed[f"{axis}_rank"], strict=True)
        shown.insert(at, title, [f"{cosine:z.2f} ({rank:.1f} %)" for cosine, rank in cells])
    st.markdown(f"**{about}**: cosines, and % of random pairs that are less similar")
    if len(selected) > 1:
        height = controls.row_height(shown[["Left", "Right"]], WIDTH)
        display.frame(shown, ALT, {}, {"Left": WIDTH, "Right": WIDTH}, height=360, row_height=height)
    else:
        display.table(shown, ALT)
    with st.container(horizontal=True):
        copy_link()
        lines = f"Lines: nearer than {compute.NEAR} % of random pairs."
        caption = f"{len(plane.pairs):,} pairs, {source.title}. {lines} {loaded.title}, weights {loaded.short}."
        exports.offer(f"bgt-pairs-{loaded.short}", pd.concat([plane.stars, plane.pairs]), figure, caption=caption)


def hints(chosen: Chosen) -> None:
    """Explain how to select points, and when a pair counts as near."""
    plane = chosen.plane
    st.markdown("**Click a point** to read its pair. For several, press the lasso above, and draw around them.")
    kinds = ", ".join(f"{number:,} {kind.lower()}" for kind, number in plane.pairs["kind"].value_counts().items())
    choice = display.NOTES["chosen"] * (not (chosen.own or chosen.source.given or chosen.source.built_in))
    st.caption(
        f"{kinds}.{choice} Near is nearer than {compute.NEAR} % of {len(plane.random['semantic']):,} random pairs: in "
        f"meaning from cosine {plane.lines[0]:z.2f} on, in style from {plane.lines[1]:z.2f} on."
    )


def inspect(chosen: Chosen, selected: pd.DataFrame) -> None:
    """Show the selected pair in comparison with random pairs, or how many pairs are selected. Link to the maps."""
    first = selected.iloc[0]
    if len(selected) == 1:
        st.caption(first["kind"])
        for side in ("left", "right"):
            st.text(first[side])
        st.caption(nearer(first, chosen))
        own = {name.removeprefix(rows.OWN_COLUMN): first[name] for name in selected if name.startswith(rows.OWN_COLUMN)}
        if own and first["kind"] != compute.RANDOM:
            st.caption("; ".join(display.verbatim(f"{name}: {value}") for name, value in own.items()))
        fields = {"sentence": first["left"], "other": first["right"], "language": chosen.source.left,
                  "other_language": chosen.source.right}  # fmt: skip
        if st.button("Compare these two", on_click=st.session_state.update, args=(fields,)):
            st.rerun()  # rerun the whole page: the text fields are outside this fragment
    else:
        st.markdown(f"**{len(selected):,} selected pairs**, listed below")
    if not chosen.source.built_in:  # sentences of built-in pairs are not on the maps
        to_maps(selected, chosen.count)


def to_maps(selected: pd.DataFrame, count: int) -> None:
    """Show a link that opens the maps with the sentences of these pairs selected, as many as fit into a URL."""
    linked = selected
    while len(ids := as_ranges(list({*linked["left_row"], *linked["right_row"]}))) > MAX_ROWS:
        linked = linked.head(len(linked) // 2)
    needed = next(size for size in controls.COUNTS if size >= min(count, controls.COUNTS[-1]))
    key = st.session_state.get("own_key", "")  # key of the user's texts, needed if the link is opened in a new tab
    more = {"data": st.session_state.get("data", ""), inventory.PARAMETER: key}
    label = "See on the maps" if len(linked) == len(selected) else f"See the first {len(linked)} on the maps"
    go_to("maps", label, "scatter_plot", **{"pairs": f"{needed:,}", ROWS: ids, **more})


def judged(loaded: state.Loaded, chosen: Chosen) -> None:
    """Compare the cosines of pairs with human scores, and list the pairs with the largest differences."""
    table, source = chosen.plane.pairs, chosen.source
    given = table[table["kind"] != compute.RANDOM]
    columns = given[["left", "right", "semantic", "style", GOLD]]
    result = compute.judged(columns, loaded.second_latent, (source.left, source.right))
    st.subheader("Compared with people's scores")
    pairs.show_scores(result, f"Pearson × 100, {len(given):,} pairs", f"bgt-similarity-{loaded.short}", "Cosine of")
    st.markdown("**Largest deviations** of the semantic latent from people's scores")
    wrong = compute.misjudged(given)
    worst = given.loc[wrong.abs().sort_values(ascending=False).index[:WORST]]
    shown = {"Scores": worst[GOLD], "Cosine": worst["semantic"], "Misjudged": wrong[worst.index]}
    shown = {name: of.map("{:z.2f}".format) for name, of in shown.items()}
    display.table(pd.DataFrame({**shown, "Left": worst["left"], "Right": worst["right"]}), "The worst misjudged pairs")
    st.caption("Misjudged: the model's standard score minus people's standard score. Above 0, the model's is too high.")


@st.fragment
def compare(models: Sequence[state.Loaded], shown: inventory.ParallelText | None) -> None:
    """Compare the semantic latents of two models on the pairs of `shown`, or of the first text that both can read."""
    st.header(" and ".join(display.verbatim(model.title) for model in models), anchor=False)
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
        st.caption(display.verbatim(fitted))
    (retrieval if by_retrieval else disagreements)(models, text)


def disagreements(models: Sequence[state.Loaded], text: inventory.ParallelText) -> None:
    """Show the pairs on whose similarity two models differ most, and the effect of each word of one pair."""
    (left, right, *_), langs = inventory.columns_of(text, MAX_PAIRS)
    titles = [model.title for model in models]
    made = disagreement(dict(zip(titles, models, strict=True)), left, right, (langs[0], langs[1]))
    ranks = pd.DataFrame(100 * made.ranks, columns=titles).assign(**{GAP: 100 * made.gaps})
    similarities = pd.DataFrame(made.similarities, columns=titles).add_prefix("similarity, ")
    table = ranks.assign(Left=left, Right=right).join(similarities).iloc[made.order]
    st.caption(f"{len(table):,} pairs. {display.NOTES['ranks']} {text.credit}")
    formats = dict.fromkeys(titles, "%.0f") | {GAP: "%+.0f"}
    shown = table.head(COMPARED)[[*formats, "Left", "Right"]]
    event = display.frame(
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


def retrieval(models: Sequence[state.Loaded], text: inventory.ParallelText) -> None:
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


@st.cache_data(max_entries=32, show_spinner="Looking for translations", hash_funcs=state.BY_DIGEST)
def translations_found(
    model: state.Loaded, langs: tuple[str, str], left: Sequence[str], right: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return masks (N,) of the left sentences whose nearest right sentence is their translation, and the reverse."""
    system = System(model.title, model)
    of_left, of_right = (embed_distinct(system, side, lang) for side, lang in zip((left, right), langs, strict=True))
    return hits_of(of_left, of_right, model.similarity)
