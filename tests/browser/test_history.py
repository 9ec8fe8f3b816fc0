"""The browser's Back button: one step leads to the previous page, with the typed text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import HEADINGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
Turn = Callable[[Page, str], None]
FIELDS = [  # page, and label of its field
    ("A sentence", "Your sentence"),
    ("Meaning by style", "Meanings, one per line"),
]


def test_back_brings_back_what_was_typed(
    visit: Visit, settle: Callable[[Page], None], turn_to: Turn, address: str
) -> None:
    page = visit(address, quiet_404=True)
    for title, label in FIELDS:
        if title != FIELDS[0][0]:
            turn_to(page, title)
        page.get_by_label(label, exact=True).fill("Tu es en retard.")
        page.get_by_label(label, exact=True).blur()
        settle(page)
    turn_to(page, "Model and data")
    for title in [title for title, _ in reversed(FIELDS)]:
        page.go_back()
        heading = page.get_by_role("heading", level=1, name=HEADINGS.get(title, title))
        expect(heading).to_be_visible(timeout=60_000)
        if label := dict(FIELDS).get(title):
            expect(page.get_by_label(label, exact=True)).to_have_value("Tu es en retard.", timeout=60_000)
