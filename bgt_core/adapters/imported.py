"""Encoders of others: models of sentence-transformers, and whatever Python can import."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from operator import attrgetter

from bgt_core.adapters.external import ExternalEncoder
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, NotFound, UsageError, needs


def sentence_transformer(name: str, device: str = "auto", precision: str = "auto") -> ExternalEncoder:
    """A SentenceTransformer by its name on the hub or its folder, as it is: its own pooling, prompts and scaling.

    A folder that `bgt export --to sentence-transformers` made is a checkpoint too: open it by its plain path.
    Raises BgtError where the library is absent or can't load it.
    """
    needs("sentence_transformers", "sentence-transformers")
    from sentence_transformers import SentenceTransformer

    from bgt_core.device import autocast, check_precision, pick_device

    check_precision(precision)
    where, spec = pick_device(device), f"sentence-transformers:{name}"
    try:
        model = SentenceTransformer(name, device=str(where))
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().split("\n")[0]
        raise NotFound(f"{spec}: sentence-transformers can't load it ({reason}). Check the name or folder.") from None

    def encode(sentences: list[str], lang: str, latent: str) -> object:
        with autocast(where, "bf16" if precision == "bf16" else "fp32"):
            return model.encode(sentences, show_progress_bar=False)

    def cut(sentences: list[str]) -> int:
        limit, tokenizer = model.max_seq_length, model.tokenizer
        if limit is None or not sentences:
            return 0
        return sum(len(ids) > limit for ids in tokenizer(sentences, truncation=False, verbose=False)["input_ids"])

    return ExternalEncoder(spec, encode, cut=cut)


def python(name: str) -> ExternalEncoder:
    """MODULE:OBJECT, importable from the current directory too; OBJECT may be dotted, as in `model.encode`.

    The object, or what a class or a function gives that needs no arguments, is either something with
    `embed(sentences, *, lang, latent)`, whose own `langs` and `latents` hold, or a function from a list of
    sentences to an array. Raises BgtError where it is absent or neither.
    """
    spec = f"python:{name}"
    module, _, path = name.partition(":")
    if not module or not path:
        raise UsageError(f"{spec}: expected python:MODULE:OBJECT, as in python:my_encoder:embed.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = attrgetter(path)(importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise NotFound(f"{spec}: no module '{error.name}' in the current directory or installed.") from None
    except AttributeError as error:
        raise NotFound(f"{spec}: {error}.") from None
    if inspect.isclass(found) or (callable(found) and not hasattr(found, "embed")):
        if _needs_nothing(found):
            found = found()
        elif inspect.isclass(found):
            raise DataError(f"{spec}: needs arguments to be made; name an object, or a function that makes it.")
    if hasattr(found, "embed"):
        langs, latents = getattr(found, "langs", ()), getattr(found, "latents", (SEMANTIC,))
        embed = found.embed
        return ExternalEncoder(
            spec, lambda texts, lang, latent: embed(texts, lang=lang, latent=latent), (*langs,), (*latents,)
        )
    if not callable(found):
        kind = type(found).__name__
        raise DataError(f"{spec}: is {kind}; expected an object with `embed`, or a function from sentences to vectors.")
    return ExternalEncoder(spec, lambda texts, lang, latent: found(texts))


def _needs_nothing(function: object) -> bool:
    """Whether it can be called without arguments: then it makes an encoder, as one itself needs sentences."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # built in: takes sentences, if anything
        return False
    optional = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return all(one.default is not one.empty or one.kind in optional for one in parameters)
