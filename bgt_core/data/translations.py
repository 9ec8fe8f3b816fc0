"""Translations of a text, and the table that holds them beside their references.

Tab-separated, one row per translation of each sentence, the best first:

    reference  translation  cost  row

`reference` is the bitext's own sentence in the target language, and `translation` a translation of
the other side; `cost` is its negative log-likelihood in nats per token, "nan" if the translator gives none, and
`row` the number of the bitext's row, from 1. In a list of columns, "_" skips one: "a,b,_,_=FILE".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

COLUMNS = ("reference", "translation", "cost", "row")


class Translation(NamedTuple):
    """One translation of a sentence."""

    text: str
    cost: float  # negative log-likelihood, nats per token; NaN if the translator gives none


class SentenceTranslator(Protocol):
    """A translator: `generation.translate.BeamTranslator`, or an external program,
    `generation.command.CommandTranslator`."""

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the translations, in one line."""

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """Translate N sentences: the translations of each, the best first; empty for one that can't be translated."""


def table_rows(reference: str, translations: Sequence[Translation], row: int) -> list[tuple[bytes, ...]]:
    """Rows of the table for one sentence: its translations, and the number of its row in the bitext."""
    return [
        (reference.encode(), text.encode(), f"{cost:.4f}".encode(), str(row).encode()) for text, cost in translations
    ]
