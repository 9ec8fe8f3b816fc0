"""The app on a phone: a swipe scrolls wherever it starts, and titles are readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
OVERLAPS = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap(plot => {
  const bar = plot.querySelector(".modebar-group")?.getBoundingClientRect();
  return !bar ? [] : [...plot.querySelectorAll(".gtitle")].filter(title => {
    const box = title.getBoundingClientRect();
    return box.right > bar.left && box.left < bar.right && box.bottom > bar.top && box.top < bar.bottom;
  }).map(title => title.textContent);
})"""


@pytest.fixture
def phone(chromium: Browser) -> Iterator[Page]:
    with chromium.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True) as context:
        yield context.new_page()


@pytest.mark.parametrize(("address_of", "drawn"), [("probes", "[role=figure]"), ("latents?map=PCA", "[data-drawn]")])
def test_a_swipe_over_a_chart_or_a_map_scrolls_the_page(
    phone: Page,
    settle: Callable[[Page], None],
    within: Callable[[float], float],
    lit: Callable[[Page, int], list[str]],
    address: str,
    address_of: str,
    drawn: str,
) -> None:
    phone.goto(f"{address}/{address_of}")
    expect(phone.locator(drawn).first).to_be_attached(timeout=within(60))
    settle(phone)
    chart = phone.get_by_role("figure").first
    chart.evaluate("e => e.scrollIntoView({block: 'center'})")
    box = chart.bounding_box()
    assert box
    assert phone.evaluate(OVERLAPS) == []
    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    before = phone.evaluate(scrolled)
    swipe(phone, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    phone.wait_for_function(f"{scrolled} > {before + 100}", timeout=within(5))
    assert lit(phone, 0) == []


def test_the_first_map_is_in_sight(
    phone: Page, settle: Callable[[Page], None], within: Callable[[float], float], address: str
) -> None:
    phone.goto(f"{address}/latents?map=PCA")
    expect(phone.locator("[data-drawn]")).to_be_attached(timeout=within(60))
    settle(phone)
    box = phone.get_by_role("figure").first.bounding_box()
    assert box and box["y"] < 320


def swipe(page: Page, x: float, y: float) -> None:
    """Touch the screen at this place, and move up by 200 pixels."""
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for way in range(20, 220, 20):
        point = {"x": x, "y": y - way}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        page.wait_for_timeout(20)  # as slow as a finger; otherwise it is not recognised as a swipe
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
