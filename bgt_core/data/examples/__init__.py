"""The example sentences: 1,152 real English ones, each with translations into some of six languages.

README.md in this folder names their sources, their licences, and the models that were not trained on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from bgt_core.errors import NotFound

FILE = Path(__file__).with_name("sentences.tsv")  # its header: `source`, then the languages
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")
CREDIT = (  # Markdown; their licences require it beside the sentences
    "Sentences: [Tatoeba](https://tatoeba.org), by way of [manythings.org](https://www.manythings.org/anki/), "
    "[CC BY 2.0 FR](https://creativecommons.org/licenses/by/2.0/fr/); a few from "
    "[NTREX-128](https://github.com/MicrosoftTranslator/NTREX) (CC BY-SA 4.0), "
    "[PUD](https://universaldependencies.org) (CC BY-SA 3.0) and [TICO-19](https://tico-19.github.io) (CC0)."
)


@cache
def _table() -> list[list[str]]:
    """The lines after the header: a source, then a text or "" for each of `LANGS`."""
    _, *lines = FILE.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


def example_sentences(langs: Sequence[str]) -> list[tuple[str, ...]]:
    """The translations that exist in all of `langs`, in the order of the file, which is random.

    Raises NotFound for a language that the file does not have.
    """
    if missing := [lang for lang in langs if lang not in LANGS]:
        raise NotFound(
            f"is needed: '{missing[0]}' has no built-in sentences, only {', '.join(LANGS)} do.", parameter="data"
        )
    columns = [1 + LANGS.index(lang) for lang in langs]
    rows = (tuple(row[column] for column in columns) for row in _table())
    return [row for row in rows if all(row)]
