"""The ELBO and the cross-entropy have the values computed by hand."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from bgt_core.contracts import Outputs
from bgt_core.errors import BgtError
from bgt_core.nets.output import LabelPrediction
from bgt_core.objectives.elbo import CrossEntropy, Elbo
from bgt_core.posterior import Gaussian
from tests.close import assert_close


@dataclass
class Says:
    """A fake prediction for two sentences, whose NLLs are `nats`. Label smoothing by s adds 100 * s to their sum."""

    name: str
    nats: list[float]

    @property
    def role(self) -> str:
        return self.name.split("/")[0]

    def nll(self, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        nats = torch.tensor(self.nats)
        return nats.sum() + 100 * smoothing, nats


@dataclass
class Costs:
    """A fake posterior with given KLs."""

    nats: list[float]

    def kl(self) -> Tensor:
        return torch.tensor(self.nats, requires_grad=True)


OUT = Outputs(
    semantic={},
    posteriors={
        "semantic": {"semantic": Costs([1.0, 2.0])},  # type: ignore[dict-item]
        "language": {"en": Costs([10.0, 20.0]), "fr": Costs([100.0, 200.0])},  # type: ignore[dict-item]
    },
    predictions=[  # type: ignore[list-item]
        Says("reconstruct/en", [1e3, 2e3]),
        Says("reconstruct/fr", [3e3, 4e3]),
        Says("translate/en", [1e4, 2e4]),
        Says("translate/fr", [3e4, 4e4]),
    ],
)
NLL = 110_000
TERMS = {
    "reconstruct/en": 3000,
    "reconstruct/fr": 7000,
    "translate/en": 30_000,
    "translate/fr": 70_000,
    "kl/semantic": 3,
    "kl/en": 30,
    "kl/fr": 300,
}


@pytest.mark.parametrize(
    ("elbo", "step", "total"),
    [
        (Elbo(100, 0.0), 0, NLL),  # the KL has the weight 0 at step 0 of the warm-up
        (Elbo(100, 0.0), 25, NLL + 0.25 * 333),
        (Elbo(100, 0.0), 100, NLL + 333),
        (Elbo(100, 0.0), 10_000, NLL + 333),
        (Elbo(0, 0.0), 0, NLL + 333),  # without a warm-up, the KL has the weight 1 from the start
        (Elbo(100, 0.1), 0, NLL + 2 * 10),  # only the two translations are label-smoothed
        (Elbo(0, 0.0, {"semantic": 0.5, "language": 2.0}), 0, NLL + 0.5 * 3 + 2 * 330),
        (Elbo(10, 0.0, {"semantic": 0.0, "language": 3.0}), 5, NLL + 0.5 * 3 * 330),
    ],
)
def test_total(elbo: Elbo, step: int, total: float) -> None:
    loss = elbo(OUT, step)
    assert loss.total.item() == pytest.approx(total)
    assert {name: value.sum().item() for name, value in loss.terms.items()} == TERMS  # reported terms are not weighted
    assert not any(value.requires_grad for value in loss.terms.values())


@pytest.mark.parametrize(("count", "share"), [(4, 1 / 4), (2, 1 / 2), (1, 1)])
def test_predictions_may_be_averaged(count: int, share: float) -> None:
    out = replace(OUT, predictions=OUT.predictions[:count])
    nats = sum(sum(said.nats) for said in out.predictions)  # type: ignore[attr-defined]
    assert Elbo(100, 0.0, average_predictions=True)(out, 0).total.item() == pytest.approx(share * nats)


UNITS = Gaussian(  # two sentences with three units; a unit's KL is half its squared mean
    torch.tensor([[1.0, 0.0, 2.0], [1.0, 2.0, 0.0]], dtype=torch.float64, requires_grad=True),
    torch.zeros(2, 3, dtype=torch.float64),
)  # the mean KLs of the three units are 0.5, 1 and 1 nats


@pytest.mark.parametrize(("free", "nats"), [(0.0, 2.5), (2.0, 2.5), (3.0, 3.0)])
def test_free_nats(free: float, nats: float) -> None:
    out = Outputs({}, {"semantic": {"semantic": UNITS}, "language": {"en": UNITS}})
    loss = Elbo(10, 0.0, {"language": 3.0}, {"language": free})(out, 5)
    assert loss.total.item() == pytest.approx(0.5 * 2 * (2.5 + 3 * nats))  # 0.5: the KL's weight; 2: sentences
    assert loss.terms["kl/en"].item() == pytest.approx(5.0)  # the reported KL ignores free nats


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"free_nats": {"language": -1}}, "free_nats.language -1 must not be negative"),
        ({"weights": {"semantic": 1, "language": -0.5}}, "weights.language -0.5 must not be negative"),
        ({"warmup_steps": -1}, "warmup_steps -1 must not be negative"),
        ({"label_smoothing": -0.1}, "label_smoothing -0.1 must be from 0 to below 1"),
        ({"label_smoothing": 1.0}, "label_smoothing 1.0 must be from 0 to below 1"),
    ],
)
def test_impossible_numbers_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BgtError, match=f"^{re.escape(message)}$"):
        Elbo(**settings)


def test_a_sigmoid_anneals_the_kl() -> None:
    """As in Deudon (2018), the KL's weight is sigmoid(0.002 (step - 2500))."""
    elbo = Elbo(warmup_steps=0, label_smoothing=0.0, sigmoid_midpoint=2_500, sigmoid_steepness=0.002)
    none = Elbo(warmup_steps=0, label_smoothing=0.0)(replace(OUT, posteriors={}), 0).total
    for step, share in ((0, 1 / (1 + math.exp(5))), (2_500, 0.5), (3_000, 1 / (1 + math.exp(-1))), (10**9, 1.0)):
        assert elbo.annealing(step) == pytest.approx(share, rel=1e-12)
        assert_close(elbo(OUT, step).total, none.item() + share * 333)
    both = replace(elbo, warmup_steps=5_000)
    assert both.annealing(2_500) == pytest.approx(0.25)
    assert Elbo().annealing(0) == 0.0 and Elbo(warmup_steps=0).annealing(0) == 1.0


# probabilities of labels 0 and 1: (3/4, 1/4) in row 0, and (1/2, 1/2) in row 1
LOGITS = torch.tensor([[3.0, 1.0], [2.0, 2.0]]).log().requires_grad_()
LABELS = Outputs(
    semantic={},
    posteriors={},
    predictions=[
        LabelPrediction(LOGITS, torch.tensor([0, 1])),
        LabelPrediction(LOGITS, torch.tensor([1, 1]), name="other"),
    ],
)


@pytest.mark.parametrize(
    ("smoothing", "total"),
    [
        # the prediction "label" costs -log 3/4 - log 1/2, and the prediction "other" -log 1/4 - log 1/2
        (0.0, (0.287682 + 0.693147) + (1.386294 + 0.693147)),
        # 0.8 x the loss above, plus, for both predictions, 0.2 x the mean over both labels of -log p, in both rows
        (0.2, 0.8 * 3.060270 + 0.2 * 2 * (0.836988 + 0.693147)),
    ],
)
def test_cross_entropy_by_hand(smoothing: float, total: float) -> None:
    loss = CrossEntropy(label_smoothing=smoothing)(LABELS, step=0)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.total.requires_grad
    terms = {name: value.sum().item() for name, value in loss.terms.items()}
    assert terms == pytest.approx({"label": 0.980829, "other": 2.079442}, rel=1e-5)  # terms are not smoothed
    assert CrossEntropy(label_smoothing=smoothing)(LABELS, step=9_999).total == loss.total
