"""Find translations on a Dask cluster by approximate search: each task finds the neighbours of some rows of a language.

    python examples/mine_on_dask.py en.txt fr.txt pairs.tsv --vectors en.npy fr.npy --parts 64 --scheduler tcp://a:8786

All workers need access to the folders of the vectors and the output. Without --scheduler, two workers are started on
this machine. `bgt mine --index approximate` finds the same pairs, up to the rounding of cosines. If the job is stopped,
run the same command to continue it. This needs `pip install "bgt[bulk,mine]"` here and on the workers.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dask.distributed import Client

from bgt_core.bulk import stat_signature
from bgt_core.errors import BgtError, check_least
from bgt_core.files import atomic_file, write_text
from bgt_core.neighbours import bitext
from bgt_core.neighbours import search as neighbours
from bgt_core.neighbours.search import ASSIGNMENTS, Lists, Rows

Arrays = dict[str, np.ndarray]


class Job(NamedTuple):
    """The settings that a worker process needs. All data and all results are in files."""

    folder: Path  # the folder with the results of each task
    vectors: list[Path]  # the two files of vectors, one for each language
    parts: int
    k: int

    def kept(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """Return the arrays in the file `name`.npz of the folder. If the file is missing, compute and write them."""
        if not (path := self.folder / f"{name}.npz").exists():
            with atomic_file(path) as partial_file, partial_file.open("wb") as file:
                np.savez(file, **compute())  # type: ignore[arg-type]
        with np.load(path) as arrays:
            return dict(arrays)

    def rows(self, side: int, number: int | None = None) -> Rows:
        """Return the vectors of one language (`side` 0 or 1), or only of part `number` of its rows."""
        chosen = np.load(self.folder / f"rows-{side}.npy", mmap_mode="r")
        if number is not None:
            chosen = chosen[len(chosen) * number // self.parts : len(chosen) * (number + 1) // self.parts]
        return Rows(np.load(self.vectors[side], mmap_mode="r"), chosen)

    def lists(self) -> Lists:
        with np.load(self.folder / "lists.npz") as arrays:
            return Lists(arrays["centroids"], int(arrays["nprobe"]), float(arrays["recall"]))

    def held(self, side: int, number: int) -> np.ndarray:
        """Return which lists of the search index contain each row of a part, as indices (N, ASSIGNMENTS)."""
        rows = self.rows(side, number)
        return self.kept(f"held-{side}-{number}", lambda: {"held": self.lists().nearest(rows, ASSIGNMENTS)})["held"]

    def nearest(self, side: int, number: int) -> bitext.Neighbours:
        """Return the cosines and indices of the k rows in the other language nearest to each row of a part, (N, k)
        each."""

        def compute() -> Arrays:
            lists, queries = self.lists(), self.rows(side, number)
            held = np.concatenate([self.held(1 - side, other) for other in range(self.parts)])
            blocks = neighbours.pair_up(lists.invert(lists.nearest(queries, lists.nprobe)), lists.invert(held))
            cosines, nearest = neighbours.search(queries, self.rows(1 - side), blocks, self.k, ASSIGNMENTS)
            return {"cosines": cosines, "nearest": nearest}

        arrays = self.kept(f"nearest-{side}-{number}", compute)
        return arrays["cosines"], arrays["nearest"]


def stored(step: Callable[[int, int], object], side: int, number: int) -> None:
    """Run a step for a part of one language in a worker process. The step writes its result to a file."""
    step(side, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs=2, help="one sentence per line; plain, .gz, .xz or .zst")
    parser.add_argument("out", type=Path, help="output: a TSV in the format of `bgt mine`")
    parser.add_argument("--vectors", type=Path, nargs=2, required=True, help="the .npy files that `bgt embed` wrote")
    parser.add_argument("--parts", type=int, default=2, help="number of tasks per language; choose several per worker")
    parser.add_argument("--k", type=int, default=4, help="number of neighbours in the denominator of the margin")
    parser.add_argument("--recall", type=float, default=0.95, help="share of nearest neighbours that must be found")
    parser.add_argument("--threshold", type=float, default=-np.inf, help="minimum margin of a pair")
    parser.add_argument("--scheduler", help="address of a running cluster")
    options = parser.parse_args()
    check_least(1, parts=options.parts)
    bitext.check(options.k, "ratio", "approximate", options.recall)
    texts = [bitext.read_sentences(path) for path in options.texts]
    sides = [bitext.read_vectors(path, text) for path, text in zip(options.vectors, texts, strict=True)]
    folder = Path(f"{options.out.absolute()}.parts")
    if not folder.parent.is_dir():
        sys.exit(f"{folder.parent}: no such folder.")
    folder.mkdir(exist_ok=True)
    used = [stat_signature(path) for path in (*options.texts, *options.vectors)]
    record, settings = folder / "settings.json", {"parts": options.parts, "k": options.k, "recall": options.recall}
    text = json.dumps({**settings, "files": used}, indent=1)
    if record.exists() and record.read_text(encoding="utf-8") != text:
        sys.exit(f"{folder}: holds parts of another job. Remove the folder, or use the settings in {record}.")
    write_text(record, text)
    for number, side in enumerate(sides):
        with atomic_file(folder / f"rows-{number}.npy") as partial_file, partial_file.open("wb") as file:
            np.save(file, side.chosen)  # written atomically, as a worker of a stopped job may still read the old file
    job = Job(folder, [path.absolute() for path in options.vectors], options.parts, options.k)
    job.kept("lists", lambda: vars(neighbours.learn_lists(sides[0], sides[1], options.recall)))
    places = list(zip(*product((0, 1), range(options.parts)), strict=True))
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(options.scheduler) if options.scheduler else Client(**local) as client:
        for step in (job.held, job.nearest):
            client.gather(client.map(partial(stored, step), *places, pure=False))
    found = []
    for queries_of in (0, 1):
        cosines, nearest = zip(*(job.nearest(queries_of, part) for part in range(options.parts)), strict=True)
        found.append((np.concatenate(cosines), np.concatenate(nearest)))
    pairs = bitext.pairs_of(found[0], found[1])
    pairs = pairs.take(pairs.scores >= options.threshold)
    bitext.write_pairs(options.out, pairs, *texts)
    lists = job.lists()
    share = f"they contain {100 * lists.recall:.1f}% of the sampled nearest neighbours"
    shutil.rmtree(folder)
    print(f"{options.out}: {len(pairs.scores):,} pairs; {lists.nprobe} of {len(lists.centroids)} lists probed, {share}")


if __name__ == "__main__":
    try:
        main()
    except BgtError as error:
        sys.exit(str(error))
