"""Make the training and held-out files of the models that ship, from a folder of parallel text.

    python analysis/mixture.py DATA OUT fr

DATA/parallel holds files named en-fr.tatoeba.tsv.xz, of English and the other language, DATA/mono files named
en.ewt.txt.xz, DATA/mixture/altered.tar.xz the rows that rules made at commit d1f45c03: pairs and paraphrases with an
altered sentence, pairs of the grammar. Each file in OUT is named KIND/COLUMNS.tsv, as `bgt train --data
KIND/COLUMNS=FILE` wants it: pairs, these rows, pairs in another style (kind "style", by rules and by paraphrases that
differ), text of one language.
OUT/held-out/en-fr.tsv has the held-out pairs. Which files make up a kind is in the cards of the models, and below.
"""

from __future__ import annotations

import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import combinations, islice
from pathlib import Path
from random import Random

from bgt_core.data import examples
from bgt_core.data.exchange import EXCHANGED, exchanger
from bgt_core.data.filters import key
from bgt_core.data.properties import values
from bgt_core.data.textfile import text_lines

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
MONOLINGUAL = {  # sentences of each file
    "en": {
        "common-voice": 45_000,
        "ewt": 20_000,
        "topical-chat": 45_000,
        "schema-dialogue": 15_000,
        "taskmaster": 5_000,
    },
    "fr": {"common-voice": 60_000},
    **{lang: {"common-voice": 30_000} for lang in ("es", "de", "tr", "ar")},
}
MONOLINGUAL_WORDS = range(4, 41)
TESTS = ("sts", "stsb", "sts17", "retrieval", "sick", "composition")  # folders whose sentences are not trained on
EXAMPLES = Path(examples.__file__).with_name("sentences.tsv")
SHORTEST = 4  # minimum words of a test sentence to remove from training; shorter ones are too common
DIFFERING = 4
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


def differing(pairs: Iterable[Pair], column: int, lang: str) -> Iterator[Pair]:
    """Pairs of sentences of one column that share the translation in the other, with another value of the same property
    (`data.properties`); of a translation, at most `DIFFERING`."""
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for pair in pairs:
        groups[key(pair[1 - column])].setdefault(key(pair[column]), pair[column])
    for group in groups.values():
        shown = [(text, values(text, lang)[:-1]) for text in group.values()]  # without the closing mark
        differ = (
            (text, other)
            for (text, own), (other, theirs) in combinations(shown, 2)
            if any(one and two and one != two for one, two in zip(own, theirs, strict=True))
        )
        yield from islice(differ, DIFFERING)


def write_style(out: Path, pairs: list[Pair], lang: str) -> None:
    """Pairs of English and another language, and of either alone, in which a rule or a paraphrase changed the style."""
    crossed = list[Pair]()
    for column, own in enumerate(("en", lang)):
        texts, wordings = [pair[column] for pair in pairs], list(differing(pairs, column, own))
        if own in EXCHANGED:
            forms = exchanger(own, texts, wordings)
            made = [(pair, form) for pair in pairs for form in forms(pair[column])]
            wordings = [(pair[column], form) for pair, form in made] + wordings
            crossed += [(form, pair[1]) if column == 0 else (pair[0], form) for pair, form in made]
        name = f"{own}-{own}2" if own != "en" else f"en-en2.{lang}"
        write(out / "style" / f"{name}.tsv", dict.fromkeys(wordings))
    write(out / "style" / f"en-{lang}.tsv", crossed)


def monolingual(data: Path, tests: set[str], lang: str) -> list[Pair]:
    """Draw sentences without a translation, up to a number from each file: no test sentence, and no sentence twice."""
    rng, left, drawn = Random("monolingual"), set(tests), list[Pair]()
    for name, count in MONOLINGUAL.get(lang, {}).items():
        path = data / "mono" / f"{lang}.{name}.txt.xz"
        texts = {key(pair[0]): pair for pair in rows(path)} if path.exists() else {}
        free = [at for at, (text,) in texts.items() if len(text.split()) in MONOLINGUAL_WORDS and at not in left]
        taken = rng.sample(free, min(count, len(free)))
        left.update(taken)
        drawn += [texts[at] for at in taken]
    return drawn


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """Write one pair per line and make the file's folder; without pairs, write no file."""
    if text := "".join("\t".join(pair) + "\n" for pair in pairs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def unpack(archive: Path, out: Path) -> None:
    """The rows with altered sentences and those of the grammar, as rules made them for the models that ship."""
    with tarfile.open(archive) as files:
        files.extractall(out, filter="data")


def main(data: Path, out: Path, *langs: str) -> None:
    """Write all files and say how many pairs each kind has."""
    tests = test_keys(data)
    unpack(data / "mixture" / "altered.tar.xz", out)
    for lang in langs:
        for kind, train, held in mixture(data, lang):
            write(out / kind / f"en-{lang}.tsv", train)
            if train:
                print(f"{kind}/en-{lang}: {len(train):,} pairs, {len(held):,} held out")
            if kind == "short":
                write(out / "held-out" / f"en-{lang}.tsv", held)
                write_style(out, train, lang)
    for lang in ("en", *langs):
        write(out / "monolingual" / f"{lang}.tsv", monolingual(data, tests, lang))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
