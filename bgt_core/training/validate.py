"""What a model scores on held-out pairs, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch
from bgt_core.device import autocast, seed_everything
from bgt_core.diagnose import active_units, information, moments
from bgt_core.errors import UsageError
from bgt_core.posterior import Gaussian
from bgt_core.training.negatives import nearest_other
from bgt_core.training.workers import SINGLE_PROCESS, Workers

ROUNDING = 1e-6  # of a cosine: what is nearer by less is a copy


@torch.inference_mode()
def validate(
    model: nn.Module,
    batches: Iterable[Batch],
    device: torch.device,
    precision: str,
    seed: int,
    workers: Workers = SINGLE_PROCESS,
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
    spread: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))  # (2, L)
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
            spread[name] = spread[name] + moments(posterior.mean)
        sums["pairs"] += len(batch)
    model.train()
    totals, spread = workers.totals(sums), workers.totals(spread)
    found = retrieval(langs, workers.gather(torch.cat(meaning) if meaning else torch.zeros(0, 0, 0)).to(device))
    pairs = totals.pop("pairs").item()
    means = {name: value.item() / pairs for name, value in totals.items()}
    bound = sum(value for name, value in means.items() if name.startswith(("reconstruct/", "kl/")))
    elbo = {"elbo": -bound} if any(name.startswith("reconstruct/") for name in means) else {}
    active = {f"active/{name}": active_units(of, pairs) for name, of in spread.items()}
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


@torch.inference_mode()
def information_of(
    model: nn.Module,
    batches: Iterable[Batch],
    device: torch.device,
    precision: str,
    seed: int,
    workers: Workers = SINGLE_PROCESS,
) -> dict[str, float]:
    """ "information/NAME": I(x; z) of each posterior over these pairs, nats (see `information`); the first worker's
    figure, so that all agree. Raises BgtError for a model whose posteriors have no width.
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
        raise UsageError("inner_steps: this model's posteriors are points, so nothing can collapse; use inner_steps=0.")
    return told
