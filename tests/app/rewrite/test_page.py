"""The page that changes the style, by example and in a direction."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

import bgt_core
from app.core import state, writing
from app.core.markdown import verbatim
from app.rewrite import compute, page
from bgt_core.evaluation.facts import checks, differences
from bgt_core.vectors.compare import cosines
from tests.close import FLOAT32, assert_close

Open = Callable[..., Any]


def ask(app: Any, source: str, style: str) -> Any:
    """Fill the form in and send it."""
    app.text_area(key="source").set_value(source)
    app.text_area(key="style").set_value(style)
    return app.press("Generate")


def shown(app: Any) -> str:
    """What was written."""
    (tab,) = (tab for tab in app.tabs if tab.label == app.session_state["how"])
    (text,) = re.findall('<p class="written".*?>(.*?)</p>', "".join(part.proto.body for part in tab.get("html")))
    return unescape(text)


def test_the_output_is_the_librarys(opened: Open, library: Callable, saved: Path) -> None:
    app = ask(opened("rewrite", how="One sentence", lang="English"), "The cat sleeps.", "Is it late?")
    bgt = bgt_core.load(saved)
    expected = library(["The cat sleeps."], ["Is it late?"])[0].text
    assert shown(app) == expected
    output, source, style = bgt.embed([expected, "The cat sleeps.", "Is it late?"], lang="en")
    semantic = app.dataframe[0].value.set_index("")["Semantic cosine"]
    assert_close(semantic["Source"], cosines(output, source), FLOAT32, scale=1)
    assert_close(semantic["Style"], cosines(output, style), FLOAT32, scale=1)
    styles = bgt.embed([expected, "Is it late?"], lang="en", latent="language")
    table = app.dataframe[0].value.set_index("")
    assert_close(table.loc["Style", "Language cosine"], cosines(*styles), FLOAT32, scale=1)
    for name, text in (("Source", "The cat sleeps."), ("Style", "Is it late?")):
        assert table.loc[f"{name}, rebuilt", "Text"] == library([text], [text])[0].text


@pytest.mark.parametrize(
    ("lang", "mix", "style", "taken"),
    [("fr", 1.0, "Il est tard.", "Il est tard."), ("en", 0.0, "Is it late?", "The cat sleeps.")],
    ids=("of another language", "no mix, so the source's own"),
)
def test_the_style_may_be_another(
    opened: Open, library: Callable, lang: str, mix: float, style: str, taken: str
) -> None:
    app = opened("rewrite", how="One sentence", mix=str(mix), lang={"en": "English", "fr": "French"}[lang])
    assert shown(ask(app, "The cat sleeps.", style)) == library(["The cat sleeps."], [taken], lang)[0].text


def test_what_ends_the_script_ends_the_search_and_frees_the_model(
    opened: Open, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(BaseException):
        """What Streamlit raises where somebody pressed Stop or left."""

    def report(tokens: int) -> None:
        seen.append(tokens)
        if tokens == 2:
            raise Stopped

    opened("rewrite")
    seen: list[int] = []
    loaded = state.model()
    with pytest.raises(Stopped):
        writing.transfer(loaded, "Yes.", "No.", "en", bgt_core.Sample(), report=report)
    assert seen == [0, 1, 2] and state._inference.acquire(timeout=0)
    state._inference.release()


@pytest.mark.slow
def test_stop_ends_the_writing_at_the_next_token(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = writing.transfer

    def transfer(*arguments: object, report: Callable[[int], None], **more: object) -> dict:
        def stop_at_three(tokens: int) -> None:
            seen.append(tokens)
            if tokens == 3:  # somebody presses Stop: the browser asks for the script to be run anew
                context = get_script_run_ctx()
                context.script_requests.request_rerun(RerunData(page_script_hash=context.page_script_hash))
            report(tokens)

        return real(*arguments, report=stop_at_three, **more)

    app = opened("rewrite", how="One sentence")
    monkeypatch.setattr(writing, "transfer", transfer)
    ask(app, "The cat sleeps.", "Is it late?")
    assert seen == [0, 1, 2, 3]
    assert len(app.session_state["history"]) == 1  # the example that the page opened with
    assert any("Not written yet" in caption.value for caption in app.caption)
    monkeypatch.setattr(writing, "transfer", real)
    assert ask(app, "The cat sleeps.", "Is it late?").session_state["history"][0]["tokens_per_second"] > 0


def test_directions_write_every_stop_and_sliders_move(opened: Open, library: Callable) -> None:
    app = opened("rewrite", how="In a direction")
    table = app.table[0].value.set_index(["Direction", "Step"])["Written there"]
    assert [*dict.fromkeys(app.table[0].value["Direction"])] == ["More of a question", "More contracted"]
    stay = table.xs("0", level="Step").tolist()
    sentence = app.text_input(key="sentence_en").value
    expected = library([sentence], [sentence])[0].text
    assert set(stay) == {verbatim(expected)} and shown(app) == expected
    app.put(app.slider(key="move_question"), 4.0)
    assert verbatim(shown(app)) == table["More of a question", "4"]


def cells(app: Any) -> list[str]:
    """What the grid holds, row by row."""
    html = app.html()
    return [unescape(text) for text in re.findall(r"<td.*?>(.*?)<div", html)]


def test_the_page_opens_with_a_grid_that_is_written(opened: Open, library: Callable) -> None:
    app = opened("rewrite", glang="English")
    meanings, styles = (app.text_area(key=f"{side}_en") for side in ("meanings", "styles"))
    assert len(meanings.value.splitlines()) == len(styles.value.splitlines()) == 3
    meanings.set_value("The cat sleeps.\n\nYes & <b>no</b>.")
    styles.set_value("Is it late?\nNo!\nNo!")
    app.run()
    pairs = [(m, s) for m in ("The cat sleeps.", "Yes & <b>no</b>.") for s in ("Is it late?", "No!")]
    written = library(*map(list, zip(*pairs, strict=True)))
    assert cells(app) == [best.text or "(nothing)" for best in written]
    html = app.html()
    assert "Yes &amp; &lt;b&gt;no" in html and "cannot reconstruct this sentence" in html


def test_a_grid_holds_five_by_five_and_needs_a_sentence(opened: Open) -> None:
    app = opened("rewrite", glang="English")
    app.put(app.text_area(key="meanings_en"), "\n".join(f"Number {number}." for number in range(7)))
    assert len(cells(app)) == 15 and any("first 5 lines" in caption.value for caption in app.caption)
    app.put(app.text_area(key="styles_en"), " ")
    assert "at least one" in app.warning[0].value and not cells(app)


def test_a_grid_that_is_stopped_is_not_begun_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "stopped", lambda: True)
    app = opened("rewrite", glang="English")
    assert not cells(app) and not app.session_state["grids"]
    monkeypatch.setattr(page, "stopped", lambda: False)
    assert len(cells(app.press("Write the grid"))) == 9


def test_the_way_between_two_sentences_is_there_at_once(opened: Open, library: Callable) -> None:
    app = opened("rewrite", how="Between two sentences")
    walked = app.session_state["walked"]
    ends = [walked.table["text"].iloc[0], walked.table["text"].iloc[-1]]
    written = library([walked.start, walked.end], [walked.start] * 2)  # the meaning moves
    assert ends == [best.text for best in written]
    texts = walked.table["text"].tolist()
    assert shown(app) == texts[writing.opening(texts) - 1]


def test_an_interpolation_opens_on_a_step_where_something_has_moved() -> None:
    assert writing.opening(["a", "a", "b", "c", "c"]) == 3
    assert writing.opening(["a", "a", "a", "b", "c"]) == 4  # the middle has not moved
    assert writing.opening(["a", "a", "a", "a", "c"]) == 5
    assert writing.opening(["a"] * 5) == 3


def test_sampling_repeats_for_a_seed(opened: Open) -> None:
    app = opened("rewrite", how="One sentence")
    app.put(app.button_group(key="search"), "Sample")
    outputs = []
    for seed in (3, 3, 4):
        app.number_input(key="seed").set_value(seed)
        outputs.append(shown(ask(app, "The cat sleeps.", "Is it late?")))
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.fixture
def loaded(start: Callable[..., None]) -> state.Loaded:
    return state.model()


def test_a_grid_is_written_cell_by_cell_as_one_sentence_is(
    loaded: state.Loaded, saved: Path, library: Callable
) -> None:
    bgt = bgt_core.load(saved)
    meanings, styles = ["The cat sleeps.", "Il est tard."], ["Is it late?", "No!", "Well, I do not know."]
    for meaning_lang, lang in (("en", "en"), ("fr", "en")):
        table, rebuilt = compute.grid(loaded, meanings, meaning_lang, styles, lang)
        assert list(zip(table["meaning"], table["style"], strict=True)) == [(m, s) for m in meanings for s in styles]
        for row in table.itertuples():
            (best,) = library([row.meaning], [row.style], lang, meaning_lang)
            assert row.text == best.text
            assert_close((row.semantic, row.second), (best.kept["semantic"], best.kept["language"]), FLOAT32, scale=1)
            own = bgt.embed([row.meaning], lang="en", latent="language")
            style = bgt.embed([row.style], lang="en", latent="language")
            unchanged = cosines(own[0], style[0]) if meaning_lang == lang else np.nan
            assert row.unchanged == pytest.approx(unchanged, rel=1e-4, nan_ok=True)
        for text, again in zip(meanings, rebuilt, strict=True):
            (best,) = library([text], [text], meaning_lang)
            assert again == best.text
            changed = differences(checks(text, meaning_lang, again, meaning_lang))
            warning = compute.beyond(text, again, meaning_lang)
            assert f"({changed})" in warning if changed else not warning
