"""The page that changes the style, by example and in a direction."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest

import bgt_core
from app.core import state, writing
from app.rewrite import compute, decoding, page
from bgt_core.generation.generate import candidates, exchanged
from bgt_core.vectors.compare import cosines

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]


@pytest.fixture
def tab(opened: Open, run: Run) -> Open:
    """tab(title): the page with that tab open."""

    def show(title: str) -> AppTest:
        app = opened("rewrite")
        app.session_state["how"] = title
        return run(app)

    return show


@pytest.fixture
def ask(press: Callable[[AppTest, str], AppTest]) -> Callable[[AppTest, str, str], AppTest]:
    """ask(app, source, style): fills the form in and sends it."""

    def fill(app: AppTest, source: str, style: str) -> AppTest:
        app.text_area(key="source").set_value(source)
        app.text_area(key="style").set_value(style)
        return press(app, "Generate")

    return fill


def shown(app: AppTest) -> str:
    """What was written."""
    (tab,) = (tab for tab in app.tabs if tab.label == app.session_state["how"])
    (text,) = re.findall('<p class="written".*?>(.*?)</p>', "".join(part.proto.body for part in tab.get("html")))
    return unescape(text)


def written(saved: Path, source: str, style: str, lang: str) -> str:
    bgt = bgt_core.load(saved)
    latents = exchanged(bgt, [source], [style], lang, lang)
    return candidates(bgt, latents, lang=lang, search=writing.DEFAULT_SEARCH)[0][0].text


@pytest.mark.parametrize(("source", "style"), [("", ""), ("  ", "Yes."), ("Yes.", "\n")])
def test_an_empty_sentence_is_asked_for(tab: Open, ask: Callable, source: str, style: str) -> None:
    app = ask(tab("One sentence"), source, style)
    assert app.warning and not any(heading.value == "Output" for heading in app.subheader)  # nor the example's


def test_the_output_is_the_librarys(tab: Open, ask: Callable, saved: Path) -> None:
    app = ask(tab("One sentence"), "The cat sleeps.", "Is it late?")
    bgt = bgt_core.load(saved)
    expected = written(saved, "The cat sleeps.", "Is it late?", "en")
    assert shown(app) == expected
    output, source, style = bgt.embed([expected, "The cat sleeps.", "Is it late?"], lang="en")
    semantic = app.dataframe[0].value.set_index("")["Semantic cosine"]
    assert semantic["Source"] == pytest.approx(cosines(output, source), abs=1e-5)
    assert semantic["Style"] == pytest.approx(cosines(output, style), abs=1e-5)
    manners = bgt.embed([expected, "Is it late?"], lang="en", latent="language")
    table = app.dataframe[0].value.set_index("")
    assert table.loc["Style", "Language cosine"] == pytest.approx(cosines(*manners), abs=1e-5)
    for name, text in (("Source", "The cat sleeps."), ("Style", "Is it late?")):
        assert table.loc[f"{name}, rebuilt", "Text"] == written(saved, text, text, "en")


def test_another_style_writes_another_text(tab: Open, ask: Callable) -> None:
    app = tab("One sentence")
    styles = ("Is it late?", "He said that he was tired.")
    assert len({shown(ask(app, "The cat sleeps.", style)) for style in styles}) == 2


def test_the_style_may_be_of_another_language(tab: Open, ask: Callable, saved: Path) -> None:
    app = tab("One sentence")
    app.button_group(key="lang").set_value("fr")
    ask(app, "The cat sleeps.", "Il est tard.")
    expected = written(saved, "The cat sleeps.", "Il est tard.", "fr")
    assert shown(app) == expected


def test_no_mix_is_the_sources_own_manner(tab: Open, ask: Callable, saved: Path) -> None:
    app = tab("One sentence")
    app.slider(key="mix").set_value(0.0)
    ask(app, "The cat sleeps.", "Is it late?")
    expected = written(saved, "The cat sleeps.", "The cat sleeps.", "en")
    assert shown(app) == expected


def test_sampling_repeats_for_a_seed(tab: Open, run: Run, ask: Callable) -> None:
    app = tab("One sentence")
    app.button_group(key="search").set_value("Sample")
    run(app)
    outputs = []
    for seed in (3, 3, 4):
        app.number_input(key="seed").set_value(seed)
        outputs.append(shown(ask(app, "The cat sleeps.", "Is it late?")))
    assert outputs[0] == outputs[1] != outputs[2]


def test_a_long_text_is_cut_with_a_word(tab: Open, ask: Callable) -> None:
    app = ask(tab("One sentence"), "word " * 1000, "Yes.")
    assert "first 500 characters" in app.warning[0].value and shown(app)


def test_a_busy_model_says_so(tab: Open, ask: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    app = tab("One sentence")
    monkeypatch.setattr(state, "PATIENCE", 0.01)
    with state.inference():
        ask(app, "Yes.", "No.")
        assert "busy" in app.error[0].value
    assert shown(ask(app, "Yes.", "No.")) and not app.error


def test_the_session_remembers_twenty(tab: Open, ask: Callable) -> None:
    app = tab("One sentence")
    for number in range(21):
        ask(app, f"Number {number}.", "Yes.")
    remembered = app.dataframe[2].value["Source"].tolist()
    assert remembered == [f"Number {number}." for number in range(20, 0, -1)]


def test_what_ends_the_script_ends_the_search_and_frees_the_model(
    opened: Open, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(BaseException):
        """What Streamlit raises where somebody pressed Stop or left."""

    def report(pieces: int) -> None:
        seen.append(pieces)
        if pieces == 2:
            raise Stopped

    opened("rewrite")
    seen: list[int] = []
    loaded = state.model()
    with pytest.raises(Stopped):
        writing.transfer(loaded, "Yes.", "No.", "en", bgt_core.Sample(), report=report)
    assert seen == [0, 1, 2] and state._inference.acquire(timeout=0)
    state._inference.release()


def test_stop_ends_the_writing_at_the_next_piece(
    tab: Open, ask: Callable, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = writing.transfer

    def transfer(*arguments: object, report: Callable[[int], None], **more: object) -> dict:
        def stop_at_three(pieces: int) -> None:
            seen.append(pieces)
            if pieces == 3:  # somebody presses Stop: the browser asks for the script to be run anew
                context = get_script_run_ctx()
                context.script_requests.request_rerun(RerunData(page_script_hash=context.page_script_hash))
            report(pieces)

        return real(*arguments, report=stop_at_three, **more)

    app = tab("One sentence")
    monkeypatch.setattr(writing, "transfer", transfer)
    ask(app, "The cat sleeps.", "Is it late?")
    assert seen == [0, 1, 2, 3]
    assert len(app.session_state["history"]) == 1  # the example that the page opened with
    assert any("Not written yet" in caption.value for caption in app.caption)
    monkeypatch.setattr(writing, "transfer", real)
    assert ask(app, "The cat sleeps.", "Is it late?").session_state["history"][0]["tokens_per_second"] > 0


def test_directions_write_every_stop_and_sliders_move(tab: Open, run: Run, saved: Path) -> None:
    app = tab("In a direction")
    table = app.dataframe[0].value.set_index(["Direction", "Step"])["Written there"]
    assert len(table) == sum(len(stops) for _, _, stops in compute.FACTORS.values())
    stay = table.xs(0, level="Step").tolist()
    sentence = app.text_input(key="sentence_en").value
    expected = written(saved, sentence, sentence, "en")
    assert stay == [expected] * 3 and shown(app) == expected
    app.slider(key="move_words").set_value(9.0)
    run(app)
    assert shown(app) == table["Longer", 9]


def test_a_direction_asks_for_a_sentence(tab: Open, run: Run) -> None:
    app = tab("In a direction")
    app.text_input(key="sentence_en").set_value(" ")
    assert "Type a sentence" in run(app).warning[0].value


def cells(app: AppTest) -> list[str]:
    """What the grid holds, row by row."""
    html = "".join(part.proto.body for part in app.get("html"))
    return [unescape(text) for text in re.findall(r"<td.*?>(.*?)<div", html)]


def test_the_page_opens_with_a_grid_that_is_written(opened: Open, run: Run, saved: Path) -> None:
    app = opened("rewrite")
    meanings, styles = (app.text_area(key=f"{side}_en") for side in ("meanings", "styles"))
    assert len(meanings.value.splitlines()) == len(styles.value.splitlines()) == 3
    meanings.set_value("The cat sleeps.\n\nYes & <b>no</b>.")
    styles.set_value("Is it late?\nNo!\nNo!")
    run(app)
    pairs = [(m, s) for m in ("The cat sleeps.", "Yes & <b>no</b>.") for s in ("Is it late?", "No!")]
    assert cells(app) == [written(saved, *pair, "en") or "(nothing)" for pair in pairs]
    html = "".join(part.proto.body for part in app.get("html"))
    assert "Yes &amp; &lt;b&gt;no" in html and "cannot reconstruct this sentence" in html


def test_a_grid_holds_five_by_five_and_needs_a_sentence(opened: Open, run: Run) -> None:
    app = opened("rewrite")
    app.text_area(key="meanings_en").set_value("\n".join(f"Number {number}." for number in range(7)))
    run(app)
    assert len(cells(app)) == 15 and any("first 5 lines" in caption.value for caption in app.caption)
    app.text_area(key="styles_en").set_value(" ")
    run(app)
    assert "at least one" in app.warning[0].value and not cells(app)


def test_another_language_is_told_of_before_anything_is_written(
    opened: Open, tab: Open, ask: Callable, run: Run
) -> None:
    app = ask(tab("One sentence"), "Il fait très froid ce matin dans notre maison.", "Is it late?")
    assert "Source: This looks like French, not English." in [box.value for box in app.warning]
    app = opened("rewrite")
    app.text_area(key="styles_en").set_value("Il fait très froid ce matin dans notre maison.")
    assert "Styles: This looks like French, not English." in [box.value for box in run(app).warning]


def test_a_grid_that_is_stopped_is_not_begun_again(
    opened: Open, press: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "stopped", lambda: True)
    app = opened("rewrite")
    assert not cells(app) and not app.session_state["grids"]
    monkeypatch.setattr(decoding, "stopped", lambda: False)
    assert len(cells(press(app, "Write the grid"))) == 9


def test_the_way_between_two_sentences_is_there_at_once(tab: Open, saved: Path) -> None:
    app = tab("Between two sentences")
    walked = app.session_state["walked"]
    ends = [walked.table["text"].iloc[0], walked.table["text"].iloc[-1]]
    assert ends == [written(saved, text, walked.start, "en") for text in (walked.start, walked.end)]  # meaning moves
    assert shown(app) == walked.table["text"].iloc[4]


def test_a_link_to_the_example_stays_on_one_sentence_when_the_address_drops_it(
    start: Callable[..., None], run: Run, press: Callable[[AppTest, str], AppTest]
) -> None:
    start()
    app = AppTest.from_string("from app.rewrite.page import page\npage()", default_timeout=60)
    app.query_params["source"] = page.EXAMPLE[0]
    assert run(app).session_state["how"] == page.ONE
    app.query_params.clear()  # as the browser does with what a field would say anyway
    assert not press(app, "Generate").exception
    assert app.session_state["how"] == page.ONE and shown(app)
