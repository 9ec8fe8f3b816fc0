"""Turn a tokenised corpus into batches: choose the sentence pairs, or rows, of each optimiser step, and split them into
batches that fit in memory.

The rows of one optimiser step are called an *update*. An update depends only on (seed, step), so training can resume
at any step and on any device, although no position in the data is saved. The rows of an update are sorted by length and
split into micro-batches, whose gradients are summed. Rows are drawn uniformly, or with a temperature and weights.

If there are several corpora, the share of each in an update is proportional to n^(1/T) (Arivazhagan et al. 2019,
"Massively multilingual NMT in the wild"). T is the temperature; a higher T makes the shares more equal. n is the number
of tokens in the corpus, where a token counts with the weight of its kind of text (such as news). Within a corpus, the
share of a kind of text is proportional to the number of tokens of this kind, times the weight of the kind.
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
from bgt_core.data.store import Corpus, Mixture, Stratum
from bgt_core.errors import DataError, UsageError

ROUNDS = 6  # number of rounds of the Feistel network; 4 rounds are enough to make a permutation look random


def rows_per_epoch(strata: Sequence[Stratum], temperature: float, weights: Mapping[str, float]) -> list[int]:
    """Return the number of rows, at least 1, that an epoch draws from each stratum.

    A stratum is all rows of one kind of text in one corpus. In total, an epoch draws about as many tokens as all
    strata have together. `weights` maps kinds of text to weights; a kind without an entry has weight 1.
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
    """Draw the rows of update `step`, int64. An epoch has `updates` updates, and `counts[i]` rows of stratum i.

    The rows of a stratum are drawn in random order. After all of them have been drawn, they are drawn again in a new
    random order. So at any step, the numbers of times that two rows have been drawn differ by at most 1.
    """
    drawn = []
    for number, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
        first, last = (count * edge // updates for edge in (step, step + 1))
        passes, places = np.divmod(np.arange(first, last), stratum.rows)
        for turn in np.unique(passes).tolist():
            drawn.append(stratum.first + permute(places[passes == turn], stratum.rows, seed, turn, number))
    return np.concatenate(drawn)


def permute(positions: np.ndarray, size: int, seed: int, epoch: int, stream: int = 0) -> np.ndarray:
    """Return the elements at `positions` of a random permutation of range(size); int64, in the shape of `positions`.

    (seed, epoch, stream) determines the permutation. A Feistel network permutes all integers of 2b bits, for some b,
    without a table in memory. A result of `size` or more is permuted again until it is below `size` (cycle walking), so
    the results are a permutation of range(size).
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.SeedSequence([seed, epoch, stream]).generate_state(ROUNDS, np.uint64)

    def mixed(numbers: np.ndarray) -> np.ndarray:  # mix the bits as splitmix64 does (Steele et al., 2014)
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


# Shuffle the words of sentences, so that a recurrent encoder relies less on word order (Wieting and Gimpel 2017).


def shuffle_words(sentences: Sequence[np.ndarray], share: float, *seed: int) -> Sequence[np.ndarray]:
    """Permute the tokens of a random `share` of the sentences; EOS stays the last token.

    The caller passes a different `seed` for each update, so a sentence has different permutations in different epochs.
    The code of Wieting and Gimpel drew the permutations only once, so a sentence had the same order in all epochs.
    """
    if not share:
        return sentences
    rng = np.random.default_rng(seed)
    chosen = rng.random(len(sentences)) < share
    return [
        np.append(rng.permutation(ids[:-1]), ids[-1]) if shuffle else ids
        for ids, shuffle in zip(sentences, chosen, strict=True)
    ]


AHEAD = 2  # number of updates that are made in advance
WINDOW = 8192  # number of validation rows that are sorted by length together


@dataclass(frozen=True, eq=False)
class StepBatch:
    """The micro-batches of an optimiser step that one worker processes."""

    rows: int  # number of rows of the update, summed over all workers
    batches: Mapping[int, Batch]  # index of the micro-batch in the update -> micro-batch
    closes_mega_batch: bool = True  # False if the next update shares hard negatives with this one

    def pin(self) -> StepBatch:
        """Copy the batches to pinned memory, from which a GPU can copy while it computes."""
        return replace(self, batches={number: batch.pin() for number, batch in self.batches.items()})


@dataclass(frozen=True)
class Batching:
    """Divides a corpus into updates (the rows of an optimiser step) and micro-batches.

    The anchor column, which provides the semantic latent, alternates: in micro-batch i of step s, the anchor is column
    (seed + s + i) modulo the number of columns. In the BGT paper, the anchor alternates "within a batch" (sec. 3). In
    the code of its authors, the anchor changes after each micro-batch, and starts anew in each process. `Batch.shift`,
    which determines from which column each column is predicted, changes with s and i in the same way.
    """

    # approximate number of tokens per update, EOS included; of a pair, only the longer sentence is counted
    batch_tokens: int  # 25,000 in the BGT paper
    micro_tokens: int  # maximum size of a micro-batch: rows x number of tokens of its longest sentence
    seed: int
    scramble: float = 0.0  # share of the training sentences whose tokens are permuted
    micro_batches: int = 1  # minimum number of micro-batches per update
    temperature: float = 1.0  # above 1, rows of small corpora are drawn more often than rows of large corpora
    weights: Mapping[str, float] = field(default_factory=dict)  # kind of text -> weight in sampling

    def __post_init__(self) -> None:
        if min(self.batch_tokens, self.micro_tokens, self.micro_batches) < 1 or self.seed < 0:
            raise UsageError(f"{self}: tokens and micro_batches must be at least 1, and the seed at least 0")
        if min(self.temperature, *self.weights.values(), 1) <= 0:
            raise UsageError(f"{self}: the temperature and all weights must be above 0")

    def updates(self, corpus: Corpus | Mixture) -> int:
        """Return the number of optimiser steps per epoch.

        An epoch draws every row once. But if weights or a temperature other than 1 are set, it draws about as many
        tokens as the corpus has, and some rows more often than others.
        """
        if not len(corpus):
            raise DataError(f"the {corpus.split} split of {corpus.folder} has no pairs; start a run with more pairs")
        counts = self._sampled(corpus)
        largest = max(counts) if counts else len(corpus)  # with more updates, some would have no row
        return min(largest, -(-corpus.tokens // self.batch_tokens))

    def update(self, corpus: Corpus | Mixture, step: int, worker: int = 0, workers: int = 1) -> StepBatch:
        """Make the micro-batches of one worker for one optimiser step; `worker` and `step` count from 0.

        All rows of a micro-batch are from the same corpus. Within a corpus, micro-batches with longer rows come first.
        """
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
        """Draw the row indices of a step, int64: by temperature and weights if they are set, else uniformly."""
        updates = self.updates(corpus)
        if counts := self._sampled(corpus):
            return draw(corpus.strata, counts, step, updates, self.seed)
        epoch, update = divmod(step, updates)
        first, last = (len(corpus) * edge // updates for edge in (update, update + 1))
        return permute(np.arange(first, last), len(corpus), self.seed, epoch)

    def _sampled(self, corpus: Corpus | Mixture) -> list[int]:
        """Return the number of rows that an epoch draws from each stratum; [] if sampling is uniform."""
        if self.temperature == 1 and not self.weights:
            return []
        return rows_per_epoch(corpus.strata, self.temperature, self.weights)


def prefetch(make: Callable[[int], StepBatch], steps: range) -> Iterator[StepBatch]:
    """Yield make(step) for each step, while a thread computes the next `AHEAD` results."""
    with ThreadPoolExecutor(1) as thread:
        coming = deque(thread.submit(make, step) for step in steps[:AHEAD])
        for step in steps:
            if step + AHEAD in steps:
                coming.append(thread.submit(make, step + AHEAD))
            yield coming.popleft().result()


def validation(corpus: Corpus | Mixture, micro_tokens: int, most: int | None = None) -> Iterator[Batch]:
    """Yield batches of all rows of a held-out corpus, or of `most` evenly spaced rows.

    The anchor column alternates from batch to batch. Calls with equal arguments yield equal batches.
    """
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
    """Split rows into micro-batches, each from a single corpus; yield the corpus and the rows of each micro-batch."""
    for part, rows in corpus.parts(indices):
        lengths = part.lengths(rows)
        for portion in split_evenly(lengths, micro_batches):
            for chosen in split_to_fit(lengths[portion], micro_tokens):
                yield part, rows[portion[chosen]]


def split_to_fit(lengths: np.ndarray, micro_tokens: int) -> Iterator[np.ndarray]:
    """Split rows into groups of similar length. With padding, a group has at most `micro_tokens` tokens per column.

    `lengths` is (B, columns): the number of tokens of each sentence of a row. A group that is too large is divided into
    two with nearly equal numbers of tokens, so that workers have equal loads. A row with more than `micro_tokens`
    tokens is a group by itself. The longest rows come first: if they need too much memory, training fails at once.
    """
    if len(lengths) > 1 and len(lengths) * lengths.max() > micro_tokens:
        for half in split_evenly(lengths, 2):
            for rows in split_to_fit(lengths[half], micro_tokens):
                yield half[rows]
    elif len(lengths):
        yield longest_first(lengths)


def deal(sizes: Sequence[int], workers: int) -> list[int]:
    """Assign micro-batches to workers: the largest first, each to the worker with the smallest load so far."""
    loads, shares = [0] * workers, [0] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        shares[number] = loads.index(min(loads))
        loads[shares[number]] += sizes[number]
    return shares


def split_evenly(lengths: np.ndarray, portions: int) -> list[np.ndarray]:
    """Divide rows by length into groups with nearly equal numbers of tokens; the first group has the longest rows.

    `lengths` is (B, columns), in tokens. Returns the row indices of each group, in ascending order.
    """
    order, tokens = longest_first(lengths), lengths.sum(axis=1)
    middles = np.cumsum(tokens[order]) - tokens[order] / 2
    edges = np.searchsorted(middles, tokens.sum() * np.arange(1, portions) / portions)
    return [np.sort(rows) for rows in np.split(order, edges)]


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Sort rows by the length of their longest sentence, then by their total length, both descending.

    `lengths` is (B, columns): the number of tokens of each sentence. Returns the indices of the rows, (B,).
    """
    return np.lexsort((lengths.sum(axis=1), lengths.max(axis=1)))[::-1]


def make_batch(corpus: Corpus, rows: np.ndarray, turn: int, scramble: float = 0.0, seed: tuple[int, ...] = ()) -> Batch:
    """Make a batch of the given rows.

    `turn` is a counter of batches: the anchor column and `Batch.shift` alternate with it. `scramble` is the share of
    sentences whose tokens are shuffled; `seed` determines these sentences and the order of their tokens. Columns whose
    names begin with "altered" contain altered sentences, and are put into `Batch.altered`.
    """
    alters = altered_columns(corpus.columns)
    columns = [column for column in corpus.columns if column not in alters]
    sides = {
        column: Tokens.pad(shuffle_words(corpus.take(column, rows), scramble, *seed, side), corpus.columns[column])
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
