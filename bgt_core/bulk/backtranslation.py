"""Translate one side of a bitext of any size into the language of the other, in constant memory.

    translator = BeamTranslator(bgt_core.load("runs/fr-en"), lang="en", count=5)
    backtranslate(translator, Path("en-fr.tsv.xz"), Path("paraphrases.tsv.xz"), langs=["en", "fr"], into="en")

The output is a tab-separated table, one row per translation of each sentence, the best first (Wieting et al. 2017):

    reference  translation  cost  row

`reference` is the bitext's own sentence in the target language, and `translation` a translation of the other side;
`cost` is its negative log-likelihood in nats per token, "nan" if the translator gives none, and `row` the number of the
bitext's row, from 1. In a list of columns, "_" skips one: "a,b,_,_=FILE".

If the process is killed, the same call continues, and gives the same bytes on the same kind of device with the same
number of threads; if the file is complete it does nothing.

Shards are for parallel processes, as in `bulk`: concatenated (`cat`), they are the whole file, byte for byte.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import zstandard

from bgt_core import __version__
from bgt_core.bulk import part, shard_range, stat_signature
from bgt_core.data import manifest
from bgt_core.data.columns import read_columns
from bgt_core.data.parallel import (
    LEVEL,
    Audit,
    Row,
    SentenceTranslator,
    Skipped,
    chunks,
    source_files,
    suffix,
)
from bgt_core.data.parallel import check as check_rows
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.files import check_output, describe_difference, discard_portions, portions

COLUMNS = ("reference", "translation", "cost", "row")
CHUNK = 2_048  # rows of the bitext that are translated and written together


class BackTranslated(NamedTuple):
    """The result of `backtranslate`."""

    path: Path
    rows: int  # of the table: translations
    sentences: int  # with a translation
    untranslated: int  # sound rows of the bitext without a translation
    skipped: Skipped  # its bad rows


def backtranslate(
    translator: SentenceTranslator,
    source: Path,
    out: Path,
    *,
    langs: Sequence[str],
    into: str,
    shard: tuple[int, int] | None = None,
    strict: bool = False,
    report: Callable[[int, int], None] = lambda rows, total: None,
) -> BackTranslated:
    """Translate the side of `source` that is not `into`, and write it beside the other side.

    `source` is read by `read_pairs`, and `langs` are its two columns, in order. `out` is a TSV (plain, .gz, .xz or
    .zst), or with `shard`, (number from 1, count), `part(out, *shard)`; its card names its sources. A bad row of the
    bitext is left out, or with `strict` raises an error before anything is translated. `report` gets the number of rows
    done and of all rows, after each chunk.

    Raises UsageError unless there are two columns, for another suffix of `out`, and if another process is writing
    `out`, or `out` was begun from other text, by another translator, or by one without a fingerprint; NotFound if
    `source` is absent or `out` can't be written; DataError if `source` is damaged or has changed meanwhile, and if
    nothing was translated.
    """
    names = read_columns(langs)
    if len(names) != 2 or len(set(names)) != 2:
        raise UsageError(f"{','.join(langs)}: expected two different languages, as in en,fr.", parameter="langs")
    if into not in names:
        raise UsageError(f"{into}: expected one of {' and '.join(names)}.", parameter="into")
    out = part(out, *shard) if shard else out
    check(out)
    files = source_files(source, langs)
    before = list(map(stat_signature, files))
    total, skipped = _audit(source, langs, strict)
    first, last = shard_range(total, *(shard or (1, 1)), CHUNK)
    about = manifest.provenance(files)
    inputs: dict[str, object] = {"lines": [first, last], "text": [fact["sha256"] for fact in about["sources"].values()]}
    inputs |= {"langs": list(langs), "into": into, "translator": translator.fingerprint, "version": __version__}
    known = bool(translator.fingerprint)
    if counts := _finished(out, inputs) if known else None:
        discard_portions(out, inputs)
        report(last - first, last - first)
    else:
        with portions(out, inputs, maker="a translator", known=known) as parts:
            report(0, last - first)
            for start, rows in _portions(source, langs, first, last):
                parts.make(start, partial(_translate, translator, out, start, rows, langs, into))
                report(parts.counts["read"], last - first)
            counts = {name: parts.counts[name] for name in ("rows", "read", "sentences", "untranslated")}
            if counts["read"] != last - first or list(map(stat_signature, files)) != before:
                raise DataError(f"{source}: changed while it was read; translate it again.")
            if last > first and not counts["rows"]:
                raise DataError(f"{source}: none of the {last - first} rows could be translated.")
            rows_made = {"columns": list(COLUMNS), "rows": counts["rows"]}
            made = {**about, **counts, **inputs}
            parts.join(
                b"", lambda file: {"schema": manifest.CARD, "file": {**manifest.facts(file), **rows_made}, **made}
            )
    return BackTranslated(out, counts["rows"], counts["sentences"], counts["untranslated"], skipped)


def check(out: Path) -> None:
    """Raise UsageError for a name that is not one of such a table, NotFound if it can't be made."""
    if suffix(out) == ".parquet":
        raise UsageError(f"{out}: Parquet can't be continued; write to a .tsv, .tsv.gz, .tsv.xz or .tsv.zst.")
    check_output(out)


def _finished(out: Path, inputs: dict[str, object]) -> dict[str, int] | None:
    """The counts of a complete table with these inputs; None for any other file, or none."""
    try:
        card = manifest.read_card(out) or {}
        counts = {name: int(card[name]) for name in ("rows", "read", "sentences", "untranslated")}
        same = card["file"]["bytes"] == out.stat().st_size and not describe_difference(card, inputs)
    except (BgtError, OSError, KeyError, TypeError, ValueError):  # not one of our files: it will be replaced
        return None
    return counts if same else None


def _audit(source: Path, langs: Sequence[str], strict: bool) -> tuple[int, Skipped]:
    """Read all rows before the work: count them, and collect the errors of the bad ones."""
    skipped = Skipped()
    audit = Audit(source, langs, skipped, strict)
    for rows in chunks(source, langs):
        audit.add(len(rows), check_rows(rows, langs)[1])
    audit.end()
    return audit.rows, skipped


def _portions(source: Path, langs: Sequence[str], first: int, last: int) -> Iterator[tuple[int, list[Row]]]:
    """Rows `first` to `last`, CHUNK at a time: (rows of the source before them, the rows)."""
    rows = islice(chain.from_iterable(chunks(source, langs)), first, last)
    while portion := list(islice(rows, CHUNK)):
        yield first, portion
        first += len(portion)


def _translate(
    translator: SentenceTranslator, out: Path, start: int, rows: Sequence[Row], langs: Sequence[str], into: str
) -> tuple[bytes, dict[str, int]]:
    """The lines of the table, compressed like `out`, for rows `start` to `start + len(rows)` of the bitext; counts.

    Each portion is compressed by itself, as a member, stream or frame, which these formats allow: portions can be
    joined, and so can files.
    """
    pairs, bad = check_rows(rows, langs)
    wrong = {place for place, *_ in bad}
    numbers = [start + place + 1 for place in range(len(rows)) if place not in wrong]
    reference = read_columns(langs).index(into)
    translations = translator.translate([pair[1 - reference] for pair in pairs])
    lines = [
        f"{pair[reference]}\t{text}\t{cost:.4f}\t{number}\n"
        for number, pair, of_pair in zip(numbers, pairs, translations, strict=True)
        for text, cost in of_pair
    ]
    missing = sum(not of_pair for of_pair in translations)
    counts = {"rows": len(lines), "read": len(rows), "sentences": len(pairs) - missing, "untranslated": missing}
    return compressed("".join(lines).encode(), suffix(out)) if lines else b"", counts


def compressed(data: bytes, kind: str) -> bytes:
    """Compress bytes for files of that suffix; the result is deterministic."""
    if kind.endswith(".gz"):
        return gzip.compress(data, mtime=0)
    if kind.endswith(".xz"):
        return lzma.compress(data)
    if kind.endswith(".zst"):
        return zstandard.ZstdCompressor(LEVEL).compress(data)
    return data
