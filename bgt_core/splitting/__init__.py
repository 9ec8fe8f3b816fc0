"""Split the vectors of any encoder into the part that sentences with the same meaning share, and the rest.

`gather` embeds rows of sentences, and computes sums and samples of the vectors. One of the methods fits a `Split` to
them, `save` writes it to a folder, and `open_encoder` opens the folder. With every method, `Split.join` restores a
vector from its two parts.
"""

from bgt_core.splitting.fit import METHODS, split
from bgt_core.splitting.parts import Map, Split

__all__ = ["METHODS", "Map", "Split", "split"]
