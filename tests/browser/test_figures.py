"""Saved figures, drawn by the browser: for print, and as vector graphics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
OUTSIDE = """() => { const drawing = document.querySelector("svg.main-svg").getBoundingClientRect();
  return [...document.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < drawing.left || box.right > drawing.right ||
      box.top < drawing.top || box.bottom > drawing.bottom);
  }).map(text => text.textContent); }"""


@pytest.fixture
def save(tmp_path: Path) -> Callable[[Page, str], Path]:
    """save(page, kind): the file that is saved by a button of the open list of exports."""

    def press(page: Page, kind: str) -> Path:
        with page.expect_download() as download:
            page.get_by_test_id("stPopoverBody").get_by_role("button", name=kind).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    return press


def test_a_figure_is_saved_for_print_and_as_vectors(
    visit: Callable[..., Page], save: Callable[[Page, str], Path], address: str
) -> None:
    page = visit(f"{address}/probes", theme="dark", quiet_404=True)
    page.get_by_role("button", name="Export").first.click()
    png, svg = save(page, "PNG"), save(page, "SVG")
    assert png.stem == svg.stem and png.stem.startswith("bgt-probes")
    with Image.open(png) as image:
        assert image.width >= 2000 and image.info["dpi"] == pytest.approx((300, 300), abs=0.01)
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    drawing = svg.read_text("utf-8")
    assert "<image" not in drawing and "data:image" not in drawing and "Source Sans" not in drawing
    expect(page.get_by_role("status").filter(has_text="Saved")).to_contain_text(svg.name)
    page.set_content(drawing)  # on its own, without the app's fonts
    expect(page.locator("text").filter(has_text="Test accuracy")).to_have_count(1)
    assert page.evaluate(OUTSIDE) == []
