"""The parts of the page "Maps" that depend on the selection: search, nearest sentences, star, table of rows."""

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app.core import display, exports, rows, state, uploads
from app.core.address import BOUND, MAX_ROWS, ROWS, as_ranges, copy_link, in_ranges, mounted, put
from app.core.latents import geometry, spaces
from app.maps import compute
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import BgtError

MAX_LISTED = 1_000  # maximum number of rows in the table
COLUMNS = {"lang": "Language", "text": "Sentence", "translation": "Translation", **rows.COUNTED}
SINGLE = {name: title for name, title in COLUMNS.items() if name not in ("lang", "translation")}  # if one language
NEAREST = 10  # number of sentences listed for each latent
FOUND = 20  # number of sentences that a search by meaning or by style selects
MAX_OFFERED = 200  # maximum number of sentences to choose from in the select box
WORDS, MEANING, STYLE = "Words", "Meaning", "Style"
ALONE = "alone"  # URL parameter: the row ids if only some sentences are mapped
LEAST = 3  # minimum number of sentences for a map
BARS, MOVED = "bars", "star_at"  # URL parameters: the chosen bars, and the map and place of a dragged star
NUMBER = r":(-?\d{1,9}\.\d{5})"
PLACE = rf"(\w+){NUMBER}{NUMBER}(?:{NUMBER})?"  # the form of the value of `MOVED`, map:x:y or map:x:y:z
LARGE, PIN = "maps", "pin"  # URL parameters: the name of the large map, and the id of the pinned sentence
TURN = "turn"  # URL parameter: the degrees by which maps in three dimensions are turned, right:down
LAYOUT = "layout"  # URL parameter: whether the maps are side by side, and without names
NAMES = "names"  # URL parameter: the names that the user gave to topics, as MAP.ID.LEVEL:NAME~...
WIRE = "maps_wire"  # key of the JavaScript component that exchanges selections with the browser
SLICES = "slice"  # URL parameter, one per saved selection: "NAME:RANGES", with ranges of row ids
_wire = mounted("selection", folder=compute.JS)


def forget() -> None:
    """Clear the selection, the search and the interpolation."""
    choose([])
    map_alone([])
    keep_slices({})
    put(NAMES, "")
    st.session_state["find"] = ""
    st.session_state.pop("walked", None)


def map_alone(ids: Sequence[str]) -> None:
    """Map only the sentences with these ids, or all if the list is empty. The URL keeps a list that is short enough."""
    st.session_state[ALONE] = list(ids)
    put(ALONE, as_ranges(ids))
    put(BARS, "")  # bars count the sentences mapped before


def choose(chosen: Sequence[str]) -> None:
    """Select these rows. If it is one row, also show its nearest sentences. A dragged star returns to its place."""
    st.session_state.pop("moved", None)
    st.session_state.update(chosen=list(chosen), focus=chosen[0] if len(chosen) == 1 else None)


class Shown(NamedTuple):
    """The maps on the page, with functions that draw and export them."""

    loaded: state.Loaded
    fitted: spaces.Spaces
    method: geometry.Method
    langs: Sequence[str]
    figure: partial  # function that draws all maps
    page: Callable[[Mapping[str, str]], str]  # function of the arrangement that returns the maps as an HTML file


@st.fragment
def inspect(shown: Shown) -> None:
    """Show the selection and its nearest sentences. A new selection reruns only this fragment."""
    loaded, fitted, method, langs, *_ = shown
    table = fitted.semantic.rows
    place_of = {row: place for place, row in enumerate(table["id"].tolist())}
    chosen = [row for row in st.session_state.get("chosen", []) if row in place_of]
    left, right = st.columns([2, 3], gap="large")
    with left:
        row, lang, near = nearest(loaded, fitted, chosen)
        if near:
            keys = (f"{display.square(latent)} {latent} latent" for latent in near)
            st.html(f"★ is the chosen sentence. Rings mark its nearest in the {' &nbsp; '.join(keys)}.")
    selection = compute.among(table, frozenset(chosen))
    near_any = compute.among(table, frozenset(other for of in near.values() for other in of["id"]))
    colours = {latent: display.latent_colour(latent, display.current_theme()) for latent in near}
    movable = [SEMANTIC, loaded.second_latent] if row in place_of and not loaded.cannot_write else []
    pinned = st.query_params.get(PIN, "")
    moved = st.session_state.get("moved", {})
    after = written(loaded, fitted, method, row, lang) if row and movable and moved else None
    place = {name: moved[name] for name in ("map", *"xyz") if name in moved} if after else {}
    put(MOVED, ":".join(at if name == "map" else f"{at:.5f}" for name, at in place.items()))
    data = {
        "key": fitted.semantic.content,
        "chosen": packed(selection),
        "lit": packed(selection if len(chosen) != 1 else selection | near_any),  # highlighted rows; all others fade
        "focus": place_of.get(row or "", -1),  # index of the row whose point is a star
        "near": [  # the nearest rows in each latent, whose points get rings
            {"latent": latent, "rows": [place_of[other] for other in of["id"]], "colour": colours[latent]}
            for latent, of in near.items()
        ],
        "movable": movable,  # the latents on whose maps the star can be dragged
        "written": after,
        "moved": place,
        "answered": moved.get("at", 0),  # the time of the drag for which a sentence was generated
        "pinned": place_of.get(pinned, -1),
        "compared": alike(loaded, fitted, pinned, row) if row and pinned in place_of else "",
        "handled": st.session_state.get("handled", 0),
        "slices": [{"name": name, "row": place_of[ids[len(ids) // 2]]} for name, ids in slices(table["id"]).items()],
    }
    _wire(data=data, key=WIRE, on_events_change=partial(handle, fitted, method))
    with right:
        search(loaded, fitted, bool(chosen))
    if near:
        listed_near(near, lang, len(langs) > 1)
    listed(shown, chosen)


def listed_near(near: Mapping[str, pd.DataFrame], lang: str, several: bool) -> None:
    """Show the nearest sentences in each latent side by side."""
    for column, (latent, table) in zip(st.columns(len(near), gap="large"), near.items(), strict=True):
        where = ": any language" if latent == SEMANTIC else f": {rows.language_name(lang)} only"
        title = f"{rows.latent_title(latent)}{where * several}"
        column.markdown(f"**{title}**")
        with column:
            shown = table[["Cosine", *["In"] * several, "Sentence"]]
            shown = shown.assign(Cosine=shown["Cosine"].map("{:z.2f}".format))
            display.table(shown, f"{title}: nearest sentences with their cosines")


def listed(shown: Shown, chosen: Sequence[str]) -> None:
    """Describe and list the selected rows, or all rows if none is selected."""
    loaded, fitted, method, langs, figure, page = shown
    table, second, count = fitted.semantic.rows, loaded.second_latent, len(chosen)
    by_words = st.session_state["find"].strip() and st.session_state["find_by"] == WORDS
    ranges = "" if by_words else as_ranges(chosen)
    st.session_state["kept_rows"] = put(ROWS, ranges)
    if len(ranges) > MAX_ROWS:
        st.caption("This selection is too large for a link: the link opens without it.")
    selected = compute.with_places(fitted, second, method, st.query_params.get(NAMES, ""))
    selected = selected.loc[list(chosen)] if chosen else selected
    title = f"{count:,} selected sentence{'s' * (count != 1)}" if chosen else f"All {len(table):,} sentences"
    with st.expander(title, expanded=count > 1):
        if count > 1:
            display.table(
                compute.compared(table, compute.among(table, frozenset(chosen))),
                "The selected sentences compared with the rest: number, length, closing marks, languages and words",
            )
            st.caption("Differences have 95% intervals. Differences of shares are in percentage points.")
        if len(selected) > MAX_LISTED:
            st.caption(f"The first {MAX_LISTED:,} are listed. The export has all.")
        columns = COLUMNS if len(langs) > 1 else SINGLE
        display.frame(selected.head(MAX_LISTED)[[*columns]].rename(columns=columns), "The sentences on the maps")
    with st.container(horizontal=True):
        if count == 2 and not loaded.cannot_write:
            ends = dict(zip(("start", "end"), table.loc[table["id"].isin(chosen), "text"], strict=True))
            if st.button("Interpolate between these", on_click=st.session_state.update, kwargs=ends):
                st.rerun()  # rerun the whole page: the form is outside this fragment
        alone = LEAST <= count < len(table)
        if alone and st.button("Map these alone", on_click=map_alone, args=(chosen,)):
            st.rerun()  # rerun the whole page: the maps are outside this fragment
        offer_slices(table["id"], chosen)
        copy_link()
        exports.offer(
            f"bgt-maps-{loaded.short}-seed{method.seed}",
            selected,
            partial(figure, chosen=chosen),
            caption=f"{loaded.title}, weights {loaded.short}. {compute.caption(method, fitted, second)}",
            vectors=partial(compute.vectors_of, fitted, second, chosen),
            page=partial(page, arrangement() | {"chosen": packed(compute.among(table, frozenset(chosen)))}),
        )


def packed(mask: np.ndarray) -> str:
    """Encode a mask (N,) as bits in base64, with the first row in the lowest bit; "" if no row is set."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode() if mask.any() else ""


def unpacked(text: str, count: int) -> np.ndarray:
    """Decode the text that `packed` returned into a mask (count,)."""
    bits = np.frombuffer(base64.b64decode(text), np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").astype(bool) if text else np.zeros(count, bool)


def handle(fitted: spaces.Spaces, method: geometry.Method) -> None:
    """Handle the browser's events {number, name, value} that were not handled before: rows that the user clicked,
    encircled, filtered by bars, or found by words ("picked"), or a dragged star ("moved"). URL parameters are also put
    again for events handled before, because the browser's message may contain an older URL, which replaces the new."""
    for event in st.session_state[WIRE]["events"]:
        name, value, before = event["name"], event["value"], st.session_state.get("handled", 0)
        st.session_state["handled"] = max(before, event["number"])
        if name in (PIN, LARGE, BARS, TURN, NAMES, LAYOUT):
            put(name, value["value"])
        elif event["number"] <= before or value["key"] != fitted.semantic.content:
            continue  # the second: the event is about maps of other sentences
        elif name == "picked":
            ids = fitted.semantic.rows["id"]
            choose(ids[unpacked(value["rows"], len(ids))].tolist())
            st.session_state.update(find=value["find"], find_by=WORDS)
        elif name == "moved":
            st.session_state["moved"] = value | {"of": (fitted.semantic.digest, method)}


def arrangement() -> dict[str, str]:
    """Return what the page's URL says of the maps: the large one, how they are turned, bars, names, and layout."""
    given = st.query_params.get
    return {"large": given(LARGE, SEMANTIC).lower(), **{name: given(name, "") for name in (BARS, TURN, NAMES, LAYOUT)}}


def written(
    loaded: state.Loaded, fitted: spaces.Spaces, method: geometry.Method, row: str, lang: str
) -> dict[str, str] | None:
    """Return the sentences generated before and after the user dragged the star; None if it was not dragged here."""
    moved, here = st.session_state["moved"], (row, fitted.semantic.digest, method, method.dims)
    place = np.array([moved[side] for side in "xyz" if side in moved])
    space_of = {SEMANTIC: fitted.semantic, loaded.second_latent: fitted.second[lang]}
    if (moved["id"], *moved["of"], len(place)) != here or moved["map"] not in space_of:
        return None
    latents = {latent: spaces.vector(space, row) for latent, space in space_of.items()}
    latent, space = moved["map"], space_of[moved["map"]]
    goal = geometry.moved(space.projection, space.vectors[space.given], latents[latent], place)
    with display.failing():
        both = (latents, latents | {latent: goal})
        return dict(zip(("before", "after"), (generated(loaded, each, lang) for each in both), strict=True))
    return None


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=state.BY_DIGEST)
def generated(loaded: state.Loaded, latents: dict[str, np.ndarray], lang: str) -> str:
    """Generate a sentence from its two latents, {latent: (D,)}."""
    semantic, second = (latents[latent][None].astype(np.float32) for latent in (SEMANTIC, loaded.second_latent))
    (text,) = state.write(loaded, semantic, second, lang)
    return text


def alike(loaded: state.Loaded, fitted: spaces.Spaces, pinned: str, row: str) -> str:
    """State the cosine of two sentences on each map that shows both."""
    held = [(SEMANTIC, fitted.semantic), *((loaded.second_latent, space) for space in fitted.second.values())]
    cosines = []
    for latent, space in ((latent, space) for latent, space in held if {pinned, row} <= {*space.rows["id"]}):
        left, right = (spaces.vector(space, each)[None] for each in (pinned, row))
        cosines.append(f"{latent} {loaded.similarity_pairwise(left, right)[0]:z.2f}")
    return f"Cosine to the pinned sentence: {', '.join(cosines)}."


def nearest(
    loaded: state.Loaded, fitted: spaces.Spaces, chosen: Sequence[str]
) -> tuple[str | None, str, dict[str, pd.DataFrame]]:
    """Let the user choose a sentence; the user's own and the selected sentences come first. Return its id, language and
    nearest rows in each latent, with the column `Cosine`; (None, "", {}) if none is chosen."""
    table = fitted.semantic.rows.set_index("id")
    focus = st.session_state.get("focus")
    focus = focus if focus in table.index else None  # None if the row is no longer on the maps
    own = [*([focus] if focus else []), *table.index[table["own"]], *chosen]
    offered = list(dict.fromkeys([*own, *table.index[:MAX_OFFERED]]))[:MAX_OFFERED]
    st.session_state["nearest_of"] = focus
    row = st.selectbox(
        "Nearest sentences of", offered, format_func=table["text"].__getitem__, key="nearest_of",
        placeholder="Click a point", on_change=focus_on, args=(chosen,),
    )  # fmt: skip
    if row is None:
        return None, "", {}
    lang, near = table["lang"][row], {}
    for latent, space in {SEMANTIC: fitted.semantic, loaded.second_latent: fitted.second.get(lang)}.items():
        if space:
            near[latent] = spaces.nearest(loaded, spaces.vector(space, row), space.rows, space.vectors, NEAREST, row)
    return row, lang, near


def focus_on(chosen: Sequence[str]) -> None:
    """Select the sentence that the user chose in the select box, unless it is already selected."""
    row = st.session_state["nearest_of"]
    choose(chosen if row in chosen else [row] if row else [])
    st.session_state["focus"] = row


def search(loaded: state.Loaded, fitted: spaces.Spaces, any_chosen: bool) -> None:
    """Ask for a text, and select the sentences that match it."""
    changed: dict[str, Any] = {"on_change": find, "args": (loaded, fitted)}
    ways = [WORDS, MEANING, *[STYLE] * bool(fitted.second)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Find in sentences", key="find", **changed, **BOUND).strip()
        way = st.segmented_control("Find by", ways, default=WORDS, required=True, key="find_by", **changed)
    langs = fitted.semantic.rows["lang"].unique().tolist()
    if way != WORDS and len(langs) > 1:
        st.segmented_control(
            "Language of the text", langs, default=langs[0], required=True, format_func=rows.language_name,
            key="find_lang", **changed,
        )  # fmt: skip
    if text and way == WORDS and not any_chosen:
        st.caption(f"No sentence contains “{display.verbatim(text)}”. A search by meaning accepts any words.")
    elif text and way != WORDS and any_chosen:
        latent = SEMANTIC if way == MEANING else loaded.second_latent
        st.caption(f"Selected: the {FOUND} nearest in the {latent} latent, the nearest first.")


def find(loaded: state.Loaded, fitted: spaces.Spaces) -> None:
    """Select the sentences that match the typed text. If the model is busy, select none."""
    text, way, table = st.session_state["find"].strip(), st.session_state["find_by"], fitted.semantic.rows
    if not text:
        choose([])
    elif way == WORDS:
        choose(rows.matching(table, text))
    else:
        lang = st.session_state.get("find_lang") or table["lang"].iloc[0]
        latent, space = (SEMANTIC, fitted.semantic) if way == MEANING else (loaded.second_latent, fitted.second[lang])
        try:
            vector = state.embed(loaded, [text[: uploads.MAX_CHARACTERS]], lang, latent)[0]
            choose(spaces.nearest(loaded, vector, space.rows, space.vectors, FOUND)["id"].tolist())
        except BgtError:
            choose([])


def offer_slices(ids: Sequence[str], chosen: Sequence[str]) -> None:
    """Show the controls that restore a saved selection, and that save the selected rows under a name."""
    kept = slices(ids)

    def keep() -> None:
        keep_slices({**kept, name: list(chosen)})
        st.session_state["slice_name"] = ""

    def select() -> None:
        choose(kept.get(st.session_state.get("shown_slice") or "", []))

    with st.popover(f"Slices ({len(kept)})" if kept else "Slices"):
        if kept:
            shown = st.pills("Select", list(kept), key="shown_slice", on_change=select)
            others = {of: rows for of, rows in kept.items() if of != shown}
            st.button("Remove it", on_click=keep_slices, args=(others,), disabled=shown is None)
        st.markdown("Save the selected sentences under a name." + " Select some first." * (not chosen))
        name = st.text_input("Name of the selection", key="slice_name", max_chars=40).strip()
        st.button("Keep", on_click=keep, disabled=not (name and chosen))
        st.caption("The link contains the slices unless it gets too long. An export has only the selected rows.")


def slices(ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the session's saved selections, name -> ids. At first, these are the selections in the page's URL."""
    if SLICES not in st.session_state:
        parts = (text.rpartition(":") for text in st.query_params.get_all(SLICES))
        linked = {name: in_ranges(ranges, ids) for name, _, ranges in parts if name}
        st.session_state[SLICES] = {name: rows for name, rows in linked.items() if rows}
    kept: dict[str, list[str]] = st.session_state[SLICES]
    return kept


def keep_slices(slices: dict[str, list[str]]) -> None:
    """Store the saved selections, and write as many of them into the page's URL as fit."""
    st.session_state[SLICES] = slices
    texts = [f"{name}:{as_ranges(ids)}" for name, ids in slices.items()]
    sizes = accumulate(map(len, texts))
    st.query_params[SLICES] = [text for text, size in zip(texts, sizes, strict=True) if size <= MAX_ROWS]
