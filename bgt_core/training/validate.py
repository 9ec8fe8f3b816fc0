"""Evaluate a model on held-out rows, term by term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.backend import autocast, seed_everything
from bgt_core.contracts import Batch, Outputs, Posterior, Tokens
from bgt_core.diagnose import active_units, information, moments
from bgt_core.errors import UsageError
from bgt_core.nets.output import LabelPrediction
from bgt_core.posterior import READOUTS
from bgt_core.training.negatives import BLOCK
from bgt_core.training.workers import Workers

if TYPE_CHECKING:
    from bgt_core.training.loop import Trainer

ROUNDING = 1e-6  # of a cosine: sentences whose similarities differ by less count as equally near
BASE = 6_364_136_223_846_793_005  # an odd number; its powers modulo 2^64 weigh the tokens of a sentence


@torch.inference_mode()
def validate(trainer: Trainer, batches: Iterable[Batch]) -> dict[str, float]:
    """Measure each prediction's NLL, each posterior's KL, and the ELBO: means over held-out rows, in nats.

    `elbo` is -(reconstruction NLL + KL), with every KL at weight 1, whatever its weight in training. It excludes
    translation, and a model that only translates has no ELBO. `active/NAME` counts the latent units in use.
    `distillation/en` is 1 - the cosine of the mapped vector and its teacher's. `retrieval/en-fr` is the share of
    English sentences whose nearest held-out French sentence is a translation. Deterministic, given the seed.
    """
    workers, scores = trainer.workers, HeldOutScores(trainer.device)
    trainer.model.eval()
    for number, batch in enumerate(batches):
        if number % workers.count != workers.rank:
            continue
        seed_everything(trainer.config.seed, number)
        with autocast(trainer.device, trainer.config.precision):
            scores.add(trainer.model(batch.to(trainer.device)), batch)
    trainer.model.train()
    return scores.over_all(workers)


class HeldOutScores:
    """Sums over the held-out rows of this process."""

    def __init__(self, device: torch.device):
        self.device = device
        self.sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), device=device))  # of each term
        self.rows: dict[str, Tensor] = defaultdict(lambda: torch.zeros(()))  # with that term
        self.moments: dict[str, Tensor] = {}  # of each posterior's means, (2, L)
        self.means: dict[str, list[Tensor]] = defaultdict(list)  # by columns: for each batch, (B, columns, L)
        self.texts: dict[str, list[Tensor]] = defaultdict(list)  # the same, (B, columns): see `hashes`

    def add(self, out: Outputs, batch: Batch) -> None:
        """Add the model's outputs for a batch."""
        terms = dict(terms_of(out))
        if any(prediction.role == "reconstruct" for prediction in out.predictions):
            parts = [values for name, values in terms.items() if name.startswith(("reconstruct/", "kl/"))]
            terms["elbo"] = -torch.stack(parts).sum(0)
        for name, values in terms.items():
            self.sums[name] += values.sum()
            self.rows[name] += len(values)
        for name, posterior in out.named_posteriors():
            self.moments[name] = self.moments.get(name, 0) + moments(posterior.standardised_mean)
        if out.semantic:
            means = [posterior.mean.float() for posterior in out.semantic.values()]
            columns = "\t".join(out.semantic)
            self.means[columns].append(torch.stack(means, 1))
            self.texts[columns].append(torch.stack([hashes(batch.sides[column]) for column in out.semantic], 1))

    def over_all(self, workers: Workers) -> dict[str, float]:
        """Return the scores over the rows of all workers."""
        sums, rows, spread = (workers.sum_over_ranks(part) for part in (self.sums, self.rows, self.moments))
        means = {name: (sums[name] / rows[name]).item() for name in sums}
        elbo = {"elbo": means.pop("elbo")} if "elbo" in means else {}  # the first
        active = {f"active/{name}": active_units(of, rows[f"kl/{name}"].item()) for name, of in spread.items()}
        compared = workers.sum_over_ranks({columns: torch.ones(()) for columns in self.means})
        precisions: dict[str, float] = {}
        for columns in compared:
            own = torch.cat(self.means[columns]) if columns in self.means else torch.zeros(0, 0, 0)
            texts = torch.cat(self.texts[columns]) if columns in self.texts else torch.zeros(0, 0, dtype=torch.int64)
            gathered = [workers.gather(part).to(self.device) for part in (own, texts)]
            precisions |= retrieval(columns.split("\t"), *gathered)
        return elbo | means | active | precisions


def terms_of(out: Outputs) -> Iterator[tuple[str, Tensor]]:
    """Yield the NLL and KL of each row, (B,) nats, with the key of the metric; also whether its label is predicted
    correctly, and the distance of its vectors from the teacher's."""
    for prediction in out.predictions:
        yield prediction.name, prediction.nll()[1]
        if isinstance(prediction, LabelPrediction):
            yield f"accuracy/{prediction.name}", (prediction.logits.argmax(1) == prediction.labels).float()
    for name, posterior in out.named_posteriors():
        yield f"kl/{name}", posterior.kl()
    for column, cosines in out.agreement.items():
        yield f"distillation/{column}", 1 - cosines


def hashes(side: Tokens) -> Tensor:
    """Return a hash of each sentence, (B,) int64; sentences of the same tokens have the same hash."""
    powers = torch.full((side.ids.shape[1],), BASE).cumprod(0)
    return (side.ids.cpu() * powers).sum(1)  # padding adds 0


def retrieval(columns: Sequence[str], meaning: Tensor, texts: Tensor) -> dict[str, float]:
    """Compute precision at 1 by cosine, for each ordered pair of columns.

    In many corpora a sentence occurs several times with different translations. So the translation of a copy is right
    too, and a copy of the translation. If a wrong sentence is as near as the right one, that is a miss: with equal
    vectors precision is 0.

    Args:
        columns: Names of the columns.
        meaning: Semantic means of n rows, (n, columns, L).
        texts: The `hashes` of their sentences, (n, columns).
    """
    precisions, units = {}, F.normalize(meaning, dim=-1)
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
def information_of(trainer: Trainer, batches: Iterable[Batch]) -> dict[str, float]:
    """Measure "information/NAME", I(x; z) of each posterior over these rows, in nats (see `information`). All workers
    get the first one's values. Raises UsageError for a model whose posteriors have no density."""
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
            measured[f"information/{name}"] = information(parts, generator).mean()
        trainer.model.train()
    by_latent = {name: value.item() for name, value in trainer.workers.sum_over_ranks(measured).items()}
    if not by_latent:
        raise UsageError(
            "aggressive_steps: this model's posteriors are points, which can't collapse; use aggressive_steps=0."
        )
    return by_latent
