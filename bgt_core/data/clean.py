"""Clean parallel text: normalise and filter pairs, drop copies and evaluation sentences, and write the remaining pairs.

The hashes that detect copies need 8 bytes of memory for each pair kept, and up to 24 bytes for a short time. The same
sources and settings always give the same file, byte for byte.
"""

from __future__ import annotations

import functools
import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bgt_core.data import manifest
from bgt_core.data.columns import LABEL, UNSPACED, parse_columns, primary, read_columns
from bgt_core.data.parallel import Skipped, check_table, checked_chunks, pair_file, source_files
from bgt_core.data.scores import ScoreRange, SentenceScore, chosen_scores, pair_scores
from bgt_core.data.text import Tokenizer, normalise
from bgt_core.data.textfile import number, text_lines
from bgt_core.errors import DataError, NotFound, UsageError, check_choice, check_least

Count = Callable[[Sequence[str]], list[int]]  # takes N sentences, returns their lengths
Report = Callable[[int, int | None], None]  # called with the number of pairs read, and None for the unknown total


@dataclass(frozen=True)
class CleaningRules:
    """The rules by which translations are kept or dropped; lengths are measured in `unit`."""

    min_length: int = 1
    max_length: int = 100
    max_ratio: float = 9.0  # maximum ratio of the lengths of the longer and the shorter sentence (Moses: 9)
    unit: str = "words"
    max_pairs: int | None = None  # keep a random sample of this size; it does not depend on the order of the sources
    seed: int = 1
    keep: tuple[ScoreRange, ...] = ()  # ranges in which the scores of a translation (second column) must lie
    first_of_reference: bool = False  # whether to keep only the first valid pair for each text of the first column

    def __post_init__(self) -> None:
        if not 1 <= self.min_length <= self.max_length:
            text = f"{self.min_length}: expected 1 or more, up to the maximum length ({self.max_length})."
            raise UsageError(text, parameter="min_length")
        check_least(1, max_ratio=self.max_ratio, max_pairs=self.max_pairs)
        check_least(0, seed=self.seed)
        check_choice(("words", "characters", "tokens"), unit=self.unit)


class Candidates(NamedTuple):
    """N rows of L translations each, with the values that filters need to keep or drop a row."""

    rows: list[tuple[str, ...]]  # normalised cells, including the label column (numbers), if there is one
    texts: list[tuple[str, ...]]  # the same rows without the label column
    keys: list[tuple[str, ...]]  # the `key` of each text, by which copies are found
    lengths: np.ndarray  # (N, L), lengths of the texts, in `CleaningRules.unit`
    costs: np.ndarray  # (N,) float64, the label column; NaN without such a column
    identities: np.ndarray  # (N,) uint64, hash of each row's first key, or of all its keys; copies have equal hashes

    def where(self, stays: np.ndarray) -> Candidates:
        """Keep only the rows for which `stays`, (N,) bool, is true."""
        chosen = np.flatnonzero(stays).tolist()
        rows, texts, keys = ([some[row] for row in chosen] for some in (self.rows, self.texts, self.keys))
        return Candidates(rows, texts, keys, self.lengths[stays], self.costs[stays], self.identities[stays])


Filter = Callable[[Candidates], np.ndarray]  # takes N rows of translations, returns whether to keep each row, (N,) bool


class Cleaned(NamedTuple):
    """The result of `clean`: how many pairs were kept and dropped, and which lines were skipped and why."""

    kept: int
    dropped: dict[str, int]  # filter -> number of pairs dropped; a pair counts only for the first filter that drops it
    skipped: Skipped


def clean(
    sources: Sequence[Path],
    columns: Sequence[str],
    out: Path,
    rules: CleaningRules | None = None,
    *,
    exclude: Sequence[Path] = (),
    models: Mapping[str, SentenceScore] | None = None,
    tokenizer: Path | None = None,
    licence: str | None = None,
    strict: bool = False,
    report: Report = lambda pairs, total: None,
) -> Cleaned:
    """Write the pairs of `sources` that meet `rules` to `out`, and a description of the sources and rules to OUT.json.

    Args:
        sources: Files of pairs, in the formats of `read_pairs`.
        columns: The columns in order: each is a language, or a name with a language, as in "reference:en". A column of
            numbers has "label" in place of a language, as in "cost:label"; it is written to `out`, too.
        out: The TSV file to write.
        rules: The rules; by default `CleaningRules()`.
        exclude: Files or folders of evaluation sentences: one sentence per line, or several separated by tabs. A pair
            is dropped if one of its sentences is among them; case and punctuation are ignored.
        models: {name: model}. Each model computes a score that is named in `rules.keep` but not built in, for the
            sentences of the second column.
        tokenizer: A SentencePiece model, if the unit of lengths is "tokens".
        licence: The licence to write to OUT.json; by default the licence that `bgt data download` recorded.
        strict: Whether the first bad row raises an error; otherwise bad rows are skipped.
        report: Called with the number of pairs read.

    Raises:
        UsageError: The settings are inconsistent.
        NotFound, DataError: A source is missing or invalid, as in `read_pairs`, or no pair is left.
    """
    rules, models = rules or CleaningRules(), models or {}
    check_table(out)
    langs = parse_columns(read_columns(columns))
    names, all_names = list(langs), [column.partition(":")[0] for column in columns]  # all_names: with skipped columns
    label = next((index for index, lang in enumerate(langs.values()) if lang == LABEL), -1)
    if not sources or len(langs) - (label >= 0) < 2:
        raise UsageError(f"{', '.join(columns)}: expected two columns of text and a source (got {len(sources)}).")
    files = [file for source in sources for file in source_files(source, all_names)]
    if out.absolute() in {file.absolute() for file in files}:
        raise UsageError(f"{out} is one of the sources; write to another file.", parameter="out")
    measure = _count(rules, langs.values(), tokenizer)
    read = partial(_read, sources, all_names, label, rules, measure, strict)
    filters = _filters(rules, exclude, models, has_costs=label >= 0)
    skipped, dropped, rows, seen = Skipped(), Counter[str](), 0, Seen()
    first_pass = () if rules.max_pairs is None else read(Skipped(), lambda pairs, total: None)
    sample = _sample(rules, filters, first_pass)
    unique = "another of its reference" if rules.first_of_reference else "copy"
    filters |= {unique: lambda candidates: seen.new(candidates.identities), **sample}
    with pair_file(out) as add:
        for candidates in read(skipped, report):
            kept = apply(filters, candidates, dropped).rows
            add([[cell.encode() for cell in row] for row in kept])
            rows += len(kept)
        if not rows:
            why = ", ".join(f"{count} {name}" for name, count in dropped.items() if count)
            raise DataError(f"no pair is left of {', '.join(map(str, sources))}; pairs dropped by each rule: {why}.")
    about = {
        "dropped": dict(dropped),
        "skipped": dict(skipped.counts),
        "rules": {**asdict(rules), "keep": list(map(str, rules.keep))},
        "excluded": {str(file): manifest.facts(file) for path in exclude for file in _files(path)},
        "tokenizer": manifest.facts(tokenizer) if tokenizer else None,
        "models": {name: models[name].fingerprint for name in filters if name in models},
    }
    manifest.write_card(out, names, rows, files, about, licence)
    return Cleaned(rows, dict(dropped), skipped)


def _sample(rules: CleaningRules, filters: Mapping[str, Filter], pairs: Iterable[Candidates]) -> dict[str, Filter]:
    """Make a filter that keeps `max_pairs` random pairs: those with the smallest hashes. Return {} if all are kept."""
    seen = Seen()
    for candidates in pairs:
        seen.new(apply(filters, candidates, Counter()).identities)
    if not rules.max_pairs or len(seen) <= rules.max_pairs:
        return {}
    limit = np.uint64(seen.smallest(rules.max_pairs))
    return {"not in the sample": lambda candidates: candidates.identities <= limit}


def apply(filters: Mapping[str, Filter], candidates: Candidates, dropped: Counter[str]) -> Candidates:
    """Return the rows that all filters keep; count each dropped row for the first filter that drops it."""
    for name, keep in filters.items():
        stays = keep(candidates)
        dropped[name] += len(stays) - int(stays.sum())
        if not stays.all():
            candidates = candidates.where(stays)
    return candidates


def _read(
    sources: Sequence[Path],
    columns: Sequence[str],
    label: int,
    rules: CleaningRules,
    measure: Count,
    strict: bool,
    skipped: Skipped,
    report: Report,
) -> Iterator[Candidates]:
    """Yield the valid rows of all sources in chunks; count the bad rows in `skipped`."""
    done = 0
    for source in sources:
        for chunk in checked_chunks(source, columns, skipped, strict, label):
            if chunk.texts:
                lengths = np.array([measure(side) for side in zip(*chunk.texts, strict=True)]).T
                keys = [tuple(map(key, texts)) for texts in chunk.texts]
                differ = [sides[0] if rules.first_of_reference else "\t".join(sides) for sides in keys]
                yield Candidates(chunk.rows, chunk.texts, keys, lengths, chunk.values, hashes(differ, rules.seed))
            done += chunk.size
            report(done, None)


def _filters(
    rules: CleaningRules, exclude: Sequence[Path], models: Mapping[str, SentenceScore], has_costs: bool
) -> dict[str, Filter]:
    """Return the filters that need only the pair itself: {name: filter}, in the order in which they are applied."""
    held_out, scores = _held_out(exclude, rules.seed), pair_scores(models)
    ranges = chosen_scores(rules.keep, scores)
    if "cost" in ranges and not has_costs:
        raise UsageError(
            "cost=... needs a column of costs; name the column, as in a:en,b:en,cost:label.", parameter="keep"
        )

    def not_held_out(some: Candidates) -> np.ndarray:
        if not len(held_out):
            return np.ones(len(some.keys), bool)
        of_cells = held_out.holds(hashes(list(chain.from_iterable(some.keys)), rules.seed))
        return ~np.any(of_cells.reshape(some.lengths.shape), axis=1)

    def in_range(score: str, some: Candidates) -> np.ndarray:
        return ranges[score].holds(scores[score](some.texts, some.costs))

    return {
        "length": lambda some: (
            (some.lengths.min(axis=1) >= rules.min_length) & (some.lengths.max(axis=1) <= rules.max_length)
        ),
        "ratio": lambda some: some.lengths.max(axis=1) <= rules.max_ratio * some.lengths.min(axis=1),
        # drop a row in which a sentence is a copy of its translation
        "same on both sides": lambda some: np.array([len(set(sides)) == len(sides) for sides in some.keys], bool),
        "evaluated on": not_held_out,
        **{score: partial(in_range, score) for score in ranges},
    }


def length_unit(columns: Sequence[str]) -> str:
    """Return the unit of lengths: "words", or "characters" if a column's language has no spaces between words."""
    langs = parse_columns(read_columns(columns)).values()
    return "characters" if UNSPACED & set(map(primary, langs)) else "words"


def _count(rules: CleaningRules, langs: Iterable[str], tokenizer: Path | None) -> Count:
    if (rules.unit == "tokens") != (tokenizer is not None):
        raise UsageError("tokens needs a tokenizer; the other units need none.", parameter="unit")
    if tokenizer:
        model = Tokenizer.load(tokenizer)
        return lambda sentences: [len(ids) - 1 for ids in model.encode(sentences)]  # EOS is not counted
    if rules.unit == "characters":
        return lambda sentences: [len(sentence) for sentence in sentences]
    if unspaced := UNSPACED & set(map(primary, langs)):
        names = ", ".join(sorted(unspaced))
        raise UsageError(
            f"{rules.unit}: {names} is written without spaces between words; use the unit characters, or tokens "
            "with a tokenizer.",
            parameter="unit",
        )
    return lambda sentences: [len(sentence.split()) for sentence in sentences]


def _held_out(paths: Sequence[Path], seed: int) -> Seen:
    """Hash the keys of all sentences in files of evaluation data; skip cells that are numbers."""
    seen = Seen()
    for file in chain.from_iterable(map(_files, paths)):
        cells = {cell for _, line in text_lines(file) for cell in line.split("\t") if math.isnan(number(cell))}
        if keys := {key(normalise(cell)) for cell in cells} - {""}:
            seen.new(hashes(sorted(keys), seed))
    return seen


def _files(path: Path) -> list[Path]:
    """Return `path` if it is a file, else all files under this folder, except hidden files and .json files."""
    if not path.exists():
        raise NotFound(f"{path}: no such file or folder.", parameter="exclude")
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if file.suffix != ".json" and not file.name.startswith(".")]


# Find copies of sentences, that is, sentences that differ only in case and punctuation, by sets of hashes.


def key(sentence: str) -> str:
    """Reduce a normalised sentence to a key: lower case, Unicode form NFKC, without punctuation, symbols and spaces.

    If nothing would remain, the key is the sentence in lower case. Two sentences with the same key count as copies.
    """
    folded = unicodedata.normalize("NFKC", sentence).casefold() if not sentence.isascii() else sentence.lower()
    return folded.translate(_not_in_keys()) or folded


def hashes(texts: Sequence[str], seed: int) -> np.ndarray:
    """Hash N texts to 64 bits each, (N,) uint64; different seeds give different hashes."""
    salt = seed.to_bytes(16, "little")
    return np.frombuffer(
        b"".join([blake2b(text.encode(), digest_size=8, salt=salt).digest() for text in texts]), np.dtype("<u8")
    )


class Seen:
    """A growing set of hashes, which takes 8 bytes of memory per hash, and up to 24 bytes during a merge.

    The hashes are in sorted runs, each at least twice as long as the next, so adding N hashes takes N log N steps. The
    probability that any two of a hundred million different texts have the same hash is 1 in 3,700.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def holds(self, some: np.ndarray) -> np.ndarray:
        """Return which of N hashes are in the set, (N,) bool."""
        held = np.zeros(len(some), bool)
        for run in self._runs:
            nearest = np.minimum(np.searchsorted(run, some), len(run) - 1)
            held |= run[nearest] == some
        return held

    def new(self, some: np.ndarray) -> np.ndarray:
        """Add N hashes; return which of them are new, (N,) bool: neither in the set before, nor earlier in `some`."""
        first = np.zeros(len(some), bool)
        first[np.unique(some, return_index=True)[1]] = True
        fresh = first & ~self.holds(some)
        if fresh.any():
            self._runs.append(np.sort(some[fresh]))
            while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
                last = self._runs.pop()
                self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")  # fast for sorted runs
        return fresh

    def smallest(self, count: int) -> int:
        """Return the `count`-th smallest hash."""
        return int(np.partition(np.concatenate(self._runs), count - 1)[count - 1])


@functools.cache
def _not_in_keys() -> dict[int, None]:
    """Map punctuation, symbols and spaces to None, so that `str.translate` drops them."""
    return {code: None for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZ"}


def copy_key(sentence: str) -> str:
    """Return a key that ignores case, repeated spaces, Unicode form and invisible characters.

    Most tokenizers produce the same tokens for two sentences with the same key, so most encoders produce the same
    vector. So no test sentence may have the same key as a training sentence.
    """
    return normalise(unicodedata.normalize("NFKC", normalise(sentence)).casefold())


def join_copies(sentences: Sequence[str], groups: Sequence[int]) -> list[int]:
    """Join groups of sentences that contain copies of the same sentence.

    If group A shares a sentence with B, and B shares another with C, then all three are joined. `groups[i]` is the
    ID of the group of sentence i. Returns the new group ID of each sentence, (N,): joined groups get the ID of the
    group whose sentence comes first.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    nodes: dict[object, int] = {}  # node -> its index; the graph links each group to the keys of its sentences
    of_group = [nodes.setdefault((group,), len(nodes)) for group in groups]
    of_key = [nodes.setdefault(copy_key(sentence), len(nodes)) for sentence in sentences]
    links = coo_array((np.ones(len(groups)), (of_group, of_key)), shape=(len(nodes), len(nodes)))
    components = connected_components(links, directed=False)[1].tolist()
    first: dict[int, int] = {}  # connected component -> group of its first sentence
    return [first.setdefault(components[node], group) for node, group in zip(of_group, groups, strict=True)]
