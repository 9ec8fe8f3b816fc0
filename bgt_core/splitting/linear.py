"""Linear BGT: sentences with the same meaning share a latent z, which each language maps to vectors in its own way.

    x_l = mean_l + A_l z + rest_l,    z ~ N(0, I) the same in all sentences of one meaning

For two languages this is probabilistic CCA (Bach and Jordan 2005). Its maximum-likelihood maps have a closed form: the
singular vectors of the whitened cross-covariance (its eigenvectors for paraphrases of one language), times the square
roots of the canonical correlations. For more languages it is multi-battery factor analysis (Browne 1980), fitted by
least squares to the whitened cross-covariances. That of two languages without pairs is taken from the fit, which is
repeated until it converges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from bgt_core.splitting.gather import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split
from bgt_core.vectors import maps as closed_form

SHARE = 0.95  # keep the factors that give this share of the held-out nats
ROUNDS, TOLERANCE = 100, 1e-5  # maximum rounds for three or more languages; change of an eigenvalue that ends them


def loadings(
    whitened: dict[tuple[int, int], np.ndarray], languages: int, factors: int, start: np.ndarray | None = None
) -> np.ndarray:
    """Fit W_l W_m^T to the whitened cross-covariances.

    Args:
        whitened: Cross-covariance (D, D) of each two languages that have pairs, in both orders.
        languages: Number of languages, C.
        factors: Number of factors, K.
        start: W of similar cross-covariances, as the initial value if some languages have no pairs.

    Returns:
        W, (C, D, K): the covariance of each language's whitened vectors with z, by descending correlation.
    """
    if whitened.keys() == {(0, 1), (1, 0)}:
        first, correlations, second = np.linalg.svd(whitened[0, 1])
        return (np.stack([first, second.T]) * np.sqrt(correlations))[:, :, :factors]
    width = len(next(iter(whitened.values())))
    missing = np.ones((languages, languages))
    for pair in whitened:
        missing[pair] = 0

    def filled(fit: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Multiply all cross-covariances by axes: (C x D, K). Missing ones are taken from the fit."""
        sums = np.einsum("lm,mkj->lkj", missing, fit.transpose(0, 2, 1) @ axes)
        product = fit @ sums
        for (left, right), block in whitened.items():
            product[left] += block @ axes[right]
        return product.reshape(languages * width, -1)

    if start is None or not missing.any():
        target = np.zeros((languages, width, languages, width))
        for (left, right), block in whitened.items():
            target[left, :, right] = block
        values, axes = np.linalg.eigh(target.reshape(languages * width, -1))
        fit = scaled(values[::-1][:factors] * missing.size / len(whitened), axes[:, ::-1][:, :factors])
    else:
        fit = start.reshape(languages * width, -1)
    last = np.full(fit.shape[1], np.inf)
    for _ in range(ROUNDS if missing.any() else 0):
        fit = fit.reshape(languages, width, -1)
        basis = np.linalg.qr(filled(fit, fit))[0]  # a step of orthogonal iteration
        values, turn = np.linalg.eigh(basis.T @ filled(fit, basis.reshape(fit.shape)))
        fit = scaled(values[::-1], basis @ turn[:, ::-1])
        if np.abs(values - last).max() < TOLERANCE:
            break
        last = values
    return fit.reshape(languages, width, -1)


def scaled(values: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Multiply axes by the square roots of their eigenvalues; negative eigenvalues count as 0."""
    return axes * np.sqrt(values.clip(0))


def bgt(
    statistics: Statistics,
    held_out: Sequence[HeldOut],
    *,
    factors: int | None = None,
    shrinkages: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1),
) -> Split:
    """Fit linear BGT; held-out pairs choose the shrinkage of the covariances, and the number of factors.

    The shared part is the posterior mean of z given one sentence, with each factor times the square root of its
    correlation, so that cosines give more weight to factors that are shared more. The private part has none of the
    shared axes.

    Args:
        statistics: Statistics of the vectors.
        held_out: Vectors of other pairs, by language.
        factors: Number of factors; by default the first ones with 95 % of the nats that held-out pairs share.
        shrinkages: Candidate weights of the identity in the joint covariance.

    Returns:
        The split. `about` has `shrinkage`, `factors`, the `correlations` of the factors (mean over languages), the
        `nats` that two sentences share by each factor, -log(1 - correlation^2) / 2, and their `held_out_nats` in total.
    """
    # fewer factors save time only with three or more languages, in every round of the fit
    most = factors if factors and len(statistics.langs) > 2 else statistics.width
    spectra = [np.linalg.eigh(statistics.covariances[lang]) for lang in statistics.langs]
    place = {lang: row for row, lang in enumerate(statistics.langs)}
    scored, fitted = [], None
    for shrinkage in shrinkages:
        roots_of = [roots(*spectrum, shrinkage) for spectrum in spectra]
        whitened = {
            (place[left], place[right]): (1 - shrinkage) * roots_of[place[left]][0] @ cross @ roots_of[place[right]][0]
            for (left, right), cross in statistics.crosses.items()
        }
        fitted = loadings(whitened, len(statistics.langs), most, fitted)
        scored.append((shared_nats(fitted, roots_of, statistics, held_out), shrinkage, roots_of, fitted))
    spectrum, shrinkage, roots_of, fitted = max(scored, key=lambda each: each[0].sum())
    total = np.cumsum(spectrum)
    if factors is None:
        factors = int(np.argmax(total >= SHARE * total.max())) + 1
    fitted = fitted[:, :, :factors]
    stacked = fitted.reshape(-1, factors)  # the sign of a factor is arbitrary; this choice does not depend on rounding
    fitted = fitted * np.sign(stacked[np.abs(stacked).argmax(0), np.arange(factors)])
    strengths = np.square(fitted).sum(1).mean(0).clip(1e-12, 1 - 1e-6)  # (K,) correlations
    maps = {}
    for lang, (whiten, colour), weights in zip(statistics.langs, roots_of, fitted, strict=True):
        read = np.sqrt(strengths)[:, None] * weights.T @ whiten
        back = colour @ np.linalg.pinv(weights.T) / np.sqrt(strengths)
        maps[lang] = Map(statistics.means[lang], read, back, np.zeros(factors))
    about = {
        "shrinkage": shrinkage,
        "factors": factors,
        "correlations": strengths.tolist(),
        "nats": (-np.log1p(-np.square(strengths)) / 2).tolist(),
        "held_out_nats": float(total[factors - 1]),
    }
    return Split("bgt", maps, about)


def shared_nats(
    fitted: np.ndarray,
    roots_of: Sequence[tuple[np.ndarray, np.ndarray]],
    statistics: Statistics,
    held_out: Sequence[HeldOut],
) -> np.ndarray:
    """Return the information that two held-out sentences of one row share, in nats per pair, by factor, (D,).

    For each two languages, log p(x, y) - log p(x) - log p(y) is a sum over the canonical variables of the fit.
    """
    place = {lang: row for row, lang in enumerate(statistics.langs)}
    sums, pairs = np.zeros(statistics.width), 0
    for langs, columns in held_out:
        for i, j in combinations(range(len(langs)), 2):
            sides = [place[langs[i]], place[langs[j]]]
            left, correlations, right = np.linalg.svd(fitted[sides[0]] @ fitted[sides[1]].T)
            r = correlations.clip(0, 1 - 1e-6)
            a, b = (
                (columns[column] - statistics.means[langs[column]]) @ roots_of[side][0] @ axes
                for column, side, axes in zip((i, j), sides, (left, right.T), strict=True)
            )
            ratios = (r * a * b - r**2 * (a**2 + b**2) / 2) / (1 - r**2) - np.log1p(-(r**2)) / 2
            sums, pairs = sums + ratios.sum(0), pairs + len(a)
    return sums / pairs


# Whitening matrices.

ROUNDING = 1e-10  # a variance below this share of the largest counts as 0


def roots(variances: np.ndarray, axes: np.ndarray, shrinkage: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse square root of a covariance, and its square root.

    Args:
        variances: Its eigenvalues, in ascending order, (D,), as `numpy.linalg.eigh` gives them.
        axes: Its eigenvectors, in columns, (D, D).
        shrinkage: Weight of the mean variance times the identity, from 0 to 1, mixed into it (Ledoit and Wolf 2004).

    Returns:
        Two symmetric matrices (D, D). Axes without variance are 0 in both.
    """
    variances = (1 - shrinkage) * variances + shrinkage * variances.mean()
    kept = variances > ROUNDING * max(variances[-1], np.finfo(float).tiny)
    scales, axes = np.sqrt(variances[kept]), axes[:, kept]
    return (axes / scales) @ axes.T, (axes * scales) @ axes.T


# Methods that remove the language from vectors. They need sentences of several languages, but no pairs.


def centring(statistics: Statistics) -> Split:
    """Subtract from each vector the mean of its language, which is the private part."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    means = statistics.means.items()
    return Split("centring", {lang: Map(mean, same * ~statistics.constant(lang), same, none) for lang, mean in means})


def shift(statistics: Statistics) -> Split:
    """Shift the mean of each language to that of the first language (Jang et al. 2026, arXiv 2606.18801)."""
    same, maps = np.eye(statistics.width), {}
    first = statistics.means[statistics.langs[0]]
    for lang, mean in statistics.means.items():
        constant = statistics.constant(lang)
        maps[lang] = Map(mean - first, same * ~constant, same, first * constant)
    return Split("shift", maps)


def leace(statistics: Statistics) -> Split:
    """Make the smallest change after which no linear probe predicts the language (Belrose et al. 2023, theorem 4.3).

    All languages have the same map, and the same weight, however many sentences each has. The private part is the
    erased part; it has one dimension less than there are languages.
    """
    means = np.stack(list(statistics.means.values()))  # (C, D)
    mean = means.mean(0)
    between = (means - mean).T / np.sqrt(len(means))  # (D, C), covariance with each language / root of its share
    total = np.mean(list(statistics.covariances.values()), axis=0) + between @ between.T
    read, write, gone = closed_form.leace(mean, total, between)
    same = np.eye(statistics.width)
    erase = same - write @ read.T
    erase[gone] = 0
    return Split("leace", dict.fromkeys(statistics.langs, Map(mean, erase, same, mean)))


def subspace(statistics: Statistics) -> Split:
    """Remove the first principal axis of each language's uncentred vectors, close to its mean (Yang et al. 2021)."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    maps = {}
    for lang, mean in statistics.means.items():
        axes = np.linalg.eigh(statistics.covariances[lang] + np.outer(mean, mean))[1][:, -1:]
        maps[lang] = Map(none, same - axes @ axes.T, same, none)
    return Split("subspace", maps, {"rank": 1})
