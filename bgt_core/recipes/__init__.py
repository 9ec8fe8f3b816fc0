"""Training recipes. A recipe names a model and all settings of its training; recipes.toml lists all recipes.

An ablation is a changed setting: `bgt train bgt --set model.readout=mean` trains the variant in the authors' code,
which is also listed as `bgt-mean`. A checkpoint stores the recipe's name and all its settings, so that the recipe can
be rebuilt. `model_of` rebuilds only the model, and needs neither objectives nor training settings.

A setting has a dotted name, such as `train.learning_rate`. The last part, `learning_rate`, is enough if no other
setting's name ends with it.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from bgt_core.data.columns import LABEL, parse_columns
from bgt_core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from bgt_core.data.text import Tokenizer
    from bgt_core.models.bgt import LatentModel
    from bgt_core.recipes.recipe import DataConfig as DataConfig
    from bgt_core.recipes.recipe import Recipe as Recipe
    from bgt_core.recipes.recipe import TrainConfig as TrainConfig

TABLE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text("utf-8"))
LARGEST = 2**31  # settings that are whole numbers must have smaller absolute values
SIZES = {"layers": 2**10, "heads": 2**12, "_dim": 2**18, "d_model": 2**18}  # suffix of a setting's name -> upper limit


class ModelConfig(Protocol):
    """A frozen dataclass with the sizes of a model, and a method that builds the model."""

    @property
    def semantic_dim(self) -> int:
        """The number of units of the semantic latent."""

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> LatentModel:
        """Build an untrained model; `columns` maps each column's name to its language."""


class WideAsTokens:
    """A base class for models whose semantic latent is as wide as their token vectors."""

    d_model: int

    @property
    def semantic_dim(self) -> int:
        """The number of units of the semantic latent."""
        return self.d_model


def listed(name: str) -> dict[str, Any]:
    """Return a recipe's settings from recipes.toml. If it has an entry "like", the settings that it lacks are those of
    the recipe that "like" names. Lists become tuples."""

    def joined(below: Any, above: Any) -> Any:
        if not isinstance(above, dict):
            return tuple(above) if isinstance(above, list) else above
        below = below if isinstance(below, dict) else {}
        return below | {key: joined(below.get(key), value) for key, value in above.items()}

    own = TABLE[name]
    return joined(listed(own["like"]) if "like" in own else {}, own)


def make(name: str) -> Recipe:
    """Build the recipe of that name with its settings from recipes.toml."""
    from bgt_core.recipes.recipe import PARTS, DataConfig, Recipe, Sum, TrainConfig

    settings = listed(name)
    return Recipe(
        name=name, model=model_of(name),
        objective=Sum({part: PARTS[part](**given) for part, given in settings["objective"].items()}),
        data=DataConfig(**settings.get("data", {})), train=TrainConfig(**settings.get("train", {})),
        base=settings.get("base", ""), freeze=settings.get("freeze", ()),
    )  # fmt: skip


# The name of each recipe -> a function without arguments that makes the recipe. Users may add their own recipes.
RECIPES: dict[str, Callable[[], Recipe]] = {name: partial(make, name) for name in TABLE if name[0] != "_"}


def model_of(name: str, base: str = "", settings: Mapping[str, Any] | None = None) -> ModelConfig:
    """Return the configuration of a recipe's model.

    Args:
        name: The recipe.
        base: For a second training stage, the recipe of the first stage's model; default: as in recipes.toml.
        settings: New values of settings. Leave out "model." in front of their dotted names.

    Raises:
        UsageError: An unknown recipe or setting, or a value of the wrong type.
    """
    known_recipe(name)
    if name in TABLE:
        entry = listed(name)
        module, _, kind = entry["class"].partition(".")
        below = {"base": model_of(base or entry["base"])} if "base" in entry else {}
        config = getattr(import_module(f"bgt_core.recipes.{module}"), kind)(**below, **entry.get("model", {}))
    else:
        config = RECIPES[name]().model
    return override(config, {full_name(config, key): value for key, value in (settings or {}).items()})


def stored_model(name: str, arguments: Mapping[str, Any]) -> tuple[ModelConfig, dict[str, str]]:
    """Return the configuration of a checkpoint's model, and the language of each of its columns of text.

    `arguments` are the checkpoint's settings. Raises UsageError as `model_of` does, and for invalid columns.
    """
    known = ("model", "objective", "data", "train", "base", "init_from", "freeze")
    if unknown := [key for key in arguments if key.partition(".")[0] not in known]:
        raise UsageError(f"no setting '{unknown[0]}'.")
    settings = {key.removeprefix("model."): value for key, value in arguments.items() if key.startswith("model.")}
    columns = checked("data.columns", arguments.get("data.columns"), ())
    return model_of(name, str(arguments.get("base") or ""), settings), langs_of(columns)


def langs_of(columns: Sequence[str]) -> dict[str, str]:
    """Map each text column to its language: ("a:en", "fr", "gold:label") -> {"a": "en", "fr": "fr"}."""
    return {column: lang for column, lang in parse_columns(columns).items() if lang != LABEL}


def known_recipe(name: str) -> None:
    """Raise UsageError for an unknown recipe."""
    if name not in RECIPES:
        raise UsageError(f"Unknown recipe '{name}'.{did_you_mean(name, RECIPES)} Choose from {', '.join(RECIPES)}.")


def configure(name: str, overrides: Mapping[str, Any]) -> Recipe:
    """Return the recipe of that name with new settings.

    A setting may be given by its full name ("train.learning_rate") or by the end of this name. For a second training
    stage, "base" is the recipe of the first stage. Raises UsageError for an unknown name or a value of the wrong type.
    """
    known_recipe(name)
    recipe = RECIPES[name]()
    if base := str(overrides.get("base") or ""):
        if not recipe.base:
            raise UsageError(f"Recipe '{name}' is not a second training stage; leave the setting base out.")
        if base not in RECIPES or base == name:
            hint = did_you_mean(base, RECIPES)
            raise UsageError(f"base '{base}' is not a recipe on which a second stage can be built.{hint}")
        recipe = replace(recipe, base=base, model=replace(cast(Any, recipe.model), base=model_of(base)))
    try:
        return override(recipe, {full_name(recipe, key): value for key, value in overrides.items()})
    except UsageError as error:
        raise UsageError(f"Recipe '{name}': {error}") from None


def flatten(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting's dotted name and value. Settings are the fields of dataclasses and the keys of mappings."""
    for name, value in members(config).items():
        if is_dataclass(value) or isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def members(config: Any) -> dict[str, Any]:
    """Return the settings in a mapping, or the fields of a dataclass without `name`, as a dict."""
    if isinstance(config, Mapping):
        return dict(config)
    return {field.name: getattr(config, field.name) for field in fields(config) if field.name != "name"}


def override(config: Any, overrides: Mapping[str, Any]) -> Any:
    """Return a copy of the configuration with new values of settings. A value must have the type of the old value."""
    current = members(config)
    here: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for name, value in overrides.items():
        head, dot, rest = name.partition(".")
        if dot:
            below.setdefault(head, {})[rest] = value
        else:
            here[head] = checked(name, value, current[head])
    for head, nested in below.items():
        here[head] = override(current[head], nested)
    if not isinstance(config, Mapping):
        return replace(config, **here)
    return cast(Any, type(config))({**current, **here})


def checked(name: str, value: Any, default: Any) -> Any:
    """Check a new value of a setting and return it (a list as a tuple). UsageError for a wrong type or a number that is
    out of range."""
    kinds: Any = {float: (float, int), tuple: (list, tuple)}.get(type(default), type(default))
    if not isinstance(value, kinds) or isinstance(value, bool) != isinstance(default, bool):
        raise UsageError(f"{name}={value!r} should have the same type as the default value, {default!r}.")
    if isinstance(value, int):
        limit = next((size for ending, size in SIZES.items() if name.endswith(ending)), None)
        least, most = (1 - LARGEST, LARGEST) if limit is None else (int(name.endswith("d_model")), limit)
        if not least <= value < most:
            raise UsageError(f"{name}={str(value)[:40]} should be a number from {least:,} to {most - 1:,}.")
    if isinstance(default, float):
        if not math.isfinite(value):
            raise UsageError(f"{name}={value!r} should be a finite number.")
        return float(value)
    return tuple(value) if isinstance(default, tuple) else value


def full_name(config: Any, name: str) -> str:
    """Return the full name of the setting whose name is, or ends with, `name`; UsageError if none or several match."""
    known = [key for key, _ in flatten(config)]
    if name in known:
        return name
    ends = [key for key in known if key.endswith("." + name)]
    if len(ends) > 1:
        raise UsageError(f"'{name}' is ambiguous: use {' or '.join(ends)}.")
    if not ends:
        short = [key.rpartition(".")[2] for key in known]
        raise UsageError(f"no setting '{name}'.{did_you_mean(name, [*known, *short])} Choose from {', '.join(known)}.")
    return ends[0]


def parse_overrides(texts: list[str]) -> dict[str, object]:
    """Parse settings: ["d_model=128", "readout=mean"] -> {"d_model": 128, "readout": "mean"}.

    A value that is not JSON is kept as text. Raises UsageError for an item that is not NAME=VALUE.
    """
    overrides: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise UsageError(f"'{text}' is not of the form NAME=VALUE, as in d_model=128.")
        overrides[key] = value
        with suppress(ValueError, RecursionError):
            overrides[key] = json.loads(value)
    return overrides


def __getattr__(name: str) -> Any:
    if name not in ("DataConfig", "Recipe", "TrainConfig"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module("bgt_core.recipes.recipe"), name)
