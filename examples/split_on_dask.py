"""Fit a split of stored vectors on a Dask cluster: each task sums a part of the rows, and the sums are merged.

    python examples/split_on_dask.py vectors --langs en,fr --out split --parts 64 --scheduler tcp://head:8786

`vectors` stands for vectors.en.npy and vectors.fr.npy, which all workers must be able to read. Without --scheduler, two
workers are started on this machine. The result is the same as that of `bgt split` in one process. This needs `pip
install "bgt[bulk]"` here and on the workers.
"""

import argparse
from functools import partial, reduce
from pathlib import Path

import numpy as np
from dask.distributed import Client

from bgt_core.splitting import parts as folders
from bgt_core.splitting.fit import METHODS, TRAINED_ON, fit
from bgt_core.splitting.gather import Gathered, gather


def part(number: int, parts: int, files: list[Path], langs: list[str], keep: int) -> Gathered:
    """On a worker, compute the sums over one part of the rows, and the sampled rows of this part."""
    columns = [np.load(file, mmap_mode="r") for file in files]
    first, last = (len(columns[0]) * place // parts for place in (number, number + 1))
    (gathered,) = gather(None, [(langs, [column[first:last] for column in columns])], keep=keep, first=first)
    return gathered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", help="stands for VECTORS.en.npy and VECTORS.fr.npy")
    parser.add_argument("--langs", default="en,fr")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--method", default="bgt", choices=METHODS)
    parser.add_argument("--parts", type=int, default=2, help="number of tasks; choose several per worker")
    parser.add_argument("--scheduler", help="address of a running cluster")
    options = parser.parse_args()
    langs = options.langs.split(",")
    files = [Path(f"{options.vectors}.{lang}.npy").absolute() for lang in langs]  # workers run in other folders
    keep = TRAINED_ON.get(options.method, 0)
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(options.scheduler) if options.scheduler else Client(**local) as client:
        task = partial(part, parts=options.parts, files=files, langs=langs, keep=keep)
        tasks = client.map(task, range(options.parts), pure=False)
        merged = reduce(Gathered.merge, (done.result() for done in tasks))
    split = fit([merged], options.method)
    folders.save(options.out, folders.StoredSplit(split, "", ""))
    print(f"{options.out}: {split.shared_width} shared units of {split.width}, from {split.about['rows']:,} rows")


if __name__ == "__main__":
    main()
