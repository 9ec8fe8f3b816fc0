"""Turn a meaning into the words of one language: verbs and clauses.

The subjunctive and reflexive verbs are excluded because they can't be derived safely here.
"""

from __future__ import annotations

from typing import NamedTuple

from bgt_core.grammar.noun_phrases import NP, POSSESSIVE, Who, en_np, en_person, fr_np, fr_who
from bgt_core.grammar.verbs import BE
from bgt_core.grammar.voice import Voice
from bgt_core.grammar.words import Lexeme, french

_ALLER, _AVOIR, _ETRE = french("aller"), french("avoir"), french("être")
_WITH_ETRE = frozenset("aller venir arriver retourner revenir".split())
_NOT = {"am": "'m not", "will": "won't"}
_SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "has": "'s", "have": "'ve"}


def _en_be(person: int) -> str:
    return ("am", "are", "is", "are", "are", "are")[person]


def _en_verb(v: Voice, verb: Lexeme, person: int, tense: str, neg: str = "", ask: bool = False) -> tuple[str, str]:
    """Auxiliary ("" if none) and main verb; neg is "", "not" or "never"."""
    en = v.word(verb.en)
    if tense == "future":
        if v.pick("future", "will", "going to") == "will":
            return "will", en.base
        return _en_be(person), f"going to {en.base}"
    if verb is BE:
        return ("were" if person in (1, 3, 5) else "was") if tense == "past" else _en_be(person), ""
    if tense == "now":
        return _en_be(person), en.ing
    if tense == "past":
        if neg == "never":
            return "has" if person == 2 else "have", en.participle
        return ("did", en.base) if neg or ask else ("", en.past)
    if neg == "not" or ask:
        return "does" if person == 2 else "do", en.base
    return "", en.third if person == 2 else en.base


def _en_says(v: Voice, subject: NP, verb: Lexeme, tense: str, neg: str = "") -> str:
    """Subject and verb of a statement, contracted or not."""
    person, text = en_person(subject), en_np(v, subject)
    auxiliary, main = _en_verb(v, verb, person, tense, neg)
    pronoun = subject.noun.kind.isdigit()
    shortens = auxiliary and (neg == "not" or (pronoun and auxiliary in _SHORT and text != "there"))
    if shortens and v.pick("form", "full", "short") == "short":
        if neg == "not":
            auxiliary, neg = _NOT.get(auxiliary, auxiliary + "n't"), ""
        else:
            auxiliary = _SHORT[auxiliary]
    tail = v.word(verb.en).tail
    return " ".join(filter(None, (text, auxiliary, neg, main, tail))).replace(" '", "'")


def _fr_verb(v: Voice, verb: Lexeme, who: Who, tense: str, neg: str = "") -> tuple[str, str]:
    """The conjugated form and the words after it."""
    fr = v.word(verb.fr)
    if tense == "future":
        if v.pick("future", "simple", "aller") == "simple":
            return fr.future[who.person], ""
        return _ALLER.present[who.person], fr.infinitive
    if tense == "now" and verb is not BE and not neg and v.pick("progress", "plain", "en train de") != "plain":
        return _ETRE.present[who.person], f"en train de {fr.infinitive}"
    if tense == "past":
        if fr.infinitive in ("être", "avoir"):
            return fr.imperfect[who.person], ""
        if fr.infinitive not in _WITH_ETRE:
            return _AVOIR.present[who.person], fr.participle
        agreement = "e" * (who.gender == "f") + "s" * who.plural
        return _ETRE.present[who.person], fr.participle + agreement
    return fr.present[who.person], ""


def _fr_says(v: Voice, who: Who, verb: Lexeme, tense: str, neg: str = "") -> str:
    finite, rest = _fr_verb(v, verb, who, tense, neg)
    if neg:
        finite = f"ne {finite} {'pas' if neg == 'not' else 'jamais'}"
    return " ".join(filter(None, (who.text, finite, rest, v.word(verb.fr).tail)))


class Clause(NamedTuple):
    """Who does what; a quality instead of an object makes it "be"."""

    subject: NP
    verb: Lexeme
    tense: str  # past, habit, now, future
    neg: str = ""  # "", not, never
    modal: Lexeme | None = None  # "want to", "try to" before the verb
    object: NP | None = None
    receiver: NP | None = None
    degree: Lexeme | None = None
    quality: Lexeme | None = None
    adverb: Lexeme | None = None
    place: tuple[Lexeme, NP | None] | None = None
    time: Lexeme | None = None


def en_rest(v: Voice, c: Clause) -> str:
    """The words after the verb, without the time."""
    gender, person = c.subject.noun.fr[0][2], en_person(c.subject)
    own = "her" if person == 2 and gender == "f" else POSSESSIVE[person]
    parts = [en_np(v, c.object, own, bool(c.neg))] if c.object else []
    if c.receiver:
        receiver = en_np(v, c.receiver, own)
        shift = v.pick("receiver", "to", "first") == "first"
        parts = [receiver, *parts] if shift else [*parts, "to", receiver]
    parts += [v.word(word.en) for word in (c.degree, c.quality, c.adverb) if word]
    if c.place:
        how, where = c.place
        parts += [v.word(how.en), en_np(v, where) if where else ""]
    return " ".join(filter(None, parts))


def fr_rest(v: Voice, c: Clause, who: Who) -> str:
    parts = [fr_np(v, c.object, who.owns, bool(c.neg))[0]] if c.object else []
    if c.receiver:
        parts += ["à", fr_np(v, c.receiver, who.owns)[0]]
    if c.degree:
        parts.append(v.word(c.degree.fr))
    if c.quality:
        parts.append(v.word(c.quality.fr)[1][who.gender, who.plural])
    if c.adverb:
        parts.append(v.word(c.adverb.fr))
    if c.place:
        how, where = c.place
        parts += [v.word(how.fr), fr_np(v, where)[0] if where else ""]
    return " ".join(filter(None, parts))


def en_clause(v: Voice, c: Clause, ask: str = "", timed: bool = True) -> str:
    """A statement, or with `ask` ("did", "where did": its question word) a question."""
    first = c.modal or c.verb
    base = f" {v.word(c.verb.en).base} {v.word(c.verb.en).tail}".rstrip() if c.modal else ""
    rest = en_rest(v, c)
    if ask:
        auxiliary, main = _en_verb(v, first, en_person(c.subject), c.tense, ask=True)
        words = (ask.strip(), auxiliary, en_np(v, c.subject), main, v.word(first.en).tail + base, rest)
        return timed_text(v, " ".join(filter(None, words)), v.word(c.time.en) if c.time else "", movable=False)
    text = f"{_en_says(v, c.subject, first, c.tense, c.neg)}{base} {rest}".rstrip()
    return timed_text(v, text, v.word(c.time.en) if c.time else "", movable=timed and not c.modal)


def fr_clause(v: Voice, c: Clause, ask: str = "", timed: bool = True) -> str:
    first, who = c.modal or c.verb, fr_who(v, c.subject)
    base = f" {v.word(c.verb.fr).infinitive}" if c.modal else ""
    rest = f"{base} {fr_rest(v, c, who)}".rstrip()
    time = v.word(c.time.fr) if c.time else ""
    if not ask:
        return timed_text(v, _fr_says(v, who, first, c.tense, c.neg) + rest, time, movable=timed and not c.modal)
    word = ask.strip()
    form = v.pick("question", "est-ce que", "inversion", *([] if word else ["rising"]))
    if form != "inversion":
        text = _fr_says(v, who, first, c.tense) + rest
        text = f"{word} est-ce que {text}" if form == "est-ce que" else text
    else:
        finite, after = _fr_verb(v, first, who, c.tense)
        named = not c.subject.noun.kind.isdigit()
        pronoun = ("elle" if who.gender == "f" else "il") + "s" * who.plural if named else who.text
        link = "-t-" if finite[-1] in "ae" and pronoun[0] in "ieo" else "-"
        tail = v.word(first.fr).tail
        text = " ".join(filter(None, (word, who.text if named else "", f"{finite}{link}{pronoun}", after, tail))) + rest
    return timed_text(v, text.lstrip(), time, movable=False)


def timed_text(v: Voice, text: str, time: str, movable: bool) -> str:
    """Add a time after the text or, if it may move, before it."""
    if not time:
        return text
    if movable and v.pick("time", "front", "end") == "front":
        return f"{time}, {text}"
    return f"{text} {time}"
