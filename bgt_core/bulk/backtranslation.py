"""Make paraphrases from translations (a bitext): translate one column into the language of the other column.

    translator = BeamTranslator(bgt_core.load("runs/fr-en"), lang="en", count=5)
    backtranslate(translator, Path("en-fr.tsv.xz"), Path("paraphrases.tsv.xz"), langs=["en", "fr"], into="en")

The output is a tab-separated table with one row per translation (Wieting et al. 2017). The translations of a sentence
follow each other, the best first:

    reference  translation  cost  row

`reference` is the sentence of the bitext in the target language; `translation` is a translation of the other sentence.
`cost` is the negative log-likelihood of the translation in nats per token, or "nan" if the translator computes none.
`row` is the number of the row in the bitext, from 1. To read only the two texts, name the columns "a,b,_,_=FILE".

A file of any size is translated in chunks and constant memory. A table is written completely or not at all, and is not
made again if its inputs were the same. Shards divide the work, as in `bgt_core.bulk`; the command `cat` joins them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, Protocol

from bgt_core import __version__
from bgt_core.bulk import check_output, part, shard_range, stat_signature
from bgt_core.data import manifest
from bgt_core.data.columns import read_columns
from bgt_core.data.parallel import Skipped, check, check_table, checked_chunks, chunks, pair_file, source_files
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.files import sha256_file

COLUMNS = ("reference", "translation", "cost", "row")
COUNTS = ("rows", "read", "sentences", "untranslated")
CHUNK = 2_048  # number of rows of the bitext that are translated and written together


class SentenceTranslator(Protocol):
    """A translator of sentences, such as `generation.generate.BeamTranslator`."""

    @property
    def fingerprint(self) -> str:
        """One line that identifies the model and its settings. If it is empty (unknown), no old table is reused."""

    def translate(self, sentences: Sequence[str]) -> Sequence[Sequence[tuple[str, float]]]:
        """Return a list of (translation, cost), the best first, for each of N sentences; [] if none was found."""


class BackTranslated(NamedTuple):
    """The table of paraphrases that `backtranslate` wrote, and counts of rows."""

    path: Path
    rows: int  # number of rows of the table, one per translation
    sentences: int  # number of sentences with a translation
    untranslated: int  # number of valid rows for which the translator returned no translation
    skipped: Skipped  # the invalid rows of the bitext


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
    """Translate the column of a bitext that is not in the language `into`. Write its translations and the other column.

    Args:
        translator: Translates sentences into the language `into`.
        source: The bitext, in a format of `read_pairs`.
        out: A .tsv file (plain, .gz, .xz or .zst). OUT.json, written beside it, describes the files it was made from.
        langs: The columns of the bitext in order: two languages, and "_" for each column to skip.
        into: The target language, one of `langs`.
        shard: (i, n): translate only shard i of n shards, counted from 1, and write it to `part(out, i, n)`.
        strict: Whether a bad row raises an error, before any row is translated. Otherwise bad rows are left out.
        report: Called after each chunk with the number of rows done and the number of all rows.

    Raises:
        UsageError: `langs` are not two languages, `out` is not a .tsv file, or another process is writing `out`.
        NotFound: `source` is absent, or `out` can't be written.
        DataError: `source` is damaged or has changed while it was translated, or no sentence was translated.
    """
    names = read_columns(langs)
    if len(set(names)) != 2 or len(names) != 2:
        raise UsageError(f"{','.join(langs)}: expected two different languages, as in en,fr.", parameter="langs")
    if into not in names:
        raise UsageError(f"{into}: expected one of {' and '.join(names)}.", parameter="into")
    out = part(out, *shard) if shard else out
    check_table(out)
    check_output(out)
    files, skipped = source_files(source, langs), Skipped()
    before = list(map(stat_signature, files))
    total = sum(chunk.size for chunk in checked_chunks(source, langs, skipped, strict))  # check all rows first
    first, last = shard_range(total, *(shard or (1, 1)), CHUNK)
    inputs: dict[str, object] = {"lines": [first, last], "text": list(map(sha256_file, files)), "langs": list(langs)}
    inputs |= {"into": into, "translator": translator.fingerprint, "version": __version__}
    counts = _finished(out, inputs) if translator.fingerprint else None
    report(0 if counts is None else last - first, last - first)
    if counts is None:
        counts = Counter(dict.fromkeys(COUNTS, 0))
        reference = names.index(into)
        bitext = islice(chain.from_iterable(chunks(source, langs)), first, last)
        with pair_file(out) as add:
            while rows := list(islice(bitext, CHUNK)):
                checked = check(rows, langs)
                translations = translator.translate([pair[1 - reference] for pair in checked.rows])
                row = first + counts["read"] + 1  # number (from 1) of the first row of this chunk
                table = [
                    [cell.encode() for cell in (pair[reference], text, f"{cost:.4f}", str(row + place))]
                    for place, pair, of_pair in zip(checked.places, checked.rows, translations, strict=True)
                    for text, cost in of_pair
                ]
                add(table)
                missing = sum(not of_pair for of_pair in translations)
                done = len(translations) - missing
                counts.update(rows=len(table), read=len(rows), sentences=done, untranslated=missing)
                report(counts["read"], last - first)
            if counts["read"] != last - first or list(map(stat_signature, files)) != before:
                raise DataError(f"{source}: changed while it was read; translate it again.")
            if last > first and not counts["rows"]:
                raise DataError(f"{source}: none of the {last - first} rows could be translated.")
        manifest.write_card(out, COLUMNS, counts["rows"], files, {**counts, **inputs})
    return BackTranslated(out, counts["rows"], counts["sentences"], counts["untranslated"], skipped)


def _finished(out: Path, inputs: dict[str, object]) -> Counter[str] | None:
    """Return {name in `COUNTS`: count} for the table `out` if it is complete and made from these inputs, else None."""
    try:
        card = manifest.read_card(out) or {}
        counts = Counter({name: int(card[name]) for name in COUNTS})
        same = card["file"]["bytes"] == out.stat().st_size and card.items() >= inputs.items()
    except (BgtError, OSError, KeyError, TypeError, ValueError):  # absent, or not written by `backtranslate`
        return None
    return counts if same else None
