"""A cache of vectors and results, addressed by their inputs.

    CACHE/vectors/KEY.npy      an encoder's vectors of sentences
    CACHE/results/KEY.parquet  a probe's result on those, see `probes.results.store`

A key is a hash of everything that determines the content, this package's code included, so entries never go stale;
unused entries are pruned by age. A damaged file counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, cast

import numpy as np
from platformdirs import user_cache_path

import bgt_core
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.errors import NotFound
from bgt_core.files import PARTIAL, atomic_file, writing

VECTORS, RESULTS = "vectors", "results"
WAY_OUT = "; choose another folder, or measure without a cache"
DAY = 86_400  # seconds
STALE = 3_600  # seconds after which a partial file is taken to belong to a killed process


def default_folder() -> Path:
    """BGT_CACHE, or the system's folder for caches."""
    if folder := os.environ.get("BGT_CACHE"):
        return Path(folder)
    return user_cache_path("bgt", appauthor=False)


@cache
def code() -> str:
    """A hash of the sources and of the libraries that compute."""
    sources = hashlib.sha256()
    for package in (Path(__file__).resolve().parents[1], Path(bgt_core.__file__).resolve().parent):
        for file in sorted(package.rglob("*.py")):
            sources.update(file.relative_to(package.parent).as_posix().encode() + file.read_bytes())
    for library in ("numpy", "scipy", "scikit-learn", "torch"):
        sources.update(version(library).encode())
    return sources.hexdigest()


def key(**parts: object) -> str:
    """The file name for content that depends on these parts (plain values) and on the code."""
    text = json.dumps({**parts, "code": code()}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Cache:
    """A folder of vectors and results, by default `default_folder()`."""

    folder: Path = field(default_factory=default_folder)

    def path(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{name}{'.npy' if kind == VECTORS else '.parquet'}"

    @contextmanager
    def writing(self, path: Path) -> Iterator[Path]:
        """Yield the path to write the entry `path` to; NotFound if the cache can't be written."""
        with self._writable(), atomic_file(path, WAY_OUT) as partial:
            yield partial

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """Add the name of the folder's parameter to an error of writing."""
        try:
            yield
        except NotFound as error:
            raise NotFound(str(error), parameter="cache") from error

    def check(self) -> None:
        """Raise NotFound if the cache can't be written, before anything is computed for it."""
        with self._writable(), writing(self.folder, WAY_OUT):
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder):
                pass

    def vectors(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The (N, D) vectors of that name, computed and stored unless they exist."""
        path = self.path(VECTORS, name)
        try:
            vectors = np.load(path, allow_pickle=False)
            os.utime(path)
            return vectors
        except (OSError, ValueError, EOFError):
            pass  # absent or damaged: made below
        vectors = make()
        with self.writing(path) as partial, partial.open("wb") as file:
            np.save(file, vectors, allow_pickle=False)
        return vectors

    def entries(self) -> list[Path]:
        """Every file, last used first, including leftovers of killed processes, but not files being written."""
        dated = []
        for path in (path for kind in (VECTORS, RESULTS) for path in self.folder.glob(f"{kind}/*")):
            with suppress(FileNotFoundError):  # renamed or pruned meanwhile
                changed = path.stat().st_mtime
                if not path.name.endswith(PARTIAL) or changed < time.time() - STALE:
                    dated.append((-changed, path))
        return [path for _, path in sorted(dated)]

    def prune(self, days: float = 0) -> tuple[int, int]:
        """Remove files that were not used for that many days; return the numbers of files and bytes removed."""
        count = size = 0
        for path in self.entries():
            with suppress(FileNotFoundError):  # another process prunes too
                status = path.stat()
                if status.st_mtime <= time.time() - days * DAY:
                    path.unlink()
                    count, size = count + 1, size + status.st_size
        return count, size


class CachedEncoder:
    """An encoder with cached vectors; other calls are passed on to it."""

    def __init__(self, encoder: SentenceEncoder, cache: Cache):
        self.encoder, self.cache = encoder, cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, D) float32, in the order given."""
        name = key(fingerprint=self.encoder.fingerprint, lang=lang, latent=latent, sentences=list(sentences))
        return self.cache.vectors(name, lambda: self.encoder.embed(sentences, lang=lang, latent=latent))


def with_cache(encoder: SentenceEncoder, cache: Cache | None) -> SentenceEncoder:
    """The encoder with cached vectors, if it has a fingerprint."""
    return cast("SentenceEncoder", CachedEncoder(encoder, cache)) if cache and encoder.fingerprint else encoder
