"""The evidence lower bound (ELBO), and the negative log-likelihood of predictions that are not terms of the ELBO."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from bgt_core.contracts import Loss, Outputs, Role
from bgt_core.errors import UsageError, check_least
from bgt_core.objectives import Part, total


@dataclass(frozen=True)
class Elbo(Part):
    """The NLL of sentences plus the annealed KL of `Outputs.posteriors`, in nats (BGT paper, eq. 1 and sec. 4).

    The NLL of reconstructions plus the KL is the negative ELBO. The NLL of translations is added (BilingualTrans in the
    paper); only this NLL has label smoothing. The KL is summed over latent units, and counted once per row, not once
    per token. If a weight is not 1, the loss is not a bound. Metrics are reported without weights.

    `weights` and `free_nats` have one number per latent, for example {"semantic": 0.02, "language": 0.4}. Free nats are
    the "free bits" of Kingma et al. (2016): if the mean KL of a micro-batch is below the free nats, the free nats
    replace the KL in the loss, so that training does not reduce the KL further.
    """

    roles = ("reconstruct", "translate", "recombine")

    warmup_steps: int = 65_536  # updates in which the KL's factor grows from 0 to 1, as in the BGT paper's code
    label_smoothing: float = 0.1
    weights: Mapping[str, float] = field(default_factory=dict)  # latent -> weight of its KL; 1 by default
    free_nats: Mapping[str, float] = field(default_factory=dict)  # Latent -> free nats per row; 0 by default.
    # `average_predictions`: whether to average the NLLs of all predictions, as the paper's code does for a translator.
    average_predictions: bool = False
    sigmoid_midpoint: int = 0  # update at which the KL's sigmoid factor is 1/2 (Bowman et al. 2016)
    sigmoid_steepness: float = 0.0  # steepness of the KL's sigmoid factor, per update; 0: no such factor
    weight: float = 1.0  # factor of this loss in the sum of all losses (`objectives.Sum`)

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label_smoothing {self.label_smoothing} must be from 0 to below 1")
        check_least(0, warmup_steps=self.warmup_steps)
        check_least(0, sigmoid_midpoint=self.sigmoid_midpoint, sigmoid_steepness=self.sigmoid_steepness)
        check_least(0, **{f"weights.{latent}": weight for latent, weight in self.weights.items()})
        check_least(0, **{f"free_nats.{latent}": nats for latent, nats in self.free_nats.items()})

    def __call__(self, out: Outputs, step: int) -> Loss:
        anneal = self.annealing(step)
        predictions = [each for each in out.predictions if each.role in self.roles]
        prediction_weight = 1 / max(1, len(predictions)) if self.average_predictions else 1.0
        costs, terms = [], {}
        for prediction in predictions:
            loss, nats = prediction.nll(self.label_smoothing if prediction.role == "translate" else 0.0)
            costs.append(prediction_weight * loss)
            terms[prediction.name] = nats
        for latent, named in out.posteriors.items():
            weight, free_nats = self.weights.get(latent, 1.0), self.free_nats.get(latent, 0.0)
            for name, posterior in named.items():
                kl = posterior.kl()  # (B,)
                terms[f"kl/{name}"] = kl.detach().sum()
                paid = len(kl) * kl.mean().clamp(min=free_nats) if free_nats else kl.sum()
                costs.append(anneal * weight * paid)
        return Loss(total(out, costs), terms)

    def annealing(self, step: int) -> float:
        """Return the factor, from 0 to 1, by which the KL is multiplied at an update: min(1, step / warmup_steps). If
        the steepness is above 0, this factor is multiplied by sigmoid(steepness * (step - midpoint))."""
        linear = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        if not self.sigmoid_steepness:
            return linear
        scaled = torch.tensor(self.sigmoid_steepness * (step - self.sigmoid_midpoint), dtype=torch.float64)
        return linear * scaled.sigmoid().item()


@dataclass(frozen=True)
class CrossEntropy(Part):
    """The NLL of predictions, in nats, with label smoothing (Szegedy et al. 2016). `roles` names the kinds of
    predictions, such as "paraphrase".

    Metrics are reported without label smoothing.
    """

    roles: tuple[Role, ...] = ("auxiliary",)
    weight: float = 1.0
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label_smoothing {self.label_smoothing} must be from 0 to below 1")

    def __call__(self, out: Outputs, step: int) -> Loss:
        own = [prediction for prediction in out.predictions if prediction.role in self.roles]
        costs = {prediction.name: prediction.nll(self.label_smoothing) for prediction in own}
        return Loss(total(out, [loss for loss, _ in costs.values()]), {name: nats for name, (_, nats) in costs.items()})
