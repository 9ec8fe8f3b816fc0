"""What a model keeps of a sentence when it writes it anew: from both its latents, in another language, in a style.

    pairs -> `plan`: whose meaning, whose manner -> `measures` of what is written; `roles`: minimal pairs of the grammar

Beside each writing stand baselines that write nothing: the source copied, a random training sentence, and the training
sentence whose semantic latent is nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import resample
from bgt_core.evaluation.fidelity.kept import numbers
from bgt_core.evaluation.fidelity.measures import KEPT, WRITTEN, Score, measure
from bgt_core.evaluation.fidelity.plan import OWN, Columns, Latents, Writer, Writing, writings
from bgt_core.evaluation.fidelity.roles import MEASURES, RoleScores, measure_roles
from bgt_core.tables import Estimate, Table
from bgt_core.tables.table import Value
from bgt_core.vectors.compare import nearest

MODEL, COPY, RANDOM_TRAINING, NEAREST = "model", "source copied", "random training", "nearest training"
HEAD = ("written", "meaning of", "manner of")

__all__ = ["Fidelity", "Written", "fidelity"]


@dataclass(frozen=True, eq=False)
class Written:
    """N sentences of one writing, by the model or by a baseline."""

    writing: Writing
    by: str  # MODEL, COPY, RANDOM_TRAINING or NEAREST
    texts: Sequence[str]
    scores: Mapping[str, Score]


@dataclass(frozen=True, eq=False)
class Fidelity:
    """All that was measured."""

    pairs: int
    unread: int  # pairs whose numbers can't be read (`kept.numbers`): numbers kept are not about them
    written: Sequence[Written]
    roles: Sequence[RoleScores]

    def table(self, measures: Sequence[str] = (*WRITTEN, *KEPT)) -> Table:
        """A row for each writing and baseline."""
        rows: list[list[Value]] = [
            [*named(one.writing), one.by, *(estimate(one.scores.get(name)) for name in measures)]
            for one in self.written
        ]
        return Table([*HEAD, "by", *measures], rows)

    def role_table(self) -> Table:
        """A row for each writing and kind of roles."""
        rows: list[list[Value]] = [
            [
                *named(one.writing),
                one.kind,
                one.scores[MEASURES[0]].sentences,
                *(estimate(one.scores[name]) for name in MEASURES),
            ]
            for one in self.roles
        ]
        return Table([*HEAD, "roles", "pairs", *MEASURES], rows)

    def long_table(self) -> Table:
        """A row for each number."""
        rows: list[list[Value]] = [
            [*named(one.writing), by, name, estimate(score), score.sentences]
            for one, by in [(one, one.by) for one in self.written] + [(one, one.kind) for one in self.roles]
            for name, score in one.scores.items()
        ]
        return Table([*HEAD, "by or roles", "measure", "value", "sentences"], rows)

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it: what was measured, sentences left out."""
        return {
            "pairs": self.pairs,
            "numbers_unread": self.unread,
            "written": [{**document(one.writing, one.scores), "by": one.by} for one in self.written],
            "roles": [{**document(one.writing, one.scores), "roles": one.kind} for one in self.roles],
        }


def fidelity(
    writer: Writer,
    columns: Columns,
    *,
    train: Columns | None = None,
    role_pairs: int = 100,
    seed: int = 0,
    lowercase: bool = True,
    resamples: int = 1_000,
    say: Callable[[str], None] = lambda line: None,
) -> Fidelity:
    """Write N held-out pairs, `columns` of two languages, anew and measure what is kept.

        fidelity(Writer(bgt_core.load(), Beam(4)), {"en": english, "fr": french})

    `train` holds sentences of both languages for the last two baselines, of any number; `seed` draws styles, random
    sentences, minimal pairs and resamples; `say` gets a line for each writing. A model without language latents has no
    manner: what needs one is left out. Raises UsageError for other than two languages and a language that the model
    lacks, DataError for fewer than two pairs and columns of different lengths.
    """
    langs = list(columns)
    rows = len(columns[langs[0]]) if langs else 0
    if len(langs) != 2:
        raise UsageError(f"`columns` of {', '.join(langs) or 'no language'}: expected two languages.")
    if missing := [lang for lang in langs if lang not in writer.langs]:
        raise UsageError(f"This model has no language '{missing[0]}'; it has {', '.join(writer.langs)}.")
    if len({len(texts) for texts in columns.values()}) > 1:
        raise DataError(f"{' and '.join(str(len(texts)) for texts in columns.values())} sentences; expected pairs.")
    if rows < 2:
        raise DataError(f"{rows} pairs; a style is another sentence than the source's own, so it takes 2 or more.")
    weights = resample(np.random.default_rng(seed), rows, resamples)
    latents = Latents(writer, columns)
    trained = training_sentences(writer, latents, columns, train, seed) if train else {}
    written = []
    for writing in writings(langs, rows, LANGUAGE in writer.latents, seed):
        source, lang = writing.source_lang, writing.lang
        say(f"{lang} from {source} in the manner of {writing.manner}")
        by = {MODEL: writer.write(latents.of(writing), lang=lang), COPY: columns[source]}
        by |= trained.get((source, lang), {})
        styles = [columns[lang][row] for row in writing.styles]
        for name, texts in by.items():
            read = None
            if name == MODEL and LANGUAGE in writer.latents:
                read = writer.embed(texts, lang=lang, latent=LANGUAGE), latents.vectors[LANGUAGE, lang][writing.styles]
            scores = measure(texts, columns[lang], columns[source], styles, lang=lang, source_lang=source,
                             weights=weights, lowercase=lowercase, language_latents=read)  # fmt: skip
            written.append(Written(writing, name, texts, scores))
    unread = sum(
        any(numbers(text, lang) is None for lang, text in zip(langs, pair, strict=True))
        for pair in zip(*columns.values(), strict=True)
    )
    return Fidelity(rows, unread, written, measure_roles(writer, langs, role_pairs, seed, say))


def training_sentences(
    writer: Writer, latents: Latents, columns: Columns, train: Columns, seed: int
) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Baselines by language of the source and of what is written: a training sentence of the latter for each source."""
    rng = np.random.default_rng([seed, 1])
    baselines = {}
    for lang in columns:
        if not train.get(lang):
            raise DataError(f"No training sentences in {lang}; the baselines need some of both languages.")
        texts = list(dict.fromkeys(train[lang]))
        vectors = writer.embed(texts, lang=lang, latent=SEMANTIC)
        drawn = rng.integers(0, len(texts), len(columns[lang]))
        for source in columns:
            closest = nearest(latents.vectors[SEMANTIC, source], vectors, writer.similarity)
            baselines[source, lang] = {
                RANDOM_TRAINING: [texts[row] for row in drawn],
                NEAREST: [texts[row] for row in closest],
            }
    return baselines


def named(writing: Writing) -> list[str]:
    """The first columns of a row: what is written, whose meaning, whose manner."""
    return [writing.lang, OWN if writing.manner == OWN else writing.source_lang, writing.manner]


def estimate(score: Score | None) -> Estimate | None:
    return score and Estimate(score.value, score.low, score.high)


def document(writing: Writing, scores: Mapping[str, Score]) -> dict[str, Any]:
    return {
        "written": writing.lang,
        "meaning_of": writing.source_lang,
        "manner_of": writing.manner,
        "scores": {name: score._asdict() for name, score in scores.items()},
    }
