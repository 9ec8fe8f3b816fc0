"""Run commands of this project in forked processes, which tests can kill. The parent process imports all modules."""

import importlib
import itertools
import os
import pkgutil
import re
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

import bgt_core
import probes
from bgt_core import checkpoint
from bgt_core.grammar import pairs

PATIENCE = 120.0  # seconds after which a command counts as hanging
TINY = (
    "vocab_size=300 d_model=16 semantic_dim=12 language_dim=6 ffn_dim=24 heads=2 valid_pairs=20 batch_tokens=400 "
    "micro_tokens=400 save_every=3 valid_every=5 epochs=1.0"
)
# files that are not compared, because they contain times or paths, or are no results
OTHERS = r"^cache|\.lock$|/lock$|\.log$|metrics\.jsonl$|run\.json$|time\.json$"
PROGRAMS = {"bgt": "bgt_core.cli", "bgt-probe": "probes.cli"}
SIZES = ("d_model", "semantic_dim", "language_dim", "ffn_dim", "heads")


class Ended(NamedTuple):
    """The exit code of a command (negative after a signal), and what it wrote to stdout and stderr."""

    code: int
    errors: str


RUN = "--out {out}/run --workers 1 --device cpu"
RESUME = f"bgt train --resume {RUN}".split()  # the command that continues a killed `bgt train`


def commands() -> dict[str, list[str]]:
    """Return {name: command} of all commands that write files. "{out}" is the output folder, "{data}" the input."""
    settings = " ".join(f"--set {setting}" for setting in TINY.split())
    texts = {
        "train": f"bgt train bgt-small --langs en,fr --data {{data}}/pairs.tsv {RUN} {settings}",
        "embed npy": "bgt embed {data}/english.txt --lang en --model {data}/model --out {out}/vectors.npy",
        "prepare": "bgt data prepare {data}/pairs.tsv --langs en,fr --out {out}/clean.tsv.gz",
        "sts": "bgt evaluate sts {data}/sts --sets 2014 --model {data}/model --out {out}/s.json",
        "split": "bgt split {data}/pairs.tsv --langs en,fr --model {data}/model --device cpu --out {out}/split",
        "probe": "bgt-probe --lang en --task length --max-items 300 --seeds 1 --json --model {data}/model "
        "--out {out}/p.parquet",
    }
    return {name: text.split() for name, text in texts.items()}


def shared_data(folder: Path) -> Path:
    """Write the inputs of all commands: translations, an untrained model, and STS pairs."""
    from bgt_core import recipes
    from bgt_core.data.text import Tokenizer

    folder.mkdir(parents=True)
    texts = [(pair.texts["en"], pair.texts["fr"]) for pair in pairs(200, seed=3)]
    (folder / "pairs.tsv").write_text("".join(f"{en}\t{fr}\n" for en, fr in texts), "utf-8")
    for name, side in (("english", 0), ("french", 1)):
        (folder / f"{name}.txt").write_text("".join(f"{pair[side]}\n" for pair in texts), "utf-8")
    judged = [f"{at % 6}\t{left[0]}\t{right[0]}\n" for at, (left, right) in enumerate(itertools.pairwise(texts))]
    (folder / "sts" / "2014").mkdir(parents=True)
    (folder / "sts" / "2014" / "grammar.tsv").write_text("".join(judged), "utf-8")
    sizes = dict(setting.split("=") for setting in TINY.split())
    recipe = recipes.configure("bgt-small", {f"model.{name}": int(sizes[name]) for name in SIZES})
    tokenizer = Tokenizer.train([text for pair in texts for text in pair], 300, lowercase=True)
    torch.manual_seed(0)
    checkpoint.save(folder / "model", recipe, recipe.build(tokenizer), tokenizer, step=1)
    return folder


def warm() -> None:
    """Import all modules, so that forked processes run their command at once."""
    for package in (bgt_core, probes):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def child(arguments: Sequence[str], out: Path, data: Path) -> None:
    """Run a command in this forked process, and write its stdout and stderr to a log file beside the folder `out`."""
    os.setsid()
    log = os.open(out.with_name(f"{out.name}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", 1, closefd=False) for stream in (1, 2))
    sys.argv = [part.format(out=out, data=data) for part in arguments]
    importlib.import_module(PROGRAMS[sys.argv[0]]).main()


def started(arguments: Sequence[str], out: Path, data: Path) -> Any:
    """Start a command in a forked process, and return the process."""
    process = get_context("fork").Process(target=child, args=(arguments, out, data))
    process.start()
    return process


def run(arguments: Sequence[str], out: Path, data: Path) -> Ended:
    """Run a command to its end, or kill it if it hangs. Return its exit code and output."""
    out.mkdir(parents=True, exist_ok=True)
    process = started(arguments, out, data)
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
    return Ended(process.exitcode, out.with_name(f"{out.name}.log").read_text("utf-8", "replace"))


def names(out: Path) -> set[str]:
    """Return the relative paths of all files in a folder."""
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


def results(out: Path) -> dict[str, bytes]:
    """Return the contents of all result files, by name. Files that contain times or the path of `out` are left out."""
    return {name: (out / name).read_bytes() for name in sorted(names(out)) if not re.search(OTHERS, name)}
