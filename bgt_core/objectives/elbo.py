"""The evidence lower bound, and the translation terms trained beside it."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import SEMANTIC, BadInput, Loss, Outputs, Posterior


@dataclass(frozen=True)
class Elbo:
    """NLL of every prediction + annealed KL of every posterior, in nats (paper, eq. 1 and sec. 4).

    Reconstruction and KL make the ELBO; translation is BilingualTrans, trained with unit weight and the
    only place where labels are smoothed. KL is summed over units and counted once a sentence pair, never
    by tokens. Weights other than 1 are no longer a bound; the terms reported are always unweighted.

    Free nats (Kingma et al. 2016, "free bits"): a group of a latent's units pays no less than that many, so it is not
    pressed below them. A group's KL is its mean over the micro-batch.
    """

    warmup_steps: int = 65_536  # updates until the KL counts fully, from 0 (released code)
    label_smoothing: float = 0.1
    semantic_weight: float = 1.0  # of the semantic latent's KL
    language_weight: float = 1.0  # of each language latent's KL
    prediction_weight: float = 1.0  # of each NLL; half in the released code's translation baseline
    semantic_free_nats: float = 0.0  # of each group of the semantic latent's units
    language_free_nats: float = 0.0  # of each group of a language latent's
    free_units: int = 0  # units a group: 1 is each alone, 0 the whole latent

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise BadInput(f"label_smoothing {self.label_smoothing} must be from 0 to below 1", 2)
        for name in ("semantic_free_nats", "language_free_nats", "free_units"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} {getattr(self, name)} must not be negative", 2)

    def __call__(self, out: Outputs, step: int) -> Loss:
        anneal = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        total, terms = 0.0, {}
        for prediction in out.predictions:
            translates = prediction.name.startswith("translate/")
            loss, nats = prediction.nll(self.label_smoothing if translates else 0.0)
            total = total + self.prediction_weight * loss
            terms[prediction.name] = nats.sum()
        for name, posterior in out.posteriors.items():
            semantic = name == SEMANTIC
            weight = self.semantic_weight if semantic else self.language_weight
            free = self.semantic_free_nats if semantic else self.language_free_nats
            kl = posterior.kl().sum()
            total = total + anneal * weight * (self.at_least(free, posterior) if free else kl)
            terms[f"kl/{name}"] = kl.detach()
        return Loss(total, terms)

    def at_least(self, free: float, posterior: Posterior) -> Tensor:
        """The KL summed over the batch, where each group of units costs `free` nats a sentence or more, a scalar."""
        units = posterior.kl_of_units()  # (B, L)
        latent = units.shape[1]
        size = self.free_units or max(1, latent)
        groups = -(-latent // size)  # the last may be smaller
        means = F.pad(units.mean(0), (0, groups * size - latent)).view(groups, size).sum(1)  # (groups,)
        return len(units) * means.clamp(min=free).sum()
