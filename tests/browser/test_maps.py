"""Test maps and figures in a browser: selections on all maps, the keyboard, links, many points and saved files."""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from PIL import Image
from playwright.sync_api import BrowserContext, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.conftest import lasso, lit, settle, shown

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Visit = Callable[..., Page]
SELECTED = re.compile(r"[\d,]+ selected sentences")


def test_a_lasso_lights_the_same_sentences_on_the_other_map(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps", quiet_404=True)
    seen: list[str] = []  # for each rerun: the id of its fragment, or "" for the whole script

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
        lasso(page, side)
        expect(page.get_by_text(SELECTED)).to_be_visible(timeout=20_000)
        settle(page)
        left, right = (lit(page, chart) for chart in (0, 1))
        assert left and left == right
        expect(page.get_by_text(f"{len(left)} selected sentences")).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="selected")).to_have_text(f"{len(left)} of 600 selected")
    assert seen and all(seen)  # only the fragment beside the maps ran again, not the whole page
    page.get_by_role("button", name="Clear the selection").click()
    settle(page)
    assert lit(page, 0) == lit(page, 1) == []


def test_a_click_or_a_key_shows_what_is_near_and_a_link_brings_it_back(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA", quiet_404=True)
    page.wait_for_selector("[data-drawn]", timeout=60_000)
    semantic = page.locator(".bgt-map").first
    sentence, translation = (page.evaluate(f"window.bgtMaps.view.rows.{name}[5]") for name in ("text", "translation"))
    semantic.locator("canvas").focus()
    for _ in range(6):
        page.keyboard.press("PageDown")
    expect(page.locator(".bgt-count")).to_contain_text(f"{sentence} · {translation}")  # announced to screen readers
    page.keyboard.press("Enter")
    expect(semantic.locator(".bgt-star")).to_have_count(1)
    card = semantic.get_by_role("group", name="Chosen sentence")
    expect(card).to_contain_text(sentence)
    expect(card).to_contain_text(translation)
    expect(semantic.locator(".bgt-ring")).to_have_count(20, timeout=20_000)
    expect(semantic.locator(".bgt-near").first).to_be_attached()  # the nearest sentences are on the map as text
    expect(page).to_have_url(re.compile(r"rows=\w+\d+"))
    settle(page)
    other = visit(page.url, quiet_404=True)
    expect(other.locator(".bgt-map").first.locator(".bgt-ring")).to_have_count(20, timeout=60_000)
    card = other.get_by_role("group", name="Chosen sentence")
    card.get_by_role("button", name="Keep this sentence marked").click()
    settle(other)
    card.get_by_role("button", name="Close").click()  # the card may cover the next point
    expect(card).to_have_count(0)  # it goes with the next frame
    other.mouse.click(*place_of(other, 9))
    expect(card).to_contain_text(re.compile(r"Cosine to the pinned sentence: semantic [\d.−-]+, language"))
    expect(other).to_have_url(re.compile("pin=en5"))


def test_a_star_that_is_dragged_has_its_sentence_written_anew(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA&rows=en5&maps=language", quiet_404=True)
    star = page.locator(".bgt-map").first.locator(".bgt-star")
    expect(star).to_have_attribute("data-movable", "true", timeout=60_000)
    settle(page)
    x, y = place_of(page, 5, 1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 25, y + 10, steps=4)
    page.mouse.up()
    card = page.get_by_role("group", name="Chosen sentence")
    expect(card.locator(".bgt-written")).to_have_text(re.compile("."), timeout=20_000)
    expect(card).to_contain_text("Before: ")
    page.get_by_role("button", name=re.compile("^Closing mark, question")).click()
    expect(page).to_have_url(re.compile(r"star_at=language.*bars=mark%3A\d"), timeout=20_000)
    settle(page)
    assert 0 < page.locator(".bgt-ring").count() < 20  # of 40: the bars filter the nearest sentences, too
    other = visit(page.url, quiet_404=True)  # the link contains the star's place and the chosen bars
    for part in (".bgt-written", ".bgt-bars [role=status]"):
        expect(other.locator(part)).to_have_text(page.locator(part).inner_text(), timeout=60_000)


def test_keys_go_through_the_pairs_of_the_plane_and_announce_them(visit: Visit, address: str) -> None:
    page = visit(f"{address}/pairs", quiet_404=True)
    plane = page.get_by_role("application", name=re.compile("^Plane of pairs"))
    plane.focus(timeout=60_000)
    texts = []
    for key in ["PageDown"] * 15 + ["ArrowRight", "ArrowUp", "ArrowLeft"]:
        page.keyboard.press(key)
        texts.append(plane.get_by_role("status").inner_text())
    assert len({*texts}) >= 17  # the last arrow may lead back to an earlier pair
    left = texts[-1].split("\n")[1]
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stMain").get_by_test_id("stText").first).to_have_text(left, timeout=20_000)


def test_a_map_is_saved_as_a_true_drawing_its_rows_as_csv_and_the_page_works_without_the_app(
    visit: Visit, context: BrowserContext, address: str, tmp_path: Path
) -> None:
    page = visit(f"{address}/maps?data=Built-in+grammar&pairs=1,000&colour=Length+in+words", quiet_404=True)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the maps as a drawing").click()
    saved.value.save_as(tmp_path / "map.svg")
    drawing = (tmp_path / "map.svg").read_text("utf-8")
    assert re.fullmatch(r"bgt-maps-[0-9a-f]{8}\.svg", saved.value.suggested_filename)
    assert len(re.findall("<path", drawing)) >= 4000 and "data:image" not in drawing  # 2,000 sentences on two maps
    assert "Length in words" in drawing  # the drawing includes the legend
    page.get_by_role("button", name="Export").first.click()
    rows = save(page, "CSV", tmp_path).read_text("utf-8-sig").splitlines()
    assert len(rows) == 2001 and rows[0].startswith("id,")
    alone = context.new_page()
    alone.goto(save(page, "HTML", tmp_path).as_uri())
    alone.get_by_role("button", name=re.compile("^Closing mark, question")).click()
    expect(alone.locator(".bgt-bars").get_by_role("status")).to_have_text(re.compile("of 2,000 shown"))
    alone.get_by_role("button", name="Length in words: Sort by this column").click()
    words = list(map(int, alone.locator("tbody tr td:nth-child(3)").all_inner_texts()))
    assert len(words) > 99 and words == sorted(words)


def place_of(page: Page, row: int, side: int = 0) -> list[float]:
    """Return the screen coordinates of a row's point on the map with the index `side`."""
    return page.evaluate(
        """([row, side]) => { const map = window.bgtMaps.view.maps[side], frame = map.box.getBoundingClientRect();
        const [x, y] = map.pixelsOf(row); return [frame.left + x, frame.top + y]; }""",
        [row, side],
    )


def test_bars_filter_the_maps_and_each_other_and_become_the_selection(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA", quiet_404=True)
    bars = page.locator(".bgt-bars")
    english = bars.get_by_role("button", name=re.compile("^Language, English"))
    expect(english).to_have_attribute("aria-label", "Language, English: 300 of 300", timeout=60_000)
    bars.get_by_role("button", name=re.compile("^Closing mark, question")).click()
    questions = shown(page, 0)
    assert 0 < len(questions) < 600 and questions == shown(page, 1)
    expect(english).not_to_have_attribute("aria-label", "Language, English: 300 of 300")
    english.focus()
    page.keyboard.press("Enter")
    both = shown(page, 0)
    assert both == [row for row in questions if row.startswith("en")]
    expect(bars.get_by_role("status")).to_have_text(f"{len(both)} of 600 shown")
    bars.get_by_role("button", name="Select the sentences of the chosen bars").click()
    expect(page.get_by_text(f"{len(both)} selected sentences")).to_be_visible(timeout=20_000)
    settle(page)
    assert lit(page, 0) == both


def test_points_light_up_as_one_types_and_a_click_on_the_small_map_swaps(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA", quiet_404=True)
    field = page.get_by_role("searchbox", name="Find words")
    field.press_sequentially("Tom")
    found = shown(page, 0)
    assert 0 < len(found) < 100 and page.get_by_text(SELECTED).count() == 0
    field.press("Enter")
    expect(page.get_by_text(f"{len(found)} selected sentences")).to_be_visible(timeout=20_000)
    expect(page).to_have_url(re.compile("find=Tom"))
    page.locator(".bgt-insets .bgt-map").click()
    expect(page.locator(".bgt-large .bgt-map")).to_have_attribute("aria-label", re.compile("^Map of the language"))
    expect(page).to_have_url(re.compile("maps=language"), timeout=20_000)
    settle(page)
    for size in ({"width": 1280, "height": 900}, {"width": 390, "height": 844}):
        page.set_viewport_size(size)
        page.wait_for_timeout(300)
        box = page.locator(".bgt-large .bgt-map").bounding_box()
        tools = page.get_by_role("toolbar").bounding_box()
        assert box and tools and max(box["y"] + box["height"], tools["y"] + 40) <= size["height"]  # both are in view


def test_maps_in_three_dimensions_turn_together_and_a_link_keeps_their_turn(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA&3d=true", quiet_404=True)
    page.locator(".bgt-large canvas").press("ArrowRight")
    page.get_by_role("button", name="Side by side").click()
    expect(page).to_have_url(re.compile("(?=.*turn=-25%3A20).*layout=side-by-side"), timeout=20_000)
    page = visit(page.url, quiet_404=True)
    page.wait_for_function("window.bgtMaps?.view?.maps.every(map => map.turned?.right === -25)", timeout=60_000)
    expect(page.locator(".bgt-large .bgt-map")).to_have_count(2)
    page.mouse.click(*place_of(page, 5))
    expect(page.locator(".bgt-card").first).to_contain_text(page.evaluate("window.bgtMaps.view.rows.text[5]"))


def test_many_points_are_painted_and_selected(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?data=Built-in+grammar&pairs=25,000&maps=Semantic", quiet_404=True)
    page.wait_for_function("window.bgtMaps?.view?.size === 50_000", timeout=180_000)
    settle(page)
    lasso(page, 0, 0.005, 0.995)
    expect(page.get_by_text(re.compile(r"\d\d,\d{3} selected sentences"))).to_be_visible(timeout=20_000)
    page.mouse.move(*place_of(page, 0))
    expect(page.locator(".bgt-tip")).to_be_visible()  # points have hover text even if there are 50,000


def test_one_legend_is_for_both_maps_and_hides_a_category_on_both(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?colour=Final+mark&map=PCA", quiet_404=True)
    legend = page.get_by_role("group", name="Legend")
    expect(legend).to_have_count(1, timeout=60_000)
    question = legend.get_by_role("button", name="question")
    question.click()
    expect(question).to_have_attribute("aria-pressed", "false")
    left, right = (len(shown(page, side)) for side in (0, 1))
    assert 0 < left == right < 600
    lasso(page, 0, 0.005, 0.995)
    expect(page.get_by_text(SELECTED)).to_be_visible(timeout=20_000)
    settle(page)
    assert 0 < len(lit(page, 0)) <= left  # hidden points are not selected


def test_a_map_that_is_zoomed_names_finer_groups_and_names_do_not_overlap(visit: Visit, address: str) -> None:
    page = visit(f"{address}/maps?map=PCA", quiet_404=True)
    expect(page.locator("[data-drawn]")).to_be_visible(timeout=60_000)
    names = page.locator(".bgt-large .bgt-group")
    few = names.all_text_contents()
    assert 2 <= len(few) <= 6
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    expect(names.filter(has_not_text=re.compile("|".join(map(re.escape, few)))).first).to_be_attached()
    boxes = [name.bounding_box() for name in names.all()]
    for at, one in enumerate(boxes):
        for other in boxes[:at]:
            assert one and other
            beside = one["x"] >= other["x"] + other["width"] - 3 or other["x"] >= one["x"] + one["width"] - 3
            assert beside or abs(one["y"] - other["y"]) >= 15
    page.get_by_role("button", name="Name groups").click()
    expect(names).to_have_count(0)


# Counts the points below the names of topics on the large map.
COVERED = """() => { const { large, rows } = window.bgtMaps.view;
  const names = [...large.over.querySelectorAll(".bgt-coarse")].map(name => name.getBBox());
  return rows.id.map((_, row) => large.pixelsOf(row)).filter(at => at && names.some(({ x, y, width, height }) =>
    at[0] > x && at[0] < x + width && at[1] > y && at[1] < y + height)).length; }"""


def test_a_topic_is_selected_and_renamed_in_the_list_and_names_are_beside_points(
    visit: Visit, address: str, servers: dict[str, Popen]
) -> None:
    page = visit(f"{address}/maps?map=PCA", quiet_404=True)
    topic, name = page.locator(".bgt-topic button").first, page.locator(".bgt-large .bgt-coarse").first
    expect(name).to_be_attached(timeout=60_000)
    assert page.evaluate(COVERED) <= 12  # of 600 points, by six names; at the points in their middles, they cover 50
    servers[address].send_signal(signal.SIGSTOP)  # a busy app reads several actions at once, and must lose none
    lasso(page, 0)
    topic.press("F2")
    page.keyboard.type("Mine: all")
    page.keyboard.press("Enter")
    expect(name).to_have_text("Mine: all")
    topic.press("Enter")
    servers[address].send_signal(signal.SIGCONT)
    expect(page).to_have_url(re.compile("names=semantic.*Mine"), timeout=20_000)
    expect(page.get_by_text(f"{topic.inner_text().split()[-1]} selected sentences")).to_be_visible(timeout=20_000)
    other = visit(page.url, quiet_404=True).locator(".bgt-topic button[aria-pressed=true]")
    expect(other).to_have_text(re.compile("Mine: all"), timeout=60_000)


OUTSIDE = """() => { const drawing = document.querySelector("svg.main-svg").getBoundingClientRect();
  return [...document.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < drawing.left || box.right > drawing.right ||
      box.top < drawing.top || box.bottom > drawing.bottom);
  }).map(text => text.textContent); }"""


def save(page: Page, kind: str, folder: Path) -> Path:
    """Press a button in the open list of downloads. Return the file that the browser has saved."""
    with page.expect_download() as download:
        page.get_by_test_id("stPopoverBody").get_by_role("button", name=kind).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_a_figure_is_saved_for_print_and_as_vectors(visit: Callable, address: str, tmp_path: Path) -> None:
    page = visit(f"{address}/probes", theme="dark", quiet_404=True)
    page.get_by_role("button", name="Export").first.click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_focused()
    png, svg = save(page, "PNG", tmp_path), save(page, "SVG", tmp_path)
    assert png.stem == svg.stem and png.stem.startswith("bgt-probes")
    with Image.open(png) as image:
        assert image.width >= 2000 and image.info["dpi"] == pytest.approx((300, 300), abs=0.01)
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    drawing = svg.read_text("utf-8")
    assert "<image" not in drawing and "data:image" not in drawing and "Source Sans" not in drawing
    expect(page.get_by_role("status").filter(has_text="Saved")).to_contain_text(svg.name)
    page.set_content(drawing)  # the drawing is shown without the app and its fonts
    expect(page.locator("text").filter(has_text="Test accuracy")).to_have_count(1)
    assert page.evaluate(OUTSIDE) == []
