"""Test the page that changes the style of a sentence, towards a style sentence or by sliders."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from app.core import state
from app.core.display import verbatim
from app.rewrite import page
from bgt_core.generation import generate
from tests.close import FLOAT32, assert_close
from tests.test_walks import Walk

Open = Callable[..., Any]


def shown(app: Any) -> str:
    """Return the generated sentence that the page shows."""
    (text,) = re.findall('<p class="written".*?>(.*?)</p>', app.html())
    return unescape(text)


def test_directions_that_change_the_sentence_have_sliders(opened: Open, library: Callable) -> None:
    app = opened("rewrite", sentence="The cat sleeps.")
    table = next(table.value for table in app.table if "Direction" in table.value).set_index("Direction")
    moving = {slider.label.partition(":")[0]: slider for slider in app.select_slider}
    assert [*table.index] == [*moving] and moving
    assert sum("held-out sentences" in caption.value for caption in app.caption) == len(moving)
    assert shown(app) == library(["The cat sleeps."], ["The cat sleeps."])[0].text
    for name, slider in moving.items():
        right = slider.options[2]
        text = table.loc[name, "To the right"].removeprefix(f"{right}: ").partition(" ✗ ")[0]
        assert text in (page.AS_IT_IS, verbatim(shown(app.put(slider, right))))
        slider.set_value(page.AS_IT_IS)


@pytest.mark.slow
def test_a_direction_has_the_models_own_accuracies_or_says_why_it_has_no_slider(opened: Open, start: Callable) -> None:
    start()
    captions = [caption.value for caption in opened("rewrite", sentence="Le chat dort.", language="French").caption]
    assert any(re.fullmatch(r"probe \d+%, semantic latent \d+%, best baseline \d+%", caption) for caption in captions)
    assert any(caption.startswith("No slider for *More formal*: the sentence has no form") for caption in captions)


def cells(app: Any) -> list[str]:
    """Return the texts in the cells of the grid, row by row."""
    html = app.html()
    return [unescape(text) for text in re.findall(r"<td.*?>(.*?)<div", html)]


def test_a_grid_is_written_with_up_to_five_rows(opened: Open, library: Callable) -> None:
    app = opened("rewrite", other_language="English")
    assert len(cells(app)) == 9
    app.text_area(key="sentence").set_value("The cat sleeps.")
    app.text_area(key="meanings_en").set_value("\nYes & <b>no</b>.")
    app.text_area(key="other").set_value("Is it late?")
    app.text_area(key="styles_en").set_value("No!\nNo!")
    app.run()
    pairs = [(m, s) for m in ("The cat sleeps.", "Yes & <b>no</b>.") for s in ("Is it late?", "No!")]
    written = library(*map(list, zip(*pairs, strict=True)))
    assert cells(app) == [best.text or "(nothing)" for best in written]
    html = app.html()
    assert "Yes &amp; &lt;b&gt;no" in html and "cannot reconstruct this sentence" in html
    app.put(app.text_area(key="meanings_en"), "\n".join(f"Number {number}." for number in range(7)))
    assert len(cells(app)) == 10 and any("first 5 sentences are used" in caption.value for caption in app.caption)
    app.text_area(key="sentence").set_value("")
    app.put(app.text_area(key="meanings_en"), " ")
    assert len(cells(app)) == 2  # an empty field uses the first default sentence


@pytest.mark.usefixtures("start")
def test_a_grid_is_written_cell_by_cell(library: Callable) -> None:
    loaded = state.model()
    meanings, styles = ["The cat sleeps.", "Il est tard."], ["Is it late?", "No!", "Well, I do not know."]
    for meaning_lang, lang in (("en", "en"), ("fr", "en")):
        table, rebuilt = page.written_grid(loaded, meanings, meaning_lang, styles, lang)
        assert list(zip(table["meaning"], table["style"], strict=True)) == [(m, s) for m in meanings for s in styles]
        for row in table.itertuples():
            (best,) = library([row.meaning], [row.style], lang, meaning_lang)
            assert row.text == best.text
            assert_close((row.semantic, row.second), (best.kept["semantic"], best.kept["language"]), FLOAT32, scale=1)
        for text, again in zip(meanings, rebuilt, strict=True):
            (best,) = library([text], [text], meaning_lang)
            assert again == best.text


def test_a_new_style_is_one_search_and_passes_few_files(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """If only style sentences change, one beam search generates all texts, using functions of at most 25 files."""
    app = opened("rewrite", other_language="English")
    app.text_area(key="styles_en").set_value("No!\nIt's Tom!")
    searches, search = [], generate.searched
    monkeypatch.setattr(generate, "searched", lambda *given, **more: searches.append(given) or search(*given, **more))
    with Walk() as walk:
        app.run()
    assert len(searches) == 1
    walk.passes_at_most(25)
