"""Is the paraphrase of a sentence nearer to it than a sentence that is altered in meaning but not in words?

file, or the grammar's held-out part -> `Triples` -> similarity of each pair -> shares by kind, intervals, differences
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.textfile import text_lines
from bgt_core.errors import BgtError, DataError, UsageError, did_you_mean
from bgt_core.evaluation.bootstrap import bootstrapped_shares, holm, wilson
from bgt_core.evaluation.comparison import PairwiseDifference, check_bootstrap, differences, marked
from bgt_core.grammar.triples import LANGS, triples
from bgt_core.tables import Estimate, Table, Value, p_text
from bgt_core.vectors.compare import DECIMALS

ALL = "all"  # the score over triples of every kind
BLOCK = 2_048  # triples embedded at once, to bound memory


@dataclass(frozen=True)
class Triples:
    """N triples of sentences of one language. Raises DataError for an empty set."""

    name: str
    kinds: Sequence[str]  # of each triple; "" if the file has no kinds
    sentences: Sequence[str]
    paraphrases: Sequence[str]
    altered: Sequence[str]
    skipped: int = 0  # rows of the file without a paraphrase

    def __post_init__(self) -> None:
        if not self.sentences:
            raise DataError(f"{self.name}: no triples; expected lines of kind, sentence, paraphrase, altered sentence.")
        if len({len(column) for column in (self.kinds, self.sentences, self.paraphrases, self.altered)}) > 1:
            raise DataError(f"{self.name}: columns of different lengths; each triple needs an entry in all of them.")

    def __len__(self) -> int:
        return len(self.sentences)


def read_triples(path: Path | str, kinds: Sequence[str] = ()) -> Triples:
    """Read triples from a TSV without header and quotes, plain, .gz, .xz or .zst.

    Args:
        path: Lines of kind, sentence, paraphrase and altered sentence, or of the last three.
        kinds: Kinds to keep; none keeps all.

    Returns:
        The triples, in the order of the file. Rows with an empty paraphrase are skipped and counted.

    Raises:
        UsageError: A kind that no row has.
        NotFound: The file is absent.
        DataError: The file is damaged, no row is left, or, by file and line, a line has another number of columns or
            no sentence.
    """
    rows: list[list[str]] = []
    skipped: Counter[str] = Counter()
    width = 0  # columns of the first line
    for number, line in text_lines(Path(path)):
        fields = [field.strip() for field in line.split("\t")]
        width = width or len(fields)
        if len(fields) != width or width not in (3, 4):
            columns = "kind, sentence, paraphrase and altered sentence, or the last three, in every line"
            raise DataError(f"{path}:{number}: {len(fields)} columns; expected {columns}.")
        kind, sentence, paraphrase, altered = fields if len(fields) == 4 else ["", *fields]
        if not sentence or not altered:
            raise DataError(f"{path}:{number}: an empty sentence; remove the line.")
        if paraphrase:
            rows.append([kind, sentence, paraphrase, altered])
        else:
            skipped[kind] += 1
    known = sorted({row[0] for row in rows} | skipped.keys())
    if unknown := [kind for kind in kinds if kind not in known]:
        guess = did_you_mean(unknown[0], known)
        raise UsageError(f"{path}: no triples of kind '{unknown[0]}'; its kinds: {', '.join(known)}.{guess}")
    kept = [row for row in rows if not kinds or row[0] in kinds]
    kind_of, first, second, third = ([row[column] for row in kept] for column in range(4))
    return Triples(Path(path).name, kind_of, first, second, third, sum(skipped[kind] for kind in kinds or skipped))


def grammar_triples(count: int = 1_000, lang: str = "en", seed: int = 0) -> Triples:
    """Draw triples of the built-in grammar with its held-out nouns, verbs and frames.

    Args:
        count: Number of triples, the kinds in turn.
        lang: "en" or "fr".
        seed: Seed of the draws.

    Returns:
        The triples; a training run that used `bgt_core.grammar.triples.triple_rows` has seen none of their words.

    Raises:
        UsageError: Another language, or a count out of range.
    """
    if lang not in LANGS:
        raise UsageError(f"`lang` {lang}: the grammar's triples are in {' and '.join(LANGS)}; give a file of others.")
    drawn = triples(count, seed, held_out=True)
    first, second, third = ([triple.texts[lang][column] for triple in drawn] for column in range(3))
    kinds = [triple.kind for triple in drawn]
    return Triples(f"held-out triples of the grammar ({lang})", kinds, first, second, third)


@dataclass(frozen=True, eq=False)
class TriplesTable:
    """Shares x 100 of triples whose paraphrase is nearer: for each kind, and ALL, an estimate per system."""

    systems: Sequence[str]
    counts: Mapping[str, int]  # triples by kind
    shares: Mapping[str, Sequence[Estimate]]  # by kind
    differences: Sequence[PairwiseDifference[str]]
    nearer: Mapping[str, np.ndarray]  # by system: 1, 0 or, for a tie, 0.5 for each triple, (N,)
    level: float  # of the intervals
    resamples: int
    seed: int
    about: str  # what was measured on what

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it, without the single triples: schema bgt-triples/1."""
        settings = {"level": self.level, "resamples": self.resamples, "seed": self.seed}
        shares = [
            {
                "kind": kind,
                "triples": self.counts[kind],
                "systems": dict(zip(self.systems, map(entry, row), strict=True)),
            }
            for kind, row in self.shares.items()
        ]
        gaps = [
            {"kind": gap.key, "first": gap.first, "second": gap.second, **entry(gap.difference)}
            | {"p": gap.p, "p_holm": gap.p_holm}
            for gap in self.differences
        ]
        head = {"schema": "bgt-triples/1", "about": self.about, **settings}
        return {**head, "shares": shares, "differences": gaps}

    def table(self) -> Table:
        """A row per kind, a column per system."""
        rows: list[list[Value]] = [[kind, self.counts[kind], *row] for kind, row in self.shares.items()]
        return Table(["kind", "triples", *self.systems], rows)

    def difference_table(self) -> Table:
        """A row per difference."""
        rows: list[list[Value]] = [
            [gap.key, f"{gap.first} - {gap.second}", gap.difference, p_text(gap.p), p_text(gap.p_holm)]
            for gap in self.differences
        ]
        return Table(["kind", "difference", "points", "p", "p (Holm)"], rows)


def evaluate(
    encoders: SentenceEncoder | Mapping[str, SentenceEncoder],
    items: Triples,
    *,
    lang: str = "en",
    latent: str | None = None,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> TriplesTable:
    """Measure in how many triples the paraphrase is nearer to the sentence than the altered sentence is.

        table = evaluate({"mine": bgt_core.load("runs/mine")}, grammar_triples())

    Args:
        encoders: One encoder, or several by name; each latent of each is a system.
        items: The triples.
        lang: Language of the sentences.
        latent: The latent to compare by; by default each that an encoder has.
        resamples: Number of bootstrap resamples of the triples, for differences.
        level: Level of the intervals: Wilson's for shares, percentiles of the resamples for differences.
        seed: Seed of the resamples.

    Returns:
        Shares by kind and over all triples, and the paired differences of systems with p-values of exact sign tests
        and Holm's correction over the table. Similarities that differ by less than rounding are ties, which count half.

    Raises:
        UsageError: Impossible settings, two systems of one name, a latent or language that an encoder lacks.
        DataError: Vectors that are not finite numbers, one row per sentence.
    """
    check_bootstrap(resamples, level)
    nearer: dict[str, np.ndarray] = {}
    for name, encoder, each in systems_of(encoders, lang, latent):
        row = f"{name} {each}" if len(encoder.latents) > 1 else name
        if row in nearer:
            raise UsageError(f"Two systems are called '{row}'; give one another name.")
        try:
            nearer[row] = paraphrase_nearer(encoder, items, lang, each)
        except BgtError as error:
            raise type(error)(f"{name}: {error}") from None
    names, scores = list(nearer), np.stack(list(nearer.values()))  # (S, N)
    rows_of = rows_by_kind(items.kinds)
    shares: dict[str, list[Estimate]] = {}
    values: dict[str, np.ndarray] = {}
    draws: dict[str, np.ndarray] = {}
    for kind, rows in rows_of.items():
        part = scores[:, rows]
        by_kind, drawn = bootstrapped_shares({kind: (part, np.ones_like(part))}, resamples, seed)
        values |= by_kind
        draws |= drawn
        shares[kind] = [share(system, level) for system in part]
    gaps = exactly_tested(differences(names, values, draws, level), nearer, rows_of)
    return TriplesTable(
        systems=names,
        counts={kind: len(rows) for kind, rows in rows_of.items()},
        shares=marked(names, shares, gaps, level),
        differences=gaps,
        nearer=nearer,
        level=level,
        resamples=resamples,
        seed=seed,
        about=explain(items, level, resamples),
    )


def systems_of(
    encoders: SentenceEncoder | Mapping[str, SentenceEncoder], lang: str, latent: str | None
) -> list[tuple[str, SentenceEncoder, str]]:
    """Each name, encoder and latent; UsageError for a latent or language that an encoder lacks, before embedding."""
    systems = []
    for name, encoder in (encoders if isinstance(encoders, Mapping) else {"model": encoders}).items():
        if latent and latent not in encoder.latents:
            raise UsageError(f"{name}: no latent '{latent}'; choose from {', '.join(encoder.latents)}.")
        if encoder.langs and lang not in encoder.langs:
            raise UsageError(f"{name}: the model has no language '{lang}'; it has {', '.join(encoder.langs)}.")
        systems += [(name, encoder, each) for each in ([latent] if latent else encoder.latents)]
    return systems


def paraphrase_nearer(encoder: SentenceEncoder, items: Triples, lang: str, latent: str) -> np.ndarray:
    """For each triple 1 if the paraphrase is nearer, 0 if the altered sentence is, 0.5 for a tie: (N,)."""
    gains = []
    for start in range(0, len(items), BLOCK):
        columns = [each[start : start + BLOCK] for each in (items.sentences, items.paraphrases, items.altered)]
        row = {text: number for number, text in enumerate(dict.fromkeys(text for column in columns for text in column))}
        vectors = np.asarray(encoder.embed(list(row), lang=lang, latent=latent))
        if vectors.ndim != 2 or len(vectors) != len(row):
            raise DataError(f"{len(row)} sentences gave vectors of shape {vectors.shape}; expected a row each.")
        if len(bad := np.flatnonzero(~np.isfinite(vectors).all(1))):
            raise DataError(f"The vector of '{list(row)[bad[0]][:60]}' contains NaN or infinity.")
        sentence, paraphrase, altered = (vectors[[row[text] for text in column]] for column in columns)
        gains.append(encoder.similarity_pairwise(sentence, paraphrase) - encoder.similarity_pairwise(sentence, altered))
    return (np.sign(np.concatenate(gains).round(DECIMALS)) + 1) / 2


def exactly_tested(
    gaps: Sequence[PairwiseDifference[str]], nearer: Mapping[str, np.ndarray], rows_of: Mapping[str, np.ndarray]
) -> list[PairwiseDifference[str]]:
    """The same differences with the p-value of an exact sign test of the triples in which two systems differ.

    All triples of a kind may be right by one system and wrong by another. Resamples of such a difference are all equal
    and have no standard error to test with.
    """
    p = []
    for gap in gaps:
        gain = (nearer[gap.first] - nearer[gap.second])[rows_of[gap.key]]
        differing = int((gain != 0).sum())
        p.append(float(binomtest(int((gain > 0).sum()), differing).pvalue) if differing else 1.0)
    corrected = holm(np.array(p))
    return [replace(gap, p=p[row], p_holm=float(corrected[row])) for row, gap in enumerate(gaps)]


def rows_by_kind(kinds: Sequence[str]) -> dict[str, np.ndarray]:
    """The rows of each kind, if there are several, and last of ALL."""
    names = list(dict.fromkeys(kinds))
    several = {kind: np.flatnonzero([each == kind for each in kinds]) for kind in names} if len(names) > 1 else {}
    return several | {ALL: np.arange(len(kinds))}


def share(nearer: np.ndarray, level: float) -> Estimate:
    """x 100, with Wilson's interval."""
    low, high = wilson(float(nearer.sum()), len(nearer), level)
    return Estimate(100 * float(nearer.mean()), 100 * low, 100 * high)


def explain(items: Triples, level: float, resamples: int) -> str:
    """What was measured on what, in two lines."""
    skipped = f"; {items.skipped:,} rows without a paraphrase skipped" if items.skipped else ""
    return (
        f"{items.name}: {len(items):,} triples{skipped}\n"
        "x 100: triples whose paraphrase is nearer to the sentence than the altered sentence is, ties count half; "
        f"{100 * level:g}% intervals (Wilson); differences: paired, intervals from {resamples} resamples of the "
        "triples, p from an exact sign test, Holm over the table"
    )


def entry(estimate: Estimate) -> dict[str, float | str]:
    return dict(zip(("value", "ci_low", "ci_high", "mark"), estimate, strict=True))
