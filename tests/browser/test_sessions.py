"""Several people, and people who leave: nobody else notices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
Settle = Callable[[Page], None]
SOURCE, STYLE = "The cat sleeps.", "Is it late?"


def ask(page: Page, seed: int) -> None:
    """Fill the form in and send it, with sampling from that seed."""
    page.get_by_role("tab", name="One sentence").click()
    page.get_by_text("Decoding options").first.click()
    page.get_by_text("Sample", exact=True).click()
    page.get_by_label("Seed").fill(str(seed))
    page.get_by_label("Seed").press("Enter")
    page.get_by_label("Source: what to say").fill(SOURCE)
    page.get_by_label("Style: how to say it").fill(STYLE)


def expect_output(page: Page, text: str) -> None:
    expect(page.locator("p.written").first).to_have_text(text, timeout=60_000)


@pytest.fixture
def alone(visit: Visit, settle: Settle, address: str) -> Callable[[int], str]:
    """alone(seed): what is written for one person with nobody else there."""

    def write(seed: int) -> str:
        page = visit(f"{address}/style", quiet_404=True)
        ask(page, seed)
        settle(page)
        page.get_by_role("button", name="Generate").click()
        expect(page.get_by_text("Not written yet")).to_have_count(0, timeout=30_000)
        settle(page)
        text = page.locator("p.written").first.inner_text()
        page.close()
        return text

    return write


def test_two_people_write_at_once_and_a_third_changes_the_model(
    visit: Visit, settle: Settle, alone: Callable[[int], str], address: str
) -> None:
    texts = [alone(seed) for seed in range(2)]
    assert texts[0] != texts[1]
    pages = [visit(f"{address}/style", quiet_404=True) for _ in range(2)]
    for seed, page in enumerate(pages):
        ask(page, seed)
        settle(page)
    third = visit(address)
    for page in pages:
        page.get_by_role("button", name="Generate").click()
    third.get_by_test_id("stSidebar").get_by_role("combobox").click()
    third.get_by_role("option", name="second").click()
    for text, page in zip(texts, pages, strict=True):
        expect_output(page, text)
    settle(third)
    assert third.get_by_test_id("stException").count() == 0


def begin_a_probe(page: Page, settle: Settle) -> None:
    """Press Run, with enough work for any machine to be stopped in."""
    for setting, value in (("Sentences at most", "2,000"), ("Seeds", "5")):
        page.get_by_role("combobox", name=setting).click()
        page.get_by_role("option", name=value, exact=True).click()
        settle(page)
    page.get_by_test_id("stCheckbox").get_by_text("Learning curve").click()
    settle(page)
    page.get_by_role("button", name="Run", exact=True).click()


def test_who_leaves_holds_nobody_up(visit: Visit, settle: Settle, alone: Callable[[int], str], address: str) -> None:
    text = alone(5)
    leaving, staying = (visit(f"{address}/{page}", quiet_404=True) for page in ("probes", "style"))
    ask(staying, 5)
    begin_a_probe(leaving, settle)
    expect(leaving.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_be_attached(timeout=30_000)
    leaving.close()
    staying.get_by_role("button", name="Generate").click()
    expect_output(staying, text)
