"""The similarity of two sentences, or of a file of pairs, compared with people's scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from textwrap import shorten

import pandas as pd
import streamlit as st

from app.core import controls, corpora, exports, markdown, pairs, rows, startup, state, upload_dialog, uploads
from app.core.address import BOUND
from app.core.latents import spaces
from app.core.markdown import failing
from app.similarity import compute
from bgt_core.contracts import SEMANTIC

NEAREST = 8  # a page of two screens
SEARCHED = 1_000  # translations searched for similar sentences
EXAMPLE = ("Where is the station?", "Tell me how to get to the train station.")
NAMES = {  # of the columns, numbers first
    "gold": "Gold",
    "misjudged": "Misjudged",
    "left": "Left",
    "right": "Right",
    "overlap": "Words in common",
    "swer": "Word error rate",
}
WORST = 10
SPLIT_HELP = (
    "Hard+: alike in meaning with few words in common; Hard-: many words in common, but unlike in meaning; negation: "
    "one of the two is negated. Gold scores are taken as 0 to 5, and word error rates are ranked within this file."
)


def page(loaded: state.Loaded) -> None:
    tabs = {"Two sentences": pair, "A file of pairs": upload}
    for tab, draw in zip(st.tabs([*tabs], key="alike", **BOUND), tabs.values(), strict=True):
        with tab:
            draw(loaded, bool(tab.open))


def pair(loaded: state.Loaded, is_open: bool) -> None:
    example = EXAMPLE if "en" in loaded.langs else ("", "")
    sides = [*zip(("left", "right"), example, strict=True)]
    left, right = (
        column.text_area(side.capitalize(), text, key=side, height=80, **BOUND)
        for column, (side, text) in zip(st.columns(2), sides, strict=True)
    )
    chosen = []
    for column, (side, _) in zip(st.columns(2), sides, strict=True):
        with column:
            chosen.append(controls.language(f"Language of the {side}", loaded.langs, f"one_{side}_lang"))
    langs = chosen[0], chosen[1]
    if not (left.strip() and right.strip()):
        st.warning("Type two sentences.", icon=":material/edit:")
        return
    left = controls.bounded(left, uploads.MAX_CHARACTERS, "Left")
    right = controls.bounded(right, uploads.MAX_CHARACTERS, "Right")
    if not is_open:
        return
    controls.warn(loaded, [left], langs[0], "Left", "one_left_lang")
    controls.warn(loaded, [right], langs[1], "Right", "one_right_lang")
    scored = compute.alike(loaded, left, right, *langs)
    with st.container(horizontal=True):
        for row in scored.itertuples():
            st.metric(row.measure, f"{row.value:z.2f}", border=True)
    if loaded.second_latent and langs[0] != langs[1]:
        st.caption(f"Only meaning is compared: {loaded.second_latent} latents of two languages are not comparable.")
    latents = loaded.latents if langs[0] == langs[1] else [SEMANTIC]
    texts = list(corpora.readable(loaded.langs).values())
    text = next((text for text in texts if {*langs} <= {*text.langs}), texts[0] if texts else None)
    if text and {*langs} <= {*text.langs}:
        against_random(loaded, scored, latents, text, langs)
    pairs.show_words({rows.latent_title(latent): (loaded, latent) for latent in latents}, left, right, langs)
    if text is None:
        return
    if len(state.titles()) > 1:
        st.caption("*Compare models*, by similarity, shows the same for several models.")
    near = nearest(loaded, text, (left, right), langs)
    latex = scored.rename(columns=str.capitalize)
    exports.offer(f"bgt-pair-{loaded.short}", pd.concat(near, ignore_index=True), latex=latex)


def nearest(
    loaded: state.Loaded, text: startup.ParallelText, pair: tuple[str, str], langs: tuple[str, str]
) -> list[pd.DataFrame]:
    """List the sentences of a text nearest in meaning to either of a pair."""
    st.subheader("Nearest in meaning")
    table, near = corpora.sentences(text, SEARCHED), []
    vectors = spaces.vectors_of(loaded, table, SEMANTIC)
    columns = ["Cosine", *["In"] * (len(text.langs) > 1), "Sentence"]
    for column, sentence, lang in zip(st.columns(2), pair, langs, strict=True):
        vector = state.embed(loaded, [sentence], lang, SEMANTIC)[0]
        near.append(spaces.nearest(loaded, vector, table, vectors, NEAREST).assign(To=sentence))
        with column:
            st.markdown("**Nearest to**")
            st.text(shorten(sentence, 80, placeholder="…"))
            shown = near[-1][columns].assign(Cosine=near[-1]["Cosine"].map("{:z.2f}".format))
            markdown.table(shown, f"The {NEAREST} sentences nearest in meaning, with their cosines")
    if text.credit:
        st.caption(text.credit)
    return near


def against_random(
    loaded: state.Loaded,
    scored: pd.DataFrame,
    latents: Sequence[str],
    text: startup.ParallelText,
    langs: tuple[str, str],
) -> None:
    """Say how many pairs of other sentences are less alike, by each latent."""
    table = corpora.sentences(text, SEARCHED)
    value_of = dict(zip(scored["measure"], scored["value"], strict=True))
    parts = []
    for latent in latents:
        random = compute.random_pairs(loaded, table, latent, langs)
        if not len(random):
            return
        below = int((random < value_of[rows.latent_title(latent)]).sum())
        parts.append(f"{below:,} of {len(random):,} in the {latent} latent (their mean is {random.mean():z.2f})")
    st.markdown(f"Nearer than pairs of other sentences: {', '.join(parts)}.")


def upload(loaded: state.Loaded, is_open: bool) -> None:
    st.markdown(
        "Two columns of sentences, in one language or two, and a third of scores that people gave, if there is one."
    )
    chosen = upload_dialog.choose_pairs(loaded.langs, "pair_file")
    if chosen is None:
        st.info("Nothing yet: upload a file. STS files with the score first are read as they are.")
    elif is_open:
        name, table, langs = chosen
        with failing():
            scored = compute.similarities(loaded, table, *langs)
            judged(loaded, scored, name, langs) if "gold" in scored else unjudged(loaded, scored, name)


def judged(loaded: state.Loaded, scored: pd.DataFrame, file: str, langs: tuple[str, str]) -> None:
    """Show pairs with people's scores: correlations, their differences, and the model's largest deviations."""
    parts = {name: compute.split(scored, name, langs) for name in compute.SPLITS}
    enough = [name for name, part in parts.items() if name == compute.SPLITS[0] or len(part) > 2]
    name = controls.choice("Subset", enough, "split", help=SPLIT_HELP)
    st.caption(f"Pairs in each: {', '.join(f'{split} {len(part):,}' for split, part in parts.items())}.")
    scored = parts[name].reset_index(drop=True)
    correlations, differences = compute.correlations(scored), compute.differences(scored)
    table = pd.concat([correlations, differences], ignore_index=True)
    with st.container(horizontal=True):
        for at, row in enumerate(table.itertuples()):
            own = at < len(correlations)
            label, value = (f"{row.system}, Pearson × 100", "z.1f") if own else (row.system, "+z.1f")
            interval = f"95%: {row.ci_low:z.1f} to {row.ci_high:z.1f}, n {row.n:,}"
            st.metric(label, f"{row.pearson:{value}}", interval, "off", border=True, delta_arrow="off")
    st.caption(
        "Differences are paired: both systems meet the same resamples of the pairs, so they are more certain than the "
        "two intervals suggest. An interval that contains 0 is not significant."
    )
    scored = scored.assign(misjudged=compute.misjudged(scored))
    chosen = charted(loaded, scored, "gold", "people's score, points moved a little apart", compute.systems(scored))
    if not len(chosen):
        st.markdown("**Largest deviations** of the semantic latent from people's scores")
        listing(scored.loc[scored["misjudged"].abs().sort_values(ascending=False).index[:WORST]], whole=True)
        st.caption("Misjudged: the model's standard score minus people's; above 0, the model's score is too high.")
    pearson = ", ".join(
        f"{row.system} {row.pearson:z.1f} [{row.ci_low:z.1f}, {row.ci_high:z.1f}]" for row in correlations.itertuples()
    )
    caption = f"Pairs of {file} ({name}); gold scores spread a little. Pearson x 100 and its 95% interval: {pearson}."
    everything(loaded, scored, "gold", caption, table.rename(columns={"system": "System", "pearson": "Pearson x 100"}))


def unjudged(loaded: state.Loaded, scored: pd.DataFrame, file: str) -> None:
    """Show pairs without scores: each other system against the semantic latent, including the plane of the second
    latent."""
    others = {system: title for system, title in compute.systems(scored).items() if system != SEMANTIC}
    charted(loaded, scored, SEMANTIC, "semantic cosine", others)
    if loaded.second_latent:
        st.caption("*Where latents disagree* shows the same pairs with quadrants and the most extreme of them.")
    everything(loaded, scored, SEMANTIC, f"Pairs of {file}.")


def charted(loaded: state.Loaded, scored: pd.DataFrame, x: str, x_title: str, systems: dict[str, str]) -> pd.DataFrame:
    """Show a chart of each system, side by side or below on a phone, and the pairs that are selected on any."""
    places: list[int] = []
    for column, (system, title) in zip(st.columns(len(systems)), systems.items(), strict=True):
        with column:
            event = exports.chart(
                f"bgt-similarity-{loaded.short}",
                partial(compute.alike_scatter, scored, x, x_title, {system: title}),
                f"Cosine of the {title} against the {x_title} of {len(scored):,} pairs; the table below lists them",
                key=f"alike {x} {system} {len(scored)}",
                on_select="rerun",
                selection_mode=("points", "lasso"),
            )
        places += [point["point_index"] for point in event["selection"]["points"]]
    chosen = scored.iloc[[place for place in dict.fromkeys(places) if place < len(scored)]]
    if len(chosen):
        st.markdown(f"**Selected: {len(chosen):,}**")
        listing(chosen, whole=len(chosen) <= WORST)
    else:
        st.caption("Click a point to read its pair; press the lasso above a chart to draw around several.")
    return chosen


def everything(
    loaded: state.Loaded, scored: pd.DataFrame, x: str, caption: str, latex: pd.DataFrame | None = None
) -> None:
    """Show all pairs, and their export; the figure's caption also names the model."""
    st.markdown(f"**All {len(scored):,} pairs**")
    listing(scored)
    systems = {system: title for system, title in compute.systems(scored).items() if system != x}
    figure = partial(compute.alike_scatter, scored, x, "gold score" if x == "gold" else "semantic cosine", systems)
    caption = f"n = {len(scored):,}. {caption} {loaded.title}, weights {loaded.short}."
    exports.offer(f"bgt-similarity-{loaded.short}", scored, figure, latex, caption=caption)


def listing(scored: pd.DataFrame, whole: bool = False) -> None:
    """Put numbers first, where they are seen; `whole` wraps the sentences."""
    systems = compute.systems(scored)
    order = [name for name in ("gold", "misjudged", *systems, "left", "right", "overlap", "swer") if name in scored]
    short = {name: title.removesuffix(" latent").removesuffix(" (tf-idf)") for name, title in systems.items()}
    titles, wide = NAMES | short, 260 if whole else 340
    numbers = [titles[name] for name in order if name not in ("left", "right")]
    markdown.frame(
        scored[order].rename(columns=titles),
        "Pairs of sentences with every measure",
        dict.fromkeys(numbers, "%.2f"),
        {title: controls.width(title, 80) for title in numbers} | {"Left": wide, "Right": wide, NAMES["swer"]: 120},
        row_height=controls.row_height(scored[["left", "right"]], wide) if whole else None,
    )
