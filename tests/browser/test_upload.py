"""A user's own translations in a browser: a file, its columns, then the maps and the plane show them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bgt_core.grammar import pairs

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
ROWS = 5_000
POINTS = "[...document.querySelectorAll('.js-plotly-plot')].at(-1)?.data?.flatMap(t => t.customdata ?? [])"


@pytest.fixture
def translations(tmp_path: Path) -> Path:
    """As many different translations, with a column of numbers; one row of them is repeated."""
    texts = [(pair.texts["en"], pair.texts["fr"]) for pair in pairs(ROWS)]
    rows = [f"{number}. {en}\t{number}. {fr}\t{number % 7}" for number, (en, fr) in enumerate(texts)]
    file = tmp_path / "mine.tsv"
    file.write_text("\n".join(["source\ttarget\tweekday", *rows, rows[0]]), "utf-8")
    return file


def test_five_thousand_translations_are_uploaded_drawn_and_compared(
    visit: Visit, settle: Callable, turn_to: Callable, address: str, translations: Path
) -> None:
    page = visit(f"{address}/latents", quiet_404=True)
    page.get_by_role("button", name="Upload").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").set_input_files(translations)
    expect(dialog.get_by_text("5,001 rows read, 5,000 used.")).to_be_visible(timeout=60_000)
    expect(dialog.get_by_text("1 repeat an earlier row.")).to_be_visible()
    use = dialog.get_by_role("combobox", name=re.compile("weekday"))
    expect(use).to_have_value("Colour by it")
    use.click()
    page.get_by_role("option", name="Leave out").click()
    settle(page)
    dialog.get_by_role("button", name="Use these 5,000 rows").click()
    expect(dialog).to_have_count(0)
    chosen = page.get_by_role("combobox", name=re.compile("Sentences")).first
    expect(chosen).to_have_value("Yours: mine.tsv (en-fr)", timeout=60_000)
    settle(page)
    turn_to(page, "Where latents disagree")
    chosen = page.get_by_role("combobox", name=re.compile("Sentences")).first
    expect(chosen).to_have_value("Yours: mine.tsv (en-fr)")
    page.get_by_role("combobox", name=re.compile("Pairs")).first.click()
    page.get_by_role("option", name="English and French").click()
    settle(page)
    page.wait_for_function(f"{POINTS}?.length === 600", timeout=60_000)  # 300 translations, as many random pairs
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("combobox", name=re.compile("Pairs at most")).click()
    page.get_by_role("option", name="5,000", exact=True).click()
    page.wait_for_function(f"{POINTS}?.length === 10_000", timeout=180_000)


def test_a_reload_brings_own_sentences_back_and_a_file_can_be_taken_back(
    visit: Visit, settle: Callable, address: str, tmp_path: Path
) -> None:
    texts = [pair.texts["en"] for pair in pairs(30)]
    (tmp_path / "mine.txt").write_text("\n".join(dict.fromkeys(texts)), "utf-8")
    page = visit(f"{address}/latents", quiet_404=True)
    page.get_by_role("button", name="Add sentences").click()
    page.get_by_label("Your sentences").fill("A line of my own.")
    page.get_by_role("button", name="Draw as stars").click()
    settle(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Upload").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").set_input_files(tmp_path / "mine.txt")
    dialog.get_by_role("button", name=re.compile("Use these")).click()
    chosen = page.get_by_role("combobox", name=re.compile("Sentences")).first
    expect(chosen).to_have_value("Yours: mine.txt (en)", timeout=60_000)
    settle(page)
    page.reload()
    expect(chosen).to_have_value("Yours: mine.txt (en)", timeout=60_000)
    page.wait_for_function(f"{POINTS}?.includes('own0')", timeout=60_000)
    page.get_by_role("button", name="Remove", exact=True).click()
    settle(page)
    expect(chosen).to_have_value(re.compile("Example sentences"))
    page.reload()
    settle(page)
    expect(chosen).to_have_value(re.compile("Example sentences"), timeout=60_000)
