"""Turn a corpus into batches: choose the pairs of step s, and cut them to fit a device.

An optimiser step is an *update*: a uniformly random set of pairs, or one drawn by temperature and weights. It depends
on (seed, step) alone, so training can start anywhere without a saved position, and it is the same on every device. It
is then sorted by length and cut into micro-batches, for memory; gradients add up over them.

With a temperature T, the corpora of a mixture share an update in proportion to n^(1/T) (Arivazhagan et al. 2019,
"Massively multilingual NMT in the wild"), where the size n of a corpus is its tokens, weighted by kind; the kinds of a
corpus share its part in proportion to their tokens times their weights. With T = 1 each corpus gets its share of the
tokens; the higher T, the more equal the shares are.
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
from bgt_core.data.corpus import Corpus, Mixture, Stratum
from bgt_core.errors import DataError, UsageError

ROUNDS = 6  # rounds of the Feistel network; 4 suffice for a random-looking permutation


def rows_per_epoch(strata: Sequence[Stratum], temperature: float, weights: Mapping[str, float]) -> list[int]:
    """Rows of each stratum in an epoch, at least one, so that an epoch has as many tokens as all strata together.

    `weights` are those of kinds; the default is 1.
    """
    total = sum(stratum.tokens for stratum in strata)
    counted = [stratum.tokens / total * weights.get(stratum.kind, 1.0) for stratum in strata]
    of_corpus = dict.fromkeys((stratum.columns for stratum in strata), 0.0)
    for stratum, tokens in zip(strata, counted, strict=True):
        of_corpus[stratum.columns] += tokens
    tempered = [
        tokens * of_corpus[stratum.columns] ** (1 / temperature - 1)
        for stratum, tokens in zip(strata, counted, strict=True)
    ]
    return [
        max(1, round(total * tokens / sum(tempered) * stratum.rows / stratum.tokens))
        for stratum, tokens in zip(strata, tempered, strict=True)
    ]


def draw(strata: Sequence[Stratum], counts: Sequence[int], step: int, updates: int, seed: int) -> np.ndarray:
    """The rows of update `step`, int64, if `updates` make an epoch of `counts` rows of each stratum.

    Each stratum is drawn in the order of a permutation of its rows, and then of the next permutation. So at any step,
    each of its rows was drawn as often as any other, or once more.
    """
    drawn = []
    for number, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
        first, last = (count * edge // updates for edge in (step, step + 1))
        passes, places = np.divmod(np.arange(first, last), stratum.rows)
        for turn in np.unique(passes).tolist():
            drawn.append(stratum.first + permute(places[passes == turn], stratum.rows, seed, turn, number))
    return np.concatenate(drawn)


def permute(positions: np.ndarray, size: int, seed: int, epoch: int, stream: int = 0) -> np.ndarray:
    """The elements at `positions` of the permutation of range(size) that (seed, epoch, stream) names; int64, same
    shape.

    A Feistel network permutes the numbers with an even count of bits without a table; results past `size` go through it
    again until they are inside (cycle walking), which keeps it a permutation.
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence([seed, epoch, stream]).generate_state(ROUNDS, np.uint64)

    def mixed(numbers: np.ndarray) -> np.ndarray:  # every bit into all 64: splitmix64 (Steele et al., 2014)
        numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return numbers ^ numbers >> np.uint64(31)

    def network(numbers: np.ndarray) -> np.ndarray:
        left, right = numbers >> half, numbers & mask
        for key in keys:
            left, right = right, left ^ (mixed(right ^ key) & mask)
        return left << half | right

    numbers = network(positions.astype(np.uint64))
    while (outside := numbers >= size).any():
        numbers[outside] = network(numbers[outside])
    return numbers.astype(np.int64)


# Shuffle words, so that a recurrent encoder relies less on their order (Wieting and Gimpel 2017).


def shuffle_words(sentences: Sequence[np.ndarray], share: float, *draw: int) -> Sequence[np.ndarray]:
    """Permute the tokens of about `share` of the sentences, with EOS still last; `draw` determines which and how.

    The permutation is new for every update. The released code of 2019 drew it once, so that a sentence shuffled in the
    first epoch stayed shuffled in all.
    """
    if not share:
        return sentences
    rng = np.random.default_rng(draw)
    chosen = rng.random(len(sentences)) < share
    return [
        np.append(rng.permutation(ids[:-1]), ids[-1]) if shuffle else ids
        for ids, shuffle in zip(sentences, chosen, strict=True)
    ]


AHEAD = 2  # updates made before they are needed
WINDOW = 8192  # validation pairs sorted together


@dataclass(frozen=True, eq=False)
class StepBatch:
    """One worker's share of an optimiser step."""

    pairs: int  # rows of the whole update, over all workers
    batches: Mapping[int, Batch]  # its micro-batches by their number in the update
    closes_mega_batch: bool = True  # only after such an update can a run continue from the weights alone

    def pin(self) -> StepBatch:
        """The same in pinned memory, which a GPU copies from while it computes."""
        return replace(self, batches={number: batch.pin() for number, batch in self.batches.items()})


@dataclass(frozen=True)
class Batching:
    """How a corpus becomes updates and micro-batches.

    The anchor, which provides the semantic latent, alternates over micro-batches and steps: micro-batch i of step s
    takes column (seed + s + i) modulo their number. The paper alternates "within a batch" (sec. 3); its released code
    alternates per micro-batch, by a counter that a restart resets. The column that each is predicted from changes in
    the same way.
    """

    # approximate tokens per update, counted on the longest side of each row, EOS included (paper: 25,000)
    batch_tokens: int
    micro_tokens: int  # padded tokens of the longest side that fit the device's memory; does not change updates
    seed: int
    scramble: float = 0.0  # share of the training sentences whose tokens are permuted
    micro_batches: int = 1  # minimum number of micro-batches per update, of equal size: workers share them
    temperature: float = 1.0  # of sampling: above 1, small corpora get more than their share of each update
    weights: Mapping[str, float] = field(default_factory=dict)  # weight of each kind of text in sampling

    def __post_init__(self) -> None:
        if min(self.batch_tokens, self.micro_tokens, self.micro_batches) < 1 or self.seed < 0:
            raise UsageError(f"{self}: tokens and micro_batches must be at least 1, and the seed not negative")
        if min(self.temperature, *self.weights.values(), 1) <= 0:
            raise UsageError(f"{self}: the temperature and all weights must be above 0")

    def updates(self, corpus: Corpus | Mixture) -> int:
        """Optimiser steps per epoch. In an epoch every row comes once; with a temperature or weights, as many tokens
        are drawn as all rows have."""
        if not len(corpus):
            raise DataError(f"the {corpus.split} split of {corpus.folder} holds no pairs")
        counts = self._sampled(corpus)
        largest = max(counts) if counts else len(corpus)  # this corpus has a row in every update
        return min(largest, -(-corpus.tokens // self.batch_tokens))

    def update(self, corpus: Corpus | Mixture, step: int, worker: int = 0, workers: int = 1) -> StepBatch:
        """Make the micro-batches of rank `worker` of `workers` for optimiser step `step` (from 0), the longest
        sentences first. Each micro-batch is from one corpus."""
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
        """Draw the rows of optimiser step `step`, int64: by temperature and weights, or from a permutation of all."""
        updates = self.updates(corpus)
        if counts := self._sampled(corpus):
            return draw(corpus.strata, counts, step, updates, self.seed)
        epoch, update = divmod(step, updates)
        first, last = (len(corpus) * edge // updates for edge in (update, update + 1))
        return permute(np.arange(first, last), len(corpus), self.seed, epoch)

    def _sampled(self, corpus: Corpus | Mixture) -> list[int]:
        """Rows of each stratum in an epoch; empty without temperature and weights."""
        if self.temperature == 1 and not self.weights:
            return []
        return rows_per_epoch(corpus.strata, self.temperature, self.weights)


def prefetch(make: Callable[[int], StepBatch], steps: range) -> Iterator[StepBatch]:
    """Yield make(step) for each step; a thread makes them while earlier steps are computed."""
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
    """The rows of each micro-batch, with their corpus."""
    for part, rows in corpus.parts(indices):
        lengths = part.lengths(rows)
        for portion in split_evenly(lengths, micro_batches):
            for chosen in split_to_fit(lengths[portion], micro_tokens):
                yield part, rows[portion[chosen]]


def split_to_fit(lengths: np.ndarray, micro_tokens: int) -> Iterator[np.ndarray]:
    """Group pairs of similar length, at most `micro_tokens` padded tokens on the longest side; return their rows.

    lengths (B, sides). A group that does not fit is halved into parts of equal tokens, which workers share evenly. A
    pair that is longer than the limit is a group of its own. The longest come first: if memory is too small, the first
    batch shows it.
    """
    if len(lengths) > 1 and len(lengths) * lengths.max() > micro_tokens:
        for half in split_evenly(lengths, 2):
            for rows in split_to_fit(lengths[half], micro_tokens):
                yield half[rows]
    elif len(lengths):
        yield longest_first(lengths)


def deal(sizes: Sequence[int], workers: int) -> list[int]:
    """Assign micro-batches to workers: the largest first, each to the worker with the least so far."""
    loads, shares = [0] * workers, [0] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        shares[number] = loads.index(min(loads))
        loads[shares[number]] += sizes[number]
    return shares


def split_evenly(lengths: np.ndarray, portions: int) -> list[np.ndarray]:
    """Group pairs of similar length into portions of nearly equal tokens: return the rows of each, in order, with the
    longest sentences first. lengths (B, sides)."""
    order, tokens = longest_first(lengths), lengths.sum(axis=1)
    middles = np.cumsum(tokens[order]) - tokens[order] / 2
    edges = np.searchsorted(middles, tokens.sum() * np.arange(1, portions) / portions)
    return [np.sort(rows) for rows in np.split(order, edges)]


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Rows (B,) by their longest side, then by all: lengths (B, sides)."""
    return np.lexsort((lengths.sum(axis=1), lengths.max(axis=1)))[::-1]


def make_batch(corpus: Corpus, rows: np.ndarray, turn: int, scramble: float = 0.0, draw: tuple[int, ...] = ()) -> Batch:
    """Make a batch of these rows. `turn` determines the anchor and the column that each is predicted from; `scramble`
    is the share of sentences with shuffled words, chosen by the numbers `draw`. A column whose name begins with
    "altered" is not a side: it holds altered sentences of the column with its language."""
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
