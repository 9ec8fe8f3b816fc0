"""Commands of ours in processes that can be killed: forked from one that has imported everything."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

import bgt_core
from bgt_core import checkpoint
from bgt_core.grammar import pairs

PATIENCE = 120.0  # seconds that a command may take, until it counts as hanging
TINY = (
    "vocab_size=300 d_model=16 semantic_dim=12 language_dim=6 ffn_dim=24 heads=2 valid_pairs=20 batch_tokens=400 "
    "micro_tokens=400 save_every=3 valid_every=5 epochs=1.0"
)
PROBE = ["--lang", "en", "--task", "length", "--max-items", "300", "--seeds", "1", "--json"]


class Command(NamedTuple):
    """What is run; "{out}" is a folder of its own, "{data}" what all share. `again` continues what was killed."""

    arguments: Sequence[str]
    again: Sequence[str] = ()


class Ended(NamedTuple):
    """How a command ended: its exit code, negative for a signal, and what it wrote on stderr."""

    code: int
    errors: str


def commands() -> dict[str, Command]:
    """Every command that writes files."""
    settings = [part for setting in TINY.split() for part in ("--set", setting)]
    train = "bgt train bgt-small --langs en,fr --data {data}/pairs.tsv --out {out}/run --workers 1 --device cpu".split()
    embed = "bgt embed {data}/english.txt --lang en --model {data}/model --out {out}/vectors"
    translator = (
        "bgt data backtranslate {data}/few.tsv --langs en,fr --model {data}/translator --beam 1 --out {out}/p.tsv"
    )
    return {
        "train": Command([*train, *settings], "bgt train --resume --out {out}/run --workers 1 --device cpu".split()),
        "embed npy": Command(f"{embed}.npy".split()),
        "embed safetensors": Command(f"{embed}.safetensors".split()),
        "prepare": Command("bgt data prepare {data}/pairs.tsv --langs en,fr --out {out}/clean.tsv.gz".split()),
        "backtranslate": Command(translator.split()),
        "export": Command("bgt export {data}/model --out {out}/exported".split()),
        "mine": Command(
            "bgt mine {data}/english.txt {data}/french.txt --langs en,fr --model {data}/model --out {out}/m.tsv".split()
        ),
        "sts": Command(
            "bgt sts --data {data}/sts --sets 2014 --model {data}/model --scores {out}/s.parquet --json".split()
        ),
        "probe": Command(["bgt-probe", *PROBE, "--model", "{data}/model", "--csv", "{out}/p.csv"]),
        "store": Command(
            "bgt retrieve-similar build {data}/english.txt --lang en --model {data}/model --out {out}/store".split()
        ),
    }


def shared_data(folder: Path) -> Path:
    """What the commands read: translations of our grammar, an untrained model, a translator, STS pairs."""
    from bgt_core import recipes
    from bgt_core.data.text import Tokenizer

    folder.mkdir(parents=True)
    texts = [(pair.texts["en"], pair.texts["fr"]) for pair in pairs(400, seed=3)]
    (folder / "pairs.tsv").write_text("".join(f"{en}\t{fr}\n" for en, fr in texts), "utf-8")
    (folder / "few.tsv").write_text("".join(f"{en}\t{fr}\n" for en, fr in texts[:12]), "utf-8")
    for name, side in (("english", 0), ("french", 1)):
        (folder / f"{name}.txt").write_text("".join(f"{pair[side]}\n" for pair in texts), "utf-8")
    (folder / "sts" / "2014").mkdir(parents=True)
    rows = [f"{at % 6}\t{left[0]}\t{right[0]}\n" for at, (left, right) in enumerate(itertools.pairwise(texts))]
    (folder / "sts" / "2014" / "grammar.tsv").write_text("".join(rows), "utf-8")
    sizes = dict(setting.split("=") for setting in TINY.split())
    names = ("d_model", "semantic_dim", "language_dim", "ffn_dim", "heads")
    recipe = recipes.build("bgt-small", {f"model.{name}": int(sizes[name]) for name in names})
    tokenizer = Tokenizer.train([text for pair in texts for text in pair], 300, lowercase=True)
    torch.manual_seed(0)
    checkpoint.save(folder / "model", recipe, recipe.build(tokenizer), tokenizer, step=1)
    (folder / "translator").symlink_to(bgt_core.PRETRAINED.parent / "translator-fr-en")
    return folder


def started(arguments: Sequence[str], out: Path, data: Path, before: Callable[[], None] = lambda: None) -> int:
    """Starts a command, its output in OUT.log; its process. `before` runs in it first."""
    sys.stdout.flush()
    if process := os.fork():
        return process
    try:
        os.setsid()
        log = os.open(out.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.environ["BGT_CACHE"] = str(out / "cache")
        before()
        sys.argv = [part.format(out=out, data=data) for part in arguments]
        if sys.argv[0] == "bgt-probe":
            from probes.cli import main
        else:
            from bgt_core.cli import main
        main()
        os._exit(0)
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 1 if end.code else 0)
    except BaseException:  # noqa: BLE001  a child must never return into the parent's code
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def ended(process: int, out: Path, patience: float = PATIENCE) -> Ended:
    """Waits for a command; one that hangs is killed."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return Ended(os.waitstatus_to_exitcode(status), out.with_suffix(".log").read_text("utf-8", "replace"))
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return Ended(-signal.SIGKILL, f"hung for {patience:.0f} seconds")


def run(arguments: Sequence[str], out: Path, data: Path, before: Callable[[], None] = lambda: None) -> Ended:
    """A whole command."""
    out.mkdir(parents=True, exist_ok=True)
    return ended(started(arguments, out, data, before), out)


def unclean(end: Ended, allowed: Sequence[int] = (0, 2, 3, 4, 8)) -> str:
    """What is wrong with how a command ended: a traceback, a hang, an exit code that is not for foreseeable errors."""
    if end.code in allowed and "Traceback" not in end.errors:
        return ""
    return f"exit code {end.code}: {end.errors.strip()[-300:]}"


def results(out: Path) -> dict[str, bytes]:
    """The content of every file that a command is for, by name: logs, locks, caches and timings aside."""
    kept = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if (
            not path.is_file()
            or name.startswith("cache")
            or name.endswith((".lock", ".log", "metrics.jsonl", "run.json"))
        ):
            continue
        kept[name] = path.read_bytes()
    return kept
