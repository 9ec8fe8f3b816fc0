"""Does the gap between the latents change with a language's distance to English? (paper, sec. 5.2 and Table 3)

    one gap per language -> correlation with distance, p by permutation of the languages, interval by resampling them

The gap is the semantic encoder's score minus that of the English language encoder, in models of English with one other
language each. The paper reads three trends from Table 3, without computing them: if the other language is more distant,
the gap is smaller in STS, smaller in word content and in number of subjects and objects, and more negative in length
and punctuation. It does not measure distance either: it calls French and Spanish closely related to English, Arabic and
Turkish more distantly, Japanese very distant. That order is `PAPER_ORDER`; `FSI_WEEKS` is an independent measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.stats import rankdata

from bgt_core.errors import DataError, UsageError

PAPER_ORDER = {"fr": 1, "es": 1, "ar": 2, "tr": 2, "ja": 3}
# Weeks of full-time classes until English speakers reach professional working proficiency, as the Foreign Service
# Institute observed and the U.S. Department of State listed ("FSI's Experience with Language Learning",
# state.gov/m/fsi/sls/c78549.htm).
FSI_WEEKS = {
    "da": 24, "nl": 24, "it": 24, "no": 24, "pt": 24, "ro": 24, "es": 24, "sv": 24, "fr": 30,
    "de": 36, "id": 36, "ms": 36, "sw": 36,
    "bg": 44, "cs": 44, "et": 44, "fa": 44, "fi": 44, "el": 44, "he": 44, "hi": 44, "hu": 44, "lt": 44, "lv": 44,
    "pl": 44, "ru": 44, "sk": 44, "sl": 44, "ta": 44, "th": 44, "tr": 44, "uk": 44, "vi": 44,
    "ar": 88, "ja": 88, "ko": 88, "zh": 88,
}  # fmt: skip
# Angular distance to English, 0 to 1, of the syntactic features of URIEL (Littell et al. 2017), unknown ones as
# predicted from the nearest languages: 2 arccos(cosine) / pi of the "syntax_knn" vectors in lang2vec 1.1.2. Arabic is
# the standard one.
URIEL_SYNTAX = {
    "nl": 0.249, "de": 0.283, "it": 0.344, "pt": 0.362, "es": 0.386, "fr": 0.397, "ru": 0.397, "zh": 0.495,
    "ar": 0.554, "ko": 0.627, "tr": 0.662, "ja": 0.667,
}  # fmt: skip
EXACT = 8  # up to this many languages all orders are enumerated: 40,320
ORDERS = 20_000  # random orders beyond that
RESAMPLES = 4_000  # of the languages, for the interval


@dataclass(frozen=True)
class Trend:
    """The trend of L languages' gaps with distance."""

    langs: tuple[str, ...]  # nearest first
    gaps: tuple[float, ...]
    pearson: float
    pearson_p: float  # two-sided: the share of orders of the languages with a correlation at least as far from 0
    spearman: float
    spearman_low: float  # 95%, see `spearman_interval`
    spearman_high: float
    spearman_p: float


def trend(
    gap: Mapping[str, float],
    distance: Mapping[str, float] = FSI_WEEKS,
    error: Mapping[str, float] | None = None,
) -> Trend:
    """Correlate gaps {language: gap} with distances {language: distance to English}.

    `error` has the gaps' standard errors, if known. A few languages give little evidence: with 5 no p is below 1/60,
    and ties raise that. Raises UsageError for a language without a distance, and DataError for fewer than 3 languages,
    or for values that are not finite, or all equal.
    """
    if unknown := sorted(gap.keys() - distance.keys()):
        raise UsageError(
            f"'{unknown[0]}' has no distance; choose from {', '.join(sorted(distance))}, or give your own."
        )
    if len(gap) < 3:
        raise DataError(f"{len(gap)} languages; a trend needs 3, and 5 before it can be distinguished from chance.")
    langs = tuple(sorted(gap, key=lambda lang: (distance[lang], lang)))
    x, y = (np.array([values[lang] for lang in langs], dtype=float) for values in (distance, gap))
    for name, values in (("distance", x), ("gap", y)):
        if not np.isfinite(values).all():
            raise DataError(f"The {name} of '{langs[int(np.isfinite(values).argmin())]}' is not a finite number.")
        if np.ptp(values) == 0:
            raise DataError(f"Every {name} is {values[0]:g}; a trend needs different values.")
    errors = np.array([(error or {}).get(lang, 0.0) for lang in langs])
    spearman, p = correlation(rankdata(x), rankdata(y))
    low, high = spearman_interval(x, y, errors)
    return Trend(langs, tuple(y.tolist()), *correlation(x, y), spearman, low, high, p)


def spearman_interval(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """The 95% interval of Spearman's rho of x and y, (L,) both: languages are resampled, and y varies by its standard
    errors.

    Draws need at least two distinct distances and gaps; like any interval it is rough for a handful of languages.
    """
    rng = np.random.default_rng([0, len(x)])
    rows = rng.integers(len(x), size=(RESAMPLES, len(x)))
    drawn = (y + errors * rng.standard_normal((RESAMPLES, len(y))))[np.arange(RESAMPLES)[:, None], rows]
    ranks = rankdata(x[rows], axis=1), rankdata(drawn, axis=1)
    ranks = tuple(rank - rank.mean(1, keepdims=True) for rank in ranks)
    norms = np.prod([np.linalg.norm(rank, axis=1) for rank in ranks], axis=0)
    rho = (ranks[0] * ranks[1]).sum(1)[norms > 0] / norms[norms > 0]
    low, high = np.quantile(rho, [0.025, 0.975])
    return float(low), float(high)


def correlation(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Pearson's r of x and y, (L,) both, and its two-sided p over orders of y."""
    x, y = ((values - values.mean()) / np.linalg.norm(values - values.mean()) for values in (x, y))
    size = len(x)
    if size <= EXACT:
        orders = np.array(list(permutations(range(size))))
    else:  # the observed order is included, so that p is never 0
        shuffled = np.random.default_rng(0).permuted(np.tile(np.arange(size), (ORDERS, 1)), axis=1)
        orders = np.concatenate([[np.arange(size)], shuffled])
    r = float(x @ y)
    return r, float((np.abs(y[orders] @ x) >= abs(r) - 1e-9).mean())
