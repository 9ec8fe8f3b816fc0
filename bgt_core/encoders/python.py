"""Open an encoder in a user's Python code: an object, or a function from sentences to vectors."""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from bgt_core.contracts import SEMANTIC
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError, DataError, NotFound, UsageError, out_of_memory
from bgt_core.vectors.arrays import listed


def import_object(spec: str) -> Any:
    """Import python:MODULE:OBJECT, where MODULE may be in the current directory, and OBJECT may contain dots.

    Raises UsageError for another form, NotFound if the module or the object is absent.
    """
    module, _, path = spec.removeprefix("python:").partition(":")
    if not module or not path:
        raise UsageError(f"{spec}: expected python:MODULE:OBJECT, as in python:my_encoder:embed.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        imported = _run(spec, lambda: importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise NotFound(f"{spec}: no module '{error.name}' in the current directory or installed.") from None
    try:
        return attrgetter(path)(imported)
    except AttributeError as error:
        raise NotFound(f"{spec}: {error}.") from None


def _run(spec: str, own: Callable[[], Any]) -> Any:
    """Run a user's code and return its result; iterators become lists. If it fails, DataError names file and line."""
    try:
        return listed(own())
    except (BgtError, ModuleNotFoundError):
        raise
    except (Exception, SystemExit) as error:  # SystemExit and a broken pipe would end a command without a message
        if out_of_memory(error):
            raise
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
        file, line = frames[-1].filename, frames[-1].lineno
        if isinstance(error, SyntaxError):
            file, line = error.filename or file, error.lineno
        what = traceback.format_exception_only(error)[-1].strip()
        raise DataError(f"{spec}: failed in {os.path.basename(file)}, line {line}: {what.rstrip('.')}.") from error


def open_encoder(name: str, device: str = "auto", precision: str = "auto") -> ExternalEncoder:
    """Open MODULE:OBJECT. MODULE may be in the current directory, and OBJECT may contain dots, as in model.encode.

    OBJECT is an encoder, or a class or function that makes an encoder without arguments. An encoder is an object with
    `embed(sentences, *, lang, latent)`, or with `encode(sentences)` as in sentence-transformers; or a function from a
    list of sentences to vectors. `lang` and `latent` are passed if the function has parameters with these names.
    Vectors may have any form that `vectors.arrays` accepts. The attributes `langs`, `latents`, `fingerprint`,
    `similarity`, `similarity_pairwise` and `count_truncated` are used if OBJECT has them. Raises NotFound if OBJECT is
    absent, DataError if it is not an encoder.
    """
    spec = f"python:{name}"
    own = import_object(spec)
    if callable(own) and (inspect.isclass(own) or not _verb(own)):
        if _needs_nothing(own):
            own = _run(spec, own)
        elif inspect.isclass(own):
            raise DataError(
                f"{spec}: is a class that needs arguments. Make an object of it in the module, or write a function "
                "without arguments that makes one, and use the name of the object or function."
            )
    if not _verb(own) and not callable(own):
        expected = "expected an object with `embed` or `encode`, or a function from sentences to vectors"
        raise DataError(f"{spec}: is {type(own).__name__}; {expected}.")
    if not (verb := _verb(own)):
        return ExternalEncoder(spec, _calling(spec, own))
    optional = ("langs", "latents", "fingerprint", "similarity", "similarity_pairwise")
    given = {name: value for name in optional if (value := getattr(own, name, None)) is not None}
    if inspect.isroutine(getattr(own, "count_truncated", None)):
        count = _calling(spec, own.count_truncated)
        given["truncated"] = lambda texts, lang: count(texts, lang, SEMANTIC)
    return ExternalEncoder(spec, _calling(spec, getattr(own, verb)), **given)


def _verb(own: object) -> str:
    """Return the name of an object's method that embeds sentences, "embed" or "encode"; "" if it has neither."""
    verbs = () if isinstance(own, str) else ("embed", "encode")
    return next((verb for verb in verbs if callable(getattr(own, verb, None))), "")


def _calling(spec: str, function: Callable[..., Any]) -> Callable[[list[str], str, str], Any]:
    """Wrap a function that embeds sentences: `lang` and `latent` are passed to it only if they are its parameters.

    `embed(sentences, **rest)` gets both. Other functions with `**rest` get neither, because they may reject unknown
    names.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions have no signature; they get only the sentences
        signature = inspect.signature(lambda sentences: ...)
    title = getattr(function, "__name__", type(function).__name__)
    rest = title == "embed" and any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    names = [name for name in ("lang", "latent") if rest or name in [*signature.parameters][1:]]
    try:
        signature.bind([], **dict.fromkeys(names))
    except TypeError as error:
        raise DataError(
            f"{spec}: {title}{signature} can't be called with a list of sentences: {error}. Name a function "
            "that needs only the sentences, or the method of an object instead of a method of its class."
        ) from None

    def call(texts: list[str], lang: str, latent: str) -> Any:
        given = {"lang": lang, "latent": latent}
        return _run(spec, lambda: function(texts, **{name: given[name] for name in names}))

    return call


def _needs_nothing(function: Callable[..., Any]) -> bool:
    """Test whether a function can be called without arguments. Such a function makes an encoder."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):  # ValueError: some built-in functions have no signature
        return False
    return True
