"""Training: from text and a recipe to a folder of checkpoints.

    OUT/run.json        the request: recipe, settings, data
    OUT/tokenizer.model trained on the data, unless one is given
    OUT/data/           the token store
    OUT/metrics.jsonl   one row per report
    OUT/step-0000200/   checkpoints; the newest two are kept

With `resume`, a run continues from its newest complete checkpoint and ends with the weights it
would have had without the interruption: bit for bit on a CPU with the same number of threads and workers.

Several processes can share a run: `workers` on this machine, or those of `torchrun`. The first one prepares, writes and
reports. A run may be resumed with another number of them.

Read `run`, then `prepare` (text to token ids, with `data.store`), then `loop` (with `data.batching`).
"""

from bgt_core.training.prepare import share
from bgt_core.training.run import inherited, resume, train
from bgt_core.training.settings import Report

__all__ = ["Report", "inherited", "resume", "share", "train"]
