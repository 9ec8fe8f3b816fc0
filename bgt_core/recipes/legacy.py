"""Settings by the names that they had before they were nested (checkpoints of format 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PARTS = {
    "model": "fuse prior language_latents language_layers encoder_layers decoder_layers heads dropout word_dropout "
    "average log_variance task body",
    "data": "vocab_size lowercase min_pieces max_pieces valid_pairs",
    "train": "epochs batch_tokens micro_tokens learning_rate warmup_steps cooldown weight_decay scramble mega_batch "
    "valid_every save_every precision seed",
}
RENAMED = {name: f"{part}.{name}" for part, names in _PARTS.items() for name in names.split()} | {
    "langs": "data.columns",
    "share": "model.tie_embeddings",
    "width": "model.d_model",
    "inner": "model.ffn_dim",
    "read": "model.readout",
    "semantic": "model.semantic_dim",
    "language": "model.language_dim",
    "kl_warmup": "objective.elbo.warmup_steps",
    "label_smoothing": "objective.elbo.label_smoothing",
    "semantic_weight": "objective.elbo.weights.semantic",
    "language_weight": "objective.elbo.weights.language",
    "language_free_nats": "objective.elbo.free_nats.language",
    "margin": "objective.margin.margin",
    "margin_weight": "objective.margin.weight",
    "temperature": "objective.contrast.temperature",
    "contrast_weight": "objective.contrast.weight",
    "inner_steps": "train.aggressive_steps",
    "mega_growth": "train.mega_batch_warmup",
}


def convert(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a checkpoint of format 1, by the names of today."""
    return {RENAMED.get(name, name): value for name, value in arguments.items()}
