"""Use any encoder in our evaluations (`open_encoder`), and ours in other tools (one file per tool).

An encoder is named as:

    PATH                        a checkpoint or run of ours; a writer opens the encoder that it names
    ORG/NAME, ORG/NAME@REVISION one of ours on the hub
    sentence-transformers:NAME  a model of that library: on the hub, or a folder
    onnx:FOLDER                 a folder of `bgt export --to onnx`
    python:MODULE:OBJECT        your own: an object with `embed` or `encode`, or a function from sentences to vectors
    vectors:FILE                vectors made elsewhere, looked up by sentence
    split:FOLDER                a split of one of these, from `bgt split`: its latents are semantic and language
    baseline:words|tfidf|random a baseline; baseline:random@SEED has other weights

Without a kind, `with_kind` recognises folders, files of vectors, and well-known names.

A new kind is a file here, a name in `KINDS`, and a case in `_open`.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bgt_core import PRETRAINED, checkpoint, load
from bgt_core.adapters.external import ExternalEncoder
from bgt_core.adapters.writer import with_inner
from bgt_core.checkpoint import own_modules
from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import torch

__all__ = ["open_encoder"]

KINDS = ("sentence-transformers", "onnx", "python", "vectors", "split", "baseline")
FORMS = (
    "PATH, ORG/NAME, sentence-transformers:NAME, onnx:FOLDER, python:MODULE:OBJECT, vectors:FILE, "
    "split:FOLDER, baseline:words|tfidf|random"
)
FILES = {".npy": "vectors", ".npz": "vectors"}
# Names of the models that sentence-transformers publishes. Any other name without a slash means a folder, and so does
# one with the ending of a file.
KNOWN = re.compile(
    r"(sentence-transformers/\w|(?=.*(MiniLM|mpnet|bert|distiluse|LaBSE|-t5-))\w)(?!.*\.[a-z]+$)[\w.-]*", re.IGNORECASE
)


def with_kind(spec: str) -> str:
    """Add the kind to a spec without one: that of the files at this path, or of a well-known name.

    Ours, and what is not recognised, stay without a kind. Raises UsageError for a folder with files of two kinds, and
    for a file of an unknown kind.
    """
    path = os.path.expanduser(spec)
    if os.path.isdir(path):
        kind = checkpoint.kind_of_folder(Path(path))
    elif os.path.isfile(path):
        kind = FILES.get(Path(path).suffix, "")
        if not kind:
            raise UsageError(f"{spec}: a file of no known kind; name a model's folder, or one of {FORMS}.")
    else:
        return f"sentence-transformers:{spec}" if KNOWN.fullmatch(spec) else path
    return f"{kind}:{path}" if kind else path


def open_encoder(
    spec: str | Path = PRETRAINED, *, device: str | torch.device = "auto", precision: str = "auto"
) -> SentenceEncoder:
    """Open the encoder that `spec` names, as listed above, or `with_kind` recognises; a file or folder comes first.

    Encoders that are not ours have one latent, "semantic", and take any `lang` (their `langs` are empty) unless they
    say otherwise; their vectors are checked. A pickled encoder is opened again where it is unpickled. `precision`
    applies to our models and to those of sentence-transformers, which "auto" leaves unchanged. Raises UsageError for an
    unknown spec, NotFound for an absent one, DataError for an object that is not an encoder.
    """
    if not isinstance(spec, str | os.PathLike):
        raise UsageError(f"{spec}: expected a folder, or the name of a model", parameter="path")
    spec = with_kind(str(spec))
    kind, colon, rest = spec.partition(":")
    if not colon or os.path.exists(spec):
        embedder = load(spec, device, precision)
        return with_inner(embedder, partial(open_encoder, device=device, precision=precision))
    if kind not in KINDS:
        hint = did_you_mean(f"{kind}:", [f"{known}:" for known in KINDS])
        raise UsageError(f"{spec}: no such file, and no kind of encoder '{kind}'.{hint} There are: {FORMS}.")
    if not rest:
        raise UsageError(f"{spec}: names no encoder; expected one of {FORMS}.")
    encoder = _open(kind, os.path.expanduser(rest), str(device), precision)
    if isinstance(encoder, ExternalEncoder):
        encoder.opened_as = partial(open_encoder, spec, device=str(device), precision=precision)
    return encoder


def _open(kind: str, name: str, device: str, precision: str) -> SentenceEncoder:
    """Open an encoder of a kind; imports are local, so that each kind only loads what it needs."""
    match kind:
        case "sentence-transformers":
            from bgt_core.adapters.imported import sentence_transformer

            if own_modules(Path(name)):
                return load(name, device, precision)
            return sentence_transformer(name, device, precision)
        case "onnx":
            from bgt_core.adapters.onnx import read

            return read(Path(name))
        case "python":
            from bgt_core.adapters.imported import python

            return python(name)
        case "vectors":
            from bgt_core.adapters.vectors import look_up

            return look_up(Path(name))
        case "split":
            from bgt_core.adapters.split import open_split

            return open_split(Path(name), partial(open_encoder, device=device, precision=precision))
    from bgt_core.adapters.baselines import baseline

    return baseline(name, device, precision)
