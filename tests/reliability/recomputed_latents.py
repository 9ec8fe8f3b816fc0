"""What is said of latents and their probes, on random inputs, beside formulas worked by scipy, torch and by hand."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import cast
from unittest.mock import patch

import numpy as np
import torch
from scipy import stats
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.spatial import distance
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from bgt_core.contracts import Batch, Outputs, Readout, Tokens
from bgt_core.diagnose import diagnose
from bgt_core.nets.output import OutputLayer, SentencePrediction
from bgt_core.posterior import Gaussian, VonMisesFisher
from bgt_core.posterior.distances import similarity
from bgt_core.vectors.linear_probe import LinearProbe
from probes.measures import controls
from probes.measures.controls import control_labels, keys, leace, selectivity
from probes.measures.measure import SCHEDULE, codelength, measure
from probes.measures.study import ProbeConfig, prepare
from probes.task import Items
from probes.tasks import TASKS
from tests.reliability.recomputed_scores import WORDS, differ


def codelengths(rng: np.random.Generator) -> str:
    """The online code of labels alone: each block by the shares of those before it."""
    items, classes = int(rng.integers(20, 400)), int(rng.integers(2, 5))
    labels = rng.choice(classes, items, p=rng.dirichlet(np.ones(classes)))
    code = codelength(
        lambda seed: DummyClassifier(strategy="prior"), np.zeros((items, 1)), labels, range(items), classes, 1, 7
    )
    sent = labels[np.argsort(np.random.default_rng((7, 0)).permutation(items), kind="stable")]
    cuts = sorted({math.ceil(items * percent / 100) for percent in SCHEDULE})
    bits = cuts[0] * math.log2(classes)
    for begin, end in itertools.pairwise(cuts):
        counts = Counter(sent[:begin].tolist())
        smooth = len(counts) < classes
        for label in sent[begin:end].tolist():
            bits -= math.log2((counts[label] + smooth) / (begin + smooth * classes))
    return differ(code.sum(), bits)


def control_tasks(rng: np.random.Generator) -> str:
    """Selectivity's control: the rarest word is the key, a key has one label, and is known where train has it."""
    sentences = [" ".join(rng.choice(WORDS, rng.integers(1, 8))) for _ in range(60)]
    holding = Counter(word for text in sentences for word in {*text.lower().split()})
    names = keys(sentences)
    for text, name in zip(sentences, names, strict=True):
        if holding[name] != min(holding[word] for word in text.lower().split()):
            return f"the key of {text!r} is {name!r}"
    train, labels = rng.permutation(60)[:30], rng.integers(0, 3, 60)
    drawn, known = control_labels(names, labels, train, 1)
    if len({*zip(names, drawn.tolist(), strict=True)}) != len({*names}):
        return "a key has two labels"
    return differ(known, [name in {names[row] for row in train} for name in names])


def selectivities(rng: np.random.Generator) -> str:
    """Accuracies on a task and on its control task, and their difference, with sklearn's regression for a probe."""
    sentences = [" ".join(rng.choice(WORDS, 6)) for _ in range(460)]
    names = ["dog" if "dog" in text else "cat" if "cat" in text else "none" for text in sentences]
    splits = ["train"] * 300 + ["dev"] * 60 + ["test"] * 100
    config = ProbeConfig(seeds=1, resamples=100)
    study = prepare(TASKS["length"], Items(sentences, names, list(range(460)), splits), lang="en", config=config)
    texts = [text.lower().split() for text in study.items.sentences]
    vectors = np.array([[text.count(word.lower()) for word in WORDS] for text in texts], np.float32)
    vectors += rng.normal(size=vectors.shape).astype(np.float32)

    def make(seed: int) -> LinearProbe:
        return LinearProbe(strengths=(1.0,), random_state=seed)

    task = measure(make, [vectors], study.labels, study.cuts)
    with patch.object(controls, "probe_factory", lambda probe: make):
        ours = selectivity(study, [vectors], task, config)
    train, _, test = study.cuts[0]
    drawn, known = control_labels(keys(study.items.sentences), study.labels, train, config.seed)
    test = test[known[test]]
    scaled = StandardScaler().fit(vectors[train]).transform(vectors)
    probe = LogisticRegression(C=1.0, tol=1e-6, max_iter=10_000)
    own, control = (
        probe.fit(scaled[train], labels[train]).score(scaled[test], labels[test]) for labels in (study.labels, drawn)
    )
    if not ours or len({*drawn[train].tolist()}) < 3:  # with two classes, sklearn uses another penalty
        return ""
    return differ(
        (ours["control"], ours["selectivity"] / 100), (control, own - control), 2.5 / len(test)
    )  # two items at most


def erasure(rng: np.random.Generator) -> str:
    """LEACE by its formula, x - W^+ P W (x - mean), with scipy's square root, on features of any scale."""
    items, width, classes = int(rng.integers(60, 300)), int(rng.integers(3, 9)), int(rng.integers(2, 4))
    labels = rng.integers(0, classes, items)
    vectors = rng.normal(size=(items, width)) + rng.normal(size=(classes, width))[labels]
    scales = 10.0 ** rng.integers(-4, 5, width)
    centred = vectors - vectors.mean(0)
    one_hot = np.eye(classes)[labels] - np.bincount(labels, minlength=classes) / items
    whitening = np.linalg.inv(sqrtm(centred.T @ centred / items).real)
    cross = whitening @ (centred.T @ one_hot / items)
    erased = vectors - centred @ (np.linalg.inv(whitening) @ (cross @ np.linalg.pinv(cross)) @ whitening).T
    return differ(leace(vectors * scales, labels)(vectors * scales) / scales, erased, 1e-6)


def divergences(rng: np.random.Generator) -> str:
    """KL of a Gaussian against torch's, of a von Mises-Fisher density against quadrature."""
    mean, log_variance = torch.from_numpy(rng.normal(size=(2, 3, 5)) * 2)
    normal = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    expected = torch.distributions.kl_divergence(normal, prior).sum(-1)
    if failure := differ(Gaussian(mean, log_variance).kl(), expected):
        return f"Gaussian: {failure}"
    size, k = int(rng.integers(3, 12)), float(10 ** rng.uniform(-1, 2))

    def integral(factor: Callable[[float], float], k: float) -> float:
        """Of a factor times the density of t = mean . z, but for a constant; in parts, as its peak is narrow."""
        ends = (-1.0, 1 - min(1.0, 20 * size / (1 + k)), 1 - min(0.5, size / (1 + k)), 1.0)

        def value(t: float) -> float:
            return factor(t) * math.exp(k * (t - 1)) * (1 - t * t) ** ((size - 3) / 2)

        return sum(quad(value, *part, epsabs=0)[0] for part in itertools.pairwise(ends))

    mass, along, uniform = integral(lambda t: 1, k), integral(lambda t: t, k), integral(lambda t: 1, 0)
    sphere = VonMisesFisher(torch.nn.functional.one_hot(torch.tensor([0]), size).double(), torch.tensor([k]).double())
    return differ(sphere.kl(), [k * along / mass - k - math.log(mass / uniform)], 1e-5)


class LinearGaussian:
    """x = W z + noise, whose exact posterior is known, so that any draw gives the exact likelihood."""

    def __init__(self, x: Tensor, weights: Tensor, noise: float):
        self.x, self.weights, self.noise = x, weights, noise
        self.variance = 1 / (1 + weights.square().sum(0) / noise**2)  # columns of W are orthogonal

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        nats = -torch.distributions.Normal(latent @ self.weights.T, self.noise).log_prob(features).sum(1)
        return nats.sum(), nats

    def __call__(self, batch: Batch, read: Readout) -> Outputs:
        mean = self.x @ self.weights / self.noise**2 * self.variance
        posterior = Gaussian(mean, self.variance.log().expand_as(mean))
        layer = cast("OutputLayer", self)  # only `nll` is called
        prediction = SentencePrediction("reconstruct", "en", self.x, read(posterior), layer, batch.sides["en"])
        return Outputs({}, {"any": {"semantic": posterior}}, [prediction])


def likelihoods(rng: np.random.Generator) -> str:
    """Importance-weighted NLL of a linear Gaussian model against scipy's density of x."""
    size, units, noise = int(rng.integers(3, 7)), int(rng.integers(1, 3)), float(rng.uniform(0.3, 1.5))
    weights = np.linalg.qr(rng.normal(size=(size, units)))[0] * rng.uniform(0.5, 2, units)
    x = rng.normal(size=(4, size))
    model = LinearGaussian(torch.from_numpy(x), torch.from_numpy(weights), noise)
    batch = Batch({"en": Tokens.pad([[4, 3]] * 4, "en")}, "en")
    measured = diagnose(model, [batch], torch.device("cpu"), 3).likelihood
    density = stats.multivariate_normal(np.zeros(size), weights @ weights.T + noise**2 * np.eye(size))
    return differ(measured and measured.iwae_nll.nats, -density.logpdf(x).mean())


def distances(rng: np.random.Generator) -> str:
    """Of two Gaussians: W2 by full covariances and a matrix root, the others by scipy."""
    (one, other), logs = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    posteriors = [
        Gaussian(torch.from_numpy(mean)[None], torch.from_numpy(log)[None])
        for mean, log in zip((one, other), logs, strict=True)
    ]
    first, second = (np.diag(np.exp(log)) for log in logs)
    root = sqrtm(second)
    w2 = math.sqrt(np.sum((one - other) ** 2) + np.trace(first + second - 2 * sqrtm(root @ first @ root)).real)
    inverse = (np.linalg.inv(first) + np.linalg.inv(second)) / 2
    expected = {
        "w2": -w2,
        "mahalanobis": -distance.mahalanobis(one, other, inverse),
        "euclidean": -distance.euclidean(one, other),
        "cosine": 1 - distance.cosine(one, other),
    }
    ours = [float(similarity(name, *posteriors)) for name in expected]
    return differ(ours, list(expected.values()), 1e-6)
