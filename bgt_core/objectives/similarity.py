"""Losses that compare a sentence by cosine with its translation, its altered form (nearly the same words, another
meaning), a teacher's vector, or sentences in the same style.

Some losses are in nats, like the ELBO. The others have no unit; `weight` scales them before they are added to the ELBO.
"""

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
    """A margin loss: a sentence must be more similar to its translation than to a negative. It has no unit.

    The loss of a sentence s with the translation t and the negative t' is max(0, margin - cos(s, t) + cos(s, t')), with
    the cosines of semantic means. It is summed over rows, pairs of columns, and both directions of a pair. If the batch
    has no negatives, t' is the most similar wrong sentence in the other column of the batch, or, with `both_sides`,
    in both columns (Wieting et al. 2017, eq. 1). For two languages, `both_sides` rarely helps, because
    then most negatives are in the sentence's own language.
    """

    margin: float = 0.4
    weight: float = 1.0
    both_sides: bool = False  # if true, batches and mega-batches are searched for negatives in both columns
    mined_only: bool = False  # if true, the loss is 0 before `train.mega_batch_start`, when batches have no negatives

    def __post_init__(self) -> None:
        if not 0 < self.margin < 2:
            raise UsageError(f"margin {self.margin} must be above 0 and below 2, the largest difference of cosines")

    def check(self, columns: Sequence[str], mega_batch: int) -> None:
        if self.mined_only and not mega_batch:
            raise UsageError(
                "mega_batch 0: margin.mined_only needs negatives from mega-batches; set train.mega_batch, or set "
                "objective.margin.mined_only=false to use the hardest sentence of each batch"
            )
        check_compared(columns)

    def __call__(self, out: Outputs, step: int) -> Loss:
        means, negatives = (
            {lang: F.normalize(posterior.mean.float(), dim=-1) for lang, posterior in of.items()}  # (B, L)
            for of in (out.semantic, out.negatives)
        )
        if len(means) < 2 or (self.mined_only and not negatives):  # no translations, or no negatives yet
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
    """Return the cosine of each sentence's most similar wrong translation: the maxima of the rows and of the columns of
    a (B, B) matrix without its diagonal, (B,) each. For B = 1, they are minus infinity, so that the loss is 0."""
    own = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
    others = cosine.masked_fill(own, -torch.inf)
    return [others.amax(dim) for dim in (1, 0)]


@dataclass(frozen=True)
class Contrast(Part):
    """A contrastive loss (InfoNCE): find a sentence's translation among all sentences of the other column.

    The loss of a sentence s is the cross-entropy of choosing its translation, in nats. The logit of a candidate t' is
    cos(s, t') / temperature. The loss is summed over rows, pairs of columns, and both directions of a pair. It is
    higher for larger micro-batches, because all sentences of the other column in the micro-batch are candidates.
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
            costs += [F.cross_entropy(each, own, reduction="sum") for each in (scores, scores.T)]
        nats = total(out, costs)
        return Loss(nats, {"contrast": nats.detach()} if costs else {})


@dataclass(frozen=True)
class AlteredMargin(Part):
    """A margin loss: two translations must be more similar to each other than to an altered sentence.

    For a sentence s, its translation t and its altered form s', the loss is max(0, margin - cos(s, t) + cos(s, s')) +
    max(0, margin - cos(s, t) + cos(t, s')), with the cosines of semantic means. It has no unit, and is 0 if there are
    no altered sentences.
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
    """A contrastive loss on those units of the semantic latent that are computed from word order (`Outputs.composed`).

    It is the loss of `Contrast`, computed on these units only, with more candidates t': the altered forms of the
    sentence s and of its translation. An altered form has the same words in another order, or a negation.

    Some translations and paraphrases reverse the word order ("the cat is fed by him"). For these pairs, the loss is
    lower if the units ignore word order. So training could end with units that ignore word order. To prevent this,
    log(1 + exp((cos(s, s') - apart) / temperature)) is added for each sentence s and its altered form s'.
    """

    weight: float = 1.0
    temperature: float = 0.1
    apart: float = 0.5  # the added loss grows when the cosine of a sentence and its altered form is above this

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
                scores = plain[source] @ torch.cat(candidates).T / self.temperature  # (B, C), where C is B, 2 B or 3 B
                own = torch.arange(len(scores), device=scores.device)
                costs.append(F.cross_entropy(scores, own, reduction="sum"))
        nats = total(out, costs)
        return Loss(nats, {"composition": nats.detach()})


@dataclass(frozen=True)
class StyleContrast(Part):
    """A contrastive loss on language latents: sentences of the same style must be more similar than other sentences.

    The function `data.properties.signature` determines the style. The candidates for a sentence s are all other
    sentences t' of its language in the micro-batch, with the logits cos(s, t') / temperature. The loss of s is the mean
    cross-entropy of the candidates in the style of s, in nats. It is higher for larger micro-batches.
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
        """Return the loss of B sentences of one language, given posterior means (B, L) and style ids (B,)."""
        latent = F.normalize(mean.float(), dim=-1)
        itself = torch.eye(len(latent), dtype=torch.bool, device=latent.device)
        scores = (latent @ latent.T / self.temperature).masked_fill(itself, -torch.inf)
        same = (number[:, None] == number) & ~itself  # (B, B)
        log_probs = scores.log_softmax(1).masked_fill(~same, 0).sum(1)  # (B,)
        return -(log_probs / same.sum(1).clamp_min(1)).sum()


@dataclass(frozen=True)
class Distillation(Part):
    """A distillation loss: 1 - cos(m, v), where m is a sentence's mapped semantic mean, and v the teacher's vector.

    The loss is summed over rows and columns, and has no unit. A row has one vector v, the teacher's vector of one of
    its sentences; the translations of this sentence learn the same vector. Reimers and Gurevych (2020) use the squared
    distance; here, the cosine ignores the lengths of vectors. If the batch has no vectors of a teacher, the loss is 0.
    """

    weight: float = 200.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        costs = {f"distillation/{column}": (1 - cosines).sum() for column, cosines in out.agreement.items()}
        return Loss(total(out, costs.values()), {name: cost.detach() for name, cost in costs.items()})
