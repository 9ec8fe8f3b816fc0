"""Embed sentences with a trained model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core.backend import INT8, PRECISIONS, autocast, on_grid, resolve, warn_if_slow
from bgt_core.contracts import EOS, SEMANTIC, Posterior, Tokens
from bgt_core.data.columns import known_lang
from bgt_core.data.text import Tokenizer, spans
from bgt_core.errors import UsageError, check_choice, check_whole
from bgt_core.models.bgt import LatentModel
from bgt_core.nets.encoders import Encoder, quantised
from bgt_core.nets.operations import PackedLayout, PaddedLayout
from bgt_core.posterior import Gaussian
from bgt_core.vectors.arrays import cosine_similarity, cosines, unit

BATCH_TOKENS, CPU_TOKENS = 8_192, 2_048  # maximum tokens of a batch, padding included: on a GPU, on a CPU
LONG = 64  # sentences with more tokens than this are embedded in smaller batches, because attention costs more
# On a CPU, a batch is padded to a common shape if that adds at most 1 / SPARE of the tokens of all sentences.
SPARE = 32
NODES, AT_ONCE = 64, 16  # nodes of the Gauss-Legendre quadrature of gradients; nodes in one batch
FIRST = 0.01  # the line starts at this share: at 0, all tokens would be equal, and the roles would have no gradient


class Embedder:
    """A trained model with its tokenizer. It embeds sentences of the languages `langs` as vectors of each latent.

    The latent "semantic" has one space that all languages share. The latent "language", if the model has it, has a
    separate space for each language. Vectors are posterior means, computed without dropout and not normalised; compare
    them by `similarity`. `precision` is the number format of matrix products: "fp32", "bf16", "int8" (only on a CPU),
    or "auto", which is bf16 if the device multiplies bf16 natively, else fp32. The cosine between a vector in bf16 and
    the same vector in fp32 is above 0.998; with int8 instead of bf16, it is about 0.999.
    """

    def __init__(self, model: LatentModel, tokenizer: Tokenizer, langs: Sequence[str], precision: str = "auto"):
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.langs = tuple(langs)
        self.device = next(model.parameters()).device
        check_choice((*PRECISIONS, INT8), precision=precision)
        if precision == INT8 and self.device.type != "cpu":
            raise UsageError(
                f"'int8' runs on a CPU only, and this model is on {self.device}; choose bf16.", parameter="precision"
            )
        warn_if_slow(self.device, precision)
        self.precision = precision if precision == INT8 else resolve(self.device, precision)
        self.embedded = self.unknown = 0  # number of sentences embedded so far, and of those without a known token
        self._widths: dict[nn.Module, int] = {}  # encoder -> number of units, computed at the first use
        self.latents = tuple(model.latents)
        self.encoders = {(latent, lang): model.encoder(latent, lang) for latent in self.latents for lang in self.langs}
        if precision == INT8:
            in_8_bits = {encoder: quantised(cast(Encoder, encoder)) for encoder in self.encoders.values()}
            self.encoders = {key: in_8_bits[encoder] for key, encoder in self.encoders.items()}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{latent} ({self.width(self.langs[0], latent):,} units)" for latent in self.latents)
        return f"<{type(self).__name__} of {type(self.model).__name__}: {', '.join(self.langs)}; {sizes}>"

    def __reduce__(self) -> tuple[type[Embedder], tuple[object, ...]]:
        """Pickle only the constructor's arguments, because the layout of 8-bit matrices depends on the device."""
        return type(self), (self.model, self.tokenizer, self.langs, self.precision)

    def embed(
        self,
        sentences: str | Iterable[str],
        *,
        lang: str,
        latent: str = SEMANTIC,
        batch_size: int | None = None,
        show_progress: bool = False,
        normalize: bool = False,
    ) -> np.ndarray:
        """Embed N sentences of one language: (N, D) float32, in the given order, or (D,) for a single string.

        Args:
            sentences: A string, or several. An empty sentence is embedded as the end-of-sentence token alone.
            lang: Language of the sentences.
            latent: "semantic", "language", or another of `latents`.
            batch_size: Maximum sentences per batch. With None, only the tokens of a batch are limited, which suits
                nearly every machine.
            show_progress: Draw a progress bar on stderr.
            normalize: Scale vectors to length 1.

        Raises:
            UsageError: The model lacks the language or the latent; or `sentences` is a set, or is not text.

        >>> bgt = bgt_core.load()
        >>> bgt.embed("Where is the dog?", lang="en").shape
        (1024,)
        >>> bgt.embed(["Where is the dog?", "It is late."], lang="en", latent="language").shape
        (2, 64)
        """
        lang = known_lang(lang, self.langs, "this model")
        encoder = self.encoder(latent, lang)
        if batch_size is not None:
            check_whole(1, batch_size=batch_size)
        ids = self.tokenizer.encode(sentences)
        self.embedded, self.unknown = self.embedded + len(ids), self.unknown + self.tokenizer.count_unknown(ids)
        vectors = np.empty((len(ids), self.width(lang, latent)), dtype=np.float32)
        for rows, posterior in self._encode(encoder, lang, ids, batch_size, show_progress):
            vectors[rows] = self.model.vectors(posterior)[: len(rows)].float().cpu().numpy()
        if normalize:
            vectors = unit(vectors)
        return vectors[0] if isinstance(sentences, str) else vectors

    def posteriors(self, sentences: str | Iterable[str], *, lang: str, latent: str = SEMANTIC) -> Gaussian:
        """Return the posteriors q(z | sentence) of N sentences of one language: (N, L), float32, on the CPU.

        They are in the order of the sentences. A single string counts as one sentence: (1, L). The functions of
        `posterior.distances` compare posteriors. Raises the errors of `embed`, and UsageError if the model's posteriors
        are not Gaussian.
        """
        lang = known_lang(lang, self.langs, "this model")
        encoder, units = self.encoder(latent, lang), self.width(lang, latent)
        ids = self.tokenizer.encode(sentences)
        mean, log_variance = torch.empty(2, len(ids), units, dtype=torch.float32, device="cpu")
        for rows, posterior in self._encode(encoder, lang, ids):
            if not isinstance(posterior, Gaussian):
                raise UsageError(f"This model's {latent} posteriors are not Gaussian: compare its vectors by cosine.")
            mean[rows] = posterior.mean[: len(rows)].float().cpu()
            log_variance[rows] = posterior.log_variance[: len(rows)].float().cpu()
        return Gaussian(mean, log_variance)

    def _encode(
        self,
        encoder: nn.Module,
        lang: str,
        ids: Sequence[Sequence[int]],
        batch_size: int | None = None,
        show_progress: bool = False,
    ) -> Iterator[tuple[list[int], Posterior]]:
        """Encode sentences, given as token ids, in batches. For each batch, yield the indices of its B sentences and
        their posteriors. Posteriors after the first B belong to rows of padding."""
        lengths = [len(sentence) for sentence in ids]
        budget, spare = (CPU_TOKENS, sum(lengths) // SPARE) if self.device.type == "cpu" else (BATCH_TOKENS, 0)
        most = batch_size or budget
        batches: Iterable[list[int]] = by_length(lengths, budget, most)
        if show_progress:
            from rich.console import Console
            from rich.progress import track

            batches = track(batches, "embedding", console=Console(stderr=True))
        # no_grad, because in inference_mode autocast would convert every weight again for every batch
        with torch.no_grad(), autocast(self.device, "auto" if self.precision == INT8 else self.precision):
            for rows in batches:
                full = rows_of(lengths[rows[0]], budget, most)
                side, layout = shaped([ids[row] for row in rows], lang, full, spare)
                yield rows, encoder(side.to(self.device), layout)

    def width(self, lang: str, latent: str = SEMANTIC) -> int:
        """Return the number of units of a latent."""
        lang = known_lang(lang, self.langs, "this model")
        encoder = self.encoder(latent, lang)
        if encoder not in self._widths:
            empty = Tokens.pad(self.tokenizer.encode([""]), lang).to(self.device)
            with torch.inference_mode():
                self._widths[encoder] = self.model.vectors(encoder(empty)).shape[-1]
        return self._widths[encoder]

    @cached_property
    def fingerprint(self) -> str:
        """A text that changes with the vectors: the hash of weights and tokenizer, the precision, and CPU or GPU."""
        digest = hashlib.sha256(self.tokenizer.sha256.encode())
        for name, value in sorted(self.model.state_dict().items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return f"{digest.hexdigest()} {self.precision} {self.device.type}"

    @property
    def identity(self) -> str:
        """The property `fingerprint` without the precision and the device, which have little effect on the vectors."""
        return self.fingerprint.rsplit(" ", 2)[0]

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the cosine of each row of left with each row of right: (N, D), (M, D) -> (N, M).

        >>> bgt = bgt_core.load()
        >>> english = bgt.embed(["Where is the dog?", "It is late."], lang="en")
        >>> bgt.similarity(bgt.embed(["Où est le chien ?"], lang="fr"), english).round(1)
        array([[1. , 0.1]], dtype=float32)
        """
        return cosine_similarity(left, right)

    def similarity_pairwise(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the cosine of row i of left and row i of right: (N, D), (N, D) -> (N,).

        Raises UsageError if the shapes of left and right differ.
        """
        return cosines(left, right)

    def encoder(self, latent: str, lang: str) -> nn.Module:
        """Return the encoder of `latent` for sentences of `lang`; UsageError if the model lacks one of the two."""
        lang = known_lang(lang, self.langs, "this model")
        if latent not in self.latents:
            raise UsageError(f"{latent}: this model has only {', '.join(self.latents)}.", parameter="latent")
        return self.encoders[latent, lang]


def word_gradients(embedder: Embedder, text: str, lang: str, other: np.ndarray, latent: str = SEMANTIC) -> np.ndarray:
    """Measure how much each word and mark of a text, (W,), adds to the cosine of its latent and a vector, `other` (D,).

    The result has integrated gradients (Sundararajan et al. 2017). On a straight line, the embeddings of all tokens but
    EOS move from near the mean embedding to their own values. A word gets the sum over its tokens. The sum over all
    words is the rise of the cosine on the line. Do not embed in another thread at the same time.
    """
    encoder = embedder.model.encoder(latent, lang)  # `embedder.encoder` may be in 8 bits, and then has no gradients
    (ids,), target = embedder.tokenizer.encode(text), torch.from_numpy(other)[None].to(embedder.device)
    nodes, weights = (torch.from_numpy((1 - FIRST) / 2 * each) for each in np.polynomial.legendre.leggauss(NODES))
    gains = np.zeros(len(ids))

    def moved(table: nn.Module, inputs: tuple[Tensor], own: Tensor) -> Tensor:
        read = inputs[0].view(len(shares), -1)  # (K, S): an encoder that skips closing marks reads fewer tokens
        share = torch.where(read == EOS, 1.0, shares[:, : read.shape[1]]).view(*inputs[0].shape, 1).to(own)
        return torch.lerp(cast(nn.Embedding, table).weight.mean(0).expand_as(own), own, share)

    with torch.enable_grad(), ExitStack() as hooks:
        for table in (part for part in encoder.modules() if isinstance(part, nn.Embedding)):
            hooks.callback(table.register_forward_hook(moved).remove)
        for share, weight in zip((nodes + (1 + FIRST) / 2).split(AT_ONCE), weights.split(AT_ONCE), strict=True):
            shares = share[:, None].repeat(1, len(ids)).to(embedder.device).requires_grad_()  # (K, T)
            posterior = encoder(Tokens.pad([ids] * len(share), lang).to(embedder.device))
            cosines = F.cosine_similarity(embedder.model.vectors(posterior), target)
            gains += torch.autograd.grad(cosines, shares, weight.to(cosines))[0].sum(0).cpu().numpy()
    return np.bincount(embedder.tokenizer.words_of_tokens(text, lang), gains[:-1], len(spans(text, lang)))


def by_length(lengths: Sequence[int], budget: int, most: int) -> list[list[int]]:
    """Sort sentences of these lengths, the longest first, and group their indices into batches. A batch has at most
    `budget` tokens, padding included, unless its only sentence has more, and at most `most` sentences. Each batch,
    except the last, is as large as its longest sentence allows."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    batches: list[list[int]] = []
    first = 0
    while first < len(order):
        batches.append(order[first : first + rows_of(lengths[order[first]], budget, most)])
        first += len(batches[-1])
    return batches


def rows_of(longest: int, budget: int, most: int) -> int:
    """Return the number of sentences of a batch whose longest sentence has `longest` tokens: at most `most`, with at
    most `budget` tokens in all. Beyond `LONG` tokens, it falls as 1 / length^2, because attention costs length^2."""
    length = on_grid(longest)
    return max(1, min(most, budget // length, LONG * budget // length**2))


def shaped(sentences: Sequence[Sequence[int]], lang: str, full: int, spare: int) -> tuple[Tokens, PackedLayout | None]:
    """Pad sentences, given as token ids and sorted from long to short. Return the batch and the layout in which the
    encoder computes it: None for the usual packed layout, in which the encoder skips padding.

    If at most `spare` tokens of padding are needed, the batch is padded to `full` rows and to a length that `on_grid`
    returns, and the encoder computes the padding too. So batches have few different shapes. This saves time and memory,
    because oneDNN compiles matrix products for each new shape and keeps the code.
    """
    length = on_grid(len(sentences[0]))
    padding = full * length - sum(map(len, sentences))
    if padding > spare:
        return Tokens.pad(sentences, lang), None
    side = Tokens.pad([*sentences, *[[EOS] * length] * (full - len(sentences))], lang, length)
    return side, None if len(side.flat_index) == side.ids.numel() else PaddedLayout.of_mask(side.mask)
