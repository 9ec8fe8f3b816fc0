"""Recipes: one function per system, one literal list of them.

A recipe's settings are its ablations: `bgt train bgt --set model.readout=mean` trains the variant of the released
code, and `bgt-mean` is a name for it. A checkpoint stores the recipe's name and all its settings, from which it
is rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from bgt_core.errors import UsageError, did_you_mean
from bgt_core.recipes.bgt import (
    bgt,
    bgt_mean,
    bgt_plus,
    bgt_small,
    bgt_without_langvars,
    bgt_without_prior,
    bilingual_trans,
    english_ae,
    english_trans,
    english_trans_lstm,
    english_vae,
    english_vae_lstm,
    pair_classifier,
    random_encoder,
)
from bgt_core.recipes.bound import bgt_bound
from bgt_core.recipes.paraphrastic import avg, bilstm, gran, reference_classifier, sp, translator
from bgt_core.recipes.recipe import DataConfig, ModelConfig, Recipe, TrainConfig, full_name, override, parse_overrides
from bgt_core.recipes.var_siamese import var_siamese, var_siamese_reformulate, var_siamese_repeat
from bgt_core.recipes.vgvae import vgvae
from bgt_core.recipes.writer import writer

__all__ = ["RECIPES", "DataConfig", "ModelConfig", "Recipe", "TrainConfig", "build", "parse_overrides"]

RECIPES: dict[str, Callable[[], Recipe]] = {
    "bgt": bgt,
    "bgt-plus": bgt_plus,
    "bgt-small": bgt_small,
    "bgt-bound": bgt_bound,
    "bgt-mean": bgt_mean,
    "bgt-without-langvars": bgt_without_langvars,
    "bgt-without-prior": bgt_without_prior,
    "random-encoder": random_encoder,
    "bilingual-trans": bilingual_trans,
    "english-trans": english_trans,
    "english-ae": english_ae,
    "english-vae": english_vae,
    "english-trans-lstm": english_trans_lstm,
    "english-vae-lstm": english_vae_lstm,
    "sp": sp,
    "bilstm": bilstm,
    "avg": avg,
    "gran": gran,
    "vgvae": vgvae,
    "translator": translator,
    "writer": writer,
    "var-siamese-repeat": var_siamese_repeat,
    "var-siamese-reformulate": var_siamese_reformulate,
    "pair-classifier": pair_classifier,
    "reference-classifier": reference_classifier,
    "var-siamese": var_siamese,
}


def build(name: str, overrides: Mapping[str, Any]) -> Recipe:
    """Build the recipe of that name with these settings, each named in full ("train.learning_rate") or by its end.

    "base" is the recipe of the model under a second stage. Raises UsageError for an unknown name or a value of another
    type.
    """
    if name not in RECIPES:
        raise UsageError(f"Unknown recipe '{name}'.{did_you_mean(name, RECIPES)} Choose from {', '.join(RECIPES)}.")
    recipe = RECIPES[name]()
    if base := str(overrides.get("base") or ""):  # the same second stage on the model of another recipe
        if not recipe.base:
            raise UsageError(f"Recipe '{name}' is not a second stage; leave base out.")
        if base not in RECIPES or base == name:
            hint = did_you_mean(base, RECIPES)
            raise UsageError(f"base '{base}' is not a recipe for the model of a second stage.{hint}")
        recipe = replace(recipe, base=base, model=replace(cast(Any, recipe.model), base=RECIPES[base]().model))
    try:
        named = {full_name(recipe, key): value for key, value in overrides.items()}
        return override(recipe, named)
    except UsageError as error:
        raise UsageError(f"Recipe '{name}': {error}") from None
