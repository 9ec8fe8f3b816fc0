"""Make the training and held-out files of the models that ship, from a folder of parallel text.

    python analysis/mixture.py DATA OUT fr

DATA/parallel holds files named en-fr.tatoeba.tsv.xz, of English and the other language. OUT gets KIND/en-fr.tsv, for
`--data KIND/en-fr=FILE`, and held-out/en-fr.tsv. Which files make up a kind is in the cards of the models, and below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from bgt_core.data import examples
from bgt_core.data.filters import key
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


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """One pair a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")


def main(data: Path, out: Path, *langs: str) -> None:
    """Write all files and say how many pairs each has."""
    for lang in langs:
        for kind, train, held in mixture(data, lang):
            if train:
                write(out / kind / f"en-{lang}.tsv", train)
                print(f"{kind}/en-{lang}: {len(train):,} pairs, {len(held):,} held out")
            if kind == "short":
                write(out / "held-out" / f"en-{lang}.tsv", held)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
