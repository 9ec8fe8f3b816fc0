"""Text from a link or a file remains text in the browser: no links, no images, no requests."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from tests.app.hostile import HOSTILE, STRANGER

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize(
    ("page", "parameters"),
    [("", ("ckpt",)), ("", ("sentence",)), ("style", ("meanings_en",)), ("latents", ("find", "start"))],
    ids=("model", "start", "style", "latents"),
)
def test_a_link_makes_the_browser_ask_nobody(
    visit: Callable[..., Page], address: str, page: str, parameters: tuple[str, ...]
) -> None:
    link = urlencode(dict.fromkeys(parameters, HOSTILE))
    shown = visit(f"{address}/{page}?{link}", quiet_404=True)  # fails if another server than the app's is asked
    if "ckpt" in parameters:
        shown.get_by_text("This link can't be opened here").wait_for()
    assert "stranger.test" in shown.content()
    assert not shown.locator(f"a[href^='{STRANGER}'], img[src^='{STRANGER}']").count()
