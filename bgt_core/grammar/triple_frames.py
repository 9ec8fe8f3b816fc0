"""Frames of triples: each draws a sentence, a paraphrase and an altered sentence, for both languages.

Each kind of alteration has different frames in the two parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

from bgt_core.grammar.circumstances import SPOTS
from bgt_core.grammar.clauses import Clause, en_clause, fr_clause
from bgt_core.grammar.forms import en_cleft, en_passive, fr_cleft, fr_passive
from bgt_core.grammar.noun_phrases import NP, en_np, fr_np, fr_who
from bgt_core.grammar.nouns import MASS
from bgt_core.grammar.parts import Lexicon
from bgt_core.grammar.triple_clauses import (
    act,
    adjectives_swapped,
    descriptions_swapped,
    gift_clause,
    opposites,
    other_polarity,
    phrase,
    roles_swapped,
    sometime,
)
from bgt_core.grammar.verbs import BE
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import Lexeme, comparative

KINDS = GIVE, ACT, TWO, ATTRIBUTES, NEGATION = (
    "giver and receiver",
    "subject and object",
    "two things",
    "attributes",
    "negation",
)

Say = Callable[[Voice], str]
Forms = tuple[Say, Say, Say]  # sentence, paraphrase, altered sentence


class Plan(NamedTuple):
    """The draw of a frame: sentence, paraphrase and altered sentence."""

    forms: dict[str, Forms]  # by language
    turned: tuple[str, ...] = ()  # factors that every paraphrase changes; it may change others


def planned(c: Clause, altered: Clause, en: Say, fr: Say, *turned: str) -> Plan:
    """A clause and an altered clause, with a paraphrase for each language."""
    return Plan(
        {
            "en": (partial(en_clause, c=c), en, partial(en_clause, c=altered)),
            "fr": (partial(fr_clause, c=c), fr, partial(fr_clause, c=altered)),
        },
        turned,
    )


def _turned(c: Clause, altered: Clause, *turned: str) -> Plan:
    return planned(c, altered, partial(en_clause, c=c), partial(fr_clause, c=c), *turned)


def _passive(c: Clause, altered: Clause) -> Plan:
    return planned(c, altered, partial(en_passive, c=c), partial(fr_passive, c=c))


def _cleft(c: Clause, altered: Clause, focus: str) -> Plan:
    return planned(c, altered, partial(en_cleft, c=c, focus=focus), partial(fr_cleft, c=c, focus=focus))


def _gift_shifted(rng: Random, lexicon: Lexicon) -> Plan:
    """English moves the receiver, "gave the baker a book"; French uses the passive."""
    c = gift_clause(rng, lexicon, 0.3)
    return planned(c, roles_swapped(c), partial(en_clause, c=c), partial(fr_passive, c=c), "receiver")


def _gift_cleft(rng: Random, lexicon: Lexicon) -> Plan:
    c = gift_clause(rng, lexicon, 0.3)
    return _cleft(c, roles_swapped(c), "subject")


def _gift_moved(rng: Random, lexicon: Lexicon) -> Plan:
    c = gift_clause(rng, lexicon, 1)
    return _turned(c, roles_swapped(c), "time")


def _act_passive(rng: Random, lexicon: Lexicon) -> Plan:
    c = act(rng, lexicon)
    return _passive(c, roles_swapped(c))


def _act_cleft(rng: Random, lexicon: Lexicon) -> Plan:
    c = act(rng, lexicon)
    return _cleft(c, roles_swapped(c), rng.choice(("subject", "object")))


def _compared(rng: Random, lexicon: Lexicon) -> Plan:
    """Compare two things: which is bigger, or which is smaller."""
    kind = rng.choice(("animal", "text", "thing", "clothes", "vehicle"))
    fitting = lexicon.fitting(kind)
    first, second = rng.sample(
        rng.choice([pair for pair in lexicon.opposites if all(each in fitting for each in pair)]), 2
    )
    one, two = (phrase(rng, noun) for noun in rng.sample(lexicon.nouns[kind], 2))

    def en(left: NP, quality: Lexeme, right: NP) -> Say:
        c = Clause(left, BE, "habit")
        return lambda v: f"{en_clause(v, c)} {comparative(v.word(quality.en))} than {en_np(v, right)}"

    def fr(left: NP, quality: Lexeme, right: NP) -> Say:
        c = Clause(left, BE, "habit")

        def say(v: Voice) -> str:
            who = fr_who(v, left)
            word = v.word(quality.fr)[1][who.gender, who.plural]
            return f"{fr_clause(v, c)} plus {word} que {fr_np(v, right)[0]}"

        return say

    return Plan(
        {
            lang: (say(one, first, two), say(two, second, one), say(two, first, one))
            for lang, say in {"en": en, "fr": fr}.items()
        }
    )


def _placed(rng: Random, lexicon: Lexicon, described: bool = False) -> Plan:
    """Place one thing behind another, so that the other is in front of it."""
    spot, converse = rng.sample([spot for spot in SPOTS if spot.key != "near"], 2)
    kinds = rng.sample(("animal", "vehicle", "thing", "clothes"), 2)
    adjectives = rng.sample(lexicon.fitting(*kinds), 2) if described else (None, None)
    nouns = [rng.choice(lexicon.nouns[kind]) for kind in kinds]
    one, two = (phrase(rng, noun, each) for noun, each in zip(nouns, adjectives, strict=True))
    left, right = adjectives_swapped(one, two) if described else (two, one)
    c, turned, altered = (
        Clause(subject, BE, "habit", place=(where, other))
        for subject, where, other in ((one, spot, two), (two, converse, one), (left, spot, right))
    )
    return planned(c, altered, partial(en_clause, c=turned), partial(fr_clause, c=turned))


def _described_passive(rng: Random, lexicon: Lexicon) -> Plan:
    c = act(rng, lexicon, described=True)
    return _passive(c, descriptions_swapped(c))


def _described_cleft(rng: Random, lexicon: Lexicon) -> Plan:
    c = act(rng, lexicon, described=True)
    return _cleft(c, descriptions_swapped(c), rng.choice(("subject", "object")))


def _two_qualities(rng: Random, lexicon: Lexicon) -> Plan:
    """ "the soup is hot and the bread is fresh"."""
    kind = rng.choice(("animal", "food", "dish", "drink", "text", "thing", "clothes", "vehicle", "inside", "at"))
    nouns, qualities = rng.sample(lexicon.nouns[kind], 2), rng.sample(lexicon.fitting(kind), 2)
    tense = rng.choice(("past", "habit"))
    (one, two), (other, another) = (
        [Clause(NP("the", noun), BE, tense, quality=quality) for noun, quality in zip(nouns, each, strict=True)]
        for each in (qualities, qualities[::-1])
    )

    def both(clause: Callable[[Voice, Clause], str], link: str, left: Clause, right: Clause) -> Say:
        return lambda v: f"{clause(v, left)} {link} {clause(v, right)}"

    return Plan(
        {
            lang: (say(one, two), say(two, one), say(other, another))
            for lang, say in {"en": partial(both, en_clause, "and"), "fr": partial(both, fr_clause, "et")}.items()
        }
    )


def _denied_act(rng: Random, lexicon: Lexicon) -> Plan:
    c = act(rng, lexicon)._replace(neg=rng.choice(("", "not")))
    return _passive(c, other_polarity(c))


def _denied_quality(rng: Random, lexicon: Lexicon) -> Plan:
    subject = phrase(rng, rng.choice(lexicon.nouns["person"]))
    quality, tense = rng.choice(lexicon.fitting(rng.choice(("person", "state")))), rng.choice(("past", "habit"))
    c = sometime(rng, lexicon, Clause(subject, BE, tense, rng.choice(("", "not")), quality=quality), 1)
    return _turned(c, other_polarity(c), "time", "form")


def _denied_opposite(rng: Random, lexicon: Lexicon) -> Plan:
    """ "the lorry is not fast": it is slow."""
    noun, one, two = opposites(rng, lexicon)
    subject, tense, neg = phrase(rng, noun), rng.choice(("past", "habit")), rng.choice(("", "not"))
    c = Clause(subject, BE, tense, neg, quality=one)
    paraphrase = other_polarity(c)._replace(quality=two)
    return planned(c, other_polarity(c), partial(en_clause, c=paraphrase), partial(fr_clause, c=paraphrase))


def _denied_kind(rng: Random, lexicon: Lexicon) -> Plan:
    """ "it is not a clean shirt": it is a dirty one."""
    noun, one, two = opposites(rng, lexicon)
    neg, other = rng.choice((("", "not"), ("not", "")))
    det = "the" if noun.kind in MASS else "some"

    def en(neg: str, quality: Lexeme) -> Say:
        c = Clause(NP("", Lexeme("it", (("it", "it"),), (("ce", "ce", "m"),), "2")), BE, "habit", neg)
        return lambda v: f"{en_clause(v, c)} {en_np(v, NP(det, noun, adjective=quality))}"

    def fr(neg: str, quality: Lexeme) -> Say:
        start = "ce n'est pas" if neg else "c'est"
        return lambda v: f"{start} {fr_np(v, NP(det, noun, adjective=quality))[0]}"

    return Plan({lang: (say(neg, one), say(other, two), say(other, one)) for lang, say in {"en": en, "fr": fr}.items()})


def _denied_gift(rng: Random, lexicon: Lexicon) -> Plan:
    c = gift_clause(rng, lexicon, 0.5)._replace(neg=rng.choice(("", "not")))
    return _cleft(c, other_polarity(c), "subject")


def _denied_condition(rng: Random, lexicon: Lexicon) -> Plan:
    """ "if it snows, the king will not travel"."""
    weather, subject = rng.choice(lexicon.weather), phrase(rng, rng.choice(lexicon.nouns["person"]))
    c = Clause(subject, rng.choice(lexicon.deeds), "future", rng.choice(("", "not")))

    def order(v: Voice, condition: str, text: str) -> str:
        return f"{condition}, {text}" if v.pick("condition", "front", "end") == "front" else f"{text} {condition}"

    def en(c: Clause) -> Say:
        return lambda v: order(v, f"if {v.word(weather.en)}", en_clause(v, c))

    def fr(c: Clause) -> Say:
        return lambda v: order(v, f"si {v.word(weather.fr)}", fr_clause(v, c))

    other = other_polarity(c)
    return Plan({"en": (en(c), en(c), en(other)), "fr": (fr(c), fr(c), fr(other))}, ("condition", "form"))


Draw = Callable[[Random, Lexicon], Plan]

FRAMES: dict[bool, dict[str, dict[str, Draw]]] = {  # held out? -> kind -> name
    False: {
        GIVE: {"receiver moved": _gift_shifted},
        ACT: {"passive": _act_passive},
        TWO: {"opposite": _compared},
        ATTRIBUTES: {"passive with attributes": _described_passive, "two qualities": _two_qualities},
        NEGATION: {
            "passive with negation": _denied_act,
            "quality with negation": _denied_quality,
            "opposite with negation": _denied_opposite,
        },
    },
    True: {
        GIVE: {"gift in a cleft sentence": _gift_cleft, "time moved": _gift_moved},
        ACT: {"cleft sentence": _act_cleft},
        TWO: {"converse place": _placed},
        ATTRIBUTES: {
            "cleft sentence with attributes": _described_cleft,
            "converse place with attributes": partial(_placed, described=True),
        },
        NEGATION: {
            "cleft sentence with negation": _denied_gift,
            "condition with negation": _denied_condition,
            "opposite kind": _denied_kind,
        },
    },
}
