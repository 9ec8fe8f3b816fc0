"""Facts about common corpora of labels and text, for the card of a data set.

A corpus is recognised by a part of its file's name, or by one of the two folders around it. Licences are quoted from
the sources.
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

TATOEBA = "CC BY 2.0 FR"
CORPORA = {
    "xprobe": Provenance(
        "xprobe (ltgoslo): tasks in SentEval's manner on Wikipedia",
        "none stated; the text is CC BY-SA",
        (
            "published va and te rows pooled and split again; scores are not comparable with SentEval's literature",
            "made from automatic parses, with their errors; some sentences are fragments or in other languages",
            "Turkish: about 72 % of the subj-num and obj-num labels are Plur; parts of many words stand after the word",
        ),
    ),
    "gum": Provenance(
        "GUM corpus, constituency trees",
        "annotations CC BY 4.0; text by genre CC BY, CC BY-SA or CC BY-NC-SA",
        ("small and of many genres; top constituents: sequences with inner punctuation are kept, unlike SentEval",),
    ),
    "tatoeba": Provenance(
        "Tatoeba", TATOEBA, ("short and conversational; many near-copies, which share a group by their translation",)
    ),
    "tanaka-tok": Provenance("Tanaka corpus", TATOEBA, ("its English is tokenised and in lower case",)),
    "multi30k": Provenance("Multi30k captions", "no licence of the text stated", ("captions of photographs alone",)),
    "ntrex": Provenance("NTREX-128 news", "CC BY-SA 4.0"),
    "pud": Provenance("Parallel Universal Dependencies", "CC BY-SA 3.0"),
    "un": Provenance("UN Parallel Corpus", "free use with acknowledgement", ("formal",)),
    "tico19": Provenance("TICO-19", "CC0 1.0", ("about one disease",)),
    "xquad-questions": Provenance("XQuAD questions", "CC BY-SA 4.0", ("questions alone",)),
    "mozilla-www": Provenance("mozilla.org", "MPL 2.0", ("web pages of one organisation",)),
    "kde4": Provenance("KDE4 interface strings", "as the KDE localisation files", ("commands, not sentences",)),
    "bible": Provenance("Bible", "rights in the translation unknown", ("archaic",)),
    "bsd": Provenance("Business Scene Dialogue", "CC BY-NC-SA 4.0"),
    "ami": Provenance("AMI Meeting Parallel Corpus", "CC BY 4.0", ("spoken, many very short turns",)),
}


def provenance_of(file: Path, kind: str) -> Provenance:
    """The provenance of a file used as this kind of source."""
    for name in (*file.name.split("."), *(folder.name for folder in file.absolute().parents[:2])):
        if name in CORPORA:
            return CORPORA[name]
    if kind == "labelled" and ".txt" in file.suffixes:
        return SENTEVAL
    return TREEBANK if kind == "conllu" and "-ud-" in file.name else UNKNOWN
