"""Items without a file: from the example sentences, or from the grammar if those are too few."""

from __future__ import annotations

from typing import NamedTuple

from bgt_core.data.examples import example_sentences, style_sentences
from bgt_core.errors import NotFound
from bgt_core.grammar import pairs
from probes.data.items import MIN_ITEMS, common
from probes.task import Items, ProbeTask

EXAMPLES, GRAMMAR = "example sentences", "built-in grammar"
GRAMMAR_LANGS = ("en", "fr")
DRAWN = 6_000  # sentences of the grammar
MIN_SENTENCES = 500  # labelled sentences: five probe seeds test half of them, which gives intervals of about 6 points


class BuiltIn(NamedTuple):
    """Items, and their source."""

    items: Items
    source: str  # EXAMPLES or GRAMMAR
    note: str  # why the example sentences were not used, or ""


def grammar_sentences(lang: str, seed: int = 0) -> list[str]:
    """Sentences of the grammar; NotFound for a language that it does not have."""
    if lang not in GRAMMAR_LANGS:
        raise NotFound(f"is needed: the grammar writes {', '.join(GRAMMAR_LANGS)}, not '{lang}'.", parameter="data")
    return [pair.texts[lang] for pair in pairs(DRAWN, seed)]


def _labelled(task: ProbeTask, lang: str, seed: int) -> Items:
    """The example sentences that the task can label, or for a property of style those chosen for it, with their English
    translations; English ones of style with French translations, others without."""
    other = "fr" if lang == "en" else "en"
    if task.group == "style":
        chosen = [each for each in style_sentences() if (each.lang, each.other) == (lang, other)]
        texts = {each.text: each.translation for each in chosen}
    elif lang == "en":
        texts = {text: "" for (text,) in example_sentences(["en"])}
    else:
        texts = {row[0]: row[1] for row in example_sentences([lang, other])}
    return task.items(list(texts), lang, seed).translated(list(texts.values()), other)


def built_in_items(task: ProbeTask, lang: str, seed: int = 0) -> BuiltIn:
    """Label the example sentences; if fewer than `MIN_SENTENCES` get a label, use the grammar, if it has the language.

    Raises NotFound for a language that neither has, and if both are too few; UsageError as `ProbeTask.items`.
    """
    real = _labelled(task, lang, seed)
    learnable = common(real)
    labelled = len(set(learnable.groups))
    if labelled >= MIN_SENTENCES:
        return BuiltIn(real, EXAMPLES, "")
    if lang in GRAMMAR_LANGS and task.group != "style":
        too_few = f"only {labelled} of the example sentences can be labelled, {MIN_SENTENCES} are needed"
        items = task.items(grammar_sentences(lang, seed), lang, seed)
        return BuiltIn(items, GRAMMAR, f"on the {GRAMMAR}: {too_few}")
    if len(learnable.labels) < MIN_ITEMS:
        text = f"is needed: task '{task.name}' can label only {labelled} built-in sentences of '{lang}'."
        raise NotFound(text, parameter="data")
    return BuiltIn(real, EXAMPLES, "")
