"""A stranger's encoder in a browser: pairs are uploaded, its vectors split, and the report can be read by everybody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from bgt_core.grammar import pairs

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LETTERS = """
def letters(sentences):
    return [[1.0] + [float(text.lower().count(letter)) for letter in "aeinorst"] for text in sentences]
"""
ENCODER = "python:letters_of:letters"


def test_pairs_are_uploaded_split_and_measured(
    visit: Callable[..., Page],
    settle: Callable[[Page], None],
    violations: Callable[[Page], list[str]],
    serve: Callable[..., str],
    tmp_path: Path,
) -> None:
    (tmp_path / "letters_of.py").write_text(LETTERS, "utf-8")
    rows = [f"{pair.texts['en']}\t{pair.texts['fr']}" for pair in pairs(300)]
    (tmp_path / "mine.tsv").write_text("\n".join(["en\tfr", *rows]), "utf-8")
    page = visit(f"{serve('--model', ENCODER, cwd=tmp_path)}/split", quiet_404=True)
    page.get_by_role("button", name="Upload").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").set_input_files(tmp_path / "mine.tsv")
    dialog.get_by_role("button", name="Use these 300 rows").click(timeout=60_000)
    expect(dialog).to_have_count(0)
    settle(page)
    page.get_by_role("button", name="Split", exact=True).click()
    expect(page.get_by_test_id("stProgress")).to_be_visible()
    expect(page.get_by_role("heading", name="Before:")).to_be_visible(timeout=120_000)
    settle(page)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    expect(page.get_by_text("Fitted on 270 pairs, measured on 30 others")).to_be_visible()
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(1)
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    page.get_by_role("button", name="Measure all methods").click()
    page.get_by_text("What a linear probe tells").click(timeout=120_000)
    settle(page)
    page.set_viewport_size({"width": 1280, "height": 5000})  # contrast is measured of what is on the screen
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        settle(page)
        assert violations(page) == [], theme
    with page.expect_download() as download:
        page.get_by_role("button", name="Download it").click()
    assert download.value.suggested_filename == "split.zip"
    page.get_by_role("button", name="Use it on every page").click()
    expect(page.get_by_test_id("stSidebar").get_by_text("Splits the vectors of letters_of:letters")).to_be_visible(
        timeout=60_000
    )
    assert page.get_by_test_id("stException").count() == 0
