"""What training is measured on: two sizes of the model, pairs of tokens, and how each side cuts them into batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from torch import nn

from bgt_core import recipes
from bgt_core.contracts import EOS, Batch, Tokens
from bgt_core.data.batching import split_to_fit
from bgt_core.data.text import Tokenizer
from bgt_core.nets.output import TiedOutput
from bgt_core.recipes import Recipe

UPDATE, SMOOTHING, DROPOUT, ANNEAL, CLIP = 25_000, 0.1, 0.3, 0.5, 25.0
MULTIPLE = 8  # the released code batches a multiple of this many sentences
A_SENTENCE = {"mean", "log_variance", "fuse_latent", "latent", "project", "correction"}  # Linears that read vectors
LANGS = ("en", "fr")
STS_YEARS = ("2012", "2013", "2014", "2015")
Pair = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Size:
    """A model size, and the micro-batches of both sides."""

    name: str
    arguments: dict[str, int]
    vocab: int
    ours: int  # padded tokens of our micro-batches, on the longer side
    theirs: tuple[int, ...]  # sizes for the peers, of which the fastest counts; the released code's README says 500


SMALL = Size(
    "d=256, 3+1 layers, 8k",
    {"model.d_model": 256, "model.encoder_layers": 3, "model.ffn_dim": 256},
    vocab=8_000,
    ours=4_000,
    theirs=(500, 1_000, 2_000),
)
PAPER = Size(
    "d=1024, 5+1 layers, 20k",
    {},
    vocab=20_000,
    ours=4_000,
    theirs=(500, 1_000, 2_000),
)


class SizedTokenizer(Tokenizer):
    """All that a recipe asks of a tokenizer to build its model."""

    def __init__(self, vocab: int) -> None:
        self.vocab_size = vocab

    def probabilities(self) -> np.ndarray:
        """(V,) float32; those of the special tokens count for nothing."""
        return np.concatenate([np.ones(4), zipf(self.vocab_size)]).astype(np.float32)


def recipe_of(size: Size) -> Recipe:
    """What the released code trains: reconstruction reads the posterior's mean."""
    fixed = {"data.vocab_size": size.vocab, "model.dropout": DROPOUT, "objective.elbo.warmup_steps": 2}
    return recipes.build("bgt-mean", {**fixed, **size.arguments})


def sentences(count: int) -> list[str]:
    """Words of one to three invented syllables, after Zipf's law; lengths are lognormal."""
    draw = np.random.default_rng(0)
    onsets = "b c d f g h j k l m n p r s t v w z br cr st tr pl gr ch sh".split()
    syllables = [
        onset + vowel + coda for onset in onsets for vowel in "a e i o u ai ou ea".split() for coda in ("", "n", "rt")
    ]
    words = np.unique(["".join(draw.choice(syllables, draw.integers(1, 4))) for _ in range(20_000)])
    draw.shuffle(words)
    chances = 1 / np.arange(1, len(words) + 1)
    chances /= chances.sum()
    lengths = np.clip(np.exp(draw.normal(math.log(8.5), 0.5, count)).round().astype(int), 2, 40)
    return [" ".join(draw.choice(words, length, p=chances)) for length in lengths]


def zipf(vocab: int) -> np.ndarray:
    """The chance of each token but the four special ones, after Zipf's law."""
    chances = 1 / np.arange(1, vocab - 3)
    return chances / chances.sum()


def pairs_of(vocab: int, update: int = UPDATE, seed: int = 0) -> list[Pair]:
    """The pairs of one update of that many tokens, in random order.

    Lengths are lognormal with a median of 14 tokens, the other side a tenth longer; tokens follow Zipf's law.
    """
    draw, chances, pairs, tokens = np.random.default_rng(seed), zipf(vocab), [], 0
    while tokens < update:
        median = 14 * np.exp(draw.normal(0, 0.5))
        lengths = {"en": median, "fr": 1.1 * median * np.exp(draw.normal(0, 0.1))}
        sides = {lang: int(np.clip(round(length), 5, 40)) for lang, length in lengths.items()}
        pairs.append({lang: [*(draw.choice(vocab - 4, n, p=chances) + 4).tolist(), EOS] for lang, n in sides.items()})
        tokens += longer(pairs[-1])
    return pairs


def longer(pair: Pair) -> int:
    """Tokens of its longer side."""
    return max(map(len, pair.values()))


def our_batches(pairs: Sequence[Pair], tokens: int) -> list[Batch]:
    """Micro-batches as `data.batching` cuts them."""
    lengths = np.array([[len(ids) for ids in pair.values()] for pair in pairs])
    cut = split_to_fit(lengths, tokens)
    return [batch_of([pairs[row] for row in rows], turn) for turn, rows in enumerate(cut)]


def batch_of(rows: Sequence[Pair], turn: int) -> Batch:
    """The side that explains the rows alternates over batches."""
    langs = list(rows[0])
    return Batch({lang: Tokens.pad([row[lang] for row in rows], lang) for lang in langs}, langs[turn % len(langs)])


def released_batches(pairs: Sequence[Pair], tokens: int) -> list[list[Pair]]:
    """As the released code cuts them: sorted by one side's length, then by the other's; as many pairs as stay within
    `tokens` on the longer side with padding, in multiples of 8."""
    batches: list[list[Pair]] = []
    rows: list[Pair] = []
    for pair in sorted(pairs, key=lambda pair: [len(ids) for ids in pair.values()]):
        if rows and (len(rows) + 1) * max(map(longer, [*rows, pair])) > tokens:
            full = max(len(rows) // MULTIPLE * MULTIPLE, len(rows) % MULTIPLE)
            batches.append(rows[:full])
            rows = rows[full:]
        rows.append(pair)
    return [*batches, rows]


def tokens_of(pairs: Sequence[Pair]) -> int:
    """Real tokens of both sides."""
    return sum(len(ids) for pair in pairs for ids in pair.values())


@dataclass(frozen=True, eq=False)
class Form:
    """One way to compute an update: its micro-batches, and what one costs."""

    step: Callable[[int], object]  # forward and backward of that micro-batch
    tokens: Sequence[int]  # real tokens of each
    finish: Callable[[], object]  # end an update: clipping, the optimiser's step
    parameters: Sequence[nn.Parameter]  # those that get gradients
    forget: Callable[[], object]  # drops the optimiser's moments: those of all forms together would fill the memory

    def seconds(self, share: float, clock: Callable[[], float]) -> float:
        """Of a token of the micro-batch at that share of the update, the shortest or the longest first."""
        number = int(share * len(self.tokens))
        self.fill_gradients(0.0)  # micro-batches add to existing gradients
        begun = clock()
        self.step(number)
        spent = clock() - begun
        self.drop_gradients()
        return spent / self.tokens[number]

    def update_seconds(self, clock: Callable[[], float]) -> float:
        """Of what ends an update, a token of it; the first time, which makes the moments, is not counted, and then
        they go."""
        spent = []
        for _ in range(3):
            self.fill_gradients(1e-3)
            begun = clock()
            self.finish()
            spent.append(clock() - begun)
        self.forget()
        self.drop_gradients()
        return median(spent[1:]) / sum(self.tokens)

    def fill_gradients(self, value: float) -> None:
        for parameter in self.parameters:
            parameter.grad = torch.full_like(parameter, value)

    def drop_gradients(self) -> None:
        """Those of all forms together would fill the memory too."""
        for parameter in self.parameters:
            parameter.grad = None


def best_of(forms: Mapping[int, Form], clock: Callable[[], float]) -> int:
    """The key of the fastest, by the micro-batch in the middle of the update."""
    next(iter(forms.values())).seconds(0.0, clock)
    seconds = {key: form.seconds(0.5, clock) for key, form in forms.items()}
    return min(seconds, key=seconds.__getitem__)


def operations_of(model: nn.Module, pairs: Sequence[Pair]) -> float:
    """Multiplications and additions with weights, forward and backward, a real token; z's part once a sentence."""
    tokens = {lang: sum(len(pair[lang]) for pair in pairs) for lang in pairs[0]}
    total = 0.0
    for name, module in model.named_modules():
        if not isinstance(module, nn.Linear | TiedOutput):
            continue
        weight = module.table.weight if isinstance(module, TiedOutput) else module.weight
        family, who, *_, last = name.split(".")
        if last in A_SENTENCE:
            read = len(pairs) * (2 if (family, who) == ("encoders", "semantic") else 1)
        else:
            read = sum(n for lang, n in tokens.items() if who in (lang, "semantic"))
        total += 6.0 * weight.numel() * read
    return total / sum(tokens.values())
