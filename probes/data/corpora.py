"""Facts about common sources of labels, for the card of a data set.

A source is recognised by its kind and the name of its file. Licences are quoted from the sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Provenance:
    """The source of sentences, its licence, and its pitfalls."""

    about: str
    licence: str
    artefacts: tuple[str, ...] = ()


SENTEVAL = Provenance(
    "SentEval's probing sets (Conneau et al. 2018), sentences of the Toronto Book Corpus",
    "none stated for the data",
    ("lower-case and capitals as in fiction; not comparable with sets made of other text",),
)
TREEBANK = Provenance("a treebank of Universal Dependencies", "see the treebank's own README")
UNKNOWN = Provenance("files of unstated origin", "not stated")


def provenance_of(file: Path, kind: str) -> Provenance:
    """The provenance of a file used as this kind of source."""
    if kind == "labelled" and ".txt" in file.suffixes:
        return SENTEVAL
    return TREEBANK if kind == "conllu" and "-ud-" in file.name else UNKNOWN
