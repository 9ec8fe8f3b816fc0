"""Transfer: measure how often text adopts the style of another sentence, and whether it keeps the source's content.

pairs -> `Change`: sources, and style sentences with another value of a property -> generated sentences -> scores
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.columns import primary
from bgt_core.data.properties import PROPERTIES
from bgt_core.errors import DataError, UsageError, check_least
from bgt_core.evaluation.bootstrap import ItemSample
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.task import BeamSize, Langs, Rerank, Task, evenly
from bgt_core.evaluation.tasks.fidelity import Fidelity
from bgt_core.evaluation.writing import CHRF_SCORE, Columns, Latents, OfWeights, chrf, corpus_score, writers

TAKEN, SOURCES = "taken over %", "sources"
FEWEST = 20  # minimum number of sources; with fewer sources, an interval is too wide to be useful


class TransferKey(NamedTuple):
    written: str  # language of the generated text
    meaning_of: str
    property: str
    style: str  # value of the property that the style sentences have
    measure: str
    sentences: int


class Change(NamedTuple):
    """N sources, and N style sentences in which a property has another value than in the reference of the source."""

    lang: str
    property: str
    value: str  # value of the property in the style sentences
    sources: np.ndarray  # (N,) row numbers of the sources
    styles: np.ndarray  # (N,) row numbers of the style sentences


@dataclass(frozen=True)
class Transfer(Task[Columns]):
    """Transfer: does generated text adopt another sentence's style, and keep the content of its source?

    Rules find five properties of style, in the languages that have them: form of address, politeness, contraction, form
    of the question and closing mark. For each value of a property, the style sentences are drawn from the sentences of
    DATA that have this value. The sources are sentences of either language whose reference (the same sentence or its
    translation, in the language of the output) has another value. The scores are the share of generated sentences that
    have the value, and the lower-cased chrF of all generated sentences to their references. If the style sentences had
    no effect, the shares of a property's values would add up to about 100 % or less: a text has at most one of them.
    """

    data = "Translations that were not trained on: TSV, Parquet, or X for the files X.en and X.fr."
    across = "measure"

    langs: Langs
    limit: Annotated[int, f"Maximum number of sources for each value, evenly spaced; {FEWEST} or more."] = 150
    beam: BeamSize = 4
    rerank: Rerank = False

    def load(self, paths: Sequence[Path], *, seed: int) -> Columns:
        return Fidelity(self.langs, limit=sys.maxsize).load(paths, seed=seed).columns

    def statistic(self, items: Columns, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Generate text from each source in the style of its style sentence. `seed` determines the style sentences."""
        check_least(FEWEST, limit=self.limit)
        models = writers(encoders, [*items], self.beam, self.rerank)
        for name, writer in models.items():
            if LANGUAGE not in writer.latents:
                problem = f"{name}: has no language latent, which this task exchanges; choose a model that has one."
                raise UsageError(problem, parameter="model")
        wanted, left_out = changes(items, self.limit, seed)
        few = f"fewer than {FEWEST} sources have another value than {', '.join(left_out)}"
        if not wanted:
            raise DataError(f"{few}; give more pairs.", parameter="data")
        corpus: dict[TransferKey, list[OfWeights]] = {}
        hits: dict[TransferKey, list[list[bool]]] = {}
        for writer in models.values():
            vectors = Latents(writer, items).vectors
            for source, change in product(items, wanted):
                latents = {
                    SEMANTIC: vectors[SEMANTIC, source][change.sources],
                    LANGUAGE: vectors[LANGUAGE, change.lang][change.styles],
                }
                outputs = writer.write(latents, lang=change.lang)
                references = [items[change.lang][row] for row in change.sources]
                rule = PROPERTIES[change.property].value
                key = TransferKey(change.lang, source, change.property, change.value, TAKEN, len(outputs))
                hits.setdefault(key, []).append([rule(text, change.lang) == change.value for text in outputs])
                score = corpus_score(chrf(lowercase=True), outputs, references)
                corpus.setdefault(key._replace(measure=CHRF_SCORE), []).append(score)
        sizes = sorted({key.sentences for key in hits})
        return Statistic(
            systems=[*models],
            scores=lambda weights: {
                key: np.stack([score(weights[sizes.index(key.sentences)]) for score in scores], 1)
                for key, scores in corpus.items()
            },
            samples=[*map(ItemSample, sizes)],
            hits={key: np.array(rows, dtype=float) for key, rows in hits.items()},
            numbers={key._replace(measure=SOURCES): [float(key.sentences)] * len(models) for key in hits},
            about=f"{len(next(iter(items.values()))):,} pairs, at most {self.limit} sources whose reference has "
            f"another value than the style sentence, beam {self.beam}{', reranked' * self.rerank}; rules find the "
            "values; chrF of sacrebleu to the reference, lower-cased",
            warnings=[f"left out: {few}"] if left_out else [],
        )


TASK = Transfer


def changes(columns: Columns, limit: int, seed: int) -> tuple[list[Change], list[str]]:
    """List the changes of style with at least `FEWEST` sources, and describe the other changes for an error message."""
    rng = np.random.default_rng(seed)
    wanted, left_out = [], []
    for lang, texts in columns.items():
        for name, each in PROPERTIES.items():
            if each.rules.keys().isdisjoint({primary(lang), ""}):
                continue
            shown = np.array([each.value(text, lang) for text in texts])
            for value in sorted({*shown} - {""}) or [""]:
                others = np.flatnonzero((shown != value) & (shown != ""))
                if len(others) < FEWEST:
                    left_out.append(f"{' '.join(filter(None, (lang, name, value)))} ({len(others)})")
                    continue
                sources = np.array(evenly(others.tolist(), limit))
                styles = rng.choice(np.flatnonzero(shown == value), len(sources))
                wanted.append(Change(lang, name, value, sources, styles))
    return wanted, left_out
