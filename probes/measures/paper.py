"""`--paper`: one task by SentEval's protocol, one seed, accuracy alone; see `probes.classifiers.senteval`."""

from __future__ import annotations

import numpy as np

from bgt_core.contracts import SentenceEncoder
from probes.classifiers.senteval import SentEval, split_classify
from probes.measures.measure import embedded
from probes.measures.significance import wilson
from probes.measures.study import ProbeConfig, Study, hidden_units
from probes.result import Predictions, Row

LINEAR = "word-content"  # SentEval takes the hidden layer away for this task, whatever is asked for


def paper_row(encoder: SentenceEncoder, study: Study, latent: str, wish: ProbeConfig) -> tuple[Row, Predictions]:
    """The row of one latent, and what is predicted of its test items.

    As SentEval does, each split is first sorted by its number of tokens, here those between spaces, and by label: the
    order decides which sentences share a minibatch. SentEval reports accuracy as percent with two decimals; the row
    has the fraction, and Wilson's interval beside it, which SentEval has not.
    """
    hidden = 0 if study.task == LINEAR else hidden_units(wish.probe)
    vectors = embedded(encoder, study, latent)
    tokens = np.array([len(sentence.split()) for sentence in study.items.sentences])
    train, dev, test = (rows[np.lexsort((study.labels[rows], tokens[rows]))] for rows in study.cuts[0])
    found = split_classify(*((vectors[rows], study.labels[rows]) for rows in (train, dev, test)), SentEval(hidden))
    accuracy = float((found.predicted == study.labels[test]).mean())
    low, high = wilson(accuracy * len(test), len(test), wish.ci)
    row = Row(
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
        probe=f"senteval, {hidden} hidden units, L2 {found.penalty:g}",
    )
    predicted = np.full((1, 1, len(study.labels)), -1, np.int32)
    predicted[0, 0, test] = found.predicted
    nothing = np.full(predicted.shape, np.nan, np.float32)
    return row, Predictions(predicted, nothing, nothing[0, 0])
