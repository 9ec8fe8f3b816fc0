"""The first page: the content of each latent of one sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.core import controls, corpora, rows, startup, state
from app.core.address import BOUND, ONE_SENTENCE
from app.core.component import copy_link
from app.core.markdown import how_to_read, verbatim
from app.sentence import chart, compute, tabs
from app.sentence.wording import taken_over, title, wording
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.text import normalise
from bgt_core.evaluation.facts import checks, differences

MAX_CHARACTERS = 300  # far longer than the training sentences of the shipped models
EXAMPLE = "You are late."
MEANING_YOURS, STYLE_YOURS = "Your meaning, in the style of {}", "The meaning of {}, in your style"
ISOLATE, END_ISOLATE = "\u2068", "\u2069"  # text between them keeps its own direction
ENDS = {  # how a sentence ends, by the name of its mark
    "question": "with a question mark",
    "exclamation": "with an exclamation mark",
    "full stop": "with a full stop",
    "ellipsis": "with an ellipsis",
    rows.NONE: "without a mark",
    rows.OTHER: "with another mark",
}


def heading(place: DeltaGenerator, loaded: state.Loaded | None = None) -> None:
    """Write the title, how the latents were trained, and what stored probes found in them; until the model is loaded,
    the line that fits most models."""
    second = loaded.second_latent if loaded else LANGUAGE
    learnt_from = compute.learnt_from(loaded) if loaded and loaded.info else "translations"
    semantic = f"{chart.square(SEMANTIC)} <b>semantic latent</b>"
    with place.container():
        if loaded and loaded.translates:
            st.title("A translator")
            st.markdown(
                f"This model translates {loaded.translates}: use `bgt translate` to translate with it. "
                "The average of its encoder's states is shown as a **semantic latent**, but was not trained as one."
            )
        elif second:
            st.title("A sentence, in two parts")
            st.html(
                f"{chart.STYLE}This model computes two latents from a sentence. In training, {learnt_from} share the "
                f"{semantic}, and each sentence has a {chart.square(second)} <b>{second} latent</b> of its own."
                f"{tells_more(loaded) if loaded else ''}"
            )
        else:
            st.title("A sentence")
            learnt = f" It was trained on {learnt_from}." if loaded and loaded.info else ""
            st.html(f"{chart.STYLE}This model computes one latent from a sentence, its {semantic}.{learnt}")


def tells_more(loaded: state.Loaded) -> str:
    """Say which properties are easier to read from which latent, by stored probes; "" without any."""
    from app.core.results import reading, task_names  # slow to import, and not needed while the model loads

    folder = Path(loaded.info["folder"]) if loaded.info else None
    leads = reading.leads(folder, loaded.second_latent) if folder else {}
    if not folder or not leads:
        return ""
    accuracies = reading.accuracies(folder, (SEMANTIC, loaded.second_latent))
    parts = []
    for place, (latent, tasks) in reversed([*enumerate(leads.items())]):
        notes = {task: f" {of[place]:.0%} (from the other {of[1 - place]:.0%})" for task, of in accuracies.items()}
        tasks = sorted(tasks, key=lambda task: task_names.group(task) != task_names.MEANING)  # meaning first
        parts.append(f"from the {latent} latent: {reading.named(tasks, notes) or 'no property that was tested'}")
    own, both = reading.nats(loaded.log, loaded.langs)
    much = f" The {loaded.second_latent} latent holds {own:.0f} of {both:,.0f} nats of information." * (both == both)
    return f"{much} What linear probes read better {'; '.join(parts)}."


def page(place: DeltaGenerator, following: tabs.Next) -> None:
    loaded = state.model()
    heading(place, loaded)
    pairs(loaded)
    text, lang = field(loaded)
    if not text:
        st.warning("Type a sentence.", icon=":material/edit:")
        return
    nearest(loaded, text, lang, following)
    if loaded.cannot_write:
        st.caption(loaded.cannot_write)
    else:
        rebuilt(loaded, text, lang)
        swaps(loaded, text, lang, following)
    tabs.more(loaded, text, lang, following)
    explained(loaded)
    copy_link()


def pairs(loaded: state.Loaded) -> None:
    """Show sentences that are alike in one latent alone; a click puts a pair into the fields below."""
    if not loaded.second_latent or not (measured := compute.pairs(loaded)):
        return
    with st.container(key="pairs", horizontal=True):
        for number, (pair, cosines) in enumerate(measured):
            with st.container(gap="xsmall"):
                st.html(chart.pair(pair, cosines, loaded.latents))
                st.button("Try it", key=f"pair{number}", on_click=put_in, args=(pair,), type="tertiary")


def put_in(pair: compute.Pair) -> None:
    """Fill the fields with a pair, before the page is drawn."""
    st.session_state.update(sentence=pair.text, language=pair.lang, other=pair.other, other_language=pair.other_lang)


def field(loaded: state.Loaded) -> tuple[str, str]:
    """Ask for the sentence and its language; clean it up."""
    langs = list(loaded.langs)
    left, right = st.columns([5, 1])
    typed = left.text_input("Your sentence", EXAMPLE, key="sentence", **BOUND)
    lang = right.selectbox(
        "Its language", langs, langs.index("en") if "en" in langs else 0, format_func=rows.language_name,
        key="language", **BOUND,
    )  # fmt: skip
    text = controls.bounded(normalise(typed or ""), MAX_CHARACTERS, "Your sentence")
    controls.warn(loaded, [text], lang, key="language")
    return text, lang


def nearest(loaded: state.Loaded, text: str, lang: str, following: tabs.Next) -> None:
    """Show its neighbours in each latent, side by side."""
    sides = st.columns(len(loaded.latents), gap="large")
    several = len(loaded.langs) > 1
    for side, latent in zip(sides, loaded.latents, strict=True):
        near = compute.nearest(loaded, text, lang, latent)
        with side:
            title = f"Nearest in the {latent} latent"
            if near.empty:
                st.html(chart.head(title, "No sentences to compare with.", latent))
                st.caption("Start the app with `--data LANG=FILE`.")
                continue
            within = ("In any language. " if latent == SEMANTIC else f"In {rows.language_name(lang)}. ") * several
            st.html(chart.head(title, within + in_common(loaded, text, lang, latent, near), latent))
            st.html(chart.neighbours(text, lang, near, latent, latent == SEMANTIC and several))
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "See it on both maps" if loaded.second_latent else "See it on the map"
        drawn = next((name for name, each in corpora.readable(loaded.langs).items() if lang in each.langs), None)
        tabs.onward(following.latents, label, star=text, star_lang=lang, **{"data": drawn} if drawn else {})
        if loaded.second_latent:
            tabs.onward(following.plane, "Pairs on which the latents disagree")
    if any(lang in startup.LANGS for lang in loaded.langs):
        st.caption(startup.CREDIT)


def in_common(loaded: state.Loaded, text: str, lang: str, latent: str, near: pd.DataFrame) -> str:
    """Compare the share of neighbours that end like a text with that of all sentences, and the shares of those in its
    language that are as long and have its form of address, contraction or form of a question."""
    every = compute.nearest(loaded, text, lang, latent, None)
    of_all, shared = compute.alike(text, lang, every), compute.alike(text, lang, near)
    count, usual = shared["mark"].sum(), of_all["mark"].mean()
    ends = f"End like it, {ENDS[rows.mark(text)]}: {count} of {len(near)} ({usual:.0%} of all)."
    same_lang = near["lang"] == lang
    if not same_lang.any():
        return ends
    unit = "character" if primary(lang) in UNSPACED else "word"
    usual = of_all.loc[every["lang"] == lang, "length"].mean()
    there = f"{shared['length'].sum()} of {same_lang.sum()} in {rows.language_name(lang)}"
    parts = [f"{ends} As long, within a {unit}: {there} ({usual:.0%} of all)."]
    own, others = (table.loc[table["lang"] == lang, "text"] for table in (near, every))
    for name, value in wording(text, lang).items():
        count, usual = (sum(value == wording(each, lang).get(name) for each in texts) for texts in (own, others))
        parts.append(
            f"{rows.STYLES[name]}, {title(name, value)}: {count} of {len(own)} ({usual / len(others):.0%} of all)."
        )
    return " ".join(parts)


def rebuilt(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show the reconstruction: the text generated from both of its own latents."""
    st.subheader("Reconstruction: written from its own two latents")
    place = st.empty()
    for search in compute.SEARCHES:
        (again,) = compute.written(loaded, [text], [text], lang, search).itertuples()
        checked = checks(text, lang, again.text, lang)
        place.html(chart.output(again.text, again.meaning, again.style, loaded.second_latent, lang, checked))
    if changed := differences(checked):
        st.warning(
            f"This small model cannot reconstruct this sentence ({verbatim(changed)}). Expect the outputs below to be "
            "equally poor. Shorter, everyday sentences work better.",
            icon=":material/info:",
        )


@st.fragment
def swaps(loaded: state.Loaded, text: str, lang: str, following: tabs.Next) -> None:
    """Exchange either latent with that of another sentence; if none is typed, write an English sentence in French, in
    either form of address."""
    st.subheader("Recombination: one of its latents exchanged")
    fitting, fitting_lang = compute.partner(loaded, text, lang)
    wide, narrow = st.columns([5, 1])
    hint = fitting or "Type a sentence"
    typed = wide.text_input("The other sentence", placeholder=hint, key="other", **BOUND)
    langs = list(loaded.langs)
    other_lang = narrow.selectbox(
        "The other's language", langs, langs.index(fitting_lang), format_func=rows.language_name, key="other_language",
        **BOUND,
    )  # fmt: skip
    other = controls.bounded(normalise(typed), MAX_CHARACTERS, "The other sentence")
    contrasted = not other and fitting_lang != lang
    if not other:
        other, other_lang = fitting, fitting_lang
    if not other:
        return
    if contrasted:
        ways = [(text, lang, form, other_lang) for form in compute.FORMS]
    else:
        ways = [(text, lang, other, other_lang), (other, other_lang, text, lang)]
    places = []
    for side, (source, _, style, _) in zip(st.columns(2, gap="large"), ways, strict=True):
        quoted = f"“{ISOLATE}{verbatim(style if source == text else source)}{END_ISOLATE}”"
        side.markdown(f"**{MEANING_YOURS if source == text else STYLE_YOURS}**".format(quoted))
        places.append(side.empty())
    for search in compute.SEARCHES:
        if contrasted:
            written = compute.written(loaded, [text] * 2, list(compute.FORMS), other_lang, search, lang)
        else:
            written = pd.concat(compute.exchanged(loaded, [text], [other], lang, search, other_lang))
        for place, (source, source_lang, style, into), best in zip(places, ways, written.itertuples(), strict=True):
            checked = checks(source, source_lang, best.text, into)
            taken = taken_over(best.text, into, style, source, source_lang)
            place.html(chart.output(best.text, best.meaning, best.style, loaded.second_latent, into, checked, taken))
    label = "More on writing: meaning by style"
    langs_of = {"source_lang": rows.language_name(lang), "lang": rows.language_name(other_lang)}
    tabs.onward(following.style, label, how=ONE_SENTENCE, source=text, style=other, **langs_of)


def explained(loaded: state.Loaded) -> None:
    second = loaded.second_latent
    lines = [
        "- A **latent** is a list of numbers that a model computes from a sentence. Two sentences are near where their "
        "lists point the same way: **cosine** 1 is the same direction, 0 has nothing in common.",
        "- **Nearest in the semantic latent** are sought among all the example sentences. There are about a thousand "
        "in a language, so few are close to what you type. Marked: words that both have, and words that show the same "
        "form of address, contraction or form of a question. ✓ marks what is shared: the closing mark and, in one "
        "language, length and those forms; the heading counts them, and says in brackets how many of all the sentences "
        "share them.",
    ]
    if second:
        lines.append(
            f"- **Nearest in the {second} latent** may be about anything. They are alike in style only as far as the "
            "heading counts."
        )
    if not loaded.cannot_write:
        lines.append(
            "- **Written** sentences come from the model's decoder, which sees only the two latents. ✓ and ✗ compare "
            "its text with the sentence whose meaning it should have, by rules: negation, numbers, names, the order of "
            "the words that both have, and a much longer or shorter text. Each appears if it applies. A cosine is that "
            "of latents, of the written sentence and of those it was written from: the model judges itself, and may "
            "miss a change of meaning."
        )
    how_to_read("\n".join(lines))
