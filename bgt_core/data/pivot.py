"""Find translations through a third language: French and Spanish of the same English sentence.

They test a model on a pair of languages that it was never trained on together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bgt_core.data import manifest
from bgt_core.data.clean import Cleaned
from bgt_core.data.filters import key
from bgt_core.data.pairfile import pair_file, suffix
from bgt_core.data.parallel import Skipped, read_pairs, source_files
from bgt_core.errors import DataError, UsageError


def pivot(left: Path, right: Path, langs: Sequence[str], out: Path, *, strict: bool = False) -> Cleaned:
    """Write a pair to `out` for each sentence that both files have in the first of three `langs`; OUT.json is a card.

    `left` holds the first and second language, `right` the first and third. Of several translations the first is used.
    A pair is dropped if its two sides, or a side and an earlier one, are equal but for case and punctuation, because
    retrieval, the purpose of `out`, would count a copy as a miss. The left file is held in memory.

    Raises UsageError unless there are three languages, and DataError for bad sources (see `read_pairs`) and if no
    sentence is in both.
    """
    suffix(out)
    if len(set(langs)) != 3 or len(langs) != 3 or not all(langs):
        raise UsageError(
            f"{','.join(langs)}: expected three languages, the shared one first, as in en,fr,es.", parameter="langs"
        )
    through, first, second = langs
    skipped, dropped = Skipped(), Counter[str]()
    translation: dict[str, str] = {}
    for sentence, text in read_pairs(left, (through, first), skipped, strict):
        translation.setdefault(sentence, text)
    rows, seen = 0, (set[str](), set[str]())
    with pair_file(out, (first, second)) as add:
        for sentence, text in read_pairs(right, (through, second), skipped, strict):
            if (other := translation.get(sentence)) is None:
                continue
            keys = key(other), key(text)
            if keys[0] == keys[1] or any(one in of for one, of in zip(keys, seen, strict=True)):
                dropped["copy"] += 1
                continue
            for one, of in zip(keys, seen, strict=True):
                of.add(one)
            add([[other.encode(), text.encode()]])
            rows += 1
        if not rows:
            raise DataError(f"{left} and {right} have no sentence in {through} in common that gives a pair.")
    files = [*source_files(left, (through, first)), *source_files(right, (through, second))]
    about = {"dropped": dict(dropped), "skipped": dict(skipped.counts), "pivot": through}
    manifest.write_card(out, (first, second), rows, files, about)
    return Cleaned(rows, dict(dropped), skipped)
