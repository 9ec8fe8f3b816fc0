"""Latents of sentences as maps and tables, cached for all sessions.

Some maps ship with a model: t-SNE and UMAP of the example sentences that the app opens on. `python -m
app.core.latents.spaces` computes those of every model in the package and writes `maps.safetensors` into its folder; the
same versions of the libraries write the same file. A map is stored under a hash of all that decides it, so it is never
shown for another model, other sentences or other settings. The file is not part of the checkpoint: without it maps are
computed.
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

FINE = 24  # fine clusters
QUOTED = 30  # characters of a sentence that names a cluster
FILE = "maps.safetensors"
SENTENCES = 300  # translations shown when the app opens
METHODS = (geometry.Method("t-SNE", 30), geometry.Method("UMAP", 15))
TEXTS = (LANGS[:2], LANGS[:4])  # languages of the texts with stored maps, as far as the model reads them
_umap = threading.Lock()  # numba's default threading layer must not be entered twice


def content(table: pd.DataFrame) -> str:
    """Hash languages and sentences, in order."""
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
    digest: str  # of the model, the latent and the sentences it was fitted on

    @cached_property
    def content(self) -> str:
        """Names the sentences in their order, the user's own included."""
        return content(self.rows)

    @property
    def given(self) -> np.ndarray:
        """Which rows are the text's own: the map is fitted on them, (N,) bool."""
        return ~self.rows["own"].to_numpy()


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
    """Whether the maps of the text's rows by this method ship with the model, in all latents."""
    maps = _stored(loaded.info.get("folder", ""))
    given = latents_of(table[~table["own"].to_numpy()], loaded.second_latent)
    return bool(maps) and all(name(key(loaded.digest, part, latent), method) in maps for latent, part in given)


@st.cache_resource(max_entries=8, show_spinner=False)
def _stored(folder: str) -> dict[str, np.ndarray]:
    return read(Path(folder)) if folder else {}


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
        columns = {column: of[space.rows["id"]].array for column, of in value_of.items()}
        return replace(space, rows=space.rows.assign(**columns))

    return Spaces(with_colour(semantic), {lang: with_colour(space) for lang, space in spaces.second.items()})


@st.cache_data(max_entries=8, show_spinner=False)
def _clusters(digest: str, content: str, _space: Space) -> dict[str, pd.Categorical]:
    """The cluster and the fine cluster of each row, named by its most central sentence of the first language."""
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
    """The vector (D,) of the row of that id."""
    return space.vectors[int(np.flatnonzero(space.rows["id"] == row)[0])]


def nearest(
    loaded: Loaded, vector: np.ndarray, table: pd.DataFrame, vectors: np.ndarray, count: int, but: str = ""
) -> pd.DataFrame:
    """The rows of a table nearest to a vector (D,) in the full space, with their similarity; `vectors` (N, D) are those
    of the rows. The row with the id `but` is left out."""
    near = table.assign(Cosine=loaded.similarity(vector[None], vectors)[0])
    near = near[near["id"] != but].sort_values("Cosine", ascending=False, kind="stable").head(count)
    return near[["id", "Cosine", "lang", "text"]].rename(columns={"lang": "In", "text": "Sentence"})


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def trust(space: Space, method: geometry.Method) -> float | None:
    """Trustworthiness of the map; None if its vectors are all the same, or few."""
    if space.projection.variance == 0:
        return None
    return geometry.trust(space.vectors[space.given], space.projection.xy, method.metric)


def key(model: str, table: pd.DataFrame, latent: str) -> str:
    """Name the vectors of a table by the digest of a model, the latent, and the sentences in their order."""
    return f"{model} {latent} {content(table)}"


def name(key: str, method: geometry.Method) -> str:
    """The name under which the map of these vectors by that method is stored."""
    return hashlib.sha256(f"{key} {method}".encode()).hexdigest()


def read(folder: Path) -> dict[str, np.ndarray]:
    """The maps (N, 2) in a model's folder, by `name`; empty if it has no such file. DataError for a damaged one."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file ({error}). Delete it: maps are then computed.") from None


def latents_of(table: pd.DataFrame, second_latent: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The latents to map, each with its rows: the semantic latent with all, each second latent with one language's."""
    yield SEMANTIC, table
    if second_latent:
        for _, part in table.groupby("lang", sort=False):
            yield second_latent, part


def write(folder: Path) -> None:
    """Compute the maps of a model that reads two of the languages or more, and write them into its folder."""
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
