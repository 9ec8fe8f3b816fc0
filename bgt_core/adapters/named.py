"""Encoders that something stored, such as a split or a writer, names: opened again, and recognised."""

from __future__ import annotations

from collections.abc import Callable

from bgt_core.adapters.distances import PosteriorEncoder
from bgt_core.contracts import SentenceEncoder
from bgt_core.embedder import Embedder
from bgt_core.errors import DataError, NotFound

Opens = Callable[[str], SentenceEncoder]


def identity(encoder: SentenceEncoder) -> str:
    """Return what tells an encoder from others wherever it runs.

    It is the fingerprint; of our models without precision and device, which change vectors very little.
    """
    ours = isinstance(encoder, Embedder | PosteriorEncoder)
    return encoder.fingerprint.rsplit(" ", 2)[0] if ours else encoder.fingerprint


def named_encoder(name: str, known: str, opens: Opens, user: str) -> SentenceEncoder:
    """Open an encoder by its name, and check that it is still the one it was.

    Args:
        name: As `--model` names an encoder.
        known: Its identity when it was stored; "" if unknown.
        opens: Opens an encoder by its name, as `open_encoder`.
        user: What was made from its vectors, for the message, as "split/".

    Returns:
        The encoder.

    Raises:
        NotFound: The encoder is absent.
        DataError: It has changed since.
    """
    try:
        encoder = opens(name)
    except NotFound as error:
        raise NotFound(
            f"{user}: made from vectors of {name}, which is not found from here. If that is a path, go to the folder "
            f'where it leads to the encoder, or correct "encoder" in the JSON file of {user}. ({error})'
        ) from None
    if known and identity(encoder) != known:
        raise DataError(
            f"{name}: has changed since {user} was made from its vectors (it was {known[:40]}, now it is "
            f"{identity(encoder)[:40] or 'unknown'}). Restore the encoder, or make {user} again."
        )
    return encoder
