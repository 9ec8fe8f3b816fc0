"""Several objectives over the same outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

from bgt_core.contracts import Loss, Objective, Outputs
from bgt_core.errors import UsageError
from bgt_core.objectives.altered import AlteredMargin
from bgt_core.objectives.auxiliary import ParaphraseReconstruction, WordPosition
from bgt_core.objectives.composition import Composition
from bgt_core.objectives.contrast import Contrast
from bgt_core.objectives.distillation import Distillation
from bgt_core.objectives.elbo import Elbo
from bgt_core.objectives.margin import Margin


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The sum of its parts, their terms side by side; a part that is None, or of weight 0, is left out."""

    elbo: Elbo | None = None
    margin: Margin | None = None
    contrast: Contrast | None = None
    distillation: Distillation | None = None
    paraphrase: ParaphraseReconstruction | None = None
    position: WordPosition | None = None
    composition: Composition | None = None
    altered: AlteredMargin | None = None

    @property
    def parts(self) -> list[Objective]:
        """Those that count."""
        composing = (self.composition, self.altered)
        weighable = (self.margin, self.contrast, self.distillation, self.paraphrase, self.position, *composing)
        weighted = [part for part in weighable if part and part.weight]
        return [*([self.elbo] if self.elbo else []), *weighted]

    def __post_init__(self) -> None:
        if not self.parts:
            raise UsageError("objective: nothing is left to minimise; give a part a weight above 0")

    def __call__(self, out: Outputs, step: int) -> Loss:
        losses = [part(out, step) for part in self.parts]
        terms = {name: value for loss in losses for name, value in loss.terms.items()}
        return Loss(reduce(add, [loss.total for loss in losses]), terms)


def parts_of(objective: Objective) -> list[Objective]:
    """The parts of a sum that count; of anything else, itself."""
    return objective.parts if isinstance(objective, Sum) else [objective]
