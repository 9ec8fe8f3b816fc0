"""Tables with one row per sentence, and counts of its words and punctuation marks; guesses of a text's language."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from bgt_core.data.columns import primary
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.data.properties import PROPERTIES, final_mark
from bgt_core.data.text import normalise
from bgt_core.evaluation.facts import has_negation

# Each line: a language's code, its English name, and its names in other languages, as in users' column titles.
_LANGUAGES = [line.split("\t") for line in Path(__file__).with_name("languages.tsv").read_text("utf-8").splitlines()]
LANGUAGE_NAMES = {code: name for code, name, _ in _LANGUAGES}
COUNTED = {"words": "Length in words", "punctuation": "Punctuation marks", "mark": "Closing mark"}
STYLES = {  # style property of `bgt_core.data.properties` (also a probing task) -> title
    "address": "Form of address", "politeness": "Politeness", "contraction": "Contraction",
    "question-form": "Form of the question",
}  # fmt: skip
TOPIC = "topic"
COLOURS = {"mark": COUNTED["mark"], **STYLES, TOPIC: "Topic", **COUNTED, "lang": "Language"}
OWN_COLUMN = "own:"  # prefix of the names of columns that the user uploaded
MARKS = {".": "full stop", "!": "exclamation", "?": "question", "...": "ellipsis"}
NEGATION_LANGS = ("en", "fr", "es", "de", "ja", "ar")  # Turkish is excluded, because it negates inside words
ARABIC_NEGATION = re.compile(r"(?<!\w)(?:لا|لم|لن|ليس|ليست|لست|لسنا|ليسوا|غير)(?!\w)")
MAX_OWN = 200  # maximum number of sentences that a user can type
CATEGORIES = 6  # maximum number of categories; readers could not tell more colours apart
OTHER, NONE = "other", "none"
SMOOTHING = 0.1  # added to each n-gram's count, so that no probability is 0
CERTAIN = 12.0  # nats by which the likeliest language must lead; no example sentence then gets a false alarm
LETTERS = 6  # the language of a text with fewer letters is not guessed
LATIN_END = "\u0370"  # the first character after the Latin letters
SEEN = 0.8  # minimum share of a text's n-grams that the example sentences of the guessed language contain
SAMPLE = 200  # maximum number of texts of a list whose language is guessed
SEPARATORS = re.compile(r"[^\w']+|[\d_]+")
ADDRESSES = re.compile(r"\S+[@/]\S*|www\.\S+")
INSIDE = re.compile(r"(?<!^)(?<![.!?…] )(?<![¿¡«“\"(])\b\w+")  # matches words that do not begin a sentence

Profiles = Mapping[str, Mapping[str, float]]  # language -> n-gram -> log-probability; "" stands for unseen n-grams


def language_name(lang: str) -> str:
    """Return the name of a language, or its code if unknown. "en2", a second column in English, is "English 2"."""
    code, number = re.fullmatch(r"(.*?)(\d*)", lang, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{LANGUAGE_NAMES[code]} {number}".strip() if code in LANGUAGE_NAMES else lang


def title_key(title: str) -> str:
    """Normalise a column title: lower case, without accents and without a number at the end."""
    letters = [char for char in unicodedata.normalize("NFKD", title.lower()) if not unicodedata.combining(char)]
    return re.sub(r"[\s_]*\d*$", "", "".join(letters).strip())


LANG_OF_TITLE = {title_key(each): lang for lang, name, more in _LANGUAGES for each in (lang, name, *more.split())}


def latent_title(latent: str) -> str:
    """Return the title of a latent, such as "Semantic latent"."""
    return f"{latent.capitalize()} latent"


def words(text: str) -> int:
    """Count the words. Punctuation between spaces does not count as a word: French puts a space before "?"."""
    return sum(any(map(str.isalnum, run)) for run in text.split())


def overlap(left: str, right: str) -> float:
    """Return the share of two sentences' words that occur in both, ignoring case (Jaccard); 0 if both are empty."""
    left_words, right_words = (set(re.findall(r"\w+", text.lower())) for text in (left, right))
    return len(left_words & right_words) / max(1, len(left_words | right_words))


def punctuation(text: str) -> int:
    """Count the punctuation characters; an ellipsis of three dots counts as one."""
    return sum(unicodedata.category(char).startswith("P") for char in text.replace("...", "…"))


def mark(text: str) -> str:
    """Return the name of the sentence's final punctuation mark: "full stop", ..., "other" or "none"."""
    return MARKS.get(final_mark(text)) or (OTHER if unicodedata.category(text[-1:] or " ")[0] == "P" else NONE)


def negated(text: str, lang: str) -> bool:
    """Return whether the sentence has a negation word. `lang` must be one of `NEGATION_LANGS`."""
    return bool(ARABIC_NEGATION.search(text) if lang == "ar" else has_negation(text, lang))


def table(texts: Sequence[str], lang: str, translations: Sequence[str] | None, start: int = 0) -> pd.DataFrame:
    """Make a table of N sentences, numbered from `start`. Without `translations`, they are the user's own."""
    numbers = range(start, start + len(texts))
    own = translations is None
    prefix = "own" if own else f"{lang}_" if lang[-1].isdigit() else lang  # en20: row 20 of "en"; en2_0: row 0 of "en2"
    return pd.DataFrame(
        {
            "id": [f"{prefix}{number}" for number in numbers],
            "pair": list(numbers),
            "lang": lang,
            "text": list(texts),
            "translation": list(translations or [""] * len(texts)),
            "words": [words(text) for text in texts],
            "punctuation": [punctuation(text) for text in texts],
            "mark": [mark(text) for text in texts],
            "own": own,
        }
    )


def translations(texts: Sequence[Sequence[str]], langs: Sequence[str]) -> pd.DataFrame:
    """Make a table of N translations: N rows with their sentences in the first language, then N in the second, ..."""
    tables = []
    for column, lang in enumerate(langs):
        others = [" / ".join(text for at, text in enumerate(row) if at != column) for row in texts]
        tables.append(table([row[column] for row in texts], lang, others))
    return pd.concat(tables, ignore_index=True)


def parts(table: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Divide a table into consecutive rows in the same language. Return the language and sentences of each part."""
    langs = table["lang"].to_numpy()
    starts = [0, *(np.flatnonzero(langs[1:] != langs[:-1]) + 1).tolist(), len(table)]
    texts = table["text"].tolist()
    return [(langs[start], texts[start:end]) for start, end in pairwise(starts) if end > start]


def examples(langs: Sequence[str], count: int) -> pd.DataFrame:
    """Return the first `count` built-in example sentences that exist in all of these languages."""
    return translations(example_sentences(langs)[:count], langs)


def colours(langs: Sequence[str]) -> list[str]:
    """Return the columns that can set the colours of a map of these languages. The first is the default."""
    present = {name for name in STYLES if any(primary(lang) in PROPERTIES[name].rules for lang in langs)}
    present |= {"lang"} if len(langs) > 1 else set()
    return [colour for colour in COLOURS if colour in present or colour not in {*STYLES, "lang"}]


def charted(table: pd.DataFrame, colour: str) -> list[str]:
    """Return the columns with a bar chart beside the maps: those with two values or more, and the one for colours."""
    own = [name for name in table if name.startswith(OWN_COLUMN)]
    names = dict.fromkeys(["words", "mark", *STYLES, "lang", *own, colour])
    return [name for name in names if name in table and (name == colour or table[name].nunique() > 1)]


def wording(text: str, lang: str) -> dict[str, str]:
    """Return the values of a sentence's style properties, by the names in `STYLES`, as in {"address": "vous"}."""
    values = {name: PROPERTIES[name].value(text, lang) for name in STYLES}
    return {name: value for name, value in values.items() if value}


def shortest(texts: Sequence[str], lang: str, closing: str) -> dict[str, str]:
    """Return the shortest text that has each value of a style property, such as "vous", and this closing mark."""
    longest_first = sorted((text for text in texts if final_mark(text) == closing), key=len, reverse=True)
    return {value: text for text in longest_first for value in wording(text, lang).values()}


def styled(rows: pd.DataFrame, name: str) -> pd.Series:
    """Return each row's value of a style property in `STYLES`, converted by `as_colour`; "none" for rows without it."""
    values = [PROPERTIES[name].value(text, lang) for text, lang in zip(rows["text"], rows["lang"], strict=True)]
    return as_colour(pd.Series(values, rows.index, dtype=str))


def colour_title(colour: str) -> str:
    """Return the title of a column that can set the colours of a map."""
    return COLOURS.get(colour) or colour.removeprefix(OWN_COLUMN)


def as_colour(values: pd.Series) -> pd.Series:
    """Convert a column (N,) to values for colours: to numbers if all cells are numbers with more than six values, else
    to at most six categories. Rarer categories become "other", and empty cells "none"."""

    def label_order(label: str) -> tuple[bool, int, str]:
        """Return a sort key that puts "4-6" before "10-12", and "other" last."""
        first = label.partition("-")[0]
        return label == OTHER, int(first) if first.isdecimal() else 0, label

    texts = values.astype("string").str.strip().replace({"": pd.NA, NONE: pd.NA})
    numbers = pd.to_numeric(texts, errors="coerce")
    if numbers.notna().equals(texts.notna()) and numbers.nunique() > CATEGORIES:
        return numbers.astype(float)
    counts = texts.value_counts()
    names = sorted(counts.index[: CATEGORIES - (len(counts) > CATEGORIES)], key=label_order)
    shown = texts.where(texts.isin(names) | texts.isna(), OTHER).fillna(NONE)
    categories = dict.fromkeys([*names, *[OTHER] * (len(counts) > CATEGORIES), NONE])  # the column may contain "other"
    return pd.Series(pd.Categorical(shown, list(categories)), values.index)


def matching(rows: pd.DataFrame, text: str) -> list[str]:
    """Return the ids of the rows that contain a text as whole words; if none does, as part of a word. Ignore case."""
    contains = rows[rows["text"].str.contains(text, case=False, regex=False)]
    start, end = r"(?<!\w)" * text[:1].isalnum(), r"(?!\w)" * text[-1:].isalnum()
    whole = contains["text"].str.contains(f"{start}{re.escape(text)}{end}", case=False)
    return contains.loc[whole if whole.any() else whole.index, "id"].tolist()


def typed(lines: str, lang: str, taken: int) -> tuple[pd.DataFrame, int]:
    """Make a table of the different sentences in a text with one sentence per line; `taken` were typed before.
    Also return the number of lines over the limit."""
    texts = list(dict.fromkeys(filter(None, map(normalise, lines.splitlines()))))
    within = texts[: max(0, MAX_OWN - taken)]
    return table(within, lang, None, taken), len(texts) - len(within)


def ngrams(text: str) -> list[str]:
    """Return the character n-grams (1 to 3) of a text. All characters between two words count as one space."""
    text = f" {SEPARATORS.sub(' ', text.lower().replace('’', chr(39))).strip()} "
    triples = zip(text, text[1:], text[2:], strict=False)
    return [*text.replace(" ", ""), *map("".join, pairwise(text)), *map("".join, triples)]


def profiles(sentences: Mapping[str, Sequence[str]]) -> Profiles:
    """Estimate the log-probability of each n-gram in each language, from example sentences (naive Bayes)."""
    counts = {lang: Counter(chain.from_iterable(map(ngrams, texts))) for lang, texts in sentences.items()}
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
    """Return the language in which the n-grams have the highest log-probability ("" for a text without n-grams), and
    for each language, by how many nats its log-probability is lower."""
    if not grams:
        return "", {}
    likelihoods = {lang: sum(log.get(gram, log[""]) for gram in grams) for lang, log in known.items()}
    best = max(likelihoods, key=likelihoods.__getitem__)
    return best, {lang: likelihoods[best] - value for lang, value in likelihoods.items()}


@cache
def scripts(lang: str) -> set[str]:
    """Return the scripts of the letters in the example sentences of a language, such as {"LATIN"}."""
    return {script(letter) for letter in {*"".join(text for (text,) in example_sentences([lang]))} if letter.isalpha()}


def script(letter: str) -> str:
    return re.split("[ -]", unicodedata.name(letter, "UNKNOWN"), maxsplit=1)[0]


def foreign_letters(character: str, lang: str) -> str:
    """Describe the script of a letter that is foreign to a language, as in "Greek letters"; else return ""."""
    if not character.isalpha() or primary(lang) not in LANGS or script(character) in scripts(primary(lang)):
        return ""
    return {"CJK": "Chinese characters"}.get(script(character)) or f"{script(character).capitalize()} letters"


def another_language(text: str, lang: str, known: Profiles | None = None) -> str:
    """Guess the language of a text; return "" unless the text is almost certainly not in `lang`. Ignore URLs, names."""
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
    """Return the language that most of the texts are in, as far as can be guessed; "" if no text has letters."""
    best = Counter(likeliest(ngrams(text), shipped_profiles())[0] for text in sample(texts))
    del best[""]
    return best.most_common(1)[0][0] if best else ""


def sample(texts: Sequence[str]) -> Sequence[str]:
    """Return at most `SAMPLE` of the texts, evenly spread over the list."""
    return list(texts[:: max(1, math.ceil(len(texts) / SAMPLE))])


def other_language(texts: Sequence[str], lang: str) -> str:
    """Return the commonest other language if more than half of the texts are certainly not in `lang`, else ""."""
    looked_at = sample([text for text in texts if text.strip()])
    others = Counter(filter(None, (another_language(text, lang) for text in looked_at)))
    return others.most_common(1)[0][0] if others.total() > len(looked_at) / 2 else ""
