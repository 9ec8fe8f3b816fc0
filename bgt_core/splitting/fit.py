"""From an encoder and pairs of sentences to a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.errors import DataError, UsageError, check_choice
from bgt_core.splitting.methods import bgt, centring, leace, neural, shift, subspace
from bgt_core.splitting.moments import HeldOut, Moments, Statistics, statistics
from bgt_core.splitting.parts import Split
from bgt_core.splitting.proof import scores

METHODS: dict[str, Callable[..., Split]] = {
    "bgt": bgt.fit,
    "centring": centring.fit,
    "leace": leace.fit,
    "neural": neural.fit,
    "shift": shift.fit,
    "subspace": subspace.fit,
}
FACTORED = ("bgt", "neural")  # methods that choose factors, and need no second language
TRAINED_ON = {"neural": 200_000}  # method -> maximum number of rows whose vectors it needs beside the sums
AT_ONCE = 4_096  # rows embedded together
HELD_OUT, MOST_HELD_OUT = 0.1, 4_000  # share of the rows that choose settings and are measured, and how many at most
LEAST = 50  # rows of any method
OF_WIDTH = 2  # times the units, rows that covariances need


@dataclass(frozen=True, eq=False)
class Gathered:
    """What methods are fitted on: the vectors of some rows, summed, and those of the rows held out."""

    statistics: Statistics
    held_out: HeldOut
    held_out_rows: np.ndarray  # their numbers
    rows: Sequence[HeldOut]  # vectors of training rows, if the method needs them

    def fit(self, method: str, factors: int | None = None) -> Split:
        """Fit one method, and score it on the rows held out; errors as `split`."""
        check_rows(method, self.fitted_rows + len(self.held_out_rows), self.statistics.width)
        fit = METHODS[method](
            self.statistics, [self.held_out], self.rows, **({"factors": factors} if method in FACTORED else {})
        )
        counts = {"rows": self.fitted_rows, "held_out_rows": len(self.held_out_rows)}
        return replace(fit, about={**counts, **fit.about, "scores": scores(fit, self.held_out)})

    @property
    def fitted_rows(self) -> int:
        return max(self.statistics.pairs.values())


def needed_rows(width: int) -> int:
    """Rows that covariances of so many units need, with those held out."""
    return int(np.ceil(OF_WIDTH * width / (1 - HELD_OUT)))


def split(
    encoder: SentenceEncoder,
    pairs: Sequence[Sequence[str]],
    langs: Sequence[str],
    *,
    method: str = "bgt",
    factors: int | None = None,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, rows: None,
) -> Split:
    """Fit a split on the vectors of sentences that mean the same.

        mine = bgt_core.split(encoder, [english, french], ["en", "fr"])
        mine.shared(encoder.embed(["A cat."], lang="en"), "en")

    Args:
        encoder: Any encoder; its semantic latent is split.
        pairs: Two columns or more; row n of each means the same.
        langs: The language of each column; paraphrases of one language repeat it, and only `bgt` and `neural` can
            use them.
        method: bgt, neural, centring, leace, shift or subspace.
        factors: Units of the shared part, for bgt and neural; by default held-out rows choose.
        seed: Seed of which rows are held out.
        report: Called with the rows embedded so far, and all.

    Returns:
        The split; `about` has the counts, what the method chose, and `scores` of the held-out rows before and after.

    Raises:
        UsageError: An unknown method, columns of different lengths, too few rows, languages the method can't use.
        DataError: Vectors that are constant or not finite.
    """
    check_choice(METHODS, method=method)
    check_settings(langs, method, factors)
    gathered = gather(encoder, pairs, langs, method, keep=TRAINED_ON.get(method, 0), seed=seed, report=report)
    return gathered.fit(method, factors)


def gather(
    encoder: SentenceEncoder,
    pairs: Sequence[Sequence[str]],
    langs: Sequence[str],
    method: str,
    *,
    keep: int = 0,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, rows: None,
) -> Gathered:
    """Embed pairs, a batch at a time, hold some out and sum the others; `keep` vectors of those stay, at least.

    Arguments and errors are those of `split`.
    """
    check_columns(pairs, langs)
    rows = np.random.default_rng(seed).permutation(len(pairs[0]))
    kept_out = min(MOST_HELD_OUT, max(1, round(HELD_OUT * len(rows))))
    held_out, fitted = rows[:kept_out], rows[kept_out:]

    def embed(of: np.ndarray) -> list[np.ndarray]:
        columns = zip(pairs, langs, strict=True)
        return [encoder.embed([column[row] for row in of], lang=lang, latent=SEMANTIC) for column, lang in columns]

    vectors = embed(held_out)
    check_rows(method, len(rows), vectors[0].shape[1])
    moments, kept = Moments(langs, vectors[0].shape[1]), []
    for start in range(0, len(fitted), AT_ONCE):
        batch = embed(fitted[start : start + AT_ONCE])
        if moments.count < keep:
            kept.append(batch)
        moments.add(batch)
        report(kept_out + moments.count, len(rows))
    sums = statistics([moments])
    for lang, covariance in sums.covariances.items():
        if not np.isfinite(covariance).all() or np.trace(covariance) <= 0:
            raise DataError(
                f"The vectors of all sentences in {lang} are the same, or not finite; use another encoder or text."
            )
    joined = [(langs, [np.concatenate(column) for column in zip(*kept, strict=True)])] if kept else []
    return Gathered(sums, (langs, vectors), held_out, joined)


def check_rows(method: str, rows: int, width: int) -> None:
    """Raise UsageError for too few rows for a method."""
    needed = needed_rows(width)
    if method in FACTORED and rows < needed:
        raise UsageError(
            f"of {rows} rows for vectors of {width} units: {method} needs at least {needed:,}, as it fits their "
            "covariances. Give more, or use another method.",
            parameter="pairs",
        )


def check_columns(columns: Sequence[Sequence[str]], langs: Sequence[str]) -> None:
    """Raise UsageError for columns that can't be split."""
    if len(columns) != len(langs) or len(columns) < 2:
        raise UsageError(f"{','.join(langs)}: expected two or more, one for each column", parameter="langs")
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise UsageError(f"have {sorted(lengths)} rows: expected the same number in each column", parameter="pairs")
    if min(lengths) < LEAST:
        raise UsageError(f"of {min(lengths)} rows: at least {LEAST} are needed", parameter="pairs")


def check_settings(langs: Sequence[str], method: str, factors: int | None) -> None:
    """Raise UsageError for languages or a number of factors that the method can't have."""
    if method not in FACTORED and len(set(langs)) < 2:
        raise UsageError(f"{','.join(langs)}: {method} tells languages apart; give two", parameter="langs")
    if factors is not None and (method not in FACTORED or factors < 1):
        raise UsageError(f"{factors}: a number from 1, for {' and '.join(FACTORED)} alone", parameter="factors")
