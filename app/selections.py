"""What sets the selected sentences apart from the rest of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from app import keywords, rows
from bgt_core.evaluation.bootstrap import wilson

KEYWORDS = 8


def described(
    table: pd.DataFrame, chosen: np.ndarray, words: keywords.WordCounts, cosines: Mapping[str, tuple[float, float]]
) -> pd.DataFrame:
    """The chosen rows, (N,) bool, against the others: a measure a row, differences with 95% intervals.

    `cosines` are mean cosines among the chosen and among all, by the name of a latent. Texts, ready to show; empty
    where there is nothing to compare with.
    """
    count = int(chosen.sum())
    lines = [("Sentences", f"{count:,}", f"{len(chosen) - count:,}", "")]
    lengths = table["words"].to_numpy()
    lines.append(("Words in a sentence", *mean_difference(lengths[chosen], lengths[~chosen])))
    shares = {f"Final mark: {mark}": table["mark"] == mark for mark in (*rows.MARKS.values(), rows.OTHER, rows.NONE)}
    langs = table["lang"].unique().tolist()
    shares |= {rows.language_name(lang): table["lang"] == lang for lang in langs if len(langs) > 1}
    compared = [(title, *share_difference(has.to_numpy(), chosen)) for title, has in shares.items()]
    lines += [line for line in compared if {*line[1:3]} - {"0%", ""}]
    comparable = table["lang"].isin(table["lang"][chosen].unique()).to_numpy()  # else a language would stand out
    groups = np.where(chosen, 0, np.where(comparable, 1, -1))
    here, elsewhere = map(", ".join, keywords.keywords(words, groups, KEYWORDS, 2))
    lines.append(("Words that stand out", here, elsewhere, ""))
    for latent, (among_chosen, among_all) in cosines.items():
        lines.append((f"Mean cosine, {latent}", f"{among_chosen:z.2f}", f"{among_all:z.2f} among all", ""))
    return pd.DataFrame(lines, columns=["Measure", "Selected", "Rest", "Difference"]).replace("nan", "")


def mean_difference(left: np.ndarray, right: np.ndarray) -> tuple[str, str, str]:
    """Both means, and their difference with its 95% interval by Welch's t."""
    from scipy.special import stdtrit

    if min(len(left), len(right)) < 2:
        means = [f"{part.mean():.1f}" if len(part) else "" for part in (left, right)]
        return means[0], means[1], ""
    errors = [part.var(ddof=1) / len(part) for part in (left, right)]
    difference, error = left.mean() - right.mean(), math.sqrt(sum(errors))
    squares = sum(part**2 / (len(side) - 1) for part, side in zip(errors, (left, right), strict=True))
    half = float(stdtrit(error**4 / squares, 0.975)) * error if squares else 0.0
    interval = f"{difference:+z.1f} [{difference - half:z.1f}, {difference + half:z.1f}]"
    return f"{left.mean():.1f}", f"{right.mean():.1f}", interval


def share_difference(has: np.ndarray, chosen: np.ndarray) -> tuple[str, str, str]:
    """The share of rows, (N,) bool, among the chosen and the others, and their difference in percentage points with
    its 95% interval (Newcombe 1998, method 10)."""
    counts = [(int(has[side].sum()), int(side.sum())) for side in (chosen, ~chosen)]
    texts = [f"{right / count:.0%}" if count else "" for right, count in counts]
    if not all(count for _, count in counts):
        return texts[0], texts[1], ""
    (p, q), ((p_low, p_high), (q_low, q_high)) = (
        [right / count for right, count in counts],
        [wilson(right, count) for right, count in counts],
    )
    low = p - q - math.hypot(p - p_low, q_high - q)
    high = p - q + math.hypot(p_high - p, q - q_low)
    return texts[0], texts[1], f"{100 * (p - q):+z.0f} [{100 * low:z.0f}, {100 * high:z.0f}]"
