"""Test topics, groups of near points in two levels, and their names, on sentences placed by hand."""

import numpy as np

from app.core import rows
from app.core.latents import topics

SENTENCES = ("May I see the dog?", "May I see the cat?", "We live by the river.", "The dogs sleep in town.")


def test_topics_are_named_by_content_words_or_by_style_or_by_a_sentence_and_finer_ones_are_inside_coarse_ones() -> None:
    """Four groups of 20 sentences, each at one place. "Dogs" counts as "dog"; "may" and "the" never name a topic."""
    table = rows.table(np.repeat(SENTENCES, 20).tolist(), "en", ["Oui."] * 80)
    xy = np.repeat([[0.0, 0], [0, 1], [9, 0], [90, 90]], 20, axis=0)
    for by_style, names in {
        False: ["dog, see", "cat, see", "live, river", "sleep, town, dog"],
        True: ["question, “may”"],
    }.items():
        found, coarse, _ = topics.topics("placed", xy, by_style, table)
        assert [found[coarse[at]]["name"] for at in range(0, 80, 20)][: len(names)] == names
    same, xy = rows.table(["It is so."] * 400, "en", ["Oui."] * 400), np.random.default_rng(0).normal(size=(400, 2))
    found, coarse, finest = topics.topics("same", xy, False, same)
    parents = np.array([topic["parent"] for topic in found])
    assert (parents[:6] == -1).all() and len(parents) == 30 and (parents[finest] == coarse).all()
    assert found[0]["name"] == "“It is so.”" and found[0]["saying"] == 0
