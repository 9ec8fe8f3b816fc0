"""A link sets the controls and the selected rows of a page. Sessions share one model."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

import bgt_core
from app.core import address, state
from probes.results.store import Cell, write_cells
from tests.app.conftest import KINDS

Open = Callable[..., Any]
LINKS = {  # page -> URL parameter -> (its text, the value of the control)
    "rewrite": {
        "sentence": ("Il dort.", "Il dort."), "language": ("French", "fr"), "meanings_fr": ("Un.", "Un."),
        "other": ("Is it?", "Is it?"), "other_language": ("English", "en"), "styles_en": ("Two.", "Two."),
        "move_sentence-type_fr": ("question", "question"),
    },
    "maps": {
        "colour": ("Language", "lang"), "pairs": ("100", 100),
        "map": ("UMAP", "UMAP"), "lines": ("false", False), "dense": ("true", True),
        "near_UMAP": ("9", 9), "map_seed": ("3", 3), "find": ("the ", "the "), "move": ("Both", "Both"),
        "way_lang": ("French", "fr"), "start": ("It rains.", "It rains."), "end": ("Does it rain?", "Does it rain?"),
    },
    "pairs": {
        "sentence": ("Un.", "Un."), "other": ("Deux.", "Deux."), "language": ("French", "fr"),
        "other_language": ("French", "fr"), "points": ("Example sentences", "Example sentences"),
        "plane_count": ("1,000", 1_000),
    },
    "probes": {
        "plang": ("French", "fr"), "ptask": ("Punctuation: how much", "punct-num"), "items": ("500", 500),
        "pseeds": ("3", 3), "only_task": ("Length", ["length"]),
        "only_lang": ("English", ["en"]),
    },
    "probes ": {  # the page shows these controls only for results with predictions
        "items_name": ("length", "length"), "items_other": ("majority", "majority"),
    },
}  # fmt: skip
TEXTS = {"meanings_fr", "styles_en", "sentence", "other", "find", "start", "end"}


@pytest.mark.parametrize("page", LINKS)
def test_a_link_sets_every_control(
    opened: Open, start: Callable[..., None], saved: Path, cell: Cell, tmp_path: Path, page: str
) -> None:
    rows = [replace(row, lang="fr") for row in cell.result.rows]  # the English results, labelled as French
    french = replace(cell, result=replace(cell.result, lang="fr", rows=rows))
    write_cells(tmp_path / "both.parquet", [cell, french])
    start("--model", saved, "--results", tmp_path)

    def follow(parameters: dict[str, str]) -> dict[str, object]:
        """Open the page by a link, and return the values of its controls."""
        given = opened(page.strip(), **parameters)
        return {widget.key: widget.value for kind in KINDS for widget in given.get(kind) if widget.key}

    set_to = follow({key: text for key, (text, _) in LINKS[page].items()})
    assert {key: set_to.get(key) for key in LINKS[page]} == {key: value for key, (_, value) in LINKS[page].items()}
    usual = follow({})
    assert all(usual.get(key) != value for key, (_, value) in LINKS[page].items())
    # an empty URL parameter must not hide a control
    assert follow(dict.fromkeys(LINKS[page].keys() - TEXTS, "")).keys() == usual.keys()


def test_two_sessions_share_one_model_until_the_caches_are_cleared(
    opened: Open, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    loaded = []
    real = bgt_core.open_encoder
    monkeypatch.setattr(bgt_core, "open_encoder", lambda path: loaded.append(path) or real(path))
    for _ in range(2):
        opened("card")
    assert state.model().title == "model" and len(loaded) == 1
    st.cache_resource.clear()
    opened("card")
    assert len(loaded) == 2


def test_ids_are_written_as_ranges_and_read_again() -> None:
    ids = [f"{lang}{number}" for lang in ("en", "pt-br", "own") for number in range(120)]
    chosen = ["en0", "en1", "en2", "en9", "en119", "pt-br7", "own3"]
    assert address.as_ranges(chosen) == "en0-2.9.119~pt-br7~own3"
    assert address.in_ranges(address.as_ranges(chosen), ids) == [name for name in ids if name in chosen]
    ids = [f"{prefix}{number}" for prefix in ("en", "en2_", "a1b") for number in range(30)]
    chosen = ["en20", "en2_0", "en2_5", "en2_6", "a1b12"]
    assert address.in_ranges(address.as_ranges(chosen), ids) == [name for name in ids if name in chosen]
    for nonsense in ("", "~", "en", "en1-", "en-1", "../<b>", "en" + "9" * 5000):
        assert address.in_ranges(nonsense, ids) == []
