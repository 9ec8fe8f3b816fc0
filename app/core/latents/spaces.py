"""Latents of sentences as maps and tables, cached for all sessions."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app.core import rows, state
from app.core.latents import geometry, keywords, probe_axes, stored_maps
from app.core.state import Loaded, embed_parts
from bgt_core.contracts import SEMANTIC

FINE = 24  # fine clusters
QUOTED = 30  # characters of a sentence that names a cluster
MAX_SCORED = 1_000  # translations that scores are computed on: all against all is quadratic
_umap = threading.Lock()  # numba's default threading layer must not be entered twice


@dataclass(frozen=True, eq=False)
class Space:
    """One latent of some sentences: a table with map coordinates `x` and `y`, and a vector per row, (N, D)."""

    rows: pd.DataFrame
    vectors: np.ndarray
    projection: geometry.Projection
    digest: str  # of the model, the latent and the sentences it was fitted on

    @cached_property
    def content(self) -> str:
        """Names the sentences in their order, the user's own included."""
        return stored_maps.content(self.rows)

    @property
    def given(self) -> np.ndarray:
        """Which rows are the text's own: the map is fitted on them and scores are computed on them, (N,) bool."""
        return ~self.rows["own"].to_numpy()

    def of(self, lang: str) -> np.ndarray:
        """Vectors of the first rows of the text in a language."""
        return self.vectors[self.given & (self.rows["lang"] == lang).to_numpy()][:MAX_SCORED]


# Keys of Streamlit's caches: of a space, the digest of its model, latent and given rows.
BY_DIGEST = state.BY_DIGEST | {Space: attrgetter("digest")}


class Spaces(NamedTuple):
    """The semantic space of all rows, and the model's second latent, if it has one, as a space for each language,
    because the spaces of different languages are not comparable."""

    semantic: Space
    second: dict[str, Space]


def spaces(loaded: Loaded, table: pd.DataFrame, method: geometry.Method) -> Spaces:
    """Both kinds of latents of all rows."""
    parts = table.groupby("lang", sort=False) if loaded.second_latent else ()
    second = {lang: space(loaded, part, loaded.second_latent, method) for lang, part in parts}
    return Spaces(space(loaded, table, SEMANTIC, method), second)


def space(loaded: Loaded, table: pd.DataFrame, latent: str, method: geometry.Method) -> Space:
    """The latent of every row; the map is fitted on the text's rows, and the user's are placed on it."""
    vectors = vectors_of(loaded, table, latent)
    own = table["own"].to_numpy()
    given = vectors[~own] if own.any() else vectors  # avoid a needless copy
    key = stored_maps.key(loaded.digest, table[~own], latent)
    if method.name == probe_axes.NAME:
        axes = probe_axes.axes(loaded, table["lang"].unique().tolist(), latent, method.axes)
        projection = probe_axes.projection(given, axes)
    else:
        projection = _fitted(key, method, given, stored_in(loaded))
    xy = np.empty((len(table), 2))
    xy[~own] = projection.xy
    if own.any():
        xy[own] = projection.project(vectors[own])
    return Space(table.assign(x=xy[:, 0], y=xy[:, 1]), vectors, projection, key)


def stored_in(loaded: Loaded) -> Path | None:
    """The model's folder, where maps may be stored."""
    folder = loaded.info.get("folder")
    return Path(folder) if folder else None


def stored(loaded: Loaded, table: pd.DataFrame, method: geometry.Method) -> bool:
    """Whether the maps of the text's rows by this method ship with the model, in all latents."""
    folder = stored_in(loaded)
    maps = _stored(folder) if folder else {}
    parts = stored_maps.parts(table[~table["own"].to_numpy()], loaded.second_latent)
    keys = (stored_maps.key(loaded.digest, part, latent) for latent, part in parts)
    return bool(maps) and all(stored_maps.name(key, method) in maps for key in keys)


@st.cache_resource(max_entries=8, show_spinner=False)
def _stored(folder: Path) -> dict[str, np.ndarray]:
    return stored_maps.read(folder)


def vectors_of(loaded: Loaded, table: pd.DataFrame, latent: str) -> np.ndarray:
    """The latent of every row, each read in its own language: (N, D), read-only where no row is the user's."""
    own = table["own"].to_numpy()
    if not own.any() or own.all():
        return embed_parts(loaded, rows.parts(table), latent)
    given, added = (embed_parts(loaded, rows.parts(part), latent) for part in (table[~own], table[own]))
    vectors = np.empty((len(table), given.shape[1]), np.float32)
    vectors[~own], vectors[own] = given, added
    return vectors


def coloured(spaces: Spaces, colour: str) -> Spaces:
    """The same spaces, with a column `colour` added to their rows if the sentences alone don't have it."""
    semantic = spaces.semantic
    if colour in rows.STYLES:
        values = {colour: rows.styled(semantic.rows, colour).array}
    elif colour == rows.CLUSTER:
        values = _clusters(semantic.digest, semantic.content, semantic)
    elif colour.startswith(rows.OWN_COLUMN):
        values = {colour: rows.as_colour(semantic.rows[colour]).array}
    else:
        return spaces
    value_of = {column: pd.Series(of, semantic.rows["id"]) for column, of in values.items()}

    def with_colour(space: Space) -> Space:
        return replace(
            space, rows=space.rows.assign(**{name: of[space.rows["id"]].array for name, of in value_of.items()})
        )

    return Spaces(with_colour(semantic), {lang: with_colour(space) for lang, space in spaces.second.items()})


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, content: str, _space: Space) -> dict[str, pd.Categorical]:
    """The cluster of each row, and its fine cluster, missing where no word tells it apart."""
    counts = words(content, _space.rows["text"])
    first = (_space.rows["lang"] == _space.rows["lang"].iloc[0]).to_numpy()
    large, fine = (geometry.clusters(_space.vectors, _space.given, count) for count in (rows.CATEGORIES, FINE))
    names: list[str] = []
    for at, name in enumerate(keywords.names(counts, large, first, 3)):
        name = name or quoted(_space.rows["text"].iloc[geometry.central(_space.vectors, large == at)])
        names.append(f"{name} ({at + 1})" if name in names else name)
    fine_names = np.array(keywords.names(counts, fine, first, 2))
    fine_clusters = pd.Categorical(np.where(fine_names[fine] == "", None, fine_names[fine]))
    return {rows.CLUSTER: pd.Categorical.from_codes(large, names), rows.FINE_CLUSTER: fine_clusters}


def quoted(text: str) -> str:
    """The start of a sentence, as the name of a group that no word tells apart."""
    return f"“{text if len(text) <= QUOTED else text[: QUOTED - 1] + '…'}”"


@st.cache_resource(max_entries=4, show_spinner=False)
def words(content: str, _texts: pd.Series) -> keywords.WordCounts:
    """The words of sentences that `content` names."""
    return keywords.word_counts(_texts.tolist())


@st.cache_resource(max_entries=24, show_spinner=False)
def _fitted(digest: str, method: geometry.Method, _vectors: np.ndarray, _folder: Path | None) -> geometry.Projection:
    xy = _stored(_folder).get(stored_maps.name(digest, method)) if _folder else None
    if xy is not None:
        return geometry.placed(_vectors, xy, method.metric)
    with _umap:
        return geometry.fit(_vectors, method)


def vector(space: Space, row: str) -> np.ndarray:
    """The vector (D,) of the row of that id."""
    return space.vectors[int(np.flatnonzero(space.rows["id"] == row)[0])]


def nearest(
    loaded: Loaded, vector: np.ndarray, table: pd.DataFrame, vectors: np.ndarray, count: int, but: str = ""
) -> pd.DataFrame:
    """The rows of a table nearest to a vector (D,) in the full space, with their similarity; `vectors` (N, D) are those
    of the rows. The row with the id `but` is left out."""
    near = table.assign(Cosine=loaded.encoder.similarity(vector[None], vectors)[0])
    near = near[near["id"] != but].sort_values("Cosine", ascending=False, kind="stable").head(count)
    return near[["id", "Cosine", "lang", "text"]].rename(columns={"lang": "In", "text": "Sentence"})


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def trust(space: Space, method: geometry.Method) -> float | None:
    """Trustworthiness of the map; None if its vectors are all the same, or few."""
    if space.projection.variance == 0:
        return None
    return geometry.trust(space.vectors[space.given], space.projection.xy, method.metric)
