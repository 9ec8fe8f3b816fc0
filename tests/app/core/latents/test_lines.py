"""Lines join what belongs together."""

from __future__ import annotations

import numpy as np
import pandas as pd

from app.core import rows
from app.core.latents.lines import contours, pair_lines, path_trace
from bgt_core.data.examples import example_sentences


def test_translations_in_three_languages_are_joined_to_closed_triangles() -> None:
    triples = example_sentences(("en", "fr", "de"))[:4]
    table = rows.translations(triples, ("en", "fr", "de")).assign(x=np.arange(12.0), y=0.0)
    every = pair_lines(table, [])
    assert list(every.x) == [x for pair in range(4) for x in (pair, pair + 4, pair + 8, pair, None)]
    assert list(pair_lines(table, ["fr2"]).x) == [2, 6, 10, 2, None]


def test_the_ends_of_a_way_have_their_numbers() -> None:
    way = path_trace(np.arange(8.0).reshape(4, 2), "light")
    assert list(way.text) == ["1", "", "", "4"] and list(way.customdata) == [1, 2, 3, 4]
    assert list(way.x) == [0, 2, 4, 6] and list(way.y) == [1, 3, 5, 7]


def test_contours_are_highest_where_most_points_are() -> None:
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal((-3, 2), 0.3, (300, 2)), rng.normal((4, -1), 0.3, (30, 2))])
    drawn = contours(pd.DataFrame(places, columns=["x", "y"]), "light")
    row, column = np.unravel_index(np.argmax(drawn.z), drawn.z.shape)
    assert abs(drawn.x[column] + 3) < 0.3 and abs(drawn.y[row] - 2) < 0.3
    assert np.asarray(drawn.z).sum() <= 330 and drawn.x[0] < places[:, 0].min()
