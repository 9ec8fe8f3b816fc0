"""Text that a finished training generates for held-out translations: kept as text, scored in the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.reproduce.datasets import Dataset
from analysis.reproduce.experiments import CHRF_OTHER, CHRF_OWN, CHRF_STYLE, EXACT_OWN
from bgt_core.capabilities import GenerativeModel
from bgt_core.contracts import LANGUAGE
from bgt_core.embedder import Embedder
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap
from bgt_core.evaluation.writing import OWN, RANDOM, REFERENCE, Latents, OfWeights, chrf, corpus_score, same, writings
from bgt_core.files import write_text
from bgt_core.generation.options import Beam
from bgt_core.generation.writer import Writer

PAIRS, BEAM = 300, 4
STYLES = {CHRF_OWN: OWN, CHRF_OTHER: REFERENCE, CHRF_STYLE: RANDOM}

Records = Sequence[Mapping[str, Any]]  # one per generated text: lang, source_lang, style, written, references


def write_anew(embedder: Embedder, dataset: Dataset) -> Records:
    """300 of the dataset's translations, evenly spaced; empty without any, and for a model that lacks a language or has
    no decoder that writes from its latents."""
    pairs = [pair for columns in dataset.translations.values() for pair in zip(*columns, strict=True)]
    if (
        len(pairs) < 2
        or not isinstance(embedder.model, GenerativeModel)
        or not set(dataset.langs) <= set(embedder.langs)
    ):
        return []
    count = min(PAIRS, len(pairs))
    chosen = [pairs[row * len(pairs) // count] for row in range(count)]
    columns = dict(zip(dataset.langs, map(list, zip(*chosen, strict=True)), strict=True))
    writer = Writer(embedder, Beam(BEAM))
    latents = Latents(writer, columns)
    return [
        {
            "lang": writing.lang,
            "source_lang": writing.source_lang,
            "style": writing.style_of,
            "written": writer.write(latents.of(writing), lang=writing.lang),
            "references": columns[writing.lang],
        }
        for writing in writings(dataset.langs, count, LANGUAGE in embedder.latents, seed=0)
        if writing.style_of != RANDOM or writing.lang != writing.source_lang
    ]


def write_records(path: Path, records: Records) -> None:
    """As JSON, atomically."""
    write_text(path, json.dumps(records, ensure_ascii=False))


def read_records(path: Path) -> Records:
    """Empty where a training was finished before these were kept."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def percent(right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of drawn items that are right, (N,) bool, (B, N) -> (B,)."""
    return weights @ (100.0 * right) / len(right)


def fidelity_draws(records: Records, resamples: int, seed: int) -> dict[str, tuple[float, np.ndarray]]:
    """Each measure, lower-cased, the mean of both languages; and in each resample of the pairs, (B,)."""
    if not records:
        return {}
    count = len(records[0]["references"])
    by_measure: dict[str, list[OfWeights]] = {}
    for record in records:
        texts = record["written"], record["references"]
        (name,) = (name for name, style in STYLES.items() if style == record["style"])
        by_measure.setdefault(name, []).append(corpus_score(chrf(lowercase=True), *texts))
        if name == CHRF_OWN:
            exact = [same(*pair, lowercase=True) for pair in zip(*texts, strict=True)]
            by_measure.setdefault(EXACT_OWN, []).append(partial(percent, np.array(exact)))
    values, draws = bootstrap(
        lambda weights: {name: np.mean([of(weights[0]) for of in each], axis=0) for name, each in by_measure.items()},
        [ItemSample(count, (count,))],  # the same for all trainings
        resamples=resamples,
        seed=seed,
    )
    return {name: (float(value), draws[name]) for name, value in values.items()}
