"""The app keeps users apart, and keeps working if they type fast, go back, leave, or follow a stranger's link."""

from collections.abc import Callable
from urllib.parse import quote_plus, urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import HOSTILE, STRANGER
from tests.browser.conftest import HEADINGS, settle, turn_to, within

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
TEXTS = ("The cat sleeps.", "He is my friend.")
CELL = "table.grid td"
LINK = {"other": "Is it late?", "other_language": "English", "styles_en": "", "meanings_en": ""}


def begin_a_probe(page: Page) -> None:
    """Start a probe that takes long enough to be stopped before its end, on any machine."""
    page.get_by_text("Run a small probe").click()
    for setting, value in (("Sentences at most", "2,000"), ("Seeds", "5")):
        page.get_by_role("combobox", name=setting).click()
        page.get_by_role("option", name=value, exact=True).click()
    settle(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_be_attached(timeout=30_000)


def test_two_people_write_at_once_while_a_third_changes_the_model_and_a_fourth_leaves_in_the_middle_of_a_probe(
    visit: Visit, address: str
) -> None:
    pages, alone = [], {}
    for text in TEXTS:
        pages.append(visit(f"{address}/rewrite?{urlencode(LINK | {'sentence': text})}", quiet_404=True))
        expect(pages[-1].locator(CELL)).to_have_count(1, timeout=60_000)
        settle(pages[-1])
        alone[text] = pages[-1].locator(CELL).inner_text()
    assert alone[TEXTS[0]] != alone[TEXTS[1]]
    third, leaving = visit(address), visit(f"{address}/probes", quiet_404=True)
    begin_a_probe(leaving)
    leaving.close()
    for page, text in zip(pages, reversed(TEXTS), strict=True):  # each user types the other's text
        page.get_by_label("Meaning", exact=True).fill(text)
        page.get_by_label("Meaning", exact=True).press("Control+Enter")
    third.get_by_test_id("stSidebar").get_by_role("combobox", name="Model").click()
    third.get_by_role("option", name="second").click()
    for page, text in zip(pages, reversed(TEXTS), strict=True):
        expect(page.locator(CELL)).to_have_text(alone[text].replace("\n", ""), timeout=60_000)
    settle(third)
    assert third.get_by_test_id("stException").count() == 0


FIELDS = {"A sentence": "Your sentence", "Rewrite": "Meaning"}  # page -> label of a text field


def test_back_brings_back_what_was_typed(visit: Visit, address: str) -> None:
    page = visit(address, quiet_404=True)
    for title, label in FIELDS.items():
        turn_to(page, title)
        page.get_by_label(label, exact=True).fill("Tu es en retard.")
        page.get_by_label(label, exact=True).blur()
        settle(page)
    turn_to(page, "Model")
    for title, label in reversed(FIELDS.items()):
        page.go_back()
        heading = page.get_by_role("heading", level=1, name=HEADINGS.get(title, title))
        expect(heading).to_be_visible(timeout=60_000)
        expect(page.get_by_label(label, exact=True)).to_have_value("Tu es en retard.", timeout=60_000)


PAIRS = {  # path of a page -> labels of two text fields
    "": ("Your sentence", "The other sentence"), "rewrite": ("Meaning", "Style"),
    "pairs": ("Your sentence", "The other sentence"),
}  # fmt: skip


@pytest.mark.parametrize("place", PAIRS)
def test_two_fields_keep_what_is_typed_into_them_without_a_pause(visit: Visit, address: str, place: str) -> None:
    page = visit(f"{address}/{place}", quiet_404=True)
    fields = [page.get_by_label(name, exact=True) for name in PAIRS[place]]
    for texts in (("The cat sleeps.", "Is it late?"), ("A dog.", "What?")):
        for field, text in zip(fields, texts, strict=True):
            field.click(timeout=within(30))
            page.keyboard.press("Control+A")
            page.keyboard.type(text, delay=40)  # at a user's speed, while the page reruns
        page.wait_for_timeout(500)
        settle(page)
        for field, text in zip(fields, texts, strict=True):
            expect(field).to_have_value(text)


@pytest.mark.parametrize("link", ["?ckpt={0}", "?sentence={0}", "rewrite?other={0}", "maps?find={0}&start={0}"])
def test_a_link_makes_the_browser_ask_nobody(visit: Visit, address: str, link: str) -> None:
    place = link.format(quote_plus(HOSTILE))
    shown = visit(f"{address}/{place}", quiet_404=True)  # a request to another server would fail the test
    if "ckpt" in link:
        shown.get_by_text("This link can't be opened here").wait_for()
    shown.wait_for_function("document.documentElement.outerHTML.includes('stranger.test')", timeout=within(10))
    assert not shown.locator(f"a[href^='{STRANGER}'], img[src^='{STRANGER}']").count()
