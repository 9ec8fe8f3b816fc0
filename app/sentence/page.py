"""The start page, which shows the information that each latent has about one sentence."""

import re
from collections.abc import Mapping, Sequence, Set
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.core import controls, display, inventory, pairs, rows, state
from app.core.address import BOUND, FIELDS, go_to, on_all_pages, write_on_arrival
from app.core.display import NOTES, square, verbatim
from app.sentence import compute
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.text import WORD, normalise, spans, without
from bgt_core.evaluation.facts import Check, checks, differences

MAX_CHARACTERS = 300  # maximum length in characters; training sentences of the shipped models are far shorter
NEAREST = 5
MEANING_YOURS, STYLE_YOURS = "Your meaning, in the style of {}", "The meaning of {}, in your style"
ISOLATE, END_ISOLATE = "\u2068", "\u2069"  # Unicode: text between these keeps its own writing direction
RANGE = 0.025, 0.975  # quantiles: ends of the range of 95% of random pairs
MANY = 40  # sentences with more words and punctuation marks than this get no bar chart


def heading(place: DeltaGenerator, loaded: state.Loaded | None = None) -> None:
    """Show the title, how the model was trained, and results of probes. Without a model, describe a usual one."""
    second = loaded.second_latent if loaded else LANGUAGE
    learnt_from = compute.learnt_from(loaded) if loaded and loaded.info else "translations"
    when = "In training" if not loaded or loaded.info else "In the split"
    semantic = f"{square(SEMANTIC)} <b>semantic latent</b>"
    with place.container():
        if loaded and loaded.translates:
            st.title("A translator")
            st.markdown(NOTES["translator"].format(loaded.translates))
        elif second:
            st.title("A sentence, in two parts")
            st.html(
                f"This model computes two latents from a sentence. {when}, {learnt_from} share the "
                f"{semantic}, and each sentence has a {square(second)} <b>{second} latent</b> of its own."
                f"{tells_more(loaded) if loaded else ''}"
            )
        else:
            st.title("A sentence")
            learnt = f" It was trained on {learnt_from}." if loaded and loaded.info else ""
            st.html(f"This model computes one latent from a sentence, its {semantic}.{learnt}")


def tells_more(loaded: state.Loaded) -> str:
    """Describe which properties probes predict better from which latent; "" if no results are stored for the model."""
    from app.core import results  # importing this module is slow, and not needed while the model loads

    leads = results.leads(Path(loaded.info["folder"]), loaded.second_latent) if loaded.info else {}
    if not leads:
        return ""
    accuracies, parts = results.accuracies(Path(loaded.info["folder"])), []
    for latent, other in ((loaded.second_latent, SEMANTIC), (SEMANTIC, loaded.second_latent)):
        if not (tasks := leads[latent]):
            parts.append(f"no property that was tested better from the {latent} latent")
            continue
        task = min(tasks, key=lambda task: results.task_group(task) != results.MEANING)  # prefer tasks on meaning
        more = f" and {len(tasks) - 1} more" * (len(tasks) > 1)
        own, others, usual, best = accuracies.loc[task, [latent, other, results.MAJORITY, results.BEST]]
        parts.append(
            f"<b>{results.task_title(task).lower()}</b>{more} better from the {latent} latent: {own:.0%} right "
            f"({other} latent {others:.0%}, most frequent answer {usual:.0%}, best baseline {best:.0%})"
        )
    own, both = results.nats(loaded.log, loaded.langs)
    kl = f"The {loaded.second_latent} latent has up to {own:.0f} of {both:,.0f} nats of information. " * (both == both)
    return f" {kl}Linear probes predict {'; '.join(parts)}. The best baseline has no model: it reads words or letters."


def page(loaded: state.Loaded) -> None:
    if loaded.second_latent:
        controls.model_title(loaded)
        if not loaded.info:
            own = "Held-out pairs: a translation, then those on which the latents differ most:"
            st.caption(own if loaded.corpus else "Pairs that were chosen for another model:")
        with st.container(key="pairs", horizontal=True):
            for at, (pair, label, cosines) in enumerate(pairs.of_start_page(loaded)):
                with st.container(gap="xsmall"):
                    st.html(pair_html(loaded, pair, label, cosines))
                    fill = dict(zip(FIELDS, pair, strict=True))  # a click stores this before the page is drawn again
                    st.button("Try it", key=f"pair{at}", on_click=st.session_state.update, kwargs=fill, type="tertiary")
        st.caption(NOTES["bars"])
    example = controls.EXAMPLE if "en" in loaded.langs else compute.usual(loaded.langs[0])["text"].get(0, "")
    text, lang = field(loaded, ("Your sentence", example), ("Its language", "en"), ("sentence", "language"))
    controls.warn(loaded, [text], lang, key="language")
    if not text:
        controls.choose_text(loaded) if loaded.sentences else st.warning("Type a sentence.", icon=":material/edit:")
        return
    models = [model for model in (loaded, state.second()) if model and lang in model.langs and model.embeds(text)]
    writers = [model for model in models if not model.cannot_write]
    above = st.container()
    st.subheader("The effect of each word")  # shown first: an encoder may have to embed many sentences for neighbours
    by_gradients = controls.by_gradients(models)
    for model in models:
        controls.model_title(model)
        st.caption(state.STORED) if model.sentences else words(model, text, lang, by_gradients)
    with above:
        for model in models:
            controls.model_title(model)
            nearest(model, text, lang)
        links(loaded, text, lang)
        if loaded.cannot_write:
            st.caption(loaded.cannot_write)
        if writers:
            st.subheader("Reconstruction: written from its own two latents")
            for model in writers:
                controls.model_title(model)
                rebuilt(model, text, lang)
            swaps(writers, text, lang)


def field(
    loaded: state.Loaded, given: tuple[str, str], of: tuple[str, str], keys: tuple[str, str], hint: str = ""
) -> tuple[str, str]:
    """Ask for a sentence, and its language: `given` and `of` are their (title, default). Normalise the sentence."""
    langs = list(loaded.langs)
    left, right = st.columns([5, 1])
    at = langs.index(of[1]) if of[1] in langs else 0
    with on_all_pages():
        lang = right.selectbox(of[0], langs, at, format_func=rows.language_name, key=keys[1], **BOUND)
        if loaded.sentences:
            typed = controls.listed(left, loaded, given[0], keys[0], lang)
        else:
            typed = left.text_input(given[0], given[1], placeholder=hint or None, key=keys[0], **BOUND)
    texts, usual = (typed or "", rows.language_name(lang)), (given[1], rows.language_name(langs[at]))
    write_on_arrival(dict(zip(keys, texts, strict=True)), dict(zip(keys, usual, strict=True)))
    return controls.bounded(normalise(typed or ""), MAX_CHARACTERS, given[0]), lang


def nearest(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show the sentence's neighbours in each latent, side by side."""
    several = len(loaded.langs) > 1
    for side, latent in zip(st.columns(len(loaded.latents), gap="large"), loaded.latents, strict=True):
        every = compute.nearest(loaded, text, lang, latent)
        near = every.head(NEAREST)
        with side:
            title = f"Nearest in the {latent} latent"
            if near.empty:
                st.html(head(title, "No sentences to compare with.", latent))
                st.caption("Start the app with `--data LANG=FILE`.")
                continue
            within = ("In any language. " if latent == SEMANTIC else f"In {rows.language_name(lang)}. ") * several
            if len(random := compute.random_pairs(loaded, lang, latent)):
                level = random.mean(), len(random), *np.quantile(random, RANGE)
                within += "Mean cosine of random pairs: {:z.2f}; of 95% of {:,}: {:z.2f} to {:z.2f}. ".format(*level)
            st.html(head(title, within + in_common(text, lang, near, every), latent))
            st.html(neighbours(text, lang, near, latent, latent == SEMANTIC and several))


def links(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show links that take the sentence to other pages, and name the source of its neighbours."""
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "See it on both maps" if loaded.second_latent else "See it on the map"
        texts = loaded.texts()
        drawn = next((name for name, each in texts.items() if lang in each.langs), None)
        go_to("maps", label, star=text, star_lang=lang, **{"data": drawn} if drawn else {})
        if loaded.second_latent:
            go_to("pairs", "Pairs on which the latents disagree")
        controls.keep({text: text}, lang, lang, "sentence")
    if loaded.sentences:
        st.caption(loaded.fitted_on(texts[drawn]) if drawn else "")
    elif loaded.corpus or any(lang in inventory.LANGS for lang in loaded.langs):
        st.caption(loaded.corpus.credit if loaded.corpus else inventory.CREDIT)


def in_common(text: str, lang: str, *tables: pd.DataFrame) -> str:
    """Count the sentences that share the text's closing mark, length and style, among the nearest and among all."""
    counted = {"closing mark": [compute.alike(text, lang, table)["mark"] for table in tables]}
    tables = tuple(table[table["lang"] == lang] for table in tables)  # length and style differ between languages
    unit = "character" if primary(lang) in UNSPACED else "word"
    counted[f"length within a {unit}"] = [compute.alike(text, lang, table)["length"] for table in tables]
    for name, value in rows.wording(text, lang).items():
        of = f"{rows.STYLES[name].lower()} ({compute.title(name, value)})"
        shared = ([rows.wording(each, lang).get(name) == value for each in table["text"]] for table in tables)
        counted[of] = [pd.Series(each, dtype=bool) for each in shared]
    shares = [
        f"{of}, {same.sum()} of {len(same)} ({every.mean():.0%} of all)"
        for of, (same, every) in counted.items()
        if len(same)
    ]
    return f"The same: {'; '.join(shares)}."


def rebuilt(loaded: state.Loaded, text: str, lang: str) -> None:
    """Show the reconstruction: the text that is generated from the sentence's own two latents."""
    (again,) = compute.written(loaded, [text], [text], lang).itertuples()
    checked = checks(text, lang, again.text, lang)
    st.html(output(again, loaded.second_latent, lang, checked))
    if changed := differences(checked):
        st.warning(NOTES["not-rebuilt"].format(verbatim(changed)), icon=":material/info:")


@st.fragment
def swaps(writers: Sequence[state.Loaded], text: str, lang: str) -> None:
    """Exchange latents with another sentence; by default, an English text is written with "tu" and with "vous"."""
    st.subheader("Recombination: one of its latents exchanged")
    first = writers[0]
    fitting, fitting_lang = compute.partner(first, text, lang)
    asked_for = ("The other sentence", ""), ("The other's language", fitting_lang), ("other", "other_language")
    other, other_lang = field(first, *asked_for, hint=fitting or "Type a sentence")
    contrasted = not other and fitting_lang != lang
    if not other:
        other, other_lang = fitting, fitting_lang
    if not other:
        return
    ways = [(text, lang, other, other_lang), (other, other_lang, text, lang)]
    if contrasted:
        ways = [(text, lang, form, other_lang) for form in compute.FORMS[text.endswith("?")]]
    for model in (model for model in writers if other_lang in model.langs):
        controls.model_title(model)
        exchanged(model, text, ways)
    more = {"sentence": text, "language": rows.language_name(lang), "other": other}
    go_to("rewrite", "More on writing", **more, other_language=rows.language_name(other_lang))


def exchanged(loaded: state.Loaded, text: str, ways: Sequence[tuple[str, str, str, str]]) -> None:
    """Show the sentence that is generated for each of `ways`: (source, its language, style sentence, its language)."""
    # the two sentences are generated together if they have the same languages
    batches = [ways] if len({way[1::2] for way in ways}) == 1 else [[way] for way in ways]
    best: list[Any] = []
    for batch in batches:
        sources, source_langs, styles, langs = zip(*batch, strict=True)
        best += compute.written(loaded, list(sources), list(styles), langs[0], source_langs[0]).itertuples()
    columns = zip(st.columns(2, gap="large"), ways, best, strict=True)
    for place, (side, (source, source_lang, style, into), row) in enumerate(columns):
        quoted = f"“{ISOLATE}{verbatim(style if source == text else source)}{END_ISOLATE}”"
        side.markdown(f"**{MEANING_YOURS if source == text else STYLE_YOURS}**".format(quoted))
        checked = state.verdicts(loaded, source, source_lang, row.text, into, row.meaning)
        taken = compute.taken_over(row.text, into, style, source, source_lang)
        side.html(output(row, loaded.second_latent, into, checked, taken))
        with side:
            controls.keep({row.text: source}, into, source_lang, f"{loaded.short} {place}")


def words(loaded: state.Loaded, text: str, lang: str, by_gradients: bool) -> None:
    """Show how far each latent moves when a word of the sentence is left out, or what each word adds by gradients."""
    count = len(spans(text, lang))
    if not 2 <= count <= MANY:
        st.caption(f"Shown for sentences of 2 to {MANY} words and punctuation marks; your sentence has {count}.")
        return
    table, latents = compute.effects(loaded, text, lang, by_gradients), list(loaded.latents)
    highest = max(1e-6, float(table[latents].to_numpy().max()))
    keys = " ".join(f"{square(latent)} {latent}" for latent in latents)
    question = "How far does each latent move if one word is left out"
    scale = "At 0 the latent does not move, at 1 it has nothing in common with the original."
    if by_gradients:
        question = "How much does each word add to each latent"
        scale = "The numbers of a latent add up to the rise of its cosine with the original. Below 0, a word lowers it."
    st.html(f"{question}? {keys}. {scale}")
    st.html(bars(table, latents, highest, lang))
    strongest = int(table[SEMANTIC].to_numpy().argmax())
    shorter, word = list(without(text, lang))[strongest], table["word"].iloc[strongest]
    label = f"More on two sentences: with and without “{verbatim(word)}”"
    langs = dict.fromkeys(("language", "other_language"), rows.language_name(lang))
    go_to("pairs", label, sentence=text, other=shorter, **langs)


def coloured(latent: str, more: str = "") -> str:
    """Return an HTML style attribute with the colour of a latent, followed by more CSS."""
    return f'style="--bgt:{display.latent_colour(latent, display.current_theme())};{more}"'


def head(title: str, explained: str, latent: str) -> str:
    """Return a heading as HTML in the colour of a latent, with a line of text below it."""
    return f'<div class="bgt-head" {coloured(latent)}><h3>{escape(title)}</h3><p>{escape(explained)}</p></div>'


def neighbours(text: str, lang: str, near: pd.DataFrame, latent: str, languages: bool) -> str:
    """Return sentences with their cosines as HTML; properties that they share with the text are highlighted."""
    alike, own = compute.alike(text, lang, near), rows.wording(text, lang)
    items = []
    for row, same in zip(near.itertuples(), alike.itertuples(), strict=True):
        unit = "character" if primary(row.lang) in UNSPACED else "word"
        closing = "no mark" if row.mark == rows.NONE else row.mark
        tags = [tag(f"{row.length} {unit}{'s' * (row.length != 1)}", same.length), tag(closing, same.mark)]
        there = rows.wording(row.text, row.lang)
        shared = {name: value for name, value in there.items() if row.lang == lang and own.get(name) == value}
        tags += [tag(compute.title(name, value), name in shared) for name, value in there.items()]
        words = {word for word in WORD.findall(text.casefold()) if word[0].isalnum()}
        known = words | compute.showing(row.text, row.lang, shared)
        if languages:
            tags.insert(0, tag(display.lang_title(row.lang, rows.language_name(row.lang)), False))
        items.append(
            f'<li><span class="cosine">{row.cosine:z.2f}</span><span class="text" lang="{escape(row.lang)}" dir="auto">'
            f"{marked(row.text, known) if row.lang == lang else escape(row.text)}"
            f'<br><bdi dir="ltr">{"".join(tags)}</bdi></span></li>'
        )
    return f'<ol class="bgt-list" {coloured(latent)}>{"".join(items)}</ol>'


def tag(text: str, same: bool) -> str:
    return f'<span class="bgt-tag{" same" * same}">{"✓ " * same}{escape(text)}</span>'


def marked(text: str, known: Set[str]) -> str:
    """Return the text as HTML that highlights the `known` words, ignoring case."""
    parts = re.split(f"({WORD.pattern})", text)
    return "".join(f"<mark>{escape(part)}</mark>" if part.casefold() in known else escape(part) for part in parts)


def pair_html(loaded: state.Loaded, pair: pairs.Pair, label: str, cosines: Mapping[str, float]) -> str:
    """Return two sentences as HTML, with a bar for their cosine in each latent, over the range of random pairs."""
    sides = (pair.text, pair.lang), (pair.other, pair.other_lang)
    parts = [f'<div lang="{lang}">{escape(text)}</div>' for text, lang in sides]
    for latent in loaded.latents:
        if latent not in cosines:
            parts.append(f"<p {coloured(latent)}>{escape(latent)}: each language has its own</p>")
            continue
        cosine, random = cosines[latent], compute.random_pairs(loaded, pair.lang, latent)
        low, high, end = (100 * max(0, of) for of in (*np.quantile(random if len(random) else [0], RANGE), cosine))
        rank = pairs.ranks(cosine, random)
        share = f"<em>{rank if rank == 100 else min(rank, 99.9):.3g} %</em>" * bool(len(random))
        bar = f'<b style="left:{low:.0f}%;width:{high - low:.0f}%"></b><i style="width:{end:.0f}%"></i>'
        parts.append(f"<p {coloured(latent)}><span>{bar}</span>{escape(latent)} {cosine:z.2f}{share}</p>")
    return f'<div class="bgt-pair"><small>{escape(label)}</small>{"".join(parts)}</div>'


def output(written: Any, second: str, lang: str, checked: Sequence[Check], taken: Mapping[str, str] = {}) -> str:
    """Return a row of `compute.written` as HTML, with the checks against its source and the cosine in each latent.
    Words that express the style properties `taken` from the style sentence are highlighted."""
    tags = "".join(tag(f"{compute.title(name, value)}, from the style", True) for name, value in taken.items())
    facts = "".join(f'<span class="bgt-tag lost">✗ {escape(one.verdict)}</span>' for one in checked if not one.passed)
    found = ", ".join(one.verdict for one in checked if one.passed)
    found = found and f"<div>Rules found: {escape(found)}. They do not check the grammar.</div>"
    values = {SEMANTIC: written.meaning, second: written.style}
    cosines = " &nbsp; ".join(
        f'<span class="bgt-cosine">{square(name)} {name} cosine {cosine:z.2f}</span>' for name, cosine in values.items()
    )
    return (
        f'<div class="bgt-output" lang="{escape(lang)}" dir="auto" {coloured(second)}>'
        f"{marked(written.text, compute.showing(written.text, lang, taken)) or '(nothing)'}</div>"
        f'<div class="bgt-kept" {coloured(second)}>{tags}{facts}{cosines}{found}</div>'
    )


def bars(table: pd.DataFrame, latents: Sequence[str], highest: float, lang: str) -> str:
    """Return the sentence as HTML with bars over each word: one for each latent, as high as the value in its column."""
    words = []
    for row in table.to_dict("records"):
        drawn = "".join(
            f"<i {coloured(latent, f'height:{max(1, 64 * row[latent] / highest):.0f}px')}></i>" for latent in latents
        )
        moved = "".join(f"<small>{square(latent)} {row[latent]:z.2f}</small>" for latent in latents)
        words.append(f'<div><div class="bars">{drawn}</div><b>{escape(row["word"])}</b>{moved}</div>')
    return f'<div class="bgt-words" lang="{escape(lang)}" dir="auto">{"".join(words)}</div>'
