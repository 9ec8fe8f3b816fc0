"""The card of a checkpoint: what was measured of a model, on what, and what it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bgt_core.errors import DataError

NAMED: Mapping[str, Mapping[str, Any]] = {  # lists of records, and what each record needs at least
    "protocol": {"score": str, "how": str},
    "probes": {"task": str, "latent": str, "ci_low": int | float, "ci_high": int | float},
    "data": {"source": str},
    "fidelity": {},
    "kept": {},
    "roles": {},
}


def checked(card: object, source: str) -> Mapping[str, Any]:
    """The card, if it has the form that pages and READMEs count on; DataError, which names `source`, where not.

    `scores` are {measure: number} or {measure: {column: number or text}}, the lists of `NAMED` are records with the
    same columns; whatever else there is, is shown as it is.
    """
    if not isinstance(card, dict):
        raise DataError(f"{source}: its card is no JSON object.")
    scores = card.get("scores", {})
    if not isinstance(scores, dict) or not all(is_plain(row) or is_record(row) for row in scores.values()):
        raise DataError(f"{source}: the scores of its card are not {{measure: {{column: number}}}}.")
    for name, needed in NAMED.items():
        records = card.get(name, [])
        if not isinstance(records, list) or not all(map(is_record, records)):
            raise DataError(f"{source}: '{name}' in its card is no list of records.")
        for record in records:
            if missing := [key for key, kind in needed.items() if not isinstance(record.get(key), kind)]:
                raise DataError(f"{source}: '{name}' in its card has a record without '{missing[0]}'.")
    for name in ("fidelity", "kept", "roles"):
        if len({tuple(record) for record in card.get(name, [])}) > 1:
            raise DataError(f"{source}: the records of '{name}' in its card have different columns.")
    return card


def is_plain(value: object) -> bool:
    """Whether it is one value: a number, a text, nothing."""
    return value is None or isinstance(value, int | float | str)


def is_record(value: object) -> bool:
    """Whether it is a JSON object of such values, or of lists of them."""
    if not isinstance(value, dict):
        return False
    return all(is_plain(cell) for cells in value.values() for cell in (cells if isinstance(cells, list) else [cells]))
