"""Sentences with one property of their wording exchanged by rule: "I'm late." and "I am late.", "tu viens ?" and
"est-ce que tu viens ?". Decoders learn from such pairs to take the property from the language latent.

A rule that is not sure of a sentence returns nothing. A form is kept only if it shows another value of the property
(`data.properties`) than its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bgt_core.data.exchange import english, french, german, japanese, spanish, turkish
from bgt_core.data.properties import PROPERTIES

Forms = Callable[[str], list[str]]

EXCHANGED = {  # the property that each language's rules exchange; of tu and vous there are many paraphrases
    "en": "contraction",
    "fr": "question-form",
    "es": "address",
    "de": "address",
    "tr": "address",
    "ja": "politeness",
}


def exchanger(lang: str, texts: Sequence[str], paraphrases: Sequence[Sequence[str]] = ()) -> Forms:
    """The rules of a language, with the words that German and Japanese take from text.

    Args:
        lang: One of `EXCHANGED`.
        texts: Sentences of that language, thousands.
        paraphrases: Pairs of them with one meaning.

    Returns:
        A function of a sentence: it with another value of the property, in each form that the rules know.
    """
    if lang == "de":
        rule: Forms = german.informal_to_formal(texts, paraphrases)
    elif lang == "ja":
        rule = japanese.polite_to_plain(texts)
    else:
        rule = {"en": english.forms, "fr": french.forms, "es": spanish.forms, "tr": turkish.forms}[lang]
    kind = PROPERTIES[EXCHANGED[lang]]

    def forms(text: str) -> list[str]:
        own = kind.value(text, lang)
        return [form for form in dict.fromkeys(rule(text)) if own and kind.value(form, lang) not in ("", own)]

    return forms
