"""Warnings about a text: tokens that the model does not know, and a language other than the chosen one."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from app.core.rows import language_name
from app.core.state import Loaded
from bgt_core.contracts import EOS, UNK
from bgt_core.data.examples import LANGS, example_sentences

SMOOTHING = 0.1  # added to each n-gram's count
CERTAIN = 10.0  # nats by which the likeliest language must lead; then about one sentence in a thousand is misjudged
LETTERS = 6  # the language of a text with fewer letters is not guessed
LATIN_END = "\u0370"  # the first character after the Latin letters
SEEN = 0.8  # minimum share of a text's n-grams that the example sentences of the guessed language contain
UNKNOWN_SHARE = 0.1  # minimum share of unknown tokens for a warning
SAMPLE = 200  # maximum number of texts that are checked
SEPARATORS = re.compile(r"[^\w']+|[\d_]+")
ADDRESSES = re.compile(r"\S+[@/]\S*|www\.\S+")
INSIDE = re.compile(r"(?<!^)(?<![.!?…] )(?<![¿¡«“\"(])\b\w+")  # words that are not the first word of a sentence

Profiles = Mapping[str, Mapping[str, float]]  # language -> n-gram -> log-probability; the key "" is for unseen n-grams


def ngrams(text: str) -> list[str]:
    """Return the n-grams of one to three characters of a text. Everything between two words counts as one space."""
    text = f" {SEPARATORS.sub(' ', text.lower().replace('’', chr(39))).strip()} "
    return [text[at : at + n] for n in (1, 2, 3) for at in range(len(text) - n + 1) if text[at : at + n] != " "]


def profiles(sentences: Mapping[str, Sequence[str]]) -> Profiles:
    """Estimate the log-probability of each n-gram in each language, from example sentences (naive Bayes)."""
    counts = {lang: Counter(gram for text in texts for gram in ngrams(text)) for lang, texts in sentences.items()}
    kinds = len(set().union(*counts.values()))
    logs = {}
    for lang, count in counts.items():
        total = count.total() + SMOOTHING * kinds
        logs[lang] = {gram: math.log((number + SMOOTHING) / total) for gram, number in count.items()}
        logs[lang][""] = math.log(SMOOTHING / total)
    return logs


@cache
def shipped_profiles() -> Profiles:
    return profiles({lang: [text for (text,) in example_sentences([lang])] for lang in LANGS})


def likeliest(grams: Collection[str], known: Profiles) -> tuple[str, dict[str, float]]:
    """Return the language in which the n-grams are likeliest ("" without any), and how many nats less likely they are
    in each language."""
    if not grams:
        return "", {}
    likelihoods = {lang: sum(log.get(gram, log[""]) for gram in grams) for lang, log in known.items()}
    best = max(likelihoods, key=likelihoods.__getitem__)
    return best, {lang: likelihoods[best] - value for lang, value in likelihoods.items()}


def another_language(text: str, lang: str, known: Profiles | None = None) -> str:
    """Guess the language of a text; return "" unless it is certainly not `lang`. Addresses and names are ignored."""
    known = known or shipped_profiles()
    text = ADDRESSES.sub(" ", text.strip())
    if not text.isupper():
        text = INSIDE.sub(lambda word: " " if word[0][0].isupper() else word[0], text)
    words = dict.fromkeys(SEPARATORS.sub(" ", text.lower()).split())
    letters = [char for char in "".join(words) if char.isalpha()]
    latin = 2 * sum(char < LATIN_END for char in letters) > len(letters)
    if len(letters) < LETTERS or (latin and len(words) < 2):
        return ""
    grams = set(ngrams(" ".join(words)))
    best, behind = likeliest(grams, known)
    telling = [gram for gram in grams if len(gram) == (3 if latin else 1)]
    seen = sum(gram in known[best] for gram in telling) >= SEEN * len(telling)
    return best if seen and behind.get(lang, 0.0) > CERTAIN else ""


def guess(texts: Sequence[str]) -> str:
    """Guess the language of each text, and return the most frequent language; "" if no text has letters."""
    best = Counter(likeliest(ngrams(text), shipped_profiles())[0] for text in sample(texts))
    del best[""]
    return best.most_common(1)[0][0] if best else ""


def sample(texts: Sequence[str]) -> Sequence[str]:
    """Return at most `SAMPLE` of the texts, evenly spread over the list."""
    return list(texts[:: max(1, math.ceil(len(texts) / SAMPLE))])


def other_language(texts: Sequence[str], lang: str) -> str:
    """Return the most frequent other language if more than half of the texts are certainly not in `lang`, else ""."""
    looked_at = sample([text for text in texts if text.strip()])
    others = Counter(filter(None, (another_language(text, lang) for text in looked_at)))
    return others.most_common(1)[0][0] if others.total() > len(looked_at) / 2 else ""


def warnings(loaded: Loaded, texts: Sequence[str], lang: str) -> list[str]:
    """Return warnings about texts that should be in `lang`. Each warning is one sentence."""
    concerns = []
    if loaded.bgt is not None:  # the tokens of external encoders can't be counted
        rows = loaded.bgt.tokenizer.encode(sample([text for text in texts if text.strip()]))
        tokens = [token for row in rows for token in row if token != EOS]
        missing = tokens.count(UNK)
        if missing and missing >= UNKNOWN_SHARE * len(tokens):
            concerns.append(f"{missing:,} of {len(tokens):,} tokens are unknown to this model.")
    if other := other_language(texts, lang):
        looks = f"This looks like {language_name(other)}"
        known = f"{looks}, not {language_name(lang)}: choose its language."
        concerns.append(known if other in loaded.langs else f"{looks}, which this model does not know.")
    return concerns
