"""Items without a file: from the example sentences, or from the grammar where those are too few."""

from __future__ import annotations

from typing import NamedTuple

from bgt_core.data.examples import example_sentences
from bgt_core.errors import NotFound
from bgt_core.grammar import pairs
from probes.data.items import MIN_ITEMS, common
from probes.task import Items, ProbeTask

EXAMPLES, GRAMMAR = "example sentences", "built-in grammar"
GRAMMAR_LANGS = ("en", "fr")
DRAWN = 6_000  # sentences of the grammar
MIN_SENTENCES = 500  # labelled sentences: five probe seeds test half of them, and are then right within about 6 points


class BuiltIn(NamedTuple):
    """Items, and what they were made of."""

    items: Items
    source: str  # EXAMPLES or GRAMMAR
    note: str  # why not the example sentences, or ""


def grammar_sentences(lang: str, seed: int = 0) -> list[str]:
    """Sentences of the grammar; NotFound for a language that it does not have."""
    if lang not in GRAMMAR_LANGS:
        raise NotFound(f"is needed: the grammar writes {', '.join(GRAMMAR_LANGS)}, not '{lang}'.", parameter="data")
    return [pair.texts[lang] for pair in pairs(DRAWN, seed)]


def built_in_items(task: ProbeTask, lang: str, seed: int = 0) -> BuiltIn:
    """The example sentences, labelled; where fewer than `MIN_SENTENCES` can be, the grammar's, if it has the language.

    Raises NotFound for a language that neither has, and where both are too few; UsageError as `ProbeTask.items`.
    """
    real = task.items([text for (text,) in example_sentences([lang])], lang, seed)
    learnable = common(real)
    labelled = len(set(learnable.groups))
    if labelled >= MIN_SENTENCES:
        return BuiltIn(real, EXAMPLES, "")
    if lang in GRAMMAR_LANGS:
        too_few = f"{labelled} of the example sentences can be labelled, of {MIN_SENTENCES} it takes"
        items = task.items(grammar_sentences(lang, seed), lang, seed)
        return BuiltIn(items, GRAMMAR, f"on the {GRAMMAR}: {too_few}")
    if len(learnable.labels) < MIN_ITEMS:
        text = f"is needed: task '{task.name}' finds only {labelled} built-in sentences of '{lang}'."
        raise NotFound(text, parameter="data")
    return BuiltIn(real, EXAMPLES, "")
