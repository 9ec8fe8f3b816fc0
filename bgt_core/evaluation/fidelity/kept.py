"""What can be looked for in a sentence without understanding it: negations, numbers, its length, its final mark."""

from __future__ import annotations

import re

NEGATIONS = {  # language -> what negates, in lower-cased text with straight apostrophes
    "en": r"\b(?:not|never|no|nobody|nothing|none|nor|neither|nowhere|cannot)\b|n't\b",
    # "ne" with its second word, before it or after; "pas" without "ne", as spoken, but no step ("un pas").
    "fr": r"\bn(?:e\b|').*\b(?P<second>pas|jamais|rien|plus|personne|aucune?|guère|nulle|ni|point)\b"
    r"|\b(?:personne|rien|jamais|aucune?|ni|nulle)\b.*\bn(?:e\b|')|(?<!\bun )(?<!\ble )\bpas\b|\bnon\b|\baucune?\b",
    "es": r"\b(?:no|nunca|jamás|nada|nadie|ning(?:ún|un[oa]s?)|ni|tampoco)\b",
    "de": r"\b(?:nicht|kein(?:e[mnrs]?)?|nie|niemals|nichts|niemand(?:e[mn])?|nirgend(?:s|wo)|weder|nein)\b",
}
_NEGATIONS = {lang: re.compile(pattern) for lang, pattern in NEGATIONS.items()}

# Number words, one value a line; "one" is left out, for most of them are articles or pronouns.
NUMBER_LANGS = ("en", "fr", "es", "de")
NUMBERS = """
0 zero zéro cero null
2 two deux dos zwei
3 three trois tres drei
4 four quatre cuatro vier
5 five cinq cinco fünf
6 six six seis sechs
7 seven sept siete sieben
8 eight huit ocho acht
9 nine neuf nueve neun
10 ten dix diez zehn
11 eleven onze once elf
12 twelve douze doce zwölf
13 thirteen treize trece dreizehn
14 fourteen quatorze catorce vierzehn
15 fifteen quinze quince fünfzehn
16 sixteen seize dieciséis sechzehn
17 seventeen dix-sept diecisiete siebzehn
18 eighteen dix-huit dieciocho achtzehn
19 nineteen dix-neuf diecinueve neunzehn
20 twenty vingt veinte zwanzig
30 thirty trente treinta dreißig
40 forty quarante cuarenta vierzig
50 fifty cinquante cincuenta fünfzig
60 sixty soixante sesenta sechzig
70 seventy soixante-dix setenta siebzig
80 eighty quatre-vingts ochenta achtzig
90 ninety quatre-vingt-dix noventa neunzig
100 hundred cent cien hundert
1000 thousand mille mil tausend
1000000 million million millón million
"""
_VALUES: dict[str, dict[str, str]] = {lang: {} for lang in NUMBER_LANGS}
for _value, *_words in map(str.split, NUMBERS.strip().splitlines()):
    for _lang, _word in zip(NUMBER_LANGS, _words, strict=True):
        _VALUES[_lang][_word] = _value
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*")

UNSPACED = frozenset({"ja", "th", "zh"})  # languages whose words no spaces part: their lengths are of characters
_MARKS = str.maketrans({"。": ".", "．": ".", "？": "?", "؟": "?", "！": "!"})


def has_negation(text: str, lang: str) -> bool | None:
    """Whether a word of it negates; None for a language without a list.

    >>> has_negation("Je n'ai rien vu.", "fr"), has_negation("I can't.", "en"), has_negation("Nicht.", "xx")
    (True, True, None)
    """
    if lang not in _NEGATIONS:
        return None
    return bool(_NEGATIONS[lang].search(text.lower().replace("’", "'")))


def numbers(text: str, lang: str) -> list[str]:
    """Its numbers in figures, sorted: those written in digits and, where `lang` has a list, in words.

    >>> numbers("Trois hommes et 2 chiens", "fr")
    ['2', '3']
    """
    values = _VALUES.get(lang, {})
    read = []
    for word in _NUMBER.findall(text.lower()):
        if word[0].isdigit():
            read.append(word)
        elif word in values:
            read.append(values[word])
        else:
            read += [values[part] for part in word.split("-") if part in values]  # "twenty-five"
    return sorted(read)


def digits(text: str) -> list[str]:
    """Its numbers in digits alone, as they are written, sorted."""
    return sorted(re.findall(r"\d+(?:[.,:]\d+)*", text))


def final_mark(text: str) -> str:
    """ ".", "?", "!", "..." or "": the mark that ends it, quotes and brackets left out.

    >>> final_mark("« Où est-il ? »")
    '?'
    """
    text = text.rstrip(" \"'»”’)]").translate(_MARKS)
    if text.endswith(("...", "…")):
        return "..."
    return text[-1] if text and text[-1] in ".?!" else ""


def length(text: str, lang: str) -> int:
    """Words between spaces; characters in a language that writes none."""
    return len(text.replace(" ", "")) if lang in UNSPACED else len(text.split())
