"""The titles, questions and groups of probing tasks, and the data needed to label each."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.rows import STYLES, language_name
from bgt_core.data.columns import split_langs
from probes.task import needs
from probes.tasks import GROUPS as SENTEVAL_GROUPS
from probes.tasks import TASKS

MEANING, ADDED = "Meaning", "What a language adds"  # tasks on which the semantic or the second latent should lead
GROUPS = {
    ADDED: SENTEVAL_GROUPS["style"],
    MEANING: SENTEVAL_GROUPS["semantic"],
    "Form": SENTEVAL_GROUPS["syntax"],
    "Surface": SENTEVAL_GROUPS["surface"],
}
OTHERS = "Other tasks"
TITLES = {
    "subj-num": "Number of the subject",
    "obj-num": "Number of the object",
    "depth": "Depth of the tree",
    "top-const": "Top constituents",
    "word-content": "Word content",
    "length": "Length",
    "punct-num": "Punctuation: how much",
    "punct-first": "Punctuation: which first",
    "gender": "Gender of articles",
    "tense": "Tense",
    "bigram-shift": "Neighbours swapped",
    "coord-inv": "Clauses swapped",
    "lang-id": "Language identity",
    "sentence-type": "Closing mark",
    **STYLES,
}


def title(task: str) -> str:
    """Return the title of a task; a user's own task keeps its name."""
    return TITLES.get(task, task)


def question(task: str) -> str:
    """Return the question about a sentence that the task asks."""
    about = TASKS[task].about
    return about[:1].upper() + about[1:]


def group(task: str) -> str:
    return next((name for name, tasks in GROUPS.items() if task in tasks), OTHERS)


def defined(task: str, lang: str) -> bool:
    """Return whether the task exists in a language, or in a pair such as "en-fr"; user-defined tasks always do."""
    if task not in TASKS:
        return True
    return ("texts" in TASKS[task].builds) == (len(split_langs(lang)) > 1) and lang in (TASKS[task].langs or (lang,))


def why_not(task: str, lang: str) -> str:
    """Explain why a task can't be labelled from sentences of a language alone; "" if it can."""
    if "texts" in TASKS[task].builds:
        return "It can't be run here, as it needs sentences of two languages: use `bgt-probe --lang en-fr`."
    if not defined(task, lang):
        return (
            f"It does not exist in {language_name(lang)}, only in {', '.join(map(language_name, TASKS[task].langs))}."
        )
    if "text" not in TASKS[task].builds:
        return f"It can't be labelled from sentences alone: use `bgt-probe --data` with {needs(TASKS[task], lang)}."
    return ""


def ordered(tasks: Sequence[str]) -> list[str]:
    """Sort tasks by group, in the order of `GROUPS`."""
    known = [task for members in GROUPS.values() for task in members]
    return sorted(tasks, key=lambda task: known.index(task) if task in known else len(known))
