"""A model before its first update: where it starts, what is frozen, and whether its data can teach it anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core import checkpoint
from bgt_core.adapters import open_encoder
from bgt_core.contracts import SEMANTIC
from bgt_core.data.batching import make_batch
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.output import LanguageOutput
from bgt_core.nets.pooling import SIFPooling
from bgt_core.nets.prediction import LabelPrediction
from bgt_core.recipes import Recipe


def fresh(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus | Mixture) -> LatentModel:
    """The model before its first update: the same for the same seed, and with `init_from` that checkpoint's."""
    torch.manual_seed(recipe.train.seed)
    model = recipe.build(tokenizer)
    untouched = [name for name, _ in model.named_parameters()]
    if recipe.init_from:
        untouched = checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    if encoder := getattr(recipe.model, "average_from", ""):
        name, average = next((name, part) for name, part in model.named_modules() if isinstance(part, SIFPooling))
        if f"{name}.table.weight" in untouched:  # a checkpoint's goes on as it is
            start_average(average, encoder, tokenizer)
    if "teacher.weight" in untouched:
        turn_to_teacher(model, corpus)
    for layer in model.modules():
        if isinstance(layer, LanguageOutput):
            layer.restrict(torch.from_numpy(corpus.pieces(layer.lang, tokenizer.vocab_size)))
    return model


@torch.no_grad()
def start_average(average: SIFPooling, encoder: str, tokenizer: Tokenizer) -> None:
    """An average's token vectors begin as what an encoder gives each token's text, less the mean of all.

    As in model2vec (https://github.com/MinishLab/model2vec): from there a teacher leads to good vectors much sooner
    than from random ones. They are scaled to length 1 on average, as random ones are: long ones would turn slowly.

    Args:
        average: Whose table is filled; special tokens stay as they are.
        encoder: What `open_encoder` opens.
        tokenizer: The average's.

    Raises:
        UsageError: The encoder's vectors have another width than the average's.
        BgtError: As `open_encoder`.
    """
    teacher = open_encoder(encoder, device="cpu")
    texts = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    vectors = torch.from_numpy(teacher.embed(list(texts.values()), lang=next(iter(teacher.langs), "en")))
    if vectors.shape[1] != average.width:
        raise UsageError(
            f"average_from {encoder}: its vectors have {vectors.shape[1]} units, the average has {average.width}; set "
            f"average_dim={vectors.shape[1]}"
        )
    vectors -= vectors.mean(0)
    average.table.weight[torch.tensor(list(texts))] = vectors / vectors.norm(dim=1).mean()


@torch.no_grad()
def turn_to_teacher(model: LatentModel, corpus: Corpus | Mixture, rows: int = 8_192) -> None:
    """The map to a teacher's vectors begins as the rotation that brings means nearest to them (Procrustes).

    From a random map the means would have to turn before they learn, and lose on the way what they know. Rows are those
    of the first corpus with vectors, its first column.
    """
    parts = corpus.corpora if isinstance(corpus, Mixture) else [corpus]
    for part in parts:
        chosen = np.linspace(0, len(part) - 1, min(rows, len(part))).astype(np.int64)
        if (targets := part.targets(chosen)) is None:
            continue
        batches = [make_batch(part, chosen[start : start + 256], 0) for start in range(0, len(chosen), 256)]
        sides = (next(iter(batch.sides.values())) for batch in batches)
        model.eval()
        means = F.normalize(torch.cat([model.encoders[SEMANTIC](side).mean for side in sides]).float(), dim=-1)
        model.train()
        left, _, right = torch.linalg.svd(F.normalize(torch.from_numpy(targets), dim=-1).T @ means, full_matrices=False)
        dict(model.named_parameters())["teacher.weight"].copy_(left @ right)
        return


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Leave parameters whose names start with one of these as they are; UsageError where a prefix names none."""
    for prefix in prefixes:
        parameters = [value for name, value in model.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not parameters:
            parts = ", ".join(name for name, _ in model.named_children())
            raise UsageError(f"'{prefix}': no parameter's name starts so; this model has {parts}", parameter="freeze")
        for parameter in parameters:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError(f"{', '.join(prefixes)}: nothing is left to train", parameter="freeze")


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
        batch = make_batch(part, np.arange(min(2, len(part))), 0).to("meta")
        out = model(batch)
        if not torch.as_tensor(recipe.objective(out, 0).total).requires_grad:
            raise UsageError(
                f"{', '.join(part.columns)}: {recipe.name} learns nothing from these alone", parameter="columns"
            )
        for prediction in out.predictions:
            if isinstance(prediction, LabelPrediction) and prediction.labels is batch.labels:
                check_labels(part.labels(np.arange(len(part))), classes=prediction.logits.shape[1])


def check_labels(labels: np.ndarray | None, classes: int) -> None:
    """DataError for a label (N,) that isn't the number of a class, from 0: on a GPU it would end the process."""
    wrong = labels[~np.isin(labels, np.arange(classes))] if labels is not None else np.zeros(0)
    if len(wrong):
        raise DataError(f"label {wrong[0]:g} is none of the {classes} classes, 0 to {classes - 1}; set model.classes")
