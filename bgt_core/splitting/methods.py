"""The methods that split vectors: linear BGT, neural BGT, and four methods that remove the language from vectors.

Linear BGT assumes that sentences with the same meaning share a latent z, from which each language l makes its vectors:

    x_l = mean_l + A_l z + rest_l,    z ~ N(0, I)

For two languages this is probabilistic CCA (Bach and Jordan 2005). The maximum-likelihood A_l have a closed form: the
singular vectors of the whitened cross-covariance, times the square roots of the canonical correlations. (For
paraphrases of one language, the eigenvectors take the place of the singular vectors.) For more languages this is
multi-battery factor analysis (Browne 1980), fitted by least squares to the whitened cross-covariances. If two languages
have no translations of each other, their cross-covariance is taken from the fit, which is repeated until it converges.

Neural BGT adds a network with a hidden layer to each language's linear map, and trains map and network so that the
shared parts of translations become similar. The loss is InfoNCE (van den Oord et al. 2018): for each sentence, predict
which sentence of a batch in the other language is its translation. With InfoNCE, retrieval by shared parts finds more
translations than with an evidence lower bound (docs/guide/split.md compares both).
"""

from collections.abc import Sequence
from copy import deepcopy
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from bgt_core.backend import usual_defaults
from bgt_core.splitting.gather import HeldOut, Statistics
from bgt_core.splitting.parts import Map, Split
from bgt_core.vectors import maps as closed_form

SHARE = 0.95  # keep the factors that carry this share of the mutual information on held-out rows
ROUNDS, TOLERANCE = 100, 1e-5  # maximum number of rounds of a fit; change of eigenvalues below which it ends
ROUNDING = 1e-10  # a variance below this share of the largest counts as 0

UNITS = 512  # number of units of the hidden layer
EPOCHS, BATCH = 3, 1_024
LEARNING_RATE = 2e-3  # initial learning rate; it decreases linearly to 0
TEMPERATURE = 0.05
RIDGE = 1e-6  # ridge penalty for predicting a vector from shared parts, relative to the mean variance of these parts


def loadings(
    whitened: dict[tuple[int, int], np.ndarray], languages: int, factors: int, start: np.ndarray | None = None
) -> np.ndarray:
    """Fit W_l W_m^T to the whitened cross-covariances (D, D) of languages l and m, given for (l, m) and for (m, l).

    Returns W, (C, D, K): for each of C languages, the covariance of its whitened vectors with the latent z, by
    descending correlation. If a pair of languages is missing, the fit starts from `start`, the W of a similar fit.
    """
    if whitened.keys() == {(0, 1), (1, 0)}:
        first, correlations, second = np.linalg.svd(whitened[0, 1])
        return (np.stack([first, second.T]) * np.sqrt(correlations))[:, :, :factors]
    width = len(next(iter(whitened.values())))
    missing = np.ones((languages, languages))
    for pair in whitened:
        missing[pair] = 0

    def filled(fit: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Multiply all cross-covariances (C x D, C x D) by `axes` (C, D, K); a missing block is fit[l] @ fit[m].T."""
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
    """Multiply eigenvectors by the square roots of their eigenvalues; negative eigenvalues count as 0."""
    return axes * np.sqrt(values.clip(0))


def bgt(
    statistics: Statistics,
    held_out: Sequence[HeldOut],
    *,
    factors: int | None = None,
    shrinkages: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1),
) -> Split:
    """Fit linear BGT. The shrinkage of the covariances and the number of factors are chosen on held-out rows.

    The shared part is the posterior mean of z given one sentence. Each factor is multiplied by the square root of its
    correlation, so that factors with a higher correlation have more weight in cosines. By default, the number of
    factors is the smallest that keeps 95 % of the mutual information of the sentences in a held-out row. `about`
    contains `correlations`, the correlation of each factor, averaged over languages; `nats`, the mutual information of
    two sentences through each factor, -log(1 - correlation^2) / 2; and `held_out_nats`, the mutual information through
    all factors, estimated on held-out rows.
    """
    # with three or more languages, fitting only the requested factors saves time in every round
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
        if whitened.keys() != {(0, 1), (1, 0)}:
            fitted = loadings(whitened, len(statistics.langs), most, fitted)
        spectrum = shared_nats(whitened if fitted is None else fitted, roots_of, statistics, held_out)
        scored.append((spectrum, shrinkage, roots_of, whitened, fitted))
    spectrum, shrinkage, roots_of, whitened, fitted = max(scored, key=lambda each: each[0].sum())
    if fitted is None:  # for two languages, fit only the chosen shrinkage
        fitted = loadings(whitened, 2, most)
    total = np.cumsum(spectrum)
    if factors is None:
        factors = int(np.argmax(total >= SHARE * total.max())) + 1
    fitted = fitted[:, :, :factors]
    stacked = fitted.reshape(-1, factors)  # a factor's sign is arbitrary: make its largest loading positive
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
    fitted: np.ndarray | dict[tuple[int, int], np.ndarray],
    roots_of: Sequence[tuple[np.ndarray, np.ndarray]],
    statistics: Statistics,
    held_out: Sequence[HeldOut],
) -> np.ndarray:
    """Estimate on held-out rows the mutual information of two translations through each factor, in nats, (D,).

    For two sentences x and y, log p(x, y) - log p(x) - log p(y) is a sum over the canonical variables of the fit.
    `fitted` is W as in `loadings`, or the whitened cross-covariances themselves.
    """
    place = {lang: row for row, lang in enumerate(statistics.langs)}
    sums, pairs = np.zeros(statistics.width), 0
    for langs, columns in held_out:
        for i, j in combinations(range(len(langs)), 2):
            sides = place[langs[i]], place[langs[j]]
            cross = fitted[sides] if isinstance(fitted, dict) else fitted[sides[0]] @ fitted[sides[1]].T
            squares, axes = np.linalg.eigh(cross.T @ cross)  # much faster than an SVD of `cross`
            squares, axes = squares[::-1].clip(0, (1 - 1e-6) ** 2), axes[:, ::-1]
            left, right = (
                (columns[column] - statistics.means[langs[column]]) @ roots_of[side][0]
                for column, side in zip((i, j), sides, strict=True)
            )
            predicted, b = left @ (cross @ axes), right @ axes  # the canonical variable of x, times its correlation r
            ratios = (predicted * b - (predicted**2 + squares * b**2) / 2) / (1 - squares) - np.log1p(-squares) / 2
            sums, pairs = sums + ratios.sum(0), pairs + len(ratios)
    return sums / pairs


def roots(variances: np.ndarray, axes: np.ndarray, shrinkage: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Compute a covariance's inverse square root and square root, (D, D) each, from its eigenvalues and eigenvectors.

    The covariance is first mixed with its mean variance times the identity, which has the weight `shrinkage`, from 0 to
    1 (Ledoit and Wolf 2004). Eigenvectors without variance contribute nothing.
    """
    variances = (1 - shrinkage) * variances + shrinkage * variances.mean()
    kept = variances > ROUNDING * max(variances[-1], np.finfo(float).tiny)
    scales, axes = np.sqrt(variances[kept]), axes[:, kept]
    return (axes / scales) @ axes.T, (axes * scales) @ axes.T


# The following functions fit neural BGT by gradient descent.


class Reader(nn.Module):
    """Map a language's vectors (N, D) to shared parts (N, K), by the sum of a linear map and a small network.

    Vectors are divided by `scale`, because Adam's steps have the same size whatever the scale of the vectors.
    """

    def __init__(self, start: Map, covariance: np.ndarray, scale: float):
        super().__init__()
        factors, width = start.read.shape
        self.offset: Tensor
        self.register_buffer("offset", torch.tensor(start.offset, dtype=torch.float32))
        self.root = scale**0.5  # vectors are divided by the root twice, because float32 may not hold the scale
        self.read = nn.Parameter(torch.tensor(start.read * scale, dtype=torch.float32))
        self.up, self.down = nn.Linear(width, UNITS), nn.Linear(UNITS, factors, bias=False)
        nn.init.zeros_(self.down.weight)
        with torch.no_grad():
            self.up.weight /= float(np.sqrt(np.trace(covariance) / width)) / scale  # as for inputs with variance 1

    def forward(self, vectors: Tensor) -> Tensor:
        centred = (vectors - self.offset) / self.root / self.root
        return centred @ self.read.T + self.down(self.up(centred).relu())


def neural(
    statistics: Statistics, held_out: Sequence[HeldOut], rows: Sequence[HeldOut], *, factors: int | None = None
) -> Split:
    """Fit neural BGT: start from linear BGT, train on vectors, and keep the weights with the lowest held-out loss.

    The shared parts of a language have a mean of 0 over `rows`. The private part is the residual of a least-squares
    prediction of the vector from its shared part. `about` contains the `about` of linear BGT, and `contrast`: the
    held-out loss, in nats, before training and after each epoch.
    """
    start = bgt(statistics, held_out, factors=factors)
    train, valid = tensors(rows), tensors(held_out)
    # scale: the root mean square length of vectors, rounded to three digits, so that it is 1 for vectors of length 1
    squares = [np.trace(statistics.covariances[lang]) + np.square(of).sum() for lang, of in statistics.means.items()]
    scale = float(f"{np.sqrt(np.mean(squares)):.3g}")
    with torch.random.fork_rng(devices=[]), usual_defaults():
        torch.manual_seed(0)
        covariances = statistics.covariances
        readers = nn.ModuleDict({lang: Reader(of, covariances[lang], scale) for lang, of in start.maps.items()})
        steps: list[tuple[int, Tensor]] = []  # index of a set of columns, and the row numbers of one batch
        for part, (_, columns) in list(enumerate(train)) * EPOCHS:
            count = len(columns[0])
            steps += [(part, ids) for ids in torch.randperm(count).chunk(max(1, round(count / BATCH)))]
        optimizer = torch.optim.Adam(readers.parameters(), LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(steps))
        losses, best = [held_out_loss(readers, valid)], deepcopy(readers.state_dict())
        for step, (part, ids) in enumerate(steps, 1):
            langs, columns = train[part]
            loss = contrast(readers, langs, [column[ids] for column in columns])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % (len(steps) // EPOCHS) == 0:
                losses.append(held_out_loss(readers, valid))
                if losses[-1] == min(losses):
                    best = deepcopy(readers.state_dict())
    readers.load_state_dict(best)
    maps = {
        lang: as_map(
            readers[lang],
            [column for langs, columns in train for each, column in zip(langs, columns, strict=True) if each == lang],
            scale,
        )
        for lang in start.maps
    }
    return Split("neural", maps, {**start.about, "contrast": losses})


def tensors(rows: Sequence[HeldOut]) -> list[tuple[Sequence[str], list[Tensor]]]:
    """Convert the vectors of each set of columns to float32 tensors."""
    return [(langs, [torch.from_numpy(column).float() for column in columns]) for langs, columns in rows]


def contrast(readers: nn.ModuleDict, langs: Sequence[str], columns: Sequence[Tensor]) -> Tensor:
    """Compute the InfoNCE loss of predicting a sentence's translation, in nats, averaged over pairs of columns."""
    shared = [nn.functional.normalize(readers[lang](column)) for lang, column in zip(langs, columns, strict=True)]
    rows = torch.arange(len(columns[0]))
    losses = []
    for left, right in combinations(shared, 2):
        logits = left @ right.T / TEMPERATURE
        losses += [nn.functional.cross_entropy(logits, rows), nn.functional.cross_entropy(logits.T, rows)]
    return torch.stack(losses).mean()


@torch.no_grad()
def held_out_loss(readers: nn.ModuleDict, rows: Sequence[tuple[Sequence[str], list[Tensor]]]) -> float:
    """Compute the InfoNCE loss of the first `BATCH` held-out rows of each set of columns, averaged over the sets."""
    parts = [contrast(readers, langs, [column[:BATCH] for column in columns]) for langs, columns in rows]
    return float(torch.stack(parts).mean())


@torch.no_grad()
def as_map(reader: nn.Module, columns: Sequence[Tensor], scale: float) -> Map:
    """Convert a trained `Reader` to a `Map`. The shared parts of the vectors in `columns` get a mean of 0."""
    parts = [part for column in columns for part in column.split(4 * BATCH)]
    weights = {name: value.double().numpy() for name, value in reader.state_dict().items()}
    mean = sum(reader(part).double().sum(0).numpy() for part in parts) / sum(map(len, parts))
    gram, crosses = np.zeros((len(mean), len(mean))), np.zeros((len(mean), len(weights["offset"])))
    for part in parts:
        shared = reader(part).double().numpy() - mean
        gram += shared.T @ shared
        crosses += shared.T @ (part.double().numpy() - weights["offset"])
    ridge = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    back = np.linalg.solve(gram + ridge, crosses).T
    hidden = (weights["up.weight"] / scale, weights["up.bias"], weights["down.weight"])
    return Map(weights["offset"], weights["read"] / scale, back, -mean, hidden)


# The following methods remove the language from vectors. They need sentences in several languages, but no translations.


def centring(statistics: Statistics) -> Split:
    """Subtract from each vector the mean of its language; the mean is the private part."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    means = statistics.means.items()
    return Split("centring", {lang: Map(mean, same * ~statistics.constant(lang), same, none) for lang, mean in means})


def shift(statistics: Statistics) -> Split:
    """Shift the vectors of each language to the mean of the first language (Jang et al. 2026, arXiv 2606.18801)."""
    same, maps = np.eye(statistics.width), {}
    first = statistics.means[statistics.langs[0]]
    for lang, mean in statistics.means.items():
        constant = statistics.constant(lang)
        maps[lang] = Map(mean - first, same * ~constant, same, first * constant)
    return Split("shift", maps)


def leace(statistics: Statistics) -> Split:
    """Make the least change of vectors that hides the language from linear probes (Belrose et al. 2023, theorem 4.3).

    All languages get the same map, and count equally. For C languages, the private parts span C - 1 dimensions.
    """
    means = np.stack(list(statistics.means.values()))  # (C, D)
    mean = means.mean(0)
    between = (means - mean).T / np.sqrt(len(means))  # (D, C): covariance with each language's indicator, scaled
    total = np.mean(list(statistics.covariances.values()), axis=0) + between @ between.T
    read, write, gone = closed_form.leace(mean, total, between)
    same = np.eye(statistics.width)
    erase = same - write @ read.T
    erase[gone] = 0
    return Split("leace", dict.fromkeys(statistics.langs, Map(mean, erase, same, mean)))


def subspace(statistics: Statistics) -> Split:
    """Remove the first uncentred principal component of each language, which is near its mean (Yang et al. 2021)."""
    same, none = np.eye(statistics.width), np.zeros(statistics.width)
    maps = {}
    for lang, mean in statistics.means.items():
        axes = np.linalg.eigh(statistics.covariances[lang] + np.outer(mean, mean))[1][:, -1:]
        maps[lang] = Map(none, same - axes @ axes.T, same, none)
    return Split("subspace", maps, {"rank": 1})
