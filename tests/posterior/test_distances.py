"""Distances of Gaussian posteriors equal those of the library POT, integrals, and values computed by hand."""

import math

import numpy as np
import ot
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from bgt_core.errors import UsageError
from bgt_core.posterior import Gaussian
from bgt_core.posterior.distances import DISTANCES, FEATURES, jensen_shannon_terms, similarity
from tests.close import assert_close


def drawn(seed: int, *shape: int) -> Gaussian:
    generator = torch.Generator().manual_seed(seed)
    return Gaussian(*torch.randn(2, *shape, dtype=torch.float64, generator=generator))


def gaussian(mean: list[float], deviation: list[float]) -> Gaussian:
    return Gaussian(torch.tensor([mean]).double(), 2 * torch.tensor([deviation]).double().log())


# means and standard deviations: LEFT (1, 2) and (1, 2); RIGHT (3, -1) and (2, 1/2)
LEFT, RIGHT = gaussian([1, 2], [1, 2]), gaussian([3, -1], [2, 0.5])
BY_HAND = {
    "w2": [4 + 1, 9 + 2.25],
    "mahalanobis": [0.5 * (1 + 0.25) * 4, 0.5 * (0.25 + 4) * 9],
    "jensen-shannon": [0.5 * math.log(3.5) - 0.5 * math.log(2), 0.5 * math.log(4.375) - 0.5 * math.log(1)],
    "euclidean": [4, 9],
    "cosine": [3 / math.sqrt(5 * 10), -2 / math.sqrt(5 * 10)],
    "hadamard": [3, -2],
}
SIMILARITY_BY_HAND = {
    "w2": -math.sqrt(16.25),
    "mahalanobis": -math.sqrt(2.5 + 19.125),
    "jensen-shannon": -sum(BY_HAND["jensen-shannon"]),
    "euclidean": -math.sqrt(13),
    "cosine": 1 / math.sqrt(50),
}


@pytest.mark.parametrize("name", FEATURES)
def test_the_terms_are_those_by_hand(name: str) -> None:
    expected = torch.tensor([BY_HAND[name]], dtype=torch.float64)
    assert_close(FEATURES[name](LEFT, RIGHT), expected)


@pytest.mark.parametrize("name", DISTANCES)
def test_the_similarity_is_that_by_hand(name: str) -> None:
    assert similarity(name, LEFT, RIGHT).item() == pytest.approx(SIMILARITY_BY_HAND[name], rel=1e-12)


def test_w2_is_that_of_pot_between_full_covariances() -> None:
    left, right = drawn(0, 5, 7), drawn(1, 5, 7)
    for row in range(5):
        covariances = [np.diag(side.log_variance[row].exp().numpy()) for side in (left, right)]
        expected = ot.gaussian.bures_wasserstein_distance(
            left.mean[row].numpy(), right.mean[row].numpy(), *covariances, log=False
        )
        one = [Gaussian(side.mean[row], side.log_variance[row]) for side in (left, right)]
        assert -similarity("w2", *one).item() == pytest.approx(float(expected), rel=1e-9)


def test_jensen_shannon_is_an_upper_bound_that_is_near() -> None:
    """Our upper bound of the divergence is near its value by numerical integration, but may exceed log 2."""

    def divergence(left: Gaussian, right: Gaussian) -> float:
        p, q = (norm(side.mean.item(), math.exp(side.log_variance.item() / 2)) for side in (left, right))

        def slope(x: float) -> float:
            m = 0.5 * (p.pdf(x) + q.pdf(x))
            return sum(0.5 * side.pdf(x) * math.log(max(side.pdf(x), 1e-300) / m) for side in (p, q))

        return quad(slope, -12, 12, limit=200)[0]

    for means, deviations, most in (((0, 0.5), (1, 1), 1.02), ((0, 0), (1, 1.5), 1.1), ((-1, 1), (1, 0.8), 1.25)):
        left, right = gaussian([means[0]], [deviations[0]]), gaussian([means[1]], [deviations[1]])
        exact, bound = divergence(left, right), jensen_shannon_terms(left, right).item()
        assert exact < bound < most * exact
    far = gaussian([-5.0], [1.0]), gaussian([5.0], [1.0])
    assert divergence(*far) == pytest.approx(math.log(2), rel=1e-4)
    assert jensen_shannon_terms(*far).item() > 1


def test_an_unknown_measure_is_named_with_its_nearest() -> None:
    with pytest.raises(UsageError, match=r"'mahalanobi' is not a measure.*Did you mean 'mahalanobis'\?"):
        similarity("mahalanobi", LEFT, RIGHT)
    with pytest.raises(UsageError, match="'hadamard' is not a measure"):
        similarity("hadamard", LEFT, RIGHT)
