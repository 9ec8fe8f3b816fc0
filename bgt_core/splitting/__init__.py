"""Split any encoder's vectors into what sentences of one meaning share, and the rest.

    rows of files -> vectors -> `Gathered`: sums (`Moments`) and samples -> a method -> `Split` -> a folder, which
    `open_encoder` opens

Methods are in `linear` and `neural`; all of them give the vector back exactly.
"""

from bgt_core.splitting.fit import METHODS, split
from bgt_core.splitting.parts import Map, Split

__all__ = ["METHODS", "Map", "Split", "split"]
