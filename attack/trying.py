"""Runs the tries of a part on two or more processes, until they are done or its time is up."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import torch

BLOCK = 2_000  # tries of a fast part handed out together


class Tried(NamedTuple):
    """A part that was run."""

    part: str
    tried: int
    failures: list[tuple[int, str]]  # seed, what went wrong
    minutes: float


def tries(part: str, seeds: range, prepared: object, folder: Path) -> list[tuple[int, str]]:
    """What went wrong, by seed."""
    torch.set_num_threads(1)
    attack = import_module(f"attack.{part}").attack
    failures = []
    for seed in seeds:
        place = folder / part / str(seed if part != "fuzz" else os.getpid())
        try:
            failure = attack(seed, prepared, place)
        except Exception as error:  # noqa: BLE001  the attack itself failed: as bad
            failure = f"{type(error).__name__}: {error}"
        if failure:
            failures.append((seed, failure))
            print(f"{part} {seed}: {failure}", flush=True)
    return failures


def run(part: str, seeds: range, data: Path, folder: Path, minutes: float) -> Tried:
    """One part with these seeds, on as many processes as there are cores, until its time is up."""
    begun = time.monotonic()
    module = import_module(f"attack.{part}")
    prepared = module.prepare(data, folder / f"{part}-prepared")
    step = BLOCK if part == "fuzz" else 1
    parts = [seeds[at : at + step] for at in range(0, len(seeds), step)]
    failures, tried = [], 0
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        futures = [(pool.submit(tries, part, block, prepared, folder), len(block)) for block in parts]
        for future, count in futures:
            if time.monotonic() - begun > 60 * minutes and future.cancel():
                continue
            failures += future.result()
            tried += count
    done = Tried(part, tried, failures, (time.monotonic() - begun) / 60)
    print(
        f"{part}: {tried:,} of {len(seeds):,} tried, {len(failures):,} failed, {done.minutes:.1f} minutes", flush=True
    )
    return done
