"""Both latents, language by language: beside the paper's numbers, and against distance to English."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pandas as pd
import pytest

from app.core import theme
from app.core.results import gather
from app.languages import chart as gap_charts
from app.languages import page


def test_a_gap_of_english_belongs_to_the_other_language_of_its_model(cells_of: Callable) -> None:
    given = [
        *cells_of("a", "en"),
        *cells_of("b", "en", langs=("en", "fr", "tr")),
        *cells_of("c", "tr", langs=("en", "tr")),
    ]
    gaps = page.with_paper(gather.gathered([], given).gaps)
    assert gaps.groupby("model")["other"].first().to_dict() == {"a": "fr", "b": "en", "c": "tr"}


def test_trends_need_three_languages(cells_of: Callable) -> None:
    points = {"fr": -10.0, "tr": -20.0, "ja": -40.0}
    tables = gather.gathered([], [cell for lang, gap in points.items() for cell in cells_of(f"en-{lang}", lang, gap)])
    trends = page.trends_of(page.with_paper(tables.gaps), "weeks")
    assert trends["length"].langs == ("fr", "tr", "ja") and trends["length"].pearson < -0.9
    two = gather.gathered([], [cell for lang in ("fr", "tr") for cell in cells_of(f"en-{lang}", lang, points[lang])])
    assert page.trends_of(page.with_paper(two.gaps), "weeks") == {}


def test_the_papers_numbers_stand_beside_where_it_has_any(cells_of: Callable) -> None:
    tables = gather.gathered([], [*cells_of("m", "en"), *cells_of("x", "de", langs=("en", "de"))])
    gaps = page.with_paper(tables.gaps).set_index(["lang", "task"])
    assert gaps.loc[("en", "length"), "paper_gap"] == pytest.approx(73.0 - 80.2)  # table 3, en-fr
    assert gaps.loc["de"]["paper_gap"].isna().all()
    dots = gap_charts.gap_dots(gaps.reset_index()).data
    (grey,) = (trace for trace in dots if trace.name == gap_charts.PAPER)
    assert list(grey.x) == pytest.approx([-7.2, 60.7 - 65.3])
    (own,) = (trace for trace in dots if trace.name.startswith("English"))
    assert grey.marker.symbol == f"{own.marker.symbol}-open" and grey.marker.color == theme.SOFT["light"]


def test_gaps_are_drawn_for_each_language_and_distance(cells_of: Callable) -> None:
    tables = gather.gathered([], [*cells_of("en-fr", "fr", -1.0), *cells_of("en-ja", "ja", 2.0)])
    gaps = page.with_paper(tables.gaps)
    dots = {trace.name: trace for trace in gap_charts.gap_dots(gaps).data}
    assert {name: list(trace.x) for name, trace in dots.items()} == {
        "French": [-1.0, -1.0],
        "Japanese": [2.0, 2.0],
    }
    for name, lang in (("French", "fr"), ("Japanese", "ja")):  # the same in every figure
        assert dots[name].marker.color == theme.lang_colour(lang, "light")
        assert dots[name].marker.symbol == theme.SYMBOLS[theme.lang_place(lang)]
    weeks, axis = page.DISTANCES["weeks"]
    line, *marks = gap_charts.gap_by_distance(gaps, "length", weeks, axis).data
    assert [(*trace.x, *trace.y, *trace.text) for trace in marks] == [(30, -1.0, "French"), (88, 2.0, "Japanese")]
    assert list(line.x) == [30, 88] and list(line.y) == pytest.approx([-1.0, 2.0])
    for name, lang in (("French", "fr"), ("Japanese", "ja")):
        (mark,) = (trace for trace in marks if trace.name == name)
        assert mark.marker.symbol == theme.SYMBOLS[theme.lang_place(lang)]


def test_the_papers_language_latents_are_not_set_beside_syntactic_ones() -> None:
    gap = {"model": "m", "fingerprint": "", "probe": "linear", "lang": "en", "task": "length", "langs": "en fr",
           "first": "semantic", "points": 1.0, "ci_low": 0.0, "ci_high": 2.0, "p": 0.5}  # fmt: skip
    table = pd.DataFrame([gap | {"second": second} for second in ("language", "syntactic", "majority")])
    published = page.with_paper(table).set_index("second")
    assert published["paper_gap"].notna().to_dict() == {"language": True, "syntactic": False}


def test_the_verdict_counts_what_agrees_with_the_paper_and_names_what_does_not() -> None:
    rows = [("tense", 2.0, 5.0), ("subj-num", -1.0, 3.0), ("length", -9.0, -4.0), ("length", 1.0, 4.0)]
    rows += [("gender", 0.5, 2.0), ("depth", 3.0, 6.0), ("length", 0.0, 0.0)]  # the claim says nothing of trees
    rows += [("address", -40.0, -20.0)]
    gaps = pd.DataFrame(rows, columns=["task", "ci_low", "ci_high"])
    assert page.verdict(gaps) == (
        "The paper's claim covers 7 of these results: 3 agree, 2 contradict it (gender of articles, length), and of 2 "
        "the interval holds zero.",
        ["gender", "length"],
    )


@pytest.mark.parametrize(
    ("semantic", "own", "given"), [(1_000.0, 10.0, True), (50.0, 10.0, False), (None, None, False)]
)
def test_the_reason_is_given_where_the_semantic_latent_holds_the_whole_sentence(
    semantic: float | None, own: float | None, given: bool
) -> None:
    log = [] if semantic is None else [{"kind": "valid", "kl/semantic/en": semantic, "kl/en": own}]
    loaded = SimpleNamespace(log=log, langs=("en",), second_latent="language", title="mine")
    reason = page.reason(loaded, ["gender", "length"])
    assert bool(reason) == given == reason.startswith("Why: ")
    assert not given or "the semantic latent of mine holds 1,000 nats" in reason
    assert page.reason(loaded, ["gender"]) == ""
