"""What a model scores on held-out pairs, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch
from bgt_core.information import active_units, moments
from bgt_core.precision import autocast
from bgt_core.train.device import seed_everything
from bgt_core.train.workers import ALONE, Workers


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
    spread: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))  # (2, L)
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
            spread[name] = spread[name] + moments(posterior.mean)
        sums["pairs"] += len(batch)
    model.train()
    totals, spread = workers.totals(sums), workers.totals(spread)
    pairs = totals.pop("pairs").item()
    means = {name: value.item() / pairs for name, value in totals.items()}
    bound = sum(value for name, value in means.items() if name.startswith(("reconstruct/", "kl/")))
    elbo = {"elbo": -bound} if any(name.startswith("reconstruct/") for name in means) else {}
    active = {f"active/{name}": active_units(found, pairs) for name, found in spread.items()}
    return elbo | means | active
