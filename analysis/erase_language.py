"""Compute the language means of a `bgt-bound` checkpoint anew: the last step before a model ships.

    python analysis/erase_language.py CHECKPOINT OUT en-fr=FILE en-de=FILE ...

Training tracks the means over translations of all kinds. This script takes them from those in the files, so that the
language is hardest to tell in text of their kind. Each FILE is a TSV of English and one other language, drawn at
random; the mean of a language is that of all English sentences, moved by its distance to English in its own file. OUT
is the new checkpoint.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import bgt_core
from bgt_core import checkpoint
from bgt_core.data.columns import parse_source
from bgt_core.data.manifest import facts
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.nets.bound.erasing import WithoutLanguage


def main(source: Path, out: Path, files: list[str]) -> None:
    """Write the checkpoint with new means and directions."""
    source = checkpoint.find(source)
    bgt = bgt_core.load(source, "cpu", "fp32")
    modules = [(name, part) for name, part in bgt.model.named_modules() if isinstance(part, WithoutLanguage)]
    for _, erasing in modules:
        erasing.directions.zero_()  # vectors as the body gives them
    pairs = {}  # language -> the English sentences and its own
    for file in map(parse_source, files):
        english, lang = file.columns
        pairs[lang] = list(zip(*read_pairs(file.path, file.columns, Skipped(), strict=True), strict=True))
    for _, erasing in reversed(modules):  # the inner one first: the outer one reads its vectors
        means = {
            lang: [bgt.embed(texts, lang=side).mean(0) for texts, side in zip(columns, (english, lang), strict=True)]
            for lang, columns in pairs.items()
        }
        origin = np.mean([mean for mean, _ in means.values()], axis=0)
        placed = {english: origin} | {lang: origin + own - there for lang, (there, own) in means.items()}
        erasing.means.copy_(torch.from_numpy(np.stack([placed[lang] for lang in erasing.langs])))
        erasing.read.fill_(min(erasing.memory, *(len(texts) for texts, _ in pairs.values())))
        erasing.directions.copy_(torch.linalg.qr((erasing.means[1:] - erasing.means[:1]).T).Q.T)
    shutil.copytree(source, out)
    weights = out / checkpoint.WEIGHTS
    with safe_open(weights, "pt") as opened:
        about = opened.metadata()
    tensors = load_file(weights)
    for name, erasing in modules:
        tensors |= {f"{name}.{buffer}": getattr(erasing, buffer) for buffer in ("means", "read", "directions")}
    save_file(tensors, weights, about)
    config = json.loads((out / checkpoint.CONFIG).read_text("utf-8"))
    config["files"][weights.name] = facts(weights)["sha256"]
    config["files"].pop(checkpoint.OPTIMIZER, None)
    (out / checkpoint.OPTIMIZER).unlink(missing_ok=True)
    (out / checkpoint.CONFIG).write_text(json.dumps(config, indent=2), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
