"""From page to page: what is looked at, and the model, go along."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
Settle = Callable[[Page], None]


def test_the_sentence_of_the_first_page_is_a_star_on_the_maps_of_the_same_model(
    visit: Visit, settle: Settle, address: str
) -> None:
    page = visit(f"{address}?ckpt=second", quiet_404=True)
    page.get_by_label("Your sentence").fill("The cat sleeps.")
    page.get_by_label("Your sentence").press("Enter")
    settle(page)
    page.get_by_role("link", name="See it on both maps").click()
    expect(page.locator(".bgt-map .bgt-star")).to_have_count(2, timeout=60_000)
    expect(page).to_have_url(re.compile(r"/latents\?(?=.*ckpt=second)(?=.*rows=own0)"))
    page.reload()
    expect(page.locator(".bgt-map .bgt-star")).to_have_count(2, timeout=60_000)
    settle(page)
    expect(page.get_by_role("combobox", name="Nearest sentences of")).to_have_value("The cat sleeps.")


def test_pairs_that_are_drawn_around_are_selected_on_the_maps(
    visit: Visit, settle: Settle, lit: Callable, address: str
) -> None:
    page = visit(f"{address}/plane?ckpt=second", quiet_404=True)
    plane = page.locator(".nsewdrag").first
    plane.hover()
    page.locator('.modebar-btn[data-title="Lasso Select"]').click()
    box = plane.bounding_box()
    assert box
    for at, (x, y) in enumerate([(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.04)]):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=5)
        if at == 0:
            page.mouse.down()
    page.mouse.up()
    expect(page.get_by_text(re.compile(r"selected pairs$"))).to_be_visible(timeout=20_000)
    settle(page)
    page.get_by_role("link", name="on the maps").click()
    expect(page.locator("[data-drawn]")).to_be_visible(timeout=60_000)
    settle(page)
    expect(page).to_have_url(re.compile("ckpt=second"))
    assert len(lit(page, 0)) == 300  # every English sentence is in some pair
