"""Measure how long a user waits for commands and for the app, and compare these times with limits.

    python -m bench app --data pairs.tsv

Each command runs in a new process. The app runs in headless Chromium. It shows the first pairs of `--data`, and stored
random vectors of 64 units. Opening it once before the measurement puts the vectors of its example sentences on disk.
Times are wall-clock times, so the machine must be idle. A time ends when the result is visible: the heading, the whole
page, all points of a map, or the number of selected sentences. Memory is the server's resident set size.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from bench.measure import Measurement, turns

ROOT = Path(__file__).resolve().parent.parent
CALL = "import sys; from {} import main; sys.argv = {!r}; main()"
WRITE = ["bgt", "generate", "--source", "You are late.", "--style", "Can you help me?"]
CODE = {  # code that is timed in a new process, and its limit in seconds
    "import bgt_core": ("import bgt_core", 0.1),
    "bgt --help": (CALL.format("bgt_core.cli", ["bgt", "--help"]), 0.5),
    "bgt info": (CALL.format("bgt_core.cli", ["bgt", "info"]), 0.5),
    "bgt generate, one sentence": (CALL.format("bgt_core.cli", WRITE), 1.5),
    "bgt-probe --help": (CALL.format("probes.cli", ["bgt-probe", "--help"]), 0.5),
    "bgt-probe --list-tasks": (CALL.format("probes.cli", ["bgt-probe", "--list-tasks"]), 0.5),
}
TORCH = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); "

ROUNDS = 3  # maximum number of rounds in which the app is measured
FEW, MANY = 300, 25_000  # numbers of translations that the maps show
STORED = {100_000: (30, 1_500), 1_000_000: (300, 4_000)}  # points -> limits in seconds and in MB of server memory
WIDTH = 64  # units in each stored vector
PATIENCE = 600_000  # milliseconds after which the browser stops waiting for a result
AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
POINTS = """least => [...document.querySelectorAll(".bgt-view[data-drawn]")].some(root => root.bgtView.size >= least)"""
NEAREST = """() => document.querySelector("[data-testid=stMain]").innerText.split("Nearest in the")[1] ?? \"\""""
CHANGED = f"old => {{ const now = ({NEAREST})(); return now && now !== old; }}"
OTHER_HEADING = "old => ![...document.querySelectorAll('h1')].some(heading => heading.innerText === old)"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SHIPPED = ("bgt-en-fr", "bgt-multilingual")
LIMITS = {
    "heading of the start page, from the start of the server": 1.5,
    "whole start page, from the start of the server": 4,
    "nearest sentences of a new one": 1,
    "all text of a new sentence": 2,
    "first page, from the start of the server": 3,
    "page to page, the median": 1,
    f"lasso on {FEW} pairs, from release to the count": 0.5,
    f"{MANY:,} pairs loaded: embedded, projected, drawn": 30,
    f"lasso on {MANY:,} pairs, from release to the count": 2,
    f"memory of {MANY:,} pairs": 1_000,  # this limit is in MB, all others in seconds
}


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Measure the commands, the app's start page with each shipped model, the other pages, and large maps."""
    for name, (code, limit) in CODE.items():
        times = turns({"ours": lambda _, code=code: run(code)}, options.rounds, time.perf_counter)
        has_torch = {"True": "yes", "False": "no"}[run(TORCH + code).split()[-1]]
        yield limited(f"`{name}`, seconds", times["ours"], limit, "s", f"torch imported: {has_torch}")
    if options.data is None:
        print("The app is not measured; pass a file of pairs as --data.")
        return
    chromium = os.environ.get("BGT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        rounds, limits = range(1 if options.toy else min(options.rounds, ROUNDS)), list(LIMITS.items())
        opened = [{title: opening(browser, title) for title in SHIPPED} for _ in [0, *rounds]][1:]  # models take turns
        for title in SHIPPED:
            for (work, limit), values in zip(limits, zip(*(each[title] for each in opened), strict=True), strict=False):
                yield limited(f"app: {title}: {work}", list(values), limit, "s")
        many = 1_000 if options.toy else MANY
        walks = zip(*(walk(browser, options.data, many) for _ in rounds), strict=True)
        for (work, limit), values in zip(limits[len(opened[0][SHIPPED[0]]) :], walks, strict=True):
            yield limited(f"app: {work}", list(values), limit, "MB" if work.startswith("memory") else "s")
        for points, (seconds, megabytes) in ({} if options.toy else STORED).items():
            spent, memory = stored(browser, points)
            work = f"app: {points:,} stored vectors of {WIDTH} units: read, projected, drawn"
            yield limited(work, [spent], seconds, "s")
            yield limited(f"app: memory of the server with them, {points:,}", [memory], megabytes, "MB")
        browser.close()


def limited(work: str, values: list[float], limit: float, unit: str, error: str = "the same work") -> Measurement:
    """Return a row of results that compares measured values with their limit."""
    ours, unit_of = f"{median(values):.2f} {unit}", work if work.endswith("seconds") else f"{work}, {unit}"
    return Measurement(unit_of, f"{limit:g} {unit}", values, f"<= {limit:g}", ours, "none", error)


def run(code: str) -> str:
    """Run `code` in a new Python process, and return its stderr."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stderr


def opening(browser: Browser, title: str) -> list[float]:
    """Return four times in seconds. Two are from the start of the app until its heading and the whole page are visible.
    Two are from entering a sentence until its nearest sentences and all generated texts are visible."""
    start = time.perf_counter()
    with tab_of(browser) as (tab, address, _):
        query = urlencode({"ckpt": f"{title}, as shipped"})
        spent = [until(start, lambda: shown(tab, f"{address}/?{query}")), until(start, lambda: at_rest(tab))]
        old, field = tab.evaluate(NEAREST), tab.get_by_label("Your sentence")
        field.fill("The old man sees the red car.")
        typed = time.perf_counter()
        field.press("Enter")
        spent.append(until(typed, lambda: tab.wait_for_function(CHANGED, arg=old, timeout=PATIENCE)))
        return [*spent, until(typed, lambda: at_rest(tab))]


def walk(browser: Browser, data: Path, many: int) -> list[float]:
    """Visit the pages and select points as a user would. Return the measured values in the order of LIMITS."""
    start = time.perf_counter()
    with tab_of(browser, "--data", f"en,fr={data.resolve()}") as (tab, address, process):
        spent = [until(start, lambda: shown(tab, address))]
        at_rest(tab)
        spent.append(median(switches(tab)))
        shown(tab, f"{address}/maps?{urlencode({'pairs': str(FEW)})}")
        drawn(tab, 2 * FEW)
        spent.append(lasso(tab))
        before, loaded = process.memory_info().rss, time.perf_counter()
        query = {"data": f"{data.name} (en-fr)", "pairs": f"{many:,}", "map": "PCA"}
        shown(tab, f"{address}/maps?{urlencode(query)}")
        spent += [until(loaded, lambda: drawn(tab, 2 * many)), lasso(tab)]
        return [*spent, (process.memory_info().rss - before) / 1e6]


def stored(browser: Browser, points: int) -> tuple[float, float]:
    """Return the seconds until a map of stored vectors is drawn, and the server's memory in MB."""
    with TemporaryDirectory() as folder:
        vectors, text = Path(folder, "stored.npy"), Path(folder, "stored.txt")
        np.save(vectors, np.random.default_rng(0).standard_normal((points, WIDTH), np.float32))
        text.write_text("".join(f"This is number {number}.\n" for number in range(points)), encoding="utf-8")
        with tab_of(browser, "--model", f"vectors:{vectors}", "--data", f"en={text}") as (tab, address, process):
            query = {"data": f"{text.name} (en)", "pairs": f"{points:,}", "map": "PCA"}
            start = time.perf_counter()
            shown(tab, f"{address}/maps?{urlencode(query)}")
            return until(start, lambda: drawn(tab, points)), process.memory_info().rss / 1e6


@contextmanager
def tab_of(browser: Browser, *arguments: str) -> Iterator[tuple[Page, str, psutil.Process]]:
    """Start the app. When it answers, yield a browser tab, the app's URL and its process."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bgt_core", "app", "--no-browser", "--port", str(port), *arguments]
    environment, quiet = os.environ | {"PYTHONPATH": str(ROOT)}, subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            while True:
                with suppress(URLError, OSError):
                    urlopen(f"http://localhost:{port}/_stcore/health", timeout=1)
                    break
                time.sleep(0.02)
            with browser.new_context(viewport={"width": 1280, "height": 1000}) as context:
                yield context.new_page(), f"http://localhost:{port}", psutil.Process(process.pid)
        finally:
            process.kill()


def until(start: float, wait: Callable[[], object]) -> float:
    """Return the seconds from `start` until `wait` returns."""
    wait()
    return time.perf_counter() - start


def shown(tab: Page, address: str) -> None:
    """Open a URL, and wait for the page's heading."""
    tab.goto(address)
    tab.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)


def at_rest(tab: Page) -> None:
    """Wait until the app's script has finished."""
    tab.wait_for_selector(AT_REST, timeout=PATIENCE)


def drawn(tab: Page, least: int) -> None:
    """Wait until a map shows at least `least` points, and the app's script has finished."""
    tab.wait_for_function(POINTS, arg=least, timeout=PATIENCE)
    at_rest(tab)


def switches(tab: Page) -> list[float]:
    """Visit all pages of the app twice. Return the seconds until each heading is visible on the second visit."""
    times: list[float] = []
    links = tab.get_by_test_id("stSidebarNavLink")
    for visit in range(2):
        for place in [*range(1, links.count()), 0]:
            old = tab.get_by_role("heading", level=1).first.inner_text()
            begun = time.perf_counter()
            links.nth(place).click()
            tab.wait_for_function(OTHER_HEADING, arg=old)
            tab.get_by_role("heading", level=1).first.wait_for(timeout=PATIENCE)
            times += [time.perf_counter() - begun] * visit
            at_rest(tab)
            tab.wait_for_timeout(300)
    return times


def lasso(tab: Page) -> float:
    """Select most of the first map with a lasso. Return the seconds until the number of selected sentences is shown."""
    tab.wait_for_timeout(1_000)
    box = tab.locator(".bgt-large .bgt-map").bounding_box()
    assert box
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.04)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    tab.mouse.move(*points[0])
    tab.mouse.down()
    for point in points[1:]:
        tab.mouse.move(*point, steps=2)
    begun = time.perf_counter()
    tab.mouse.up()
    counted = tab.get_by_text(re.compile(r"[\d,]+ (selected )?sentences( selected)?$"))
    counted.and_(tab.get_by_text(re.compile("selected"))).first.wait_for(timeout=PATIENCE)
    return time.perf_counter() - begun
