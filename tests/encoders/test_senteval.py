"""SentEval's calling convention, followed by a small driver: prepare sees all, batcher gets lists of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr

import bgt_core
from bgt_core.encoders import open_encoder
from bgt_core.encoders.senteval import senteval_functions
from tests.close import assert_close


class Parameters(dict):
    """As SentEval's: keys are attributes, and None where there is none."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


def drive(prepare: Any, batcher: Any, sentences: list[list[Any]], batch_size: int) -> np.ndarray:
    """What its tasks do: prepare once, then batches in order of length; rows in the order given."""
    params = Parameters(batch_size=batch_size, seed=1111, current_task="STS14")
    assert prepare(params, sentences) is None
    order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
    parts = [
        batcher(params, [sentences[row] for row in order[start : start + params.batch_size]])
        for start in range(0, len(order), params.batch_size)
    ]
    vectors = np.vstack(parts)
    back = np.empty_like(vectors)
    back[order] = vectors
    return back


@pytest.mark.parametrize(("latent", "lang"), [("semantic", "en"), ("language", "fr")])
def test_vectors_are_those_of_the_sentences(saved: Path, latent: str, lang: str) -> None:
    ours = bgt_core.load(saved, precision="fp32")
    sentences = [["The", "dog", "sleeps", "."], [], ["Where", "is", "it", "?"], [b"A", b"caf\xc3\xa9", b"."], ["No"]]
    vectors = drive(*senteval_functions(ours, lang=lang, latent=latent), sentences, batch_size=2)
    texts = ["The dog sleeps .", ".", "Where is it ?", "A café .", "No"]
    assert_close(vectors, ours.embed(texts, lang=lang, latent=latent))


def test_its_similarity_tasks_get_numbers_for_any_encoder() -> None:
    pairs = [("a dog sleeps", "the dog sleeps", 4.0), ("a dog", "the cat ran", 0.5), ("", "no", 0.0), ("no", "no", 5.0)]
    functions = senteval_functions(open_encoder("baseline:words"))
    left, right = (drive(*functions, [pair[side].split() for pair in pairs], 128) for side in (0, 1))
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = np.nan_to_num((left * right).sum(1) / np.where(norms, norms, np.nan))
    assert pearsonr(cosines, [pair[2] for pair in pairs])[0] > 0.8
