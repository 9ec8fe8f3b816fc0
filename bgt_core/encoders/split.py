"""Encoders of split vectors: `semantic` is the part that translations share, `language` the rest."""

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.encoders import named_encoder
from bgt_core.encoders import open_encoder as open_any
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import UsageError
from bgt_core.splitting import parts
from bgt_core.splitting.parts import Split


def split_encoder(
    name: str, split: Split, inner: SentenceEncoder, fingerprint: str = "", known: Mapping[Any, np.ndarray] = {}
) -> ExternalEncoder:
    """Make an encoder from a split and `inner`, the encoder on whose semantic vectors the split was fitted.

    The encoder has the split's languages, and the latents semantic, (N, K), and language, (N, D). `name` appears in
    messages. `fingerprint` identifies the split, for example by the hash of its file; it is "" if unknown. `known` maps
    (language, sentence) to vectors of `inner` that need not be computed again.
    """

    @lru_cache(maxsize=2)  # callers often embed the same sentences, in two languages, once for each latent
    def whole(sentences: tuple[str, ...], lang: str) -> np.ndarray:
        missing = [text for text in dict.fromkeys(sentences) if (lang, text) not in known]
        computed = dict(zip(missing, inner.embed(missing, lang=lang, latent=SEMANTIC), strict=True))
        return np.stack([computed[text] if text in computed else known[lang, text] for text in sentences])

    def embed(sentences: list[str], lang: str, latent: str) -> np.ndarray:
        return part(split, whole(tuple(sentences), lang), lang, latent)

    count = getattr(inner, "count_truncated", None)
    encoder = ExternalEncoder(
        name, embed, split.langs, (SEMANTIC, LANGUAGE), sample=getattr(inner, "sample", "a"),
        truncated=count and (lambda sentences, lang: count(sentences, lang=lang)),
        fingerprint=f"{fingerprint} of {inner.fingerprint}" if fingerprint and inner.fingerprint else "",
    )  # fmt: skip
    encoder.about = {"method": split.method, **split.about}
    encoder.sentences = getattr(inner, "sentences", ())
    return encoder


def part(split: Split, vectors: np.ndarray, lang: str, latent: str) -> np.ndarray:
    """Return the shared part of vectors (N, D) for the latent "semantic", else the private part. Values that float32
    can represent only as subnormal numbers become 0."""
    given = split.shared(vectors, lang) if latent == SEMANTIC else split.private(vectors, lang)
    return np.where(np.abs(given) < np.finfo(np.float32).tiny, 0, given)


def open_encoder(name: str | Path, device: str = "auto", precision: str = "auto") -> ExternalEncoder:
    """Open a split, in a folder written by `bgt split`, and the encoder whose vectors it splits.

    Raises UsageError if this encoder is unknown because the split was fitted on stored vectors, DataError if the
    encoder has changed.
    """
    folder = Path(name)
    stored = parts.load(folder)
    if not stored.encoder:
        raise UsageError(
            f"{folder}: fitted on stored vectors of an unknown encoder. Fit it again with --model, or split vectors in "
            "Python: bgt_core.splitting.parts.load(FOLDER).split.parts(vectors, lang)."
        )
    opens = partial(open_any, device=device, precision=precision)
    inner = named_encoder(stored.encoder, stored.fingerprint, opens, str(folder))
    return split_encoder(f"split:{folder}", stored.split, inner, stored.sha256)
