"""The kinds of encoder: how each is named, opened and run. `open_encoder` opens any of them.

An encoder is named KIND:FORM, as in `KINDS`. A model of ours has no kind: PATH names a checkpoint or run, ORG/NAME or
ORG/NAME@REVISION a model on the hub. `with_kind` adds the kind for folders, files of vectors, and well-known names.

To add a kind, write a module here that has its name and a function `open_encoder(name, device, precision)`, and add a
row to `KINDS`. Help, documentation and app read that table. `publish`, `sentence_transformers`, `onnx` and `mteb` use
our models in other tools.
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
from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import DataError, NotFound, UsageError, did_you_mean, needs

if TYPE_CHECKING:
    import torch

    from bgt_core.embedder import Embedder

__all__ = ["load", "open_encoder"]

Opens = Callable[[str], SentenceEncoder]  # opens an encoder by its name, as `open_encoder`


class Kind(NamedTuple):
    """A kind of encoder, named KIND:FORM."""

    form: str
    about: str
    runs: str  # how it runs, as a sentence
    needs: tuple[str, str] | None = None  # a module, and the extra that installs it


KINDS = {
    "sentence-transformers": Kind(
        "NAME",
        "a model of that library: on the hub, or a folder",
        "Runs in sentence-transformers",
        ("sentence_transformers", "sentence-transformers"),
    ),
    "onnx": Kind(
        "FOLDER", "a folder of `bgt export --to onnx`", "Runs in ONNX Runtime, on the CPU", ("onnxruntime", "onnx")
    ),
    "python": Kind(
        "MODULE:OBJECT",
        "your own: an object with `embed` or `encode`, or a function from sentences to vectors",
        "Runs your own Python code, on this machine and with your rights",
    ),
    "vectors": Kind("FILE", "vectors made elsewhere, looked up by sentence", "Looks up vectors in a file"),
    "split": Kind(
        "FOLDER",
        "a split of one of these, from `bgt split`: its latents are semantic and language",
        "Splits the vectors of another encoder",
    ),
    "baseline": Kind(
        "words|tfidf|random",
        "a baseline that a trained model should beat; random@SEED has other weights",
        "Runs on this machine",
    ),
}
FORMS = ", ".join(["PATH", "ORG/NAME", *(f"{name}:{kind.form}" for name, kind in KINDS.items())])
FILES = {".npy": "vectors", ".npz": "vectors"}
# Names of the models that sentence-transformers publishes. Any other name without a slash is a folder, and so is a
# name with a file extension.
KNOWN = re.compile(
    r"(sentence-transformers/\w|(?=.*(MiniLM|mpnet|bert|distiluse|LaBSE|-t5-))\w)(?!.*\.[a-z]+$)[\w.-]*", re.IGNORECASE
)


def with_kind(spec: str) -> str:
    """Add the kind to a spec without one, from the files at that path or from a well-known name.

    Our models, and specs that are not recognised, get no kind. Raises UsageError for a folder with files of two kinds,
    and for a file of an unknown kind.
    """
    from bgt_core.checkpoint import kind_of_folder, own_modules

    path = os.path.expanduser(spec)
    if os.path.isdir(path):
        kind = kind_of_folder(Path(path))
    elif os.path.isfile(path):
        kind = FILES.get(Path(path).suffix, "")
        if not kind:
            raise UsageError(f"{spec}: a file of no known kind; name a model's folder, or one of {FORMS}.")
    else:
        kind, _, folder = spec.partition(":")
        if kind == "sentence-transformers" and own_modules(Path(os.path.expanduser(folder))):
            return folder  # a checkpoint of ours that this library can open too
        return f"sentence-transformers:{spec}" if KNOWN.fullmatch(spec) else path
    return f"{kind}:{path}" if kind else path


def load(path: str | Path = PRETRAINED, device: str | torch.device = "auto", precision: str = "auto") -> Embedder:
    """Open the model in a checkpoint, or in the newest checkpoint of a run.

    Args:
        path: A folder; the name of a model that ships, as "bgt-multilingual"; or ORG/NAME or ORG/NAME@REVISION, which
            is fetched from the hub unless a folder has that name. By default bgt-en-fr, made by recipe `bgt-bound`.
        device: "cpu", "cuda", "cuda:1", a device of torch, or "auto": a GPU if there is one.
        precision: "fp32", "bf16", "auto" (bf16 where the device multiplies it natively), or on a CPU "int8".

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
    """Open the encoder that `spec` names: the file or folder at this path, one of `KINDS`, or a name on the hub.

    Unless they define others, encoders that are not ours have one latent, "semantic", and accept any `lang` (their
    `langs` are empty). Their vectors are checked. Unpickling an encoder opens it again. `precision` applies to our
    models and to those of sentence-transformers; "auto" leaves the latter unchanged. Raises UsageError for an unknown
    spec, NotFound for an absent encoder, DataError for an object that is not an encoder.
    """
    if not isinstance(spec, str | os.PathLike):
        raise UsageError(f"{spec}: expected a folder, or the name of a model", parameter="path")
    spec = with_kind(str(spec))
    kind, colon, rest = spec.partition(":")
    if not colon or os.path.exists(spec):
        from bgt_core.capabilities import VectorModel

        embedder = load(spec, device, precision)
        if not isinstance(getattr(embedder, "model", None), VectorModel):
            return embedder
        from bgt_core.encoders.writer import WriterEmbedder

        return WriterEmbedder(embedder, partial(open_encoder, device=device, precision=precision))
    if kind not in KINDS:
        hint = did_you_mean(f"{kind}:", [f"{known}:" for known in KINDS])
        raise UsageError(f"{spec}: no such file, and no kind of encoder '{kind}'.{hint} Expected one of {FORMS}.")
    if not rest:
        raise UsageError(f"{spec}: names no encoder; expected one of {FORMS}.")
    if needed := KINDS[kind].needs:
        needs(*needed)
    module = import_module(f"bgt_core.encoders.{kind.replace('-', '_')}")  # each kind loads only what it needs
    encoder = module.open_encoder(os.path.expanduser(rest), str(device), precision)
    if hasattr(encoder, "opened_as"):
        encoder.opened_as = partial(open_encoder, spec, device=str(device), precision=precision)
    return encoder


# A stored split or writer names the encoder that it was made with. These functions open it and check it.


def identity(encoder: SentenceEncoder) -> str:
    """Return a fingerprint of the encoder that does not depend on where it runs. For our models it leaves out precision
    and device, which change vectors very little."""
    return getattr(encoder, "identity", encoder.fingerprint)


def named_encoder(name: str, known: str, opens: Opens, user: str) -> SentenceEncoder:
    """Open an encoder by its name, and check that it has not changed.

    Args:
        name: Its name, as `--model` takes it.
        known: Its `identity` when the split or writer was made; "" if unknown.
        opens: Opens an encoder by its name, as `open_encoder`.
        user: The split or writer that was made from its vectors, for messages.

    Raises:
        NotFound: The encoder is absent.
        DataError: It has changed.
    """
    try:
        encoder = opens(name)
    except NotFound as error:
        raise NotFound(
            f"{user}: made from vectors of {name}, which is not found. If that is a relative path, change to the "
            f'folder that it starts from, or correct "encoder" in the JSON file of {user}. ({error})'
        ) from None
    if known and identity(encoder) != known:
        raise DataError(
            f"{name}: has changed since {user} was made from its vectors (it was {known[:40]}, now it is "
            f"{identity(encoder)[:40] or 'unknown'}). Restore the encoder, or make {user} again."
        )
    return encoder
