"""Make the training and held-out files of the models that ship, from a folder of parallel text.

    python analysis/mixture.py DATA OUT fr

DATA/parallel holds files named en-fr.tatoeba.tsv.xz, of English and the other language, DATA/mono files named
en.ewt.txt.xz. OUT gets KIND/en-fr.tsv, for `--data KIND/en-fr=FILE`, and held-out/en-fr.tsv; paraphrase/fr.tsv, pairs
of one language with a shared translation; grammar/en-fr.tsv and the like, triples for `--columns en,fr,altered:en`;
and monolingual/en.tsv, for a teacher. Which files make up a kind is in the cards of the models, and below.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import product
from pathlib import Path
from random import Random

from bgt_core.data import examples
from bgt_core.data.filters import key
from bgt_core.data.textfile import text_lines
from bgt_core.grammar import triples

KINDS = {
    "short": ("tatoeba",),
    "news": ("ntrex", "pud"),
    "health": ("tico19",),
    "questions": ("xquad-questions",),
    "meetings": ("ami",),
    "docs": (
        *("python-docs", "django-docs", "gnome-docs", "react-docs", "tldr", "opensource-guide", "djangogirls"),
        "digikam-doc",
    ),
    "messages": ("mozilla-www", "mozilla-more", "android-apps", "kolibri", "wikipedia-android"),
}
MONOLINGUAL = {
    "common-voice": 45_000,
    "ewt": 20_000,
    "topical-chat": 45_000,
    "schema-dialogue": 15_000,
    "taskmaster": 5_000,
}
MONOLINGUAL_WORDS = range(4, 41)
GRAMMAR = 5_000  # triples of the grammar for each order of two languages
TESTS = ("sts", "stsb", "sts17", "retrieval", "sick", "composition")  # folders whose sentences are not trained on
EXAMPLES = Path(examples.__file__).with_name("sentences.tsv")
SHORTEST = 4  # words of a test sentence that is kept out; shorter ones are everybody's
HELD_OUT = 150  # one English sentence in 150 is held out, the same ones for every language

Pair = tuple[str, ...]


def rows(path: Path) -> Iterator[Pair]:
    """The columns of each line."""
    for _, line in text_lines(path):
        yield tuple(line.split("\t"))


def test_keys(data: Path) -> set[str]:
    """Keys of the sentences that models are tested on or shown with."""
    files = [path for folder in TESTS for path in sorted((data / folder).rglob("*.tsv*"))]
    texts = (text for path in files for row in rows(path) for text in row)
    tested = {key(text) for text in texts if len(text.split()) >= SHORTEST or not text.isascii()}
    return (tested | {key(text) for row in rows(EXAMPLES) for text in row}) - {""}


def is_held_out(english: str) -> bool:
    """Whether a pair with this English sentence is held out; follows from the sentence alone."""
    return int.from_bytes(blake2b(key(english).encode(), digest_size=8).digest(), "little") % HELD_OUT == 0


def mixture(data: Path, lang: str) -> Iterator[tuple[str, list[Pair], list[Pair]]]:
    """Yield each kind of text with the pairs to train on and those held out.

    Args:
        data: A folder as above.
        lang: The other language, as "fr".

    Yields:
        The name of the kind, training pairs and held-out pairs. No sentence of a test set, of the example sentences or
        of the kind's held-out pairs is in the training pairs, on either side; a pair comes once.
    """
    tests = test_keys(data)
    for kind, names in KINDS.items():
        files = [data / "parallel" / f"en-{lang}.{name}.tsv.xz" for name in names]
        pairs = {tuple(map(key, pair)): pair for path in files if path.exists() for pair in rows(path)}
        free = [pair for keys, pair in pairs.items() if tests.isdisjoint(keys)]
        held = [pair for pair in free if is_held_out(pair[0])]
        others = {key(pair[1]) for pair in held}
        yield kind, [pair for pair in free if not is_held_out(pair[0]) and key(pair[1]) not in others], held


def paraphrases(pairs: Iterable[Pair], column: int) -> list[Pair]:
    """Pairs of different sentences of one column that share the translation in the other; each sentence comes once."""
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for pair in pairs:
        groups[key(pair[1 - column])].setdefault(key(pair[column]), pair[column])
    texts = [list(group.values()) for group in groups.values()]
    sharing = [pair for group in texts for pair in zip(group[::2], group[1::2], strict=False)]
    return list({key(sentence): (sentence, other) for sentence, other in sharing}.values())


def monolingual(data: Path, tests: set[str]) -> list[Pair]:
    """English sentences without a translation, at most so many of each file, drawn; none of a test set, none twice."""
    rng, left, drawn = Random("monolingual"), set(tests), list[Pair]()
    for name, count in MONOLINGUAL.items():
        path = data / "mono" / f"en.{name}.txt.xz"
        texts = {key(pair[0]): pair for pair in rows(path)} if path.exists() else {}
        free = [at for at, (text,) in texts.items() if len(text.split()) in MONOLINGUAL_WORDS and at not in left]
        taken = rng.sample(free, min(count, len(free)))
        left.update(taken)
        drawn += [texts[at] for at in taken]
    return drawn


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """One pair a line."""
    write_text(path, "".join("\t".join(pair) + "\n" for pair in pairs))


def write_text(path: Path, text: str) -> None:
    """A file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(data: Path, out: Path, *langs: str) -> None:
    """Write all files and say how many pairs each has."""
    for lang in langs:
        for kind, train, held in mixture(data, lang):
            if train:
                write(out / kind / f"en-{lang}.tsv", train)
                print(f"{kind}/en-{lang}: {len(train):,} pairs, {len(held):,} held out")
            if kind == "short":
                write(out / "held-out" / f"en-{lang}.tsv", held)
                write(out / "paraphrase" / "en.tsv", paraphrases(train, 0))
                write(out / "paraphrase" / f"{lang}.tsv", paraphrases(train, 1))
    for seed, (first, second) in enumerate(product(triples.LANGS, repeat=2)):
        text = "".join(f"{row}\n" for row in triples.triple_rows(GRAMMAR, first, second, seed))
        write_text(out / "grammar" / f"{first}-{second}.tsv", text)
    write(out / "monolingual" / "en.tsv", monolingual(data, test_keys(data)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
