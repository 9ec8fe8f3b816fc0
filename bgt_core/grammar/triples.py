"""Triples: a sentence, a paraphrase in other words or another order, and an altered sentence in nearly the same words.

"The king thanked the baker.", "The baker was thanked by the king.", "The baker thanked the king.": a similarity that is
sensitive to composition puts the second nearer to the first than the third. A bag of words does not.

The lexicon and the frames have two parts, one for training and one held out. Triples of different parts
share function words only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from bgt_core.errors import UsageError
from bgt_core.grammar.parts import Lexicon
from bgt_core.grammar.triple_frames import FRAMES, KINDS, NEGATION, Forms
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import statement

LIMIT = 10_000  # triples per seed: the held-out part has about twice as many, and drawing slows down near that
LANGS = ("en", "fr")


class Triple(NamedTuple):
    """A sentence, its paraphrase and its altered sentence, in each language."""

    kind: str  # one of KINDS: the kind of swap, or negation
    frame: str  # one of a kind's frames
    texts: dict[str, tuple[str, str, str]]  # language -> sentence, paraphrase, altered sentence


def triples(count: int, seed: int = 0, *, held_out: bool = False) -> list[Triple]:
    """Draw triples, the kinds in turn.

    The first triples of a longer list are those of a shorter one with the same seed.

    Args:
        count: Number of triples, no two with the same sentence.
        seed: Seed of all draws.
        held_out: Draw from the held-out part of nouns, verbs, adjectives, times and frames.

    Returns:
        `count` triples, each in English and French.

    Raises:
        UsageError: `count` is not between 0 and LIMIT.

    >>> triples(3)[2].texts["en"]
    ('The goose is quicker than the fox.', 'The fox is slower than the goose.', 'The fox is quicker than the goose.')
    """
    if not 0 <= count <= LIMIT:
        raise UsageError(
            f"{count:,}: expected 0 to {LIMIT:,} triples per seed; use another seed for more.", parameter="count"
        )
    lexicon, frames = Lexicon(held_out), FRAMES[held_out]
    part = "held out" if held_out else "training"
    rng = Random(f"{seed} triples {part}")
    voices = {lang: Random(f"{seed} triples {part} {lang}") for lang in LANGS}
    drawn: list[Triple] = []
    seen: set[str] = set()
    while len(drawn) < count:
        kind = KINDS[len(drawn) % len(KINDS)]
        frame = rng.choice(list(frames[kind]))
        plan = frames[kind][frame](rng, lexicon)
        texts = {lang: _tell(plan.forms[lang], plan.turned, lang, voices[lang]) for lang in LANGS}
        sentences = {sentence for sentence, _, _ in texts.values()}
        misleading = kind == NEGATION or all(_shares_more(*each) for each in texts.values())
        if misleading and all(len(set(each)) == 3 for each in texts.values()) and seen.isdisjoint(sentences):
            seen |= sentences
            drawn.append(Triple(kind, frame, texts))
    return drawn


def triple_rows(count: int, first: str = "en", second: str = "en", seed: int = 0) -> Iterator[str]:
    """Yield training triples as lines of a TSV: two columns of one meaning and an altered sentence.

    The columns are a sentence in `first`; its paraphrase if `second` is the same language, else a translation of the
    sentence or of the paraphrase; and the altered sentence in `first`. `bgt-bound` reads all three, with
    `--columns en,fr,altered:en`. Other recipes read the first two, with `--data en,fr,_=FILE`.

    Args:
        count: Number of rows.
        first: "en" or "fr", the language of the first and the third column.
        second: "en" or "fr", the language of the second column.
        seed: Seed of all draws.

    Yields:
        Lines without a line end. No lexeme and no frame of held-out triples occurs in them.

    Raises:
        UsageError: Another language, or `count` is not between 0 and LIMIT.
    """
    for lang in (first, second):
        if lang not in LANGS:
            raise UsageError(f"language '{lang}': the grammar writes {' and '.join(LANGS)}; choose one of them.")
    rng = Random(f"{seed} rows")
    for triple in triples(count, seed):
        sentence, paraphrase, altered = triple.texts[first]
        other = paraphrase if first == second else rng.choice(triple.texts[second][:2])
        yield f"{sentence}\t{other}\t{altered}"


_OTHERWISE = {  # how a paraphrase changes a factor
    "time": {"front": "end", "end": "front"},
    "condition": {"front": "end", "end": "front"},
    "form": {"full": "short", "short": "full"},
    "words": {"first": "second", "second": "first"},
    "receiver": {"to": "first", "first": "to"},
}
_FREE = ("time", "form", "words")  # factors that any paraphrase may change


def _tell(forms: Forms, turned: tuple[str, ...], lang: str, rng: Random) -> tuple[str, str, str]:
    """The altered sentence has the style of the sentence; the paraphrase differs in the factors that it turns."""
    voice, other = Voice(rng), Voice(rng)
    sentence = forms[0](voice)
    altered = forms[2](voice)
    other.chosen.update(voice.chosen)
    for factor, value in voice.chosen.items():
        if factor in turned or (factor in _FREE and rng.random() < 0.5):
            other.chosen[factor] = _OTHERWISE[factor][value]
    first, second, third = (statement(text, lang) for text in (sentence, forms[1](other), altered))
    return first, second, third


def _shares_more(sentence: str, paraphrase: str, altered: str) -> bool:
    """Whether the altered sentence shares at least as many words with the sentence as the paraphrase does.

    Some French triples fail, because articles and adjectives agree: "au roi" but "à la reine".
    """
    first, second, third = (Counter(re.findall(r"\w+", text.lower())) for text in (sentence, paraphrase, altered))
    return (first & third).total() >= (first & second).total()
