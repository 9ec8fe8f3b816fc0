"""Losses on similarities: of semantic means to translations, altered sentences and a teacher, and of language latents.

All use the cosine. Each says whether it is unitless or in nats; `weight` converts it to nats beside the ELBO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import torch
import torch.nn.functional as F
from torch import Tensor

from bgt_core.contracts import Loss, Outputs, Posterior
from bgt_core.errors import UsageError
from bgt_core.objectives import Part, check_compared, total


@dataclass(frozen=True)
class Margin(Part):
    """Put a sentence's semantic mean nearer to that of its translation than to that of a wrong one.

    The loss is max(0, margin - cos(s, t) + cos(s, t')), for each pair of columns in both directions. t' is the negative
    that came with the batch, or without negatives the hardest sentence in the other column of the batch. With
    `both_sides` it is the hardest of both columns (Wieting et al. 2017, eq. 1), which rarely helps with two languages,
    because sentences of the same language are nearer. With `mined_only` a batch without negatives costs nothing. A
    sentence of the same row is never a negative. Unitless; `weight` converts it to nats beside the ELBO.
    """

    margin: float = 0.4
    weight: float = 1.0
    both_sides: bool = False  # search both columns for negatives, in mega-batches too
    mined_only: bool = False  # no loss for batches without negatives, as before `train.mega_batch_start`

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise UsageError(f"margin {self.margin} must be above 0 and below 2, the largest difference of cosines")

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        if self.mined_only and not mega_batch:
            raise UsageError(
                "mega_batch 0: margin.mined_only needs negatives from mega-batches; set train.mega_batch, "
                "or objective.margin.mined_only=false for the hardest of each batch"
            )
        check_compared(columns)

    def __call__(self, out: Outputs, step: int) -> Loss:
        means, negatives = (
            {lang: F.normalize(posterior.mean.float(), dim=-1) for lang, posterior in of.items()}  # (B, L)
            for of in (out.semantic, out.negatives)
        )
        if len(means) < 2 or (self.mined_only and not negatives):  # with one column there is nothing to compare
            return Loss(total(out, []), {})
        hinges = []
        for left, right in combinations(means, 2):
            cosine = means[left] @ means[right].T  # (B, B), translations on the diagonal
            true = cosine.diagonal()
            both_ways = ((left, right), (right, left))
            if negatives:
                wrong = [(means[column] * negatives[other]).sum(-1) for column, other in both_ways]
            else:
                wrong = hardest(cosine)
                if self.both_sides:
                    own = [hardest(side @ side.T)[0] for side in (means[left], means[right])]
                    wrong = list(map(torch.maximum, wrong, own))
            hinges += [F.relu(self.margin - true + cos) for cos in wrong]
        hinge = torch.stack(hinges).sum()
        return Loss(hinge, {"margin": hinge.detach()})


def hardest(cosine: Tensor) -> list[Tensor]:
    """Return the highest off-diagonal value in each row and in each column of (B, B), (B,) each.

    The diagonal compares sentences of one row. A sentence alone in its batch gets minus infinity, and so no loss.
    """
    own = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
    others = cosine.masked_fill(own, -torch.inf)
    return [others.amax(dim) for dim in (1, 0)]


@dataclass(frozen=True)
class Contrast(Part):
    """Let a sentence's semantic mean identify its translation among all sentences of the batch.

    The loss is -log softmax over t' of cos(s, t') / temperature at the true t, in nats, for each pair of columns in
    both directions. The candidates are those of the micro-batch, so the value depends on its size.
    """

    temperature: float = 0.05
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"{self.temperature} must be above 0", parameter="temperature")

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        check_compared(columns)

    def __call__(self, out: Outputs, step: int) -> Loss:
        means = [F.normalize(posterior.mean.float(), dim=-1) for posterior in out.semantic.values()]  # (B, L)
        own = torch.arange(len(means[0]), device=means[0].device)
        costs = []
        for left, right in combinations(means, 2):
            scores = left @ right.T / self.temperature  # (B, B), translations on the diagonal
            for ways in (scores, scores.T):
                costs.append(F.cross_entropy(ways, own, reduction="sum"))
        nats = total(out, costs)
        return Loss(nats, {"contrast": nats.detach()} if costs else {})


@dataclass(frozen=True)
class AlteredMargin(Part):
    """Put translations nearer to each other than an altered sentence is to either, by the cosine of semantic means.

    For each sentence s, its translation t and its altered form s': max(0, margin - cos(s, t) + cos(s, s')) and max(0,
    margin - cos(s, t) + cos(t, s')). Unitless; `weight` converts it to nats beside the ELBO. A batch without altered
    sentences costs nothing.
    """

    weight: float = 100.0
    margin: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise UsageError(
                f"altered.margin {self.margin} must be above 0 and below 2, the largest difference of cosines"
            )

    def __call__(self, out: Outputs, step: int) -> Loss:
        def cosine(one: Posterior, two: Posterior) -> torch.Tensor:
            return F.cosine_similarity(one.mean.float(), two.mean.float(), dim=-1)  # (B,)

        hinges = [
            F.relu(self.margin - cosine(out.semantic[column], translation) + cosine(either, altered)).sum()
            for column, altered in out.altered.items()
            for name, translation in out.semantic.items()
            if name != column
            for either in (out.semantic[column], translation)
        ]
        hinge = total(out, hinges)
        return Loss(hinge, {"altered": hinge.detach()} if hinges else {})


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
    apart: float = 0.5  # cosine above which an altered sentence is too near to its original

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


@dataclass(frozen=True)
class StyleContrast(Part):
    """Put a sentence's language latent nearer to those of the same style than to those of other styles.

    A style is a value of `data.properties.signature`. The loss of a sentence s is the mean, over all other sentences t
    of its style and language, of -log softmax over t' of cos(s, t') / temperature at t, in nats. It compares the means
    of language latents. The candidates are those of the micro-batch, so the value depends on its size.
    """

    temperature: float = 0.1
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(f"style.temperature {self.temperature} must be above 0")

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = [self.cost(styled.mean, styled.number) for styled in out.styles.values()]
        nats = total(out, costs)
        return Loss(nats, {"style": nats.detach()} if costs else {})

    def cost(self, mean: Tensor, number: Tensor) -> Tensor:
        """Return the cost of the sentences of one language, given means (B, L) and the numbers of their styles (B,)."""
        latent = F.normalize(mean.float(), dim=-1)
        itself = torch.eye(len(latent), dtype=torch.bool, device=latent.device)
        scores = (latent @ latent.T / self.temperature).masked_fill(itself, -torch.inf)
        same = (number[:, None] == number) & ~itself  # (B, B)
        chances = scores.log_softmax(1).masked_fill(~same, 0).sum(1)  # (B,)
        return -(chances / same.sum(1).clamp_min(1)).sum()


@dataclass(frozen=True)
class Distillation(Part):
    """Point the mapped semantic mean of every column in the direction of the teacher's vector for the row.

    1 - cosine, summed over columns and rows: a translation learns the vector of the sentence that the teacher embedded.
    The paper uses the squared distance; for vectors compared by cosine the length does not matter. Unitless; `weight`
    converts it to nats beside the ELBO. Rows without a vector cost nothing.
    """

    weight: float = 200.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = {f"distillation/{column}": (1 - cosines).sum() for column, cosines in out.agreement.items()}
        return Loss(total(out, costs.values()), {name: cost.detach() for name, cost in costs.items()})
