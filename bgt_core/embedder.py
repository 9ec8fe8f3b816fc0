"""What users hold of a model: sentences in, vectors out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import nn

from bgt_core.contracts import LANGUAGE, LATENTS, SEMANTIC, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.device import INT8, PRECISIONS, autocast, check_precision, resolve
from bgt_core.errors import UsageError
from bgt_core.nets.encoders import NoLatent
from bgt_core.nets.quantised import quantised
from bgt_core.vectors.compare import ComparesByCosine

BATCH_TOKENS = 8_192  # padded, that a batch may have
SAME_LENGTH_FROM = 2_048  # from here on a batch is worth keeping even


class Embedder(ComparesByCosine):
    """A trained model with its tokenizer.

    `langs` are the languages it reads, `latents` what can be read: "semantic", one space for all languages, and, where
    the model has language latents, "language", a space of its own in each. Vectors are posterior means, dropout off,
    not normalised; compare them by cosine. `precision` is that of matrix products: "fp32", "bf16" (cosine to fp32 above
    0.9999), "auto" (bf16 where the device multiplies it natively), or "int8" (encoders only, on a CPU; cosine to
    fp32 about 0.999).
    """

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, langs: Sequence[str], precision: str = "auto"):
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.langs = tuple(langs)
        self.device = next(model.parameters()).device
        check_precision(precision, (*PRECISIONS, INT8))
        if precision == INT8 and self.device.type != "cpu":
            raise UsageError(f"precision 'int8' is computed on a CPU, this model is on {self.device}; choose bf16.")
        self.precision = precision if precision == INT8 else resolve(self.device, precision)
        self.encoders = {name: one for name, one in model.encoders.items() if not isinstance(one, NoLatent)}
        self.latents = LATENTS if {*self.langs} <= {*self.encoders} else (SEMANTIC,)
        if precision == INT8:
            self.encoders = {name: quantised(encoder) for name, encoder in self.encoders.items()}

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences of one language -> (N, D) float32, in the order given.

        An empty sentence is embedded as the end-of-sentence piece alone. Raises BgtError for a language
        or latent the model does not have.
        """
        encoder = self.encoders[self.encoder_name(lang, latent)]
        ids = self.tokenizer.encode(sentences)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        parts = [np.zeros((0, self.width(lang, latent)), dtype=np.float32)]
        # no_grad, not inference_mode: under that, autocast would convert every weight for every batch
        with torch.no_grad(), autocast(self.device, "auto" if self.precision == INT8 else self.precision):
            for rows in by_tokens(order, [len(sentence) for sentence in ids]):
                side = Tokens.pad([ids[row] for row in rows], lang).to(self.device)
                parts.append(encoder(side).mean.float().cpu().numpy())
        vectors = np.concatenate(parts)  # (N, D), by length
        back = np.empty_like(vectors)
        back[order] = vectors
        return back

    def width(self, lang: str, latent: str = SEMANTIC) -> int:
        """Units of that latent."""
        empty = Tokens.pad(self.tokenizer.encode([""]), lang).to(self.device)
        with torch.inference_mode():
            return self.encoders[self.encoder_name(lang, latent)](empty).mean.shape[-1]

    @cached_property
    def fingerprint(self) -> str:
        """What decides the vectors: a hash of weights and tokenizer, the precision, and the kind of device."""
        found = hashlib.sha256(self.tokenizer.sha256.encode())
        for name, value in sorted(self.model.state_dict().items()):
            found.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            found.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return f"{found.hexdigest()} {self.precision} {self.device.type}"

    def encoder_name(self, lang: str, latent: str) -> str:
        """The encoder that reads `latent` from a sentence of `lang`."""
        if lang not in self.langs:
            raise UsageError(f"This model has no language '{lang}'; it has {', '.join(self.langs)}.")
        if latent not in self.latents:
            raise UsageError(f"This model has no latent '{latent}'; it has {', '.join(self.latents)}.")
        return lang if latent == LANGUAGE else SEMANTIC


def by_tokens(order: Sequence[int], lengths: Sequence[int], budget: int = BATCH_TOKENS) -> list[list[int]]:
    """Cut rows, sorted by rising length, into batches of at most `budget` padded tokens.

    Where a batch of some size holds sentences of one length, it ends with that length: nothing is padded then.
    """
    batches: list[list[int]] = []
    for row in order:
        last = batches[-1] if batches else []
        tokens, same = len(last) * lengths[row], last and lengths[last[0]] == lengths[row]
        if not last or tokens + lengths[row] > budget or (tokens >= SAME_LENGTH_FROM and not same):
            batches.append([])
        batches[-1].append(row)
    return batches
