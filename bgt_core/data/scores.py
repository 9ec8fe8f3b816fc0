"""Score translations, alone or against their references, and keep the pairs whose scores are in a range.

Wieting, Mallinson & Gimpel (2017, sec. 5.5-5.7) filter back-translated text by these scores. The first column of a pair
is the reference, which a person wrote; the second column is a machine translation into the same language.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bgt_core.data.text import normalise
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError, UsageError, did_you_mean, needs

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU

LONGEST = 100  # maximum value of the score "words", as in the authors' released code

# takes N pairs of texts and the costs of their translations, (N,); returns the scores of the pairs, (N,) float64
Score = Callable[[Sequence[Sequence[str]], np.ndarray], np.ndarray]


class SentenceScore(Protocol):
    """A model that scores sentences, such as a language model."""

    @property
    def fingerprint(self) -> str:
        """One line that identifies the model; the description of the filtered file records it."""

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the scores of N sentences, (N,) float64."""


@dataclass(frozen=True)
class ScoreRange:
    """A range for the score of a translation, from `least` to `most`, both included."""

    score: str
    least: float = -math.inf
    most: float = math.inf

    def __post_init__(self) -> None:
        if not self.least <= self.most:  # this condition is also true if a bound is NaN
            raise UsageError(f"{self}: expected MIN <= MAX.", parameter="keep")

    def __str__(self) -> str:
        least, most = (f"{limit:g}" if math.isfinite(limit) else "" for limit in (self.least, self.most))
        return f"{self.score}={least}..{most}"

    @classmethod
    def parse(cls, text: str) -> ScoreRange:
        """Parse "bleu=0.1..0.7", "cost=..0.5" or "classifier=0.3.."; UsageError for any other form."""
        number = r"(-?\d+(?:\.\d+)?)?"
        if not (parts := re.fullmatch(rf"([\w-]+)={number}\.\.{number}", text)) or not any(parts.groups()[1:]):
            raise UsageError(
                f"'{text}': expected SCORE=MIN..MAX, SCORE=..MAX or SCORE=MIN.., as bleu=0.1..0.7.", parameter="keep"
            )
        return cls(parts[1], float(parts[2] or -math.inf), float(parts[3] or math.inf))

    def holds(self, scores: np.ndarray) -> np.ndarray:
        """Return which of N scores are in the range, (N,) bool; NaN is outside any range."""
        return (self.least <= scores) & (scores <= self.most)


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """List the n-grams of k words, in order: k - n + 1 n-grams, or none if k < n."""
    return list(zip(*(words[start:] for start in range(n)), strict=False))


def overlap(reference: str, translation: str, n: int) -> float:
    """Return the share, from 0 to 1, of the shorter text's n-grams that also occur in the other text (sec. 5.7).

    As in the authors' code, every occurrence of a repeated n-gram counts: "the the cat" and "the dog ran off" overlap
    by 2/3. BLEU would count "the" once, which gives 1/3. If both texts have equally many n-grams, the reference counts
    as the shorter text. If the shorter text has no n-gram, the overlap is 0. Case matters.
    """
    fewer, others = ngrams(reference.split(), n), ngrams(translation.split(), n)
    if len(others) < len(fewer):
        fewer, others = others, fewer
    known = set(others)
    return sum(gram in known for gram in fewer) / len(fewer) if fewer else 0.0


def sentence_bleu(reference: str, translation: str) -> float:
    """Return sacrebleu's sentence BLEU, from 0 to 1. Words are split at spaces, and smoothing is "add-k".

    For bigrams and longer n-grams, 1 is added to the number of matches and to the number of n-grams (Lin & Och 2004).
    The paper also smooths unigrams and the brevity penalty (Nakov et al. 2012); here, a pair without a common word
    scores 0.
    """
    return bleu_metric().sentence_score(translation, [reference]).score / 100


@functools.cache
def bleu_metric() -> BLEU:
    """Return sacrebleu's metric for the BLEU of a single sentence; all calls return the same object."""
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, effective_order=True, force=True)


def pair_scores(models: Mapping[str, SentenceScore]) -> dict[str, Score]:
    """Return {name: score}, fast scores first. The slow `models` come last; they score only the translation."""

    def of_pairs(score: Callable[[str, str], float]) -> Score:
        return lambda pairs, costs: np.array([score(pair[0], pair[1]) for pair in pairs], np.float64)

    def of_translations(score: SentenceScore) -> Score:
        return lambda pairs, costs: score([pair[1] for pair in pairs])

    return {
        "cost": lambda pairs, costs: costs,
        "words": of_pairs(lambda reference, translation: min(LONGEST, len(translation.split()))),
        **{f"overlap-{n}": of_pairs(functools.partial(overlap, n=n)) for n in (1, 2, 3)},
        "bleu": of_pairs(sentence_bleu),
        **{name: of_translations(score) for name, score in models.items()},
    }


def chosen_scores(ranges: Sequence[ScoreRange], scores: Mapping[str, Score]) -> dict[str, ScoreRange]:
    """Map each score's name to its range, in the order of `scores`; UsageError for an unknown or repeated score."""
    by_score = {each.score: each for each in ranges}
    for score in by_score:
        if score not in scores:
            raise UsageError(
                f"'{by_score[score]}': no score '{score}'; expected {', '.join(scores)}.{did_you_mean(score, scores)}",
                parameter="keep",
            )
    if len(by_score) < len(ranges):
        raise UsageError(f"{', '.join(map(str, ranges))}: give only one range for each score.", parameter="keep")
    return {score: by_score[score] for score in scores if score in by_score}


# The perplexity of a sentence is computed by a 3-gram language model of nltk (`pip install "bgt[lm]"`).

ORDER = 3
RARE = 2  # words that occur less often than this count as unknown in training, so that unknown words get a probability
REMEMBERED = 2**20  # number of n-grams whose probability is cached


class Perplexity:
    """Scores sentences by their perplexity under nltk's interpolated Witten-Bell model, trained on other sentences.

    The paper trains KenLM on 40,000 references (sec. 5.6), but KenLM's Python package can't train models. Perplexities
    of different language models are not comparable, so choose a range by the perplexities of your own text.
    """

    def __init__(self, sentences: Iterable[str]):
        """Train the model. 40,000 sentences of ten words take half a minute and half a gigabyte of memory.

        Raises DataError if there are no sentences, NotFound if nltk is not installed.
        """
        needs("nltk", "lm")
        from nltk.lm import Vocabulary, WittenBellInterpolated
        from nltk.util import everygrams

        digest = hashlib.sha256()
        padded = []
        for sentence in sentences:
            digest.update(sentence.encode() + b"\n")
            padded.append(padded_words(sentence))
        if not padded:
            raise DataError("there are no sentences to train a language model on")
        vocabulary = Vocabulary((word for sentence in padded for word in sentence), unk_cutoff=RARE)
        self.model = WittenBellInterpolated(ORDER, vocabulary=vocabulary)
        self.model.fit(everygrams(sentence, max_len=ORDER) for sentence in padded)
        self.model.unmasked_score = functools.lru_cache(REMEMBERED)(self.model.unmasked_score)
        self.fingerprint = f"nltk WittenBellInterpolated {ORDER} {RARE} {digest.hexdigest()}"

    @classmethod
    def of_file(cls, path: Path) -> Perplexity:
        """Train on the lines of a file, or on the first column of a table. A sentence that is repeated in the next
        lines, such as a reference with several translations, counts once. Raises DataError for an empty file."""
        lines = (normalise(line.partition("\t")[0]) for _, line in text_lines(path))
        sentences = [sentence for sentence, _ in groupby(lines) if sentence]
        if not sentences:
            raise DataError(f"{path}: no sentence to train a language model on")
        return cls(sentences)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """Return perplexities, (N,) float64: 2^(bits per word), where the end of a sentence counts as a word."""
        from nltk.util import ngrams

        return np.array([self.model.perplexity(ngrams(padded_words(text), ORDER)) for text in sentences], np.float64)


def padded_words(sentence: str) -> list[str]:
    """Split a sentence into words, and add symbols that mark the start and the end of the sentence."""
    return [*["<s>"] * (ORDER - 1), *sentence.split(), "</s>"]
