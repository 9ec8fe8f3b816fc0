"""Measure a model of English and other languages as its card shows it, in Markdown.

    python analysis/measure_model.py CHECKPOINT FOLDER HELD_OUT > tables.md

FOLDER holds the sources, as for `mixture.py`; HELD_OUT the pairs en-LANG.tsv that it kept apart. Generated text comes
from 300 held-out pairs of English and French, and from 100 pairs of each published test of the other languages, all of
4 to 12 English words.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import bgt_core
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.fidelity import Fidelity
from bgt_core.evaluation.tasks.minimal_pairs import MinimalPairs
from bgt_core.evaluation.tasks.retrieval import Retrieval
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.evaluation.tasks.style import Style
from bgt_core.evaluation.tasks.transfer import FEWEST, Transfer
from bgt_core.evaluation.tasks.triples import TriplesTask
from bgt_core.tables import markdown_text

ENGLISH, WORDS = "en", "4-12"


def main(model: str, folder: Path, held_out: Path, count: int = 300) -> None:
    """Print the tables. `count` pairs of English and French are held out; of other languages and roles, a third."""
    encoder = bgt_core.open_encoder(model)
    published = {path.name[3:5]: path for path in sorted((folder / "retrieval").glob("en-??.tatoeba1000.tsv"))}
    langs = [lang for lang in published if lang in encoder.langs]
    measure = partial(evaluate, encoders=encoder)

    print("\n## Generated text\n")
    for lang in langs:
        file, limit = (held_out / "en-fr.tsv", count) if lang == "fr" else (published[lang], count // 3)
        task = Fidelity(langs=f"{ENGLISH},{lang}", lengths=WORDS, limit=limit)
        show(measure(task, data=file), "measure")
    print("\n## Style\n")
    for lang in langs:
        transfer = Transfer(langs=f"{ENGLISH},{lang}", limit=max(FEWEST, count // 2))
        show(measure(transfer, data=held_out / f"en-{lang}.tsv"), "measure")
    style = Style()
    show(measure(style, data=style.load([], seed=0)), "system")
    print("\n## Roles\n")
    roles = MinimalPairs(count=count // 3)
    show(measure(roles, data=roles.load([], seed=0)), "measure")
    print("\n## Similarity\n")
    show(measure(Sts(sets="2012-2015"), data=folder / "sts"), "system")
    for lang in langs:
        both = f"{ENGLISH},{lang}"
        show(measure(Retrieval(langs=both), data=published[lang]), "system")
    for lang in (ENGLISH, "fr"):
        triples = TriplesTask(lang=lang, latent=SEMANTIC)
        show(measure(triples, data=triples.load([], seed=0)), "system")


def show(result: Result, across: str) -> None:
    print(f"{result.about}\n\n{markdown_text(result.table(across))}\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
