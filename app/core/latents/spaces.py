"""Latents of sentences as maps and tables, cached for all sessions.

Some maps ship with a model: t-SNE and UMAP of the example sentences that the app shows first. `python -m
app.core.latents.spaces` computes these maps for every model in the package, and writes `maps.safetensors` into its
folder. The file is the same if the libraries have the same versions. A map is stored under a hash of the model, the
sentences and the settings, so it is never shown for others. The file is not part of the checkpoint: if it is missing,
maps are computed.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import bgt_core
from app.core import rows, startup, state
from app.core.latents import geometry, probe_axes
from app.core.state import Loaded, embed_parts
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS
from bgt_core.errors import DataError
from bgt_core.files import atomic_file

FINE = 24  # number of fine clusters
QUOTED = 30  # maximum number of characters of a sentence that names a cluster
FILE = "maps.safetensors"
SENTENCES = 300  # translations shown when the app opens
METHODS = (geometry.Method("t-SNE", 30), geometry.Method("UMAP", 15))
TEXTS = (LANGS[:2], LANGS[:4])  # languages of the texts with stored maps, for models that read all of them
_umap = threading.Lock()  # numba's default threading layer must not be entered twice


def content(table: pd.DataFrame) -> str:
    """Hash the languages and sentences of a table, in order."""
    hashed = hashlib.sha256()
    for lang, texts in rows.parts(table):
        hashed.update("\n".join([lang, *texts, ""]).encode())
    return hashed.hexdigest()


@dataclass(frozen=True, eq=False)
class Space:
    """One latent of some sentences: a table with map coordinates `x` and `y`, and a vector per row, (N, D)."""

    rows: pd.DataFrame
    vectors: np.ndarray
    projection: geometry.Projection
    digest: str  # of the model, the latent and the fitted sentences

    @cached_property
    def content(self) -> str:
        """A hash of all sentences in order, including the user's own."""
        return content(self.rows)

    @property
    def given(self) -> np.ndarray:
        """A mask (N,) of the rows of the text, without the user's own: the map is fitted on them."""
        return ~self.rows["own"].to_numpy()


# Keys in Streamlit's caches: a space's key is the digest of its model, latent and fitted rows.
BY_DIGEST = state.BY_DIGEST | {Space: attrgetter("digest")}


class Spaces(NamedTuple):
    """The semantic space of all rows, and one space of the second latent per language, because these are not comparable
    between languages. `second` is empty if the model has one latent."""

    semantic: Space
    second: dict[str, Space]


def spaces(loaded: Loaded, table: pd.DataFrame, method: geometry.Method) -> Spaces:
    """Map both latents of all rows."""
    parts = table.groupby("lang", sort=False) if loaded.second_latent else ()
    second = {lang: space(loaded, part, loaded.second_latent, method) for lang, part in parts}
    return Spaces(space(loaded, table, SEMANTIC, method), second)


def space(loaded: Loaded, table: pd.DataFrame, latent: str, method: geometry.Method) -> Space:
    """Map a latent of all rows. The map is fitted on the text's rows; the user's own rows are then placed on it."""
    vectors = vectors_of(loaded, table, latent)
    own = table["own"].to_numpy()
    given = vectors[~own] if own.any() else vectors  # avoid a needless copy
    digest = key(loaded.digest, table[~own], latent)
    if method.name == probe_axes.NAME:
        axes = probe_axes.axes(loaded, table["lang"].unique().tolist(), latent, method.axes)
        projection = probe_axes.projection(given, axes)
    else:
        projection = _fitted(digest, method, given, loaded.info.get("folder", ""))
    xy = np.empty((len(table), 2))
    xy[~own] = projection.xy
    if own.any():
        xy[own] = projection.project(vectors[own])
    return Space(table.assign(x=xy[:, 0], y=xy[:, 1]), vectors, projection, digest)


@st.cache_resource(max_entries=24, show_spinner=False)
def _fitted(digest: str, method: geometry.Method, _vectors: np.ndarray, _folder: str) -> geometry.Projection:
    xy = _stored(_folder).get(name(digest, method))
    if xy is not None:
        return geometry.placed(_vectors, xy, method.metric)
    with _umap:
        return geometry.fit(_vectors, method)


def stored(loaded: Loaded, table: pd.DataFrame, method: geometry.Method) -> bool:
    """Return whether the model ships with maps of the text's rows by this method, in all latents."""
    maps = _stored(loaded.info.get("folder", ""))
    given = latents_of(table[~table["own"].to_numpy()], loaded.second_latent)
    return bool(maps) and all(name(key(loaded.digest, part, latent), method) in maps for latent, part in given)


@st.cache_resource(max_entries=8, show_spinner=False)
def _stored(folder: str) -> dict[str, np.ndarray]:
    return read(Path(folder)) if folder else {}


def vectors_of(loaded: Loaded, table: pd.DataFrame, latent: str) -> np.ndarray:
    """Embed every row in its own language, (N, D); the array may be read-only."""
    own = table["own"].to_numpy()
    if not own.any() or own.all():
        return embed_parts(loaded, rows.parts(table), latent)
    given, added = (embed_parts(loaded, rows.parts(part), latent) for part in (table[~own], table[own]))
    vectors = np.empty((len(table), given.shape[1]), np.float32)
    vectors[~own], vectors[own] = given, added
    return vectors


def coloured(spaces: Spaces, colour: str) -> Spaces:
    """Return the spaces with a column `colour` in their rows; nothing is added if sentences always have that column."""
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
        columns = {column: of[space.rows["id"]].array for column, of in value_of.items()}
        return replace(space, rows=space.rows.assign(**columns))

    return Spaces(with_colour(semantic), {lang: with_colour(space) for lang, space in spaces.second.items()})


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, content: str, _space: Space) -> dict[str, pd.Categorical]:
    """Assign each row to a cluster and a fine cluster, named by their most central sentence in the first language."""
    table = _space.rows
    first = _space.given & (table["lang"] == table["lang"].iloc[0]).to_numpy()
    clusters = {}
    for column, count in ((rows.CLUSTER, rows.CATEGORIES), (rows.FINE_CLUSTER, FINE)):
        groups = geometry.clusters(_space.vectors, _space.given, count)
        names: list[str] = []
        for at in range(groups.max() + 1):
            group = groups == at
            text = table["text"].iloc[
                geometry.central(_space.vectors, group & first if (group & first).any() else group)
            ]
            name = f"“{text if len(text) <= QUOTED else text[: QUOTED - 1] + '…'}”"
            names.append(f"{name} ({at + 1})" if name in names else name)
        clusters[column] = pd.Categorical.from_codes(groups, names)
    return clusters


def vector(space: Space, row: str) -> np.ndarray:
    """Return the vector (D,) of the row with this id."""
    return space.vectors[int(np.flatnonzero(space.rows["id"] == row)[0])]


def nearest(
    loaded: Loaded, vector: np.ndarray, table: pd.DataFrame, vectors: np.ndarray, count: int, but: str = ""
) -> pd.DataFrame:
    """Return the rows of a table that are nearest to a vector (D,) in the full space, with their similarity. `vectors`
    (N, D) belong to the rows. The row with the id `but` is left out."""
    near = table.assign(Cosine=loaded.similarity(vector[None], vectors)[0])
    near = near[near["id"] != but].sort_values("Cosine", ascending=False, kind="stable").head(count)
    return near[["id", "Cosine", "lang", "text"]].rename(columns={"lang": "In", "text": "Sentence"})


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def trust(space: Space, method: geometry.Method) -> float | None:
    """Return the trustworthiness of the map; None if its vectors are all the same, or too few."""
    if space.projection.variance == 0:
        return None
    return geometry.trust(space.vectors[space.given], space.projection.xy, method.metric)


def key(model: str, table: pd.DataFrame, latent: str) -> str:
    """Name the vectors of a table by the model's digest, the latent, and a hash of the sentences in order."""
    return f"{model} {latent} {content(table)}"


def name(key: str, method: geometry.Method) -> str:
    """Return the name under which the map of these vectors by this method is stored."""
    return hashlib.sha256(f"{key} {method}".encode()).hexdigest()


def read(folder: Path) -> dict[str, np.ndarray]:
    """Read the maps (N, 2) in a model's folder, by `name`; empty without that file. Raises DataError if damaged."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file ({error}). Delete it: maps are then computed.") from None


def latents_of(table: pd.DataFrame, second_latent: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each latent and its rows to map: for the semantic latent all, for the second those of one language."""
    yield SEMANTIC, table
    if second_latent:
        for _, part in table.groupby("lang", sort=False):
            yield second_latent, part


def write(folder: Path) -> None:
    """Compute the maps of a model for those of `TEXTS` whose languages it reads, and write them into its folder."""
    encoder = bgt_core.load(folder)
    digest = " ".join(bgt_core.info(folder)["files"].values())
    second_latent = next((latent for latent in encoder.latents if latent != SEMANTIC), "")
    maps = {}
    for langs in (langs for langs in TEXTS if set(langs) <= set(encoder.langs)):
        for latent, part in latents_of(rows.examples(langs, SENTENCES), second_latent):
            by_lang = [encoder.embed(texts, lang=lang, latent=latent) for lang, texts in rows.parts(part)]
            for method in METHODS:
                xy = geometry.fit(np.concatenate(by_lang), method).xy.astype(np.float32)
                maps[name(key(digest, part, latent), method)] = xy
    if maps:
        with atomic_file(folder / FILE) as partial:
            save_file(maps, partial)
            shutil.copymode(folder / "config.json", partial)  # safetensors creates files that only their owner can read


if __name__ == "__main__":
    for path in startup.shipped().values():
        write(Path(path))
