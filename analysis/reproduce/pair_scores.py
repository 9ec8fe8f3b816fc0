"""Scores of labelled pairs: of a finished training every pair's score by each way to compare, so that pairs can be
drawn again.

The area under the ROC curve is no share of items; what is kept is what it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bgt_core.capabilities import DuplicateModel
from bgt_core.embedder import Embedder
from bgt_core.encoders.distances import PROBABILITY, WMD, DuplicateEncoder, compared_by
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.tasks.pairs import ACCURACY, AUC, SAMPLE_KEY, LabelledPairs, TfIdfClassifier, measured
from bgt_core.files import atomic_file, reading_parquet
from bgt_core.posterior.distances import DISTANCES

LABEL, WORDS = "label", "tf-idf"  # columns; the second is the probability by tf-idf and logistic regression
WORDS_ACCURACY, WORDS_AUC = f"{ACCURACY}, tf-idf", f"{AUC}, tf-idf"
AUC_OF = {name: f"{AUC}, {name}" for name in (*DISTANCES, WMD, PROBABILITY)}
OVER_WORDS, OVER_MOVERS = f"{ACCURACY} above tf-idf", f"{AUC}, w2 above wmd"
LEADS = {OVER_WORDS: (ACCURACY, WORDS_ACCURACY), OVER_MOVERS: (AUC_OF["w2"], AUC_OF[WMD])}
MEASURES = (ACCURACY, WORDS_ACCURACY, *AUC_OF.values(), WORDS_AUC, *LEADS)

Draws = tuple[float, np.ndarray]  # a score, and in each of B resamples, (B,)


def score_pairs(embedder: Embedder, train: LabelledPairs, test: LabelledPairs) -> dict[str, np.ndarray]:
    """The label of each of N test pairs, and its score by every distance, (N,) each.

    A second stage has its probability too, and beside it that of tf-idf and logistic regression on the same labels.
    """
    names = [*DISTANCES, WMD]
    second_stage = isinstance(embedder.model, DuplicateModel)
    encoders = {name: compared_by(embedder, name) for name in names}
    if second_stage:
        encoders[PROBABILITY] = DuplicateEncoder(embedder)
    (lang,) = embedder.langs
    scores = {
        name: System(name, encoder, encoder.latents[0]).similarities(test.left, test.right, lang, lang)
        for name, encoder in encoders.items()
    }
    if second_stage:
        scores[WORDS] = TfIdfClassifier(train)(test)
    return {LABEL: test.labels, **scores}


def write_pair_scores(path: Path, scores: Mapping[str, np.ndarray]) -> None:
    """Write a Parquet file, atomically: a column of labels and one per score; no file without scores."""
    if scores:
        with atomic_file(path) as partial:
            parquet.write_table(pa.table({name: np.asarray(column) for name, column in scores.items()}), partial)


def read_pair_scores(path: Path) -> dict[str, np.ndarray]:
    """Empty where a training's data have no labelled pairs."""
    if not path.exists():
        return {}
    with reading_parquet(path), parquet.ParquetFile(path) as file:
        table = file.read()
    return {name: table[name].to_numpy() for name in table.column_names}


def pair_draws(scores: Mapping[str, np.ndarray], resamples: int, seed: int) -> dict[str, Draws]:
    """Accuracy, areas under the ROC curve and leads x 100, and each in B resamples of the pairs: the same pairs for
    all trainings. A probability from 0.5 on is taken for a duplicate."""
    if not scores:
        return {}
    labels = scores[LABEL].astype(bool)
    columns = {name: column for name, column in scores.items() if name != LABEL}
    thresholds = [DuplicateEncoder.threshold if name in (PROBABILITY, WORDS) else None for name in columns]
    values, drawn = bootstrap(
        lambda weights: measured(weights[0], np.stack(list(columns.values())), thresholds, labels),
        [ItemSample(len(labels), SAMPLE_KEY)],
        resamples=resamples,
        seed=seed,
    )
    draws: dict[str, Draws] = {}
    for row, (name, threshold) in enumerate(zip(columns, thresholds, strict=True)):
        if threshold is not None:
            draws[WORDS_ACCURACY if name == WORDS else ACCURACY] = float(values[ACCURACY][row]), drawn[ACCURACY][:, row]
        draws[WORDS_AUC if name == WORDS else AUC_OF[name]] = float(values[AUC][row]), drawn[AUC][:, row]
    for lead, (first, second) in LEADS.items():
        if first in draws and second in draws:
            draws[lead] = draws[first][0] - draws[second][0], draws[first][1] - draws[second][1]
    return draws
