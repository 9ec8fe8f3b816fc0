"""Spanish tú and usted: "¿Tienes casa?" and "¿Tiene usted casa?"."""

from __future__ import annotations

import re

from bgt_core.data.exchange.cases import capitalised_like
from bgt_core.data.properties import PROPERTIES

_TO_FORMAL = {"eres": "es", "has": "ha", "vas": "va", "das": "da", "ves": "ve"}
_TO_INFORMAL = {"es": "eres", "ha": "has", "va": "vas", "da": "das", "fue": "fuiste"}
_BETWEEN = r"(?:(?:no|nunca|siempre|ya|también|me|lo|la|los|las|nos) )*"
_SECOND_PERSON = (
    r"(?:eres|estás|tienes|quieres|puedes|sabes|debes|vas|has|haces|dices|crees|piensas|necesitas|hablas|vienes|ibas|vives"
    r"|conoces|trabajas|estudias|juegas|comes|bebes|buscas|prefieres|entiendes|recuerdas|ves|oyes"
    r"|\w+[aei]rás|\w+ías|\w+abas)"
)
_UNSURE_INFORMAL = r"\b(?:te|ti|contigo|vos|tuy\w+|\w+te|\w+[ai]ste)\b"
_UNSURE_FORMAL = r"\b(?:ustedes|le|les|se|(?:a|con|de|para|que) usted|usted mismo)\b"


def forms(text: str) -> list[str]:
    """The sentence in the other form of address, where its one verb with that subject is sure."""
    value = PROPERTIES["address"].value(text, "es")
    unsure, rule = {"tú": (_UNSURE_INFORMAL, _formal), "usted": (_UNSURE_FORMAL, _informal)}.get(value, ("", None))
    if not rule or re.search(unsure, text, re.IGNORECASE):
        return []
    form = rule(text)
    return [form] if form else []


def _formal(text: str) -> str:
    text = re.sub(r"\btu(s?)\b", lambda found: capitalised_like(f"su{found[1]}", found[0]), text, flags=re.IGNORECASE)
    if named := re.search(rf"\btú {_BETWEEN}(\w+)\b", text, re.IGNORECASE):
        if not (verb := _third_person(named[1])):
            return ""
        text = text[: named.start(1)] + verb + text[named.end(1) :]
        return re.sub(r"\btú\b", lambda found: capitalised_like("usted", found[0]), text, flags=re.IGNORECASE)
    question = re.search(rf"¿(?:\w+ )?{_BETWEEN}({_SECOND_PERSON})\b", text, re.IGNORECASE)
    if not question:
        return ""
    text = f"{text[: question.start(1)]}{_third_person(question[1])} usted{text[question.end(1) :]}"
    return re.sub(r"\b(ha|va) usted (\w+(?:[aií]do|to|cho)|a \w+r)\b", r"\1 \2 usted", text, flags=re.IGNORECASE)


def _informal(text: str) -> str:
    text = re.sub(r"\bsu(s?)\b", lambda found: capitalised_like(f"tu{found[1]}", found[0]), text, flags=re.IGNORECASE)
    after = re.search(r"(?<=[¿ ])(\w+) usted\b", text, re.IGNORECASE) if "?" in text else None
    if after and (verb := _second_person(after[1])):
        return text[: after.start()] + verb + text[after.end() :]
    named = re.search(rf"\busted {_BETWEEN}(\w+)", text, re.IGNORECASE)
    if not named or not (verb := _second_person(named[1])):
        return ""
    text = text[: named.start(1)] + verb + text[named.end(1) :]
    return re.sub(r"\busted\b", lambda found: capitalised_like("tú", found[0]), text, flags=re.IGNORECASE)


def _third_person(verb: str) -> str:
    """ "tienes" -> "tiene"; "" for a word that is no such form."""
    known = _TO_FORMAL.get(verb.lower())
    if known:
        return capitalised_like(known, verb)
    return verb[:-1] if re.fullmatch(r"\w+[aeáé]s", verb, re.IGNORECASE) else ""


def _second_person(verb: str) -> str:
    """ "tiene" -> "tienes"."""
    known = _TO_INFORMAL.get(verb.lower())
    if known:
        return capitalised_like(known, verb)
    other = verb.lower() in ("para", "nunca", "la", "ya", "que", "me")
    return f"{verb}s" if re.fullmatch(r"\w+[aeáí]", verb, re.IGNORECASE) and not other else ""
