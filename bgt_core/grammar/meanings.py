"""Draw meanings that make sense: who can do what to what, when and where."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from bgt_core.grammar.circumstances import ADVERBS, AT, DEGREES, HERE, IN, SPOTS, THERE, TIMES, TO
from bgt_core.grammar.clauses import Clause
from bgt_core.grammar.noun_phrases import NP, NUMBERS
from bgt_core.grammar.nouns import FITTING, MASS, NOUNS, PEOPLE, PRONOUNS
from bgt_core.grammar.verbs import ACTS, BE, GIFTS, HAVE, INTRANSITIVE, LIKE, MOVES, TRIES, WISHES
from bgt_core.grammar.words import Lexeme

_CALM = frozenset({"food", "dish", "drink", "text", "thing"})
ABSOLUTE = frozenset(  # no "very", no comparison
    "excellent delicious wonderful huge wild rare broken empty absent red blue green black white yellow grey".split()
)


def draw_np(rng: Random, kind: str, dets: str, decorate: float = 0.35) -> NP:
    """A noun of a kind after one of `dets`; `decorate` is the probability of an adjective."""
    noun, det = rng.choice(NOUNS[kind]), rng.choice(dets.split())
    det = "my" if noun.key in ("wife", "husband") and det == "our" else det
    det = "some" if kind in MASS and det in NUMBERS else det
    counted = kind not in MASS and (kind != "kin" or noun.key in _SEVERAL)
    plural = counted and (det in NUMBERS or det == "all" or rng.random() < 0.25)
    adjective = rng.choice(FITTING[kind]) if kind in FITTING and rng.random() < decorate else None
    owner = None
    if det == "of":
        owner = NP("", rng.choice(PEOPLE)) if rng.random() < 0.4 else draw_np(rng, *rng.choice(_OWNERS), 0)
    return NP(det, noun, "plural" if plural else "", adjective, owner)


_SEVERAL = frozenset("brother sister cousin neighbour friend colleague niece nephew".split())
_OWNERS = [("kin", "my your our"), ("person", "the")]
_DETS = {
    "kin": "my your our own",
    "person": "the the some this",
    "animal": "the the some my your this of two three",
    "food": "the the some some this two three four five six ten",
    "dish": "the some some some this",
    "drink": "the some some some this",
    "text": "the the some some this my own of two three ten",
    "thing": "the the some some this my your own of two three",
    "clothes": "the some some this my your own own of",
    "vehicle": "the some some this my your own own of",
    "inside": "the the some this",
    "at": "the the some this",
}


def draw_subject(rng: Random, pronouns: Sequence[Lexeme] = PRONOUNS) -> NP:
    pick = rng.random()
    if pick < 0.25:
        return NP("", rng.choice(pronouns))
    if pick < 0.45:
        return NP("", rng.choice(PEOPLE))
    if pick < 0.7:
        return draw_np(rng, "kin", "my my your our", 0.1)
    return draw_np(rng, "person", "the the the some this", 0.3)


def draw_place(rng: Random) -> tuple[Lexeme, NP | None]:
    pick = rng.random()
    if pick < 0.3:
        return rng.choice(HERE), None
    if pick < 0.5:
        return rng.choice(SPOTS), draw_np(rng, rng.choice(("inside", "at")), "the the this", 0.2)
    if pick < 0.8:
        return IN, draw_np(rng, "inside", "the the the this", 0.25)._replace(plural="")
    return AT, _spot(rng)


def _spot(rng: Random) -> NP:
    return draw_np(rng, "at", "the", 0.1)._replace(plural="")


def draw_action(rng: Random, subject: NP, tense: str = "", timed: bool = True, placed: bool = True) -> Clause:
    """An action of `subject`; `timed` and `placed` allow it a time and a place."""
    tense = tense or rng.choice(("past", "past", "habit", "now", "future"))
    neg = rng.choice(("not", "not", "never")) if rng.random() < 0.2 else ""
    neg = "not" if neg == "never" and tense == "now" else neg
    time = rng.choice(TIMES[tense]) if timed and neg != "never" and rng.random() < 0.45 else None
    place = draw_place(rng) if placed and rng.random() < 0.35 else None
    c = Clause(subject, HAVE, tense, neg, place=place, time=time)
    return rng.choices(_ACTIONS, cum_weights=_ACTIONS_UP_TO)[0](rng, c, timed, placed)


def _do(rng: Random, c: Clause, _timed: bool, _placed: bool) -> Clause:
    return c._replace(verb=rng.choice(INTRANSITIVE))


def _go(rng: Random, c: Clause, _timed: bool, placed: bool) -> Clause:
    goal = (rng.choice(THERE), None) if rng.random() < 0.5 else (TO, _spot(rng))
    c = c._replace(verb=rng.choice(MOVES), place=goal if placed else None)
    return c._replace(tense="future", time=None) if c.tense == "now" else c


def _give(rng: Random, c: Clause, _timed: bool, _placed: bool) -> Clause:
    receiver = draw_np(rng, *rng.choice((("kin", "my your own"), ("person", "the this"))), 0.1)
    kind = rng.choice(("thing", "text", "clothes"))
    verb, gift = rng.choice(GIFTS), draw_np(rng, kind, _DETS[kind], 0.2)
    return c._replace(verb=verb, object=gift, receiver=receiver, place=None)


def _have(rng: Random, c: Clause, _timed: bool, _placed: bool) -> Clause:
    kind = rng.choice(("animal", "vehicle", "clothes", "thing"))
    thing = draw_np(rng, kind, "some some two three", 0.5)
    return c._replace(tense="past" if c.tense == "past" else "habit", object=thing, time=None, place=None)


def _like(rng: Random, c: Clause, _timed: bool, _placed: bool) -> Clause:
    thing = draw_np(rng, rng.choice(("animal", "food", "dish", "drink", "text")), "all", 0)
    return c._replace(verb=LIKE, tense="habit", object=thing, time=None, place=None)


def _act_on(rng: Random, c: Clause, timed: bool, placed: bool) -> Clause:
    """A verb with an object of a suitable kind; sometimes after "want to" or "try to"."""
    tense, neg = c.tense, c.neg
    kinds, verb = rng.choice(ACTS)
    kind = rng.choice(kinds)
    thing = draw_np(rng, kind, _DETS[kind])
    if kind == "person":
        thing = rng.choice((thing, draw_np(rng, "kin", _DETS["kin"], 0.1), NP("", rng.choice(PEOPLE))))
    if verb.kind == "!" and tense in ("now", "habit"):
        c = c._replace(tense="past", time=None)
    if kind in ("inside", "at"):
        c = c._replace(place=None)
    elif kind in _CALM and verb.kind != "!" and rng.random() < 0.15:
        c = c._replace(adverb=rng.choice(ADVERBS))
    c = c._replace(verb=verb, object=thing)
    if c.subject.noun in (thing.noun, thing.owner and thing.owner.noun):  # "Anna thanks Anna"
        return draw_action(rng, c.subject, tense, timed, placed)
    if timed and verb.kind != "!" and rng.random() < 0.15:
        modal = rng.choice(WISHES) if rng.random() < 0.5 else rng.choice(TRIES)
        if modal in WISHES:
            neg = "" if modal.key == "need to" else neg.replace("never", "not")  # "ne doit pas" is "must not"
            return c._replace(modal=modal, tense="habit", neg=neg, time=None)
        time = rng.choice((None, *TIMES["past"])) if neg != "never" else None
        return c._replace(modal=modal, tense="past", time=time)
    return c


_ACTIONS = (_do, _go, _give, _have, _like, _act_on)
_ACTIONS_UP_TO = (0.12, 0.24, 0.34, 0.39, 0.44, 1.0)  # cumulative probabilities


def draw_thing(rng: Random, kind: str) -> NP:
    """The subject of a description."""
    return draw_np(rng, kind, "the this" if kind in ("inside", "at") else "the the this my your of", 0.1)


def draw_quality(rng: Random, kind: str, graded: bool = False) -> Lexeme:
    """A quality that fits a thing; "nouveau" only goes with a noun."""
    return rng.choice([a for a in FITTING[kind] if a.key != "new" and not (graded and a.key in ABSOLUTE)])


def draw_being(rng: Random, subject: NP | None = None, states: Sequence[str] = ("state", "person")) -> Clause:
    if not subject:
        kind = rng.choice(
            ("person", "person", "animal", "food", "dish", "text", "thing", "clothes", "vehicle", "inside", "at")
        )
        subject = draw_subject(rng) if kind == "person" else draw_thing(rng, kind)
        states = states if kind == "person" else (kind,)
    kind = rng.choice(states)
    quality, passing = draw_quality(rng, kind), kind == "state"  # a trait does not go with "always" or "never" there
    tense = rng.choice(("habit", "habit", "habit", "past", "future"))
    neg = rng.choice(("not", "not", "never")) if rng.random() < 0.2 and quality.key not in ABSOLUTE else ""
    degree = rng.choice(DEGREES) if not neg and quality.key not in ABSOLUTE and rng.random() < 0.35 else None
    if degree and not passing and degree.key in ("always", "often", "a little"):
        degree = DEGREES[0]
    return Clause(subject, BE, tense, neg if passing else neg.replace("never", "not"), degree=degree, quality=quality)


def again(np: NP) -> NP:
    """The pronoun for a subject already mentioned."""
    if np.noun.kind.isdigit():
        return np
    masculine = np.noun.fr[0][2] == "m"
    return NP("", PRONOUNS[(5 if masculine else 6) if np.plural else 2 if masculine else 3])
