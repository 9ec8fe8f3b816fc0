"""Classes of the words of a sentence, by rules: function words, numbers, names, punctuation, other words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from bgt_core.data.languages import primary
from bgt_core.data.text import normalise
from bgt_core.data.words import COMBINING, MARK
from bgt_core.evaluation.fidelity.kept import NAME_LANGS

FUNCTION, NUMBER, NAME, PUNCTUATION, OTHER, END = "function", "number", "name", "punctuation", "other", "end"
CLASSES = (FUNCTION, NUMBER, NAME, PUNCTUATION, OTHER, END)  # END: that the sentence ends

_FUNCTION = {  # articles, pronouns, prepositions, conjunctions, auxiliaries, negations, question words
    "en": """a an the this that these those i you he she it we they me him her us them my your his its our their mine
        yours hers ours theirs myself yourself himself herself itself ourselves themselves who whom whose which what
        where when why how of in on at to from by with without for about into over under after before between through
        during since until as than and or but if because though although while so nor yet not no never don doesn
        didn isn aren wasn weren won wouldn shouldn couldn be am is are was were been being do does did done doing
        have has had having will would shall should can could may might must ll ve re d s t m there here up down out off
        too very just any some each every all both either neither""",
    "fr": """le la les l un une des du de d ce cet cette ces c je j tu il elle on nous vous ils elles me m te t se s lui
        leur leurs y en mon ma mes ton ta tes son sa ses notre nos votre vos moi toi soi eux qui que qu quoi dont où
        quand pourquoi comment combien quel quelle quels quelles à au aux dans sur sous avec sans pour par chez vers
        entre avant après depuis pendant jusqu et ou mais si car donc ni ne n pas jamais rien plus aucun aucune parce
        lorsque lorsqu puisque puisqu comme être suis es est sommes êtes sont étais était étions étiez étaient été sera
        serait avoir ai as a avons avez ont avais avait avions aviez avaient eu aura aurait fait faire là ici très trop
        tout toute tous toutes""",
    "es": """el la los las lo un una unos unas este esta esto estos estas ese esa eso esos esas yo tú él ella usted
        nosotros vosotros ellos ellas ustedes me te se nos os le les mi mis tu tus su sus nuestro nuestra quien que qué
        cual donde dónde cuando cuándo cómo por para con sin de del a al en sobre entre hasta desde y e o u pero si
        porque como no nunca nada nadie ni ser soy eres es somos son era eran fue fueron estar estoy está están estaba
        haber he has ha hemos han había hay muy más ya""",
    "de": """der die das den dem des ein eine einen einem einer eines dieser diese dieses ich du er sie es wir ihr mich
        dich ihn uns euch mir dir ihm ihnen mein meine dein deine sein seine unser euer wer was wo wann warum wie in im
        an am auf aus bei mit nach von vom zu zum zur für ohne um über unter vor zwischen und oder aber wenn weil dass
        ob als nicht kein keine nie nichts bin bist ist sind seid war waren gewesen habe hast hat haben hatte hatten
        werde wirst wird werden wurde kann können konnte muss müssen will wollen soll sollte sehr auch nur""",
}
FUNCTION_WORDS = {lang: frozenset(words.split()) for lang, words in _FUNCTION.items()}
_DIGIT = rf"\d[{COMBINING}]*"
_PART = re.compile(rf"{_DIGIT}(?:[.,:]*{_DIGIT})*|[^\W\d_](?:[^\W\d_]|[{COMBINING}])*|{MARK}|_")
_SENTENCE_STARTS = re.compile(r"(?:^|[.!?…:;«»“”\"(—–-])\s*$")


def words(text: str, lang: str) -> Iterator[tuple[int, int, str]]:
    """Yield first character, end and class of each word, number and mark of a normalised text.

    A word is a run of letters with their accents and vowel signs, so that "don't" is two words and a mark. A name is a
    capitalised word inside a sentence ("I" aside), if the language capitalises names alone; in other languages names
    are "other", as are function words of a language without a list.

    >>> [kind for *_, kind in words("Is Tom 5?", "en")]
    ['function', 'name', 'number', 'punctuation']
    """
    functions = FUNCTION_WORDS.get(primary(lang), frozenset())
    for match in _PART.finditer(text):
        word = match[0]
        if word[0].isdigit():
            kind = NUMBER
        elif not word[0].isalpha():
            kind = PUNCTUATION
        elif word.lower() in functions:
            kind = FUNCTION
        elif primary(lang) in NAME_LANGS and word[0].isupper() and not _SENTENCE_STARTS.search(text[: match.start()]):
            kind = NAME
        else:
            kind = OTHER
        yield *match.span(), kind


def count_classes(text: str, lang: str) -> np.ndarray:
    """The number of words of each class, in the order of `CLASSES`, with one end: (C,)."""
    kinds = [*(kind for *_, kind in words(normalise(text), lang)), END]
    return np.array([kinds.count(kind) for kind in CLASSES])


def token_classes(text: str, tokens: Sequence[str], lang: str) -> list[str]:
    """The class of each token of a sentence: that of its first character that is no space.

    Tokens are aligned with the text by their letters and marks, in order; a character that the tokenizer replaced by
    several, or by another, moves the alignment by as much, until the next space.

    Args:
        text: The sentence.
        tokens: The texts of its tokens, without that for its end; a token that begins a word begins with a space.
        lang: Its language.

    Returns:
        A class for each token, and `END`.
    """
    text = normalise(text)
    kinds = np.empty(len(text), dtype=object)  # of each character; none of spaces
    for start, end, kind in words(text, lang):
        kinds[start:end] = kind
    spaced = [list(kinds[match.start() : match.end()]) for match in re.finditer(r"\S+", text)] or [[OTHER]]
    classes, word, place = [], -1, 0
    for token in tokens:
        if token.startswith(" ") or word < 0:
            word, place = word + 1, 0
        within = spaced[min(word, len(spaced) - 1)]
        classes.append(within[min(place, len(within) - 1)])
        place += len(token.strip())
    return [*classes, END]
