"""The app in a browser: what a user waits for, against limits.

It is started by `streamlit run app/main.py` and driven in headless Chromium, on the wall: the machine must be
idle. Times end when what was asked for can be seen: a heading and the script at rest, every point, the number of
selected sentences. Pairs are the first of `--data`, English and French. Stored vectors are random, of 64 units, as
those of a file that `--model vectors:FILE` opens. Memory is the server's resident set.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.measure import Measurement, page

OURS = Path(__file__).resolve().parent.parent
ROUNDS = 3  # at most
FEW, MANY = 300, 25_000  # pairs
STORED = {100_000: (30, 1_500), 1_000_000: (300, 4_000)}  # points -> limits: seconds, MB in all
WIDTH = 64  # units of stored vectors
PATIENCE = 600_000  # milliseconds
AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
POINTS = """least => [...document.querySelectorAll(".js-plotly-plot")].some(plot => (plot.data ?? []).filter(
    trace => trace.mode === "markers").reduce((sum, trace) => sum + (trace.customdata?.length ?? 0), 0) >= least)"""
NEAREST = """() => document.querySelector("[data-testid=stMain]").innerText.split("Nearest in the")[1] ?? \"\""""
CHANGED = f"old => {{ const now = ({NEAREST})(); return now && now !== old; }}"
OTHER_HEADING = "old => ![...document.querySelectorAll('h1')].some(heading => heading.innerText === old)"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


class Times(NamedTuple):
    """Seconds, and bytes, of one round."""

    first_page: float  # from the start of the server
    page_to_page: float  # the median of the pages
    few_lasso: float
    many_loaded: float  # embedded, projected, drawn
    many_lasso: float
    many_bytes: float  # additional memory after the first page


class Opening(NamedTuple):
    """Seconds of the start page of a model."""

    content: float  # from the start of the server until there is a heading
    whole: float  # the same until nothing runs
    neighbours: float  # from a new sentence until its nearest sentences are there
    written: float  # the same until all its text is written


OPENINGS: Mapping[str, tuple[str, float]] = {
    "content": ("heading of the start page, from the start of the server", 1.5),
    "whole": ("whole start page, from the start of the server", 4),
    "neighbours": ("nearest sentences of a new one", 1),
    "written": ("all text of a new sentence", 2),
}
SHIPPED = ("bgt-en-fr, as shipped", "bgt-multilingual, as shipped")
LIMITS: Mapping[str, tuple[str, float]] = {
    "first_page": ("first page, from the start of the server", 3),
    "page_to_page": ("page to page, the median", 1),
    "few_lasso": (f"lasso on {FEW} pairs, from release to the count", 0.5),
    "many_loaded": (f"{MANY:,} pairs loaded: embedded, projected, drawn", 30),
    "many_lasso": (f"lasso on {MANY:,} pairs, from release to the count", 2),
    "many_bytes": (f"memory of {MANY:,} pairs", 1e9),
}


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Each time against its limit."""
    if options.data is None:
        print("--data is needed: nothing measured")
        return
    chromium = os.environ.get("BGT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        rounds = range(min(options.rounds, ROUNDS))
        openings: dict[str, list[Opening]] = {title: [] for title in SHIPPED}
        earlier: list[Sequence[float]] = []
        for _ in rounds:  # in turn
            for title, times in openings.items():
                times.append(opening(browser, title))
            if options.earlier:
                with begun(browser, options.earlier.resolve()) as (_, *seconds):
                    earlier.append(seconds)
        measured = [walk(browser, options.data) for _ in rounds]
        large = {points: stored(browser, points) for points in STORED}
        browser.close()
    for title, times in openings.items():
        for place, (name, (work, limit)) in enumerate(OPENINGS.items()):
            before = [seconds[place] for seconds in earlier if place < len(seconds)]
            peer = f"{options.earlier.name}, its default model: {statistics.median(before):.2f} s" if before else "none"
            yield row(f"{title.split(',')[0]}: {work}", [getattr(each, name) for each in times], limit, "s", peer)
    for name, (work, limit) in LIMITS.items():
        unit, scale = ("MB", 1e-6) if name.endswith("bytes") else ("s", 1)
        yield row(work, [scale * getattr(times, name) for times in measured], limit * scale, unit)
    for points, (seconds, memory) in large.items():
        within, most = STORED[points]
        yield row(f"{points:,} stored vectors of {WIDTH} units: read, projected, drawn", [seconds], within, "s")
        yield row(f"memory of the server with them, {points:,}", [memory], most, "MB")


def row(work: str, values: list[float], limit: float, unit: str, peer: str = "none") -> Measurement:
    """A figure against its limit."""
    return Measurement(
        work=f"app: {work}, {unit}",
        against=f"{limit:g} {unit}",
        ratios=values,
        target=f"<= {limit:g}",
        ours=f"{statistics.median(values):.2f} {unit}",
        peer=peer,
        error="the same work",
        bottleneck="not profiled",
    )


def opening(browser: Browser, title: str) -> Opening:
    """The start page of a shipped model, and a new sentence on it."""
    with begun(browser, OURS, urlencode({"ckpt": title})) as (tab, content, whole):
        old = tab.evaluate(NEAREST)
        field = tab.get_by_label("Your sentence")
        field.fill("The old man sees the red car.")
        typed = time.perf_counter()
        field.press("Enter")
        neighbours = until(typed, lambda: tab.wait_for_function(CHANGED, arg=old, timeout=PATIENCE))
        return Opening(content, whole, neighbours, until(typed, lambda: tab.wait_for_selector(AT_REST)))


@contextmanager
def begun(browser: Browser, root: Path, query: str = "") -> Iterator[tuple[Page, float, float]]:
    """The start page of a checkout's app, and the seconds until its heading, and until it is whole."""
    start = time.perf_counter()
    with server(root) as (address, _), browser.new_context() as context:
        tab = context.new_page()
        tab.set_viewport_size({"width": 1280, "height": 1000})
        content = until(start, lambda: shown(tab, f"{address}/?{query}"))
        yield tab, content, until(start, lambda: tab.wait_for_selector(AT_REST, timeout=PATIENCE))


def walk(browser: Browser, data: Path) -> Times:
    """What a user does, timed."""
    start = time.perf_counter()
    with server(OURS, "--data", f"en,fr={data.resolve()}") as (address, process), browser.new_context() as context:
        tab = context.new_page()
        tab.set_viewport_size({"width": 1280, "height": 1000})
        first_page = until(start, lambda: shown(tab, address))
        tab.wait_for_selector(AT_REST, timeout=PATIENCE)
        page_to_page = statistics.median(switches(tab))
        shown(tab, f"{address}/latents?{urlencode({'pairs': str(FEW)})}")
        drawn(tab, 2 * FEW)
        few_lasso = lasso(tab)
        before = process.memory_info().rss
        query = {"data": f"{data.name} (en-fr)", "pairs": f"{MANY:,}", "map": "PCA"}
        loaded = time.perf_counter()
        shown(tab, f"{address}/latents?{urlencode(query)}")
        many_loaded = until(loaded, lambda: drawn(tab, 2 * MANY))
        many_lasso = lasso(tab)
        return Times(first_page, page_to_page, few_lasso, many_loaded, many_lasso, process.memory_info().rss - before)


def stored(browser: Browser, points: int) -> tuple[float, float]:
    """Seconds until a map of stored vectors is drawn, and the server's memory then, MB."""
    with TemporaryDirectory() as folder:
        vectors, text = Path(folder, "stored.npy"), Path(folder, "stored.txt")
        np.save(vectors, np.random.default_rng(0).standard_normal((points, WIDTH), np.float32))
        text.write_text("".join(f"This is number {number}.\n" for number in range(points)), encoding="utf-8")
        opened = "--model", f"vectors:{vectors}", "--data", f"en={text}"
        with server(OURS, *opened) as (address, process), browser.new_context() as context:
            tab = context.new_page()
            tab.set_viewport_size({"width": 1280, "height": 1000})
            query = {"data": f"{text.name} (en)", "pairs": f"{points:,}", "map": "PCA"}
            start = time.perf_counter()
            shown(tab, f"{address}/latents?{urlencode(query)}")
            return until(start, lambda: drawn(tab, points)), process.memory_info().rss / 1e6


def until(start: float, wait: Callable[[], object]) -> float:
    """Seconds from a moment until `wait` returns."""
    wait()
    return time.perf_counter() - start


@contextmanager
def server(root: Path, *arguments: str) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a checkout's app, and its process, as soon as it answers."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ["--server.headless", "true", "--server.port", str(port), "--", *arguments]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", *options]
    environment = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while True:
            with suppress(URLError, OSError):
                urlopen(f"http://localhost:{port}/_stcore/health", timeout=1)
                break
            time.sleep(0.02)
        yield f"http://localhost:{port}", psutil.Process(process.pid)
        process.kill()


def shown(tab: Page, address: str) -> None:
    """The page has its heading."""
    tab.goto(address)
    tab.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)


def drawn(tab: Page, least: int) -> None:
    """A map has that many points, and all is at rest."""
    tab.wait_for_function(POINTS, arg=least, timeout=PATIENCE)
    tab.wait_for_selector(AT_REST, timeout=PATIENCE)


def switches(tab: Page) -> list[float]:
    """Seconds to the heading of each page of the app, the second time that it is opened."""
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
            tab.wait_for_selector(AT_REST, timeout=PATIENCE)
            tab.wait_for_timeout(300)
    return times


def lasso(tab: Page) -> float:
    """Seconds from the end of a lasso around most of the first map until the count of what it selected is there."""
    tab.wait_for_timeout(1_000)
    box = tab.locator(".nsewdrag").first.bounding_box()
    assert box
    corners: Sequence[tuple[float, float]] = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.04)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    tab.mouse.move(*points[0])
    tab.mouse.down()
    for point in points[1:]:
        tab.mouse.move(*point, steps=2)
    begun = time.perf_counter()
    tab.mouse.up()
    tab.get_by_text(re.compile(r"[\d,]+ (selected )?sentences( selected)?$")).and_(
        tab.get_by_text(re.compile("selected"))
    ).first.wait_for(timeout=PATIENCE)
    return time.perf_counter() - begun


if __name__ == "__main__":
    page(rows, __doc__)
