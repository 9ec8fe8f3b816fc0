"""The app on a phone: a swipe scrolls, wherever it begins, and titles can be read."""

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


def test_a_swipe_over_a_chart_scrolls_the_page(
    phone: Page, settle: Callable[[Page], None], within: Callable[[float], float], swipe: Callable, address: str
) -> None:
    phone.goto(f"{address}/probes")
    chart = phone.get_by_role("figure").first
    expect(chart).to_be_attached(timeout=within(60))
    settle(phone)
    chart.evaluate("e => e.scrollIntoView({block: 'center'})")
    box = chart.bounding_box()
    assert box
    assert phone.evaluate(OVERLAPS) == []
    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    before = phone.evaluate(scrolled)
    middle = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    swipe(phone, middle["x"], middle["y"])
    phone.wait_for_function(f"{scrolled} > {before + 100}", timeout=within(5))
