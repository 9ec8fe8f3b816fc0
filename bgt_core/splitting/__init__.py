"""Split any encoder's vectors into the part that sentences with the same meaning share, and the rest.

    rows of files -> vectors -> `Gathered`: sums (`Moments`) and samples -> a method -> `Split` -> a folder, which
    `open_encoder` opens

The methods are in `linear` and `neural`. With each of them, `Split.join` restores the vector from its parts.
"""

from bgt_core.splitting.fit import METHODS, split
from bgt_core.splitting.parts import Map, Split

__all__ = ["METHODS", "Map", "Split", "split"]
