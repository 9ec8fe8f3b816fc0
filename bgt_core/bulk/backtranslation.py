"""Translate one side of a bitext of any size into the language of the other, in constant memory.

    translator = BeamTranslator(bgt_core.load("runs/fr-en"), lang="en", count=5)
    backtranslate(translator, Path("en-fr.tsv.xz"), Path("paraphrases.tsv.xz"), langs=["en", "fr"], into="en")

The output is a table of `data.translations`: a reference and its paraphrase per row (Wieting et al. 2017).
If the process is killed, the same call continues, and gives the same bytes on the same kind of device with
the same number of threads; if the file is complete it does nothing.

Shards are for parallel processes, as in `bulk`: concatenated (`cat`), they are the whole file, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from bgt_core import __version__
from bgt_core.bulk.shards import part, shard_range, stat_signature
from bgt_core.data import manifest
from bgt_core.data.columns import read_columns
from bgt_core.data.parallel import Audit, Row, Skipped, check, chunks, source_files
from bgt_core.data.resumable_table import ResumableTable
from bgt_core.data.translations import COLUMNS, SentenceTranslator, table_rows
from bgt_core.errors import DataError, UsageError

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
    if shard:
        out = part(out, *shard)
    counted = ("read", "sentences", "untranslated")
    with ResumableTable(out, COLUMNS, counted, maker="a translator", verb="translate") as table:
        files = source_files(source, langs)
        before = list(map(stat_signature, files))
        total, skipped = _audit(source, langs, strict)
        first, last = shard_range(total, *(shard or (1, 1)), CHUNK)
        table.about = manifest.provenance(files)
        provenance = {"lines": [first, last], "text": [fact["sha256"] for fact in table.about["sources"].values()]}
        (table.resume if translator.fingerprint else table.begin)(
            {
                **provenance,
                "langs": list(langs),
                "into": into,
                "translator": translator.fingerprint,
                "version": __version__,
            }
        )
        report(table.counts["read"], last - first)
        for start, rows in _portions(source, langs, first + table.counts["read"], last):
            _translate(translator, table, start, rows, langs, into)
            report(table.counts["read"], last - first)
        counts = table.counts
        if counts["read"] != last - first or list(map(stat_signature, files)) != before:
            raise DataError(f"{source}: changed while it was read; translate it again.")
        if last > first and not counts["rows"]:
            raise DataError(f"{source}: none of the {last - first} rows could be translated.")
    return BackTranslated(out, counts["rows"], counts["sentences"], counts["untranslated"], skipped)


def _audit(source: Path, langs: Sequence[str], strict: bool) -> tuple[int, Skipped]:
    """Read all rows before the work: count them, and collect the errors of the bad ones."""
    skipped = Skipped()
    audit = Audit(source, langs, skipped, strict)
    for rows in chunks(source, langs):
        audit.add(len(rows), check(rows, langs)[1])
    audit.end()
    return audit.rows, skipped


def _portions(source: Path, langs: Sequence[str], first: int, last: int) -> Iterator[tuple[int, list[Row]]]:
    """Rows `first` to `last`, CHUNK at a time: (rows of the source before them, the rows)."""
    rows = islice(chain.from_iterable(chunks(source, langs)), first, last)
    while portion := list(islice(rows, CHUNK)):
        yield first, portion
        first += len(portion)


def _translate(
    translator: SentenceTranslator,
    table: ResumableTable,
    start: int,
    rows: Sequence[Row],
    langs: Sequence[str],
    into: str,
) -> None:
    """Add the result for rows `start` to `start + len(rows)` of the bitext to the table."""
    pairs, bad = check(rows, langs)
    wrong = {place for place, *_ in bad}
    numbers = [start + place + 1 for place in range(len(rows)) if place not in wrong]
    reference = read_columns(langs).index(into)
    translations = translator.translate([pair[1 - reference] for pair in pairs])
    written = [
        row
        for number, pair, of_pair in zip(numbers, pairs, translations, strict=True)
        for row in table_rows(pair[reference], of_pair, number)
    ]
    missing = sum(not of_pair for of_pair in translations)
    table.append(written, read=len(rows), sentences=len(pairs) - missing, untranslated=missing)
