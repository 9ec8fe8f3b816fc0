"""`make crowd`: ten people in the app at once for ten minutes, while its files are damaged and its server is restarted.

Each types, uploads, follows links and reloads, with a word of their own in every text. Meanwhile a model's folder is
replaced by another's, results are damaged and mended, and the server is killed and started again. Held: nobody ever
sees another's word or a traceback, every page comes to rest, and memory stays within bounds.

Prints what was wrong, and a table; `--write` puts that into docs/reliability.md. Needs Chromium (BGT_CHROMIUM, or on
PATH).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import psutil
from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import Error as BrowserError

import bgt_core
from attack import pages
from attack.soak import AT_REST, CHROMIUM, ROOT
from bgt_core.grammar import pairs

PATIENCE = 180_000  # milliseconds until a page has to be at rest; ten people share two processors
GIGABYTES = 4.0  # memory limit of the server
PAGES = ("", "latents", "style", "similarity", "plane", "questions", "probes", "languages", "models", "model")
HOSTILE = (
    "../../../../etc/passwd",
    "<script>alert(1)</script>",
    "nan",
    "-1",
    "1e309",
    "\u202e\u0000\ufffe",
    "a" * 8_000,
    "en0-999999999",
    "{{7*7}}",
    "%",
    "",
)
PARAMETERS = (
    "ckpt",
    "rows",
    "sentence",
    "source",
    "style",
    "find",
    "question",
    "seed",
    "kind",
    "lang",
    "task",
    "nothing",
)


@dataclass
class Seen:
    """What the people met."""

    visits: int = 0
    slowest: float = 0.0  # seconds
    wrong: list[str] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)


class Server:
    """The app on a folder of models and one of results, which can be killed and started again at its address."""

    def __init__(self, folder: Path):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            self.port = free.getsockname()[1]
        self.models, self.results, self.log = folder / "models", folder / "results", folder / "log"
        self.results.mkdir()
        shipped = Path(bgt_core.__file__).parent / "pretrained"
        for name, model in (("first", "bgt-en-fr"), ("second", "bgt-multilingual")):
            shutil.copytree(shipped / model, self.models / name)
        (self.results / "own.json").write_text(json.dumps({"results": []}), "utf-8")
        self.address = f"http://localhost:{self.port}"
        self.life: int | None = None  # the number of the process; None while the server is down
        self.start()

    def start(self) -> None:
        options = ["--server.headless", "true", "--server.port", str(self.port)]
        command = [sys.executable, "-m", "streamlit", "run", "app/main.py", *options, "--"]
        arguments = ["--model", str(self.models), "--results", str(self.results)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen([*command, *arguments], cwd=ROOT, stdout=log, stderr=log)
        while True:
            with suppress(URLError, OSError):
                urlopen(f"{self.address}/_stcore/health", timeout=1)
                self.life = self.process.pid
                return
            time.sleep(0.1)

    def kill(self) -> None:
        self.life = None
        self.process.kill()
        self.process.wait()

    def megabytes(self) -> float:
        return psutil.Process(self.process.pid).memory_info().rss / 1e6


class Person:
    """One of those who use the app, with a word that nobody else writes."""

    def __init__(self, number: int, server: Server, others: int, folder: Path, seed: int):
        self.draw, self.server, self.number = random.Random(f"{seed} {number}"), server, number
        self.word = word(number)
        self.others = [word(other) for other in range(others) if other != number]
        self.file = folder / f"{self.word}.txt"
        texts = dict.fromkeys(pair.texts["en"] for pair in pairs(40))
        self.file.write_text("\n".join(f"{self.word} says: {text}" for text in texts), "utf-8")

    async def live(self, browser: Browser, seen: Seen, until: float) -> None:
        """Do one thing after another; a restart of the server in the middle of one is no fault of the page."""
        page = await self.opened(browser)
        deeds = (self.visit, self.visit, self.follow, self.type, self.upload, self.reload, self.generate)
        while time.monotonic() < until:
            deed, begun, life = self.draw.choice(deeds), time.monotonic(), self.server.life
            try:
                async with asyncio.timeout(PATIENCE / 1_000):  # `evaluate` and `count` have no limit of their own
                    await deed(page)
                    await page.wait_for_selector(AT_REST)
                    trouble = await self.trouble(page)
            except (BrowserError, TimeoutError) as error:
                trouble = f"{(str(error) or 'no answer').splitlines()[0][:300]} at {page.url[:80]}"
                await self.closed(page)  # one that was interrupted also interrupts what comes next: go on in a new one
                page = await self.opened(browser)
            if trouble and life is not None and self.server.life == life:
                seen.wrong.append(f"{self.word}, {deed.__name__}: {trouble}")
            seen.visits += 1
            seen.slowest = max(seen.slowest, time.monotonic() - begun)
        await self.closed(page)

    async def opened(self, browser: Browser) -> Page:
        """A new page of the app, or an empty one while the server is down."""
        page = await browser.new_page()
        page.set_default_timeout(PATIENCE)
        with suppress(BrowserError):
            await page.goto(self.server.address)
        return page

    async def closed(self, page: Page) -> None:
        """Close it; a page that the restart left half loaded may never answer, and goes with the browser."""
        with suppress(BrowserError, TimeoutError):
            async with asyncio.timeout(10):
                await page.close()

    async def trouble(self, page: Page) -> str:
        """Another's word or a traceback on the page; "" if there is neither."""
        shown = await page.evaluate(
            "() => document.body.innerText + [...document.querySelectorAll('input, textarea')].map(e => e.value)"
        )
        if strange := [name for name in self.others if name in shown]:
            return f"sees the word {strange[0]}"
        if await page.get_by_test_id("stException").count():
            return f"a traceback: {(await page.get_by_test_id('stException').first.inner_text())[:300]}"
        return ""

    async def visit(self, page: Page) -> None:
        await page.goto(f"{self.server.address}/{self.draw.choice(PAGES)}")
        await page.get_by_role("heading", level=1).first.wait_for()

    async def follow(self, page: Page) -> None:
        """A link with values that no page has made."""
        chosen = self.draw.sample(PARAMETERS, 3)
        query = "&".join(f"{name}={quote(self.draw.choice(HOSTILE))}" for name in chosen)
        await page.goto(f"{self.server.address}/{self.draw.choice(PAGES)}?{query}")
        await page.get_by_role("heading", level=1).first.wait_for()

    async def type(self, page: Page) -> None:
        await page.goto(f"{self.server.address}/")
        box = page.get_by_label("Your sentence")
        await box.fill(f"{self.word} {self.draw.choice(('sleeps', 'runs', 'is here'))}.")
        await box.press("Enter")
        await page.wait_for_timeout(self.draw.choice((0, 300)))

    async def upload(self, page: Page) -> None:
        await page.goto(f"{self.server.address}/latents")
        await page.get_by_role("button", name="Upload").click()
        dialog = page.get_by_role("dialog")
        await dialog.locator("input[type=file]").set_input_files(self.file)
        await dialog.get_by_role("button", name="Use these").click()
        await dialog.wait_for(state="detached")

    async def reload(self, page: Page) -> None:
        await page.reload()

    async def generate(self, page: Page) -> None:
        await page.goto(f"{self.server.address}/style?source={quote(self.word)}+sleeps.")
        await page.get_by_role("tab", name="One sentence").click()
        await page.get_by_role("button", name="Generate").click()


def word(number: int) -> str:
    return "Quo" + "bdfgklmnprstvz"[number % 14] + "ak" * (1 + number // 14)


async def disturb(server: Server, seen: Seen, minutes: float) -> None:
    """A tenth of the time each: replace the model, damage the results, mend both, restart."""
    step = minutes * 60 / 10
    await asyncio.sleep(2 * step)
    (server.models / "first").rename(server.models / "away")
    shutil.copytree(server.models / "second", server.models / "first")
    await asyncio.sleep(step)
    (server.results / "own.json").write_bytes(b'{"results": [\xff')
    await asyncio.sleep(step)
    weights = server.models / "second" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1_000])
    await asyncio.sleep(step)
    shutil.rmtree(server.models / "first")
    (server.models / "away").rename(server.models / "first")
    shutil.rmtree(server.models / "second")
    shutil.copytree(Path(bgt_core.__file__).parent / "pretrained" / "bgt-multilingual", server.models / "second")
    (server.results / "own.json").write_text(json.dumps({"results": []}), "utf-8")
    await asyncio.sleep(step)
    seen.megabytes.append(server.megabytes())
    server.kill()
    await asyncio.sleep(3)
    await asyncio.to_thread(server.start)


async def crowd(people: int, minutes: float, seed: int, folder: Path) -> Seen:
    """Let them all in, for so long."""
    server, seen = Server(folder), Seen()
    crowd = [Person(number, server, people, folder, seed) for number in range(people)]
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            until = time.monotonic() + minutes * 60
            await asyncio.gather(*(one.live(browser, seen, until) for one in crowd), disturb(server, seen, minutes))
            seen.megabytes.append(server.megabytes())
            await browser.close()
    finally:
        server.kill()
    if (most := max(seen.megabytes)) > GIGABYTES * 1_000:
        seen.wrong.append(f"the server held {most:,.0f} MB")
    if "Traceback" in (log := server.log.read_text("utf-8", errors="replace")):
        seen.wrong.append(f"the server's log: {log[log.index('Traceback') :][:2_000]}")
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack.crowd", description=__doc__)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="seed of all actions")
    parser.add_argument("--write", action="store_true", help="write the table to docs/reliability.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bgt-crowd-") as folder:
        seen = asyncio.run(crowd(options.people, options.minutes, options.seed, Path(folder)))
    for trouble in seen.wrong:
        print(trouble)
    table = (
        "| people | minutes | things done | slowest, s | server, MB before the restart and at the end | wrong |\n"
        "|---:|---:|---:|---:|---:|---:|\n"
        f"| {options.people} | {options.minutes:g} | {seen.visits} | {seen.slowest:.0f} | "
        f"{' and '.join(f'{held:,.0f}' for held in seen.megabytes)} | {len(seen.wrong)} |"
    )
    print(table)
    if options.write:
        pages.write("crowd", table)
    sys.exit(bool(seen.wrong))


if __name__ == "__main__":
    main()
