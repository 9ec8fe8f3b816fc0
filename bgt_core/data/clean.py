"""Parallel text, cleaned: read, normalised, filtered, freed of copies and of what we evaluate on, and written anew.

Memory grows by 8 bytes a pair that stays (24 at moments), for the hashes that tell copies. The same sources and
settings give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.data import filters, manifest
from bgt_core.data.pairfile import pair_file, suffix
from bgt_core.data.parallel import Audit, Skipped, check, chunks, lines, source_files
from bgt_core.data.text import Tokenizer, normalise
from bgt_core.errors import DataError, NotFound, UsageError

UNITS = ("words", "characters", "pieces")
Count = Callable[[Sequence[str]], list[int]]  # N sentences -> how long each is
Report = Callable[[int], None]  # pairs read so far


@dataclass(frozen=True)
class Rules:
    """What a pair must be; lengths are in `unit`."""

    least: int = 1
    most: int = 100
    max_ratio: float = 9.0  # of the longer to the shorter side; as in Moses' cleaning script
    unit: str = "words"
    max_pairs: int | None = None  # a sample of so many, the same whatever the order of the sources
    seed: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or self.max_ratio < 1 or self.seed < 0:
            raise UsageError(f"{asdict(self)}: need 1 <= least <= most, a ratio of 1 or more, a seed of 0 or more.")
        if self.max_pairs is not None and self.max_pairs < 1:
            raise UsageError(f"max_pairs {self.max_pairs}: expected 1 or more.")
        if self.unit not in UNITS:
            raise UsageError(f"unit {self.unit!r}: choose from {', '.join(UNITS)}.")


class Cleaned(NamedTuple):
    """What `clean` has written, and why the others are not there."""

    kept: int
    dropped: dict[str, int]  # rule -> pairs, each counted once, by the first rule that drops it
    skipped: Skipped


def clean(
    sources: Sequence[Path],
    langs: Sequence[str],
    out: Path,
    rules: Rules | None = None,
    *,
    exclude: Sequence[Path] = (),
    tokenizer: Path | None = None,
    licence: str | None = None,
    strict: bool = False,
    report: Report = lambda pairs: None,
) -> Cleaned:
    """Writes the good pairs of `sources` to `out`, and OUT.json, the card that says how it was made.

    `exclude` are files or folders of sentences, one a line or several in columns: a pair with one of them on either
    side is dropped, whatever its case and punctuation. `licence` is recorded; without it, what `bgt data download`
    recorded of the sources.

    Raises BgtError for bad sources (see `read_pairs`), settings that don't fit, and where no pair is left.
    """
    rules = rules or Rules()
    suffix(out)
    if not sources or len(set(langs)) < max(2, len(langs)):
        raise UsageError(f"{len(sources)} sources in {', '.join(langs)}: expected one or more, in two languages.")
    files = [file for source in sources for file in source_files(source, langs)]
    if out.absolute() in {file.absolute() for file in files}:
        raise UsageError(f"{out}: is one of the sources; write to another file.")
    count = _count(rules, langs, tokenizer)
    held_out = _evaluated(exclude, rules.seed)
    work = _Work(sources, langs, rules, count, held_out, strict)
    limit = None
    if rules.max_pairs is not None:  # a first look finds the hash that divides those wanted from the others
        seen = filters.Seen()
        for _ in work.kept(seen, Skipped(), Counter(), lambda pairs: None):
            pass
        limit = seen.smallest(rules.max_pairs) if len(seen) > rules.max_pairs else None
    skipped, dropped, kept = Skipped(), Counter[str](), 0
    with pair_file(out, langs) as add:
        for pairs, found in work.kept(filters.Seen(), skipped, dropped, report):
            if limit is not None:
                inside = found <= np.uint64(limit)
                dropped["not in the sample"] += int((~inside).sum())
                pairs = [pairs[place] for place in np.flatnonzero(inside)]
            add([[side.encode() for side in pair] for pair in pairs])
            kept += len(pairs)
        if not kept:
            raise DataError(f"no pair is left of {', '.join(map(str, sources))}: {_said(dropped)}.")
    licences = [licence] if licence else sorted({manifest.licence(file) for file in files})
    card = {
        "schema": manifest.CARD,
        "file": {**manifest.facts(out), "columns": list(langs), "rows": kept},
        "dropped": dict(dropped),
        "skipped": dict(skipped.counts),
        "rules": asdict(rules),
        "sources": {str(file): manifest.facts(file) for file in files},
        "excluded": {str(file): manifest.facts(file) for path in exclude for file in _files(path)},
        "tokenizer": manifest.facts(tokenizer) if tokenizer else None,
        "licence": "; ".join(licences),
    }
    manifest.write_json(manifest.card_of(out), card)
    return Cleaned(kept, dict(dropped), skipped)


class _Work(NamedTuple):
    """All that decides what becomes of a row."""

    sources: Sequence[Path]
    langs: Sequence[str]
    rules: Rules
    count: Count
    held_out: filters.Seen
    strict: bool

    def kept(
        self, seen: filters.Seen, skipped: Skipped, dropped: Counter[str], report: Report
    ) -> Iterator[tuple[list[tuple[str, ...]], np.ndarray]]:
        """Pairs that stay and their hashes, many at a time; what does not stay is counted."""
        done = 0
        for source in self.sources:
            audit = Audit(source, self.langs, skipped, self.strict)
            for rows in chunks(source, self.langs):
                pairs, bad = check(rows, self.langs)
                audit.add(len(rows), bad)
                yield self._filtered(pairs, seen, dropped)
                done += len(rows)
                report(done)
            audit.end()

    def _filtered(
        self, pairs: list[tuple[str, ...]], seen: filters.Seen, dropped: Counter[str]
    ) -> tuple[list[tuple[str, ...]], np.ndarray]:
        rules = self.rules
        good: list[tuple[str, ...]] = []
        for pair, lengths in zip(pairs, zip(*map(self.count, zip(*pairs, strict=True)), strict=True), strict=True):
            if not filters.length(lengths, rules.least, rules.most):
                dropped["length"] += 1
            elif not filters.ratio(lengths, rules.max_ratio):
                dropped["ratio"] += 1
            else:
                good.append(pair)
        keys = [[filters.key(side) for side in pair] for pair in good]
        copied = np.array([not filters.translated(of_pair) for of_pair in keys], bool)
        known = np.zeros(len(good), bool)
        if len(self.held_out):
            for side in zip(*keys, strict=True):
                known |= self.held_out.holds(filters.hashes(side, rules.seed))
        found = filters.hashes(["\t".join(of_pair) for of_pair in keys], rules.seed)
        stays = np.flatnonzero(~copied & ~known)
        fresh = stays[seen.new(found[stays])]
        dropped.update({"same on both sides": int(copied.sum()), "evaluated on": int((known & ~copied).sum())})
        dropped["copy"] += len(stays) - len(fresh)
        return [good[place] for place in fresh], found[fresh]


def _count(rules: Rules, langs: Sequence[str], tokenizer: Path | None) -> Count:
    if (rules.unit == "pieces") != (tokenizer is not None):
        raise UsageError("lengths in pieces need a tokenizer, and a tokenizer is for nothing else: give both.")
    if tokenizer:
        model = Tokenizer.load(tokenizer)
        return lambda sentences: [len(ids) - 1 for ids in model.encode(sentences)]  # EOS not counted
    if rules.unit == "characters":
        return lambda sentences: [len(sentence) for sentence in sentences]
    if unspaced := filters.UNSPACED & set(langs):
        names = ", ".join(sorted(unspaced))
        raise UsageError(f"{names} has no spaces between words: count characters, or pieces with a tokenizer.")
    return lambda sentences: [len(sentence.split()) for sentence in sentences]


def _evaluated(paths: Sequence[Path], seed: int) -> filters.Seen:
    """Hashes of the keys of every cell of these files but numbers."""
    seen = filters.Seen()
    for file in (file for path in paths for file in _files(path)):
        keys = set()
        for number, line in enumerate(lines(file), 1):
            try:
                cells = line.decode().split("\t")
            except UnicodeDecodeError:
                raise DataError(f"{file}:{number}: not UTF-8; convert the file to UTF-8.") from None
            keys |= {key for cell in cells if not _is_number(cell) and (key := filters.key(normalise(cell)))}
        if keys:
            seen.new(filters.hashes(sorted(keys), seed))
    return seen


def _files(path: Path) -> list[Path]:
    """The file, or every file of a folder but hidden ones and our records."""
    if not path.exists():
        raise NotFound(f"{path}: no such file or folder to exclude.")
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if file.suffix != ".json" and not file.name.startswith(".")]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _said(dropped: Counter[str]) -> str:
    return ", ".join(f"{count} {rule}" for rule, count in dropped.items() if count)
