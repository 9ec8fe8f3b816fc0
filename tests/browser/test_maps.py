"""Test maps and figures in a browser: linked selections, many points, saved drawings, a browser without WebGL."""

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.conftest import lasso, lit, settle, within

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
SELECTED = re.compile(r"[\d,]+ selected sentences")


def test_a_lasso_lights_the_same_sentences_on_the_other_map(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps", quiet_404=True)
    seen: list[str] = []  # for each rerun: the id of the fragment, or "" for the whole script

    def sent(payload: bytes | str) -> None:
        message = BackMsg.FromString(payload) if isinstance(payload, bytes) else BackMsg()
        if message.HasField("rerun_script"):
            seen.append(message.rerun_script.fragment_id)

    page.on("websocket", lambda socket: socket.on("framesent", sent))
    page.reload()
    expect(page.get_by_role("figure")).to_have_count(2, timeout=60_000)
    settle(page)
    seen.clear()
    for side in (0, 1):
        begun = monotonic()
        lasso(page, side)
        expect(page.get_by_text(SELECTED)).to_be_visible(timeout=20_000)
        assert 1000 * (monotonic() - begun) < within(1)  # this includes drawing the lasso
        settle(page)
        left, right = (lit(page, chart) for chart in (0, 1))
        assert left and left == right
        expect(page.get_by_text(f"{len(left)} selected sentences")).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="selected")).to_have_text(f"{len(left)} of 600 selected")
    assert seen and all(seen)  # only the fragment beside the maps ran again, not the whole page
    page.get_by_role("button", name="Nothing is selected").click()
    settle(page)
    assert lit(page, 0) == lit(page, 1) == []


def centre(mark: Locator) -> tuple[float, float]:
    """Return the coordinates of a mark's centre on the screen."""
    box = mark.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_click_shows_what_is_near_and_a_link_brings_it_back(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA", quiet_404=True)
    page.wait_for_selector(".bgt-map .points path", state="attached", timeout=60_000)
    semantic = page.locator(".bgt-map").first
    page.mouse.click(*centre(semantic.locator(".points path").nth(5)))
    expect(semantic.locator(".bgt-star")).to_have_count(1)
    expect(semantic.locator(".bgt-ring")).to_have_count(20, timeout=20_000)
    expect(page).to_have_url(re.compile(r"rows=\w+\d+"))
    settle(page)
    other = visit(page.url, quiet_404=True)
    expect(other.locator(".bgt-map").first.locator(".bgt-ring")).to_have_count(20, timeout=60_000)


def test_a_star_that_is_dragged_has_its_sentence_written_anew(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA&rows=en5", quiet_404=True)
    star = page.locator(".bgt-map").nth(1).locator(".bgt-star")
    expect(star).to_have_attribute("data-movable", "true", timeout=60_000)
    settle(page)
    x, y = centre(star)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 25, y + 10, steps=4)
    page.mouse.up()
    expect(page.get_by_text("The language latent, moved")).to_be_visible(timeout=20_000)
    settle(page)
    texts = [part.inner_text().strip() for part in page.get_by_test_id("stCode").all()[:2]]
    assert len(texts) == 2 and all(texts)
    assert page.get_by_test_id("stException").count() == 0


def test_a_map_is_saved_as_a_true_drawing_and_its_rows_as_csv(visit: Visit, address: str, tmp_path: Path) -> None:
    of_length = "pairs=1,000&maps=Semantic&colour=Length+in+words"
    page = visit(f"{address}/maps?data=Built-in+grammar&{of_length}", quiet_404=True)
    expect(page.locator("[data-drawn]")).to_be_visible(timeout=60_000)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save each map as a drawing").click()
    saved.value.save_as(tmp_path / "map.svg")
    drawing = (tmp_path / "map.svg").read_text("utf-8")
    assert re.fullmatch(r"bgt-semantic-[0-9a-f]{8}\.svg", saved.value.suggested_filename)
    assert len(re.findall("<path|<use", drawing)) >= 2000 and "data:image" not in drawing
    assert "Length in words" in drawing  # the legend is part of the drawing
    page.get_by_role("button", name="Export").first.click()
    rows = save(page, "CSV", tmp_path).read_text("utf-8-sig").splitlines()
    assert len(rows) == 2001 and rows[0].startswith("id,")


FIRST = """() => {  // the place of the first row on the screen
    const map = window.bgtMaps.view.maps[0], frame = map.plot.getBoundingClientRect();
    const [x, y] = map.pixels(0, map.points.x[0], map.points.y[0]);
    return [frame.left + x, frame.top + y];
}"""
SHOWN = "document.querySelector('.js-plotly-plot')?.data?.filter(t => t.mode === 'markers')"


def test_many_points_are_painted_and_selected_in_time(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?data=Built-in+grammar&pairs=25,000&maps=Semantic", quiet_404=True)
    page.wait_for_function(f"{SHOWN}?.flatMap(t => t.customdata).length === 50_000", timeout=180_000)
    assert set(page.evaluate(f"{SHOWN}.map(t => t.type)")) == {"scattergl"}
    settle(page)
    begun = monotonic()
    lasso(page, 0, 0.005, 0.995)
    expect(page.get_by_text(re.compile(r"\d\d,\d{3} selected sentences"))).to_be_visible(timeout=180_000)
    assert 1000 * (monotonic() - begun) < within(5)  # this includes drawing the lasso
    page.mouse.move(*page.evaluate(FIRST))
    expect(page.locator(".bgt-tip")).to_be_visible()  # hover text appears even among 50,000 points


def test_without_webgl_a_map_is_still_drawn(chromium: Browser, chromium_path: str, address: str) -> None:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
    browser = chromium.browser_type.launch(executable_path=chromium_path, args=flags)
    page = browser.new_page()
    page.goto(f"{address}/maps?pairs=300&maps=Semantic")
    expect(page.get_by_role("figure")).to_have_count(1, timeout=60_000)
    page.wait_for_selector(".js-plotly-plot .points path", state="attached")
    drawn = page.locator(".js-plotly-plot .points path").count()
    page.goto(f"{address}/maps?data=Built-in+grammar&pairs=5,000&maps=Semantic&colour=Length+in+words")
    expect(page.get_by_text("This browser has no WebGL: each map shows 5,000 of its points.")).to_be_visible(
        timeout=60_000
    )
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .points path').length === 5000", timeout=60_000)
    browser.close()
    assert drawn == 600


def test_one_legend_is_for_both_maps_and_hides_a_category_on_both(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?colour=Final+mark&map=PCA", quiet_404=True)
    expect(page.locator("[data-drawn]")).to_be_visible(timeout=60_000)
    legend = page.get_by_role("group", name="Legend")
    expect(legend).to_have_count(1)
    assert page.locator(".js-plotly-plot .legend").count() == 0
    shown = """() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => plot.data
        .filter(t => t.mode === 'markers' && t.visible !== false).reduce((n, t) => n + t.customdata.length, 0))"""
    assert page.evaluate(shown) == [600, 600]
    question = legend.get_by_role("button", name="question")
    question.click()
    expect(question).to_have_attribute("aria-pressed", "false")
    page.wait_for_function(f"({shown})().every(n => n > 0 && n < 600)")
    left, right = page.evaluate(shown)
    assert left == right
    lasso(page, 0, 0.005, 0.995)
    expect(page.get_by_text(SELECTED)).to_be_visible(timeout=20_000)
    settle(page)
    assert 0 < len(lit(page, 0)) <= left  # hidden points are not selected
    question.click()
    page.wait_for_function(f"({shown})().every(n => n === 600)")


def test_a_map_that_is_zoomed_names_finer_clusters(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?colour=Cluster+of+meaning", quiet_404=True)
    expect(page.locator("[data-drawn]")).to_be_visible(timeout=60_000)
    settle(page)
    shown = """() => [...new Set(document.querySelector('.js-plotly-plot').layout.annotations
        .filter(note => note.name && note.visible).map(note => note.name))].join()"""
    assert page.evaluate(shown) == "cluster"
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(f"({shown})() === 'fine cluster'")
    page.get_by_role("button", name="Show all of each map").click()
    page.wait_for_function(f"({shown})() === 'cluster'")


OUTSIDE = """() => { const drawing = document.querySelector("svg.main-svg").getBoundingClientRect();
  return [...document.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < drawing.left || box.right > drawing.right ||
      box.top < drawing.top || box.bottom > drawing.bottom);
  }).map(text => text.textContent); }"""


def save(page: Page, kind: str, folder: Path) -> Path:
    """Press a button in the open list of exports. Return the file that the browser has saved."""
    with page.expect_download() as download:
        page.get_by_test_id("stPopoverBody").get_by_role("button", name=kind).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_figure_is_saved_for_print_and_as_vectors(visit: Callable, address: str, tmp_path: Path) -> None:
    page = visit(f"{address}/probes", theme="dark", quiet_404=True)
    page.get_by_role("button", name="Export").first.click()
    png, svg = save(page, "PNG", tmp_path), save(page, "SVG", tmp_path)
    assert png.stem == svg.stem and png.stem.startswith("bgt-probes")
    with Image.open(png) as image:
        assert image.width >= 2000 and image.info["dpi"] == pytest.approx((300, 300), abs=0.01)
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    drawing = svg.read_text("utf-8")
    assert "<image" not in drawing and "data:image" not in drawing and "Source Sans" not in drawing
    expect(page.get_by_role("status").filter(has_text="Saved")).to_contain_text(svg.name)
    page.set_content(drawing)  # without the app, and without its fonts
    expect(page.locator("text").filter(has_text="Test accuracy")).to_have_count(1)
    assert page.evaluate(OUTSIDE) == []
