"""Align the composed parts of translations, and separate those of the same words in another order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import torch
import torch.nn.functional as F

from bgt_core.contracts import Loss, Outputs, Posterior
from bgt_core.errors import UsageError
from bgt_core.objectives.part import Part, total


@dataclass(frozen=True)
class Composition(Part):
    """Let the composed parts of a sentence's semantic mean identify its translation among all sentences of the batch.

    For each composed part and each two columns: -log softmax over t' of cos(s, t') / temperature at the true t, in
    nats, as `Contrast`, over the units of that part. Altered sentences are candidates too, those of the translation and
    those of the sentence itself: the same words in other roles, or with a negation.

    A paraphrase may reverse the order ("the cat is fed by him"). A part that ignores order fits such pairs better than
    one that only encodes order, and could stay so. So a second cost separates an altered sentence s' from its own s,
    whatever its translation: log(1 + exp((cos(s, s') - apart) / temperature)).
    """

    weight: float = 1.0
    temperature: float = 0.1
    apart: float = 0.5  # cosine above which an altered sentence is too near to its own

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"composition.temperature {self.temperature} must be above 0")

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs: list[torch.Tensor] = []
        for part in out.composed:

            def units(posterior: Posterior, part: slice = part) -> torch.Tensor:
                return F.normalize(posterior.mean[:, part].float(), dim=-1)

            plain = {column: units(posterior) for column, posterior in out.semantic.items()}  # (B, K) each
            altered = {column: units(posterior) for column, posterior in out.altered.items()}
            for column, wrong in altered.items():
                excess = (plain[column] * wrong).sum(1) - self.apart  # (B,)
                costs.append(F.softplus(excess / self.temperature).sum())
            for source, target in permutations(plain, 2):
                candidates = [plain[target], *(altered[column] for column in (target, source) if column in altered)]
                scores = plain[source] @ torch.cat(candidates).T / self.temperature  # (B, B to 3 B)
                own = torch.arange(len(scores), device=scores.device)
                costs.append(F.cross_entropy(scores, own, reduction="sum"))
        nats = total(out, costs)
        return Loss(nats, {"composition": nats.detach()})
