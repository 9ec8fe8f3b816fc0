"""Read the example sentences: 1,152 English sentences with translations, and sentences that show properties of style.

README.md in this folder names their sources, their licences, and the models that were trained without them.
"""

import lzma
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from bgt_core.data.properties import PROPERTIES, values
from bgt_core.errors import NotFound

FILE = Path(__file__).with_name("sentences.tsv")  # columns: the source, then a text or "" for each of `LANGS`
STYLE = Path(__file__).with_name("style.tsv.xz")  # its columns are the fields of `Styled`
LANGS = ("en", "fr", "es", "de", "tr", "ja", "ar")
CREDIT = (  # Markdown; the licences require this credit wherever the sentences are shown
    "Sentences: [Tatoeba](https://tatoeba.org), by way of [manythings.org](https://www.manythings.org/anki/), "
    "[CC BY 2.0 FR](https://creativecommons.org/licenses/by/2.0/fr/); a few from "
    "[NTREX-128](https://github.com/MicrosoftTranslator/NTREX) (CC BY-SA 4.0), "
    "[PUD](https://universaldependencies.org) (CC BY-SA 3.0) and [TICO-19](https://tico-19.github.io) (CC0)."
)


def example_sentences(langs: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the example sentences that have translations in all of `langs`, as tuples, in the order of the file.

    Raises NotFound for a language that the file does not have.
    """
    if missing := [lang for lang in langs if lang not in LANGS]:
        raise NotFound(
            f"is needed: no built-in sentences in '{missing[0]}', only in {', '.join(LANGS)}.", parameter="data"
        )
    columns = [1 + LANGS.index(lang) for lang in langs]
    table = (line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines()[1:])
    rows = (tuple(row[column] for column in columns) for row in table)
    return [row for row in rows if all(row)]


class Styled(NamedTuple):
    """A sentence that shows a property of style, such as politeness, and a translation of the sentence."""

    lang: str
    text: str
    other: str  # the language of the translation
    translation: str


class StylePair(NamedTuple):
    """Two sentences with the same meaning that differ in one property of style."""

    property: str
    left: Styled
    right: Styled


@cache
def style_sentences() -> list[Styled]:
    """Return the sentences of all languages in the file `STYLE`. No shipped model was trained on them."""
    return [Styled(*line.split("\t")) for line in lzma.decompress(STYLE.read_bytes()).decode().splitlines()]


def differing(sentences: Iterable[Styled]) -> Iterator[StylePair]:
    """Yield pairs of sentences that share a translation and differ in exactly one of `PROPERTIES`.

    Pairs that differ in the final mark (. ? !) are left out, because any sentence can end in another mark. A sentence
    is in at most one pair for each property.
    """
    together: dict[tuple[str, str, str], list[Styled]] = {}
    for each in sentences:
        together.setdefault((each.lang, each.other, each.translation), []).append(each)
    used: set[tuple[str, str, str]] = set()
    for group in together.values():
        for left, right in combinations(group, 2):
            shown = list(zip(PROPERTIES, *(values(each.text, each.lang) for each in (left, right)), strict=True))
            apart = [name for name, mine, yours in shown if mine != yours]
            clear = all(mine and yours for name, mine, yours in shown if name in apart)
            texts = {(name, left.lang, each.text.lower()) for name in apart for each in (left, right)}
            if len(apart) == 1 and clear and apart != ["sentence-type"] and len(texts) == 2 and used.isdisjoint(texts):
                used |= texts
                yield StylePair(apart[0], left, right)
