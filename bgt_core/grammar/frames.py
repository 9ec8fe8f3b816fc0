"""Sentence frames: each draws a meaning and renders it in both languages."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from bgt_core.grammar.circumstances import WEATHER
from bgt_core.grammar.clauses import Clause, en_clause, en_rest, fr_clause, fr_rest
from bgt_core.grammar.meanings import (
    again,
    draw_action,
    draw_being,
    draw_np,
    draw_place,
    draw_quality,
    draw_subject,
    draw_thing,
)
from bgt_core.grammar.noun_phrases import NP, Who, en_np, fr_np, fr_who
from bgt_core.grammar.nouns import PRONOUNS, WHO
from bgt_core.grammar.verbs import BE, HAVE, LIKE, MOVES, THINKS
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import Lexeme, comparative


class Frame(NamedTuple):
    meaning: tuple
    en: Callable[[Voice], str]
    fr: Callable[[Voice], str]
    mark: str = ""  # "?" or "!" if the frame needs it; statements choose


def _statement(rng: Random) -> Frame:
    c = draw_action(rng, draw_subject(rng))
    return Frame(("say", c), lambda v: en_clause(v, c), lambda v: fr_clause(v, c))


def _quality(rng: Random) -> Frame:
    c = draw_being(rng)
    return Frame(("be", c), lambda v: en_clause(v, c), lambda v: fr_clause(v, c))


def _comparison(rng: Random) -> Frame:
    kind = rng.choice(("animal", "food", "text", "thing", "clothes", "vehicle", "inside", "at"))
    left, right, quality = draw_thing(rng, kind), draw_thing(rng, kind), draw_quality(rng, kind, graded=True)
    neg = rng.choice(("", "", "not"))
    c, degree = Clause(left, BE, "habit", neg), rng.choice(("more", "as"))

    def en(v: Voice) -> str:
        word = v.word(quality.en)
        word = f"{comparative(word)} than" if degree == "more" else f"as {word} as"
        return f"{en_clause(v, c)} {word} {en_np(v, right)}"

    def fr(v: Voice) -> str:
        who = fr_who(v, left)
        word = v.word(quality.fr)[1][who.gender, who.plural]
        word = f"{'plus' if degree == 'more' else 'aussi'} {word}".replace("plus bon", "meilleur")
        return f"{fr_clause(v, c)} {word} que {fr_np(v, right)[0]}"

    return Frame(("compare", degree, quality, c, right), en, fr)


def _existence(rng: Random) -> Frame:
    kind = rng.choice(("person", "animal", "food", "dish", "text", "thing", "vehicle"))
    thing = draw_np(rng, kind, "some some some two three four", 0.4)
    how, where = draw_place(rng)
    tense, neg = rng.choice(("now", "past", "future")), "not" if rng.random() < 0.15 and thing.det == "some" else ""
    singular, plural = (Lexeme("there", (("there", "there"),), (("il y", "il y", "m"),), person) for person in "25")
    c = Clause(NP("", plural if thing.plural else singular), BE, tense, neg, object=thing, place=(how, where))
    have = c._replace(subject=NP("", singular), verb=HAVE, tense="habit" if tense == "now" else tense)

    def fr(v: Voice) -> str:
        text = fr_clause(v, have).replace("il y ne ", "il n'y ")  # the verb forms do not include "y"
        return text.replace("il y va avoir", "il va y avoir").replace("il n'y va pas avoir", "il ne va pas y avoir")

    return Frame(("there is", tense, neg, thing, how, where or ""), lambda v: en_clause(v, c), fr)


def _question(rng: Random) -> Frame:
    word = rng.choice((("", ""), ("", ""), ("where", "où"), ("when", "quand"), ("why", "pourquoi"), ("how", "comment")))
    subject = draw_subject(rng, PRONOUNS[1:])
    if word[0]:
        tense = rng.choice(("past", "past", "future") if word[0] == "when" else ("past", "now", "future"))
        c = _doing(rng, subject, tense, placed=word[0] == "why", timed=word[0] != "when")
    elif rng.random() < 0.7:
        c = draw_action(rng, subject)
    else:
        c = draw_being(rng)
        c = c if c.subject.noun.key != "I" else c._replace(subject=subject)  # "pleuré-je" is obsolete
    c = c._replace(neg="", adverb=None)
    en, fr = word[0] or " ", word[1] or " "
    return Frame(("ask", word[0], c), lambda v: en_clause(v, c, en), lambda v: fr_clause(v, c, fr), "?")


def _doing(rng: Random, subject: NP, tense: str, placed: bool = True, timed: bool = False) -> Clause:
    """An action that one can ask about, order or expect: not "have" or "like", and "go" only with its goal."""
    while True:
        c = draw_action(rng, subject, tense, timed, placed)
        if c.verb not in (HAVE, LIKE) and c.verb.kind != "!" and (placed or c.verb not in MOVES):
            return c


def _who_asked(rng: Random) -> Frame:
    c = draw_action(rng, NP("", WHO))
    own = c.object and c.object._replace(det="the" if c.object.det == "own" else c.object.det)
    receiver = c.receiver and c.receiver._replace(det="the" if c.receiver.det == "own" else c.receiver.det)
    c = c._replace(object=own, receiver=receiver, neg="")
    return Frame(("who", c), lambda v: en_clause(v, c, timed=False), lambda v: fr_clause(v, c, timed=False), "?")


def _whereabouts(rng: Random) -> Frame:
    kind = rng.choice(("thing", "text", "clothes", "vehicle", "animal", "at"))
    thing = draw_thing(rng, kind)
    price = kind != "at" and rng.random() < 0.4
    many = bool(thing.plural)

    def en(v: Voice) -> str:
        if price:
            return f"how much {'do' if many else 'does'} {en_np(v, thing)} cost"
        return f"where {'are' if many else 'is'} {en_np(v, thing)}"

    def fr(v: Voice) -> str:
        verb = f"combien coûte{'nt' * many}" if price else v.pick("where", "est", "se trouve")
        verb = {"est": "où sont" if many else "où est", "se trouve": "où se trouve" + "nt" * many}.get(verb, verb)
        return f"{verb} {fr_np(v, thing)[0]}"

    return Frame(("price" if price else "where is", thing), en, fr, "?")


def _exclamation(rng: Random) -> Frame:
    kind = rng.choice(("animal", "dish", "text", "thing", "clothes", "vehicle", "inside", "at"))
    if rng.random() < 0.5:
        thing = draw_np(rng, kind, "what", 1)
        return Frame(("what a", thing), lambda v: en_np(v, thing), lambda v: fr_np(v, thing)[0], "!")
    thing, quality = draw_thing(rng, kind), draw_quality(rng, kind, graded=True)
    c = Clause(thing, BE, "habit", quality=quality)

    def en(v: Voice) -> str:
        return f"how {v.word(quality.en)} {en_np(v, thing)} {'are' if thing.plural else 'is'}"

    return Frame(("how", c), en, lambda v: f"{v.pick('how', 'que', 'comme')} {fr_clause(v, c)}", "!")


def _order(rng: Random) -> Frame:
    us = rng.random() < 0.3
    c = _doing(rng, NP("", PRONOUNS[4 if us else 1]), "future")
    c = c._replace(neg="" if us or not c.neg else "not")
    c = c._replace(place=c.place if c.verb in MOVES or not c.place else None)

    def en(v: Voice) -> str:
        verb = v.word(c.verb.en)
        verb = f"{verb.base} {verb.tail}".rstrip()
        start = ""
        if us:
            start = "let's "
        elif c.neg:
            start = "don't " if v.pick("form", "full", "short") == "short" else "do not "
        return _polite(v, f"{start}{verb} {en_rest(v, c)}".rstrip(), "" if us else "please")

    def fr(v: Voice) -> str:
        who = fr_who(v, c.subject) if not us else Who("", 3, 3, "m", True)
        finite = v.word(c.verb.fr).present[who.person]
        if who.person == 1 and re.search("(es|as)$", finite):
            finite = finite[:-1]
        finite = f"ne {finite} pas" if c.neg else finite
        please = "" if us else "s'il te plaît" if who.person == 1 else "s'il vous plaît"
        return _polite(v, f"{finite} {fr_rest(v, c, who)}".rstrip(), please)

    return Frame(("let us" if us else "order", c), en, fr)


def _polite(v: Voice, text: str, please: str) -> str:
    place = v.pick("please", "none", "front", "end") if please else "none"
    return {"none": text, "front": f"{please}, {text}", "end": f"{text}, {please}"}[place]


def _thought(rng: Random) -> Frame:
    thinker, verb = draw_subject(rng), rng.choice(THINKS)
    tense = "future" if verb.key == "hope" else ""
    thought = draw_action(rng, draw_subject(rng), tense) if rng.random() < 0.6 else draw_being(rng)
    thought = thought._replace(tense="future", time=None) if tense else thought
    c = Clause(thinker, verb, "habit")

    def en(v: Voice) -> str:
        link = " that" if v.pick("that", "that", "none") == "that" else ""
        return f"{en_clause(v, c)}{link} {en_clause(v, thought, timed=False)}"

    return Frame(("think", c, thought), en, lambda v: f"{fr_clause(v, c)} que {fr_clause(v, thought, timed=False)}")


def _reason(rng: Random) -> Frame:
    main = _doing(rng, draw_subject(rng), rng.choice(("past", "now", "future")))
    main = main._replace(neg=main.neg.replace("never", "not"))
    why = draw_being(rng, again(main.subject), ("state",))._replace(
        tense="past" if main.tense == "past" else "habit", neg=""
    )

    def en(v: Voice) -> str:
        return f"{en_clause(v, main)} {v.pick('because', 'because', 'since')} {en_clause(v, why)}"

    def fr(v: Voice) -> str:
        link = v.pick("because", "parce que", "car")
        return f"{fr_clause(v, main)}{',' if link == 'car' else ''} {link} {fr_clause(v, why)}"

    return Frame(("because", main, why), en, fr)


def _condition(rng: Random) -> Frame:
    weather, when = rng.choice(WEATHER), rng.random() < 0.5
    c = _doing(rng, draw_subject(rng), "habit" if when else "future", placed=False)

    def order(v: Voice, condition: str, text: str) -> str:
        return f"{condition}, {text}" if v.pick("condition", "front", "end") == "front" else f"{text} {condition}"

    def en(v: Voice) -> str:
        link = v.pick("when", "when", "whenever") if when else "if"
        return order(v, f"{link} {v.word(weather.en)}", en_clause(v, c))

    def fr(v: Voice) -> str:
        link = v.pick("when", "quand", "lorsque") if when else "si"
        return order(v, f"{link} {v.word(weather.fr)}", fr_clause(v, c))

    return Frame(("when" if when else "if", weather, c), en, fr)


def _contrast(rng: Random) -> Frame:
    left = draw_being(rng, draw_subject(rng), ("person",))._replace(tense="habit", neg="", degree=None)
    right = draw_being(rng, again(left.subject), ("person",))._replace(tense="habit", neg="not", degree=None)
    while right.quality is left.quality:
        right = right._replace(quality=draw_quality(rng, "person"))
    return Frame(
        ("but", left, right),
        lambda v: f"{en_clause(v, left)} but {en_clause(v, right)}",
        lambda v: f"{fr_clause(v, left)} mais {fr_clause(v, right)}",
    )


def _relative(rng: Random) -> Frame:
    who = draw_np(rng, "person", "the", 0.1)
    act = draw_action(rng, who, rng.choice(("past", "now")))
    act = act._replace(neg=act.neg.replace("never", "not"), modal=None, time=act.time if act.tense == "past" else None)
    c = draw_being(rng, who, ("state", "person"))._replace(tense="habit")

    def en(v: Voice) -> str:
        subject = en_np(v, who)
        clause = f"{subject} who{en_clause(v, act, timed=False).removeprefix(subject)}"
        return clause + en_clause(v, c).removeprefix(subject)

    def fr(v: Voice) -> str:
        subject = fr_np(v, who)[0]
        clause = f"{subject} qui{fr_clause(v, act, timed=False).removeprefix(subject)}"
        return clause + fr_clause(v, c).removeprefix(subject)

    return Frame(("who does", act, c), en, fr)


FRAMES: list[tuple[Callable[[Random], Frame], int]] = [
    (_statement, 30),
    (_quality, 12),
    (_comparison, 5),
    (_existence, 6),
    (_question, 12),
    (_who_asked, 3),
    (_whereabouts, 3),
    (_exclamation, 5),
    (_order, 8),
    (_thought, 7),
    (_reason, 5),
    (_condition, 5),
    (_contrast, 3),
    (_relative, 4),
]
