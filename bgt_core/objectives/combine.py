"""Several objectives over the same outputs."""

from __future__ import annotations

from dataclasses import dataclass

from bgt_core.contracts import Loss, Objective, Outputs


@dataclass(frozen=True)
class Sum:
    """The sum of its parts; their terms side by side."""

    parts: tuple[Objective, ...]

    def __call__(self, out: Outputs, step: int) -> Loss:
        losses = [part(out, step) for part in self.parts]
        return Loss(
            sum(loss.total for loss in losses), {name: value for loss in losses for name, value in loss.terms.items()}
        )
