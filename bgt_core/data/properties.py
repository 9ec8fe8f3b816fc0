"""Find, by rules, properties of wording that a translation may lose, such as the form of address.

The probing tasks with the same names (`probes.tasks`) state the source of each rule, and its accuracy on sentences that
people labelled. The rules ignore case, except in German, where only the capital distinguishes the formal Sie from "she"
and "they". In German text without any capitals, "sie" with a plural verb counts as formal.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bgt_core.data.columns import primary

WORDING: dict[str, Any] = tomllib.loads(Path(__file__).with_name("wording.toml").read_text("utf-8"))
APOSTROPHES = str.maketrans(dict.fromkeys("’´`ʼ′", "'"))
_SAME_MARKS = str.maketrans({"。": ".", "．": ".", "۔": ".", "।": ".", "？": "?", "؟": "?", "！": "!"})
_CLOSING = " \u00a0\u202f\"'»”’)]」』"  # spaces, quotes and brackets that may follow a final mark

Rule = Callable[[str], str]  # function of a text to its value of a property; "" if the text shows no value or several


def final_mark(text: str) -> str:
    """Return the mark that ends the sentence, ".", "?", "!", "..." or ""; quotes and brackets are ignored.

    >>> final_mark("« Où est-il ? »")
    '?'
    """
    text = text.rstrip(_CLOSING).translate(_SAME_MARKS)
    if text.endswith(("...", "…")):
        return "..."
    return text[-1] if text and text[-1] in ".?!" else ""


def _patterns(patterns: Mapping[str, Iterable[str]], flags: int = re.IGNORECASE) -> dict[str, re.Pattern[str]]:
    return {name: re.compile("|".join(alternatives), flags) for name, alternatives in patterns.items()}


def _one_of(patterns: Mapping[str, Iterable[str]]) -> Rule:
    """Make a rule: it returns the value whose pattern matches a text, if the patterns of all other values don't."""
    compiled = _patterns(patterns)

    def rule(text: str) -> str:
        occurring = [value for value, pattern in compiled.items() if pattern.search(text)]
        return occurring[0] if len(occurring) == 1 else ""

    return rule


_DE = _patterns(WORDING["address"]["de"], 0)


def _german_address(text: str) -> str:
    formal = _DE["lowered" if text == text.lower() else "formal"].search(text)
    informal = _DE["informal"].search(text)
    return "" if bool(formal) == bool(informal) else "du" if informal else "Sie"


_FR = _patterns(WORDING["question-form"]["fr"])
_ASKED = re.compile(rf"\W*(?:et )?{_FR['asking'].pattern}", re.IGNORECASE)
_STATED = re.compile(_ASKED.pattern + _FR["statement"].pattern, re.IGNORECASE)


def _question_form(text: str) -> str:
    if final_mark(text) != "?":
        return ""
    if _FR["est-ce-que"].search(text):
        return "est-ce que"
    if _FR["inverted"].search(text):
        return "inversion"
    return "intonation" if _STATED.match(text) or not _ASKED.match(text) else ""


_JA = _patterns(WORDING["politeness"]["ja"], 0)


def _politeness(text: str) -> str:
    text = text.rstrip(f"{_CLOSING}.。．?？!！…～~ー")
    return next((value for value, pattern in _JA.items() if pattern.search(text)), "")


class Property(NamedTuple):
    """A property of wording, with a rule for each language that has the property."""

    rules: Mapping[str, Rule]  # language -> rule; the rule of the key "" is for all other languages

    def value(self, text: str, lang: str) -> str:
        """Return the value that `text` shows; "" if it shows no value or several, or `lang` lacks the property."""
        rule = self.rules.get(primary(lang), self.rules.get(""))
        return rule(text.translate(APOSTROPHES)) if rule else ""


_OF_MARK = {".": "statement", "?": "question", "!": "exclamation"}
PROPERTIES = {
    "address": Property({lang: _one_of(by) for lang, by in WORDING["address"].items()} | {"de": _german_address}),
    "politeness": Property({"ja": _politeness}),
    "contraction": Property({"en": _one_of(WORDING["contraction"]["en"])}),
    "question-form": Property({"fr": _question_form}),
    "sentence-type": Property({"": lambda text: _OF_MARK.get(final_mark(text), "")}),
}


def values(text: str, lang: str) -> tuple[str, ...]:
    """Return the value of each of `PROPERTIES` that a text shows, or ""."""
    return tuple(each.value(text, lang) for each in PROPERTIES.values())


def signature(text: str, lang: str) -> tuple[str | bool, ...]:
    """Describe the style of a sentence: the value of each property, and whether each wording of its language occurs.

    >>> signature("It's late.", "en") == signature("That's Tom.", "en") != signature("It is late.", "en")
    True
    """
    straight = text.translate(APOSTROPHES)
    wordings = (
        bool(re.search(pattern, straight, re.IGNORECASE)) for pattern in WORDING["wordings"].get(primary(lang), ())
    )
    return (*values(text, lang), *wordings)
