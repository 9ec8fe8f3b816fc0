"""Pairs of sentences with their similarity in each of the two latents, to find where the latents disagree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import streamlit as st

from app.core import corpora, rows
from app.core.latents import spaces
from app.core.startup import ParallelText
from app.core.state import Loaded, content
from bgt_core.contracts import SEMANTIC

NEAR_IN_MEANING, NEAR_IN_STYLE, RANDOM = "Nearest in meaning", "Nearest in style", "Random pairs"  # kinds of pairs
OWN_PAIRS = "Your pairs"
MAX_SEARCHED = 5_000  # sentences searched for neighbours; all against all is quadratic
AT_ONCE = 1_000  # rows whose similarities are in memory at once
ANCHORS = 300  # translations through which two sentences of different languages are compared
AXES = ("semantic", "style")  # columns of pairs
QUADRANTS = {  # (alike in meaning, alike in style) -> its name, in the order of the page
    (False, True): "Alike in style, not in meaning",
    (True, True): "Alike in both",
    (False, False): "Alike in neither",
    (True, False): "Alike in meaning, not in style",
}


@dataclass(frozen=True)
class PairSource:
    """Kinds of pairs from a text: translations of two languages; the user's own pairs of one language, or pairs made
    here."""

    left: str
    right: str
    given: bool  # the text's own pairs

    @property
    def title(self) -> str:
        left, right = map(rows.language_name, (self.left, self.right))
        if not self.given:
            return f"Within {left}"
        return OWN_PAIRS if self.left == self.right else f"{left} and {right}"

    @property
    def kind(self) -> str:
        """The name of its given pairs."""
        return OWN_PAIRS if self.left == self.right else "Translations"


def sources(text: ParallelText) -> list[PairSource]:
    """The pairs that can be made of a text, those of one language first."""
    own = [PairSource(text.langs[0], text.langs[0], True)] if len(text.sides) > len(text.langs) else []
    made = [PairSource(lang, lang, False) for lang in text.langs]
    return [*own, *made, *(PairSource(left, right, True) for left, right in combinations(text.langs, 2))]


def pairs(loaded: Loaded, text: ParallelText, count: int, source: PairSource) -> pd.DataFrame:
    """A row per pair of the first `count` rows of a text, random pairs last; shared, so do not change it.

    Columns: `kind`; `left`, `right`, and the ids of their rows `left_row` and `right_row`; their similarity `semantic`,
    and `style` in the second latent; the share of words in common, `overlap`, and the difference in length, `length`; a
    user's own columns, for given pairs only.
    """
    table = corpora.sentences(text, count)
    compared = _pairs(loaded.digest, content(table["text"]), source, table, loaded)
    own = [column for column in table if column.startswith("own:")]
    if not (own and source.given):
        return compared
    given = compared[compared["kind"] != RANDOM]
    extra = table.set_index("id").loc[given["left_row"], own].set_axis(given.index)
    return compared.join(extra)


@st.cache_data(max_entries=8, show_spinner="Comparing pairs")
def _pairs(digest: str, content: str, source: PairSource, _table: pd.DataFrame, _loaded: Loaded) -> pd.DataFrame:
    part = _table[_table["lang"].isin([source.left, source.right])]
    if not source.given:
        part = part.drop_duplicates("text").head(MAX_SEARCHED)
    part = part.reset_index(drop=True)
    meaning, style = (spaces.vectors_of(_loaded, part, latent) for latent in (SEMANTIC, _loaded.second_latent))
    pairwise = _loaded.encoder.similarity_pairwise
    tables = []
    for kind, left, right in indices(_loaded, part, source, meaning, style):
        compared = {
            "kind": kind,
            "left": part["text"].to_numpy()[left],
            "right": part["text"].to_numpy()[right],
            "left_row": part["id"].to_numpy()[left],
            "right_row": part["id"].to_numpy()[right],
            "semantic": pairwise(meaning[left], meaning[right]).astype(float),
            "style": (
                pairwise(style[left], style[right]).astype(float)
                if source.left == source.right
                else across(_loaded, style, left, right)
            ),
            "length": np.abs(part["words"].to_numpy()[left] - part["words"].to_numpy()[right]),
        }
        tables.append(pd.DataFrame(compared))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(overlap=list(map(rows.overlap, table["left"], table["right"])))


def indices(
    loaded: Loaded, table: pd.DataFrame, source: PairSource, meaning: np.ndarray, style: np.ndarray
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Kinds of pairs, with the indices in the table of their left and right sentences."""
    rng = np.random.default_rng(0)
    if source.given:  # all left sentences come before all right ones
        left = np.arange(len(table) // 2)
        right = left + len(left)
        yield source.kind, left, right
        shuffled = rng.permutation(left)
        other = np.roll(shuffled, 1) + len(left)
    else:
        latents = {NEAR_IN_MEANING: meaning, NEAR_IN_STYLE: style}
        for kind, vectors in latents.items():
            near = nearest(loaded, vectors)
            ends = np.unique(np.sort(np.stack([np.arange(len(near)), near], 1), axis=1), axis=0)  # each pair once
            yield kind, ends[:, 0], ends[:, 1]
        shuffled = rng.permutation(len(table))
        other = np.roll(shuffled, 1)
    texts = table["text"].to_numpy()
    different = texts[shuffled] != texts[other]
    yield RANDOM, shuffled[different], other[different]


def nearest(loaded: Loaded, vectors: np.ndarray) -> np.ndarray:
    """The index of the vector most similar to each, without itself: (N, D) -> (N,)."""
    places = []
    for start in range(0, len(vectors), AT_ONCE):
        similarities = loaded.encoder.similarity(vectors[start : start + AT_ONCE], vectors)
        similarities[np.arange(len(similarities)), start + np.arange(len(similarities))] = -np.inf
        places.append(similarities.argmax(1))
    return np.concatenate(places)


def across(loaded: Loaded, style: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compare the styles of sentences in two languages, which have no common axes, by their relations to translations.

    Each sentence's similarities to `ANCHORS` sentences of its own language, less the anchors' means, are correlated
    with those of the other sentence to the anchors' translations; a sentence is never its own anchor. The first half of
    `style` (N, D) holds sentences of one language, the second their translations. Returns (P,), -1 to 1.
    """
    half = len(style) // 2
    anchors = np.unique(np.linspace(0, half - 1, min(ANCHORS, half)).astype(int))
    profiles = []
    for part in (style[:half], style[half:]):
        profile = loaded.encoder.similarity(part, part[anchors]).astype(float)  # (N / 2, A)
        profile -= profile.mean(0)
        profile -= profile.mean(1, keepdims=True)
        profile[anchors, np.arange(len(anchors))] = 0
        profiles.append(profile / np.maximum(np.linalg.norm(profile, axis=1, keepdims=True), 1e-12))
    return (profiles[0][left] * profiles[1][right - half]).sum(1)


def cuts(table: pd.DataFrame, percentiles: tuple[int, int]) -> tuple[float, float]:
    """The thresholds of similarity in meaning and in style: these percentiles of random pairs."""
    random = table[table["kind"] == RANDOM]
    meaning, style = (float(np.percentile(random[column], at)) for column, at in zip(AXES, percentiles, strict=True))
    return meaning, style


def quadrants(table: pd.DataFrame, lines: tuple[float, float]) -> dict[str, pd.DataFrame]:
    """The pairs of each quadrant by its name, the most extreme first: those farthest from both lines, in standard
    deviations of all pairs."""
    meaning, style = (table[axis].to_numpy() >= line for axis, line in zip(AXES, lines, strict=True))
    apart = [(table[axis] - line) / max(table[axis].std(), 1e-12) for axis, line in zip(AXES, lines, strict=True)]
    extreme = np.minimum(*np.abs(np.array(apart)))  # the distance to the nearer line
    table = table.assign(extreme=extreme)
    return {
        name: table[(meaning == alike) & (style == similar)].sort_values("extreme", ascending=False, kind="stable")
        for (alike, similar), name in QUADRANTS.items()
    }
