"""The browser's Back: one step leads to the page before, with what was typed there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
Turn = Callable[[Page, str], None]
FIELDS = [  # page and tab, label of the field
    ("", "Your sentence"),
    ("style", "Meanings, one per line"),
    ("latents", "Find in sentences"),
]


@pytest.mark.parametrize(("place", "label"), FIELDS)
def test_back_brings_back_what_was_typed(
    visit: Visit, settle: Callable[[Page], None], turn_to: Turn, address: str, place: str, label: str
) -> None:
    page = visit(f"{address}/{place}", quiet_404=True)
    field = page.get_by_label(label, exact=True)
    field.fill("Tu es en retard.")
    field.blur()
    settle(page)
    for title in ("Probes", "Model and data"):
        turn_to(page, title)
    page.go_back()
    expect(page.get_by_role("heading", level=1, name="Probes")).to_be_visible(timeout=60_000)
    page.go_back()
    expect(field).to_have_value("Tu es en retard.", timeout=60_000)
