"""Pages that open short: nothing is taller than two screens before the user asks for more."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from app.core import startup

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MOST = 2_000  # pixels, at 1,280 wide
HEIGHT = "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"


def test_no_page_is_taller_than_two_thousand_pixels(
    visit: Callable[..., Page], settle: Callable[[Page], None], serve: Callable[..., str]
) -> None:
    """Of the model of most languages, which has the longest pages."""
    (model,) = [title for title in startup.shipped() if title.startswith("bgt-multilingual")]
    page = visit(f"{serve()}/?{urlencode({'ckpt': model})}")
    heights = {}
    for link in page.get_by_test_id("stSidebarNavLink").all():
        link.click()
        settle(page)
        page.wait_for_timeout(500)  # figures are drawn a moment later
        heights[link.inner_text().split("\n")[-1]] = page.evaluate(HEIGHT)
    assert len(heights) >= 8 and min(heights.values()) > 100
    assert {title: height for title, height in heights.items() if height > MOST} == {}
