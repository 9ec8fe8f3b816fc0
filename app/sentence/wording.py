"""What rules tell of a sentence's wording: form of address, contraction, and the words that show them."""

from __future__ import annotations

from collections.abc import Mapping

from app.core import rows
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.data.properties import PROPERTIES, final_mark

LONGEST = 3  # words that show a property together: "est-ce que tu", "I am late"
NO_WORD = "intonation"  # a question that no word marks
USUAL = "inversion"  # the form in which a question is written in any style


def wording(text: str, lang: str) -> dict[str, str]:
    """The value of each of `rows.STYLES` that a sentence shows, as in {"address": "vous"}."""
    values = {name: PROPERTIES[name].value(text, lang) for name in rows.STYLES}
    return {name: value for name, value in values.items() if value}


def title(name: str, value: str) -> str:
    """A value as it is shown: "vous", "short form"."""
    return f"{value} form" if name == "contraction" else value


def showing(text: str, lang: str, values: Mapping[str, str]) -> set[str]:
    """The words of a text, in lower case, that show one of these values of properties by themselves, or together with
    their neighbours."""
    shown = set[str]()
    words = [] if primary(lang) in UNSPACED else text.split()
    for name, value in values.items():
        if value == NO_WORD:
            continue
        for length in range(1, LONGEST + 1):
            windows = [words[start : start + length] for start in range(len(words) - length + 1)]
            alone = (PROPERTIES[name].value(f"{' '.join(window)} {final_mark(text)}", lang) for window in windows)
            if shortest := [window for window, of in zip(windows, alone, strict=True) if of == value]:
                shown.update(word.casefold().strip(".,;:!?") for window in shortest for word in window)
                break
    return shown


def taken_over(text: str, lang: str, style: str, source: str, source_lang: str) -> dict[str, str]:
    """The values that a generated text has from the sentence that gave its style, and not from its source."""
    of_style, of_source = wording(style, lang), wording(source, source_lang)
    values = wording(text, lang)
    return {
        name: value
        for name, value in values.items()
        if of_style.get(name) == value != USUAL and of_source.get(name) != value
    }
