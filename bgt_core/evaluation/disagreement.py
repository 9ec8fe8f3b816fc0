"""Where two encoders disagree about the similarity of sentences, and which words move a similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.stats import rankdata

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.text import sentence_list
from bgt_core.data.words import spans, without
from bgt_core.errors import UsageError
from bgt_core.evaluation.systems import System

MOST_WORDS = 300  # and marks of a text: leaving out each takes as many texts of nearly that length
AT_ONCE = 32  # texts without a word: bounds memory, whatever the length of the words


@dataclass(frozen=True, eq=False)
class Disagreement:
    """N pairs of sentences by two encoders; columns are the encoders, in their order."""

    similarities: np.ndarray  # (N, 2), rounded: equal ones tie
    ranks: np.ndarray  # (N, 2): the share of the other pairs that are less similar, from 0 to 1; ties count half

    @property
    def gaps(self) -> np.ndarray:
        """The second encoder's rank of each pair less the first one's, (N,), from -1 to 1."""
        return self.ranks[:, 1] - self.ranks[:, 0]

    @property
    def order(self) -> np.ndarray:
        """The rows, those with the largest gaps first, whichever encoder finds them more alike."""
        return np.argsort(-np.abs(self.gaps), kind="stable")


@dataclass(frozen=True)
class Effect:
    """How much more similar two sentences are with one of their words than without it, by each encoder."""

    side: int  # 0 for a word of the left sentence, 1 of the right one
    word: str
    effects: Sequence[float]


def disagreement(
    encoders: Mapping[str, SentenceEncoder], left: Sequence[str], right: Sequence[str], langs: tuple[str, str]
) -> Disagreement:
    """Compare the similarities of pairs by two encoders.

    Encoders use their scales differently, so ranks among these pairs are compared, not similarities.

    Args:
        encoders: Two, by name.
        left: N sentences, at least two.
        right: The other sentence of each pair.
        langs: The languages of both sides.

    Returns:
        Similarities and ranks of the pairs.

    Raises:
        UsageError: Other than two encoders or two languages, fewer than two pairs, or sides of different lengths.
    """
    if len(encoders) != 2:
        raise UsageError(f"takes two encoders, not {len(encoders)}.", parameter="model")
    if isinstance(langs, str) or len(langs) != 2:
        raise UsageError(f"{langs}: expected two, as in ('en', 'fr').", parameter="langs")
    left, right = sentence_list(left, "left"), sentence_list(right, "right")
    if len(left) < 2:
        raise UsageError(f"{len(left)} pairs: ranks need at least 2.", parameter="data")
    by_encoder = [System(name, encoder).similarities(left, right, *langs) for name, encoder in encoders.items()]
    ranks = [(rankdata(similarities) - 1) / (len(left) - 1) for similarities in by_encoder]
    return Disagreement(np.stack(by_encoder, 1), np.stack(ranks, 1))


def word_effects(
    encoders: Mapping[str, SentenceEncoder], left: str, right: str, langs: tuple[str, str], latent: str = SEMANTIC
) -> list[Effect]:
    """Leave each word and mark out of two sentences in turn.

    Args:
        encoders: Any number, by name.
        left: A sentence.
        right: Another.
        langs: Their languages.
        latent: The latent to compare by.

    Returns:
        The words of both sentences in their order; none of a sentence that is one word alone.

    Raises:
        UsageError: A sentence of more than `MOST_WORDS` words and marks.
    """
    sentences, effects = (left, right), []
    sides = list(zip(sentences, langs, strict=True))
    words_of = [[text[start:end] for start, end in spans(text, lang)] for text, lang in sides]
    if (most := max(map(len, words_of))) > MOST_WORDS:
        raise UsageError(f"Word by word, a text may have {MOST_WORDS} words and marks at most; this one has {most:,}.")
    of = [System(name, encoder, latent) for name, encoder in encoders.items()]
    for side, ((text, lang), words) in enumerate(zip(sides, words_of, strict=True)):
        shorter = without(text, lang) if len(words) > 1 else iter(())
        gains: list[list[float]] = []
        while some := list(islice(shorter, AT_ONCE)):
            changed = [text, *some], [sentences[1 - side]] * (1 + len(some))
            ordered = changed if side == 0 else changed[::-1]
            found = [system.similarities(*ordered, *langs) for system in of]
            gains += np.stack([each[0] - each[1:] for each in found], 1).tolist()  # (words, encoders)
        effects += [Effect(side, word, gain) for word, gain in zip(words, gains, strict=False)]
    return effects
