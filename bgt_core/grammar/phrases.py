"""From a meaning to the words of one language: noun phrases, verbs, clauses.

Kept out because they can't be derived safely here: object pronouns, the subjunctive, reflexive verbs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from bgt_core.grammar.lexicon import BE, MASS
from bgt_core.grammar.words import VOWEL, Lexeme, french

T = TypeVar("T")
NUMBERS = {"two": "deux", "three": "trois", "four": "quatre", "five": "cinq", "six": "six", "ten": "dix"}
_ALLER, _AVOIR, _ETRE = french("aller"), french("avoir"), french("être")
_WITH_ETRE = frozenset("aller venir arriver retourner revenir".split())


class Voice:
    """One language's manner in one sentence: a factor is drawn when a rule first asks, then kept."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.made: dict[str, str] = {}

    def pick(self, factor: str, *options: str) -> str:
        if factor not in self.made:
            self.made[factor] = self.rng.choice(options)
        return self.made[factor]

    def word(self, variants: Sequence[T]) -> T:
        """The same choice for every word of the sentence that has a synonym."""
        return variants[0] if len(variants) == 1 or self.pick("words", "first", "second") == "first" else variants[1]


# --- Noun phrases


class NP(NamedTuple):
    det: str  # the, some, this, what, my, your, our, own, all, of, a number; "" for pronouns and names
    noun: Lexeme
    plural: str = ""  # "plural" or ""
    adjective: Lexeme | None = None
    owner: NP | None = None  # the owner of "the teacher's car"


class Who(NamedTuple):
    """What a French verb needs of its subject."""

    text: str
    person: int  # 0 je ... 5 ils
    owns: int  # the person of its possessives: "on" has "notre"
    gender: str
    plural: bool


_POSSESSIVE = ("my", "your", "his", "our", "your", "their")
_SINGULAR, _PLURAL = "mon ton son notre votre leur".split(), "mes tes ses nos vos leurs".split()
_AN = re.compile(r"(?!uni|use)[aeiou]|ho(nest|ur)")


def _en_person(np: NP) -> int:
    return int(np.noun.kind) if np.noun.kind.isdigit() else 5 if np.plural else 2


def en_np(v: Voice, np: NP, own: str = "", neg: bool = False) -> str:
    """`own`: the possessive of the subject; `neg`: "some" becomes "any"."""
    noun = v.word(np.noun.en)[bool(np.plural)]
    phrase = f"{v.word(np.adjective.en)} {noun}" if np.adjective else noun
    many = np.plural or np.noun.kind in MASS
    if np.owner:
        owner = en_np(v, np.owner)
        det = owner + ("'" if np.owner.plural and owner.endswith("s") else "'s")
    elif np.det == "some":
        det = ("any" if neg else "some") if many else "an" if _AN.match(phrase) else "a"
    else:
        this = "these" if np.plural else "this"
        what = "what" if many else "what an" if _AN.match(phrase) else "what a"
        det = {"this": this, "what": what, "own": own, "all": ""}.get(np.det, np.det)
    return f"{det} {phrase}".lstrip()


def fr_np(v: Voice, np: NP, owns: int = 2, neg: bool = False) -> tuple[str, str]:
    """The phrase, before elision and contraction, and its gender. After a negation "un" becomes "de"."""
    singular, plural, gender = v.word(np.noun.fr)
    many = bool(np.plural)
    phrase, before = plural if many else singular, False
    if np.adjective:
        before, forms, vowel = v.word(np.adjective.fr)
        form = vowel if before and (gender, many) == ("m", False) and VOWEL.match(phrase) else forms[gender, many]
        phrase = f"{form} {phrase}" if before else f"{phrase} {form}"
    the = "les" if many else "la" if gender == "f" else "le"
    if np.det in ("my", "your", "our", "own"):
        person = {"my": 0, "our": 3, "own": owns}.get(np.det)
        if person is None:
            person = 1 if v.pick("you", "tu", "vous") == "tu" else 4
        det = _PLURAL[person] if many else _SINGULAR[person]
        if person < 3 and not many and gender == "f" and not VOWEL.match(phrase):
            det = det.replace("on", "a")
    elif np.det == "some":
        if neg:
            det = "de"
        elif np.noun.kind in MASS:
            det = f"de {the}"
        else:
            det = ("de" if before else "des") if many else "une" if gender == "f" else "un"
    elif np.det == "what":
        det = ("quelle" if gender == "f" else "quel") + "s" * many
    elif np.det == "this":
        det = "ces" if many else "cette" if gender == "f" else "cet" if VOWEL.match(phrase) else "ce"
    else:
        det = NUMBERS.get(np.det, the if np.det else "")
    owner = f" de {fr_np(v, np.owner)[0]}" if np.owner else ""
    return f"{det} {phrase}{owner}".lstrip(), gender


def fr_who(v: Voice, np: NP) -> Who:
    if not np.noun.kind.isdigit():
        text, gender = fr_np(v, np)
        person = 5 if np.plural else 2
        return Who(text, person, person, gender, bool(np.plural))
    person, (text, _, gender) = int(np.noun.kind), np.noun.fr[0]
    if person == 1 and v.pick("you", "tu", "vous") == "vous":
        return Who("vous", 4, 4, gender, False)
    if person == 3 and v.pick("we", "nous", "on") == "on":
        return Who("on", 2, 3, gender, True)
    return Who(text, person, person, gender, person in (3, 5))


# --- Verbs in a sentence

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
    person, text = _en_person(subject), en_np(v, subject)
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
    """Conjugated form and what follows it."""
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


# --- Clauses


class Clause(NamedTuple):
    """Who does what; a quality instead of an object makes it "be"."""

    subject: NP
    verb: Lexeme
    tense: str  # past, habit, now, future
    neg: str = ""  # "", not, never
    wish: Lexeme | None = None  # "want to", "try to" before the verb
    object: NP | None = None
    receiver: NP | None = None
    degree: Lexeme | None = None
    quality: Lexeme | None = None
    adverb: Lexeme | None = None
    place: tuple[Lexeme, NP | None] | None = None
    time: Lexeme | None = None


def en_rest(v: Voice, c: Clause) -> str:
    """What follows the verb, the time left out."""
    gender, person = c.subject.noun.fr[0][2], _en_person(c.subject)
    own = "her" if person == 2 and gender == "f" else _POSSESSIVE[person]
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
    first = c.wish or c.verb
    base = f" {v.word(c.verb.en).base} {v.word(c.verb.en).tail}".rstrip() if c.wish else ""
    rest = en_rest(v, c)
    if ask:
        auxiliary, main = _en_verb(v, first, _en_person(c.subject), c.tense, ask=True)
        words = (ask.strip(), auxiliary, en_np(v, c.subject), main, v.word(first.en).tail + base, rest)
        return _timed(v, " ".join(filter(None, words)), c.time and v.word(c.time.en), movable=False)
    text = f"{_en_says(v, c.subject, first, c.tense, c.neg)}{base} {rest}".rstrip()
    return _timed(v, text, c.time and v.word(c.time.en), movable=timed and not c.wish)


def fr_clause(v: Voice, c: Clause, ask: str = "", timed: bool = True) -> str:
    first, who = c.wish or c.verb, fr_who(v, c.subject)
    base = f" {v.word(c.verb.fr).infinitive}" if c.wish else ""
    rest = f"{base} {fr_rest(v, c, who)}".rstrip()
    time = c.time and v.word(c.time.fr)
    if not ask:
        return _timed(v, _fr_says(v, who, first, c.tense, c.neg) + rest, time, movable=timed and not c.wish)
    word = ask.strip()
    manner = v.pick("question", "est-ce que", "inversion", *([] if word else ["rising"]))
    if manner != "inversion":
        text = _fr_says(v, who, first, c.tense) + rest
        text = f"{word} est-ce que {text}" if manner == "est-ce que" else text
    else:
        finite, after = _fr_verb(v, first, who, c.tense)
        named = not c.subject.noun.kind.isdigit()
        pronoun = ("elle" if who.gender == "f" else "il") + "s" * who.plural if named else who.text
        link = "-t-" if finite[-1] in "ae" and pronoun[0] in "ieo" else "-"
        tail = v.word(first.fr).tail
        text = " ".join(filter(None, (word, who.text if named else "", f"{finite}{link}{pronoun}", after, tail))) + rest
    return _timed(v, text.lstrip(), time, movable=False)


def _timed(v: Voice, text: str, time: str | None, movable: bool) -> str:
    if not time:
        return text
    if movable and v.pick("time", "front", "end") == "front":
        return f"{time}, {text}"
    return f"{text} {time}"
