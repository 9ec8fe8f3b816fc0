"""A corpus to batches: which pairs make up step s, and how they are cut to fit a device.

An optimiser step is an *update*: a uniformly random set of pairs. It follows from (seed, step) alone, so training
starts anywhere without a saved position, and it is the same on every device. Only then is it sorted by length and cut
into micro-batches, for memory; gradients add up over them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from bgt_core.contracts import Batch, Tokens
from bgt_core.data.columns import altered_columns
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.data.sampling import draw, permute, rows_per_epoch
from bgt_core.data.scramble import shuffle_words
from bgt_core.errors import DataError, UsageError

AHEAD = 2  # updates made before they are needed
WINDOW = 8192  # validation pairs sorted together


@dataclass(frozen=True, eq=False)
class StepBatch:
    """What one worker computes of an optimiser step."""

    pairs: int  # rows of the whole update, all workers together
    batches: Mapping[int, Batch]  # its micro-batches by their number in the update
    closes_mega_batch: bool = True  # a run can continue from the weights that this leads to, and nothing else

    def pin(self) -> StepBatch:
        """The same where a GPU can fetch it while it computes."""
        return replace(self, batches={number: batch.pin() for number, batch in self.batches.items()})


@dataclass(frozen=True)
class Batching:
    """How a corpus becomes updates and micro-batches.

    The anchor, whose sentence gives the semantic latent, alternates over micro-batches and steps: micro-batch i of
    step s takes column (seed + s + i) modulo their number. The paper alternates "within a batch" (sec. 3); its
    released code does so per micro-batch, with a counter that a restart forgets. Which column each is written from
    turns in the same way.
    """

    batch_tokens: int  # of an update, about; counted on the longest side of each row, EOS included (paper: 25,000)
    micro_tokens: int  # padded tokens of the longest side that fit the device's memory; changes no update
    seed: int
    scramble: float = 0.0  # share of the sentences trained on whose pieces are permuted
    micro_batches: int = 1  # at least so many in an update, of equally many tokens: workers share them
    temperature: float = 1.0  # of sampling: above 1 a small corpus has more than its share of each update
    weights: Mapping[str, float] = field(default_factory=dict)  # of kinds of text: how often a token of it counts

    def __post_init__(self) -> None:
        if min(self.batch_tokens, self.micro_tokens, self.micro_batches) < 1 or self.seed < 0:
            raise UsageError(f"{self}: tokens and micro_batches must be at least 1, and the seed not negative")
        if min(self.temperature, *self.weights.values(), 1) <= 0:
            raise UsageError(f"{self}: the temperature and all weights must be above 0")

    def updates(self, corpus: Corpus | Mixture) -> int:
        """Optimiser steps per epoch: in each epoch every row comes once, or with a temperature or weights, as many
        tokens as all rows have."""
        if not len(corpus):
            raise DataError(f"the {corpus.split} split of {corpus.folder} holds no pairs to draw from")
        largest = max(self._counts(corpus)) if self._samples else len(corpus)  # it has a row in every update
        return min(largest, -(-corpus.tokens // self.batch_tokens))

    def update(self, corpus: Corpus | Mixture, step: int, worker: int = 0, workers: int = 1) -> StepBatch:
        """Optimiser step `step` (from 0), the longest sentences first; what rank `worker` of `workers` gets of its
        micro-batches. Each micro-batch is of one corpus."""
        indices = self.rows(corpus, step)
        micro_batches = list(micro_rows(corpus, indices, self.micro_tokens, self.micro_batches))
        shares = deal([int(part.lengths(rows).sum()) for part, rows in micro_batches], workers)
        batches = {
            number: make_batch(part, rows, self.seed + step + number, self.scramble, (self.seed, step, number))
            for number, (part, rows) in enumerate(micro_batches)
            if shares[number] == worker
        }
        return StepBatch(len(indices), batches)

    def rows(self, corpus: Corpus | Mixture, step: int) -> np.ndarray:
        """The rows of optimiser step `step`, int64: by temperature and weights, or else of one permutation of all."""
        updates = self.updates(corpus)
        if self._samples:
            return draw(corpus.strata, self._counts(corpus), step, updates, self.seed)
        epoch, update = divmod(step, updates)
        first, last = (len(corpus) * edge // updates for edge in (update, update + 1))
        return permute(np.arange(first, last), len(corpus), self.seed, epoch)

    @property
    def _samples(self) -> bool:
        return self.temperature != 1 or bool(self.weights)

    def _counts(self, corpus: Corpus | Mixture) -> list[int]:
        return rows_per_epoch(corpus.strata, self.temperature, self.weights)


def prefetch(make: Callable[[int], StepBatch], steps: range) -> Iterator[StepBatch]:
    """make(step) for each step, made by a thread while the steps before are computed."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(make, step) for step in steps[:AHEAD])
        for step in steps:
            if step + AHEAD in steps:
                coming.append(thread.submit(make, step + AHEAD))
            yield coming.popleft().result()


def validation(corpus: Corpus | Mixture, micro_tokens: int, most: int | None = None) -> Iterator[Batch]:
    """Every row once, or `most` of them evenly spaced, in the same batches with the same alternating anchors."""
    count = min(len(corpus), most or len(corpus))
    chosen = np.arange(count) * len(corpus) // max(1, count)
    turn = 0
    for start in range(0, count, WINDOW):
        for part, rows in micro_rows(corpus, chosen[start : start + WINDOW], micro_tokens):
            yield make_batch(part, rows, turn)
            turn += 1


def micro_rows(
    corpus: Corpus | Mixture, indices: np.ndarray, micro_tokens: int, micro_batches: int = 1
) -> Iterator[tuple[Corpus, np.ndarray]]:
    """Rows of each micro-batch, with the corpus they are of."""
    for part, rows in corpus.parts(indices):
        lengths = part.lengths(rows)
        for portion in split_evenly(lengths, micro_batches):
            for chosen in split_to_fit(lengths[portion], micro_tokens):
                yield part, rows[portion[chosen]]


def split_to_fit(lengths: np.ndarray, micro_tokens: int) -> Iterator[np.ndarray]:
    """Pairs of similar length together, at most `micro_tokens` padded tokens on the longest side: their rows.

    lengths (B, sides). What does not fit is halved into equally many tokens, which workers share evenly. A longer pair
    stands alone. The longest come first: where memory is too small, the first batch shows it.
    """
    if len(lengths) > 1 and len(lengths) * lengths.max() > micro_tokens:
        for half in split_evenly(lengths, 2):
            for rows in split_to_fit(lengths[half], micro_tokens):
                yield half[rows]
    elif len(lengths):
        yield longest_first(lengths)


def deal(sizes: Sequence[int], workers: int) -> list[int]:
    """Which worker gets each micro-batch: the largest first, to the one that has least."""
    loads, shares = [0] * workers, [0] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        shares[number] = loads.index(min(loads))
        loads[shares[number]] += sizes[number]
    return shares


def split_evenly(lengths: np.ndarray, portions: int) -> list[np.ndarray]:
    """Pairs of similar length together, in portions of equally many tokens but for a sentence: the rows of each, in
    their order; the longest sentences come first. lengths (B, sides)."""
    order, tokens = longest_first(lengths), lengths.sum(axis=1)
    middles = np.cumsum(tokens[order]) - tokens[order] / 2
    edges = np.searchsorted(middles, tokens.sum() * np.arange(1, portions) / portions)
    return [np.sort(rows) for rows in np.split(order, edges)]


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Rows (B,) by their longest side, then by all: lengths (B, sides)."""
    return np.lexsort((lengths.sum(axis=1), lengths.max(axis=1)))[::-1]


def make_batch(corpus: Corpus, rows: np.ndarray, turn: int, scramble: float = 0.0, draw: tuple[int, ...] = ()) -> Batch:
    """A batch of these rows. `turn` says which column is the anchor and which each is written from; `scramble` is the
    share of sentences whose words are shuffled, drawn from the numbers `draw`. A column whose name begins with
    "altered" is no side: it holds altered sentences of the column of its language."""
    alters = altered_columns(corpus.columns)
    columns = [column for column in corpus.columns if column not in alters]
    sides = {
        column: Tokens.pad(shuffle_words(corpus.take(column, rows), scramble, *draw, side), corpus.columns[column])
        for side, column in enumerate(columns)
    }
    altered = {column: Tokens.pad(corpus.take(name, rows), corpus.columns[column]) for name, column in alters.items()}
    labels, targets = corpus.labels(rows), corpus.targets(rows)
    return Batch(
        sides,
        anchor=columns[turn % len(columns)],
        shift=1 + turn % (len(columns) - 1) if len(columns) > 1 else 0,
        altered=altered,
        labels=None if labels is None else torch.from_numpy(labels),
        targets=None if targets is None else torch.from_numpy(targets),
    )
