"""`make soak`: what runs for long must not grow. 100,000 lines are embedded 20 times by one process; then three users
switch the pages of one app 500 times, in turn.

Prints memory and open files after each round. Fails if memory ends more than 1 % above its size at half of the rounds,
or if files stay open; the first half fills caches. `--write` puts the table into docs/reliability.md. Memory that the
allocator keeps after it was freed comes and goes by some 5 %, so it is handed back before memory is read. Needs
Chromium (BGT_CHROMIUM, or on PATH).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from playwright.sync_api import sync_playwright

import bgt_core
from attack import pages
from bgt_core.grammar import pairs

ROOT = Path(__file__).resolve().parent.parent
GROWTH = 0.01  # relative growth of memory that is allowed
SERVE = """
import ctypes, gc, runpy, signal
def tidy(*_): gc.collect(); ctypes.CDLL(None).malloc_trim(0)
signal.signal(signal.SIGUSR1, tidy)
runpy.run_module("streamlit", run_name="__main__")
"""  # Streamlit that hands freed memory back at a signal
AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
PATIENCE = 120_000  # milliseconds
CHROMIUM = os.environ.get("BGT_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Round(NamedTuple):
    """What a process holds after a round."""

    megabytes: float
    files: int

    @classmethod
    def of(cls, process: psutil.Process) -> Round:
        return cls(process.memory_info().rss / 1e6, process.num_fds())


def embedded(lines: int, rounds: int) -> Iterator[Round]:
    """This process, after each round of embedding that many sentences."""
    sentences = [pair.texts["en"] for pair in pairs(lines)]
    model = bgt_core.load()
    for _ in range(rounds):
        model.embed(sentences, lang="en")
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        yield Round.of(psutil.Process())


def switched(switches: int, users: int) -> Iterator[Round]:
    """The app's process, after each round of all its pages by all users."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ["--server.headless", "true", "--server.port", str(port)]
    command = [sys.executable, "-c", SERVE, "run", "app/main.py", *options]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server,
        sync_playwright() as playwright,
    ):
        while True:
            with suppress(URLError, OSError):
                urlopen(f"http://localhost:{port}/_stcore/health", timeout=1)
                break
            time.sleep(0.1)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tabs = [browser.new_context().new_page() for _ in range(users)]
        for tab in tabs:
            tab.goto(f"http://localhost:{port}")
            tab.wait_for_selector(AT_REST, timeout=PATIENCE)
        links = tabs[0].get_by_test_id("stSidebarNavLink").count()
        for _ in range(-(-switches // (links * users))):
            for place in [*range(1, links), 0]:
                for tab in tabs:
                    tab.get_by_test_id("stSidebarNavLink").nth(place).click()
                    tab.wait_for_timeout(100)
                    tab.wait_for_selector(AT_REST, timeout=PATIENCE)
            server.send_signal(signal.SIGUSR1)
            time.sleep(2)
            yield Round.of(psutil.Process(server.pid))
        browser.close()
        server.kill()


def judged(work: str, rounds: list[Round]) -> tuple[str, bool]:
    """A row of the table, and whether nothing grew."""
    first, last = rounds[len(rounds) // 2], rounds[-1]
    growth = last.megabytes / first.megabytes - 1
    row = (
        f"| {work} | {len(rounds)} | {first.megabytes:,.0f} | {last.megabytes:,.0f} ({growth:+.1%}) | {first.files} | "
        f"{last.files} |"
    )
    return row, growth <= GROWTH and last.files <= first.files


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack.soak", description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000, help="lines to embed in each of 20 rounds")
    parser.add_argument("--switches", type=int, default=500, help="page switches of three users together")
    parser.add_argument("--write", action="store_true", help="write the table to docs/reliability.md")
    options = parser.parse_args()
    table = ["| work | rounds | MB at half | at the end | files at half | at the end |"]
    table.append("|---|---:|---:|---:|---:|---:|")
    flat = True
    for work, rounds in (
        (f"{options.lines:,} lines embedded", embedded(options.lines, 20)),
        (f"{options.switches:,} pages switched by three users", switched(options.switches, 3)),
    ):
        held = []
        for state in rounds:
            held.append(state)
            print(f"{work}: {state.megabytes:,.0f} MB, {state.files} files", flush=True)
        row, steady = judged(work, held)
        table.append(row)
        flat = flat and steady
    print("\n".join(table))
    if options.write:
        pages.write("soak", "\n".join(table))
    sys.exit(not flat)


if __name__ == "__main__":
    main()
