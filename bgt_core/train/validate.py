"""What a model scores on held-out pairs, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch
from bgt_core.data.negatives import nearest_other
from bgt_core.precision import autocast
from bgt_core.train.device import seed_everything
from bgt_core.train.workers import ALONE, Workers

ROUNDING = 1e-6  # of a cosine: what is nearer by less is a copy
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
    `retrieval/en-fr` is the share of English sentences that find their translation among all the held-out French.
    Deterministic in `seed`.
    """
    model.eval()
    langs: list[str] = []
    meaning: list[Tensor] = []  # of each batch, (B, languages, L)
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
        if out.meaning:
            langs = list(out.meaning)
            meaning.append(torch.stack([posterior.mean.float() for posterior in out.meaning.values()], 1))
        for name, posterior in out.posteriors.items():
            sums[f"kl/{name}"] += posterior.kl().sum()
            mean = posterior.mean.double()
            moments[name] = moments[name] + torch.stack([mean.sum(0), mean.square().sum(0)])
        sums["pairs"] += len(batch)
    model.train()
    totals, moments = workers.totals(sums), workers.totals(moments)
    found = retrieval(langs, workers.gather(torch.cat(meaning) if meaning else torch.zeros(0, 0, 0)).to(device))
    pairs = totals.pop("pairs").item()
    means = {name: value.item() / pairs for name, value in totals.items()}
    bound = sum(value for name, value in means.items() if name.startswith(("reconstruct/", "kl/")))
    elbo = {"elbo": -bound} if any(name.startswith("reconstruct/") for name in means) else {}
    active = {
        f"active/{name}": int((second / pairs - (first / pairs).square() > ACTIVE).sum())
        for name, (first, second) in moments.items()
    }
    return elbo | means | active | found


def retrieval(langs: Sequence[str], meaning: Tensor) -> dict[str, float]:
    """Precision at 1 by cosine, each language from each other: semantic means of n pairs, (n, languages, L).

    Copies are forgiven on both sides: another line of the translation, and the translation of another line of the same
    sentence. Corpora hold many sentences with several translations each.
    """
    found = {}
    for (i, left), (j, right) in combinations(enumerate(langs), 2):
        sides = meaning[:, i], meaning[:, j]
        own = torch.cosine_similarity(*sides)
        for way, side, others in zip((f"{left}-{right}", f"{right}-{left}"), sides, nearest_other(*sides), strict=True):
            copied = torch.cosine_similarity(side, side[others.row]) >= 1 - ROUNDING
            found[f"retrieval/{way}"] = (copied | (own + ROUNDING >= others.cosine)).float().mean().item()
    return found
