"""Evaluate a model on held-out translations: NLL, KL, retrieval, and mutual information of sentences and latents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice, permutations
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.backend import autocast, seed_everything
from bgt_core.contracts import Batch, Outputs, Posterior, Tokens
from bgt_core.data.batching import validation
from bgt_core.data.store import Corpus, Mixture
from bgt_core.diagnose import active_units, information, moments
from bgt_core.errors import UsageError
from bgt_core.nets.output import LabelPrediction
from bgt_core.posterior import READOUTS
from bgt_core.training.negatives import BLOCK

if TYPE_CHECKING:
    from bgt_core.training.loop import Trainer

INFORMED = 2_000  # number of held-out rows on which aggressive training measures the mutual information
ROUNDING = 1e-6  # sentences whose cosines differ by less than this count as equally near
BASE = 6_364_136_223_846_793_005  # any odd number: a hash is a polynomial of it, with token ids as coefficients


@torch.inference_mode()
def validate(trainer: Trainer, batches: Iterable[Batch]) -> dict[str, float]:
    """Measure the NLL of each prediction, the KL of each posterior, and the ELBO: means over held-out rows, in nats.

    `elbo` is -(reconstruction NLL + KL), where every KL has weight 1, whatever its weight in training. It does not
    include translation, and is absent if a model only translates. `active/NAME` is a latent's number of active units.
    `distillation/en` is 1 minus the cosine between the mapped vector and the teacher's vector. `retrieval/en-fr` is the
    share of English sentences whose nearest held-out French sentence is a translation. The same seed gives the same
    results.
    """
    workers, device = trainer.workers, trainer.device
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))  # metric -> its sum over rows
    rows: dict[str, Tensor] = defaultdict(lambda: torch.zeros(()))  # metric -> number of rows that have it
    spread: dict[str, Tensor] = {}  # posterior -> sums of its means and their squares, (2, L)
    means: dict[str, list[Tensor]] = defaultdict(list)  # column names -> semantic means of each batch, (B, columns, L)
    texts: dict[str, list[Tensor]] = defaultdict(list)  # column names -> `hashes` of each batch, (B, columns)
    trainer.model.eval()
    for number, batch in enumerate(batches):
        if number % workers.count != workers.rank:
            continue
        seed_everything(trainer.config.seed, number)
        with autocast(device, trainer.config.precision):
            out = trainer.model(batch.to(device))
            for name, values in terms_of(out).items():
                sums[name] += values.sum()
                rows[name] += len(values)
            for name, posterior in out.named_posteriors():
                spread[name] = spread.get(name, 0) + moments(posterior.standardised_mean)
        if out.semantic:
            columns = "\t".join(out.semantic)
            means[columns].append(torch.stack([posterior.mean.float() for posterior in out.semantic.values()], 1))
            texts[columns].append(torch.stack([hashes(batch.sides[column]) for column in out.semantic], 1))
    trainer.model.train()

    all_sums, all_rows, all_spread = (workers.sum_over_ranks(part) for part in (sums, rows, spread))
    scores = {name: (all_sums[name] / all_rows[name]).item() for name in all_sums}
    active = {f"active/{name}": active_units(of, all_rows[f"kl/{name}"].item()) for name, of in all_spread.items()}
    precisions: dict[str, float] = {}
    for columns in workers.sum_over_ranks({columns: torch.ones(()) for columns in means}):
        own = torch.cat(means[columns]) if columns in means else torch.zeros(0, 0, 0)
        hashed = torch.cat(texts[columns]) if columns in texts else torch.zeros(0, 0, dtype=torch.int64)
        precisions |= retrieval(columns.split("\t"), *(workers.gather(part).to(device) for part in (own, hashed)))
    return scores | active | precisions


def terms_of(out: Outputs) -> dict[str, Tensor]:
    """Return metrics of each row, (B,): the ELBO, the NLL and the KL, in nats. If rows have labels, also return whether
    each label is predicted correctly; with a teacher, the distance from its vectors."""
    terms: dict[str, Tensor] = {}
    for prediction in out.predictions:
        terms[prediction.name] = prediction.nll()[1]
        if isinstance(prediction, LabelPrediction):
            terms[f"accuracy/{prediction.name}"] = (prediction.logits.argmax(1) == prediction.labels).float()
    terms |= {f"kl/{name}": posterior.kl() for name, posterior in out.named_posteriors()}
    terms |= {f"distillation/{column}": 1 - cosines for column, cosines in out.agreement.items()}
    if all(prediction.role != "reconstruct" for prediction in out.predictions):
        return terms
    parts = [values for name, values in terms.items() if name.startswith(("reconstruct/", "kl/"))]
    return {"elbo": -torch.stack(parts).sum(0), **terms}


def hashes(side: Tokens) -> Tensor:
    """Return a hash of each sentence's tokens, (B,) int64."""
    powers = torch.full((side.ids.shape[1],), BASE).cumprod(0)
    return (side.ids.cpu() * powers).sum(1)  # PAD has the id 0, so padding adds 0


def retrieval(columns: Sequence[str], means: Tensor, texts: Tensor) -> dict[str, float]:
    """Compute the precision at 1 of finding translations by cosine, for each ordered pair of columns.

    In many corpora a sentence occurs several times, with different translations. So two other results also count as
    right: a copy of the sentence's translation, and the translation of a copy of the sentence. If a wrong sentence is
    as near as the right sentence, the result counts as wrong. So if all vectors are equal, precision is 0. `means` are
    the semantic means of N rows, (N, columns, L), and `texts` the `hashes` of their sentences, (N, columns).
    """
    precisions, units = {}, F.normalize(means, dim=-1)
    for (i, left), (j, right) in permutations(enumerate(columns), 2):
        hits = []
        for own, text in zip(units.split(BLOCK), texts.split(BLOCK), strict=True):
            cosines = own[:, i] @ units[:, j].T
            is_right = (text[:, None, i] == texts[:, i]) | (text[:, None, j] == texts[:, j])
            best, wrong = (cosines.masked_fill(mask, -torch.inf).amax(1) for mask in (~is_right, is_right))
            hits.append(best > wrong + ROUNDING)
        precisions[f"retrieval/{left}-{right}"] = torch.cat(hits).float().mean().item()
    return precisions


@torch.inference_mode()
def information_of(trainer: Trainer, held_out: Corpus | Mixture, batches: int | None = None) -> dict[str, float]:
    """Measure the mutual information I(x; z) for each posterior, in nats: {"information/NAME": I(x; z)}.

    The first worker measures it on `INFORMED` held-out rows, or only on the first `batches` batches of these rows. All
    workers return the first worker's values. Raises UsageError if no posterior has a density.
    """
    measured: dict[str, Tensor] = {}
    if trainer.workers.is_main:
        trainer.model.eval()
        posteriors: dict[str, list[Posterior]] = defaultdict(list)
        for batch in islice(validation(held_out, trainer.config.micro_tokens, INFORMED), batches):
            with autocast(trainer.device, trainer.config.precision):
                out = trainer.model(batch.to(trainer.device), READOUTS["mean"])
            for name, posterior in out.named_posteriors():
                if posterior.has_density:
                    posteriors[name].append(posterior)
        generator = torch.Generator(trainer.device).manual_seed(trainer.config.seed)
        for name, parts in posteriors.items():
            measured[f"information/{name}"] = information(parts, generator).mean()
        trainer.model.train()
    by_latent = {name: value.item() for name, value in trainer.workers.sum_over_ranks(measured).items()}
    if not by_latent:
        raise UsageError(
            "aggressive_steps: this model's posteriors are points, which can't collapse; use aggressive_steps=0."
        )
    return by_latent
