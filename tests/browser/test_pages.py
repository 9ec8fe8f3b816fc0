"""In a browser, all pages fit the window, are accessible and not too long, and work by keyboard and on a phone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as Late

import bgt_core
from bgt_core.generation.generate import candidates, exchanged
from tests.browser.conftest import lit, settle, turn_to, violations, within

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CHARTS = {"/maps": 2, "/probes": 1}  # page -> minimum number of charts that it shows when opened
GROUNDS = """() => [...document.querySelectorAll(".js-plotly-plot")].map(plot => {
  for (let e = plot.querySelector(".main-svg"); e; e = e.parentElement) {
    const c = (getComputedStyle(e).backgroundColor.match(/[\\d.]+/g) || []).map(Number);
    if (c.length && (c[3] ?? 1) > 0.5) return (c[0] + c[1] + c[2]) / 3 / 255;
  }
  return 1;
})"""
FITS = "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('[data-testid=stMain]'))"
MOST = 2_200  # maximum height of a page in pixels, at a width of 1,280
HEIGHT = "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
Visit = Callable[..., Page]


def test_every_page_fits_every_window_in_both_themes_and_has_no_serious_violation(visit: Visit, address: str) -> None:
    """Each page is tested in the state in which it opens, before a user changes anything."""
    page, heights, wrong = visit(f"{address}/?ckpt=bgt-en-fr,+as+shipped"), {}, {}
    links = page.get_by_test_id("stSidebarNavLink")
    assert links.count() >= 7
    for link in links.all():
        page.set_viewport_size({"width": 1280, "height": 3000})  # contrast is only checked in the visible part
        link.click()
        settle(page)
        title, charts = link.inner_text().split("\n")[-1], CHARTS.get(urlparse(page.url).path, 0)
        assert page.get_by_test_id("stException").count() == 0
        if charts:  # charts, and the tables with the same content, appear later than the rest of the page
            expect(page.get_by_role("figure").nth(charts - 1)).to_be_attached(timeout=60_000)
            table = page.locator("[data-testid=stDataFrame], [data-testid=stTable]").first
            expect(table).to_be_attached(timeout=60_000)
        assert all(figure.get_attribute("aria-label") for figure in page.get_by_role("figure").all())
        wrong[title] = violations(page)
        assert all(ground > 0.9 for ground in page.evaluate(GROUNDS)), title
        heights[title] = page.evaluate(HEIGHT)
        if page.get_by_role("button", name="Export").count() and title in ("Maps", "What each latent holds"):
            page.get_by_role("button", name="Export").first.click()
            page.get_by_test_id("stPopoverBody").wait_for()
            wrong[f"{title}, exports"] = violations(page, "stPopoverBody")
            page.keyboard.press("Escape")
        if title == "Your encoder":  # also test the result of a split
            page.get_by_text("Split its vectors all the same").click()
            page.get_by_role("button", name="Split", exact=True).click()
            page.get_by_role("heading", name="Before:").wait_for(timeout=300_000)
            settle(page)
            wrong["A split"] = violations(page)
        page.emulate_media(color_scheme="dark")
        settle(page)
        page.wait_for_function(f"({GROUNDS})().every(ground => ground < 0.1)", timeout=20_000)
        wrong[f"{title}, dark"] = violations(page, rules=["color-contrast"])
        page.emulate_media(color_scheme="light")
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            try:
                page.wait_for_function(FITS, timeout=10_000)  # charts adapt to the new width after a moment
            except Late:
                pytest.fail(f"{title} scrolls sideways at {width}")
    assert len(wrong) > 2 * links.count()  # each page was checked in both themes, and some also in other states
    assert {title: violation for title, violation in wrong.items() if violation} == {}
    assert min(heights.values()) > 100
    assert {title: height for title, height in heights.items() if height > MOST} == {}
    both = "ckpt=bgt-en-fr,+as+shipped&with=bgt-multilingual,+as+shipped"
    page = visit(f"{address}/pairs?{both}", quiet_404=True)
    page.set_viewport_size({"width": 1280, "height": 3000})
    for view in page.get_by_role("radiogroup", name="Compare by").get_by_role("radio").all():
        view.click()
        settle(page)
        assert violations(page) == []
    page.evaluate("document.querySelector('h1').style.color = '#bbb'")
    assert "color-contrast" in {text.partition(" | ")[0] for text in violations(page)}  # the check finds pale text


def test_a_grid_is_written_with_the_keyboard_alone_and_stays_while_another_page_is_looked_at(
    visit: Visit, address: str, saved: Path
) -> None:
    page = visit(f"{address}/rewrite", quiet_404=True)
    fields = {"Meaning": "The cat sleeps.", "More meanings, one per line": "", "Style": "Est-il tard ?"}
    for name, text in fields.items():
        expect(page.get_by_label(name, exact=True)).to_be_visible(timeout=20_000)  # these fields appear last
        page.get_by_label(name, exact=True).focus()
        page.keyboard.press("Control+A")  # replace the example text
        page.keyboard.press("Delete")
        page.keyboard.type(text)
        page.keyboard.press("Control+Enter")
        settle(page)
    bgt = bgt_core.load(saved)
    latents = exchanged(bgt, ["The cat sleeps."], ["Est-il tard ?"], "fr", "en")
    expected = candidates(bgt, latents, lang="fr", search=bgt_core.Beam(8, 3, 1))[0][0].text.strip() or "(nothing)"
    cells = page.locator("table.grid td")
    expect(cells).to_have_count(5, timeout=30_000)
    expect(cells.first).to_contain_text(expected)
    turn_to(page, "Model")
    turn_to(page, "Rewrite")
    for name, text in fields.items():
        expect(page.get_by_label(name, exact=True)).to_have_value(text)


OVERLAPS = """([labelled, marked]) => [...document.querySelectorAll(".js-plotly-plot")].flatMap(plot => {
  const boxes = selector => [...plot.querySelectorAll(selector)].map(each =>
    Object.assign(each.getBoundingClientRect(), { text: each.textContent }));
  const touch = (a, b) => a.right > b.left && a.left < b.right && a.bottom > b.top && a.top < b.bottom;
  const labels = boxes(labelled), marks = boxes(marked);
  return labels.filter((label, at) => [...labels.slice(at + 1), ...marks].some(other => touch(label, other)))
    .map(label => label.text);
})"""


def test_no_label_of_a_probe_touches_a_mark(visit: Visit, address: str) -> None:
    for second, width in ((second, width) for second in ("", "bgt-multilingual,+as+shipped") for width in (390, 1280)):
        page = visit(f"{address}/probes?ckpt=bgt-en-fr,+as+shipped&with={second}", width, quiet_404=True)
        expect(page.locator(".point").first).to_be_attached(timeout=within(60))
        assert page.evaluate(OVERLAPS, [".annotation-text", ".point, .xerror, .xtick text"]) == []
        assert page.locator(".annotation-text").count() > 40


@pytest.fixture
def phone(chromium: Browser) -> Iterator[Page]:
    with chromium.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True) as context:
        yield context.new_page()


SWIPED = [("probes", "[role=figure]"), ("maps?map=PCA", "[data-drawn]"), ("pairs", "[role=application]")]


@pytest.mark.parametrize(("address_of", "drawn"), SWIPED)
def test_a_swipe_over_a_chart_or_a_map_scrolls_the_page(phone: Page, address: str, address_of: str, drawn: str) -> None:
    phone.goto(f"{address}/{address_of}")
    expect(phone.locator(drawn).first).to_be_attached(timeout=within(60))
    settle(phone)
    chart = phone.get_by_role("figure").first
    box = chart.bounding_box()
    assert box and (drawn != "[data-drawn]" or box["y"] < 320)  # the first map must be visible without scrolling
    chart.evaluate("e => e.scrollIntoView({block: 'center'})")
    box = chart.bounding_box()
    assert phone.evaluate(OVERLAPS, [".gtitle", ".modebar-group"]) == []
    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    before = phone.evaluate(scrolled)
    session = phone.context.new_cdp_session(phone)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        fingers = [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
        phone.wait_for_timeout(20)  # a faster touch would not count as a swipe

    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if address_of == "pairs":
        phone.locator("[data-val=lasso]").tap()
        phone.locator("[data-val=lasso].active").wait_for()
    for _ in range(1 + (address_of == "pairs")):  # after a lasso, the next swipe scrolls again
        touch("touchStart", (x, y))
        for way in range(20, 220, 20):
            touch("touchMove", (x, y - way))
        touch("touchEnd")
    phone.wait_for_function(f"{scrolled} > {before + 100}", timeout=within(5))
    assert lit(phone, 0) == []
    if drawn == "[data-drawn]":  # two fingers magnify the map
        chart.evaluate("e => e.scrollIntoView({block: 'center'})")
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 60)):
            touch(kind, (x - apart, y), (x + apart, y))
        phone.wait_for_function("(({view, homeScale}) => view.scale > 2.5 * homeScale)(bgtMaps.view.maps[0].panels[0])")
