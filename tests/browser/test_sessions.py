"""Several users at once, and users who leave: the others do not notice."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TEXTS = ("The cat sleeps.", "He is my friend.")
CELL = "table.grid td"
LINK = {"styles_en": "Is it late?", "glang": "English"}


def begin_a_probe(page: Page, settle: Callable[[Page], None]) -> None:
    """Start a probe that takes long enough to be stopped on any machine."""
    for setting, value in (("Sentences at most", "2,000"), ("Seeds", "5")):
        page.get_by_role("combobox", name=setting).click()
        page.get_by_role("option", name=value, exact=True).click()
    settle(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_be_attached(timeout=30_000)


def test_two_people_write_at_once_while_a_third_changes_the_model_and_a_fourth_leaves_in_the_middle_of_a_probe(
    visit: Callable[..., Page], settle: Callable[[Page], None], address: str
) -> None:
    pages, alone = [], {}
    for text in TEXTS:
        pages.append(visit(f"{address}/style?{urlencode(LINK | {'meanings_en': text})}", quiet_404=True))
        expect(pages[-1].locator(CELL)).to_have_count(1, timeout=60_000)
        settle(pages[-1])
        alone[text] = pages[-1].locator(CELL).inner_text()
    assert alone[TEXTS[0]] != alone[TEXTS[1]]
    third, leaving = visit(address), visit(f"{address}/probes", quiet_404=True)
    begin_a_probe(leaving, settle)
    leaving.close()
    for page, text in zip(pages, reversed(TEXTS), strict=True):  # now with the other user's text
        page.get_by_label("Meanings, one per line").fill(text)
        page.get_by_label("Meanings, one per line").press("Control+Enter")
    third.get_by_test_id("stSidebar").get_by_role("combobox").click()
    third.get_by_role("option", name="second").click()
    for page, text in zip(pages, reversed(TEXTS), strict=True):
        expect(page.locator(CELL)).to_have_text(alone[text].replace("\n", ""), timeout=60_000)
    settle(third)
    assert third.get_by_test_id("stException").count() == 0
