"""German du to Sie: "Hast du Zeit?" -> "Haben Sie Zeit?"."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from bgt_core.data.exchange.cases import capitalised_like
from bgt_core.data.properties import PROPERTIES

_PRONOUNS = {
    "du": "Sie",
    "dich": "Sie",
    "dir": "Ihnen",
    **{f"dein{ending}": f"Ihr{ending}" for ending in ("", "e", "en", "em", "er", "es")},
}
_OTHERS = frozenset(  # they end as a verb with du does
    "ist fast erst meist selbst sonst einst rest fest ernst west ost prost zuerst längst jüngst nächst last".split()
)
_NO_IMPERATIVE = r"(?:Ich|Wir|Er|Es|Das|Der|Die|Tom|Maria|Wo|Was|Wer|Wie|Wann|Ist|Sind|Hat|Dies\w*|Mein\w*|Kann|Hier)\b"
_LEAST = 3  # times that a plural form must occur


def informal_to_formal(texts: Sequence[str], paraphrases: Sequence[Sequence[str]]) -> Callable[[str], list[str]]:
    """The rule; the verb's form with Sie is that of paraphrases, or the plural that occurs in the texts."""
    plurals = Counter(word for text in texts for word in _words(text.lower()) if word.endswith("n"))
    learnt = _verbs(paraphrases)

    def formal(verb: str) -> str:
        if verb in learnt:
            return learnt[verb]
        stems = (verb.removesuffix("est"), verb.removesuffix("st"), verb.removesuffix("t"))
        made = (stem + ending for stem in stems if stem != verb for ending in ("en", "n"))
        return next((form for form in made if plurals[form] >= _LEAST), "")

    def forms(text: str) -> list[str]:
        addressed = re.search(r"\bdu\b", text, re.IGNORECASE)
        if addressed and re.search(r"\bdi(?:r|ch)\b", text, re.IGNORECASE):  # perhaps "sich"
            return []
        if PROPERTIES["address"].value(text, "de") != "du" or not (addressed or re.match(_NO_IMPERATIVE, text)):
            return []
        unknown: list[str] = []
        verbs: list[str] = []

        def exchanged(found: re.Match[str]) -> str:
            word, lowered = found[0], found[0].lower()
            noun = word[0].isupper() and found.start() > 0
            if lowered in _PRONOUNS:
                return _PRONOUNS[lowered]
            if not lowered.endswith("st") or lowered in _OTHERS or noun:
                return word
            form = formal(lowered)
            (verbs if form else unknown).append(word)
            return capitalised_like(form, word)

        form = re.sub(r"\w+", exchanged, text)
        return [] if unknown or (addressed and not verbs) else [form]

    return forms


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def _verbs(paraphrases: Sequence[Sequence[str]]) -> dict[str, str]:
    """The most common form with Sie of each verb form with du, from paraphrases of equally many words."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in paraphrases:
        by_value = {PROPERTIES["address"].value(text, "de"): _words(text.lower()) for text in pair}
        informal, formal = by_value.get("du", []), by_value.get("Sie", [])
        if len(informal) == len(formal):
            for word, other in zip(informal, formal, strict=True):
                seen[word][other] += 1
    common = {word: forms.most_common(1)[0][0] for word, forms in seen.items()}
    return {word: form for word, form in common.items() if word.endswith("st") and form != word and form[-1] in "nd"}
