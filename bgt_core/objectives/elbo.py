"""The evidence lower bound, and the translation terms trained beside it."""

from __future__ import annotations

from dataclasses import dataclass

from bgt_core.contracts import SEMANTIC, Loss, Outputs
from bgt_core.errors import UsageError


@dataclass(frozen=True)
class Elbo:
    """NLL of every prediction + annealed KL of every posterior, in nats (paper, eq. 1 and sec. 4).

    Reconstruction and KL make the ELBO; translation is BilingualTrans, trained with unit weight and the
    only place where labels are smoothed. KL is summed over units and counted once a sentence pair, never
    by tokens. Weights other than 1 are no longer a bound; the terms reported are always unweighted.

    Free nats (Kingma et al. 2016, "free bits"): a language latent pays no less than that many, its KL being the mean
    over the micro-batch, so it is not pressed below them.
    """

    warmup_steps: int = 65_536  # updates until the KL counts fully, from 0 (released code)
    label_smoothing: float = 0.1
    semantic_weight: float = 1.0  # of the semantic latent's KL
    language_weight: float = 1.0  # of each language latent's KL
    prediction_weight: float = 1.0  # of each NLL; half in the released code's translation baseline
    language_free_nats: float = 0.0  # a sentence, of each language latent

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label_smoothing {self.label_smoothing} must be from 0 to below 1")
        if self.language_free_nats < 0:
            raise UsageError(f"language_free_nats {self.language_free_nats} must not be negative")

    def __call__(self, out: Outputs, step: int) -> Loss:
        anneal = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        total, terms = 0.0, {}
        for prediction in out.predictions:
            translates = prediction.name.startswith("translate/")
            loss, nats = prediction.nll(self.label_smoothing if translates else 0.0)
            total = total + self.prediction_weight * loss
            terms[prediction.name] = nats.sum()
        for name, posterior in out.posteriors.items():
            kl = posterior.kl()  # (B,)
            terms[f"kl/{name}"] = kl.detach().sum()
            if name == SEMANTIC:
                total = total + anneal * self.semantic_weight * kl.sum()
            else:
                paid = len(kl) * kl.mean().clamp(min=self.language_free_nats)
                total = total + anneal * self.language_weight * paid
        return Loss(total, terms)
