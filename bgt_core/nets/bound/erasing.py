"""Remove what semantic vectors should not hold: the language, and the mark that closes a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.contracts import EOS, PAD, Tokens
from bgt_core.nets.operations import PaddedLayout


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


class ClosingMarks(nn.Module):
    """Remove closing marks from sentences, or exchange them between sentences.

    Args:
        marks: (V,) bool, True for tokens that consist of marks (`Tokenizer.closing_marks`).
    """

    marks: Tensor

    def __init__(self, marks: Tensor):
        super().__init__()
        self.register_buffer("marks", marks, persistent=False)

    def closing(self, side: Tokens) -> Tensor:
        """(B, T) bool: tokens of a mark with only marks between them and EOS. The first token is never one."""
        inside = side.mask & (side.ids != EOS)
        others = inside & ~self.marks[side.ids]
        words_after = others.flip(1).cumsum(1).flip(1)  # from this token on
        at_end = inside & (words_after == 0)
        return torch.cat([torch.zeros_like(at_end[:, :1]), at_end[:, 1:]], dim=1)

    def remove(self, side: Tokens) -> Tokens:
        """The same sentences without their closing marks, each still ending in EOS; (B, T) as before."""
        if side.ids.is_meta:  # on the meta device only shapes are needed
            return side
        closing = self.closing(side)
        dropped = closing.sum(1, keepdim=True)  # (B, 1)
        last = side.mask.sum(1, keepdim=True) - 1 - dropped  # the new position of EOS
        column = torch.arange(side.ids.shape[1], device=side.ids.device)
        ids = torch.where(column < last, side.ids, torch.where(column == last, EOS, PAD))
        return Tokens.of(ids, column <= last, side.lang)

    def single(self, side: Tokens) -> tuple[Tensor, Tensor]:
        """Whether each sentence ends in exactly one closing mark, (B,) bool, and its column, (B,)."""
        return self.closing(side).sum(1) == 1, side.mask.sum(1) - 2

    def exchange(self, side: Tokens, share: float) -> Tokens:
        """The same sentences, about `share` of them with the closing mark of another sentence of the batch.

        Only sentences that end in exactly one mark give or take one. Drawn from torch's global generator.
        """
        single, column = self.single(side)
        column = column.clamp(min=0)[:, None]
        mark, other = side.ids.gather(1, column), torch.randperm(len(side.ids), device=side.ids.device)
        takes = single & single[other] & (torch.rand(len(other), device=other.device) < share)
        ids = side.ids.scatter(1, column, torch.where(takes[:, None], mark[other], mark))
        return Tokens(ids, side.mask, side.lang, side.flat_index)


class WithoutClosingMarks(nn.Module):
    """A body that does not see closing marks: whether a sentence is a question or exclamation is left to the language
    latents."""

    def __init__(self, body: nn.Module, closing: ClosingMarks):
        super().__init__()
        self.width = body.width
        self.body, self.closing = body, closing

    def forward(self, side: Tokens, layout: PaddedLayout | None = None) -> Tensor:
        """Tokens (B, T) -> (B, H)."""
        shorter = self.closing.remove(side)
        return self.body(shorter, None if layout is None else layout.of_mask(shorter.mask))
