"""The card of a checkpoint: measured scores, test data and training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bgt_core.errors import DataError

NAMED: Mapping[str, Mapping[str, Any]] = {  # lists of records, and the fields that each record must have
    "protocol": {"score": str, "how": str},
    "probes": {"task": str, "latent": str, "ci_low": int | float, "ci_high": int | float},
    "data": {"source": str},
    "fidelity": {},
    "kept": {},
    "transfer": {},
    "roles": {},
}


def checked(card: object, source: str) -> Mapping[str, Any]:
    """Check that a card has the form that pages and READMEs rely on; DataError, which names `source`, if not.

    `scores` are {measure: number} or {measure: {column: number or text}}; the lists of `NAMED` are records with the
    same columns; other entries are shown unchanged.
    """
    if not isinstance(card, dict):
        raise DataError(f"{source}: its card is not a JSON object.")
    scores = card.get("scores", {})
    if not isinstance(scores, dict) or not all(is_plain(row) or is_record(row) for row in scores.values()):
        raise DataError(f"{source}: the scores of its card are not {{measure: {{column: number}}}}.")
    for name, needed in NAMED.items():
        records = card.get(name, [])
        if not isinstance(records, list) or not all(map(is_record, records)):
            raise DataError(f"{source}: '{name}' in its card is not a list of records.")
        for record in records:
            if missing := [key for key, kind in needed.items() if not isinstance(record.get(key), kind)]:
                raise DataError(f"{source}: '{name}' in its card has a record without '{missing[0]}'.")
    for name in ("fidelity", "kept", "transfer", "roles"):
        if len({tuple(record) for record in card.get(name, [])}) > 1:
            raise DataError(f"{source}: the records of '{name}' in its card have different columns.")
    return card


def is_plain(value: object) -> bool:
    """Whether it is a single value: a number, a text, or null."""
    return value is None or isinstance(value, int | float | str)


def is_record(value: object) -> bool:
    """Whether it is a JSON object of such values, or of lists of them."""
    if not isinstance(value, dict):
        return False
    return all(is_plain(cell) for cells in value.values() for cell in (cells if isinstance(cells, list) else [cells]))
