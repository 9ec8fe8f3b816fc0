"""What a model scores on held-out rows, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import torch
from torch import Tensor

from bgt_core.contracts import Batch, Outputs, Posterior
from bgt_core.device import autocast, seed_everything
from bgt_core.diagnose import active_units, information, moments
from bgt_core.errors import UsageError
from bgt_core.nets.prediction import LabelPrediction
from bgt_core.posterior import READOUTS
from bgt_core.training.loop import Trainer
from bgt_core.training.negatives import nearest_other

ROUNDING = 1e-6  # of a cosine: what is nearer by less is a copy


@torch.inference_mode()
def validate(trainer: Trainer, batches: Iterable[Batch]) -> dict[str, float]:
    """Means over the held-out rows that have them, in nats: each prediction's NLL, each posterior's KL, and the ELBO.

    `elbo` = -(reconstruction NLL + KL), every KL at full weight whatever training gave it; translation
    is no part of it, and a model that only translates has none. `active/NAME` counts the latent units in use.
    `distillation/en` is 1 - the cosine of what is mapped and its teacher's vector. `retrieval/en-fr` is the share of
    English sentences that find their translation among all the held-out French.
    Deterministic in the seed.
    """
    workers, device = trainer.workers, trainer.device
    meaning: dict[str, list[Tensor]] = defaultdict(list)  # by columns: of each batch, (B, columns, L)
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))
    rows: dict[str, Tensor] = defaultdict(lambda: torch.zeros(()))
    spread: dict[str, Tensor] = {}  # (2, L)
    bound: set[str] = set()  # names of what is reconstructed
    paid: set[str] = set()  # and of its KL
    trainer.model.eval()
    for number, batch in enumerate(batches):
        if number % workers.count != workers.rank:
            continue
        seed_everything(trainer.config.seed, number)
        with autocast(device, trainer.config.precision):
            out = trainer.model(batch.to(device))
            terms = dict(terms_of(out))
        for name, values in terms.items():
            sums[name] += values.sum()
            rows[name] += len(values)
        bound |= {prediction.name for prediction in out.predictions if prediction.role == "reconstruct"}
        paid |= {f"kl/{name}" for name, _ in out.named_posteriors()}
        if out.meaning:
            means = [posterior.mean.float() for posterior in out.meaning.values()]
            meaning["\t".join(out.meaning)].append(torch.stack(means, 1))
        for name, posterior in out.named_posteriors():
            spread[name] = spread.get(name, 0) + moments(posterior.standardised_mean)
    trainer.model.train()
    totals, counts, spread = (workers.sum_over_ranks(part) for part in (sums, rows, spread))
    means_of = {name: (totals[name] / counts[name]).item() for name in totals}
    bound, paid = (set(workers.sum_over_ranks({name: torch.ones(()) for name in part})) for part in (bound, paid))
    elbo = {"elbo": -sum(means_of[name] for name in means_of if name in bound | paid)} if bound else {}
    active = {f"active/{name}": active_units(of, counts[f"kl/{name}"].item()) for name, of in spread.items()}
    precisions: dict[str, float] = {}
    for columns in workers.sum_over_ranks({columns: torch.ones(()) for columns in meaning}):
        of_columns = torch.cat(meaning[columns]) if columns in meaning else torch.zeros(0, 0, 0)
        precisions |= retrieval(columns.split("\t"), workers.gather(of_columns).to(device))
    return elbo | means_of | active | precisions


def terms_of(out: Outputs) -> Iterator[tuple[str, Tensor]]:
    """What each row pays, (B,) nats, by the key of its metric; whether its label is predicted, and how far its vectors
    are from their teacher's."""
    for prediction in out.predictions:
        yield prediction.name, prediction.nll()[1]
        if isinstance(prediction, LabelPrediction):
            yield f"accuracy/{prediction.name}", (prediction.logits.argmax(1) == prediction.labels).float()
    for name, posterior in out.named_posteriors():
        yield f"kl/{name}", posterior.kl()
    for column, cosines in out.agreement.items():
        yield f"distillation/{column}", 1 - cosines


def retrieval(columns: Sequence[str], meaning: Tensor) -> dict[str, float]:
    """Precision at 1 by cosine, each column from each other: semantic means of n rows, (n, columns, L).

    Copies are forgiven on both sides: another line of the translation, and the translation of another line of the same
    sentence. Corpora hold many sentences with several translations each.
    """
    precisions = {}
    for (i, left), (j, right) in combinations(enumerate(columns), 2):
        sides = meaning[:, i], meaning[:, j]
        own = torch.cosine_similarity(*sides)
        directions = (f"{left}-{right}", f"{right}-{left}")
        for direction, side, nearest in zip(directions, sides, nearest_other(*sides), strict=True):
            copied = torch.cosine_similarity(side, side[nearest.row]) >= 1 - ROUNDING
            hits = copied | (own + ROUNDING >= nearest.cosine)
            precisions[f"retrieval/{direction}"] = hits.float().mean().item()
    return precisions


@torch.inference_mode()
def information_of(trainer: Trainer, batches: Iterable[Batch]) -> dict[str, float]:
    """ "information/NAME": I(x; z) of each posterior over these rows, nats (see `information`); the first worker's
    figure, so that all agree. Raises UsageError for a model whose posteriors have no width.
    """
    measured: dict[str, Tensor] = {}
    if trainer.workers.is_main:
        trainer.model.eval()
        posteriors: dict[str, list[Posterior]] = defaultdict(list)
        for batch in batches:
            with autocast(trainer.device, trainer.config.precision):
                out = trainer.model(batch.to(trainer.device), READOUTS["mean"])
            for name, posterior in out.named_posteriors():
                if posterior.has_density:
                    posteriors[name].append(posterior)
        generator = torch.Generator(trainer.device).manual_seed(trainer.config.seed)
        for name, parts in posteriors.items():
            measured[f"information/{name}"] = information(type(parts[0]).join(parts), generator).mean()
        trainer.model.train()
    by_latent = {name: value.item() for name, value in trainer.workers.sum_over_ranks(measured).items()}
    if not by_latent:
        raise UsageError(
            "aggressive_steps: this model's posteriors are points, so nothing can collapse; use aggressive_steps=0."
        )
    return by_latent
