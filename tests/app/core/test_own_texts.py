"""A user's own sentences and files after a reload: there again for whoever has the key, and for nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.core import own_texts, rows
from app.core.startup import ParallelText
from bgt_core.data.examples import example_sentences

MAIN = Path(__file__).resolve().parents[3] / "app" / "main.py"
Open = Callable[[str], AppTest]
Run = Callable[[AppTest], AppTest]
Press = Callable[[AppTest, str], AppTest]
ENGLISH = [en for en, _ in example_sentences(("en", "fr"))[:40]]


def text(count: int) -> ParallelText:
    return ParallelText(("en",), None, columns=("en",), table=pd.DataFrame({"0": ["a"] * count}), digest=str(count))


def state(count: int) -> own_texts.OwnTexts:
    return own_texts.OwnTexts(uploaded={"mine": text(count)})


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    own_texts._kept.clear()


def reloaded(app: AppTest, run: Run) -> AppTest:
    """Another session, opened by the address of this one."""
    again = AppTest.from_file(MAIN, default_timeout=180)
    for name in app.query_params:
        again.query_params[name] = app.query_params[name]
    return run(again)


def test_a_reload_brings_sentences_and_files_back(opened: Open, run: Run, press: Press) -> None:
    app = press(opened("maps"), "Upload")
    app.file_uploader(key="own_file").set_value(("mine.txt", "\n".join(ENGLISH).encode(), "text/plain"))
    press(run(app), f"Use these {len(ENGLISH)} rows")
    app.text_area[0].set_value("My own line.")
    press(app, "Draw as stars")
    own = reloaded(app, run).session_state["own"]
    assert [table["text"].tolist() for table in own.typed] == [["My own line."]]
    assert own.uploaded["Yours: mine.txt (en)"].table["0"].tolist() == ENGLISH


def test_another_session_has_them_only_by_the_key(opened: Open, run: Run, press: Press) -> None:
    app = opened("maps")
    app.text_area[0].set_value("My own line.")
    key = press(app, "Draw as stars").query_params["own"]
    assert len(key) >= 22  # 128 random bits in base64
    app.query_params["own"] = key[:-1]
    other = reloaded(app, run)
    assert not other.session_state["own"].typed and "own" not in other.query_params
    assert "no longer keeps" in other.toast[0].value
    del app.query_params["own"]
    assert not reloaded(app, run).toast


def test_a_link_shows_what_was_there_when_it_was_made(opened: Open, run: Run, press: Press) -> None:
    app = opened("maps")
    app.text_area[0].set_value("My own line.")
    press(app, "Draw as stars")
    link = dict(app.query_params)
    press(app, "Remove all 1")
    assert "own" not in app.query_params
    app.query_params["own"] = link["own"]
    assert reloaded(app, run).session_state["own"].typed[0]["text"].tolist() == ["My own line."]


def test_what_was_not_asked_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_texts, "MAX_KEPT", 2)
    keys = [own_texts.kept(state(1)) for _ in range(2)]
    assert own_texts.recalled(keys[0])
    keys.append(own_texts.kept(state(1)))
    assert [own_texts.recalled(key) is not None for key in keys] == [True, False, True]


def test_memory_is_bounded_and_what_is_shared_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = state(60)
    size = int(shared.uploaded["mine"].table.memory_usage(deep=True).sum())
    monkeypatch.setattr(own_texts, "MAX_BYTES", size + size // 2)
    keys = [own_texts.kept(shared), own_texts.kept(shared)]
    assert all(map(own_texts.recalled, keys))
    keys.append(own_texts.kept(state(60)))
    assert [own_texts.recalled(key) is not None for key in keys] == [False, False, True]


def test_a_file_can_be_taken_back(opened: Open, run: Run, press: Press) -> None:
    app = press(opened("maps"), "Upload")
    assert not any(button.label == "Remove" for button in app.button)
    app.file_uploader(key="own_file").set_value(("mine.txt", "\n".join(ENGLISH).encode(), "text/plain"))
    press(run(app), f"Use these {len(ENGLISH)} rows")
    assert app.selectbox(key="data").value == "Yours: mine.txt (en)"
    press(app, "Remove")
    box = app.selectbox(key="data")
    assert box.value == box.options[0] and not any("mine.txt" in option for option in box.options)
    assert not any(button.label == "Remove" for button in app.button)
    assert len(rows.examples(("en", "fr"), 300)) == len(app.dataframe[0].value)
