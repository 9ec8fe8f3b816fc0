"""The widget of maps draws itself in a notebook page, and reports the selected rows to its Python model."""

from playwright.sync_api import Browser

import bgt_core
from bgt_core.data.examples import example_sentences
from bgt_core.notebook import maps

MOUNT = """async ([source, data]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const state = { data };
  const model = { get: (name) => state[name], set: (name, value) => { state[name] = value; }, save_changes() {} };
  module.default.render({ model, el: document.body });
  window.picked = () => state.picked;
}"""


def test_words_found_on_the_maps_are_the_selection(chromium: Browser) -> None:
    english, french = map(list, zip(*example_sentences(("en", "fr"))[:50], strict=True))
    widget = maps(bgt_core.load(), {"en": english, "fr": french})
    with chromium.new_page() as page:
        page.evaluate(MOUNT, [widget._esm, widget.data])
        page.locator("[data-drawn]").wait_for()
        page.get_by_role("searchbox").fill("you")
        page.keyboard.press("Enter")
        widget.picked = page.evaluate("picked()")
    assert len(widget.selection) and all("you" in text.lower() for text in widget.selection["text"])
