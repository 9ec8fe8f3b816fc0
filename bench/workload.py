"""Inputs of benchmarks: random pairs of token sequences, batches of them, and sentences of invented words."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from bgt_core.contracts import EOS, Batch, Tokens
from bgt_core.data.text import Tokenizer

UPDATE = 25_000  # tokens in an update; only the longer sentence of each pair counts, as in `bgt`
MULTIPLE = 8  # the released code's batches have a multiple of 8 sentences
Pair = Mapping[str, Sequence[int]]


class SizedTokenizer(Tokenizer):
    """A fake tokenizer with only the attributes that a recipe needs to build a model."""

    def __init__(self, vocab: int) -> None:
        self.vocab_size = vocab

    def probabilities(self) -> np.ndarray:
        """Return the probability of each token, (V,) float32. The values for special tokens do not matter."""
        return np.concatenate([np.ones(4), zipf(self.vocab_size - 4)]).astype(np.float32)


def zipf(count: int) -> np.ndarray:
    """Return `count` probabilities that fall as 1 / rank."""
    shares = 1 / np.arange(1, count + 1)
    return shares / shares.sum()


def sentences(count: int) -> list[str]:
    """Make sentences from invented words of one to three syllables. The frequencies of words follow Zipf's law, and the
    lengths of sentences are lognormal."""
    draw = np.random.default_rng(0)
    onsets = "b c d f g h j k l m n p r s t v w z br cr st tr pl gr ch sh".split()
    parts = product(onsets, "a e i o u ai ou ea".split(), ("", "n", "rt"))
    syllables = ["".join(part) for part in parts]
    words = np.unique(["".join(draw.choice(syllables, draw.integers(1, 4))) for _ in range(20_000)])
    draw.shuffle(words)
    lengths = np.clip(np.exp(draw.normal(math.log(8.5), 0.5, count)).round().astype(int), 2, 40)
    return [" ".join(draw.choice(words, length, p=zipf(len(words)))) for length in lengths]


def pairs_of(vocab: int, update: int = UPDATE, seed: int = 0) -> list[Pair]:
    """Make the pairs of one update in random order. Token frequencies follow Zipf's law. Lengths are lognormal with a
    median of 14 tokens; the second sentence of a pair is a tenth longer than the first."""
    draw, shares, pairs, tokens = np.random.default_rng(seed), zipf(vocab - 4), [], 0
    while tokens < update:
        middle = 14 * np.exp(draw.normal(0, 0.5))
        lengths = {"en": middle, "fr": 1.1 * middle * np.exp(draw.normal(0, 0.1))}
        sides = {lang: int(np.clip(round(length), 5, 40)) for lang, length in lengths.items()}
        pairs.append({lang: [*(draw.choice(vocab - 4, n, p=shares) + 4).tolist(), EOS] for lang, n in sides.items()})
        tokens += longer(pairs[-1])
    return pairs


def longer(pair: Pair) -> int:
    """Return the number of tokens in a pair's longer sentence."""
    return max(map(len, pair.values()))


def tokens_of(pairs: Sequence[Pair]) -> int:
    """Return the number of tokens in both sentences of all pairs, without padding."""
    return sum(len(ids) for pair in pairs for ids in pair.values())


def batch_of(rows: Sequence[Pair], turn: int) -> Batch:
    """Make a batch whose anchor column is English if `turn` is even, and French if it is odd."""
    langs = list(rows[0])
    return Batch({lang: Tokens.pad([row[lang] for row in rows], lang) for lang in langs}, langs[turn % len(langs)])


def released_batches(pairs: Sequence[Pair], tokens: int) -> list[list[Pair]]:
    """Divide pairs into batches as the released code does. Pairs are sorted by the length of one sentence, then of the
    other. A batch has a multiple of 8 pairs. This number times the longest sentence's tokens is at most `tokens`."""
    batches: list[list[Pair]] = []
    rows: list[Pair] = []
    for pair in sorted(pairs, key=lambda pair: [len(ids) for ids in pair.values()]):
        if rows and (len(rows) + 1) * max(map(longer, [*rows, pair])) > tokens:
            full = max(len(rows) // MULTIPLE * MULTIPLE, len(rows) % MULTIPLE)
            batches.append(rows[:full])
            rows = rows[full:]
        rows.append(pair)
    return [*batches, rows]
