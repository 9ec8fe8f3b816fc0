"""Word forms of English and French: plurals, agreement, conjugation, elision."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

# je, il, nous, ils, past participle, future stem; eight forms where tu or vous can't be derived.
_IRREGULAR = """
être suis es est sommes êtes sont été ser; avoir ai as a avons avez ont eu aur; aller vais vas va allons allez vont
allé ir; faire fais fais fait faisons faites font fait fer; dire dis dis dit disons dites disent dit dir; voir vois
voit voyons voient vu verr; boire bois boit buvons boivent bu boir; lire lis lit lisons lisent lu lir; écrire écris
écrit écrivons écrivent écrit écrir; prendre prends prend prenons prennent pris prendr; apprendre apprends apprend
apprenons apprennent appris apprendr; comprendre comprends comprend comprenons comprennent compris comprendr;
surprendre surprends surprend surprenons surprennent surpris surprendr; venir viens vient venons viennent venu
viendr; revenir reviens revient revenons reviennent revenu reviendr; vouloir veux veut voulons veulent voulu voudr;
devoir dois doit devons doivent dû devr; savoir sais sait savons savent su saur; reconnaître reconnais reconnaît
reconnaissons reconnaissent reconnu reconnaîtr; promettre promets promet promettons promettent promis promettr;
dormir dors dort dormons dorment dormi dormir; courir cours court courons courent couru courr; ouvrir ouvre ouvre
ouvrons ouvrent ouvert ouvrir; offrir offre offre offrons offrent offert offrir; rire ris rit rions rient ri rir;
sourire souris sourit sourions sourient souri sourir; conduire conduis conduit conduisons conduisent conduit
conduir; traduire traduis traduit traduisons traduisent traduit traduir; construire construis construit construisons
construisent construit construir; croire crois croit croyons croient cru croir; recevoir reçois reçoit recevons
reçoivent reçu recevr; peindre peins peint peignons peignent peint peindr; envoyer envoie envoie envoyons envoient
envoyé enverr; appeler appelle appelle appelons appellent appelé appeller; coudre couds coud cousons cousent cousu
coudr
"""
_FORMS = {verb: forms for verb, *forms in map(str.split, _IRREGULAR.split(";"))}


@dataclass(frozen=True)
class Lexeme:
    """One entry: `en` and `fr` hold a form set for each synonym."""

    key: str
    en: tuple
    fr: tuple
    kind: str = ""


class English(NamedTuple):
    base: str
    third: str
    past: str
    participle: str
    ing: str
    tail: str  # "for" of "look for"


class French(NamedTuple):
    infinitive: str
    present: tuple[str, ...]  # je, tu, il, nous, vous, ils
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    tail: str  # "de" of "essayer de"


def _s(word: str) -> str:
    """English plural or third person."""
    if re.search(r"(s|x|ch|sh)$", word):
        return word + "es"
    return re.sub(r"(?<![aeou])y$", "ie", word) + "s"


def english(text: str) -> English:
    """The forms of "eat/ate/eaten" or "look for"."""
    head, _, tail = text.partition(" ")
    base, past, participle = [*head.split("/"), "", ""][:3]
    stem = re.sub(r"^((?:be|for)?[^aeiou]*[aeiou])([bdgmnprt])$", r"\1\2\2", base)  # stop -> stopp(ed), stopp(ing)
    regular = re.sub(r"(?<![aeou])y$", "i", stem.removesuffix("e")) + "ed"
    ing = (stem if stem.endswith("ee") else stem.removesuffix("e")) + "ing"
    third = {"have": "has", "go": "goes"}.get(base) or _s(base)
    return English(base, third, past or regular, participle or past or regular, ing, tail)


def french(text: str) -> French:
    """The forms of "manger" or "essayer de"."""
    verb, _, tail = text.partition(" ")
    if verb in _FORMS:
        *given, participle, future = _FORMS[verb]
        if len(given) == 4:
            je, il, nous, ils = given
            given = [je, je + "s" * je.endswith("e"), il, nous, nous.removesuffix("ons") + "ez", ils]
    elif verb.endswith("er"):
        stem = verb[:-2]
        stressed = re.sub(r"[eé](ch|[^aeiouéèê])$", r"è\1", re.sub(r"(?<=[aou])y$", "i", stem))
        soft = stem + "e" * stem.endswith("g")
        given = [
            *(stressed + end for end in ("e", "es", "e")),
            re.sub("c$", "ç", soft) + "ons",
            stem + "ez",
            stressed + "ent",
        ]
        participle, future = stem + "é", (stem if re.search("é[^aeiou]+$", stem) else stressed) + "er"
    elif verb.endswith("ir"):
        stem = verb[:-1]
        given = [stem + end for end in ("s", "s", "t", "ssons", "ssez", "ssent")]
        participle, future = stem, verb
    else:
        stem = verb[:-2]
        given = [stem + end for end in ("s", "s", "", "ons", "ez", "ent")]
        participle, future = stem + "u", verb[:-1]
    past = "ét" if verb == "être" else given[3].removesuffix("ons")
    return French(
        verb,
        tuple(given),
        tuple(past + end for end in ("ais", "ais", "ait", "ions", "iez", "aient")),
        tuple(future + end for end in ("ai", "as", "a", "ons", "ez", "ont")),
        participle,
        tail,
    )


def french_noun(text: str) -> tuple[str, str, str]:
    """Singular, plural, gender."""
    forms, gender = text.rsplit(" ", 1)
    singular, _, plural = forms.partition("/")
    return singular, plural or _many(singular), gender


def _many(word: str) -> str:
    """Plural of a regular French noun or adjective."""
    if word[-1] in "sxz":
        return word
    return re.sub("al$", "au", word) + ("x" if re.search("(au|al|eu)$", word) and word != "bleu" else "s")


def french_adjective(text: str) -> tuple[bool, dict[tuple[str, bool], str], str]:
    """Stands before the noun?, forms by (gender, plural), masculine before a vowel."""
    masculine, feminine, vowel = [*text.removeprefix("<").split("/"), "", ""][:3]
    feminine = (
        feminine or re.sub("et$", "èt", re.sub("er$", "èr", re.sub("x$", "s", masculine))).removesuffix("e") + "e"
    )
    forms = {
        ("m", False): masculine,
        ("m", True): _many(masculine),
        ("f", False): feminine,
        ("f", True): feminine + "s",
    }
    return text.startswith("<"), forms, vowel or masculine


def read(table: str, en: Callable = str, fr: Callable = str, kind: str = "") -> list[Lexeme]:
    """The entries of a table, in order; a leading "!" becomes their kind."""
    entries = []
    for entry in (" ".join(part.split()) for part in table.split(";")):
        left, right = entry.removeprefix("!").split("=")
        key = re.sub(r"/\S+|[|>].*", "", left)
        english_forms, french_forms = tuple(map(en, left.split("|"))), tuple(map(fr, right.split("|")))
        entries.append(Lexeme(key, english_forms, french_forms, "!" if entry.startswith("!") else kind))
    return entries


def read_verbs(table: str) -> list[Lexeme]:
    return read(table, english, french)


def english_noun(text: str) -> tuple[str, str]:
    """Singular and plural."""
    singular, _, plural = text.partition("/")
    return singular, plural or _s(singular)


VOWEL = re.compile(
    r"[aeiouàâéèêëîïôûœ]|h(?!éros|ibou|omard|amac|ache|érisson|all\b|alls\b|angar|arpe|aricot|uit\b)", re.IGNORECASE
)
_ELIDE = re.compile(rf"\b(l|d|n|j|qu|lorsqu)(?:e|a) (?={VOWEL.pattern})|\bs(?:i) (?=ils?\b)", re.IGNORECASE)
_CONTRACT = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}


def sandhi(text: str) -> str:
    """Elision, then contraction: "de le ami" -> "de l'ami", "de le chat" -> "du chat"."""
    text = _ELIDE.sub(lambda m: (m[1] or "s") + "'", text)
    return re.sub(r"\b(de|à) les?\b(?!')", lambda m: _CONTRACT[m[0]], text)


def statement(text: str, lang: str) -> str:
    """The text with a capital and a full stop."""
    text = sandhi(text) if lang == "fr" else text
    return text[0].upper() + text[1:] + "."


def comparative(word: str) -> str:
    """English: "bigger", "easier", "more famous"."""
    if word in _COMPARATIVES:
        return _COMPARATIVES[word]
    stem = word.removesuffix("e")
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ier"
    if len(re.findall("[aeiouy]+", stem)) > 1:
        return f"more {word}"
    return re.sub(r"^([^aeiou]*[aeiou])([bdgmnprt])$", r"\1\2\2", stem) + "er"


_COMPARATIVES = {"good": "better", "bad": "worse", "ill": "more ill", "shy": "shyer", "little": "smaller"}
