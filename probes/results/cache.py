"""What was computed before, found again by the content it was computed from.

    CACHE/vectors/KEY.npy      what an encoder made of sentences
    CACHE/results/KEY.parquet  what a probe made of those, see `probes.results.store`

A key is a hash of everything that decides the content, the code of this package among it, so nothing ever goes stale;
what is no longer asked for is pruned by age. Files are written under another name and renamed. A damaged one counts
as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.errors import NotFound

VECTORS, RESULTS = "vectors", "results"
PARTIAL = ".partial"
DAY = 86_400  # seconds
WRITING = 3_600  # seconds after which what is still partial belongs to a process that was killed


def default_folder() -> Path:
    """BGT_CACHE, or the place that the system has for caches."""
    if own := os.environ.get("BGT_CACHE"):
        return Path(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bgt"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bgt"


@cache
def code() -> str:
    """A hash of the sources and of the libraries that compute."""
    found = hashlib.sha256()
    here = Path(__file__).resolve().parent
    for package in (here, here.parent / "bgt_core"):
        for file in sorted(package.rglob("*.py")):
            found.update(file.relative_to(here.parent).as_posix().encode() + file.read_bytes())
    for library in ("numpy", "scipy", "scikit-learn", "torch"):
        found.update(version(library).encode())
    return found.hexdigest()


def key(**parts: object) -> str:
    """The name of what these parts, plain values, and the code decide."""
    text = json.dumps({**parts, "code": code()}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def replacing(path: Path, way_out: str = "") -> Iterator[Path]:
    """A name beside `path` to write to, renamed when the block ends well; BgtError where that can't be."""
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    try:
        try:
            yield partial
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise NotFound(f"{path}: can't be written ({error.strerror or error}){way_out}.") from None


@dataclass(frozen=True)
class Cache:
    """A folder of vectors and results."""

    folder: Path

    def path(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{name}{'.npy' if kind == VECTORS else '.parquet'}"

    @contextmanager
    def writing(self, kind: str, name: str) -> Iterator[Path]:
        """Where to write an entry; BgtError where the cache can't be written."""
        path, way_out = self.path(kind, name), "; give another --cache-dir, or --no-cache"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotFound(f"{path.parent}: can't be made ({error.strerror or error}){way_out}.") from None
        with replacing(path, way_out) as partial:
            yield partial

    def vectors(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The (N, D) vectors of that name, made and kept if they are not there."""
        path = self.path(VECTORS, name)
        try:
            found = np.load(path, allow_pickle=False)
            os.utime(path)
            return found
        except (OSError, ValueError, EOFError):
            pass  # absent or damaged: made below
        made = make()
        with self.writing(VECTORS, name) as partial, partial.open("wb") as file:
            np.save(file, made, allow_pickle=False)
        return made

    def entries(self) -> list[Path]:
        """Every file, the one used last first; what a killed process left behind too, but not what is being written."""
        found = []
        for path in (path for kind in (VECTORS, RESULTS) for path in self.folder.glob(f"{kind}/*")):
            with suppress(FileNotFoundError):  # renamed or pruned meanwhile
                changed = path.stat().st_mtime
                if not path.name.endswith(PARTIAL) or changed < time.time() - WRITING:
                    found.append((-changed, path))
        return [path for _, path in sorted(found)]

    def prune(self, days: float = 0) -> tuple[int, int]:
        """Removes what was not used for so many days; how many files that are, and how many bytes."""
        count = size = 0
        for path in self.entries():
            with suppress(FileNotFoundError):  # another process prunes too
                found = path.stat()
                if found.st_mtime <= time.time() - days * DAY:
                    path.unlink()
                    count, size = count + 1, size + found.st_size
        return count, size


class CachedEncoder:
    """An encoder whose vectors are kept; all else it says is that encoder's own."""

    def __init__(self, encoder: SentenceEncoder, cache: Cache):
        self.encoder, self.cache = encoder, cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """N sentences -> (N, D) float32, in the order given."""
        name = key(fingerprint=self.encoder.fingerprint, lang=lang, latent=latent, sentences=list(sentences))
        return self.cache.vectors(name, lambda: self.encoder.embed(sentences, lang=lang, latent=latent))


def with_cache(encoder: SentenceEncoder, cache: Cache | None) -> SentenceEncoder:
    """The encoder, its vectors kept where it says what they are made of."""
    return CachedEncoder(encoder, cache) if cache and getattr(encoder, "fingerprint", "") else encoder
