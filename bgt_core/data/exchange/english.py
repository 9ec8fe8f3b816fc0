"""English contractions: "I'm" and "I am", "don't" and "do not"."""

from __future__ import annotations

import re

from bgt_core.data.exchange.cases import capitalised_like

_PARTICIPLE = (
    r"(?:been|\w+ed|had|done|gone|seen|made|got|lost|left|found|heard|known|taken|given|come|become"
    r"|never|just|already)\b"
)
_AUXILIARY = "do|does|did|is|are|was|were|have|has|had|would|could|should|must|need"
_PERSON = "i|you|he|she|it|we|they"
_SINGULAR = "he|she|it|that|there|here|who|what|where|how"
_CUT = {"ca": "can", "wo": "will"}  # before n't

_FULL = (  # pattern and what stands for it, in this order
    (rf"\b({_AUXILIARY}|ca|wo)n't ({_PERSON}|there)\b", r"\1 \2 not"),
    (r"\b(ca)n't\b", r"\1not"),
    (rf"\b({_AUXILIARY}|wo)n't\b", r"\1 not"),
    (r"\b(i)'m\b", r"\1 am"),
    (r"\b(\w+)'re\b", r"\1 are"),
    (r"\b(\w+)'ve\b", r"\1 have"),
    (r"\b(\w+)'ll\b", r"\1 will"),
    (rf"\b({_PERSON})'d (?={_PARTICIPLE}|better)", r"\1 had "),
    (rf"\b({_PERSON})'d\b", r"\1 would"),
    (rf"\b({_SINGULAR})'s (?={_PARTICIPLE})", r"\1 has "),
    (rf"\b({_SINGULAR}|when|why)'s\b", r"\1 is"),
)
_SHORT = (
    (rf"\b({_AUXILIARY}|can) ({_PERSON}|there) not\b", r"\1n't \2"),
    (r"\b(can) ?not\b", r"\1't"),
    (r"\bwill not\b", "won't"),
    (rf"\b({_AUXILIARY}) not\b(?= \w)", r"\1n't"),
    (r"\b(i) am(?= \w)", r"\1'm"),
    (r"\b(you|we|they) are(?= \w)", r"\1're"),
    (rf"\b({_SINGULAR}) is(?= \w)", r"\1's"),
    (rf"\b(i|you|we|they) have(?= {_PARTICIPLE})", r"\1've"),
    (rf"\b(he|she|it) has(?= {_PARTICIPLE})", r"\1's"),
    (rf"\b({_PERSON}) had(?= {_PARTICIPLE})", r"\1'd"),
    (rf"\b({_PERSON}|that|there|who) will(?= \w)", r"\1'll"),
    (r"\b(i|you|he|she|we|they|who) would(?= \w)", r"\1'd"),
)


def forms(text: str) -> list[str]:
    """The sentence with every contraction written out, and with every pair of words contracted."""
    straight = text.replace("’", "'")
    return [form for rules in (_FULL, _SHORT) if (form := _replaced(straight, rules)) != straight]


def _replaced(text: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    restored = re.sub(r"\b(ca|wo)(?= |not\b)", lambda cut: _CUT[cut[0].lower()], text, flags=re.IGNORECASE)
    return capitalised_like(restored, text)
