"""The app as a person meets it: `streamlit run` in one process, Chromium in another."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"
FLAGS = [
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The system's Chromium; skips, and says why, where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("BGT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not found:
        pytest.skip(f"no Chromium: none of {', '.join(names)} is on PATH, and BGT_CHROMIUM is not set")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """serve(*arguments, cwd): the address of an app started from that folder."""
    running: list[subprocess.Popen] = []

    def start(*arguments: str, cwd: Path | None = None) -> str:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        options = ["--server.headless", "true", "--server.port", str(port)]
        command = [sys.executable, "-m", "streamlit", "run", str(MAIN), *options, "--", *arguments]
        folder = tmp_path_factory.mktemp("elsewhere")
        with (folder / "log").open("w") as log:
            running.append(subprocess.Popen(command, cwd=cwd or folder, stdout=log, stderr=subprocess.STDOUT))
        address = f"http://localhost:{port}"
        for _ in range(300):
            assert running[-1].poll() is None, (folder / "log").read_text()
            try:
                urlopen(f"{address}/_stcore/health", timeout=1)
                return address
            except (URLError, OSError):
                time.sleep(0.1)
        raise AssertionError((folder / "log").read_text())

    yield start
    for process in running:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="session")
def address(serve: Callable[..., str], saved: Path) -> str:
    """An app on an untrained model, started from a folder that is not the repository."""
    return serve("--model", str(saved))


@pytest.fixture
def settle() -> Callable[[Page], None]:
    """settle(page): wait until the script has run and what it sent is drawn."""

    def wait(page: Page) -> None:
        page.wait_for_timeout(300)
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        page.wait_for_timeout(300)

    return wait


@pytest.fixture
def visit(chromium: Browser, settle: Callable[[Page], None]) -> Iterator[Callable[..., Page]]:
    """visit(address, **context): a settled page; at the end, nothing may have gone wrong in it or left this machine."""
    contexts, wrong = [], []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(f"{message.text} {message.location['url']}")

    def go(address: str, **options: object) -> Page:
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: local(request.url) or wrong.append(request.url))
        page.goto(address)
        page.get_by_role("heading", level=1).wait_for(timeout=15_000)
        settle(page)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not wrong


def local(url: str) -> bool:
    return url.startswith(("http://localhost:", "data:", "blob:"))
