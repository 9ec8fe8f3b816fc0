"""One latent by SentEval's protocol: one seed, accuracy alone; see `probes.classifiers.senteval`."""

from __future__ import annotations

import numpy as np

from bgt_core.contracts import SentenceEncoder
from probes.classifiers.senteval import SentEval, split_classify
from probes.measures.config import ProbeConfig, hidden_units
from probes.measures.measure import embed_items
from probes.measures.significance import wilson
from probes.measures.study import Study
from probes.result import Predictions, ProbeScore

LINEAR = "word-content"  # SentEval removes the hidden layer for this task, whatever `config.probe` is


def senteval_score(
    encoder: SentenceEncoder, study: Study, latent: str, config: ProbeConfig
) -> tuple[ProbeScore, Predictions]:
    """Score one latent, and return its predictions for the test items.

    As in SentEval, each split is first sorted by its number of tokens, here those between spaces, and by label, ties in
    the order of the items: this determines which sentences share a minibatch. SentEval reports accuracy as percent with
    two decimals; this is the fraction, with Wilson's interval, which SentEval does not have.
    """
    hidden = 0 if study.task == LINEAR else hidden_units(config.probe)
    vectors = embed_items(encoder, study, latent)
    tokens = np.array([len(sentence.split()) for sentence in study.items.sentences])
    train, dev, test = (rows[np.lexsort((study.labels[rows], tokens[rows]))] for rows in study.cuts[0])
    by_split = [(vectors[rows], study.labels[rows]) for rows in (train, dev, test)]
    result = split_classify(by_split[0], by_split[1], by_split[2], SentEval(hidden))
    accuracy = float((result.predicted == study.labels[test]).mean())
    low, high = wilson(accuracy * len(test), len(test), config.level)
    score = ProbeScore(
        task=study.task,
        lang=study.lang,
        latent=latent,
        n_train=len(train),
        n_test=len(test),
        classes=len(study.names),
        accuracy=accuracy,
        ci_low=low,
        ci_high=high,
        sd=0.0,
        probe=f"senteval, {hidden} hidden units, L2 {result.penalty:g}",
    )
    predicted = np.full((1, 1, len(study.labels)), -1, np.int32)
    predicted[0, 0, test] = result.predicted
    no_bits = np.full(predicted.shape, np.nan, np.float32)
    return score, Predictions(predicted, no_bits, no_bits[0, 0])
