"""Other forms of a clause with the same meaning: the passive and the cleft sentence."""

from __future__ import annotations

from bgt_core.grammar.clauses import Clause, en_clause, fr_clause, timed_text
from bgt_core.grammar.noun_phrases import en_np, fr_np, fr_who
from bgt_core.grammar.verbs import BE
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import french

_ALLER, _AVOIR, _ETRE = french("aller"), french("avoir"), french("être")


def en_passive(v: Voice, c: Clause) -> str:
    """ "the king thanked the baker" -> "the baker was thanked by the king"; the clause needs an object."""
    assert c.object
    verb = v.word(c.verb.en)
    start = en_clause(v, Clause(c.object, BE, c.tense, c.neg))
    receiver = f"to {en_np(v, c.receiver)}" if c.receiver else ""
    parts = (start, verb.participle, verb.tail, receiver, "by", en_np(v, c.subject))
    return timed_text(v, " ".join(filter(None, parts)), v.word(c.time.en) if c.time else "", movable=True)


def fr_passive(v: Voice, c: Clause) -> str:
    """ "le roi a remercié la reine" -> "la reine a été remerciée par le roi"; the clause needs an object."""
    assert c.object
    who = fr_who(v, c.object)
    if c.tense == "past":
        finite, rest = _AVOIR.present[who.person], "été"
    elif c.tense != "future":
        finite, rest = _ETRE.present[who.person], ""
    elif v.pick("future", "simple", "aller") == "simple":
        finite, rest = _ETRE.future[who.person], ""
    else:
        finite, rest = _ALLER.present[who.person], "être"
    if c.neg:
        finite = f"ne {finite} pas"
    participle = v.word(c.verb.fr).participle + "e" * (who.gender == "f") + "s" * who.plural
    receiver = f"à {fr_np(v, c.receiver)[0]}" if c.receiver else ""
    parts = (who.text, finite, rest, participle, receiver, "par", fr_np(v, c.subject)[0])
    return timed_text(v, " ".join(filter(None, parts)), v.word(c.time.fr) if c.time else "", movable=True)


def en_cleft(v: Voice, c: Clause, focus: str) -> str:
    """ "it was the king who thanked the baker"; focus "object": "it was the baker that the king thanked"."""
    start = "it was" if c.tense == "past" else "it is"
    if focus == "object" and c.object:
        return f"{start} {en_np(v, c.object)} that {en_clause(v, c._replace(object=None), timed=False)}"
    subject = en_np(v, c.subject)
    return f"{start} {subject} who{en_clause(v, c, timed=False).removeprefix(subject)}"


def fr_cleft(v: Voice, c: Clause, focus: str) -> str:
    """ "c'est le roi qui a remercié la reine" or "c'est la reine que le roi a remerciée"."""
    if focus == "object" and c.object:
        thing, gender = fr_np(v, c.object)
        agreement = "e" if c.tense == "past" and gender == "f" else ""
        clause = fr_clause(v, c._replace(object=None, time=None), timed=False) + agreement
        return timed_text(v, f"c'est {thing} que {clause}", v.word(c.time.fr) if c.time else "", movable=False)
    subject = fr_np(v, c.subject)[0]
    return f"c'est {subject} qui{fr_clause(v, c, timed=False).removeprefix(subject)}"
