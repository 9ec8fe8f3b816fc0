"""Compare systems: compute scores with confidence intervals, test differences, and mark the best systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import UsageError, check_least
from bgt_core.evaluation.bootstrap import ItemSample, bootstrap, holm, interval, share, two_sided_p, wilson
from bgt_core.files import write_text
from bgt_core.tables import ROWS, Estimate, Table, Value, latex_text, markdown_text, p_text, save

Key: TypeAlias = Any  # the name of a score: a NamedTuple of strings, and the number of items as last field
Cell = Estimate | float | None  # the value of a score; a float has no interval


class Difference(NamedTuple):
    """The score of system `first` minus the score of system `second`."""

    key: Key
    first: str
    second: str
    difference: Estimate
    p: float  # two-sided p-value
    p_holm: float  # p, corrected by Holm's method for all differences of the same family (`Statistic.families`)

    def seen_from(self, system: str) -> Difference:
        """Return the score of `system` minus the score of the other system. If `system` is `first`, return self."""
        if system == self.first:
            return self
        value, low, high, mark = self.difference
        return self._replace(first=self.second, second=self.first, difference=Estimate(-value, -high, -low, mark))


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """Scores of S systems and tested differences, with the settings and the names of the data."""

    systems: Sequence[str]
    scores: Mapping[Key, Sequence[Cell]]  # name of a score -> value for each system
    differences: Sequence[Difference]
    about: str  # a description of the measure and the data
    warnings: Sequence[str]
    level: float  # confidence level of the intervals
    resamples: int
    seed: int
    models: Mapping[str, SentenceEncoder] = field(default_factory=dict)  # model name -> encoder
    task: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of the task
    across: str = "system"  # columns of the table: "system", or a field of the scores' keys
    source: str = ""  # the files from which the items were read

    def value(self, key: Sequence[Any], system: str | None = None) -> float:
        """Return a score of `system`, by default of the only system; `key` is the score's name, or its first fields.

        Raises:
            UsageError: `key` names no score, or several.
        """
        matching = [cells for name, cells in self.scores.items() if name[: len(key)] == tuple(key)]
        names = [system] if system else self.systems
        if len(matching) != 1 or len(names) != 1 or names[0] not in self.systems:
            raise UsageError(
                f"{tuple(key)}: {len(matching)} scores have this name; name exactly one score, and one of the systems "
                f"{', '.join(self.systems)}."
            )
        cell = matching[0][self.systems.index(names[0])]
        return float("nan") if cell is None else cell.value if isinstance(cell, Estimate) else cell

    def records(self) -> list[dict[str, Any]]:
        """Return a dict for each score of each system: the fields of the key, "system", "value", "ci_low", "ci_high"
        and "marked". The value of "marked" is "best", "tied" (not significantly worse than the best), or ""."""
        return [
            {**key._asdict(), "system": system, **entry(cell)}
            for key, cells in self.scores.items()
            for system, cell in zip(self.systems, cells, strict=True)
            if cell is not None
        ]

    def rows(self) -> Table:
        """Make the table for .parquet and .csv files. Its columns are `tables.ROWS`; a row has one system's score."""
        models = sorted(self.models, key=len, reverse=True)  # longest first: the system "a b x" also begins with "a"
        owners = {
            system: next((name for name in models if f"{system} ".startswith(f"{name} ")), "")
            for system in self.systems
        }
        if len(models) == 1 and not any(owners.values()):  # each system is a search method of the one model
            owners = dict.fromkeys(self.systems, models[0])
        fingerprints = {name: str(getattr(model, "fingerprint", "")) for name, model in self.models.items()}
        langs = str(self.settings.get("lang") or self.settings.get("langs") or "")
        rows: list[list[Any]] = []
        for key, cells in self.scores.items():
            lang, score = getattr(key, "lang", getattr(key, "written", langs)), " / ".join(map(str, key[:-1]))
            for system, cell in zip(self.systems, cells, strict=True):
                owner, part = owners[system], system.removeprefix(owners[system]).strip() or system
                model = [owner, fingerprints.get(owner, ""), self.task, lang, part, score]
                values = cell[:3] if isinstance(cell, Estimate) else (cell, None, None)
                if cell is not None:
                    rows.append([*model, *values, key[-1], not owner, self.seed, self.source])
        return Table(list(ROWS), rows)

    def as_dict(self) -> dict[str, Any]:
        """Convert everything except the models to a dict for JSON, in the schema bgt-evaluate/2."""
        names = ("task", "settings", "source", "about", "warnings", "level", "resamples", "seed")
        gaps = [gap._asdict() for gap in self.differences]
        differences = [{**gap.pop("key")._asdict(), **entry(gap.pop("difference")), **gap} for gap in gaps]
        about = {"schema": "bgt-evaluate/2"} | {name: getattr(self, name) for name in names}
        return about | {"scores": self.records(), "differences": differences}

    def save(self, path: Path) -> None:
        """Write the result to a file, in the format that the name's ending selects. An error leaves no partial file.

        .parquet and .csv files contain `rows`. .json files contain everything, including differences and their
        p-values. .tex and .md files contain the table of scores and the table of differences.

        Raises:
            UsageError: The name has another ending.
            NotFound: The file can't be written.
        """
        check_ending(path)
        if path.suffix in (".parquet", ".csv"):
            save(self.rows(), path)
        elif path.suffix == ".json":
            write_text(path, json.dumps(self.as_dict(), indent=2, ensure_ascii=False))
        else:
            text = latex_text if path.suffix == ".tex" else markdown_text
            tables = [(self.table(), self.about), (self.difference_table(), "")]
            write_text(path, "\n".join(text(table, note) for table, note in tables if table.rows))

    def table(self, across: str | None = None) -> Table:
        """Make a table for display, with a column for each system, or for each value of another field of the scores.

        `across` selects the columns: "system" or a field of `Key`; by default, the task decides. Each combination of
        the other fields is a row. The number of items is shown only if `across` is "system".
        """
        across = across or self.across
        rows: dict[tuple[Any, ...], dict[str, Value]] = {}
        head: list[str] = []
        columns = list(self.systems) if across == "system" else []
        for key, cells in self.scores.items():
            for system, cell in zip(self.systems, cells, strict=True):
                parts = {**key._asdict(), "system": system}
                if across != "system":
                    parts.pop(key._fields[-1])  # the number of items may differ within a row of the table
                    if cell is None:
                        continue
                column = parts.pop(across)
                head = [name.replace("_", " ") for name in parts]
                shown = f"{cell:.4g}" if isinstance(cell, float) else cell
                rows.setdefault(tuple(parts.values()), {})[column] = shown
                if column not in columns:
                    columns.append(column)
        return Table([*head, *columns], [[*row, *(cells.get(name) for name in columns)] for row, cells in rows.items()])

    def difference_table(self) -> Table:
        """Make a table for display, with a row for each tested difference of two systems."""
        rows: list[list[Value]] = [
            [*gap.key[:-1], f"{gap.first} - {gap.second}", gap.difference, p_text(gap.p), p_text(gap.p_holm)]
            for gap in self.differences
        ]
        fields = self.differences[0].key._fields[:-1] if self.differences else ()
        return Table([*(name.replace("_", " ") for name in fields), "difference", "points", "p", "p (Holm)"], rows)


def entry(cell: float | Estimate) -> dict[str, float | str]:
    """Convert a score to a dict, with its interval if it has one."""
    parts = cell if isinstance(cell, Estimate) else (cell,)
    return dict(zip(("value", "ci_low", "ci_high", "marked"), parts, strict=False))


def check_ending(path: Path) -> None:
    """Raise UsageError if the file's name does not end in .parquet, .csv, .md, .tex or .json."""
    if path.suffix not in (endings := [".parquet", ".json", ".csv", ".tex", ".md"]):
        raise UsageError(f"{path}: expected a file that ends in {', '.join(endings)}.", parameter="out")


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistic:
    """The scores of S systems as functions of the resampled items; the input of `compare`.

    `scores` gets an array (B, N) for each of `samples`: how often each of its N items is drawn in each of B resamples.
    It returns an array (B, S) for each key, with NaN for a system without that score. `hits` are further
    scores: each has a value from 0 to 1 for each system and item, (S, N), and a system's score is the mean of its
    values in percent. Scores in `hits` have Wilson's intervals, and an exact sign test compares the systems.
    """

    systems: Sequence[str]
    scores: Callable[[Sequence[np.ndarray]], Mapping[Key, np.ndarray]] = lambda weights: {}
    samples: Sequence[ItemSample] = ()
    hits: Mapping[Key, np.ndarray] = field(default_factory=dict)
    numbers: Mapping[Key, Sequence[float | None]] = field(default_factory=dict)  # scores without intervals
    about: str = ""  # a description of the measure and the data
    warnings: Sequence[str] = ()  # reasons why scores may differ from published ones
    compared: Sequence[str] | None = None  # systems whose differences are tested; None for all
    lower_is_better: Collection[Key] = ()
    families: Mapping[Key, str] = field(default_factory=dict)  # score -> family; Holm's method corrects each family


def compare(statistic: Statistic, *, resamples: int = 2_000, level: float = 0.95, seed: int = 0) -> Result:
    """Compute bootstrap intervals of scores, with the same resamples for all systems, and test differences.

    The differences of any two compared systems are paired, and Holm's method corrects their p-values. For each score,
    the best system is marked "best" if it differs significantly from all others. Otherwise, the best system and all
    systems that do not differ significantly from it are marked "tied". Raises UsageError for fewer than 100 resamples,
    or for a confidence level below 0.5 or of at least 1.
    """
    check_bootstrap(resamples, level)
    # use the same resamples for all scores in `hits` that have the same number of items
    sizes = list(dict.fromkeys(rows.shape[1] for rows in statistic.hits.values()))
    own = len(statistic.samples)

    def of_weights(weights: Sequence[np.ndarray]) -> dict[Key, np.ndarray]:
        drawn = dict(zip(sizes, weights[own:], strict=True))
        hits = {key: share(drawn[rows.shape[1]], rows, np.ones_like(rows)) for key, rows in statistic.hits.items()}
        return {**statistic.scores(weights[:own]), **hits}

    samples = [*statistic.samples, *(ItemSample(size, (1,)) for size in sizes)]
    values, draws = bootstrap(of_weights, samples, resamples=resamples, seed=seed)
    gaps = differences(statistic, values, draws, level)
    same = {(gap.key, frozenset((gap.first, gap.second))) for gap in gaps if gap.p_holm >= 1 - level}
    scores: dict[Key, list[Cell]] = {}
    for key, value in values.items():
        if (rows := statistic.hits.get(key)) is None:
            low, high = interval(draws[key], level)
        else:
            ends = [wilson(float(row.sum()), len(row), level) if np.isfinite(row).all() else (0, 0) for row in rows]
            value, (low, high) = 100 * rows.mean(1), 100 * np.array(ends).T
        marks = marks_of(statistic, key, value, same)
        parts = zip(value.tolist(), low.tolist(), high.tolist(), statistic.systems, strict=True)
        scores[key] = [None if np.isnan(each[0]) else Estimate(*each[:3], marks.get(each[3], "")) for each in parts]
    ways = ["Wilson's"] * bool(statistic.hits) + [f"from {resamples} resamples"] * bool(statistic.samples)
    return Result(
        systems=list(statistic.systems),
        scores=scores | {key: list(row) for key, row in statistic.numbers.items()},
        differences=gaps,
        about=f"{statistic.about}; {100 * level:g}% intervals {' and '.join(ways)}"
        + ("; differences: paired, p with Holm's correction" if gaps else ""),
        warnings=statistic.warnings,
        level=level,
        resamples=resamples,
        seed=seed,
    )


def check_bootstrap(resamples: int, level: float = 0.95) -> None:
    """Raise UsageError for fewer than 100 resamples, or for a confidence level below 0.5 or of at least 1."""
    check_least(100, resamples=resamples)
    if not 0.5 <= level < 1:
        raise UsageError(f"{level} must be at least 0.5 and below 1", parameter="level")


def differences(
    statistic: Statistic, values: Mapping[Key, np.ndarray], draws: Mapping[Key, np.ndarray], level: float
) -> list[Difference]:
    """Test the difference of each two compared systems in each score, given scores (S,) and resampled scores (B, S)."""
    names = list(statistic.systems)
    gaps = []
    for first, second in combinations(map(names.index, compared_of(statistic)), 2):
        for key, value in values.items():
            gain, gains = value[first] - value[second], draws[key][:, first] - draws[key][:, second]
            if np.isnan(gain):
                continue
            rows = statistic.hits.get(key)
            p = float(two_sided_p(gain, gains)) if rows is None else sign_test(rows[first], rows[second])
            low, high = map(float, interval(gains, level))
            difference = Estimate(float(gain), low, high)
            gaps.append(Difference(key, names[first], names[second], difference, p, p))
    families = np.array([statistic.families.get(gap.key, "") for gap in gaps])
    for family in set(families):
        members = np.flatnonzero(families == family)
        for row, p in zip(members, holm(np.array([gaps[row].p for row in members])), strict=True):
            gaps[row] = gaps[row]._replace(p_holm=float(p))
    return gaps


def compared_of(statistic: Statistic) -> Sequence[str]:
    return statistic.systems if statistic.compared is None else statistic.compared


def sign_test(first: np.ndarray, second: np.ndarray) -> float:
    """Return the exact p-value for the null hypothesis that each system beats the other on equally many of N items.

    Unlike a test by resamples, this test works even if one system is always right and the other is always wrong.
    """
    from scipy.special import bdtr  # slow to import

    wins, losses = int((first > second).sum()), int((first < second).sum())
    return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))


def marks_of(
    statistic: Statistic, key: Key, values: np.ndarray, same: Collection[tuple[Key, frozenset[str]]]
) -> dict[str, str]:
    """Return {system: "best" or "tied"}, given scores (S,). `same`: system pairs that do not differ significantly."""
    sign = -1 if key in statistic.lower_is_better else 1
    of = {name: sign * value for name, value in zip(statistic.systems, values, strict=True) if not np.isnan(value)}
    of = {name: of[name] for name in compared_of(statistic) if name in of}
    best = max(of, key=lambda name: (of[name], name), default="")
    tied = {name for name in of if (key, frozenset((best, name))) in same}
    return dict.fromkeys(tied | {best}, "tied") if tied else {best: "best"} if len(of) > 1 else {}
