"""Read parsed sentences from bracketed trees (Penn Treebank) or CoNLL-U files, and join their tokens to ordinary text.

The models expect ordinary text, but the data of evaluations are tokenised. SentEval's files were tokenised by Moses ("I
can 't", "&quot;"), and xprobe's files by other rules ("l' action", "Madrid ' in"). Trees have the tokens of the Penn
Treebank ("ca n't", "-LRB-"). `detokenise` guesses the original spaces.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import conllu
from conllu.exceptions import ParseException

from bgt_core.data.text import normalise
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError

CJK = r"\u3040-\u30ff\u3400-\u9fff"  # kana and Chinese characters, for the brackets of a regular expression

_TREEBANK = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_CLOSE = frozenset(", . ; : ! ? … ... ) ] } ” » › 、 。 ، ؛ ؟".split())
_OPEN = frozenset("( [ { “ ‘ « ‹ ¿ ¡ „ ‚".split())
_FRENCH = frozenset("; : ! ? « » ‹ ›".split())  # marks that have spaces on both sides in French
_GERMAN = frozenset("“ ‘".split())  # closing quotes in German, as in „so“
_APOSTROPHE = frozenset("' ’".split())
_ENDS = frozenset("s t re ve ll d m clock".split())
_CONTRACTED = re.compile(rf"(?:['’](?:{'|'.join(_ENDS)})|n['’]t)$", re.IGNORECASE)
_ELIDED = re.compile(r"(?:[cdjlmnst]|(?:jus|lors|puis|quoi|quel)?qu|aujourd|dell|all)$", re.IGNORECASE)
_WIDE = rf"[{CJK}\u3000-\u303f\uff00-\uffef]"  # CJK characters, CJK punctuation, full-width forms
_WIDE_SPACE = re.compile(f"(?<={_WIDE}) (?={_WIDE})")


def detokenise(sentence: str, lang: str) -> str:
    """Turn a tokenised sentence, with spaces between its tokens, into ordinary normalised text."""
    tokens = [_TREEBANK.get(token, token) for token in html.unescape(sentence).replace(" @-@ ", "-").split()]
    text, glued = "", True  # `glued` is true if no space precedes the next token
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
    """Return two flags: whether a token follows the text before it without a space, and whether no space follows it."""
    if token in _APOSTROPHE:
        if lang == "tr" and before[-1:].isalnum() and after[:1].islower():  # a name and its ending, as in Ali'nin
            return True, True
        if _ELIDED.match(before) or after.lower() in _ENDS:
            return True, True
        if lang == "en" and before[-1:] == "s":  # an apostrophe as in "the dogs' bones"
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


# The following classes and functions read bracketed trees of the Penn Treebank: (S (NP (DT The) (NN cat)) (VP ...)).

DEEPEST = 200  # maximum nesting of brackets, because trees are walked by recursion; real sentences are far less nested
_PART = re.compile(r"[()]|[^\s()]+")
ROOTS = frozenset({"", "ROOT", "TOP", "S1"})  # labels of a bracket around a whole sentence
_EMPTY = "-NONE-"  # label of a trace


@dataclass(frozen=True)
class Tree:
    """A constituent with its children, or a part of speech with its word. The top constituent stands for the sentence.

    Labels are shortened to the category: "NP" for "NP-SBJ". Traces, and constituents that contain only traces, are left
    out.
    """

    label: str
    children: tuple[Tree, ...] = ()
    word: str = ""  # "" for a constituent; a part of speech has a word, but no children

    @property
    def leaves(self) -> list[Tree]:
        """The leaves of the tree in order: parts of speech with their words."""
        return [leaf for child in self.children for leaf in child.leaves] if self.children else [self]

    @property
    def depth(self) -> int:
        """The number of constituents above the deepest word, not counting the word's part of speech."""
        return 1 + max(child.depth for child in self.children) if self.children else 0

    def text(self, lang: str) -> str:
        """Join the words of the tree into ordinary text."""
        return detokenise(" ".join(leaf.word for leaf in self.leaves), lang)


def read_trees(files: Sequence[Path]) -> list[Tree]:
    """Read the trees of all files (plain, .gz, .xz, .zst); a tree may span several lines.

    A bracket around a whole sentence, such as (ROOT ...), is removed. Raises DataError, with file and line, for an
    invalid tree.
    """
    return [tree for file in files for tree in _trees(file)]


def _trees(file: Path) -> Iterator[Tree]:
    stack: list[tuple[str, list[Tree], list[str]]] = []  # per open bracket: location, children, label and word
    after_bracket = False
    for number, line in text_lines(file):
        location = f"{file}:{number}"
        for part in _PART.findall(line):
            if part == "(":
                if stack and len(stack[-1][2]) == 2:
                    raise DataError(f"{location}: a bracket after the word '{stack[-1][2][1]}'; expected ')'.")
                if len(stack) == DEEPEST:
                    raise DataError(f"{location}: {DEEPEST} open brackets; expected the tree of one sentence.")
                stack.append((location, [], []))
            elif not stack:
                raise DataError(f"{location}: '{part}' outside any bracket; expected a tree, as in (S (NN Rain)).")
            elif part == ")":
                tree = _closed(*stack.pop()[1:])
                if tree and stack:
                    stack[-1][1].append(tree)
                elif tree:
                    while tree.label in ROOTS and len(tree.children) == 1:
                        (tree,) = tree.children
                    yield tree
            elif after_bracket or (len(stack[-1][2]) == 1 and not stack[-1][1]):
                stack[-1][2].append(part)
            else:
                raise DataError(f"{location}: word '{part}' without a part of speech; expected one, as in (NN {part}).")
            after_bracket = part == "("
    if stack:
        raise DataError(f"{stack[0][0]}: this bracket is never closed.")


def _closed(children: list[Tree], names: list[str]) -> Tree | None:
    """Make the tree of a closed bracket; return None if it contains no word."""
    full, word = [*names, "", ""][:2]
    # remove grammatical functions and indices (NP-SBJ-1 -> NP, S=2 -> S), but keep -LRB- as it is
    label = full if full.startswith("-") else re.split("[-=|]", full)[0] or full
    if children:
        return Tree(label, tuple(children))
    return Tree(label, word=word) if word and full != _EMPTY else None


# CoNLL-U (universaldependencies.org/format.html): read parsed sentences, and check that each is a tree.

COLUMNS = 10
FIELDS = ("id", "form", "upos", "feats", "head", "deprel", "misc")  # the columns of CoNLL-U that are read


@dataclass(frozen=True)
class Word:
    """A syntactic word of a sentence."""

    number: int  # the position of the word in the sentence, from 1
    form: str
    upos: str
    feats: dict[str, str]
    head: int  # the number of the word's head; 0 for the root
    relation: str  # the relation to the head, with a subtype, as in nsubj:pass

    def is_a(self, relation: str) -> bool:
        """Test whether the word's dependency relation to its head is `relation`, with any subtype."""
        return self.relation.partition(":")[0] == relation


@dataclass(frozen=True)
class Surface:
    """A token of the written text: a word, or several words written as one (French "du" is "de" and "le")."""

    first: int  # `Word.number` of the first word
    last: int  # `Word.number` of the last word
    form: str
    space: bool  # whether a space follows the token


@dataclass(frozen=True)
class Parsed:
    """A parsed sentence; its words form a tree with one root."""

    words: list[Word]
    surfaces: list[Surface]

    @cached_property
    def children(self) -> dict[int, list[Word]]:
        """Map each word's number to the words that depend on it, in order. The only dependent of 0 is the root."""
        dependents: dict[int, list[Word]] = {number: [] for number in range(len(self.words) + 1)}
        for word in self.words:
            dependents[word.head].append(word)
        return dependents

    @property
    def root(self) -> Word:
        return self.children[0][0]

    def under(self, word: Word) -> set[int]:
        """Return the numbers of a word and of all its descendants."""
        numbers, stack = set(), [word]
        while stack:
            numbers.add(stack[-1].number)
            stack += self.children[stack.pop().number]
        return numbers

    def text(self, surfaces: Sequence[Surface] | None = None) -> str:
        """Return the text of the sentence, or only the text of the given tokens."""
        parts = self.surfaces if surfaces is None else surfaces
        return normalise("".join(part.form + " " * part.space for part in parts))


def read_conllu(files: Sequence[Path]) -> list[Parsed]:
    """Read the sentences of all files (plain, .gz, .xz, .zst).

    Raises DataError, with file and line, for a sentence that is not valid CoNLL-U or not a tree.
    """
    sentences = []
    for file in files:
        for blank, lines in groupby(_rows(file), lambda row: not row[1]):
            if not blank:
                numbers, rows = zip(*lines, strict=True)
                sentences.append(_parsed(rows, f"{file}:{numbers[0]}"))
    return sentences


def _rows(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a CoNLL-U file, without its comments; sentences are separated by empty lines."""
    for number, line in text_lines(file):
        if line.startswith("#"):
            continue
        if line.strip() and (columns := line.count("\t") + 1) != COLUMNS:
            raise DataError(f"{file}:{number}: {columns} columns; CoNLL-U has {COLUMNS}, separated by tabs.")
        # merge spaces, because conllu would treat two spaces as a tab
        yield number, re.sub(" {2,}", " ", line) if line.strip() else ""


def _parsed(rows: Sequence[str], location: str) -> Parsed:
    """Parse and check one sentence; `location` is the file and the line of its first word."""
    words: list[Word] = []
    surfaces: list[Surface] = []
    try:
        (tokens,) = conllu.parse("\n".join(rows))
    except (ParseException, ValueError) as error:
        raise DataError(f"{location}: sentence with a bad number: {error}") from None
    for token in tokens:
        if missing := [name for name in FIELDS if name not in token]:
            raise DataError(f"{location}: sentence with a word that has no {missing[0]}.")
        space = (token["misc"] or {}).get("SpaceAfter") != "No"
        number = token["id"]
        if not isinstance(number, int):
            if number and number[1] == "-":  # "3-4" is two words written as one; "4.1", an empty node, is skipped
                surfaces.append(Surface(number[0], number[2], token["form"], space))
            continue
        feats = token["feats"] or {}
        if token["head"] is None or not all(feats.values()):
            raise DataError(f"{location}: sentence whose word {number}, {token['form']}, has no head or feature value.")
        words.append(Word(number, token["form"], token["upos"], feats, token["head"], token["deprel"]))
        if not (surfaces and surfaces[-1].first <= number <= surfaces[-1].last):
            surfaces.append(Surface(number, number, token["form"], space))
    parsed = Parsed(words, surfaces)
    roots = sum(word.head == 0 for word in words)
    if [word.number for word in words] != list(range(1, len(words) + 1)):
        raise DataError(f"{location}: sentence whose words are not numbered 1, 2, 3, ...")
    if roots != 1 or not all(0 <= word.head <= len(words) for word in words):
        raise DataError(f"{location}: sentence with {roots} roots or a head that is not a word; expected one root.")
    if len(parsed.under(parsed.root)) < len(words):
        raise DataError(f"{location}: sentence with a cycle; expected a tree.")
    return parsed
