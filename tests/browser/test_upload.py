"""A user's own sentences in a browser, which AppTest can't reload."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bgt_core.grammar import pairs

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
POINTS = "[...document.querySelectorAll('.js-plotly-plot')].at(-1)?.data?.flatMap(t => t.customdata ?? [])"


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
