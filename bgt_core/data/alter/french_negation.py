"""French sentences with a negation dropped or added."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bgt_core.data.alter.french_words import CLITICS, ETRE, FORMS, NAMES, NOUN_FORMS, PREPOSITIONS, SUBJECTS
from bgt_core.data.alter.tokens import Altered, Token, joined
from bgt_core.grammar.words import VOWEL

_DENY = ("pas", "plus", "jamais")
_BOUND = set(
    "de d' que qu' encore non ni personne rien aucun aucune guère point du tout si car beaucoup grand mal".split()
)
_FREE = set(
    """
    ne n' déjà encore toujours aussi seulement juste quelque quelques quelqu' quelqu'un rien personne aucun aucune
    jamais ni sans non si plus
    """.split()
)
_INVERTED = re.compile(r"-(?:je|tu|il|elle|on|nous|vous|ils|elles|ce|t)\b")
_NOT_DROPPED = set("qu' que aucun aucune personne rien ni".split())
_ELIDE = {"je", "ce", "de", "que", "ne", "me", "te", "se"}
_PARTITIVE = {"un", "une", "des", "du"}


def negations(tokens: Sequence[Token]) -> Iterator[Altered]:
    """Drop the negation of the sentence, or add one if it has none; questions have neither."""
    words = [token.lower for token in tokens]
    if not words or "?" in words or any(map(_INVERTED.search, words)):
        return
    changed = None
    if {"ne", "n'"} & set(words):
        changed = _dropped(list(tokens), words)
    elif not _FREE & set(words):
        changed = _added(list(tokens), words)
    if changed:
        yield Altered("negation", joined(changed))


def _dropped(tokens: list[Token], words: Sequence[str]) -> list[Token] | None:
    particles = [row for row, word in enumerate(words) if word in ("ne", "n'")]
    start = particles[0]
    denial = next((row for row in range(start + 1, min(start + 6, len(words))) if words[row] in _DENY), None)
    if len(particles) > 1 or denial is None or (start == 0 and words[1] in CLITICS):
        return None
    after = words[denial + 1] if denial + 1 < len(words) else ""
    if after in _BOUND or _NOT_DROPPED & set(words):
        return None
    kept = [*tokens[:start], *tokens[start + 1 : denial], *tokens[denial + 1 :]]
    if start == len(kept):  # no word follows the negation
        return None
    if start == 0:
        return kept
    kept[start] = Token(tokens[start].space, kept[start].text)
    return _elided(kept, start)


def _elided(tokens: list[Token], row: int) -> list[Token]:
    """ "je ai" -> "j'ai": the token before `row`."""
    before = tokens[row - 1]
    if before.lower in _ELIDE and VOWEL.match(tokens[row].text):
        tokens[row - 1] = Token(before.space, before.text[:-1] + "'")
        tokens[row] = Token("", tokens[row].text)
    return tokens


def _added(tokens: list[Token], words: Sequence[str]) -> list[Token] | None:
    end = _subject_end(tokens, words)
    if end is None:
        return None
    verb = next((row for row in range(end, len(words)) if words[row] not in CLITICS), len(words))
    if verb + 1 > len(words) - 1 or not re.fullmatch(r"[\w-]+", words[verb]) or words[verb] in PREPOSITIONS:
        return None
    after = words[verb + 1]
    thought = {"savoir", "penser", "croire"} & {each for each, _, _ in FORMS.get(words[verb], ())}
    if (thought and after in ("que", "qu'")) or (after in _PARTITIVE and "et" in words):
        return None
    subject = tokens[:end]
    if subject[-1].text.lower() in ("j'", "c'"):
        subject[-1] = Token(subject[-1].space, subject[-1].text[:-1] + "e")
    first = tokens[end].text
    elided = first == "y" or VOWEL.match(first) is not None
    middle = [Token(" ", "n'" if elided else "ne"), Token("" if elided else " ", first), *tokens[end + 1 : verb + 1]]
    rest = tokens[verb + 1 :]
    if after in _PARTITIVE and words[verb] not in ETRE and len(rest) > 1:
        vowel = VOWEL.match(rest[1].text) is not None
        rest = [Token(" ", "d'" if vowel else "de"), Token("" if vowel else " ", rest[1].text), *rest[2:]]
    return [*subject, *middle, Token(" ", "pas"), *rest]


def _subject_end(tokens: Sequence[Token], words: Sequence[str]) -> int | None:
    """The end of the subject that begins the sentence."""
    if words[0] in SUBJECTS or words[0] in ("ce", "c'", "ça", "cela"):
        return 1 if words[0] != "ce" or words[1:2] == ["sont"] else None
    if tokens[0].text in NAMES and len(words) > 1 and (words[1] in FORMS or words[1] in CLITICS):
        return 1
    if len(words) > 2 and words[1] in NOUN_FORMS and words[2] in FORMS:
        return 2
    return None
