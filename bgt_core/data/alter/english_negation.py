"""English sentences with a negation dropped or added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bgt_core.data.alter.english_words import (
    ADVERBS,
    ANIMATE,
    AUXILIARIES,
    BASES,
    BE,
    DENIED,
    DENY,
    DETERMINERS,
    MODALS,
    NAMES,
    NUMBERS,
    OBJECTS,
    PARTICIPLES,
    PASTS,
    PREPOSITIONS,
    SUBJECTS,
    THIRDS,
)
from bgt_core.data.alter.tokens import Altered, Token, joined

POSITIVE = {"any": "some", "anything": "something", "anyone": "someone", "anybody": "somebody", "anywhere": "somewhere"}
_ALL = {"nobody": "everybody", "everybody": "nobody", "everyone": "nobody", "nothing": "everything"}
_BOUND = set(  # words that occur only with a negation: without it the sentence is odd
    "anymore more yet ever either neither nor longer until till unless least all much mind hardly but help if whether "
    "let let's only just too because why used worry even".split()
)
_FREE = set(  # words that do not occur with a negation
    "some something someone somebody already still too also both only just let let's nothing nobody no none never not "
    "neither nor hardly seldom rarely without if unless why used either ought better hope wish even 've".split()
)
_PRONOUNS = {"it", "this", "that", "there", "what"}


def negations(tokens: Sequence[Token]) -> Iterator[Altered]:
    """Drop the negation of the sentence, or add one if it has none; questions have neither."""
    words = [token.lower for token in tokens]
    if not words or "?" in words:
        return
    denied = [row for row, word in enumerate(words) if word in DENIED or word in ("not", "never")]
    changed = None
    if words[0] in _ALL and _is_verb(words[1:2]):
        changed = [Token("", _ALL[words[0]]), *tokens[1:]]
    elif len(denied) == 1 and not _BOUND & set(words):
        changed = _dropped(list(tokens), words, denied[0])
    elif not denied and not _FREE & set(words):
        changed = _added(list(tokens), words)
    if changed:
        yield Altered("negation", joined(changed))


def _dropped(tokens: list[Token], words: Sequence[str], at: int) -> list[Token] | None:
    word, before, after = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    rest = [Token(token.space, POSITIVE.get(token.lower, token.text)) for token in tokens[at + 1 :]]
    if word == "never":
        return [*tokens[:at], *rest] if at else None
    if word == "not":
        if before not in AUXILIARIES or after in ("to", "only"):
            return None
        auxiliary, start = before, at - 1
    else:
        auxiliary, start = DENIED[word], at
    if auxiliary not in ("do", "does", "did"):
        kept = tokens[:at] if word == "not" else [*tokens[:at], Token(tokens[at].space, auxiliary)]
        return [*kept, *rest]
    verb = next((row for row in range(at + 1, len(words)) if words[row] not in ADVERBS), len(words))
    form = BASES.get(words[verb]) if verb < len(words) else None
    if form is None and not (auxiliary == "do" and start == 0):
        return None
    if form:
        text = {"do": form.base, "does": form.third, "did": form.past}[auxiliary]
        rest[verb - at - 1] = Token(tokens[verb].space, text)
    return [*tokens[:start], *rest]


def _added(tokens: list[Token], words: Sequence[str]) -> list[Token] | None:
    if any(word in ("and", "or", "but") and _is_verb(words[row + 1 : row + 2]) for row, word in enumerate(words)):
        return None
    end = _subject_end(tokens, words)
    if end is None:
        return _forbidden(tokens, words)
    at = next((row for row in range(end, len(words)) if words[row] not in ("really", "often", "always")), len(words))
    if at + 1 >= len(words):
        return None
    word, after, space = words[at], words[at + 1], tokens[at].space
    main_have = word in ("have", "has", "had") and after in DETERMINERS | NUMBERS | {"to", "no"} | set(OBJECTS)
    if word == "'s" and words[at - 1] not in {*SUBJECTS, *_PRONOUNS} and after not in DETERMINERS:
        return None  # a possessive
    if word in ("'m", "'re", "'s") and after not in PARTICIPLES:
        return [*tokens[: at + 1], Token(" ", "not"), *tokens[at + 1 :]]
    if word == "'ll":
        return [*tokens[:at], Token(" ", "won't"), *tokens[at + 1 :]]
    if word in BE | MODALS or (word in ("have", "has", "had") and (after in PARTICIPLES or after.endswith("ed"))):
        if word in DENY:
            return [*tokens[:at], Token(space, DENY[word]), *tokens[at + 1 :]]
        return [*tokens[: at + 1], Token(" ", "not"), *tokens[at + 1 :]]
    if (word in ("have", "has", "had") and not main_have) or (
        word in ("know", "knew") and (after in SUBJECTS or tokens[at + 1].text in NAMES)
    ):
        return None
    for forms, auxiliary in ((PASTS, "didn't"), (THIRDS, "doesn't"), (BASES, "don't")):
        if word in forms:
            return [*tokens[:at], Token(space, auxiliary), Token(" ", forms[word].base), *tokens[at + 1 :]]
    return None


def _subject_end(tokens: Sequence[Token], words: Sequence[str]) -> int | None:
    """The end of the subject that begins the sentence."""
    if words[0] in SUBJECTS or words[0] in _PRONOUNS or tokens[0].text in NAMES:
        return 1 if not (len(words) > 1 and words[1] in ("and", "or", ",")) else None
    if words[0] in DETERMINERS and len(words) > 2 and _is_verb(words[2:3]) and (
        words[1] in ANIMATE or words[2] in AUXILIARIES
    ):  # fmt: skip
        return 2
    return None


def _is_verb(words: Sequence[str]) -> bool:
    return bool(words) and (words[0] in AUXILIARIES or any(words[0] in forms for forms in (BASES, THIRDS, PASTS)))


def _forbidden(tokens: list[Token], words: Sequence[str]) -> list[Token] | None:
    """ "Open the door." -> "Don't open the door." """
    follows = words[1] if len(words) > 1 else ""
    governs = follows in DETERMINERS | PREPOSITIONS | set(OBJECTS) or not follows.isalpha()
    if words[0] in BASES and governs and words[0] not in ("thank", "suppose", "wish", "hope", "guess", "come"):
        return [Token("", "Don't"), Token(" ", words[0]), *tokens[1:]]
    return None
