"""Find translations on a Dask cluster by approximate search: each task searches for a part of the rows of one side.

    python examples/mine_on_dask.py en.txt fr.txt pairs.tsv --vectors en.npy fr.npy --parts 64 --scheduler tcp://a:8786

All workers need access to the folders of the vectors and the output. Without --scheduler, two workers are started on
this machine. The pairs are those of `bgt mine --index approximate`, up to the rounding of cosines. Finished parts are
kept in pairs.tsv.parts until the pairs are written: if the job is stopped, the same command continues it. This needs
`pip install "bgt[bulk,mine]"` here and on the workers.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import dask
import numpy as np
from dask.distributed import Client

from bgt_core.bulk import stat_signature
from bgt_core.errors import BgtError, check_least
from bgt_core.files import atomic_file, write_text
from bgt_core.neighbours import bitext
from bgt_core.neighbours import search as neighbours
from bgt_core.neighbours.search import ASSIGNMENTS, Lists, Rows

Arrays = dict[str, np.ndarray]

# Dask sets MALLOC_TRIM_THRESHOLD_=65536, so the allocator returns memory all the time, which takes a third of the time
# of embedding. This setting replaces it on workers that are started here; a running cluster needs it in its own
# configuration.
dask.config.set({"distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1}})


def kept(path: Path, compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays in a file; compute and write them if the file is missing."""
    if not path.exists():
        with atomic_file(path) as partial_file, partial_file.open("wb") as file:
            np.savez(file, **compute())  # type: ignore[arg-type]
    with np.load(path) as arrays:
        return dict(arrays)


@dataclass(frozen=True)
class Job:
    """The settings that a worker needs; all data is in files."""

    folder: Path  # the folder of the parts
    vectors: Sequence[Path]  # the files of both sides
    parts: int
    k: int

    def rows(self, side: int, number: int | None = None) -> Rows:
        """Return the rows of a side, or of one of its parts."""
        chosen = np.load(self.folder / f"rows-{side}.npy", mmap_mode="r")
        if number is not None:
            first, last = (len(chosen) * place // self.parts for place in (number, number + 1))
            chosen = chosen[first:last]
        return Rows(np.load(self.vectors[side], mmap_mode="r"), chosen)

    def lists(self) -> Lists:
        with np.load(self.folder / "lists.npz") as arrays:
            return Lists(arrays["centroids"], int(arrays["nprobe"]), float(arrays["recall"]))

    def assign(self, task: tuple[int, int]) -> None:
        """On a worker, assign each row of a part to its lists, and write their numbers."""
        side, number = task
        path = self.folder / f"held-{side}-{number}.npz"
        kept(path, lambda: {"held": self.lists().nearest(self.rows(side, number), ASSIGNMENTS)})

    def search(self, task: tuple[int, int]) -> None:
        """On a worker, search the other side for the nearest rows of each row of a part, and write them."""
        side, number = task

        def compute() -> Arrays:
            lists, queries = self.lists(), self.rows(side, number)
            held = [np.load(self.folder / f"held-{1 - side}-{other}.npz")["held"] for other in range(self.parts)]
            blocks = neighbours.pair_up(
                lists.invert(lists.nearest(queries, lists.nprobe)), lists.invert(np.concatenate(held))
            )
            cosines, nearest = neighbours.search(queries, self.rows(1 - side), blocks, self.k, ASSIGNMENTS)
            return {"cosines": cosines, "nearest": nearest}

        kept(self.folder / f"nearest-{side}-{number}.npz", compute)

    def gathered(self, side: int) -> bitext.Neighbours:
        """Return the nearest rows of the other side for all rows of a side."""
        files = [np.load(self.folder / f"nearest-{side}-{number}.npz") for number in range(self.parts)]
        return np.concatenate([each["cosines"] for each in files]), np.concatenate([each["nearest"] for each in files])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs=2, help="one sentence per line; plain, .gz, .xz or .zst")
    parser.add_argument("out", type=Path, help="a TSV like that of `bgt mine`")
    parser.add_argument("--vectors", type=Path, nargs=2, required=True, help="the .npy files that `bgt embed` wrote")
    parser.add_argument("--parts", type=int, default=2, help="tasks per side; several per worker balance their speeds")
    parser.add_argument("--k", type=int, default=4, help="number of neighbours in the denominator of a margin")
    parser.add_argument("--recall", type=float, default=0.95, help="share of nearest neighbours to find")
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
            np.save(file, side.chosen)  # atomically: a worker of a stopped job may still read the old file
    kept(folder / "lists.npz", lambda: vars(neighbours.learn_lists(sides[0], sides[1], options.recall)))
    job = Job(folder, [path.absolute() for path in options.vectors], options.parts, options.k)
    tasks = list(product((0, 1), range(options.parts)))
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(options.scheduler) if options.scheduler else Client(**local) as client:
        client.gather(client.map(job.assign, tasks, pure=False))
        client.gather(client.map(job.search, tasks, pure=False))
    pairs = bitext.pairs_of(job.gathered(0), job.gathered(1))
    pairs = pairs.take(pairs.scores >= options.threshold)
    bitext.write_pairs(options.out, pairs, *texts)
    lists = job.lists()
    found = f"they contain {100 * lists.recall:.1f}% of the sampled nearest neighbours"
    shutil.rmtree(folder)
    print(f"{options.out}: {len(pairs.scores):,} pairs; {lists.nprobe} of {len(lists.centroids)} lists probed, {found}")


if __name__ == "__main__":
    try:
        main()
    except BgtError as error:
        sys.exit(str(error))
