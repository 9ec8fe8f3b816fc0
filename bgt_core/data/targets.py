"""Another encoder's vectors for the rows of a source, as a training target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bgt_core.data.columns import Source
from bgt_core.errors import DataError, UsageError
from bgt_core.vectors.convert import read_npy


def target_width(sources: Sequence[Source]) -> int:
    """Units of the vectors of one corpus's rows; 0 without vectors."""
    widths = [read_targets(source.targets).shape[1] if source.targets else 0 for source in sources]
    for source, width in zip(sources, widths, strict=True):
        if width and not all(widths):
            columns = "-".join(source.columns)
            raise UsageError(f"targets: some files of {columns} have vectors and others none; give them to all or none")
        if width != widths[0]:
            raise DataError(
                f"{source.targets}: vectors of {width} units, but {sources[0].targets} has {widths[0]}; give vectors "
                "of one encoder"
            )
    return widths[0]


def read_targets(path: Path) -> np.ndarray:
    """Map a file of vectors, floats (rows, D); NotFound if it is absent, DataError for another kind of file."""
    targets = read_npy(path)
    if targets.ndim != 2 or targets.dtype.kind != "f" or not targets.shape[1]:
        raise DataError(f"{path}: {targets.dtype} {targets.shape}; expected floats (rows, D)")
    return targets
