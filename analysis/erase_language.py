"""Recompute the language means of a `bgt-bound` checkpoint, as the last step before it ships.

    python analysis/erase_language.py CHECKPOINT PAIRS en,fr OUT

In training, the means come from all kinds of text, so a kind that one language has more of, such as chat, counts as
language. This script takes them from translations alone. PAIRS is a TSV of the languages; OUT is the new checkpoint.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import bgt_core
from bgt_core import checkpoint
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.nets.erasing import WithoutLanguage


def main(source: Path, pairs: Path, langs: list[str], out: Path) -> None:
    """Write the checkpoint with new means and directions."""
    source = checkpoint.find(source)
    bgt = bgt_core.load(source, "cpu", "fp32")
    modules = [(name, part) for name, part in bgt.model.named_modules() if isinstance(part, WithoutLanguage)]
    for _, erasing in modules:
        erasing.directions.zero_()  # vectors as the body gives them
    columns = dict(zip(langs, zip(*read_pairs(pairs, langs, Skipped(), strict=True), strict=True), strict=True))
    for _, erasing in reversed(modules):  # the inner one first: the outer one reads its vectors
        means = [torch.from_numpy(bgt.embed(columns[lang], lang=lang).mean(0)) for lang in erasing.langs]
        erasing.means.copy_(torch.stack(means))
        erasing.read.fill_(min(erasing.memory, len(columns[langs[0]])))
        erasing.directions.copy_(torch.linalg.qr((erasing.means[1:] - erasing.means[:1]).T).Q.T)
    shutil.copytree(source, out)
    weights = out / checkpoint.WEIGHTS
    with safe_open(weights, "pt") as file:
        about = file.metadata()
    tensors = load_file(weights)
    for name, erasing in modules:
        tensors |= {f"{name}.{buffer}": value for buffer, value in erasing.named_buffers(recurse=False)}
    save_file(tensors, weights, about)
    config = json.loads((out / checkpoint.CONFIG).read_text("utf-8"))
    config["files"][weights.name] = facts(weights)["sha256"]
    config["files"].pop(checkpoint.OPTIMIZER, None)
    (out / checkpoint.OPTIMIZER).unlink(missing_ok=True)
    (out / checkpoint.CONFIG).write_text(json.dumps(config, indent=2), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(","), Path(sys.argv[4]))
