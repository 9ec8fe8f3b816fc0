"""The page "Maps": the controls above the maps, the sentences to map, and the maps of both latents.

One JavaScript component draws the maps, another exchanges the selection with the server. A new selection reruns only
the fragment with the second component, so that figures and texts are neither created nor sent again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.core import controls, display, inventory, rows, state, uploads
from app.core.address import BOUND, in_ranges, linked_rows, mounted
from app.core.display import NOTES, failing, verbatim
from app.core.latents import geometry, spaces
from app.maps import compute, selection
from bgt_core.contracts import LANGUAGE, SEMANTIC

STAR, STAR_LANG = "star", "star_lang"  # URL parameters: a sentence to show as a star, and its language
STEPS = 9  # number of steps of an interpolation
MAX_STYLED = 20_000  # maximum number of sentences whose style properties are computed for bar charts
QUICK = 400  # t-SNE maps of up to this many sentences take seconds, so they need no button
SECONDS, PER_SECOND = {"UMAP": 30, "t-SNE": 0}, 100  # seconds to start; sentences mapped per second after that

# Slow methods: the maximum number of translations (about a minute), and the name and default of their parameter.
PROJECTIONS = {"UMAP": (5_000, "Neighbours", 15), "t-SNE": (1_000, "Perplexity", 30)}
AXES = {"x": "To the right", "y": "Upwards", "z": "Towards you"}
_maps = mounted("maps", *compute.VIEW, folder=compute.JS)


@dataclass(frozen=True)
class Choice:
    """The settings that the user chose above the maps."""

    text: inventory.ParallelText
    table: pd.DataFrame  # the rows of the text
    unseen: bool  # whether `table` has only the rows to which a split encoder was not fitted
    colour: str  # the column for colours: a key of rows.COLOURS, or a column of the user
    count: int  # maximum number of rows of the text
    method: geometry.Method
    lines: list[str]  # the lines to draw on the maps: "translations", "density"
    compute: DeltaGenerator  # the place on the page for the button that computes maps


def page(loaded: state.Loaded) -> None:
    if not loaded.second_latent:
        st.caption("This model has one latent, so there is one map. *Your encoder* splits its vectors into two parts.")
    choice = choose(loaded)
    corpus = corpus_of(loaded, choice) if choice else None
    if choice is None or corpus is None:
        return
    langs = choice.text.langs
    brought(loaded, langs)
    table = pd.concat([corpus, *own_rows(loaded, langs)], ignore_index=True)
    method, fitted = fit(loaded, table, choice)
    styles = [] if len(table) > MAX_STYLED else [name for name in rows.STYLES if name in rows.colours(langs)]
    own = [name for name in table if name.startswith(rows.OWN_COLUMN)]
    fitted = spaces.with_columns(fitted, {choice.colour, *styles, *own})
    restore(table, (fitted.semantic.digest, choice.method))
    above = st.container()
    ends = list(dict.fromkeys(table["text"]))[:2]
    walk = between(loaded, ends, langs) if loaded.second_latent else None
    ways = compute.paths(walk, fitted)
    with above:
        seen = fitted, loaded.second_latent, choice.colour, langs, ways, choice.lines
        more = {"file": f"bgt-maps-{loaded.short}"}
        data = compute.view(*seen, theme=display.current_theme()) | more | selection.arrangement()
        second = state.second()
        if second and not {*langs} <= {*second.langs}:
            st.caption(f"No maps of {verbatim(second.title)}: it does not read all of these languages.")
        elif second:
            with st.spinner(f"Computing the maps of {verbatim(second.title)}"):
                beside = spaces.spaces(second, table, method)
            data["maps"] += compute.drawn(beside, second.second_latent, {}, second.title)
        _maps(data=data, key="maps_view")
        saved = partial(compute.view, *seen, theme="dark")  # has the colours for print, too, which are those for light
        alone = partial(compute.standalone, lambda: saved() | more | {"maps": data["maps"]}, f"{loaded.title}: maps")
        selection.inspect(selection.Shown(loaded, fitted, method, langs, compute.figure_of(*seen[:4]), alone))
        st.caption(compute.caption(method, fitted, loaded.second_latent))
        if choice.text.credit:
            st.caption(choice.text.credit)


def corpus_of(loaded: state.Loaded, choice: Choice) -> pd.DataFrame | None:
    """Return the sentences to map, and show how many they are. If they are too few, show a message and return None."""
    shown = loaded.digest, choice.text
    if st.session_state.setdefault("chosen_of", shown) != shown:  # a selection does not apply to a new set of sentences
        selection.forget()
        st.session_state["chosen_of"] = shown
    corpus = everything = choice.table
    alone = selection.ALONE
    if alone not in st.session_state:
        st.session_state[alone] = in_ranges(st.query_params.get(alone, ""), corpus["id"].tolist())
    pairs = corpus.loc[corpus["id"].isin(st.session_state[alone]), "pair"].unique()
    if len(pairs) >= selection.LEAST:
        corpus = corpus[corpus["pair"].isin(pairs)]
    langs, unit = choice.text.langs, choice.text.unit
    count, different = len(corpus) // len(langs), corpus["text"].nunique()
    if count < selection.LEAST or different < selection.LEAST:
        name = verbatim(choice.text.file or "this text")
        st.info(f"A map needs 3 {unit} and 3 different sentences; {name} has {count} and {different}.")
        return None
    if len(corpus) < len(everything):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Mapped alone: {count:,} of {len(everything) // len(langs):,} {unit}.")
            st.button("Map all again", on_click=selection.map_alone, args=([],))
    elif choice.unseen:
        held_out = len(loaded.held_out[choice.text])
        st.caption(f"Shown: {count:,} of the {held_out:,} held-out pairs, from which the split was not made.")
    elif fitted := loaded.fitted_on(choice.text):
        st.caption(verbatim(fitted))
    elif count < choice.count:
        st.caption(f"There are {count:,} {unit}; all are shown.")
    elif choice.text.file or choice.text.table is not None:
        table, file = choice.text.table, choice.text.file
        whole = f"spread evenly over your {len(table):,}" if table is not None else f"of {verbatim(file and file.name)}"
        st.caption(f"Shown: {'the first ' * bool(file)}{choice.count:,} {unit} {whole}. *More* raises the number.")
    return corpus


def brought(loaded: state.Loaded, langs: Sequence[str]) -> None:
    """Show a star for the sentence in the link that opened this page, or for a sentence newly typed on another page."""
    typed = st.session_state.get("sentence") or "", st.session_state.get("language") or ""
    text, lang = st.query_params.pop(STAR, ""), st.query_params.pop(STAR_LANG, "")
    before, st.session_state["brought"] = st.session_state.get("brought", ("", "")), typed
    if typed[0] == before[0] and typed != before:  # only its language was corrected
        own = inventory.of_session().typed
        inventory.change(typed=tuple(table for table in own if table["text"].tolist() != [typed[0]]))
    if not text and typed[0] != controls.EXAMPLE and typed != before:
        text, lang = typed
    if typed[1] in langs:
        controls.warn(loaded, [typed[0]], typed[1], "Your sentence", "language")
    if not text or lang not in langs or not loaded.embeds(text):
        return
    for table in own_rows(loaded, [lang]):
        if there := table.loc[table["text"] == text, "id"].tolist():
            selection.choose(there)
            return
    if add(text, lang):
        limit = f"you can add up to {rows.MAX_OWN} sentences; remove some under *Add sentences*."
        st.warning(f"“{verbatim(text)}” is not drawn: {limit}")


def restore(table: pd.DataFrame, of: tuple[str, geometry.Method]) -> None:
    """Select the rows in the page's URL. Move the star to its place there if it is on the maps `of` (model, method)."""
    linked = linked_rows()
    if "chosen" not in st.session_state or linked:
        words = st.query_params.get("find", "").strip()
        at = re.fullmatch(selection.PLACE, st.query_params.get(selection.MOVED, ""))
        selection.choose(rows.matching(table, words) if words else in_ranges(linked, table["id"].tolist()))
        if at and (focus := st.session_state["focus"]):
            place = zip("xyz", map(float, filter(None, at.groups()[1:])), strict=False)
            st.session_state["moved"] = {"id": focus, "of": of, "map": at[1], **dict(place)}


def choose(loaded: state.Loaded) -> Choice | None:
    """Show the controls above the maps. The default method is t-SNE if its maps are stored or fast to compute."""
    with st.container(key="strip", horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        text = controls.choose_text(loaded)
        if text is None:
            return None
        translated = len(text.langs) > 1
        colour_place, method_place, solid_place = (st.container(width=width) for width in (200, 130, "content"))
        with st.popover("More"):
            title = "Translation pairs" if translated else "Sentences at most"
            count = controls.count(title, controls.COUNTS, "pairs", 1, 140)
            held_out = loaded.held_out.get(text, ())
            unseen = len(held_out) >= selection.LEAST and st.toggle("Held-out pairs only", True, key="unseen", **BOUND)
            table = inventory.sentences(text, controls.COUNTS[-1] if unseen else count)
            if unseen:
                table = table[table["pair"].isin(held_out[:: max(1, len(held_out) // count)][:count])]
            colours = [*rows.colours(text.langs), *(name for name in table if name.startswith(rows.OWN_COLUMN))]
            colour = colour_place.selectbox("Colour", colours, format_func=rows.colour_title, key="colour", **BOUND)
            methods = ["PCA", *PROJECTIONS, spaces.CHOSEN_AXES]
            usual = geometry.Method("t-SNE", PROJECTIONS["t-SNE"][2])
            quick = text.table is not None or len(table) <= QUICK or spaces.stored(loaded, table, usual)
            opens_on = methods.index("t-SNE") if quick else 0
            method = method_place.selectbox("Method", methods, opens_on, key="map", **BOUND)
            lines = ["translations"] * (translated and st.toggle("Join translations", True, key="lines", **BOUND))
            lines += ["density"] * st.toggle("Contours of density", key="dense", **BOUND)
            dims = 3 if solid_place.toggle("3-D", key="3d", **BOUND) else 2
            projection = choose_projection(method, () if loaded.sentences else text.langs, dims)
        with st.popover("Add"):
            st.caption(state.STORED) if loaded.sentences else add_sentences(text.langs)
        compute = st.container(width="content")
    return Choice(text, table, unseen, colour, count, projection, lines, compute)


def choose_projection(name: str, langs: Sequence[str], dims: int) -> geometry.Method:
    """Ask for a method's settings, such as axes, the metric or a seed. Without `langs`, all axes are components."""
    if name == spaces.CHOSEN_AXES:
        components = [f"{spaces.COMPONENT} {number}" for number in range(1, spaces.COMPONENTS + 1)]
        axes = [*spaces.axes_offered(langs), *components, spaces.FREE] if langs else components
        chosen: list[str] = []
        for key, title in list(AXES.items())[:dims]:
            free = [axis for axis in axes if axis not in chosen]
            chosen.append(st.selectbox(title, free, key=f"axis_{key}", **BOUND))
        ends = ("", "", "")
        if spaces.FREE in chosen:
            start = st.text_input("From", "Come here.", key="axis_start", max_chars=state.MAX_CHARACTERS, **BOUND)
            end = st.text_input("To", "Could you come here?", key="axis_end", max_chars=state.MAX_CHARACTERS, **BOUND)
            ends = start, end, controls.language("Their language", langs, "axis_lang")
        return geometry.Method(name, axes=tuple(chosen), ends=ends, dims=dims)
    metric = controls.choice("Metric", list(geometry.SCALED), "metric", help=NOTES["metric"])
    if name not in PROJECTIONS:
        return geometry.Method(name, metric=metric, dims=dims)
    _, number, default = PROJECTIONS[name]
    neighbours = st.slider(number, 5, 50, default, key=f"near_{name}", **BOUND)
    seed = st.number_input("Seed", 0, 9999, 0, key="map_seed", **BOUND)
    return geometry.Method(name, neighbours, seed, metric=metric, dims=dims)


def add_sentences(langs: Sequence[str]) -> None:
    """Show a form in which the user types sentences; the maps show them as stars."""
    with st.form("add", border=False, clear_on_submit=True):
        lines = st.text_area(f"Your sentences, one per line, up to {rows.MAX_OWN}", height=140)
        lang = st.segmented_control(
            "Their language", langs, default=langs[0], required=True, format_func=rows.language_name
        )
        submitted = st.form_submit_button("Draw as stars", type="primary", shortcut="ctrl+enter")
    st.caption(f"For more, or for a file: *Upload*, up to {uploads.MAX_ROWS:,} rows.")
    if submitted:
        if left_out := add(lines, lang):
            st.warning(f"{left_out} lines are over the limit of {rows.MAX_OWN} and were left out.")
        controls.warn(state.model(), lines.splitlines(), lang)
    if count := sum(map(len, inventory.of_session().typed)):
        st.button(f"Remove your {count} sentence{'s' * (count > 1)}", on_click=inventory.change, kwargs={"typed": ()})


def add(lines: str, lang: str) -> int:
    """Show the typed sentences as stars, and select them. Return how many lines exceed the limit."""
    ids, left_out = inventory.add(lines, lang)
    st.session_state.update(chosen=ids, focus=next(iter(ids), None))
    return left_out


def own_rows(loaded: state.Loaded, langs: Sequence[str]) -> list[pd.DataFrame]:
    """Return the sentences that the user typed in these languages and the model can embed."""
    typed = (table for table in inventory.of_session().typed if table["lang"].iloc[0] in langs)
    return [table for table in typed if loaded.embeds(*table["text"])]


def fit(loaded: state.Loaded, table: pd.DataFrame, choice: Choice) -> tuple[geometry.Method, spaces.Spaces]:
    """Map the latents by the chosen method; return the method used and the maps. PCA replaces UMAP and t-SNE unless
    their maps are stored, are fast to compute, or were requested by the button or a link."""
    method, pca = choice.method, geometry.Method(metric=choice.method.metric, dims=choice.method.dims)
    most = PROJECTIONS[method.name][0] if method.name in PROJECTIONS else choice.count
    request = loaded.digest, choice.text, choice.count, method
    quick = method.name not in PROJECTIONS or (method.name == "t-SNE" and len(table) <= QUICK)
    if choice.count > most:
        choice.compute.caption(f"Shown: PCA. {method.name} is available for up to {most:,} {choice.text.unit}.")
        method = pca
    elif not quick and st.session_state.get("fitted_of") != request and not spaces.stored(loaded, table, method):
        seconds = SECONDS[method.name] + (method.dims - 1) * len(table) / PER_SECOND
        linked = seconds <= 60 and st.session_state.get("arrived") and {"map", "data"} & {*st.query_params}
        if linked or choice.compute.button(f"Compute {method.name}", type="primary"):
            st.session_state["fitted_of"] = request
        else:
            st.caption(f"Drawn now: PCA. {method.name} takes about {seconds:.0f} seconds: press the button.")
            method = pca
    with st.spinner(f"Computing the maps by {method.name}", show_time=True):
        return method, spaces.spaces(loaded, table, method)


def between(loaded: state.Loaded, ends: Sequence[str], langs: Sequence[str]) -> compute.Interpolation | None:
    """Show a form that interpolates between two sentences, by default `ends`. Show and return its last result."""
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
        start = left.text_input("From", ends[0], key="start", max_chars=state.MAX_CHARACTERS, **BOUND)
        end = right.text_input("To", ends[1], key="end", max_chars=state.MAX_CHARACTERS, **BOUND)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            moved = controls.choice("Move", list(moves), "move")
            lang = controls.language("Language of both", langs, "way_lang")
            st.space("stretch")
            submitted = st.form_submit_button("Interpolate", type="primary")
    walk = st.session_state.get("walked")
    walk = walk if walk and walk.model == loaded.digest and walk.lang in langs else None
    if submitted:
        with failing(), st.spinner("Writing"):
            steps, latents = compute.interpolate(loaded, start, end, lang, moves[moved], STEPS)
            measured = moves[moved][0]
            walk = st.session_state["walked"] = compute.Interpolation(loaded.digest, lang, measured, steps, latents)
    if walk:
        follow(walk)
    return walk


def follow(walk: compute.Interpolation) -> None:
    """Show the different sentences of an interpolation, and their similarity to both ends."""
    runs = walk.table[walk.table["text"] != walk.table["text"].shift()]
    count, steps = runs["text"].nunique(), len(walk.table)
    st.markdown(f"{count} different sentences in {steps} steps of the {walk.measured} latent:")
    shown = runs.assign(**{end: runs[end].map("{:z.2f}".format) for end in ("to_start", "to_end")})
    shown["text"] = shown["text"].replace("", "(nothing)")
    titles = ["From step", "Sentence", "Cosine to the first", "Cosine to the last"]
    display.table(shown.set_axis(titles, axis=1), "The sentences generated between the two sentences")
