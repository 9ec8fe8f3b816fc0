"""A model before its first update: where it starts, what is frozen, and whether its data can teach it anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from bgt_core import checkpoint
from bgt_core.data.batching import make_batch
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.output import LanguageOutput
from bgt_core.nets.prediction import LabelPrediction
from bgt_core.recipes import Recipe


def fresh(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus | Mixture) -> LatentModel:
    """The model before its first update: the same for the same seed, and with `init_from` that checkpoint's."""
    torch.manual_seed(recipe.train.seed)
    model = recipe.build(tokenizer)
    if recipe.init_from:
        checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    for layer in model.modules():
        if isinstance(layer, LanguageOutput):
            layer.restrict(torch.from_numpy(corpus.pieces(layer.lang, tokenizer.vocab_size)))
    return model


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Leave parameters whose names start with one of these as they are; UsageError where a prefix names none."""
    for prefix in prefixes:
        parameters = [value for name, value in model.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not parameters:
            parts = ", ".join(name for name, _ in model.named_children())
            raise UsageError(f"freeze '{prefix}': no parameter's name starts so; this model has {parts}")
        for parameter in parameters:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError(f"freeze {', '.join(prefixes)}: nothing is left to train")


def outline(recipe: Recipe, tokenizer: Tokenizer) -> LatentModel:
    """The model as training starts it, but without values (on torch's meta device), made in no time.

    Raises UsageError or DataError for sizes that make no model, and for an `init_from` or `freeze` that doesn't fit.
    """
    with torch.device("meta"):
        model = recipe.build(tokenizer).to("meta")
    if recipe.init_from:
        checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    freeze(model, recipe.freeze)
    return model


def rehearse(recipe: Recipe, model: LatentModel, corpus: Corpus | Mixture) -> None:
    """One batch of each corpus through an `outline`.

    Raises UsageError for columns that this recipe can't learn from, DataError for labels that are no classes of it.
    """
    for part in corpus.corpora if isinstance(corpus, Mixture) else [corpus]:
        if not len(part):  # all its rows are in the other split
            continue
        out = model(make_batch(part, np.arange(min(2, len(part))), 0).to("meta"))
        if not torch.as_tensor(recipe.objective(out, 0).total).requires_grad:
            raise UsageError(f"columns {', '.join(part.columns)}: {recipe.name} learns nothing from these alone")
        for prediction in out.predictions:
            if isinstance(prediction, LabelPrediction):
                check_labels(part.labels(np.arange(len(part))), classes=prediction.logits.shape[1])


def check_labels(labels: np.ndarray | None, classes: int) -> None:
    """DataError for a label (N,) that isn't the number of a class, from 0: on a GPU it would end the process."""
    wrong = labels[~np.isin(labels, np.arange(classes))] if labels is not None else np.zeros(0)
    if len(wrong):
        raise DataError(f"label {wrong[0]:g} is none of the {classes} classes, 0 to {classes - 1}; set model.classes")
