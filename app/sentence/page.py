"""The first page: the content of each latent of one sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.core import controls, corpora, markdown, pairs, rows, startup, state
from app.core.address import BOUND, go_to
from app.core.markdown import verbatim
from app.sentence import chart, compute
from app.sentence.compute import taken_over, title, wording
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.text import normalise
from bgt_core.data.words import spans, without
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
MANY = 40  # words and marks; longer sentences are not drawn


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
                f"This model computes two latents from a sentence. In training, {learnt_from} share the "
                f"{semantic}, and each sentence has a {chart.square(second)} <b>{second} latent</b> of its own."
                f"{tells_more(loaded) if loaded else ''}"
            )
        else:
            st.title("A sentence")
            learnt = f" It was trained on {learnt_from}." if loaded and loaded.info else ""
            st.html(f"This model computes one latent from a sentence, its {semantic}.{learnt}")


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


def page(loaded: state.Loaded) -> None:
    if loaded.second_latent:
        with st.container(key="pairs", horizontal=True):
            for number, (pair, cosines) in enumerate(pairs.of_start_page(loaded)):
                with st.container(gap="xsmall"):
                    st.html(chart.pair(pair, cosines, loaded.latents))
                    fields = ("sentence", "language", "other", "other_language")
                    fill = dict(zip(fields, pair, strict=True))  # before the page is drawn
                    st.button(
                        "Try it", key=f"pair{number}", on_click=st.session_state.update, args=(fill,), type="tertiary"
                    )
    text, lang = field(loaded, ("Your sentence", EXAMPLE), ("Its language", "en"), ("sentence", "language"))
    controls.warn(loaded, [text], lang, key="language")
    if not text:
        st.warning("Type a sentence.", icon=":material/edit:")
        return
    nearest(loaded, text, lang)
    if loaded.cannot_write:
        st.caption(loaded.cannot_write)
    else:
        rebuilt(loaded, text, lang)
        swaps(loaded, text, lang)
    words(loaded, text, lang)


def field(
    loaded: state.Loaded, given: tuple[str, str], of: tuple[str, str], keys: tuple[str, str], hint: str = ""
) -> tuple[str, str]:
    """Ask for a sentence and its language, each with a title and a default; clean the sentence up."""
    langs = list(loaded.langs)
    left, right = st.columns([5, 1])
    typed = left.text_input(given[0], given[1], placeholder=hint or None, key=keys[0], **BOUND)
    at = langs.index(of[1]) if of[1] in langs else 0
    lang = right.selectbox(of[0], langs, at, format_func=rows.language_name, key=keys[1], **BOUND)
    return controls.bounded(normalise(typed or ""), MAX_CHARACTERS, given[0]), lang


def nearest(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show its neighbours in each latent, side by side."""
    several = len(loaded.langs) > 1
    for side, latent in zip(st.columns(len(loaded.latents), gap="large"), loaded.latents, strict=True):
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
        go_to("maps", label, star=text, star_lang=lang, **{"data": drawn} if drawn else {})
        if loaded.second_latent:
            go_to("pairs", "Pairs on which the latents disagree")
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
        there = f"{count} of {len(own)} ({usual / len(others):.0%} of all)"
        parts.append(f"{rows.STYLES[name]}, {title(name, value)}: {there}.")
    return " ".join(parts)


def rebuilt(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show the reconstruction: the text generated from both of its own latents."""
    st.subheader("Reconstruction: written from its own two latents")
    place = st.empty()
    for search in compute.SEARCHES:
        (again,) = compute.written(loaded, [text], [text], lang, search).itertuples()
        checked = checks(text, lang, again.text, lang)
        place.html(chart.output(again, loaded.second_latent, lang, checked))
    if changed := differences(checked):
        st.warning(
            f"This small model cannot reconstruct this sentence ({verbatim(changed)}). Expect the outputs below to be "
            "equally poor. Shorter, everyday sentences work better.",
            icon=":material/info:",
        )


@st.fragment
def swaps(loaded: state.Loaded, text: str, lang: str) -> None:
    """Exchange either latent with that of another sentence; if none is typed, write an English sentence in French, in
    either form of address."""
    st.subheader("Recombination: one of its latents exchanged")
    fitting, fitting_lang = compute.partner(loaded, text, lang)
    asked_for = ("The other sentence", ""), ("The other's language", fitting_lang), ("other", "other_language")
    other, other_lang = field(loaded, *asked_for, hint=fitting or "Type a sentence")
    contrasted = not other and fitting_lang != lang
    if not other:
        other, other_lang = fitting, fitting_lang
    if not other:
        return
    ways = [(text, lang, other, other_lang), (other, other_lang, text, lang)]
    if contrasted:
        ways = [(text, lang, form, other_lang) for form in compute.FORMS]
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
            place.html(chart.output(best, loaded.second_latent, into, checked, taken))
    fields = {f"meanings_{lang}": text, "mlang": rows.language_name(lang), "glang": rows.language_name(other_lang)}
    go_to("rewrite", "More on writing: meaning by style", **fields, **{f"styles_{other_lang}": other})


def words(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show how far each latent moves if a word is left out."""
    st.subheader("The effect of each word")
    count = len(spans(text, lang))
    if not 2 <= count <= MANY:
        about = f"sentences with 2 to {MANY} words and marks; yours has {count}."
        st.caption(f"Words are left out one at a time of {about}")
        return
    table, latents = compute.left_out(loaded, text, lang), list(loaded.latents)
    highest = max(1e-6, float(table[latents].to_numpy().max()))
    keys = " ".join(f"{chart.square(latent)} {latent}" for latent in latents)
    st.html(
        f"How far does each latent move when one word is left out? {keys}. The highest bar is {highest:.2f}: 0 is not "
        "at all, 1 means unrelated."
    )
    st.html(chart.bars(table, latents, highest, lang))
    strongest = {latent: table["word"].iloc[int(table[latent].to_numpy().argmax())] for latent in latents}
    heard = "; ".join(f"the {latent} latent most for “{verbatim(word)}”" for latent, word in strongest.items())
    st.caption(f"The largest moves: {heard}.")
    with st.expander("The same as a table"):
        titles = {latent: rows.latent_title(latent) for latent in latents}
        markdown.frame(
            table.rename(columns={"word": "Left out", **titles}),
            "1 - cosine of each latent between the sentence and the sentence without each word or mark",
            dict.fromkeys(titles.values(), "%.2f"),
        )
    shorter = list(without(text, lang))[int(table[SEMANTIC].to_numpy().argmax())]
    langs = dict.fromkeys(("one_left_lang", "one_right_lang"), rows.language_name(lang))
    label = f"More on two sentences: with and without “{verbatim(strongest[SEMANTIC])}”"
    go_to("pairs", label, left=text, right=shorter, **langs)
