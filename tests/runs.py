"""Read the metrics and the weights that a run has written."""

import json
from pathlib import Path
from typing import Any


def metrics(out: Path, kind: str = "valid") -> list[dict[str, Any]]:
    """Return the rows of one kind from the metrics of a run, given the folder of the run or of a checkpoint in it."""
    folder = out if (out / "metrics.jsonl").exists() else out.parent
    rows = map(json.loads, (folder / "metrics.jsonl").read_text("utf-8").splitlines())
    return [row for row in rows if row["kind"] == kind]


def weights(checkpoint: Path) -> bytes:
    """Return the weights of a checkpoint as bytes, to compare two runs bit for bit."""
    return (checkpoint / "model.safetensors").read_bytes()
