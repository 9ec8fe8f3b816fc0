"""What a model scores on held-out pairs, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch
from bgt_core.train.device import autocast

ACTIVE = 0.01  # a unit is active when the variance of its posterior mean exceeds this (Burda et al. 2016)


@torch.inference_mode()
def validate(
    model: nn.Module, batches: Iterable[Batch], device: torch.device, precision: str, seed: int
) -> dict[str, float]:
    """Means over held-out pairs, in nats: each prediction's NLL, each posterior's KL, and the ELBO.

    `elbo` = -(reconstruction NLL + KL), every KL at full weight whatever training gave it; translation
    is no part of it. `active/NAME` counts the latent units in use. Deterministic in `seed`.
    """
    model.eval()
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))
    moments: dict[str, tuple[Tensor, Tensor, int]] = {}
    pairs = 0
    for number, batch in enumerate(batches):
        torch.manual_seed(seed * 1_000_003 + number)
        with autocast(device, precision):
            out = model(batch.to(device))
            for prediction in out.predictions:
                sums[prediction.name] += prediction.nll()[1].sum()
        for name, posterior in out.posteriors.items():
            sums[f"kl/{name}"] += posterior.kl().sum()
            mean = posterior.mean.double()
            first, second, count = moments.get(name, (0.0, 0.0, 0))
            moments[name] = first + mean.sum(0), second + mean.square().sum(0), count + len(mean)
        pairs += len(batch)
    model.train()
    means = {name: float(value) / pairs for name, value in sums.items()}
    bound = sum(value for name, value in means.items() if name.startswith(("reconstruct/", "kl/")))
    active = {
        f"active/{name}": int(((second / count - (first / count).square()) > ACTIVE).sum())
        for name, (first, second, count) in moments.items()
    }
    return {"elbo": -bound, **means, **active}
