"""Remove the language from sentence vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import Tokens
from bgt_core.nets.fast.packing import PaddedLayout


class WithoutLanguage(nn.Module):
    """A body whose vectors have the same mean in every language, so that no linear probe can tell the language.

    Vectors lose the directions between the languages' means, at most K - 1 for K languages. For classes with
    equal means no linear predictor does better than the best constant (Belrose et al. 2023, LEACE, theorem 3.1); LEACE
    finds the smallest change of that kind, this takes the orthogonal one, which needs no covariance.

    Vectors get shorter, some more than others. Where `parts` are given, each part is scaled back to its old length, and
    so keeps its share of the cosine. Scaling moves the means apart again, a little: erase a second time.

    Means are tracked in training, over the last `memory` sentences of a language. Only translations say how far apart
    two languages are, since elsewhere their topics differ: a micro-batch of several languages moves their means by
    what these differ from their common centre, and every micro-batch moves all means together. The means change at the
    end of an update (`settle`), by all its micro-batches, in whichever process. The body needs the language in training
    only.

    Args:
        body: The body whose vectors are changed.
        langs: The languages to align.
        parts: Units of each part that keeps its length; without them, vectors get shorter.
        memory: Number of sentences over which a mean averages.
    """

    means: Tensor
    read: Tensor
    directions: Tensor
    micro_batch: Tensor
    seen: Tensor

    def __init__(self, body: nn.Module, langs: Sequence[str], parts: Sequence[int] = (), memory: int = 20_000):
        super().__init__()
        self.width: int = body.width  # type: ignore[assignment]
        self.body, self.langs, self.parts, self.memory = body, list(langs), list(parts), memory
        self.register_buffer("means", torch.zeros(len(self.langs), self.width))
        self.register_buffer("read", torch.zeros(len(self.langs)))  # number of sentences in the means, at most `memory`
        self.register_buffer("directions", torch.zeros(len(self.langs) - 1, self.width))  # orthonormal, or zero
        # of each language in the micro-batch: the sum of its vectors, and how many there are
        self.register_buffer("micro_batch", torch.zeros(len(self.langs), self.width + 1), persistent=False)
        # Sums over the sentences of each language since the last update: their distance to its mean beyond what all
        # languages share (only of micro-batches with translations), what all share, and both numbers of sentences.
        self.register_buffer("seen", torch.zeros(len(self.langs), 2 * self.width + 2), persistent=False)

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        vectors = self.body(side, layout)
        if self.training and not self.frozen:
            total = vectors.detach().float().sum(0)
            self.micro_batch[self.langs.index(side.lang)] += torch.cat([total, total.new_tensor([len(vectors)])])
        away = vectors.float() - self.means.mean(0)
        erased = vectors - (away @ self.directions.T) @ self.directions
        if not self.parts:
            return erased
        parts = zip(vectors.split(self.parts, dim=1), erased.split(self.parts, dim=1), strict=True)
        return torch.cat([F.normalize(after) * before.norm(dim=1, keepdim=True) for before, after in parts], dim=1)

    @property
    def frozen(self) -> bool:
        """Whether the body has parameters, none of which is trained: then its vectors and their means stay."""
        trained = [parameter.requires_grad for parameter in self.body.parameters()]
        return bool(trained) and not any(trained)

    @torch.no_grad()
    def compare_languages(self) -> None:
        """At the end of a micro-batch, add to `seen` how far its languages are from their means."""
        total, count = self.micro_batch.split([self.width, 1], dim=1)
        present = count > 0
        gaps = torch.where(present, total / count.clamp(min=1) - self.means, 0.0)
        weights = self.read[:, None] * present
        common = (weights * gaps).sum(0) / weights.sum().clamp(min=1)
        translated = count * (present.sum() > 1)
        self.seen += torch.cat([translated * (gaps - common), count * common, translated, count], dim=1)
        self.micro_batch.zero_()

    @torch.no_grad()
    def settle(self, seen: Tensor) -> None:
        """Move the means towards those of an update's sentences, and update the directions.

        Args:
            seen: (K, 2 H + 2), as `seen`, summed over all processes.
        """
        apart, common, translated, count = seen.split([self.width, self.width, 1, 1], dim=1)
        translated = translated[:, 0]
        self.read.copy_(torch.minimum(self.read + translated, translated.clamp(min=self.memory)))
        self.means += apart / self.read.clamp(min=1)[:, None]
        self.means += common.sum(0) / count.sum().clamp(min=self.memory)
        all_read = self.read.min() > 0  # before that, the directions are zero
        between = torch.linalg.qr((self.means[1:] - self.means[:1]).T).Q.T  # (K - 1, H)
        self.directions.copy_(torch.where(all_read, between, self.directions))
        self.seen.zero_()
