"""A decoder's memory during a search: the keys and values of the tokens so far."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bgt_core.nets.prediction import Scorer


@dataclass(eq=False)
class KeyValues:
    """The keys and values of one layer in a search, with room for more."""

    store: Tensor  # (2, B, heads, room, H/heads)
    used: int = 0  # columns in use

    @classmethod
    def empty(cls, like: Tensor, count: int, heads: int, width: int) -> KeyValues:
        """An empty cache for `count` sentences, with the device and precision of `like`."""
        return cls(like.new_empty(2, count, heads, 0, width // heads))

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add n columns, (B, heads, n, H/heads) each -> all columns so far, (B, heads, S, H/heads) each."""
        start, self.used = self.used, self.used + keys.shape[2]
        if self.used > self.store.shape[3]:  # double the room, so that a column moves about once
            grown = keys.new_empty(2, *keys.shape[:2], 2 * self.used, keys.shape[3])
            grown[:, :, :, :start] = self.store[:, :, :, :start]
            self.store = grown
        self.store[0, :, :, start : self.used], self.store[1, :, :, start : self.used] = keys, values
        return self.store[0, :, :, : self.used], self.store[1, :, :, : self.used]

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        self.store = self.store.index_select(1, rows)


@dataclass(eq=False, kw_only=True)
class KVCache:
    """A decoder's memory of a search over B sentences, n hypotheses each.

    The hypotheses of a sentence write their keys side by side, and keys never move: `ancestor_mask` tells which of them
    belong to the past of each hypothesis. A new parent then costs a few bits, not a copy of keys and values, and the
    hypotheses of a sentence attend in one product. The plain form is a forward pass over all tokens so far.
    """

    layers: list[KeyValues]
    ancestor_mask: Tensor  # (B, n, S) bool
    latent: Tensor  # (B, L)
    scorer: Scorer
    attended: list[Tensor | None]  # for each layer: keys and values beside its own past, (2, B, heads, S, H/heads)
    real: Tensor | None  # (B, 1, 1, S) bool, True if not padding; None without padding
    position: int = 0  # position of the next tokens

    def advance(self, n: int) -> None:
        """Add the current tokens, one for each of n hypotheses, to the past of their own hypothesis only."""
        own = torch.eye(n, dtype=torch.bool, device=self.ancestor_mask.device)
        self.ancestor_mask = torch.cat([self.ancestor_mask, own.expand(len(self.ancestor_mask), n, n)], dim=2)
        self.position += 1

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis i continue hypothesis parents[:, i], (B, n)."""
        where = parents[:, :, None].expand(-1, -1, self.ancestor_mask.shape[2])
        self.ancestor_mask = self.ancestor_mask.gather(1, where)

    def select(self, rows: Tensor) -> None:
        """Keep only these sentences."""
        self.ancestor_mask, self.latent = (part.index_select(0, rows) for part in (self.ancestor_mask, self.latent))
        self.scorer.select(rows)
        self.attended = [part if part is None else part.index_select(1, rows) for part in self.attended]
        self.real = None if self.real is None else self.real.index_select(0, rows)
        for layer in self.layers:
            layer.select(rows)
