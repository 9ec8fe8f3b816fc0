"""Nested settings by dotted names: `train.learning_rate`, or `learning_rate` while only one setting ends in that."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from bgt_core.errors import UsageError, did_you_mean

HIDDEN = ("name", "arguments")  # of a recipe: not set, but made


def flatten(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting's dotted name and value; parts that are None have none."""
    for field in fields(config):
        name, value = prefix + field.name, getattr(config, field.name)
        if field.name in HIDDEN or value is None:
            continue
        if is_dataclass(value):
            yield from flatten(value, name + ".")
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{key}", item) for key, item in value.items())
        else:
            yield name, value


def override(config: Any, overrides: Mapping[str, Any]) -> Any:
    """The same configuration with other values at these dotted names, each checked against the value it replaces."""
    here: dict[str, Any] = {}
    below: dict[str, dict[str, Any]] = {}
    for name, value in overrides.items():
        head, dot, rest = name.partition(".")
        if dot:
            below.setdefault(head, {})[rest] = value
        else:
            here[head] = checked(name, value, getattr(config, head))
    for head, nested in below.items():
        current = getattr(config, head)
        if isinstance(current, Mapping):
            here[head] = {**current, **{key: checked(f"{head}.{key}", value, 1.0) for key, value in nested.items()}}
        else:
            here[head] = override(current, nested)
    return replace(config, **here)


def checked(name: str, value: Any, default: Any) -> Any:
    """The value, a list as a tuple; UsageError where it is not of the default's kind."""
    kinds: Any = {float: (float, int), tuple: (list, tuple)}.get(type(default), type(default))
    if not isinstance(value, kinds) or isinstance(value, bool) != isinstance(default, bool):
        raise UsageError(f"{name}={value!r} should be like its default, {default!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{name}={value!r} should be a finite number.")
    return tuple(value) if isinstance(default, tuple) else value


def full_name(config: Any, name: str) -> str:
    """The dotted name of a setting that is named in full or by its end; UsageError where that is unknown or unclear."""
    known = [key for key, _ in flatten(config)]
    if name in known or is_mapping_key(config, name):
        return name
    ends = [key for key in known if key.endswith("." + name)]
    if len(ends) > 1:
        raise UsageError(f"'{name}' could be {' or '.join(ends)}; say which.")
    if not ends:
        short = [key.rpartition(".")[2] for key in known]
        raise UsageError(f"no setting '{name}'.{did_you_mean(name, [*known, *short])} There are: {', '.join(known)}.")
    return ends[0]


def is_mapping_key(config: Any, name: str) -> bool:
    """Whether `name` is a key, perhaps a new one, of a setting that is a mapping: "objective.elbo.weights.language"."""
    *path, key = name.split(".")
    for part in path:
        if not is_dataclass(config) or not hasattr(config, part):
            return False
        config = getattr(config, part)
    return isinstance(config, Mapping) and key.isidentifier()


def parse_overrides(texts: list[str]) -> dict[str, object]:
    """["d_model=128", "readout=mean"] -> {"d_model": 128, "readout": "mean"}."""
    overrides: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise UsageError(f"'{text}' is not of the form NAME=VALUE, as in d_model=128.")
        try:
            overrides[key] = json.loads(value)
        except json.JSONDecodeError:
            overrides[key] = value
    return overrides
