"""The perplexity of a sentence under a 3-gram language model, by nltk (`pip install "bgt[lm]"`).

The paper's models are KenLM's (Wieting, Mallinson & Gimpel 2017, sec. 5.6), trained on 40,000 references. KenLM's
Python package reads models but can't train them, and nltk's Kneser-Ney scans all its n-grams for each word it scores;
so this one is smoothed by Witten & Bell's method. Perplexities of two methods are not comparable: choose a limit from
those of your own text (`bgt data compare` shows their mean).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from bgt_core.data.filters.scores import Words
from bgt_core.data.text import normalise
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError, needs

ORDER = 3
RARE = 2  # rarer words of the training text count as unknown, so that unknown words have a probability
REMEMBERED = 2**20  # n-grams with a cached probability
START, END = "<s>", "</s>"


class Perplexity:
    """nltk's interpolated Witten-Bell model of some sentences, as a score of others."""

    def __init__(self, sentences: Iterable[str], words: Words = str.split):
        """Training takes half a minute and half a gigabyte for 40,000 sentences of ten words.

        Raises DataError without sentences, NotFound if nltk is not installed.
        """
        needs("nltk", "lm")
        from nltk.lm import Vocabulary, WittenBellInterpolated
        from nltk.util import everygrams

        self._words, digest = words, hashlib.sha256()
        padded = []
        for sentence in sentences:
            digest.update(sentence.encode() + b"\n")
            padded.append(self._padded(sentence))
        if not padded:
            raise DataError("there are no sentences to train a language model on")
        vocabulary = Vocabulary((word for sentence in padded for word in sentence), unk_cutoff=RARE)
        self.model = WittenBellInterpolated(ORDER, vocabulary=vocabulary)
        self.model.fit(everygrams(sentence, max_len=ORDER) for sentence in padded)
        self.model.unmasked_score = functools.lru_cache(REMEMBERED)(self.model.unmasked_score)
        self.fingerprint = f"nltk WittenBellInterpolated {ORDER} {RARE} {digest.hexdigest()}"

    @classmethod
    def of_file(cls, path: Path, words: Words = str.split) -> Perplexity:
        """Train on a file with one sentence per line, or in the first of its columns. Adjacent equal lines, such as a
        reference with several translations, count once. Raises DataError for an empty file."""
        lines = (normalise(line.partition("\t")[0]) for _, line in text_lines(path))
        sentences = [sentence for sentence, _ in groupby(lines) if sentence]
        if not sentences:
            raise DataError(f"{path}: no sentence to train a language model on")
        return cls(sentences, words)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """N sentences -> (N,) float64: 2 to the cross-entropy, in bits per word, of the words and the end."""
        from nltk.util import ngrams

        return np.array([self.model.perplexity(ngrams(self._padded(text), ORDER)) for text in sentences], np.float64)

    def _padded(self, sentence: str) -> list[str]:
        return [*[START] * (ORDER - 1), *self._words(sentence), END]
