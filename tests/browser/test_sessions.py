"""Several people, and people who leave: nobody else notices."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SOURCE, STYLE = "The cat sleeps.", "Is it late?"
LINK = {"how": "One sentence", "source": SOURCE, "style": STYLE, "source_lang": "en", "lang": "en", "search": "Sample"}


def begin_a_probe(page: Page, settle: Callable[[Page], None]) -> None:
    """Press Run, with enough work for any machine to be stopped in."""
    for setting, value in (("Sentences at most", "2,000"), ("Seeds", "5")):
        page.get_by_role("combobox", name=setting).click()
        page.get_by_role("option", name=value, exact=True).click()
    page.get_by_test_id("stCheckbox").get_by_text("Learning curve").click()
    settle(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_be_attached(timeout=30_000)


def test_two_people_write_at_once_while_a_third_changes_the_model_and_a_fourth_leaves_in_the_middle_of_a_probe(
    visit: Callable[..., Page], settle: Callable[[Page], None], address: str
) -> None:
    pages, alone = {}, {}
    for seed in (1, 2):
        pages[seed] = visit(f"{address}/style?{urlencode(LINK | {'seed': seed})}", quiet_404=True)
        expect(pages[seed].locator("p.written").first).to_be_visible(timeout=60_000)
        settle(pages[seed])
        alone[seed] = pages[seed].locator("p.written").first.inner_text()
    assert alone[1] != alone[2]
    for seed, page in pages.items():
        page.get_by_text("Decoding options").first.click()
        page.get_by_label("Seed").fill(str(3 - seed))  # the other's
        page.get_by_label("Seed").press("Enter")
        expect(page.get_by_text("Not written yet")).to_be_visible(timeout=30_000)
        settle(page)
    third, leaving = visit(address), visit(f"{address}/probes", quiet_404=True)
    begin_a_probe(leaving, settle)
    leaving.close()
    for page in pages.values():
        page.get_by_role("button", name="Generate").click()
    third.get_by_test_id("stSidebar").get_by_role("combobox").click()
    third.get_by_role("option", name="second").click()
    for seed, page in pages.items():
        expect(page.locator("p.written").first).to_have_text(alone[3 - seed], timeout=60_000)
    settle(third)
    assert third.get_by_test_id("stException").count() == 0
