"""The browser's Back: one step leads to the page before, with what was typed there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
Turn = Callable[[Page, str], None]
FIELDS = [  # page and tab, label of the field
    ("", "Your sentence"),
    ("", "The other sentence"),
    ("similarity", "Left"),
    ("style", "Meanings, one per line"),
    ("style?how=One+sentence", "Style: how to say it"),
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


def test_one_step_back_from_the_maps_leads_to_the_sentence(
    visit: Visit, settle: Callable[[Page], None], address: str
) -> None:
    page = visit(address)
    field = page.get_by_label("Your sentence")
    for text in ("The cat sleeps.", "A dog barks."):
        field.fill(text)
        field.press("Enter")
        settle(page)
        page.get_by_role("link", name="See it on both maps").click()
        expect(page).to_have_url(re.compile(r"/latents\?(?=.*own=)(?=.*rows=own)"), timeout=60_000)
        settle(page)
        page.go_back()
        expect(field).to_have_value(text, timeout=60_000)
        settle(page)
