"""Split the vectors of any encoder into the part that sentences with the same meaning share, and the rest.

    rows of files -> vectors -> `Gathered`: sums (`Moments`) and samples -> a method -> `Split` -> a folder, which
    `open_encoder` opens

With each method, `Split.join` restores a vector from its two parts.
"""

from bgt_core.splitting.fit import METHODS, split
from bgt_core.splitting.parts import Map, Split

__all__ = ["METHODS", "Map", "Split", "split"]
