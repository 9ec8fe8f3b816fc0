"""`diagnose` estimates the exact numbers of a linear Gaussian model, whose likelihood and posterior have a closed form.
Its estimate of mutual information is right at the extremes (0 and log N), and agrees with quadrature between."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from bgt_core.contracts import Batch, Outputs, Posterior, Readout, Role, Tokens
from bgt_core.diagnose import ROWS, Diagnosis, diagnose, information
from bgt_core.errors import BgtError
from bgt_core.nets.output import SentencePrediction
from bgt_core.posterior import Gaussian, Point
from tests.close import assert_close

CPU = torch.device("cpu")
NOISE = 0.5
LOADINGS = torch.tensor([[1.0, 2.0], [2.0, -1.0], [0.5, 0.0]], dtype=torch.float64)  # (3, 2), with orthogonal columns
TRUE_VARIANCE = 1 / (1 + LOADINGS.square().sum(0) / NOISE**2)  # (2,), the variance of z given x


def measured(batch: Batch) -> Tensor:
    """Return the data x (B, 3) that the model explains: a tenth of the first three token ids of each sentence."""
    return batch.sides["en"].ids[:, :3].double() / 10


ROLES: tuple[Role, ...] = ("reconstruct", "translate")


class Layer:
    """An output layer with the loss -log N(x; W z, NOISE^2)."""

    def nll(self, features: Tensor, latent: Tensor, target: Tokens, smoothing: float) -> tuple[Tensor, Tensor]:
        nats = -Normal(latent @ LOADINGS.T, NOISE).log_prob(features).sum(1)
        return nats.sum(), nats


class Linear:
    """The model x = W z + noise, with two latents of one unit each. q(z | x) is the true posterior, with `shift` added
    to the mean, and the variance multiplied by `factor`."""

    def __init__(self, shift: float = 0.0, factor: float = 1.0):
        self.shift, self.factor = shift, factor

    def posteriors(self, batch: Batch) -> dict[str, Posterior]:
        mean = measured(batch) @ LOADINGS / NOISE**2 * TRUE_VARIANCE + self.shift  # (B, 2)
        spread = (self.factor * TRUE_VARIANCE).log().expand_as(mean)
        return {"semantic": Gaussian(mean[:, :1], spread[:, :1]), "en": Gaussian(mean[:, 1:], spread[:, 1:])}

    def __call__(self, batch: Batch, read: Readout) -> Outputs:
        posteriors, side = self.posteriors(batch), batch.sides["en"]
        z = torch.cat([read(posterior) for posterior in posteriors.values()], dim=1)
        predictions = [SentencePrediction(role, "en", measured(batch), z, Layer(), side) for role in ROLES]
        return Outputs({}, {"any": posteriors}, predictions)


class Points(Linear):
    """The model `Linear`, but posteriors have no variance."""

    def posteriors(self, batch: Batch) -> dict[str, Posterior]:
        return {name: Point(posterior.mean) for name, posterior in super().posteriors(batch).items()}


class Fewer(Linear):
    """The model `Linear`, but one latent has both units, and the other latent has none."""

    def posteriors(self, batch: Batch) -> dict[str, Posterior]:
        both = super().posteriors(batch)
        whole = Gaussian(
            *(torch.cat([getattr(q, part) for q in both.values()], 1) for part in ("mean", "log_variance"))
        )
        return {"semantic": whole, "fr": Point(whole.mean[:, :0])}


def batches() -> list[Batch]:
    ids = torch.randint(4, 30, (60, 5), generator=torch.Generator().manual_seed(0)).tolist()
    return [Batch({"en": Tokens.pad(part, "en")}, "en") for part in (ids[:25], ids[25:])]


def truth() -> float:
    """Return the mean of -log p(x) over the sentences. p(x) is a Gaussian with covariance W W' + NOISE^2 I."""
    covariance = LOADINGS @ LOADINGS.T + NOISE**2 * torch.eye(3, dtype=torch.float64)
    marginal = MultivariateNormal(torch.zeros(3, dtype=torch.float64), covariance)
    return -torch.cat([marginal.log_prob(measured(batch)) for batch in batches()]).mean().item()


def diagnosis(model: Linear, samples: int = 4, seed: int = 0) -> Diagnosis:
    return diagnose(model, batches(), CPU, samples, seed)


def test_the_exact_posterior_gives_the_exact_likelihood_from_any_draw() -> None:
    for samples in (1, 4):
        result = diagnosis(Linear(), samples)
        assert result.iwae_nll.nats == pytest.approx(truth(), rel=1e-9)
        assert result.neg_elbo.nats == pytest.approx(truth(), abs=0.5)  # the estimate from few samples is noisy


def test_another_posterior_comes_near_it_from_above_with_more_draws() -> None:
    shift, factor = 0.1, 1.5
    results = [diagnosis(Linear(shift, factor), samples) for samples in (1, 8, 64, 1000)]
    nats = [result.iwae_nll.nats for result in results]
    assert nats == sorted(nats, reverse=True)
    assert nats[-1] == pytest.approx(truth(), abs=0.02)
    gap = 0.5 * (shift**2 / TRUE_VARIANCE + factor - 1 - math.log(factor)).sum().item()  # KL(q || true posterior)
    assert gap > 0.3
    assert results[-1].neg_elbo.nats == pytest.approx(truth() + gap, abs=0.05)


def test_each_latent_is_counted_and_priced() -> None:
    result = diagnosis(Linear(factor=1.5))
    assert result.pairs == 60 and list(result.kl) == list(result.information) == ["semantic", "en"]
    assert result.units == result.active == {"semantic": 1, "en": 1}
    posteriors_of = [Linear(factor=1.5).posteriors(batch) for batch in batches()]
    for name, estimate in result.kl.items():
        kl = torch.cat([posteriors[name].kl() for posteriors in posteriors_of])
        assert estimate.nats == pytest.approx(kl.mean().item())
        assert estimate.error == pytest.approx(kl.std().item() / 60**0.5)
        assert 0 < result.information[name].nats < math.log(60)
    z = [torch.cat([posterior.mean for posterior in posteriors.values()], 1) for posteriors in posteriors_of]
    losses = [
        Layer().nll(measured(batch), mean, batch.sides["en"], 0.0)[1] for batch, mean in zip(batches(), z, strict=True)
    ]
    assert result.at_mean.nats == pytest.approx(torch.cat(losses).mean().item())


def test_points_have_no_information_and_no_likelihood() -> None:
    result = diagnosis(Points())
    assert (result.neg_elbo, result.iwae_nll, result.information) == (None, None, {})
    assert (result.kl["en"].nats, result.active["en"]) == (0, 1)
    assert result.at_mean.nats == diagnosis(Linear()).at_mean.nats


def test_a_latent_without_units_is_none() -> None:
    result = diagnosis(Fewer())
    assert list(result.kl) == ["semantic"]
    assert result.iwae_nll.nats == pytest.approx(truth(), rel=1e-9)


def test_a_model_that_only_embeds_is_refused() -> None:
    with pytest.raises(BgtError, match="diagnose a generative model"):
        diagnose(lambda batch, read: Outputs({}, {}, []), batches(), CPU)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_equal_posteriors_tell_nothing_and_distant_ones_log_n() -> None:
    same = Gaussian(torch.full((50, 3), 2.0), torch.full((50, 3), -1.0))
    far = Gaussian(100.0 * torch.arange(40.0)[:, None].expand(40, 2), torch.full((40, 2), -6.0))
    assert_close(information([same], seeded()), torch.zeros(50, dtype=torch.float64), scale=1)
    assert_close(information([far], seeded()).mean(), math.log(40))


def test_it_is_the_integral_over_the_mixture() -> None:
    """The estimate equals the mutual information by quadrature, for five different posteriors with 800 copies each."""
    means, deviations = [-1.5, -0.5, 0.0, 0.7, 2.0], [0.3, 1.0, 0.5, 0.2, 0.8]

    def mixture(z: float) -> float:
        return float(norm.pdf(z, means, deviations).mean())

    entropy = -quad(lambda z: mixture(z) * math.log(mixture(z)), -8, 8, limit=200)[0]
    within = float(norm(means, deviations).entropy().mean())
    to_prior = quad(lambda z: mixture(z) * (math.log(mixture(z)) - norm.logpdf(z)), -8, 8, limit=200)[0]
    posterior = Gaussian(torch.tensor(means)[:, None], 2 * torch.tensor(deviations).log()[:, None])
    nats = information([posterior] * 800, seeded())
    assert len(nats) > ROWS
    error = nats.std().item() / len(nats) ** 0.5
    assert error < 0.02
    assert nats.mean().item() == pytest.approx(entropy - within, abs=4 * error)
    # Hoffman & Johnson: the mean KL is the mutual information + the KL from the aggregated posterior to the prior
    assert posterior.kl().mean().item() == pytest.approx(entropy - within + to_prior, rel=1e-5)
