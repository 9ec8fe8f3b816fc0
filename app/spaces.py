"""Latents of sentences as maps and tables, cached; a page draws what it gets here."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import streamlit as st

from app import geometry, rows
from app.options import Corpus
from app.state import Loaded, embed
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.parallel import Skipped, read_pairs

MEASURED = 1_000  # pairs that scores are taken of: all against all is a square
_umap = threading.Lock()  # numba's default threads must not be entered twice


def sentences(corpus: Corpus, count: int) -> pd.DataFrame:
    """The first `count` translation pairs, two rows each; shared, so never changed. BgtError for an unreadable file."""
    return _sentences(corpus, count, corpus.file.stat().st_mtime_ns if corpus.file and corpus.file.exists() else 0)


@st.cache_resource(max_entries=6, show_spinner="Reading sentences")
def _sentences(corpus: Corpus, count: int, written: int) -> pd.DataFrame:
    if corpus.file is None:
        return rows.built_in(count)
    found = []
    for pair in read_pairs(corpus.file, corpus.langs, Skipped()):
        found.append(pair)
        if len(found) == count:
            break
    return rows.pairs(found, corpus.langs)


@dataclass(frozen=True)
class Space:
    """One latent of some sentences: a table with map coordinates `x` and `y`, and a vector a row, (N, D)."""

    rows: pd.DataFrame
    vectors: np.ndarray
    fit: geometry.Projection
    digest: str  # of the vectors it was fitted on

    @property
    def given(self) -> np.ndarray:
        """Which rows are the corpus': the ones the map is fitted on and scores are taken of, (N,) bool."""
        return ~self.rows["own"].to_numpy()

    def of(self, lang: str) -> np.ndarray:
        """Vectors of the first corpus rows of a language."""
        return self.vectors[self.given & (self.rows["lang"] == lang).to_numpy()][:MEASURED]


def spaces(loaded: Loaded, table: pd.DataFrame, method: geometry.Method) -> tuple[Space, dict[str, Space]]:
    """The semantic space of all rows, and a space for each language's own latent, if any: they share no axes."""
    parts = table.groupby("lang", sort=False) if loaded.manner else ()
    own = {lang: space(loaded, part, LANGUAGE, method) for lang, part in parts}
    return space(loaded, table, SEMANTIC, method), own


def space(loaded: Loaded, table: pd.DataFrame, latent: str, method: geometry.Method) -> Space:
    """The latent of every row; the map is fitted on the corpus' rows, and the user's are placed on it."""
    vectors = None
    for (lang, _), at in table.groupby(["lang", "own"], sort=False).indices.items():
        part = embed(loaded, table["text"].iloc[at], lang, latent)
        vectors = np.empty((len(table), part.shape[1]), np.float32) if vectors is None else vectors
        vectors[at] = part
    own = table["own"].to_numpy()
    key = digest(vectors[~own])
    fit = _fitted(key, method, vectors[~own])
    xy = np.empty((len(table), 2))
    xy[~own] = fit.xy
    if own.any():
        xy[own] = _placed(digest(vectors[own]), key, method, fit, vectors[own])
    return Space(table.assign(x=xy[:, 0], y=xy[:, 1]), vectors, fit, key)


def coloured(semantic: Space, language: Mapping[str, Space], colour: str) -> tuple[Space, dict[str, Space]]:
    """The same spaces, their rows with the column `colour` where sentences alone don't have it."""
    rows_of = semantic.rows
    if colour in rows.PROBED:
        found = rows.labelled(rows_of["text"].tolist(), colour)
    elif colour == rows.CLUSTER:
        key = digest(semantic.vectors)
        groups = _clusters(key, semantic.vectors, semantic.given)
        found = pd.Categorical([str(group + 1) for group in groups], [str(n + 1) for n in range(rows.CATEGORIES)])
    else:
        return semantic, dict(language)
    values = pd.Series(found, rows_of["id"])

    def with_it(space: Space) -> Space:
        return replace(space, rows=space.rows.assign(**{colour: values[space.rows["id"]].array}))

    return with_it(semantic), {lang: with_it(space) for lang, space in language.items()}


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, _vectors: np.ndarray, _given: np.ndarray) -> np.ndarray:
    return geometry.clusters(_vectors, _given, rows.CATEGORIES)


def digest(vectors: np.ndarray) -> str:
    """The content of a matrix."""
    return hashlib.sha256(np.ascontiguousarray(vectors)).hexdigest()


@st.cache_resource(max_entries=24, show_spinner=False)
def _fitted(digest: str, method: geometry.Method, _vectors: np.ndarray) -> geometry.Projection:
    with _umap:
        return geometry.fit(_vectors, method)


def placed(space: Space, method: geometry.Method, new: np.ndarray) -> np.ndarray:
    """New vectors (M, D) on the map of a space, (M, 2)."""
    return _placed(digest(new), space.digest, method, space.fit, new)


@st.cache_data(max_entries=64, show_spinner=False)
def _placed(
    digest: str, fitted_on: str, method: geometry.Method, _fit: geometry.Projection, _new: np.ndarray
) -> np.ndarray:
    with _umap:
        return _fit.place(_new)


def nearest(space: Space, row: str, count: int) -> pd.DataFrame:
    """The sentences nearest to the one of that id in the full space, with their cosines."""
    (at,) = np.flatnonzero(space.rows["id"] == row)
    found, cosines = geometry.nearest(space.vectors, at, count)
    near = space.rows.iloc[found]
    return pd.DataFrame({"Cosine": cosines, "In": near["lang"], "Sentence": near["text"]})


def nearest_to(loaded: Loaded, text: str, lang: str, corpus: Corpus, pairs: int, count: int) -> pd.DataFrame:
    """The sentences of a corpus nearest in meaning to one that need not be in it, with their cosines."""
    table = sentences(corpus, pairs)
    found = [(part, embed(loaded, part["text"], key, SEMANTIC)) for key, part in table.groupby("lang", sort=False)]
    asked = embed(loaded, [text], lang, SEMANTIC)
    vectors = np.concatenate([asked, *(vectors for _, vectors in found)])
    order, cosines = geometry.nearest(vectors, 0, count)
    near = pd.concat([part for part, _ in found]).iloc[order - 1]
    return pd.DataFrame({"Cosine": cosines, "In": near["lang"], "Sentence": near["text"]})


def trusted(space: Space, method: geometry.Method) -> float | None:
    """Trustworthiness of the map."""
    return _trusted(space.digest, method, space.vectors[space.given], space.fit.xy)


@st.cache_data(max_entries=64, show_spinner=False)
def _trusted(digest: str, method: geometry.Method, _vectors: np.ndarray, _xy: np.ndarray) -> float | None:
    return geometry.trust(_vectors, _xy)


def pair_table(semantic: Space, left: str, right: str) -> pd.DataFrame:
    """How well translations find each other in the semantic latent, and whether a probe still tells the languages
    apart; beside chance."""
    one, other = rows.name(left), rows.name(right)
    found, (apart, low, high) = _pair_scores(semantic.digest, left, right, semantic)
    table = {
        f"{one} finds its {other}": [f"{found.there:.0%}", f"{found.chance:.1%}"],
        f"{other} finds its {one}": [f"{found.back:.0%}", f"{found.chance:.1%}"],
        "Mean cosine of translations": [f"{found.translations:.2f}", f"{found.others:.2f}"],
        "Language told by a probe": [f"{apart:.0%} ({low:.0%} to {high:.0%})", "50%"],
    }
    return pd.DataFrame.from_dict(table, orient="index", columns=["Semantic", "Chance"])


@st.cache_data(max_entries=16, show_spinner=False)
def _pair_scores(
    digest: str, left: str, right: str, _semantic: Space
) -> tuple[geometry.PairScores, tuple[float, float, float]]:
    sides = _semantic.of(left), _semantic.of(right)
    return geometry.pair_scores(*sides), geometry.language_probe_accuracy(*sides)


def agreements(semantic: Space, language: Mapping[str, Space], counted: Sequence[str]) -> pd.DataFrame:
    """How often a sentence's nearest in its own language shares what is counted, in each latent and by chance:
    means over the languages, as percentages."""
    table = {}
    for column in counted:
        shares = np.mean(
            [_agreement(semantic.digest, lang, column, semantic, own) for lang, own in language.items()], 0
        )
        table[rows.COUNTED[column]] = [f"{share:.0%}" for share in shares]
    return pd.DataFrame.from_dict(table, orient="index", columns=["Semantic", "Language", "Chance"])


@st.cache_data(max_entries=64, show_spinner=False)
def _agreement(digest: str, lang: str, column: str, _semantic: Space, _own: Space) -> tuple[float, float, float]:
    values = _own.rows.loc[_own.given, column].tolist()[:MEASURED]
    (meaning, chance), (manner, _) = (geometry.agreement(space.of(lang), values) for space in (_semantic, _own))
    return meaning, manner, chance
