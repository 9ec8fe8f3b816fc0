"""What only a browser can tell: the app opens, fits the window, links both maps, and stays on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as Late

import bgt_core

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "Overview": "A sentence, in two parts",
    "Two latents": "Two latents",
    "Change the style": "Change the style, keep the meaning",
}
Visit = Callable[..., Page]
Settle = Callable[[Page], None]


def turn_to(page: Page, name: str, settle: Settle) -> None:
    page.get_by_test_id("stSidebarNavLink").filter(has_text=name).click()
    expect(page.get_by_role("heading", level=1, name=PAGES[name])).to_be_visible(timeout=15_000)
    settle(page)


def test_it_opens_on_the_model_that_ships(visit: Visit, serve: Callable[..., str]) -> None:
    page = visit(serve(cwd=ROOT))
    step = json.loads((bgt_core.PRETRAINED / "config.json").read_text("utf-8"))["step"]
    expect(page.get_by_test_id("stSidebar")).to_contain_text(f"step {step:,}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_every_window_and_names_its_charts(
    visit: Visit, settle: Settle, address: str, theme: str
) -> None:
    page = visit(address, color_scheme=theme)
    for name, charts in zip(PAGES, (0, 2, 0), strict=True):
        turn_to(page, name, settle)
        assert page.get_by_test_id("stException").count() == 0
        expect(page.get_by_role("figure")).to_have_count(charts)
        assert all(figure.get_attribute("aria-label") for figure in page.get_by_role("figure").all())
        for width in (400, 768, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            fits = "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('[data-testid=stMain]'))"
            try:
                page.wait_for_function(fits, timeout=10_000)  # the charts take their new width a moment later
            except Late:
                pytest.fail(f"{name} scrolls sideways at {width}")


def test_a_lasso_lights_the_same_sentences_on_the_other_map(visit: Visit, settle: Settle, address: str) -> None:
    page = visit(address, viewport={"width": 1280, "height": 1000})
    turn_to(page, "Two latents", settle)
    for side in (0, 1):
        lasso(page, side)
        settle(page)
        left, right = (lit(page, chart) for chart in (0, 1))
        assert left and left == right
        expect(page.get_by_text(f"{len(left)} selected sentences")).to_be_visible()
    page.get_by_role("button", name="Clear the selection").click()
    settle(page)
    assert lit(page, 0) == lit(page, 1) == []


def lasso(page: Page, side: int) -> None:
    """Draw around the middle of a map."""
    box = page.locator(".nsewdrag").nth(side).bounding_box()
    corners = [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7), (0.3, 0.32)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=6)
    page.mouse.up()


def lit(page: Page, chart: int) -> list[str]:
    """Ids of the rows that stand out on a map, as plotly holds them."""
    return page.evaluate(
        """chart => document.querySelectorAll(".js-plotly-plot")[chart].data
            .filter(trace => trace.mode === "markers" && trace.selectedpoints)
            .flatMap(trace => trace.selectedpoints.map(at => trace.customdata[at][0])).sort()""",
        chart,
    )


def test_an_example_leads_to_its_output(visit: Visit, settle: Settle, address: str) -> None:
    page = visit(address)
    page.get_by_role("link", name="Say in French what is written in English").click()
    expect(page.get_by_role("heading", level=1, name=PAGES["Change the style"])).to_be_visible()
    settle(page)
    source = page.get_by_label("Source")
    assert source.input_value()
    expect(page).to_have_url(re.compile("lang=French"))  # Streamlit takes what a control does not know out again
    source.press("Control+Enter")
    expect(page.get_by_role("heading", name="Output")).to_be_visible(timeout=15_000)


def test_markup_in_a_sentence_stays_text(visit: Visit, settle: Settle, address: str) -> None:
    page = visit(address)
    turn_to(page, "Two latents", settle)
    page.get_by_role("button", name="Add sentences").click()
    page.get_by_label("Your sentences").fill("<img src=http://elsewhere.invalid/x onerror=alert(1)> & more")
    page.get_by_role("button", name="Draw as stars").click()
    settle(page)
    texts = page.evaluate(
        """[...document.querySelectorAll(".js-plotly-plot")].flatMap(chart =>
            chart.data.flatMap(trace => trace.text ?? []).filter(text => text.includes("elsewhere")))"""
    )
    assert len(texts) == 2 and not any("<img" in text for text in texts)
