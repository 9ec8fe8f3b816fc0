"""What a model scores on held-out pairs, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch
from bgt_core.precision import autocast
from bgt_core.train.device import seed_everything
from bgt_core.train.workers import ALONE, Workers

ACTIVE = 0.01  # a unit is active when the variance of its posterior mean exceeds this (Burda et al. 2016)


@torch.inference_mode()
def validate(
    model: nn.Module,
    batches: Iterable[Batch],
    device: torch.device,
    precision: str,
    seed: int,
    workers: Workers = ALONE,
) -> dict[str, float]:
    """Means over held-out pairs, in nats: each prediction's NLL, each posterior's KL, and the ELBO.

    `elbo` = -(reconstruction NLL + KL), every KL at full weight whatever training gave it; translation
    is no part of it, and a model that only translates has none. `active/NAME` counts the latent units in use.
    Deterministic in `seed`.
    """
    model.eval()
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))
    moments: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))  # (2, L): sum, sum of squares
    for number, batch in enumerate(batches):
        if number % workers.count != workers.rank:
            continue
        seed_everything(seed, number)
        with autocast(device, precision):
            out = model(batch.to(device))
            for prediction in out.predictions:
                sums[prediction.name] += prediction.nll()[1].sum()
        for name, posterior in out.posteriors.items():
            sums[f"kl/{name}"] += posterior.kl().sum()
            mean = posterior.mean.double()
            moments[name] = moments[name] + torch.stack([mean.sum(0), mean.square().sum(0)])
        sums["pairs"] += len(batch)
    model.train()
    totals, moments = workers.totals(sums), workers.totals(moments)
    pairs = totals.pop("pairs").item()
    means = {name: value.item() / pairs for name, value in totals.items()}
    bound = sum(value for name, value in means.items() if name.startswith(("reconstruct/", "kl/")))
    elbo = {"elbo": -bound} if any(name.startswith("reconstruct/") for name in means) else {}
    active = {
        f"active/{name}": int((second / pairs - (first / pairs).square() > ACTIVE).sum())
        for name, (first, second) in moments.items()
    }
    return elbo | means | active
