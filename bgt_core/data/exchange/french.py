"""Forms of a French question: "viens-tu ?", "est-ce que tu viens ?", "tu viens ?"."""

from __future__ import annotations

import re
from typing import NamedTuple

from bgt_core.data.exchange.cases import capitalised_like
from bgt_core.data.properties import APOSTROPHES

_VOWELS = "aàâeéèêiîoôuûùyh"
_CLITICS = r"(?:(?:ne|n'|me|m'|te|t'|se|s'|nous|vous|le|la|l'|les|lui|leur|y|en) ?)*"
_SUBJECT = r"(?:je|j'|tu|il|elle|on|nous|vous|ils|elles)"
_ASKING = (
    r"(?:(?:à|de|avec|pour|par|chez|sur|dans|en|jusqu'|depuis|d')? ?"
    r"(?:qui|quoi|où|quand|comment|combien(?: d[e'] ?\w+)?|pourquoi|quel(?:le)?s? \w+))"
)
_VERB = rf"(?P<clitics>{_CLITICS})(?P<verb>\w+)"
_BEFORE = rf"(?P<subject>{_SUBJECT}) ?{_VERB}\b(?P<rest>.*)$"
_PATTERNS = (
    rf"(?:(?P<asks>{_ASKING}) )?est-ce qu(?:e |'){_BEFORE}",
    rf"(?P<asks>qu)'est-ce qu(?:e |'){_BEFORE}",
    rf"(?:(?P<asks>{_ASKING}|que|qu')(?: |(?<=')))?{_VERB}-(?:t-)?(?P<subject>{_SUBJECT})\b(?P<rest>.*)$",
    rf"(?P<asks>){_BEFORE}",
)
_NO_VERB = ("en", "y", "pas", "plus", "jamais")


class _Question(NamedTuple):
    asks: str  # "où", or "que"
    subject: str
    clitics: str
    verb: str
    rest: str

    @property
    def statement(self) -> str:
        """ "tu viens demain"."""
        begin = self.clitics + self.verb
        return (_elided("je", begin) if self.subject == "je" else f"{self.subject} ") + begin + self.rest

    @property
    def with_est_ce_que(self) -> str:
        asks = "qu'" if self.asks == "que" else f"{self.asks} " if self.asks else ""
        return f"{asks}est-ce {_elided('que', self.statement)}{self.statement}"

    @property
    def inverted(self) -> str:
        """ "" for subjects after which the inversion would be uncertain."""
        plural = {"nous": "ons", "vous": "ez"}.get(self.subject, "")
        if self.subject == "je" or not self.verb.endswith(plural) or self.verb in _NO_VERB:
            return ""
        begin = self.clitics + self.verb
        asks = _elided("que", begin) if self.asks == "que" else f"{self.asks} " if self.asks else ""
        link = "-t-" if self.subject in ("il", "elle", "on") and self.verb[-1] in "aeéè" else "-"
        return f"{asks}{begin}{link}{self.subject}{self.rest}"


def forms(text: str) -> list[str]:
    """The question in the other forms; "viens-tu ?" -> "est-ce que tu viens ?", "tu viens ?"."""
    if text.count("?") != 1 or re.search(r"est-ce pas|\by a\b", text):
        return []
    question = _read(text)
    if not question:
        return []
    plain = "" if question.asks else question.statement
    made = (question.with_est_ce_que, question.inverted, plain)
    return [capitalised_like(f"{form} ?", text) for form in made if form]


def _read(text: str) -> _Question | None:
    straight = text.translate(APOSTROPHES).rstrip(" ?\u202f\u00a0")
    for pattern in _PATTERNS:
        if found := re.match(pattern, straight, re.IGNORECASE):
            parts = {name: (part or "").lower() for name, part in found.groupdict().items() if name != "rest"}
            parts["asks"] = "que" if parts["asks"] in ("qu", "qu'", "que") else parts["asks"]
            parts["subject"] = parts["subject"].replace("j'", "je")
            parts["verb"] = "peux" if parts["verb"] == "puis" else parts["verb"]
            return _Question(**parts, rest=found["rest"])
    return None


def _elided(word: str, following: str) -> str:
    """ "que " or "qu'"."""
    return f"{word[:-1]}'" if following[:1].lower() in _VOWELS else f"{word} "
