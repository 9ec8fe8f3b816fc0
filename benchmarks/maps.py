"""The app's maps, first call and later ones, against scikit-learn's t-SNE and umap-learn as they come.

Vectors are semantic latents of the model that ships, of translations from the project's grammar, at unit length. Every
call is made in a process of its own, twice: the first includes imports and what numba compiles. Both sides have
`--threads` threads. `error` has the trustworthiness of 15 neighbours by cosine (Venna and Kaski 2001) of both maps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

import bgt_core
from benchmarks.measure import Measurement, over, page
from bgt_core.grammar import pairs

SIZES = {600: 5, 5_000: 30}  # points -> seconds that a map of them may take, the first in a process too
ROUNDS = 2  # at most: the larger maps take a minute a round
LEAST = {"t-SNE": ">= 0.8", "UMAP": ">= 0.8"}  # the library's time over ours once all is compiled, at more trust
LIBRARY = {"t-SNE": "TSNE of scikit-learn", "UMAP": "UMAP of umap-learn"}
TIME_GOES_TO = {
    "t-SNE": "750 steps over a tree of the map",
    "UMAP": "500 passes over the edges of the neighbours' graph",
}
NEIGHBOURS = {"t-SNE": 30, "UMAP": 15}  # as the app offers them

# In a fresh process: seconds of the first call, of the second, and the trustworthiness of the map.
FIT = """
import json, sys, time
form, name, neighbours, path, threads = sys.argv[1:]
clock = time.process_time if threads == "1" else time.perf_counter
begun = clock()
import numpy as np
vectors = np.load(path)
def ours():
    from app.core.latents.geometry import Method, fit
    return fit(vectors, Method(name, int(neighbours))).xy
def library():
    from bgt_core.vectors.compare import unit
    if name == "t-SNE":
        from sklearn.manifold import TSNE
        return TSNE(2, perplexity=int(neighbours), random_state=0).fit_transform(unit(vectors))
    from umap import UMAP
    return UMAP(n_neighbors=int(neighbours), metric="cosine", random_state=0, n_jobs=1).fit_transform(vectors)
make = {"ours": ours, "library": library}[form]
make()
first = clock() - begun
begun = clock()
xy = make()
later = clock() - begun
from sklearn.manifold import trustworthiness
from bgt_core.vectors.compare import unit
print(json.dumps([first, later, float(trustworthiness(unit(vectors), xy, n_neighbors=15))]))
"""


class Made(NamedTuple):
    """One process's map."""

    first: float  # seconds, imports and compilation included
    later: float
    trust: float


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """The first call in seconds, then later ones against the library's, of each size and method."""
    with TemporaryDirectory() as folder:
        for size, limit in SIZES.items():
            path = Path(folder) / f"{size}.npy"
            np.save(path, latents(size))
            for name in LIBRARY:
                sides: dict[str, list[Made]] = {"ours": [], "library": []}
                for number in range(min(options.rounds, ROUNDS)):
                    for form in list(sides)[:: 1 if number % 2 else -1]:
                        sides[form].append(fit(form, name, path, options.threads))
                yield from measure(name, size, limit, sides, crowded(name, size, path))


def latents(count: int) -> np.ndarray:
    """Semantic latents of translations in two languages, (count, D)."""
    model, translations = bgt_core.load(device="cpu"), pairs(count // 2)
    return np.concatenate(
        [model.embed([pair.texts[lang] for pair in translations], lang=lang) for lang in ("en", "fr")]
    )


def fit(form: str, name: str, path: Path, threads: int | None) -> Made:
    """A map of these vectors in a fresh process; None threads: as many as its libraries take, in processor time."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", FIT, form, name, str(NEIGHBOURS[name]), str(path), str(threads or 1)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return Made(*json.loads(done.stdout))


def crowded(name: str, size: int, path: Path) -> str:
    """What the library takes where nobody limits its threads: of the method that has such, and the fewest points."""
    if name != "t-SNE" or size > min(SIZES):
        return ""
    return f"; {fit('library', name, path, None).later:.1f} s of processor time with as many threads as it takes"


def measure(
    name: str, size: int, limit: int, sides: Mapping[str, Sequence[Made]], crowded: str
) -> Iterator[Measurement]:
    """Both rows of one method and size."""
    ours, peer = (Made(*map(statistics.median, zip(*made, strict=True))) for made in sides.values())
    trust = f"trustworthiness {ours.trust:.3f}, the library's {peer.trust:.3f}"
    compiled = ours.first - ours.later
    yield Measurement(
        work=f"map of {size:,} points by {name}, the first in a process, seconds",
        against=f"{limit} s",
        ratios=[made.first for made in sides["ours"]],
        target=f"<= {limit}",
        ours=f"{ours.first:.1f} s",
        peer=f"the library's: {peer.first:.1f} s",
        error=trust,
        bottleneck=f"imports and compilation {compiled:.1f} s, the map {ours.later:.1f} s",
    )
    yield Measurement(
        work=f"map of {size:,} points by {name}, later ones",
        against=LIBRARY[name],
        ratios=over([made.later for made in sides["library"]], [made.later for made in sides["ours"]]),
        target=LEAST[name],
        ours=f"{ours.later:.2f} s",
        peer=f"{peer.later:.2f} s{crowded}",
        error=trust,
        bottleneck=TIME_GOES_TO[name],
    )


if __name__ == "__main__":
    page(rows, __doc__)
