"""Normalise text, convert it to token ids by one SentencePiece model for all languages, and find words in it."""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, groupby
from pathlib import Path

import numpy as np
import sentencepiece

from bgt_core.contracts import BOS, EOS, PAD, UNK
from bgt_core.data.columns import UNSPACED, primary
from bgt_core.errors import BgtError, DataError, NotFound, UsageError

TRAINING_SENTENCES = 2_000_000  # maximum size of the random sample that trains a tokenizer; limits memory
MANY = 512  # more sentences than this are tokenised in several threads; for fewer, starting threads takes too long
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's character for a space
INVISIBLE = {"Cc", "Cf", "Cs"}  # Unicode categories: controls; zero-width, bidi and soft-hyphen marks; lone surrogates


def normalise(text: str) -> str:
    """Normalise text: Unicode form NFC, no invisible characters, single spaces, no spaces at the ends.

    All parts of the toolkit use this function. Case, accents and punctuation do not change here, but a tokenizer may
    lower-case the text later. Normalised text does not change if it is normalised again.
    """
    if not text.isprintable():  # most sentences are printable, so this slow loop rarely runs
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in INVISIBLE
        )
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = text.strip(" ")  # no other white space is left
    return " ".join(text.split()) if "  " in text else text


def sentence_list(sentences: str | Iterable[str], parameter: str = "sentences") -> list[str]:
    """Make a list of N sentences, in their order; a single string is one sentence.

    Args:
        sentences: A string, or an ordered collection of strings: a list, an array, a pandas Series, a generator.
        parameter: The name of the argument in error messages.

    Raises:
        UsageError: `sentences` is of another type, such as a table or bytes, or one of its elements is not a string.
    """
    if isinstance(sentences, str):
        return [sentences]
    one_axis = isinstance(sentences, Iterable) and getattr(sentences, "ndim", 1) == 1
    if not one_axis or isinstance(sentences, bytes | bytearray | Mapping | Set):
        raise UsageError(
            f"is of type {type(sentences).__name__}; expected a string or a list of strings.", parameter=parameter
        )
    texts = list(sentences)
    if wrong := next((row for row, text in enumerate(texts, 1) if not isinstance(text, str)), 0):
        kind = type(texts[wrong - 1]).__name__
        given = f"row {wrong} of {len(texts)} is of type {kind}; expected a string."
        missing = " Drop or fill missing values." * (kind in ("NoneType", "NAType", "float"))
        raise UsageError(given + missing, parameter=parameter)
    return texts


class Tokenizer:
    """A SentencePiece model for all languages (BGT paper, sec. 4).

    `model` is the content of the model's file. Every checkpoint includes it, because it determines how text is
    tokenised, for example whether text is lower-cased.
    """

    def __init__(self, model: bytes):
        """Open a model; DataError if it is not a SentencePiece model, or its special ids are not PAD, UNK, BOS, EOS."""
        if not model:  # SentencePiece would accept an empty model, and fail at the first sentence
            raise DataError("tokenizer is empty; expected a SentencePiece model")
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise DataError("tokenizer is not a SentencePiece model, or is damaged") from error
        special = tuple(getattr(self._pieces, f"{name}_id")() for name in ("pad", "unk", "bos", "eos"))
        if special != (PAD, UNK, BOS, EOS):
            raise DataError(
                f"tokenizer has the ids {special} of pad, unk, bos, eos, not {(PAD, UNK, BOS, EOS)}; train a new one"
            )
        self.model = model
        self.sha256 = hashlib.sha256(model).hexdigest()
        self.vocab_size: int = self._pieces.get_piece_size()

    @classmethod
    def train(
        cls, sentences: Iterable[str], vocab_size: int, *, lowercase: bool, character_coverage: float = 0.9995
    ) -> Tokenizer:
        """Train a unigram model of `vocab_size` tokens, special tokens included.

        The most frequent characters, which make up `character_coverage` of the text, get tokens; others become UNK.
        The same sentences give the same model, byte for byte. Raises DataError if there is no text, or if `vocab_size`
        is too large for the text, or too small for the number of its different characters.
        """
        text = _sample(filter(None, map(normalise, sentences)), TRAINING_SENTENCES)
        if not text:
            raise DataError("there is no text to train a tokenizer on")
        file = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(text),
                model_writer=file,
                model_type="unigram",
                vocab_size=vocab_size,
                character_coverage=character_coverage,
                normalization_rule_name="nmt_nfkc_cf" if lowercase else "identity",
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                num_threads=1,  # several threads would change the order of summation, and so the model
                minloglevel=2,
            )
        except RuntimeError as error:  # explain if `vocab_size` does not fit the text
            reason = f"SentencePiece could not train {vocab_size} tokens: {error}"
            if largest := re.search(r"set it to a value <= (\d+)", str(error)):
                reason = f"vocab_size {vocab_size} is too large for this text: the largest possible is {largest[1]}"
                reason += f". In training, write --set data.vocab_size={largest[1]}"
            elif smallest := re.search(r"required_chars\. \d+ vs (\d+)", str(error)):
                reason = (
                    f"vocab_size {vocab_size} is too small for the text's characters: it needs {smallest[1]} or more"
                )
            raise DataError(reason) from error
        return cls(file.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Open the tokenizer in a file; NotFound if the file is absent, DataError if it is not a tokenizer."""
        try:
            model = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"{path}: no such tokenizer") from error
        try:
            return cls(model)
        except BgtError as error:
            raise type(error)(f"{path}: {error}") from error

    def save(self, path: Path | str) -> None:
        """Write the SentencePiece model to a file."""
        Path(path).write_bytes(self.model)

    def encode(self, sentences: str | Iterable[str], *, normalised: bool = False) -> list[list[int]]:
        """Encode N sentences as N lists of token ids, each ending in EOS.

        The sentences are first normalised, unless `normalised` is true. Raises UsageError as `sentence_list` does.
        """
        texts = list(sentences) if normalised else [normalise(text) for text in sentence_list(sentences)]
        return self._pieces.encode(texts, add_eos=True, num_threads=CORES if len(texts) > MANY else 1)

    def count_unknown(self, ids: Iterable[Sequence[int]]) -> int:
        """Count the sentences that consist of unknown tokens only; `ids` is the result of `encode`."""
        meaningless = {UNK, EOS, self._pieces.piece_to_id(SPACE)}
        return sum(len(sentence) > 1 and meaningless.issuperset(sentence) for sentence in ids)

    def words_of_tokens(self, text: str, lang: str) -> np.ndarray:
        """Return for each token of a text, except EOS, the index in `spans(text, lang)` of the word where it begins."""
        read = map(self._pieces.normalize, (normalise(text[:end]) for _, end in spans(text, lang)))
        tokens = self._pieces.encode_as_pieces(normalise(text))
        ends, lengths = ([len(part.replace(SPACE, "")) for part in parts] for parts in (read, tokens))
        return np.searchsorted(ends, np.cumsum([0, *lengths])[:-1], side="right")

    def decode(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Decode N lists of token ids; PAD, BOS and EOS are dropped, UNK becomes two question marks."""
        silent = (PAD, BOS, EOS)
        return [self._pieces.decode([int(token) for token in ids if token not in silent]) for ids in sentences]

    def probabilities(self) -> np.ndarray:
        """Return the model's unigram probability of each token, (V,) float32; 1 for special tokens."""
        scores = [self._pieces.get_score(token) for token in range(self.vocab_size)]
        return np.exp(np.array(scores, dtype=np.float32))

    def texts(self) -> list[str]:
        """Return the texts of the V tokens, with a space before tokens that begin a word; "" for special tokens."""
        special, tokens = (PAD, UNK, BOS, EOS), map(self._pieces.id_to_piece, range(self.vocab_size))
        return ["" if token in special else text.replace(SPACE, " ") for token, text in enumerate(tokens)]

    def closing_marks(self) -> np.ndarray:
        """Test which of the V tokens consist only of marks that can end a sentence, (V,) bool."""
        texts = [text.strip() for text in self.texts()]
        return np.array([bool(text) and not text.strip(".!?…。！？؟") for text in texts])


def _sample(sentences: Iterable[str], size: int) -> list[str]:
    """Draw at most `size` sentences uniformly, by reservoir sampling; SentencePiece's sampler is not reproducible."""
    kept: list[str] = []
    draw = random.Random(1)
    for seen, sentence in enumerate(sentences):
        if seen < size:
            kept.append(sentence)
        elif (index := draw.randrange(seen + 1)) < size:
            kept[index] = sentence
    return kept


# Find the words and punctuation marks of a sentence. The following constants are parts of regular expressions.


_CODES = defaultdict[str, list[int]](list)  # Unicode category -> its code points
for _code in chain(range(0x1EA00), range(0xE0000, 0xE0200)):  # ranges with all characters used below
    _CODES[unicodedata.category(chr(_code))].append(_code)


def _characters(categories: set[str]) -> str:
    """Return the characters of Unicode categories, except spaces, for the brackets of a regular expression."""
    codes = sorted(chain.from_iterable(_CODES[category] for category in categories))
    chosen = [code for code in codes if not chr(code).isspace()]
    runs = (list(run) for _, run in groupby(enumerate(chosen), lambda place: place[1] - place[0]))
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)


COMBINING = _characters({"Mn", "Mc", "Me"})  # accents, vowel signs and points on the preceding character
HIDDEN = _characters(INVISIBLE)  # joiners, direction marks and controls, which `normalise` removes
WITHIN = COMBINING + HIDDEN
LETTERS = rf"\w[\w{WITHIN}]*(?:['’‐‑·׳״-]\w[\w{WITHIN}]*)*"  # a word with its apostrophes and hyphens
_SIGN = rf"[^\w\s{HIDDEN}][{WITHIN}\U0001f3fb-\U0001f3ff]*"  # a symbol, with its variation selector or skin tone
MARK = rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_SIGN}(?:(?<=\u200d){_SIGN})*"  # a flag, a symbol, or joined emojis
WORD = re.compile(f"{LETTERS}|{MARK}")
_SCRIPTS = ("\u3040-\u309f", "\u30a0-\u30ff", "\u3400-\u9fff々")  # hiragana, katakana, Chinese characters
RUN = re.compile(
    "|".join(f"[{script}][{script}{WITHIN}]*" for script in _SCRIPTS)
    + rf"|\w(?:(?![\u3040-\u9fff])[\w{WITHIN}])*|{MARK}"
)


def spans(text: str, lang: str) -> list[tuple[int, int]]:
    """Find the (start, end) of each word and punctuation mark. In languages without spaces, such as Japanese, a word is
    a run of characters of the same script."""
    return [match.span() for match in (RUN if primary(lang) in UNSPACED else WORD).finditer(text)]


def without(text: str, lang: str) -> Iterator[str]:
    """Yield the text without its first word or punctuation mark, then without the second, and so on.

    This is a generator, because the size of a list of these texts would grow with the square of the length of `text`.
    """
    return (normalise(text[:start] + text[end:]) for start, end in spans(text, lang))
