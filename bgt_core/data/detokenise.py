"""Turn space-separated tokens back into ordinary text.

SentEval's files are tokenised as by Moses ("I can 't", "&quot;"), xprobe's in a way of their own ("l' action",
"Madrid ' in"), trees as in the Penn Treebank ("ca n't", "-LRB-"). The models read text, so tokens are joined before
use. Lost information is guessed: straight quotes open and close in turn, French keeps a space within « » and
before ! ? : ;.
"""

from __future__ import annotations

import html
import re

from bgt_core.data.text import normalise

CJK = r"\u3040-\u30ff\u3400-\u9fff"  # kana and Chinese characters, as the inside of a regular expression's brackets

_TREEBANK = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_CLOSE = frozenset(", . ; : ! ? … ... ) ] } ” » › 、 。 ، ؛ ؟".split())
_OPEN = frozenset("( [ { “ ‘ « ‹ ¿ ¡ „ ‚".split())
_FRENCH = frozenset("; : ! ? « » ‹ ›".split())  # spaces on both sides
_GERMAN = frozenset("“ ‘".split())  # „these close“
_APOSTROPHE = frozenset("' ’".split())
_ENDS = frozenset("s t re ve ll d m clock".split())
_CONTRACTED = re.compile(rf"(?:['’](?:{'|'.join(_ENDS)})|n['’]t)$", re.IGNORECASE)
_ELIDED = re.compile(r"(?:[cdjlmnst]|(?:jus|lors|puis|quoi|quel)?qu|aujourd|dell|all)$", re.IGNORECASE)
_WIDE = rf"[{CJK}\u3000-\u303f\uff00-\uffef]"  # characters, punctuation, full-width forms
_WIDE_SPACE = re.compile(f"(?<={_WIDE}) (?={_WIDE})")


def detokenise(sentence: str, lang: str) -> str:
    """Tokens separated by spaces -> normalised text."""
    tokens = [_TREEBANK.get(token, token) for token in html.unescape(sentence).replace(" @-@ ", "-").split()]
    text, glued = "", True  # glued: no space between the text and the next token
    quoting: set[str] = set()  # the kinds of quotes that are open
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        left, right = _glued(token, before, after, lang)
        if token in ('"', "'", "`") and not (left or right):
            right = token not in quoting and bool(after)
            left = not right
            quoting ^= {token}
        text += token if glued or left else f" {token}"
        glued = right
    if lang == "ja":
        text = _WIDE_SPACE.sub("", text)
    return normalise(text)


def _glued(token: str, before: str, after: str, lang: str) -> tuple[bool, bool]:
    """Whether a token is written without a space before it, and without one after."""
    if token in _APOSTROPHE:
        if lang == "tr" and before[-1:].isalnum() and after[:1].islower():  # a name and its ending
            return True, True
        if _ELIDED.match(before) or after.lower() in _ENDS:
            return True, True
        if lang == "en" and before[-1:] == "s":  # the dogs' bones
            return True, False
    if token == ":" and before[-1:].isdigit() and after[:1].isdigit():  # a time, as in 2:30
        return True, True
    if lang == "fr" and token in _FRENCH:
        return False, False
    if token in _CLOSE or (lang == "de" and token in _GERMAN):
        return True, False
    if token in _OPEN or (token in ("$", "£", "#") and after[:1].isdigit()):
        return False, True
    if token == "’":
        return True, False
    if (token[-1] in "'’" and _ELIDED.match(token[:-1])) or (token == "%" and lang == "tr"):
        return False, True
    return bool(_CONTRACTED.match(token)) or (token == "%" and lang == "en"), False
