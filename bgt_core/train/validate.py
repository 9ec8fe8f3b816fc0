"""What a model scores on held-out pairs, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from bgt_core.contracts import BadInput, Batch
from bgt_core.information import active_units, information, moments
from bgt_core.posterior import Gaussian
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


@torch.inference_mode()
def information_of(
    model: nn.Module,
    batches: Iterable[Batch],
    device: torch.device,
    precision: str,
    seed: int,
    workers: Workers = ALONE,
) -> dict[str, float]:
    """ "information/NAME": I(x; z) of each posterior over these pairs, nats (see `information`); the first worker's
    figure, so that all agree. Raises BadInput for a model whose posteriors have no width.
    """
    found: dict[str, Tensor] = {}
    if workers.first:
        model.eval()
        posteriors: dict[str, list[Gaussian]] = defaultdict(list)
        for batch in batches:
            with autocast(device, precision):
                out = model(batch.to(device), lambda posterior: posterior.mean)
            for name, posterior in out.posteriors.items():
                if isinstance(posterior, Gaussian):
                    posteriors[name].append(posterior)
        generator = torch.Generator(device).manual_seed(seed)
        for name, parts in posteriors.items():
            found[f"information/{name}"] = information(Gaussian.join(parts), generator).mean()
        model.train()
    told = {name: value.item() for name, value in workers.totals(found).items()}
    if not told:
        raise BadInput(
            "inner_steps: this model's posteriors are points, so nothing can collapse; use inner_steps=0.", 2
        )
    return told
