"""No typed text is lost if a user fills in a field and the next one at once, while the page runs again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PAIRS = [  # page, and the labels of its fields
    ("", "Your sentence", "The other sentence"),
    ("style", "Meanings, one per line", "Styles, one per line"),
    ("pairs", "Left", "Right"),
]


@pytest.mark.parametrize(("place", "first", "second"), PAIRS)
def test_two_fields_keep_what_is_typed_into_them_without_a_pause(
    visit: Callable[..., Page],
    settle: Callable[[Page], None],
    within: Callable[[float], float],
    address: str,
    place: str,
    first: str,
    second: str,
) -> None:
    page = visit(f"{address}/{place}", quiet_404=True)
    fields = [page.get_by_label(name, exact=True) for name in (first, second)]
    for texts in (("The cat sleeps.", "Is it late?"), ("A dog.", "What?")):
        for field, text in zip(fields, texts, strict=True):
            field.click(timeout=within(30))
            page.keyboard.press("Control+A")
            page.keyboard.type(text, delay=40)  # at a user's speed; the page runs again meanwhile
        page.wait_for_timeout(500)
        settle(page)
        for field, text in zip(fields, texts, strict=True):
            expect(field).to_have_value(text)
