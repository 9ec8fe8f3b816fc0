"""Fixtures for tests in a browser: `streamlit run` runs the app in one process, and Chromium runs in another."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from probes.results.store import Cell, write_cells

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
LOCAL = ("http://localhost:", "data:", "blob:")  # the prefixes of the URLs that a page may request
HEADINGS = {"A sentence": "A sentence, in two parts"}
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",  # CI runs as root, which the sandbox refuses
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip

# Checks that all parts of a page are opaque. Streamlit fades old parts until the script has drawn them again.
OPAQUE = """() => [...document.querySelectorAll("[data-testid=stElementContainer]")].every(
  element => getComputedStyle(element).opacity === "1")"""
# Accessibility rule -> CSS selector of the elements that may violate it. A wide table of Streamlit scrolls inside a box
# without tabindex, but browsers make this box focusable anyway.
EXCLUDED = {"scrollable-region-focusable": "[data-testid=stTable]"}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
VIOLATIONS = """async ([excluded, rules, part]) => {
  const options = { runOnly: rules, resultTypes: ["violations"] };
  const { violations } = await axe.run(part || document, options);
  const kept = (rule, { target: [selector] }) =>
    !(excluded[rule] && document.querySelector(selector)?.closest(excluded[rule]));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) =>
    nodes.filter(node => kept(id, node)).map(node =>
      [id, node.html.slice(0, 120), node.failureSummary.split("\\n").slice(1).join(" ").trim()].join(" | ")));
}"""


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return the path of the system's Chromium. Skip the test if Chromium is not installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("BGT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not path:
        pytest.skip(f"no Chromium: none of {', '.join(names)} is on PATH, and BGT_CHROMIUM is not set")
    return path


@pytest.fixture(scope="session")
def chromium(chromium_path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, subprocess.Popen]]:
    """All apps that the tests have started: URL -> process."""
    running: dict[str, subprocess.Popen] = {}
    yield running
    for process in running.values():
        process.kill()  # `terminate` would let Streamlit wait for running scripts
        process.wait()


@pytest.fixture(scope="session")
def serve(servers: dict[str, subprocess.Popen], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """serve(*arguments, cwd): start the app with these arguments in the folder `cwd`, and return its URL."""

    def start(*arguments: str, cwd: Path | None = None) -> str:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        options = ["--server.headless", "true", "--server.port", str(port)]
        command = [sys.executable, "-m", "streamlit", "run", str(MAIN), *options, "--", *arguments]
        folder = tmp_path_factory.mktemp("elsewhere")
        address = f"http://localhost:{port}"
        with (folder / "log").open("w") as log:
            servers[address] = subprocess.Popen(command, cwd=cwd or folder, stdout=log, stderr=subprocess.STDOUT)
        for _ in range(300):
            assert servers[address].poll() is None, (folder / "log").read_text()
            try:
                urlopen(f"{address}/_stcore/health", timeout=1)
                return address
            except (URLError, OSError):
                time.sleep(0.1)
        raise AssertionError((folder / "log").read_text())

    return start


@pytest.fixture(scope="session")
def address(serve: Callable[..., str], saved: Path, cell: Cell, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an app with two untrained models and results of a probe, started outside the repository."""
    models, results = (tmp_path_factory.mktemp(name) for name in ("models", "results"))
    for name in ("first", "second"):
        shutil.copytree(saved, models / name)
    of_first = replace(cell, model=str(models / "first"))
    write_cells(results / "en.parquet", [of_first])
    return serve("--model", str(models), "--results", str(results))


def within(seconds: float) -> float:
    """Convert seconds to a time limit in milliseconds, longer if other programs keep the processors busy."""
    return 1000 * seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def lasso(page: Page, side: int, low: float = 0.3, high: float = 0.7) -> None:
    """Draw a lasso on the map with the index `side`, from `low` to `high`: fractions of the map's width and height."""
    box = page.locator(".bgt-map canvas").nth(side).bounding_box()
    corners = [(low, low), (high, low), (high, high), (low, high), (low, low + 0.02)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=2)  # the selection is updated at every step
    page.mouse.up()


STATES = """at => { const view = window.bgtMaps?.view, map = view?.maps[at];
  return !map ? [] : view.rows.id.filter((_, row) => map.panelOf[row] >= 0 && view.states[row] === 3).sort(); }"""


def shown(page: Page, side: int) -> list[str]:
    """Return the ids of the rows on a map that are neither hidden nor faded."""
    return page.evaluate(STATES, side)


def lit(page: Page, side: int) -> list[str]:
    """Return the ids of the rows that are highlighted on a map."""
    return shown(page, side) if page.evaluate("Boolean(window.bgtMaps?.view?.lit?.lit)") else []


def turn_to(page: Page, title: str) -> None:
    """Open the page with this title from the sidebar."""
    page.get_by_test_id("stSidebarNavLink").filter(has_text=title).click()
    expect(page.get_by_role("heading", level=1, name=HEADINGS.get(title, title))).to_be_visible(timeout=20_000)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the page's script has run and its output is drawn."""
    page.wait_for_timeout(200)  # wait until the script has begun
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=90_000)
    page.wait_for_timeout(200)
    page.wait_for_function(OPAQUE, timeout=20_000)


def violations(page: Page, part: str = "", rules: list[str] = RULES) -> list[str]:
    """Return the serious accessibility violations on a page, or in a part of it, each as text: rule, markup, reason."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE_SCRIPT)
    return page.evaluate(VIOLATIONS, [EXCLUDED, rules, part and f"[data-testid={part}]"])


@pytest.fixture(scope="session")
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """One browser context for all tests, so that the app's files are downloaded once. Each page is a new session."""
    with chromium.new_context() as context:
        yield context


@pytest.fixture
def visit(context: BrowserContext) -> Iterator[Callable[..., Page]]:
    """visit(URL): open a page, and wait until it is drawn. After the test, check that there were no errors and no
    requests to other servers."""
    pages: list[Page] = []
    wrong: list[str] = []

    def go(address: str, width: int = 1280, theme: str = "light", quiet_404: bool = False) -> Page:
        def note(message: ConsoleMessage) -> None:
            # on every page but the first, Streamlit requests its files first relative to the page's URL, where they
            # are missing (404), and then at the right URL
            if message.type == "error" and not (quiet_404 and "404" in message.text):
                wrong.append(f"{message.text} {message.location['url']}")

        page = context.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(color_scheme=theme)
        page.on("console", note)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url.startswith(LOCAL) or wrong.append(request.url))
        page.goto(address)
        page.get_by_role("heading", level=1).wait_for(timeout=90_000)  # the app first imports its modules
        settle(page)
        return page

    yield go
    for page in pages:
        page.close()
    assert not wrong
