"""The lexicon in two disjoint parts: one for training, one held out."""

from __future__ import annotations

from collections.abc import Sequence

from bgt_core.grammar.circumstances import TIMES, WEATHER
from bgt_core.grammar.nouns import FITTING, NOUNS
from bgt_core.grammar.verbs import BETWEEN_PERSONS, GIFTS, INTRANSITIVE
from bgt_core.grammar.words import Lexeme

_OPPOSITES = {  # whether held out -> pairs of opposite adjectives
    False: "big small; long short; heavy light; fast slow; fat thin; noisy quiet",
    True: "clean dirty; interesting boring; happy sad; hot cold; good bad",
}
_LEFT_OUT = frozenset(  # entries that share a word with another entry
    (*"guest phone photo watch new warm wait cook read talk".split(), "green bean", "orange juice", "herbal tea")
)
_HELD_OUT_TIMES = frozenset(  # chosen so that no part of a phrase is shared, as in "last Monday"
    ("last month", "an hour ago", "next month", "in an hour", "later", "at noon", "after dinner")
)


class Lexicon:
    """Nouns, verbs, adjectives and times of one part: every third entry of each table of nouns and verbs is held out.

    Every second adjective is held out too, but opposites stay together.
    """

    def __init__(self, held_out: bool):
        self._held_out = held_out
        known = {each.key: each for fitting in FITTING.values() for each in fitting if each.key not in _LEFT_OUT}
        pairs = {part: [pair.split() for pair in text.split(";")] for part, text in _OPPOSITES.items()}
        self.opposites = [(known[one], known[two]) for one, two in pairs[held_out]]
        paired = {key for part in pairs.values() for pair in part for key in pair}
        others = [key for key in known if key not in paired]
        self._adjectives = {*others[held_out::2], *(key for pair in pairs[held_out] for key in pair)}
        self.nouns = {kind: self._part(table) for kind, table in NOUNS.items()}
        self.acts = self._part(BETWEEN_PERSONS)
        self.gifts = self._part(GIFTS)
        self.deeds = [verb for verb in INTRANSITIVE if verb.key not in _LEFT_OUT]  # used in held-out triples only
        # in held-out triples only
        self.weather = [each for each in WEATHER if each.key not in ("it is cold", "it is hot")]
        self.times = {
            tense: [each for each in table if (each.key in _HELD_OUT_TIMES) == held_out]
            for tense, table in TIMES.items()
        }

    def _part(self, table: Sequence[Lexeme]) -> list[Lexeme]:
        part = [entry for row, entry in enumerate(table) if (row % 3 == 2) == self._held_out]
        return [entry for entry in part if entry.key not in _LEFT_OUT]

    def fitting(self, *kinds: str) -> list[Lexeme]:
        """The adjectives of this part that fit nouns of all these kinds."""
        shared = set.intersection(*({each.key for each in FITTING[kind]} for kind in kinds)) & self._adjectives
        return [each for each in FITTING[kinds[0]] if each.key in shared]
