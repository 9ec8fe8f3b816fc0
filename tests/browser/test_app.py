"""What only a browser can tell: the app opens, fits the window, reads well, and stays on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as Late

import bgt_core
from bgt_core.generation.generate import candidates, exchanged

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
CHARTS = {"/latents": 2, "/probes": 2, "/languages": 1}  # at least, of pages that have any without being asked
GROUNDS = """() => [...document.querySelectorAll(".js-plotly-plot")].map(plot => {
  for (let e = plot.querySelector(".main-svg"); e; e = e.parentElement) {
    const c = (getComputedStyle(e).backgroundColor.match(/[\\d.]+/g) || []).map(Number);
    if (c.length && (c[3] ?? 1) > 0.5) return (c[0] + c[1] + c[2]) / 3 / 255;
  }
  return 1;
})"""
Visit = Callable[..., Page]
Settle = Callable[[Page], None]
TurnTo = Callable[[Page, str], None]


def test_it_opens_from_the_repository_too(visit: Visit, serve: Callable[..., str], within: Callable) -> None:
    address = serve(cwd=ROOT)
    step = json.loads((bgt_core.PRETRAINED / "config.json").read_text("utf-8"))["step"]
    expect(visit(address).get_by_test_id("stSidebar")).to_contain_text(f"{step:,} updates")
    begun = monotonic()
    visit(address)  # the model is loaded by now
    assert 1000 * (monotonic() - begun) < within(10)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_fits_every_window_and_has_no_serious_violation(
    visit: Visit, settle: Settle, violations: Callable[[Page], list[str]], address: str, theme: str
) -> None:
    page, wrong = visit(address, theme=theme), {}
    links = page.get_by_test_id("stSidebarNavLink")
    assert links.count() >= 8
    for link in links.all():
        page.set_viewport_size({"width": 1280, "height": 3000})  # contrast is measured of what is on the screen
        link.click()
        settle(page)
        title, charts = link.inner_text().split("\n")[-1], CHARTS.get(urlparse(page.url).path, 0)
        assert page.get_by_test_id("stException").count() == 0
        if charts:  # what a chart shows stands in a table too, which comes when it is needed, as plotly does
            expect(page.get_by_role("figure").nth(charts - 1)).to_be_attached(timeout=60_000)
            expect(page.locator("[data-testid=stDataFrame], [data-testid=stTable]").first).to_be_attached(
                timeout=60_000
            )
        assert all(figure.get_attribute("aria-label") for figure in page.get_by_role("figure").all())
        for ground in page.evaluate(GROUNDS):
            assert ground < 0.1 if theme == "dark" else ground > 0.9, title
        if page.get_by_role("button", name="Export").count():
            page.get_by_role("button", name="Export").first.click()
            page.get_by_test_id("stPopoverBody").wait_for()
            wrong[f"{title}, exports"] = violations(page)
            page.keyboard.press("Escape")
        wrong[title] = violations(page)
        for width in (400, 768, 1280) if theme == "light" else ():
            page.set_viewport_size({"width": width, "height": 900})
            fits = "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('[data-testid=stMain]'))"
            try:
                page.wait_for_function(fits, timeout=10_000)  # the charts take their new width a moment later
            except Late:
                pytest.fail(f"{title} scrolls sideways at {width}")
    assert len(wrong) > links.count()  # every page, and exports
    assert {title: found for title, found in wrong.items() if found} == {}


def expect_output(page: Page, text: str) -> None:
    """What was written becomes that text."""
    expect(page.locator("p.written").first).to_have_text(text, timeout=30_000)


def expected_output(saved: Path, source: str, style: str) -> str:
    """English source, French style, as the page opens."""
    bgt = bgt_core.load(saved)
    latents = exchanged(bgt, [source], [style], "fr", "en")
    return candidates(bgt, latents, lang="fr", search=bgt_core.Beam(8, 3, 1))[0][0].text.strip() or "(nothing)"


def test_the_first_sentence_leads_to_the_page_that_writes(
    visit: Visit, settle: Settle, address: str, saved: Path
) -> None:
    page = visit(address)
    page.get_by_label("Your sentence").fill("The cat sleeps.")
    page.get_by_label("Your sentence").press("Enter")
    settle(page)
    more = page.get_by_role("link", name="More on writing").first
    expect(more).to_have_attribute("href", re.compile("cat"))
    more.click()
    expect(page.get_by_role("heading", level=1, name="Meaning by style")).to_be_visible()
    settle(page)
    source = page.get_by_label("Source: what to say")
    expect(source).to_have_value("The cat sleeps.")
    style = page.get_by_label("Style: how to say it").input_value()
    source.press("Control+Enter")
    expect_output(page, expected_output(saved, "The cat sleeps.", style))


def test_a_style_is_changed_with_the_keyboard_alone_and_stays_while_another_page_is_looked_at(
    visit: Visit, settle: Settle, turn_to: TurnTo, address: str, saved: Path
) -> None:
    page = visit(address)
    turn_to(page, "Meaning by style")
    page.get_by_role("tab", name="One sentence").click()
    settle(page)
    fields = {"Source: what to say": "The cat sleeps.", "Style: how to say it": "Est-il tard ?"}
    for name in fields:  # fields are code of their own
        expect(page.get_by_label(name)).to_be_visible(timeout=20_000)
    for name, text in fields.items():
        page.get_by_label(name).focus()
        page.keyboard.press("Control+A")  # the example that is there
        page.keyboard.type(text)
        page.keyboard.press("Tab")
        settle(page)
        expect(page.get_by_label(name)).to_have_value(text)
    page.get_by_label("Style: how to say it").press("Control+Enter")
    expect_output(page, expected_output(saved, "The cat sleeps.", "Est-il tard ?"))
    turn_to(page, "Model and data")
    turn_to(page, "Meaning by style")
    page.get_by_role("tab", name="One sentence").click()
    for name, text in fields.items():
        expect(page.get_by_label(name)).to_have_value(text)


def test_a_link_brings_the_same_view(visit: Visit, settle: Settle, turn_to: TurnTo, address: str) -> None:
    page = visit(address)
    turn_to(page, "Two latents")
    page.get_by_role("radio", name="Semantic").click()
    settle(page)
    pairs = page.get_by_role("combobox", name="Translation pairs")
    page.get_by_role("button", name="More").click()
    pairs.click()
    page.get_by_role("option", name="100", exact=True).click()
    settle(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Export", exact=True).click()
    link = page.get_by_text(re.compile(r"http://localhost:\d+/latents")).inner_text()
    assert "pairs=100" in link and "maps=Semantic" in link
    other = visit(link, quiet_404=True)
    settle(other)
    expect(other.get_by_role("figure")).to_have_count(1)
    points = "document.querySelector('.js-plotly-plot').data.filter(t => t.mode === 'markers')"
    assert other.evaluate(f"{points}.flatMap(t => t.customdata).length") == 200
