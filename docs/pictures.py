"""The pictures of the gallery and the README, taken anew of the model that ships: `python docs/pictures.py`.

Needs Chromium (BGT_CHROMIUM, or on PATH) and `pip install -e '.[app,dev]'`; takes a minute. Nothing is fetched.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from PIL import Image
from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).resolve().parent
PROBE = ["--lang", "en,fr", "--task", "length,punct-num", "--max-items", "800", "--seeds", "1"]


class Picture(NamedTuple):
    """A view of the app and what is done there before it is taken."""

    name: str
    view: str  # page and query
    theme: str = "light"
    size: tuple[int, int] = (1280, 1000)
    act: Callable[[Page], None] = lambda page: None


def lasso(page: Page) -> None:
    """Around the lower left of the English language latent."""
    box = page.locator(".nsewdrag").nth(1).bounding_box()
    assert box
    corners = [(0.2, 0.45), (0.55, 0.45), (0.55, 0.95), (0.2, 0.95), (0.2, 0.5)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=4)
    page.mouse.up()
    settle(page)


def scroll_to(heading: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("heading", name=heading).first.evaluate("e => e.scrollIntoView()")


PICTURES = (
    Picture("app.png", "latents?pairs=300", size=(1280, 900), act=lasso),
    Picture("gallery/latents-dark.webp", "latents?pairs=300&find=%3F", "dark"),
    Picture("gallery/clusters.webp", "latents?pairs=300&colour=Cluster+of+meaning"),
    Picture(
        "gallery/style.webp",
        "style?source=Can+you+help+me%3F&style=I+would+like+to+go+home+now.",
        act=lambda page: page.get_by_role("button", name="Generate").click(),
    ),
    Picture("gallery/direction.webp", "style?how=In+a+direction&move_question=1.0"),
    Picture(
        "gallery/similarity-dark.webp",
        "similarity?left=Where+is+the+station%3F&right=Tell+me+how+to+get+to+the+train+station.",
        "dark",
    ),
    Picture("gallery/probes-dark.webp", "probes", "dark", act=scroll_to("Results")),
    Picture("gallery/sentences-dark.webp", "probes", "dark", act=scroll_to("Sentence by sentence")),
    Picture("gallery/languages.webp", "languages"),
    Picture("gallery/accuracies.webp", "languages?gaps=Accuracy"),
    Picture("gallery/phone.webp", "", size=(400, 900)),
)


@contextmanager
def app(results: Path) -> Iterator[str]:
    """The address of an app with these results."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ["--server.headless", "true", "--server.port", str(port), "--", "--results", str(results)]
    command = [sys.executable, "-m", "streamlit", "run", str(DOCS.parent / "app" / "main.py"), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(300):
            try:
                urlopen(f"http://localhost:{port}/_stcore/health", timeout=1)
                break
            except (URLError, OSError):
                time.sleep(0.1)
        yield f"http://localhost:{port}"
        process.kill()


def settle(page: Page) -> None:
    """Until the script has run and what it sent is drawn."""
    page.wait_for_timeout(500)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=120_000)
    page.wait_for_timeout(800)


def measure(folder: Path) -> None:
    """Two probes on the example sentences, with their predictions."""
    command = [sys.executable, "-c", "import probes.cli; probes.cli.main()", *PROBE, "--json", "--predictions"]
    with (folder / "probes.json").open("w") as file:
        subprocess.run([*command, str(folder / "probes.parquet")], stdout=file, check=True)


def take(page: Page, address: str, picture: Picture) -> None:
    width, height = picture.size
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if picture.theme == "dark" else "light")
    page.goto(f"{address}/{picture.view}")
    page.get_by_role("heading", level=1).wait_for(timeout=120_000)
    settle(page)
    picture.act(page)
    settle(page)
    image = Image.open(io.BytesIO(page.screenshot()))
    image.save(DOCS / picture.name, **({"quality": 80, "method": 6} if picture.name.endswith("webp") else {}))
    print(picture.name, flush=True)


def main() -> None:
    chromium = os.environ.get("BGT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        measure(Path(folder))
        with app(Path(folder)) as address:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page()
            for picture in PICTURES:
                if not names or picture.name in names:
                    take(page, address, picture)
            browser.close()


if __name__ == "__main__":
    main()
