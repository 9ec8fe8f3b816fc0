"""The widgets draw themselves in a notebook page, and report the selected rows to their Python models."""

import json

from playwright.sync_api import Browser

import bgt_core
from bgt_core.data.examples import example_sentences
from bgt_core.notebook import maps, pairs

MOUNT = """async ([source, values]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.values = { _config: {}, ...values };
  const set = (name, value) => { window.values[name] = value; };
  const model = { get: (name) => window.values[name] ?? null, set, save_changes() {}, on() {} };
  const widget = module.default.render ? module.default : module.default();
  widget.initialize?.({ model });
  widget.render({ model, el: document.body });
}"""
ENGLISH, FRENCH = map(list, zip(*example_sentences(("en", "fr"))[:50], strict=True))


def test_words_found_on_the_maps_are_the_selection(chromium: Browser) -> None:
    widget = maps(bgt_core.load(), {"en": ENGLISH, "fr": FRENCH})
    with chromium.new_page() as page:
        page.evaluate(MOUNT, [widget._esm, {"data": widget.data}])
        page.locator("[data-drawn]").wait_for()
        page.get_by_role("searchbox").fill("you")
        page.keyboard.press("Enter")
        widget.picked = page.evaluate("values.picked")
    assert len(widget.selection) and all("you" in text.lower() for text in widget.selection["text"])


def test_a_pair_that_keys_reach_is_the_selection(chromium: Browser) -> None:
    widget = pairs(bgt_core.load(), ENGLISH, FRENCH, ("en", "fr"))
    values = {f"_widget_{part}": value for part, value in json.loads(widget.figure.to_json()).items()}
    with chromium.new_page() as page:
        page.evaluate(MOUNT, [widget.figure._esm, values])
        page.get_by_role("application").press("PageDown")
        _, left, right, *_ = page.get_by_role("status").inner_text().splitlines()
        page.keyboard.press("Enter")
        widget.figure._js2py_pointsCallback = page.evaluate("values._js2py_pointsCallback")
    assert widget.selection[["left", "right"]].to_numpy().tolist() == [[left, right]]
