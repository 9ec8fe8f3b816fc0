"""Fidelity: measure how much of a sentence a model keeps when it generates text from the sentence's latents.

translations -> plans of which latents to combine (`writings`) -> generated sentences -> scores

Three baselines generate nothing. Their output is the source itself, a random training sentence, or the training
sentence with the nearest semantic latent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.columns import text_columns
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import DataError, UsageError, check_least
from bgt_core.evaluation import writing
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.facts import numbers
from bgt_core.evaluation.task import BeamSize, Langs, Rerank, Task, evenly, one_path, read_lengths
from bgt_core.evaluation.tasks.retrieval import language_pair
from bgt_core.evaluation.writing import LENGTH_OFF, RANDOM, STYLE_R, Columns, Latents, OfWeights, writers, writings
from bgt_core.vectors.arrays import nearest

if TYPE_CHECKING:  # these imports load torch, which `bgt evaluate --help` does not need
    from bgt_core.generation.generate import Writer

COPY, RANDOM_TRAINING, NEAREST = "source copied", "random training", "nearest training"


class FidelityKey(NamedTuple):
    written: str  # language of the generated text
    meaning_of: str
    style_of: str
    measure: str
    sentences: int


class HeldOut(NamedTuple):
    """N held-out pairs of translations, and training sentences in both languages, which baselines use."""

    columns: Columns
    train: Columns | None = None


@dataclass(frozen=True)
class Fidelity(Task[HeldOut]):
    """Fidelity: does text generated from a sentence's latents keep its content?

    Generated text is compared with a reference: a held-out sentence. The reference or its translation provides the
    semantic latent; the style sentence, which is the reference or a random sentence, provides the language latent.
    Length and closing mark are compared with the style sentence, everything else with the reference. Negations, numbers
    and names are compared only if they are the same in the sentence with the semantic latent and in the reference.
    """

    data = "Translations that were not trained on: TSV, Parquet, or X for the files X.en and X.fr."
    across = "measure"

    langs: Langs
    train: Annotated[
        Path | None, "Training translations for baselines: a random one, and the one with the nearest semantic latent."
    ] = None
    limit: Annotated[int, "Maximum number of pairs, evenly spaced."] = 300
    lengths: Annotated[str, "Minimum and maximum number of words in the first language, as in 1-29."] = "1-1000"
    beam: BeamSize = 4
    rerank: Rerank = False

    def load(self, paths: Sequence[Path], *, seed: int) -> HeldOut:
        check_least(2, limit=self.limit)
        if len(set(language_pair(self.langs))) < 2:
            raise UsageError(f"{self.langs}: expected two languages, as in en,fr.", parameter="langs")
        fewest, most = read_lengths(self.lengths)
        files = (one_path(paths, "one file of translations"), self.train)
        pairs, train = (
            list(read_pairs(file, text_columns(self.langs)[0], Skipped(), strict=True)) if file else []
            for file in files
        )
        fitting = [pair for pair in pairs if fewest <= len(pair[0].split()) <= most]
        if len(fitting) < 2:
            raise DataError(f"{len(fitting)} of {len(pairs)} pairs have {fewest} to {most} words; expected 2 or more.")
        sides = [list(zip(*rows, strict=True)) or [(), ()] for rows in (evenly(fitting, self.limit), train)]
        columns, of_train = (dict(zip(language_pair(self.langs), both, strict=True)) for both in sides)
        return HeldOut(columns, of_train if self.train else None)

    def statistic(self, items: HeldOut, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Generate text from each combination of latents, and score it. `seed` determines the random sentences.

        A model without language latents cannot recombine sentences, so it gets no scores of recombinations.
        """
        columns, train = items
        langs = list(language_pair(self.langs))
        counts = [len(columns[lang]) for lang in langs]
        if len(set(counts)) > 1:
            raise DataError(f"{' and '.join(map(str, counts))} sentences; both languages need the same number.")
        if (rows := counts[0]) < 2:
            raise DataError(f"{rows} pairs; expected 2 or more, because a style sentence comes from another pair.")
        models = writers(encoders, langs, self.beam, self.rerank)
        latents = {name: Latents(writer, columns) for name, writer in models.items()}
        trained = training_sentences(models, latents, columns, train, seed) if train else {}
        names = list(dict.fromkeys([*models, COPY, *(name for by_name in trained.values() for name in by_name)]))
        corpus: dict[FidelityKey, dict[str, OfWeights]] = {}
        right: dict[FidelityKey, dict[str, np.ndarray]] = {}
        rng = np.random.default_rng(seed)
        other = {lang: (np.arange(rows) + rng.integers(1, rows, rows)) % rows for lang in langs}  # a random other row
        styled = any(LANGUAGE in each.latents for each in models.values())
        for pairing in writings(langs, rows, RANDOM, other if styled else {}):
            source, lang = pairing.source_lang, pairing.lang
            styles = [columns[lang][row] for row in pairing.styles]
            able = [name for name, writer in models.items() if pairing.style_of != RANDOM or LANGUAGE in writer.latents]
            texts = {name: models[name].write(latents[name].of(pairing), lang=lang) for name in able}
            for name, outputs in {**texts, COPY: columns[source], **trained.get((source, lang), {})}.items():
                key = FidelityKey(lang, pairing.meaning_of, pairing.style_of, "", rows)
                of_corpus = writing.corpus_measures(outputs, columns[lang], styles, lang)
                if name in able and LANGUAGE in models[name].latents:
                    own = models[name].embed(outputs, lang=lang, latent=LANGUAGE)
                    given = latents[name].vectors[LANGUAGE, lang][pairing.styles]
                    of_corpus[STYLE_R] = writing.latent_correlation(own, given)
                for measure, score in of_corpus.items():
                    corpus.setdefault(key._replace(measure=measure), {})[name] = score
                of_sentences = writing.right_sentences(outputs, columns[lang], columns[source], styles, (source, lang))
                for measure, hits in of_sentences.items():
                    right.setdefault(key._replace(measure=measure, sentences=len(hits)), {})[name] = hits
        unread = sum(
            any(numbers(text, lang) is None for lang, text in zip(langs, pair, strict=True))
            for pair in zip(*columns.values(), strict=True)
        )
        return writing.of_systems(
            names,
            rows,
            corpus,
            right,
            about=f"{rows:,} pairs, beam {self.beam}{', reranked' * self.rerank}; chrF and BLEU of sacrebleu, "
            "lower-cased; length and mark compared with the style, the rest with the reference; negation, numbers and "
            "names if source and reference agree"
            + (f"; the numbers in {unread:,} pairs are ambiguous and left out" if unread else "")
            + ("" if train else "; no baselines of training sentences without --train"),
            compared=list(models),
            lower_is_better=[each for each in corpus if each.measure == LENGTH_OFF],
        )


TASK = Fidelity


def training_sentences(
    models: Mapping[str, Writer], latents: Mapping[str, Latents], columns: Columns, train: Columns, seed: int
) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Select training sentences as output of baselines: (source language, output language) -> {baseline: output}."""
    rng = np.random.default_rng([seed, 1])
    baselines: dict[tuple[str, str], dict[str, list[str]]] = {}
    for lang in columns:
        if not train.get(lang):
            raise DataError(f"No training sentences in {lang}; the baselines need some in both languages.")
        texts = list(dict.fromkeys(train[lang]))
        drawn = [texts[row] for row in rng.integers(0, len(texts), len(columns[lang]))]
        for source in columns:
            baselines[source, lang] = {RANDOM_TRAINING: drawn}
        for name, writer in models.items():
            vectors = writer.embed(texts, lang=lang, latent=SEMANTIC)
            for source in columns:
                closest = nearest(latents[name].vectors[SEMANTIC, source], vectors, writer.similarity)
                called = NEAREST if len(models) == 1 else f"{name} {NEAREST}"
                baselines[source, lang][called] = [texts[row] for row in closest]
    return baselines
