"""Take the pictures of the gallery and the README: all by `python -m docs.pictures`, or some by naming their views:
`python -m docs.pictures pairs models`. This needs Chromium (at BGT_CHROMIUM or on PATH) and `pip install -e
'.[bench,dev]'`, and takes a few minutes."""

import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from bench.app import FLAGS, at_rest, tab_of

DOCS = Path(__file__).resolve().parent
TO_TOP = "e => e.scrollIntoView()"
README = "sentence-wide-light.webp"  # the picture that the README shows; it is also saved as app.png


class View(NamedTuple):
    """A page of the app, and a function that clicks or scrolls on the page before the pictures are taken."""

    name: str
    address: str  # path and query, which follow the address of the app
    act: Callable[[Page], None] = lambda page: None
    tall: int = 1_000  # height of the wide picture in pixels


def split(page: Page) -> None:
    """Open an external encoder, and split it."""
    box = page.get_by_role("combobox", name="Encoder")
    box.fill("baseline:random")
    box.press("Enter")
    page.get_by_test_id("stBaseButton-secondaryFormSubmit").first.click()
    page.get_by_text("baseline:random is open").wait_for(timeout=120_000)
    settle(page)
    page.get_by_text("Split its vectors all the same").click()  # a question, because the encoder has two latents
    page.get_by_role("button", name="Split", exact=True).click()
    page.get_by_role("heading", name="Before:").wait_for(timeout=300_000)


def compared(page: Page) -> None:
    """Scroll to the part of the page that compares two models."""
    page.get_by_role("radiogroup", name="Compare by").evaluate(TO_TOP)


BOTH = "pairs?with=bgt-multilingual,+as+shipped"
VIEWS = (
    View("sentence", "", tall=1_600),  # tall enough to include the recombination
    View("latents", "maps"),
    View("pairs", "pairs?sentence=Tu+es+fatigu%C3%A9.&language=French&other=Vous+%C3%AAtes+fatigu%C3%A9."),
    View("grid", "rewrite"),
    View("direction", "rewrite", lambda page: page.get_by_role("heading", name="In a direction").evaluate(TO_TOP)),
    View("probes", "probes", lambda page: page.get_by_role("heading", name="Results").first.evaluate(TO_TOP)),
    View("models", f"{BOTH}&by=Translations+found", compared),
    View("disagreements", BOTH, compared),
    View("split", "split", split),
    View("model", "model"),
)
SIZES = {"wide": (1280, 1000), "narrow": (400, 900)}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def settle(page: Page) -> None:
    """Wait until the page's script has run and its output is drawn."""
    page.wait_for_timeout(500)
    at_rest(page)
    page.wait_for_timeout(800)


def take(page: Page, address: str, view: View) -> None:
    """Take four pictures: wide and narrow, in the light and the dark theme."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": view.tall if size == "wide" else height})
            page.goto(f"{address}/{view.address}")
            page.get_by_role("heading", level=1).wait_for(timeout=120_000)
            settle(page)
            view.act(page)
            settle(page)
            image = Image.open(io.BytesIO(page.screenshot()))
            name = f"{view.name}-{size}-{theme}.webp"
            image.save(DOCS / "gallery" / name, quality=80, method=6)
            if name == README:
                image.save(DOCS / "app.png", optimize=True)
            print(name, flush=True)


def main() -> None:
    chromium = os.environ.get("BGT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    names = sys.argv[1:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        with tab_of(browser) as (page, address, _):
            for view in VIEWS:
                if not names or view.name in names:
                    take(page, address, view)
        browser.close()


if __name__ == "__main__":
    main()
