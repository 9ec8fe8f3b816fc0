"""Translations of a text, and the table that holds them beside what they should say.

Tab-separated, a row for each translation of each sentence, the best first:

    reference  translation  cost  row

`reference` is the bitext's own sentence, in the language that is written, and `translation` what a translator made of
the other side; `cost` is its negative log-likelihood in nats a piece, "nan" where the translator does not say, and
`row` the number of the bitext's row, from 1. Where a file's columns are named, "_" leaves one out: "a,b,_,_=FILE".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

COLUMNS = ("reference", "translation", "cost", "row")


class Translation(NamedTuple):
    """What a sentence was translated to."""

    text: str
    cost: float  # negative log-likelihood, nats a piece; NaN where the translator does not say


class SentenceTranslator(Protocol):
    """Whatever translates: `generation.translate.BeamTranslator`, or a program of others,
    `adapters.command.CommandTranslator`."""

    @property
    def fingerprint(self) -> str:
        """What decides the translations, in one line."""

    def translate(self, sentences: Sequence[str]) -> list[list[Translation]]:
        """N sentences -> the translations of each, the best first; none where there is none."""


def table_rows(reference: str, translations: Sequence[Translation], row: int) -> list[tuple[bytes, ...]]:
    """The rows of one sentence: its translations, and the row of the bitext that it stands in."""
    return [
        (reference.encode(), text.encode(), f"{cost:.4f}".encode(), str(row).encode()) for text, cost in translations
    ]
