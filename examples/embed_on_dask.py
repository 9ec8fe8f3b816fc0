"""Embed a file on a Dask cluster: one task per shard, one model per worker process. Row n is the vector of line n.

    python examples/embed_on_dask.py text.txt.zst vectors.npy --shards 64 --scheduler tcp://head:8786

All workers need access to the folders of the text and the output. Without --scheduler, two workers are started on this
machine. If a worker is lost, another worker embeds its shard. If the job is stopped, run the same command again: it
embeds the missing shards. Run `pip install "bgt[bulk]"` here and on the workers first.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import dask
from dask.distributed import Client, WorkerPlugin, as_completed, get_worker

import bgt_core
from bgt_core import bulk

# With Dask's setting MALLOC_TRIM_THRESHOLD_=65536, the allocator constantly returns memory to the system, which takes a
# third of the embedding time. This line replaces the setting on workers started here. A running cluster needs the same
# setting in its own configuration.
dask.config.set({"distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1}})


class Model(WorkerPlugin):
    """A Dask plugin that loads the model once in each worker process, also in workers that join later."""

    name = "model"

    def __init__(self, path: Path | None, precision: str):
        self.path, self.precision = path, precision

    def setup(self, worker: Any) -> None:
        worker.embedder = bgt_core.load(self.path or bgt_core.PRETRAINED, precision=self.precision)


def embed(number: int, source: Path, out: Path, shards: int, lang: str, latent: str) -> bulk.Written:
    """Embed one shard of the file in a worker process."""
    worker: Any = get_worker()
    return bulk.embed_file(worker.embedder, source, out, lang=lang, latent=latent, shard=(number, shards))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="one sentence per line; plain, .gz, .xz or .zst")
    parser.add_argument("out", type=Path, help="a .npy or .safetensors file")
    parser.add_argument("--shards", type=int, default=2, help="number of tasks; choose several per worker")
    parser.add_argument("--scheduler", help="address of a running cluster")
    parser.add_argument("--model", type=Path, help="a checkpoint or run folder; by default the model that ships")
    parser.add_argument("--lang", default="en")
    parser.add_argument("--latent", default="semantic")
    parser.add_argument("--precision", default="auto", help="fp32, bf16 or int8; set it if workers' processors differ")
    options = parser.parse_args()
    source, out = options.source.absolute(), options.out.absolute()  # workers have other working directories
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(options.scheduler) if options.scheduler else Client(**local) as client:
        client.register_plugin(Model(options.model and options.model.absolute(), options.precision))
        shard = partial(embed, source=source, out=out, shards=options.shards, lang=options.lang, latent=options.latent)
        tasks = client.map(shard, range(1, options.shards + 1), pure=False)
        for task in as_completed(tasks):
            part = task.result()
            print(f"{part.path}: {part.rows} x {part.width}", flush=True)
    whole = bulk.join(out, options.shards)
    print(f"{whole.path}: {whole.rows} x {whole.width}")


if __name__ == "__main__":
    main()
