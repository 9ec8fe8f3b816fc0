"""Nested settings by dotted names: `train.learning_rate`, or `learning_rate` while only one setting ends in that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

from bgt_core.errors import DataError, UsageError, did_you_mean
from bgt_core.files import parse_json

LARGEST = 2**31
# upper limits of sizes, by the end of a setting's name
SIZES = {"layers": 2**10, "heads": 2**12, "_dim": 2**18, "d_model": 2**18}
HIDDEN = ("name",)  # of a recipe: no setting


def flatten(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting's dotted name and value; settings are the fields of dataclasses and the keys of mappings."""
    for name, value in members(config).items():
        if is_dataclass(value) or isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        elif value is not None:
            yield prefix + name, value


def members(config: Any) -> dict[str, Any]:
    """The named values of a dataclass or a mapping."""
    if isinstance(config, Mapping):
        return dict(config)
    return {field.name: getattr(config, field.name) for field in fields(config) if field.name not in HIDDEN}


def override(config: Any, overrides: Mapping[str, Any]) -> Any:
    """The same configuration with other values at these dotted names, each checked against the value it replaces."""
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
    rebuilt: Callable[[dict[str, Any]], Any] = type(config)  # a type that is made from a mapping
    return rebuilt({**current, **here})


def checked(name: str, value: Any, default: Any) -> Any:
    """Convert the value, a list to a tuple; UsageError if its type differs from the default's."""
    kinds: Any = {float: (float, int), tuple: (list, tuple)}.get(type(default), type(default))
    if not isinstance(value, kinds) or isinstance(value, bool) != isinstance(default, bool):
        raise UsageError(f"{name}={value!r} should be like its default, {default!r}.")
    if isinstance(value, int):
        limit = next((size for ending, size in SIZES.items() if name.endswith(ending)), None)
        least, most = (1 - LARGEST, LARGEST) if limit is None else (0, limit)
        if not least <= value < most:
            raise UsageError(f"{name}={str(value)[:40]} should be a number from {least:,} to {most - 1:,}.")
    if isinstance(default, float):
        if not math.isfinite(value):
            raise UsageError(f"{name}={value!r} should be a finite number.")
        return float(value)
    return tuple(value) if isinstance(default, tuple) else value


def full_name(config: Any, name: str) -> str:
    """The dotted name of a setting that is given in full or by its end; UsageError if it is unknown or ambiguous."""
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
    """["d_model=128", "readout=mean"] -> {"d_model": 128, "readout": "mean"}."""
    overrides: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise UsageError(f"'{text}' is not of the form NAME=VALUE, as in d_model=128.")
        overrides[key] = value
        with suppress(DataError):  # text
            overrides[key] = parse_json(value, text)
    return overrides
