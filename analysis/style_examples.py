"""Choose the sentences that show what a language adds (bgt_core/data/examples/style.tsv.xz), from a folder of text.

    python -m analysis.style_examples DATA bgt_core/data/examples/style.tsv.xz

DATA is that of mixture.py. The sentences are Tatoeba's, and no model was trained on them: pairs whose English sentence
is held out, and Tatoeba's test sets. Sentences of one translation that differ in one property come first.
"""

from __future__ import annotations

import lzma
import sys
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from analysis.mixture import is_held_out, rows
from bgt_core.data.examples import Styled, differing
from bgt_core.data.properties import PROPERTIES
from bgt_core.data.text import normalise

MOST = 400  # sentences of each value of a property in a language
LONGEST = 100  # characters


def pool(data: Path, lang: str) -> Iterator[Styled]:
    """Each sentence of two columns, English and `lang`, with its translation."""
    for name in ("tatoeba", "tatoeba-challenge"):
        for english, other in rows(data / "parallel" / f"en-{lang}.{name}.tsv.xz"):
            if (name != "tatoeba" or is_held_out(english)) and max(len(english), len(other)) <= LONGEST:
                pair = normalise(english), normalise(other)
                yield Styled("en", pair[0], lang, pair[1])
                yield Styled(lang, pair[1], "en", pair[0])


def chosen(given: list[Styled]) -> Iterator[Styled]:
    """For each value of each property as many sentences as there are, up to `MOST`, those of pairs first."""
    paired = {each: None for pair in differing(given) for each in (pair.left, pair.right)}
    drawn = sorted(given, key=lambda each: blake2b(each.text.encode()).digest())
    usual = [each for each in drawn if each.other == ("fr" if each.lang == "en" else "en")]
    of_value: dict[tuple[str, str, str], list[Styled]] = defaultdict(list)
    for each in dict.fromkeys([*paired, *usual]):
        for name, shown in PROPERTIES.items():
            if value := shown.value(each.text, each.lang):
                of_value[each.lang, name, value].append(each)
    yield from paired
    for some in of_value.values():
        yield from some[:MOST]


def main(data: Path, out: Path) -> None:
    """Write the file, one sentence a line, and say how many each language has."""
    given = [each for lang in ("fr", "es", "de", "tr", "ja", "ar") for each in pool(data, lang)]
    lines = sorted(set(chosen(given)))
    out.write_bytes(lzma.compress("".join("\t".join(each) + "\n" for each in lines).encode()))
    for lang in dict.fromkeys(each.lang for each in lines):
        print(f"{lang}: {sum(each.lang == lang for each in lines):,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
