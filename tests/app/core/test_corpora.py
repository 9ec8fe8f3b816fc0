"""A user's sentences and files are restored after a reload, for everyone who has the key, and for nobody else."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from app.core import corpora
from app.core.startup import ParallelText
from bgt_core.data.examples import example_sentences

Open = Callable[..., Any]
ENGLISH = [en for en, _ in example_sentences(("en", "fr"))[:40]]


def text(count: int) -> ParallelText:
    return ParallelText(("en",), None, columns=("en",), table=pd.DataFrame({"0": ["a"] * count}), digest=str(count))


def state(count: int) -> corpora.OwnTexts:
    return corpora.OwnTexts(uploaded={"mine": text(count)})


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    corpora._kept.clear()


@pytest.fixture
def starred(opened: Open) -> Any:
    """The page of maps, with a sentence that the user has added as a star."""
    app = opened("maps")
    app.text_area[0].set_value("My own line.")
    return app.press("Draw as stars")


def test_a_reload_brings_sentences_and_files_back(starred: Any, opened: Open) -> None:
    starred.upload("mine.txt", "\n".join(ENGLISH)).press(f"Use these {len(ENGLISH)} rows")
    own = opened("main", own=starred.query_params["own"]).session_state["own"]
    assert [table["text"].tolist() for table in own.typed] == [["My own line."]]
    assert own.uploaded["Yours: mine.txt (en)"].table["0"].tolist() == ENGLISH


def test_another_session_has_them_only_by_the_key(starred: Any, opened: Open) -> None:
    key = starred.query_params["own"]
    assert len(key) >= 22  # 128 random bits in base64 have 22 characters
    other = opened("main", own=key[:-1])
    assert not other.session_state["own"].typed and "own" not in other.query_params
    assert "not kept any more" in other.error[0].value
    assert not opened("main").error


def test_a_link_shows_what_was_there_when_it_was_made(starred: Any, opened: Open) -> None:
    key = starred.query_params["own"]
    assert "own" not in starred.press("Remove your 1 sentence").query_params
    assert opened("main", own=key).session_state["own"].typed[0]["text"].tolist() == ["My own line."]


def test_what_was_not_asked_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "MAX_KEPT", 2)
    keys = [corpora.kept(state(1)) for _ in range(2)]
    assert corpora.recalled(keys[0])
    keys.append(corpora.kept(state(1)))
    assert [corpora.recalled(key) is not None for key in keys] == [True, False, True]


def test_memory_is_bounded_and_what_is_shared_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = state(60)
    size = int(shared.uploaded["mine"].table.memory_usage(deep=True).sum())
    monkeypatch.setattr(corpora, "MAX_BYTES", size + size // 2)
    keys = [corpora.kept(shared), corpora.kept(shared)]
    assert all(map(corpora.recalled, keys))
    keys.append(corpora.kept(state(60)))
    assert [corpora.recalled(key) is not None for key in keys] == [False, False, True]
