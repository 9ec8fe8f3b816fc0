"""Cross-entropy, with numbers by hand."""

from __future__ import annotations

import pytest
import torch

from bgt_core.contracts import Outputs
from bgt_core.errors import UsageError
from bgt_core.nets.output import LabelPrediction
from bgt_core.objectives.cross_entropy import CrossEntropy

# p = (3/4, 1/4) and (1/2, 1/2) of labels 0 and 1
LOGITS = torch.tensor([[3.0, 1.0], [2.0, 2.0]]).log().requires_grad_()
OUT = Outputs(
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
        # -log 3/4 - log 1/2, and -log 1/4 - log 1/2
        (0.0, (0.287682 + 0.693147) + (1.386294 + 0.693147)),
        # 0.8 of that, and 0.2 of the mean over both labels: (0.287682 + 1.386294) / 2 + 0.693147, twice
        (0.2, 0.8 * 3.060270 + 0.2 * 2 * (0.836988 + 0.693147)),
    ],
)
def test_by_hand(smoothing: float, total: float) -> None:
    loss = CrossEntropy(label_smoothing=smoothing)(OUT, step=0)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.total.requires_grad
    terms = {name: value.sum().item() for name, value in loss.terms.items()}
    assert terms == pytest.approx({"label": 0.980829, "other": 2.079442}, rel=1e-5)  # never smoothed
    assert CrossEntropy(label_smoothing=smoothing)(OUT, step=9_999).total == loss.total


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_is_a_share(smoothing: float) -> None:
    with pytest.raises(UsageError, match="label_smoothing"):
        CrossEntropy(label_smoothing=smoothing)
