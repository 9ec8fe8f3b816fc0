"""A corpus to batches: which pairs make up step s, and how they are cut to fit a device.

An optimiser step is an *update*: a uniformly random set of pairs. It follows from (seed, step) alone, so training
starts anywhere without a saved position, and it is the same on every device. Only then is it sorted by length and cut
into micro-batches, for memory; gradients add up over them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from bgt_core.contracts import Batch, Tokens
from bgt_core.data.scramble import shuffle_words
from bgt_core.data.store import Corpus
from bgt_core.errors import DataError, UsageError

AHEAD = 2  # updates made before they are needed
ROUNDS = 6  # of the Feistel network; 4 make a permutation look random, the rest is cheap
WINDOW = 8192  # validation pairs sorted together


@dataclass(frozen=True)
class Update:
    """What one worker computes of an optimiser step."""

    pairs: int  # of the whole update, all workers together
    batches: Mapping[int, Batch]  # its micro-batches by their number in the update
    ends: bool = True  # its mega-batch, so that a run can go on from the weights it leads to and nothing else

    def pin(self) -> Update:
        """The same where a GPU can fetch it while it computes."""
        return replace(self, batches={number: batch.pin() for number, batch in self.batches.items()})


@dataclass(frozen=True)
class Batching:
    """How a corpus becomes updates and micro-batches.

    The anchor, whose sentence gives the semantic latent, alternates over micro-batches and steps: micro-batch i of
    step s takes language (seed + s + i) modulo their number. The paper alternates "within a batch" (sec. 3); its
    released code does so per micro-batch, with a counter that a restart forgets.
    """

    batch_tokens: int  # about so many an update, counted on the longer side of each pair, EOS included (paper: 25,000)
    micro_tokens: int  # padded tokens of the longer side that fit the device's memory; changes no update
    seed: int
    scramble: float = 0.0  # share of the sentences trained on whose pieces are permuted

    def __post_init__(self) -> None:
        if self.batch_tokens < 1 or self.micro_tokens < 1 or self.seed < 0:
            raise UsageError(f"{self}: tokens must be at least 1, and the seed not negative")

    def updates(self, corpus: Corpus) -> int:
        """Optimiser steps an epoch; in each epoch every pair comes once."""
        if not len(corpus):
            raise DataError(f"the {corpus.split} split of {corpus.folder} holds no pairs to draw from")
        return min(len(corpus), -(-corpus.tokens // self.batch_tokens))

    def update(self, corpus: Corpus, step: int, worker: int = 0, workers: int = 1) -> Update:
        """Optimiser step `step` (from 0), the longest sentences first; of `workers`, `worker` gets every so manieth."""
        updates = self.updates(corpus)
        epoch, update = divmod(step, updates)
        first, last = (len(corpus) * edge // updates for edge in (update, update + 1))
        indices = permute(np.arange(first, last), len(corpus), self.seed, epoch)
        parts = list(enumerate(indices[part] for part in cut(corpus.lengths(indices), self.micro_tokens)))
        batches = {
            number: _batch(corpus, part, self.seed + step + number, self.scramble, self.seed, step, number)
            for number, part in parts[worker::workers]
        }
        return Update(last - first, batches)


def ahead(make: Callable[[int], Update], steps: range) -> Iterator[Update]:
    """make(step) for each step, made by a thread while the steps before are computed."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(make, step) for step in steps[:AHEAD])
        for step in steps:
            if step + AHEAD in steps:
                coming.append(thread.submit(make, step + AHEAD))
            yield coming.popleft().result()


def validation(corpus: Corpus, micro_tokens: int, most: int | None = None) -> Iterator[Batch]:
    """Every pair once, or `most` of them at even distances, in the same batches with the same alternating anchors."""
    count = min(len(corpus), most or len(corpus))
    chosen = np.arange(count) * len(corpus) // max(1, count)
    turn = 0
    for start in range(0, count, WINDOW):
        indices = chosen[start : start + WINDOW]
        for part in cut(corpus.lengths(indices), micro_tokens):
            yield _batch(corpus, indices[part], turn)
            turn += 1


def permute(positions: np.ndarray, size: int, seed: int, epoch: int) -> np.ndarray:
    """What stands at `positions` of the permutation of range(size) that (seed, epoch) names; int64, same shape.

    A Feistel network permutes the numbers of an even count of bits without a table; numbers past `size` go through it
    again until they fall inside (cycle walking), which keeps it a permutation.
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence([seed, epoch]).generate_state(ROUNDS, np.uint64)

    def network(numbers: np.ndarray) -> np.ndarray:
        left, right = numbers >> half, numbers & mask
        for key in keys:
            left, right = right, left ^ (_mix(right ^ key) & mask)
        return left << half | right

    found = network(positions.astype(np.uint64))
    while (outside := found >= size).any():
        found[outside] = network(found[outside])
    return found.astype(np.int64)


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Spreads every bit over all 64 (the finaliser of splitmix64; Steele et al., 2014)."""
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


def cut(lengths: np.ndarray, micro_tokens: int) -> Iterator[np.ndarray]:
    """Pairs of similar length together, at most `micro_tokens` padded tokens on the longest side: their rows.

    lengths (B, sides). A longer pair stands alone. The longest come first: where memory is too small, the first batch
    shows it.
    """
    longer = lengths.max(axis=1)
    order = np.lexsort((lengths.sum(axis=1), longer))[::-1]
    start = 0
    while start < len(order):
        count = max(1, micro_tokens // int(longer[order[start]]))
        yield order[start : start + count]
        start += count


def _batch(corpus: Corpus, indices: np.ndarray, turn: int, scramble: float = 0.0, *draw: int) -> Batch:
    sides = {
        lang: Tokens.pad(shuffle_words(corpus.take(lang, indices), scramble, *draw, side), lang)
        for side, lang in enumerate(corpus.langs)
    }
    return Batch(sides, anchor=corpus.langs[turn % len(corpus.langs)])
