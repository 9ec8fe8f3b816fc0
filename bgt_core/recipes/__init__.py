"""Recipes: one function a system, one literal list of them.

A recipe's arguments are its ablations: `bgt train bgt --set read=mean` trains what the released code
does, and `bgt-mean` is that under a name. A checkpoint stores the recipe's name and all its arguments, which is how
it is built again.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from bgt_core.errors import UsageError
from bgt_core.recipes.bgt import bgt, bgt_small
from bgt_core.recipes.recipe import DataConfig, Recipe
from bgt_core.recipes.seq2seq import seq2seq
from bgt_core.recipes.siamese import siamese

__all__ = ["RECIPES", "DataConfig", "Recipe", "build", "parse_overrides"]

# One layer each way and Logit (paper, app. A), Adam at a fixed rate (sec. 4.2), the batch it does best with (app. B).
PLUS = {  # what is added to the paper's model; each is an ingredient that can be left out
    "average": True,
    "semantic_weight": 0.02,
    "language_weight": 0.4,
    "log_variance": -3.0,
    "margin_weight": 200.0,
    "word_dropout": 0.2,
}
LSTM = {
    "body": "lstm",
    "fuse": ("logit",),
    "encoder_layers": 1,
    "batch_tokens": 25_000,
    "learning_rate": 1e-3,
    "warmup_steps": 0,
}

RECIPES: dict[str, Callable[..., Recipe]] = {
    "bgt": bgt,
    "bgt-plus": partial(bgt, **PLUS),
    "bgt-small": bgt_small,
    "bgt-mean": partial(bgt, read="mean"),
    "bgt-without-langvars": partial(bgt, language_latents=False),
    "bgt-without-prior": partial(bgt, prior=False, batch_tokens=50_000),
    "random-encoder": partial(bgt, epochs=0.0),
    "bilingual-trans": seq2seq,
    "english-trans": partial(seq2seq, task="translate"),
    "english-ae": partial(seq2seq, task="reconstruct", batch_tokens=25_000),
    "english-vae": partial(seq2seq, task="reconstruct", prior=True, batch_tokens=25_000),
    "english-trans-lstm": partial(seq2seq, task="translate", **LSTM),
    "english-vae-lstm": partial(seq2seq, task="reconstruct", prior=True, **LSTM),
    "sp": siamese,
    "bilstm": partial(siamese, body="lstm", scramble=0.3, micro_tokens=2_000),
}


def build(name: str, arguments: Mapping[str, object]) -> Recipe:
    """The recipe of that name with these arguments; BgtError names what is unknown or of a wrong type."""
    if name not in RECIPES:
        raise UsageError(f"Unknown recipe '{name}'.{_hint(name, RECIPES)} There are: {', '.join(RECIPES)}.")
    known = inspect.signature(RECIPES[name]).parameters
    for key, value in arguments.items():
        if key not in known:
            raise UsageError(f"Recipe '{name}' has no argument '{key}'.{_hint(key, known)} It has: {', '.join(known)}.")
        default = known[key].default
        wanted = (
            (float, int)
            if isinstance(default, float)
            else (list, tuple)
            if isinstance(default, tuple)
            else type(default)
        )
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            raise UsageError(f"Recipe '{name}': {key}={value!r} should be like its default, {default!r}.")
        if isinstance(value, float | int) and not (math.isfinite(value) and (value >= 0 or key.startswith("log_"))):
            raise UsageError(f"Recipe '{name}': {key}={value!r} should be a finite number, and not negative.")
    return replace(RECIPES[name](**arguments), name=name)


def parse_overrides(texts: list[str]) -> dict[str, object]:
    """["width=128", "read=mean"] -> {"width": 128, "read": "mean"}."""
    overrides: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise UsageError(f"'{text}' is not of the form NAME=VALUE, as in width=128.")
        try:
            overrides[key] = json.loads(value)
        except json.JSONDecodeError:
            overrides[key] = value
    return overrides


def _hint(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
