"""The maps in a browser: linked selections, many points, drawings to keep, and no WebGL."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
Settle = Callable[[Page], None]
TurnTo = Callable[[Page, str], None]


@pytest.fixture
def reruns(visit: Visit) -> Callable[[Page], list[str]]:
    """reruns(page): filled from now on with what each rerun is of: a fragment's id, or "" for the whole script."""

    def watch(page: Page) -> list[str]:
        seen: list[str] = []

        def sent(payload: bytes | str) -> None:
            message = BackMsg.FromString(payload) if isinstance(payload, bytes) else BackMsg()
            if message.HasField("rerun_script"):
                seen.append(message.rerun_script.fragment_id)

        page.on("websocket", lambda socket: socket.on("framesent", sent))
        page.reload()
        return seen

    return watch


def test_a_lasso_lights_the_same_sentences_on_the_other_map(
    visit: Visit, settle: Settle, lasso: Callable, lit: Callable, reruns: Callable, address: str
) -> None:
    page = visit(f"{address}/latents", quiet_404=True)
    seen = reruns(page)
    expect(page.get_by_role("figure")).to_have_count(2, timeout=60_000)
    settle(page)
    seen.clear()
    for side in (0, 1):
        lasso(page, side)
        expect(page.get_by_text(re.compile(r"\d+ selected sentences"))).to_be_visible(timeout=20_000)
        settle(page)
        left, right = (lit(page, chart) for chart in (0, 1))
        assert left and left == right
        expect(page.get_by_text(f"{len(left)} selected sentences")).to_be_visible()
    assert seen and all(seen)  # the maps and what stands below them ran again, the page did not
    page.get_by_role("button", name="Clear the selection").click()
    settle(page)
    assert lit(page, 0) == lit(page, 1) == []


def test_markup_in_a_sentence_stays_text(visit: Visit, settle: Settle, turn_to: TurnTo, address: str) -> None:
    page = visit(address)
    turn_to(page, "Two latents")
    page.get_by_role("button", name="Add sentences").click()
    page.get_by_label("Your sentences").fill("<img src=http://elsewhere.invalid/x onerror=alert(1)> & more")
    page.get_by_role("button", name="Draw as stars").click()
    settle(page)
    texts = page.evaluate(
        """[...document.querySelectorAll(".js-plotly-plot")].flatMap(chart =>
            chart.data.flatMap(trace => trace.text ?? []).filter(text => text.includes("elsewhere")))"""
    )
    assert len(texts) == 2 and not any("<img" in text for text in texts)


def test_a_map_is_saved_as_a_true_drawing_and_its_rows_as_csv(
    visit: Visit, settle: Settle, turn_to: TurnTo, address: str, tmp_path: Path
) -> None:
    page = visit(f"{address}/latents?data=Built-in+grammar&pairs=1,000", quiet_404=True)
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download() as saved:
        page.locator("[data-title*='Download plot']").first.click()
    saved.value.save_as(tmp_path / "map.svg")
    drawing = (tmp_path / "map.svg").read_text("utf-8")
    assert re.fullmatch(r"bgt-semantic-[0-9a-f]{8}\.svg", saved.value.suggested_filename)
    assert len(re.findall("<path|<use", drawing)) >= 2000 and "data:image" not in drawing
    page.get_by_role("button", name="Export semantic").click()
    with page.expect_download() as saved:
        page.get_by_test_id("stPopoverBody").get_by_role("button", name="CSV").click()
    rows = Path(saved.value.path()).read_text("utf-8-sig").splitlines()
    assert len(rows) == 2001 and rows[0].startswith("id,")


SHOWN = "document.querySelector('.js-plotly-plot')?.data?.filter(t => t.mode === 'markers')"


def test_many_points_are_painted_and_selected_in_time(
    visit: Visit, settle: Settle, lasso: Callable, within: Callable, address: str
) -> None:
    page = visit(f"{address}/latents?data=Built-in+grammar&pairs=5,000&maps=Semantic", quiet_404=True)
    expect(page.get_by_role("figure")).to_have_count(1, timeout=180_000)  # made for the first time
    begun = monotonic()
    page.reload()
    page.wait_for_function(f"{SHOWN}?.flatMap(t => t.customdata).length === 10_000", timeout=180_000)
    assert 1000 * (monotonic() - begun) < within(5)
    page = visit(f"{address}/latents?data=Built-in+grammar&pairs=25,000&maps=Semantic", quiet_404=True)
    page.wait_for_function(f"{SHOWN}?.flatMap(t => t.customdata).length === 50_000", timeout=180_000)
    assert set(page.evaluate(f"{SHOWN}.map(t => t.type)")) == {"scattergl"}
    settle(page)
    begun = monotonic()
    lasso(page, 0, 0.005, 0.995)
    expect(page.get_by_text(re.compile(r"\d\d,\d{3} selected sentences"))).to_be_visible(timeout=180_000)
    assert 1000 * (monotonic() - begun) < within(15)


def test_without_webgl_a_map_is_still_drawn(chromium: Browser, chromium_path: str, address: str) -> None:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
    browser = chromium.browser_type.launch(executable_path=chromium_path, args=flags)
    page = browser.new_page()
    page.goto(f"{address}/latents?pairs=300&maps=Semantic")
    expect(page.get_by_role("figure")).to_have_count(1, timeout=60_000)
    page.wait_for_selector(".js-plotly-plot .points path", state="attached")
    drawn = page.locator(".js-plotly-plot .points path").count()
    browser.close()
    assert drawn == 600
