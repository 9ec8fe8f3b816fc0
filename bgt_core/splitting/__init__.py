"""Split the vectors of any encoder into the part that sentences with the same meaning share, and the rest.

`gather` embeds sentences and their translations, and computes means, covariances and samples of the vectors. One of the
methods fits a `Split` to these statistics. `save` writes the split to a folder, which `open_encoder` opens. With every
method, `Split.join` restores a vector from its two parts.
"""

from bgt_core.splitting.fit import METHODS, split
from bgt_core.splitting.parts import Map, Split

__all__ = ["METHODS", "Map", "Split", "split"]
