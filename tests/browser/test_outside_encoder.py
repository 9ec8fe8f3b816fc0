"""A function of the user's beside the model that ships."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LETTERS = """
def letters(sentences):
    return [[1.0] + [float(text.lower().count(letter)) for letter in "aeinorst"] for text in sentences]
"""


def test_an_encoder_that_is_not_ours_is_opened_beside_the_one_that_ships(
    visit: Callable[..., Page], settle: Callable[[Page], None], serve: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "letters_of.py").write_text(LETTERS, "utf-8")
    ours, theirs = "bgt-en-fr", "letters_of:letters"
    address = serve("--model", "bgt-en-fr", "--model", f"python:{theirs}", cwd=tmp_path)
    page = visit(f"{address}/models", quiet_404=True)
    for name in (ours, theirs):
        expect(page.get_by_role("figure", name=f"sentences in {name}")).to_be_visible(timeout=60_000)
    page.get_by_text("Translations found", exact=True).click()
    settle(page)
    expect(page.get_by_test_id("stTable").filter(has_text=theirs).first).to_be_visible(timeout=60_000)
    alone = visit(f"{address}/latents?ckpt={theirs}", quiet_404=True)
    expect(alone.locator(".bgt-map")).to_have_count(1, timeout=60_000)
    expect(alone.get_by_text("This model has one latent")).to_be_visible()
    assert page.get_by_test_id("stException").count() == alone.get_by_test_id("stException").count() == 0
