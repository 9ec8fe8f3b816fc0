"""Turkish sen and siz: "nasılsın" and "nasılsınız"."""

from __future__ import annotations

import re

from bgt_core.data.exchange.cases import capitalised_like
from bgt_core.data.properties import PROPERTIES

_TO_INFORMAL = {
    "siz": "sen",
    "sizi": "seni",
    "size": "sana",
    "sizin": "senin",
    "sizde": "sende",
    "sizden": "senden",
    "sizinle": "seninle",
    "sizce": "sence",
}
_TO_FORMAL = {informal: formal for formal, informal in _TO_INFORMAL.items()}
_OTHERS = frozenset(  # they end as if they had the person's ending
    "henüz deniz beniz yalnız domuz temiz ucuz altın kadın aydın satın bütün üstün metin zeytin odun akın yakın için "
    "niçin uzun yarın kalın derin gelin insan olsun gitsin gelsin etsin kalsın versin".split()
)
_POLITE = r"(?<=\w\wn)[ıiuü]z(?=(?:[ae]|[ıiuü]|[dt][ae]n?|l[ae]|[ıiuü]n)?$)"
_FAMILIAR = (r"\w+s([ıiuü])n", r"\w{2,}[dt]([ıiuü])n")


def forms(text: str) -> list[str]:
    """The sentence in the other form of address."""
    value = PROPERTIES["address"].value(text, "tr")
    rule = {"siz": _informal, "sen": _formal}.get(value)
    return [re.sub(r"[^\W\d_]+", lambda found: rule(found[0], _lower(found[0])), text)] if rule else []


def _informal(word: str, lowered: str) -> str:
    if lowered in _TO_INFORMAL:
        return capitalised_like(_TO_INFORMAL[lowered], word)
    return word if lowered in _OTHERS else re.sub(_POLITE, "", word)


def _formal(word: str, lowered: str) -> str:
    if lowered in _TO_FORMAL:
        return capitalised_like(_TO_FORMAL[lowered], word)
    endings = () if lowered in _OTHERS else (re.fullmatch(pattern, lowered) for pattern in _FAMILIAR)
    return next((f"{word}{ending[1]}z" for ending in endings if ending), word)


def _lower(word: str) -> str:
    """In Turkish, I is the capital of ı, and İ that of i."""
    return word.replace("I", "ı").replace("İ", "i").lower()
