"""Penalties of parameters (Wieting et al. 2017, eq. 4), independent of the objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bgt_core.contracts import Loss
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True, eq=False)
class Penalty:
    """lambda_c / 2 ||W_c||^2 + lambda_w / 2 ||W - W_start||^2, once per update.

    W_c are all parameters except the token tables W. The factor 1/2 is the released code's; the paper does not have it.
    """

    composition_l2: float  # lambda_c
    table_l2: float  # lambda_w
    composition: list[nn.Parameter]
    tables: list[tuple[nn.Parameter, Tensor]]  # each with its initial value

    @classmethod
    def of(cls, model: nn.Module, config: TrainConfig, start: Mapping[str, Tensor]) -> Penalty | None:
        """The penalty of a model with initial token tables `start`, by name; None if both weights are 0."""
        if not config.composition_l2 and not config.table_l2:
            return None
        tables = piece_tables(model)
        of_tables = {id(table) for table in tables.values()}
        composition = [parameter for parameter in model.parameters() if id(parameter) not in of_tables]
        held = [(tables[name], began.to(tables[name].device)) for name, began in start.items()]
        return cls(config.composition_l2, config.table_l2, composition, held)

    def terms(self) -> dict[str, Tensor]:
        """The two penalties, scalars with gradient, by the names of their metrics; one with weight 0 is left out."""
        zero, terms = torch.zeros(()), {}
        if self.composition_l2:
            squares = [parameter.square().sum() for parameter in self.composition]
            terms["penalty/composition"] = 0.5 * self.composition_l2 * sum(squares, zero)
        if self.table_l2:
            distances = [(table - began).square().sum() for table, began in self.tables]
            terms["penalty/tables"] = 0.5 * self.table_l2 * sum(distances, zero)
        return terms

    def added_to(self, loss: Loss, rows: int) -> Loss:
        """Add the penalty to the loss of a micro-batch once per row: over all rows of the update, it counts once."""
        terms = {name: rows * cost for name, cost in self.terms().items()}
        detached = {name: cost.detach() for name, cost in terms.items()}
        return Loss(sum(terms.values(), loss.total), {**loss.terms, **detached})


def piece_tables(model: nn.Module) -> dict[str, nn.Parameter]:
    """The weights of all token tables, by the names of their parameters; a shared table counts once."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in tables}
