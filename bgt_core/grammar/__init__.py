"""A small English-French grammar with known factors, for tests, probes and tutorials.

A sentence pair is drawn in two steps: a meaning, shared by both languages, then for each language its
own style: final mark, filler word, place of the time, synonyms, contractions, register. Styles are
drawn independently, so a model can separate them.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

from bgt_core.errors import UsageError
from bgt_core.grammar.frames import FRAMES, Frame
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import Lexeme, sandhi

__all__ = ["LIMIT", "Pair", "pairs"]

LIMIT = 200_000  # far under the millions of meanings, so that drawing never stalls


@dataclass(frozen=True)
class Pair:
    """A meaning expressed in both languages, with its factors."""

    texts: dict[str, str]  # {"en": ..., "fr": ...}
    meaning: tuple[str, ...]  # frame, features and lexemes, the same for both languages
    style: dict[str, dict[str, str]]  # language -> factor -> value; only factors visible in the text


_FILLERS = {"en": ("well", "so", "oh", "anyway"), "fr": ("eh bien", "alors", "ah", "bon")}


def _utter(v: Voice, frame: Frame, lang: str) -> str:
    """Render a frame, then add the filler, the capital and the final mark."""
    text = getattr(frame, lang)(v)
    filler = v.pick("filler", "none", "none", "none", "none", "none", *_FILLERS[lang])
    text = text if filler == "none" else f"{filler}, {text}"
    text = sandhi(text) if lang == "fr" else text
    if frame.mark == "?":
        mark = frame.mark
    elif frame.mark == "!":
        mark = v.pick("mark", "!", "!", "...", ".")
    else:
        mark = v.pick("mark", ".", ".", ".", "!", "...", "none")
    space = " " if lang == "fr" and mark in "?!" else ""
    return text[0].upper() + text[1:] + ("" if mark == "none" else space + mark)


def _keys(part: tuple, keys: list[str]) -> list[str]:
    """Add the lexemes and features of a meaning to `keys`, in order."""
    for inner in part:
        if isinstance(inner, tuple):
            _keys(inner, keys)
        elif isinstance(inner, Lexeme):
            keys.append(inner.key)
        elif inner:
            keys.append(inner)
    return keys


class _Draw(Random):
    """A generator whose `choice` is several times faster; its bias, under 2**-40, does not matter here."""

    def choice(self, seq: Any) -> Any:
        return seq[int(self.random() * len(seq))]


def pairs(count: int, seed: int = 0) -> list[Pair]:
    """Draw `count` pairs; all meanings and texts differ.

    The first pairs of a longer list are those of a shorter one with the same seed. Raises UsageError if `count` exceeds
    LIMIT.
    """
    if not 0 <= count <= LIMIT:
        raise UsageError(f"{count:,}: the grammar gives at most {LIMIT:,} pairs; ask for fewer.", parameter="count")
    frames, weights = zip(*FRAMES, strict=True)
    rng, styles = _Draw(f"{seed} meaning"), {lang: _Draw(f"{seed} {lang}") for lang in ("en", "fr")}
    drawn: list[Pair] = []
    seen: set = set()
    while len(drawn) < count:
        frame = rng.choices(frames, weights)[0](rng)
        meaning = tuple(_keys(frame.meaning, []))
        voices = {lang: Voice(styles[lang]) for lang in styles}
        texts = {lang: _utter(voice, frame, lang) for lang, voice in voices.items()}
        new = {meaning, *texts.items()}
        if seen.isdisjoint(new):
            seen |= new
            drawn.append(Pair(texts, meaning, {lang: voice.chosen for lang, voice in voices.items()}))
    return drawn
