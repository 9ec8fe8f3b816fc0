"""Recipes: one function a system, one literal list of them.

A recipe's arguments are its ablations: `bgt train bgt --set read=mean` trains what the released code
does. A checkpoint stores the recipe's name and all its arguments, which is how it is built again.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from bgt_core.contracts import BadInput
from bgt_core.recipes.bgt import bgt, bgt_small
from bgt_core.recipes.recipe import DataConfig, Recipe
from bgt_core.recipes.seq2seq import seq2seq

__all__ = ["RECIPES", "DataConfig", "Recipe", "build", "parse_overrides"]

LSTM = {"body": "lstm", "fuse": ("logit",), "encoder_layers": 1, "learning_rate": 1e-3, "warmup_steps": 0}

RECIPES: dict[str, Callable[..., Recipe]] = {
    "bgt": bgt,
    "bgt-small": bgt_small,
    "bgt-mean": partial(bgt, read="mean"),
    "bgt-without-langvars": partial(bgt, language_latents=False),
    "bgt-without-prior": partial(bgt, prior=False, batch_tokens=50_000),
    "random-encoder": partial(bgt, epochs=0.0),
    "bilingual-trans": seq2seq,
    "english-trans": partial(seq2seq, task="translate"),
    "english-ae": partial(seq2seq, task="reconstruct", batch_tokens=25_000),
    "english-vae": partial(seq2seq, task="reconstruct", prior=True, batch_tokens=25_000),
    "english-trans-lstm": partial(seq2seq, task="translate", batch_tokens=25_000, **LSTM),
    "english-vae-lstm": partial(seq2seq, task="reconstruct", prior=True, batch_tokens=25_000, **LSTM),
}


def build(name: str, arguments: Mapping[str, object]) -> Recipe:
    """The recipe of that name with these arguments; BadInput names what is unknown or of a wrong type."""
    if name not in RECIPES:
        raise BadInput(f"Unknown recipe '{name}'.{_hint(name, RECIPES)} There are: {', '.join(RECIPES)}.", 2)
    known = inspect.signature(RECIPES[name]).parameters
    for key, value in arguments.items():
        if key not in known:
            raise BadInput(
                f"Recipe '{name}' has no argument '{key}'.{_hint(key, known)} It has: {', '.join(known)}.", 2
            )
        default = known[key].default
        wanted = (
            (float, int)
            if isinstance(default, float)
            else (list, tuple)
            if isinstance(default, tuple)
            else type(default)
        )
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            raise BadInput(f"Recipe '{name}': {key}={value!r} should be like its default, {default!r}.", 2)
        if isinstance(value, float | int) and not (math.isfinite(value) and (value >= 0 or default < 0)):
            raise BadInput(f"Recipe '{name}': {key}={value!r} should be a finite number, and not negative.", 2)
    return replace(RECIPES[name](**arguments), name=name)


def parse_overrides(texts: list[str]) -> dict[str, object]:
    """["width=128", "read=mean"] -> {"width": 128, "read": "mean"}."""
    overrides: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise BadInput(f"'{text}' is not of the form NAME=VALUE, as in width=128.", 2)
        try:
            overrides[key] = json.loads(value)
        except json.JSONDecodeError:
            overrides[key] = value
    return overrides


def _hint(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
