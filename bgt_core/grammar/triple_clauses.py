"""Clauses of triples: drawn from one part of the lexicon, and altered."""

from __future__ import annotations

from random import Random

from bgt_core.grammar.clauses import Clause
from bgt_core.grammar.noun_phrases import NP
from bgt_core.grammar.nouns import FITTING
from bgt_core.grammar.parts import Lexicon
from bgt_core.grammar.words import Lexeme


def phrase(rng: Random, noun: Lexeme, adjective: Lexeme | None = None) -> NP:
    return NP(rng.choice(("the", "the", "the", "this")), noun, adjective=adjective)


def sometime(rng: Random, lexicon: Lexicon, c: Clause, share: float) -> Clause:
    """Add a time to a share of the clauses."""
    return c._replace(time=rng.choice(lexicon.times[c.tense])) if rng.random() < share else c


def act(rng: Random, lexicon: Lexicon, described: bool = False) -> Clause:
    """One person does something to another."""
    nouns = rng.sample(lexicon.nouns["person"], 2)
    adjectives = rng.sample(lexicon.fitting("person"), 2) if described else (None, None)
    subject, thing = (phrase(rng, noun, each) for noun, each in zip(nouns, adjectives, strict=True))
    c = Clause(subject, rng.choice(lexicon.acts), rng.choice(("past", "past", "habit", "future")), object=thing)
    return sometime(rng, lexicon, c, 0.2 if described else 0.4)


def gift_clause(rng: Random, lexicon: Lexicon, timed: float) -> Clause:
    """One person gives something to another."""
    giver, receiver = (phrase(rng, noun) for noun in rng.sample(lexicon.nouns["person"], 2))
    gift = NP(rng.choice(("the", "some")), rng.choice(lexicon.nouns[rng.choice(("thing", "text", "clothes"))]))
    tense = rng.choice(("past", "past", "habit", "future"))
    c = Clause(giver, rng.choice(lexicon.gifts), tense, object=gift, receiver=receiver)
    return sometime(rng, lexicon, c, timed)


def roles_swapped(c: Clause) -> Clause:
    if c.receiver:
        return c._replace(subject=c.receiver, receiver=c.subject)
    assert c.object
    return c._replace(subject=c.object, object=c.subject)


def adjectives_swapped(one: NP, two: NP) -> tuple[NP, NP]:
    return one._replace(adjective=two.adjective), two._replace(adjective=one.adjective)


def descriptions_swapped(c: Clause) -> Clause:
    assert c.object
    subject, thing = adjectives_swapped(c.subject, c.object)
    return c._replace(subject=subject, object=thing)


def other_polarity(c: Clause) -> Clause:
    return c._replace(neg="" if c.neg else "not")


def opposites(rng: Random, lexicon: Lexicon) -> tuple[Lexeme, Lexeme, Lexeme]:
    """A noun and two opposites that fit it."""
    one, two = rng.sample(rng.choice(lexicon.opposites), 2)
    kinds = [kind for kind in FITTING if kind != "state" and all(each in lexicon.fitting(kind) for each in (one, two))]
    return rng.choice(lexicon.nouns[rng.choice(kinds) if kinds else "person"]), one, two
