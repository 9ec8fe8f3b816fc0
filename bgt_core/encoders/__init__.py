"""Open any encoder by its name, KIND:FORM, such as sentence-transformers:NAME; `KINDS` lists all kinds of encoders.

Our models have names without a kind: PATH for a checkpoint or run, ORG/NAME or ORG/NAME@REVISION for a model on the
hub. To add a kind, write a module in this folder with the kind's name and a function `open_encoder(name, device,
precision)`, and add a row to `KINDS`. The help, the documentation and the app list the kinds in `KINDS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bgt_core import PRETRAINED
from bgt_core.contracts import SentenceEncoder, VectorModel
from bgt_core.errors import DataError, NotFound, UsageError, did_you_mean, needs

if TYPE_CHECKING:
    import torch

    from bgt_core.embedder import Embedder

__all__ = ["load", "open_encoder"]

Opens = Callable[[str], SentenceEncoder]  # a function that opens an encoder by its name, like `open_encoder`


class Kind(NamedTuple):
    """A kind of encoder, as described in the help and the app. Names are KIND:FORM, as in baseline:words."""

    form: str
    about: str  # what FORM stands for, such as a folder
    runs: str  # a sentence that says how and where the encoder runs
    needs: tuple[str, str] | None = None  # a required module, and the extra (pip install "bgt[EXTRA]") that installs it


KINDS = {
    "sentence-transformers": Kind(
        "NAME",
        "a model of that library, on the hub or in a folder",
        "Runs in sentence-transformers",
        ("sentence_transformers", "sentence-transformers"),
    ),
    "onnx": Kind(
        "FOLDER", "a folder of `bgt export --to onnx`", "Runs in ONNX Runtime, on the CPU", ("onnxruntime", "onnx")
    ),
    "python": Kind(
        "MODULE:OBJECT",
        "your own code: an object with `embed` or `encode`, or a function from sentences to vectors",
        "Runs your own Python code, on this machine and with your rights",
    ),
    "vectors": Kind("FILE", "stored vectors, looked up by sentence", "Looks up vectors in a file"),
    "split": Kind(
        "FOLDER",
        "a split of another encoder, from `bgt split`; its latents are semantic and language",
        "Splits the vectors of another encoder",
    ),
    "baseline": Kind(
        "words|tfidf|random",
        "a baseline that a trained model should beat; random@SEED draws other weights",
        "Runs on this machine",
    ),
}
FORMS = ", ".join(["PATH", "ORG/NAME", *(f"{name}:{kind.form}" for name, kind in KINDS.items())])
FILES = {".npy": "vectors", ".npz": "vectors"}
# Names of models that sentence-transformers publishes; other names without a slash, or with an extension, are paths.
KNOWN = re.compile(
    r"(sentence-transformers/\w|(?=.*(MiniLM|mpnet|bert|distiluse|LaBSE|-t5-))\w)(?!.*\.[a-z]+$)[\w.-]*", re.IGNORECASE
)


def with_kind(spec: str) -> str:
    """Add the kind to an encoder's name, as in sentence-transformers:NAME, if the name has none. The kind of a folder
    is recognised by its files, and models of sentence-transformers by their names. Our models and unknown names get no
    kind. Raises UsageError for a folder with files of two kinds, and for a file that is not an encoder."""
    from bgt_core.checkpoint import kind_of_folder, own_modules

    path = os.path.expanduser(spec)
    if os.path.isdir(path):
        kind = kind_of_folder(Path(path))
    elif os.path.isfile(path):
        kind = FILES.get(Path(path).suffix, "")
        if not kind:
            raise UsageError(f"{spec}: this file is not an encoder; expected a model's folder, or one of {FORMS}.")
    else:
        kind, _, folder = spec.partition(":")
        if kind == "sentence-transformers" and own_modules(Path(os.path.expanduser(folder))):
            return folder  # a checkpoint of this package, exported for sentence-transformers
        return f"sentence-transformers:{spec}" if KNOWN.fullmatch(spec) else path
    return f"{kind}:{path}" if kind else path


def load(path: str | Path = PRETRAINED, device: str | torch.device = "auto", precision: str = "auto") -> Embedder:
    """Open the model in a checkpoint, or in the newest checkpoint of a run.

    Args:
        path: A folder; the name of a shipped model, such as "bgt-multilingual"; or ORG/NAME or ORG/NAME@REVISION, which
            is downloaded from the hub unless a folder has this name. The default is bgt-en-fr (recipe `bgt-bound`).
        device: "cpu", "cuda", "cuda:1", a device of torch, or "auto": a GPU if available.
        precision: "fp32", "bf16", "auto" (bf16 if the device has instructions for it), or on a CPU "int8".

    Returns:
        The model with its tokenizer.

    Raises:
        BgtError: The folder is missing, incomplete or damaged, or the hub reports an error.
    """
    from bgt_core import checkpoint
    from bgt_core.backend import pick_device
    from bgt_core.embedder import Embedder

    loaded = checkpoint.load(path, pick_device(device))
    return Embedder(loaded.model, loaded.tokenizer, loaded.model.langs, precision)


def open_encoder(
    spec: str | Path = PRETRAINED, *, device: str | torch.device = "auto", precision: str = "auto"
) -> SentenceEncoder:
    """Open an encoder by its name: a path, KIND:FORM as in `KINDS`, or a name on the hub.

    An encoder that is not ours has one latent, "semantic", and accepts any `lang` (its `langs` are empty), unless its
    code defines others. A pickled encoder is opened again when it is unpickled. `precision` applies to our models and
    to models of sentence-transformers; for the latter, "auto" changes nothing. Raises UsageError for an unknown name,
    NotFound for an absent encoder, DataError for an object that is not an encoder.
    """
    if not isinstance(spec, str | os.PathLike):
        raise UsageError(f"{spec}: expected a folder, or the name of a model", parameter="path")
    spec = with_kind(str(spec))
    kind, colon, rest = spec.partition(":")
    if not colon or os.path.exists(spec):
        embedder = load(spec, device, precision)
        if not isinstance(getattr(embedder, "model", None), VectorModel):
            return embedder
        from bgt_core.encoders.writer import WriterEmbedder

        return WriterEmbedder(embedder, partial(open_encoder, device=device, precision=precision))
    if kind not in KINDS:
        hint = did_you_mean(f"{kind}:", [f"{known}:" for known in KINDS])
        raise UsageError(f"{spec}: no such file, and no kind of encoder '{kind}'.{hint} Expected one of {FORMS}.")
    if not rest:
        raise UsageError(f"{spec}: the name of the encoder is missing; expected one of {FORMS}.")
    if needed := KINDS[kind].needs:
        needs(*needed)
    module = import_module(f"bgt_core.encoders.{kind.replace('-', '_')}")  # import only the needed libraries
    encoder = module.open_encoder(os.path.expanduser(rest), str(device), precision)
    if hasattr(encoder, "opened_as"):
        encoder.opened_as = partial(open_encoder, spec, device=str(device), precision=precision)
    return encoder


def identity(encoder: SentenceEncoder) -> str:
    """Return an encoder's fingerprint. For our models it ignores precision and device, which change vectors little."""
    return getattr(encoder, "identity", encoder.fingerprint)


def named_encoder(name: str, known: str, opens: Opens, user: str) -> SentenceEncoder:
    """Open the encoder `name` whose vectors a stored split or writer uses; messages name the split or writer as `user`.
    `known` is the encoder's `identity` when the split or writer was made, or "" if unknown. Raises NotFound if the
    encoder is absent, DataError if its identity differs from `known`."""
    try:
        encoder = opens(name)
    except NotFound as error:
        raise NotFound(
            f"{user} was made from vectors of {name}, which was not found. If {name} is a relative path, start bgt in "
            f'the folder that it is relative to, or correct "encoder" in the JSON file of {user}. ({error})'
        ) from None
    if known and identity(encoder) != known:
        raise DataError(
            f"{name} has changed since {user} was made from its vectors: its fingerprint was {known[:40]}, and is now "
            f"{identity(encoder)[:40] or 'unknown'}. Restore the encoder, or make {user} again."
        )
    return encoder
