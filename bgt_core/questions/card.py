"""The files of a store, and the card that records how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bgt_core.errors import DataError, NotFound
from bgt_core.files import read_json, write_json
from bgt_core.questions.calibration import Platt

SCHEMA = "bgt-questions/2"
CARD, QUESTIONS, VECTORS = "card.json", "questions.txt", "vectors.npy"


@dataclass(frozen=True)
class StoreCard:
    """The record of a store, written last: a folder without it is not a complete store."""

    questions: int
    text: str  # SHA-256 of questions.txt
    encoder: str  # `adapters.named.identity` of the encoder
    model: str  # the spec of that encoder
    by: str  # "probability" or "cosine": the order of results
    lang: str
    calibration: Platt | None  # from scores to probabilities; None if the store has none
    calibrated_on: str  # the labelled pairs; "" for a model's own probabilities
    version: str

    def save(self, folder: Path) -> None:
        """Write it as JSON."""
        write_json(folder / CARD, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def load(cls, folder: Path) -> StoreCard:
        """Read it. Raises NotFound if the folder is not a store, DataError if its card is damaged."""
        try:
            return cls._read(read_json(folder / CARD))
        except NotFound:
            raise NotFound(
                f"{folder}: not a store of questions; make one: bgt retrieve-similar build QUESTIONS --out {folder}"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{folder / CARD}: not the card of a store, or damaged ({error}); build it again."
            ) from None

    @classmethod
    def _read(cls, card: Mapping[str, Any]) -> StoreCard:
        fields = dict(card)
        if (schema := fields.pop("schema")) != SCHEMA:
            raise ValueError(f"schema {schema}, expected {SCHEMA}")
        scaling = fields.pop("calibration")
        return cls(**fields, calibration=scaling and Platt(float(scaling["slope"]), float(scaling["offset"])))
