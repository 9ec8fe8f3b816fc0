"""The model before its first update: initial values, or those of a checkpoint, an encoder or a teacher."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core import checkpoint
from bgt_core.capabilities import VectorModel
from bgt_core.contracts import SEMANTIC
from bgt_core.data.batching import make_batch
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import open_encoder
from bgt_core.errors import UsageError
from bgt_core.models.latent import LatentModel
from bgt_core.recipes import Recipe
from bgt_core.vectors.compare import binary_scaled

SAMPLE = 8_192  # rows that a rotation to a teacher's vectors, or the mean and scale of vectors, are computed from


def fresh(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus | Mixture) -> LatentModel:
    """Build the model before its first update: the same for the same seed, and with `init_from` that checkpoint's."""
    torch.manual_seed(recipe.train.seed)
    model = recipe.build(tokenizer)
    untouched = [name for name, _ in model.named_parameters()]
    if recipe.init_from:
        untouched = checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    encoder = recipe.arguments.get("model.average_from")
    if encoder and any(dict(model.named_parameters())[name] is model.semantic_table.weight for name in untouched):
        start_average(model.semantic_table, encoder, tokenizer)  # unless a checkpoint has filled it
    if "teacher.weight" in untouched:
        turn_to_teacher(model, corpus)
    if isinstance(model, VectorModel) and not recipe.init_from:
        vectors = [targets.view(-1, len(model.stored.mean)) for _, _, targets in samples(corpus)]
        model.stored.fit(torch.cat(vectors))
    model.restrict(lambda lang: torch.from_numpy(corpus.used_tokens(lang, tokenizer.vocab_size)))
    return model


def samples(corpus: Corpus | Mixture) -> list[tuple[Corpus, np.ndarray, Tensor]]:
    """Evenly spaced rows of each corpus that has vectors: the corpus, n rows, and their vectors (n, D)."""
    sampled = []
    for part in corpus.corpora:
        rows = np.linspace(0, len(part) - 1, min(SAMPLE, len(part))).astype(np.int64)
        if len(part) and (targets := part.targets(rows)) is not None:
            sampled.append((part, rows, torch.from_numpy(targets)))
    return sampled


@torch.no_grad()
def start_average(table: nn.Embedding, encoder: str, tokenizer: Tokenizer) -> None:
    """Initialise an average's token vectors by an encoder's vectors of the tokens' texts, less their mean.

    As in model2vec (https://github.com/MinishLab/model2vec): a teacher then leads to good vectors much sooner than from
    random ones. They are scaled to length 1 on average, like random ones: longer ones would change direction slowly.

    Args:
        table: The average's token vectors; those of special tokens stay as they are.
        encoder: A spec for `open_encoder`.
        tokenizer: The average's tokenizer.

    Raises:
        UsageError: The encoder's vectors have another width than the average's.
        BgtError: As `open_encoder`.
    """
    teacher = open_encoder(encoder, device="cpu")
    texts = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    lang = next(iter(teacher.langs), "en")
    vectors = torch.from_numpy(binary_scaled(teacher.embed([*texts.values()], lang=lang), axis=None))
    if (units := vectors.shape[1]) != table.embedding_dim:
        rule = f"its vectors have {units} units, the average has {table.embedding_dim}; set average_dim={units}"
        raise UsageError(f"average_from {encoder}: {rule}")
    vectors -= vectors.mean(0)
    table.weight[torch.tensor(list(texts))] = vectors / vectors.norm(dim=1).mean()


@torch.no_grad()
def turn_to_teacher(model: LatentModel, corpus: Corpus | Mixture) -> None:
    """Initialise the map to a teacher's vectors by the rotation that brings means nearest to them (Procrustes).

    With a random map the means would have to rotate before they learn, and lose information on the way. Rows are those
    of the first corpus with vectors, its first column.
    """
    for part, rows, targets in samples(corpus)[:1]:
        batches = [make_batch(part, rows[start : start + 256], 0) for start in range(0, len(rows), 256)]
        sides = (next(iter(batch.sides.values())) for batch in batches)
        model.eval()
        means = F.normalize(torch.cat([model.encoders[SEMANTIC](side).mean for side in sides]).float(), dim=-1)
        model.train()
        units = F.normalize(torch.from_numpy(binary_scaled(targets.numpy())), dim=-1)
        left, _, right = torch.linalg.svd(units.T @ means, full_matrices=False)
        dict(model.named_parameters())["teacher.weight"].copy_(left @ right)
