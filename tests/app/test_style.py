"""The page that changes the style, by example and in a direction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.testing.v1 import AppTest

import bgt_core
from app import state, writing
from bgt_core.generation.rerank import candidates
from bgt_core.generation.search import exchanged
from bgt_core.vectors.compare import cosines

Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]


@pytest.fixture
def ask(press: Callable[[AppTest, str], AppTest]) -> Callable[[AppTest, str, str], AppTest]:
    """ask(app, source, style): fills the form in and sends it."""

    def fill(app: AppTest, source: str, style: str) -> AppTest:
        app.text_area(key="source").set_value(source)
        app.text_area(key="style").set_value(style)
        return press(app, "Generate")

    return fill


def written(saved: Path, source: str, style: str, lang: str) -> str:
    bgt = bgt_core.load(saved)
    latents = exchanged(bgt, [source], [style], lang, lang)
    return candidates(bgt, latents, lang=lang, search=writing.DEFAULT_SEARCH)[0][0].text


@pytest.mark.parametrize(("source", "style"), [("", ""), ("  ", "Yes."), ("Yes.", "\n")])
def test_an_empty_sentence_is_asked_for(opened: Open, ask: Callable, source: str, style: str) -> None:
    app = ask(opened("generate"), source, style)
    assert app.warning and not any(heading.value == "Output" for heading in app.subheader)


def test_the_output_is_the_librarys(opened: Open, ask: Callable, saved: Path) -> None:
    app = ask(opened("generate"), "The cat sleeps.", "Is it late?")
    bgt = bgt_core.load(saved)
    (expected,) = bgt_core.transfer(bgt, ["The cat sleeps."], ["Is it late?"], lang="en", search=writing.DEFAULT_SEARCH)
    assert app.code[0].value == expected
    output, source, style = bgt.embed([expected, "The cat sleeps.", "Is it late?"], lang="en")
    shown = app.dataframe[0].value.set_index("")["Meaning: cosine"]
    assert shown["Source"] == pytest.approx(cosines(output, source), abs=1e-5)
    assert shown["Style"] == pytest.approx(cosines(output, style), abs=1e-5)
    manners = bgt.embed([expected, "Is it late?"], lang="en", latent="language")
    table = app.dataframe[0].value.set_index("")
    assert table.loc["Style", "Manner: cosine"] == pytest.approx(cosines(*manners), abs=1e-5)
    for name, text in (("Source", "The cat sleeps."), ("Style", "Is it late?")):
        (again,) = bgt_core.transfer(bgt, [text], [text], lang="en", search=writing.DEFAULT_SEARCH)
        assert table.loc[f"{name}, rebuilt", "Text"] == again


def test_another_style_writes_another_text(opened: Open, ask: Callable) -> None:
    app = opened("generate")
    styles = ("Is it late?", "He said that he was tired.")
    assert len({ask(app, "The cat sleeps.", style).code[0].value for style in styles}) == 2


def test_the_style_may_be_of_another_language(opened: Open, ask: Callable, saved: Path) -> None:
    app = opened("generate")
    app.button_group(key="lang").set_value("fr")
    ask(app, "The cat sleeps.", "Il est tard.")
    expected = written(saved, "The cat sleeps.", "Il est tard.", "fr")
    assert app.code[0].value == expected


def test_no_mix_is_the_sources_own_manner(opened: Open, ask: Callable, saved: Path) -> None:
    app = opened("generate")
    app.slider(key="mix").set_value(0.0)
    ask(app, "The cat sleeps.", "Is it late?")
    expected = written(saved, "The cat sleeps.", "The cat sleeps.", "en")
    assert app.code[0].value == expected


def test_sampling_repeats_for_a_seed(opened: Open, run: Run, ask: Callable) -> None:
    app = opened("generate")
    app.button_group(key="search").set_value("Sample")
    run(app)
    outputs = []
    for seed in (3, 3, 4):
        app.number_input(key="seed").set_value(seed)
        outputs.append(ask(app, "The cat sleeps.", "Is it late?").code[0].value)
    assert outputs[0] == outputs[1] != outputs[2]


def test_a_long_text_is_cut_with_a_word(opened: Open, ask: Callable) -> None:
    app = ask(opened("generate"), "word " * 1000, "Yes.")
    assert "first 500 characters" in app.warning[0].value and app.code


def test_a_busy_model_says_so(opened: Open, ask: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("generate")
    monkeypatch.setattr(state, "PATIENCE", 0.01)
    with state.inference():
        ask(app, "Yes.", "No.")
        assert "busy" in app.error[0].value
    assert ask(app, "Yes.", "No.").code and not app.error


def test_the_session_remembers_twenty(opened: Open, ask: Callable) -> None:
    app = opened("generate")
    for number in range(21):
        ask(app, f"Number {number}.", "Yes.")
    remembered = app.dataframe[1].value["Source"].tolist()
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

    opened("generate")
    seen: list[int] = []
    loaded = state.model()
    with pytest.raises(Stopped):
        writing.transfer(loaded, "Yes.", "No.", "en", bgt_core.Sample(), report=report)
    assert seen == [0, 1, 2] and state._inference.acquire(timeout=0)
    state._inference.release()


def test_stop_ends_the_writing_at_the_next_piece(
    opened: Open, ask: Callable, run: Run, monkeypatch: pytest.MonkeyPatch
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

    app = opened("generate")
    monkeypatch.setattr(writing, "transfer", transfer)
    ask(app, "The cat sleeps.", "Is it late?")
    assert seen == [0, 1, 2, 3]
    assert not app.session_state["history"] and any(
        "Nothing is written yet" in caption.value for caption in app.caption
    )
    monkeypatch.setattr(writing, "transfer", real)
    assert ask(app, "The cat sleeps.", "Is it late?").session_state["history"][0]["tokens_per_second"] > 0


def test_directions_write_every_stop_and_sliders_move(opened: Open, run: Run, saved: Path) -> None:
    app = opened("generate")
    table = app.dataframe[0].value.set_index(["Direction", "Step"])["Written there"]
    assert len(table) == sum(len(stops) for _, _, stops in writing.FACTORS.values())
    stay = table.xs(0, level="Step").tolist()
    sentence = app.text_input(key="sentence_en").value
    expected = written(saved, sentence, sentence, "en")
    assert stay == [expected] * 3 and app.code[0].value == expected
    app.slider(key="move_words").set_value(9.0)
    run(app)
    assert app.code[0].value == table["Longer", 9]


def test_a_direction_asks_for_a_sentence(opened: Open, run: Run) -> None:
    app = opened("generate")
    app.text_input(key="sentence_en").set_value(" ")
    assert "Type a sentence" in run(app).warning[0].value
