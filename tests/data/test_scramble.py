"""Sentences out of order: which, how, and when they are drawn anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bgt_core.contracts import EOS
from bgt_core.data.batching import Batching, validation
from bgt_core.data.scramble import shuffle_words
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer

SENTENCES = [np.array([*range(10, 10 + length), EOS]) for length in [12] * 2000]


def moved(share: float, *draw: int) -> np.ndarray:
    """Which sentences are no longer in order."""
    shuffled = shuffle_words(SENTENCES, share, *draw)
    for before, after in zip(SENTENCES, shuffled, strict=True):
        assert after[-1] == EOS
        assert sorted(after) == sorted(before)
    return np.array([(a != b).any() for a, b in zip(SENTENCES, shuffled, strict=True)])


def test_a_share_is_permuted_and_the_end_stays() -> None:
    assert abs(moved(0.3, 1).mean() - 0.3) < 0.04  # four standard errors
    assert not moved(0.0, 1).any()
    assert moved(1.0, 1).all()


def test_every_place_is_as_likely() -> None:
    firsts = np.array([ids[0] for ids in shuffle_words(SENTENCES, 1.0, 5)])
    counts = np.bincount(firsts - 10, minlength=12)
    assert ((counts - 2000 / 12) ** 2 / (2000 / 12)).sum() < 37  # chi-square of 11 degrees of freedom, p = 0.0001


def test_it_follows_from_the_draw() -> None:
    assert np.array_equal(moved(0.3, 1, 2), moved(0.3, 1, 2))
    assert not np.array_equal(moved(0.3, 1, 2), moved(0.3, 1, 3))


def test_sentences_are_scrambled_anew_each_time_an_update_reads_them(
    tsv: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    corpus = prepare([tsv], ("en", "fr"), tokenizer, tmp_path / "store", min_tokens=2, valid_pairs=20, seed=1)
    plain, shuffled = (Batching(10_000, 100_000, seed=1, scramble=share) for share in (0.0, 1.0))
    assert plain.updates(corpus) == 1  # an update is an epoch

    def read(plan: Batching, step: int) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The French of an epoch: its tokens in order, and as they came."""
        side = plan.update(corpus, step).batches[0].sides["fr"]
        rows = [tuple(ids[mask].tolist()) for ids, mask in zip(side.ids, side.mask, strict=True)]
        return {tuple(sorted(row)): row for row in rows}

    first, second, again = read(shuffled, 0), read(shuffled, 1), read(shuffled, 0)
    assert first.keys() == second.keys() == read(plain, 0).keys()
    assert first == again != second
    assert first != read(plain, 0) == read(plain, 1)
    held_out = [batch.sides["en"].ids for batch in validation(corpus.open(corpus.folder, "valid"), 100)]
    expected = sorted(ids.tolist() for ids in corpus.open(corpus.folder, "valid").take("en", np.arange(20)))
    assert sorted(row[: int((row > 0).sum())].tolist() for ids in held_out for row in torch.unbind(ids)) == expected
