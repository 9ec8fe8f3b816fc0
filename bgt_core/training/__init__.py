"""Training. A run reads text and a recipe, and writes a folder with these files:

    OUT/run.json        recipe, settings and names of the data files
    OUT/tokenizer.model tokenizer; trained on the data, unless the user provides one
    OUT/data/           the token ids of all training and held-out sentences
    OUT/metrics.jsonl   training and validation metrics, one JSON object per line
    OUT/step-0000200/   checkpoints; the newest two are kept

`resume` continues a run from its newest complete checkpoint. The run ends with the same weights as an uninterrupted
run; on a CPU with the same number of threads and workers, they are identical bit for bit.

Several workers can train one run. They are processes on this machine (`workers`), or processes that `torchrun` starts.
The first worker sets up the run, writes files and reports. A run may be resumed with another number of workers.

Read the code of `run` first, then `setup` (text to token ids, with `data.store`) and `loop` (with `data.batching`).
"""

from bgt_core.training.run import inherited, resume, train
from bgt_core.training.setup import Report, share

__all__ = ["Report", "inherited", "resume", "share", "train"]
