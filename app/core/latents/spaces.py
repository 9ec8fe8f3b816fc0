"""Maps of the latents of sentences, cached for all sessions.

Some maps ship with a model: t-SNE and UMAP of the example sentences that the app shows first. `python -m
app.core.latents.spaces` computes these maps for every model in the package, and writes `maps.safetensors` into its
folder. A map is stored under a hash of the model, the sentences and the settings, so that it is only shown for these.
The file is not part of the checkpoint: if it is missing, maps are computed.

The axes of a map can be principal components, the line from one sentence to another, or scores of linear probes for a
factor: sentence length, question or negation.

    score (N,) = unit vectors (N, D) @ weights (D,) + bias, by ridge regression on the example sentences

A score is relative to the factor's mean among those sentences, in standard deviations, so that both axes have the same
scale. The quality of an axis is measured on held-out sentences, by cross-validation in five folds.
"""

import hashlib
import math
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
import streamlit as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import bgt_core
from app.core import inventory, rows, state
from app.core.latents import geometry, topics
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS, example_sentences
from bgt_core.errors import DataError, NotFound
from bgt_core.files import atomic_file
from bgt_core.vectors.arrays import unit

FILE = "maps.safetensors"
SENTENCES = 300  # number of translations shown when the app opens
METHODS = (geometry.Method("t-SNE", 30), geometry.Method("UMAP", 15))
TEXTS = (LANGS[:2], LANGS[:4])  # languages of each set of example sentences whose maps are stored
CHOSEN_AXES = "Chosen axes"  # the name of the method that lets the user choose both axes
FREE = "Between two sentences"  # the name of the axis from one sentence to another
COMPONENT, COMPONENTS = "PCA", 10  # prefix of the names of principal components; their number
FOLDS = 5
STRENGTHS = np.logspace(-3, 3, 13)  # ridge penalties, relative to the mean variance of a latent's dimensions

_umap = threading.Lock()  # two threads must not enter numba's default threading layer at once


def content(table: pd.DataFrame) -> str:
    """Hash the languages and sentences of a table; their order matters."""
    hashed = hashlib.sha256()
    for lang, texts in rows.parts(table):
        hashed.update("\n".join([lang, *texts, ""]).encode())
    return hashed.hexdigest()


@dataclass(frozen=True, eq=False)
class Space:
    """A map of one latent: a table of sentences with their coordinates `x`, `y` (and `z`), and their vectors (N, D)."""

    rows: pd.DataFrame
    vectors: np.ndarray
    projection: geometry.Projection
    digest: str  # hash of the model, the latent and the sentences to which the map is fitted

    @cached_property
    def content(self) -> str:
        """A hash of all sentences in order, including the user's own."""
        return content(self.rows)

    @property
    def given(self) -> np.ndarray:
        """A mask (N,) of the rows to which the map is fitted: all but the user's own sentences."""
        return ~self.rows["own"].to_numpy()


# Streamlit's caches hash a `Loaded` model or a `Space` by its attribute `digest`.
BY_DIGEST = state.BY_DIGEST | {Space: attrgetter("digest")}


def sides(table: pd.DataFrame) -> list[str]:
    """Return the names of the columns of coordinates: x and y, and z if the map has three dimensions."""
    return [side for side in "xyz" if side in table]


class Spaces(NamedTuple):
    """The maps of all latents: one map of the semantic latent; a map per language of the second, if there is one."""

    semantic: Space
    second: dict[str, Space]


def spaces(loaded: state.Loaded, table: pd.DataFrame, method: geometry.Method) -> Spaces:
    """Embed and map all rows in both latents."""
    parts = table.groupby("lang", sort=False) if loaded.second_latent else ()
    second = {lang: space(loaded, part, loaded.second_latent, method) for lang, part in parts}
    return Spaces(space(loaded, table, SEMANTIC, method), second)


def space(loaded: state.Loaded, table: pd.DataFrame, latent: str, method: geometry.Method) -> Space:
    """Embed and map all rows in one latent. The map is fitted without the user's typed rows, and then places them."""
    vectors = vectors_of(loaded, table, latent)
    own = table["own"].to_numpy()
    given = vectors[~own] if own.any() else vectors
    digest = key(loaded.digest, table[~own], latent)
    if method.name == CHOSEN_AXES:
        langs = tuple(table["lang"].unique().tolist())
        projection = on_axes(given, [axis(loaded, langs, latent, name, given, method) for name in method.axes])
    else:
        projection = _fitted(digest, method, given, loaded.info.get("folder", ""))
    xy = np.empty((len(table), projection.xy.shape[1]))
    xy[~own] = projection.xy
    if own.any():
        xy[own] = projection.project(vectors[own])
    return Space(table.assign(**dict(zip("xyz", xy.T, strict=False))), vectors, projection, digest)


@st.cache_resource(max_entries=24, show_spinner=False)
def _fitted(digest: str, method: geometry.Method, _vectors: np.ndarray, _folder: str) -> geometry.Projection:
    xy = _stored(_folder).get(name(digest, method))
    if xy is not None:
        return geometry.placed(_vectors, xy, method.metric)
    with _umap:
        return geometry.fit(_vectors, method)


def stored(loaded: state.Loaded, table: pd.DataFrame, method: geometry.Method) -> bool:
    """Return whether the model's folder has maps of these sentences by this method, for all latents."""
    maps = _stored(loaded.info.get("folder", ""))
    given = latents_of(table[~table["own"].to_numpy()], loaded.second_latent)
    return bool(maps) and all(name(key(loaded.digest, part, latent), method) in maps for latent, part in given)


@st.cache_resource(max_entries=8, show_spinner=False)
def _stored(folder: str) -> dict[str, np.ndarray]:
    return read(Path(folder)) if folder else {}


def vectors_of(loaded: state.Loaded, table: pd.DataFrame, latent: str) -> np.ndarray:
    """Embed every row in its language, (N, D). The array may be read-only."""
    own = table["own"].to_numpy()
    if not own.any() or own.all():
        return state.embed_parts(loaded, rows.parts(table), latent)
    given, added = (state.embed_parts(loaded, rows.parts(part), latent) for part in (table[~own], table[own]))
    vectors = np.empty((len(table), given.shape[1]), np.float32)
    vectors[~own], vectors[own] = given, added
    return vectors


def with_columns(spaces: Spaces, names: Collection[str]) -> Spaces:
    """Add these columns for colours to the tables of the maps: style properties, topics, or the user's columns."""
    semantic = spaces.semantic
    added: dict[str, Any] = {}
    for name in names:
        if name in rows.STYLES:
            added[name] = rows.styled(semantic.rows, name).array
        elif name == rows.TOPIC:
            found, groups, _ = topics_of(semantic, SEMANTIC)
            added[name] = pd.Categorical.from_codes(groups, [each["name"] for each in found if each["parent"] < 0])
        elif name.startswith(rows.OWN_COLUMN):
            added[name] = rows.as_colour(semantic.rows[name]).array
    values = pd.DataFrame(added, index=semantic.rows["id"])

    def with_values(space: Space) -> Space:
        columns = values.loc[space.rows["id"]]
        return replace(space, rows=space.rows.assign(**{name: columns[name].array for name in columns}))

    return Spaces(with_values(semantic), {lang: with_values(space) for lang, space in spaces.second.items()})


def topics_of(space: Space, latent: str) -> topics.Topics:
    """Find the topics of a map. Properties of style name those of a latent other than the semantic one."""
    return topics.topics(space.content, space.rows[sides(space.rows)].to_numpy(), latent != SEMANTIC, space.rows)


def vector(space: Space, row: str) -> np.ndarray:
    """Return the vector (D,) of the row with this id."""
    return space.vectors[int(np.flatnonzero(space.rows["id"] == row)[0])]


def nearest(
    loaded: state.Loaded, vector: np.ndarray, table: pd.DataFrame, vectors: np.ndarray, count: int, but: str = ""
) -> pd.DataFrame:
    """Return the `count` rows whose vectors (N, D) are nearest to a vector (D,), except the row with the id `but`."""
    near = table.assign(Cosine=loaded.similarity(vector[None], vectors)[0])
    near = near[near["id"] != but].sort_values("Cosine", ascending=False, kind="stable").head(count)
    return near[["id", "Cosine", "lang", "text"]].rename(columns={"lang": "In", "text": "Sentence"})


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def trust(space: Space, method: geometry.Method) -> float | None:
    """Return the trustworthiness of the map; None if its vectors are all equal, or too few."""
    if space.projection.variance == 0:
        return None
    return geometry.trust(space.vectors[space.given], space.projection.xy, method.metric)


def key(model: str, table: pd.DataFrame, latent: str) -> str:
    """Return a key for the vectors of a table: the model's digest, the latent, and a hash of the sentences."""
    return f"{model} {latent} {content(table)}"


def name(key: str, method: geometry.Method) -> str:
    """Return the name under which the map of these vectors by this method is stored."""
    return hashlib.sha256(f"{key} {method}{' in 3-D' * (method.dims == 3)}".encode()).hexdigest()


def read(folder: Path) -> dict[str, np.ndarray]:
    """Read the stored maps (N, 2) in a model's folder, by name. Raises DataError if the file is damaged."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        with safe_open(path, "np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise DataError(f"{path}: not a safetensors file ({error}). Delete it: maps are then computed.") from None


def latents_of(table: pd.DataFrame, second_latent: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (latent, rows) for each map: all rows in the semantic latent, those of each language in the second."""
    yield SEMANTIC, table
    if second_latent:
        for _, part in table.groupby("lang", sort=False):
            yield second_latent, part


def write(folder: Path) -> None:
    """Compute maps of a model for the sentences in `TEXTS` that it can read, and write them into its folder."""
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


# The sentence properties that an axis can show, each with its function of (sentence, language) and the languages for
# which it is defined. Length is not defined for Japanese, which has no spaces.
FACTORS: dict[str, tuple[Callable[[str, str], float], Sequence[str]]] = {
    "Longer": (lambda text, lang: float(rows.words(text)), [lang for lang in LANGS if lang != "ja"]),
    "Question": (lambda text, lang: float(text.rstrip()[-1:] in ("?", "？", "؟")), LANGS),
    "Negation": (lambda text, lang: float(rows.negated(text, lang)), rows.NEGATION_LANGS),
}


@dataclass(frozen=True)
class Reading:
    """How well a linear probe predicts a property of held-out sentences, with a 95% confidence interval."""

    measure: str  # "AUC" for a property that is 0 or 1, else "correlation"
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.measure} {self.value:z.2f} [{self.low:z.2f}, {self.high:z.2f}]"


@dataclass(frozen=True, eq=False)
class Axis:
    """A linear score of a latent: vectors (N, D) at unit length @ weights (D,) + bias."""

    name: str
    weights: np.ndarray
    bias: float
    reading: Reading | str


def axis(
    loaded: state.Loaded, langs: tuple[str, ...], latent: str, name: str, given: np.ndarray, method: geometry.Method
) -> Axis:
    """Return an axis by its name: a property with a probe, "Between two sentences", or a principal component, such as
    "PCA 2". On maps without the language of the two sentences, the first component replaces the axis."""
    if name in FACTORS:
        return probe_axis(loaded, langs, latent, name)
    *ends, lang = method.ends
    if name == FREE and lang in langs:
        first, last = unit(state.embed_parts(loaded, [(lang, ends)], latent)).astype(float)
        weights = (last - first) / max(np.square(last - first).sum(), np.finfo(float).tiny)
        return Axis(name, weights, float(-first @ weights), "0 at the first, 1 at the second")
    number = 1 if name == FREE else int(name.removeprefix(COMPONENT))
    plane = geometry.principal_axes(given, number)
    scores = plane.project(given)[:, -1]
    share = scores.var() / max(unit(given).var(0).sum(), np.finfo(float).tiny)
    weights = plane.axes[:, -1]
    return Axis(f"{COMPONENT} {number}", weights, float(-plane.mean @ weights), f"{share:.0%} of the variance")


def axes_offered(langs: Sequence[str]) -> list[str]:
    """Return the names of the properties that are defined for all of these languages."""
    return [name for name, (_, labelled) in FACTORS.items() if set(langs) <= set(labelled)]


@st.cache_resource(max_entries=64, show_spinner=False, hash_funcs=BY_DIGEST)
def probe_axis(loaded: state.Loaded, langs: tuple[str, ...], latent: str, name: str) -> Axis:
    """Fit a probe of a property to the example sentences in these languages. Raises NotFound if it is undefined."""
    if name not in axes_offered(langs):
        able = ", ".join(FACTORS[name][1]) if name in FACTORS else "no language"
        raise NotFound(f"No axis '{name}' for the languages {', '.join(langs)}: it is defined for {able}.")
    english_of = {  # language -> each of its example sentences -> the English translation
        lang: {texts[-1]: texts[0] for texts in example_sentences(["en"] if lang == "en" else ["en", lang])}
        for lang in langs
    }
    parts = [(lang, list(texts)) for lang, texts in english_of.items()]
    english = [sentence for texts in english_of.values() for sentence in texts.values()]
    values = np.array([FACTORS[name][0](text, lang) for lang, texts in parts for text in texts])
    vectors = unit(state.embed_parts(loaded, parts, latent))
    # translations of one English sentence are in the same fold, and count as one sentence for the interval
    folds = np.array([crc32(sentence.encode()) % FOLDS for sentence in english])
    held_out = np.empty(len(values))
    for fold in range(FOLDS):
        test = folds == fold
        weights, bias = ridge(vectors[~test], values[~test])
        # The bias contains the training values' mean, which is low if the test values are high: subtract it.
        held_out[test] = vectors[test] @ weights + bias - values[~test].mean()
    spread = float(values.std())
    weights, bias = ridge(vectors, (values - values.mean()) / spread)
    return Axis(name, weights, bias, reading(held_out, values, len(set(english))))


def ridge(vectors: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit ridge regression with the penalty that has the lowest leave-one-out error; return weights (D,) and bias."""
    from sklearn.linear_model import RidgeCV

    variance = float(np.square(vectors - vectors.mean(0, dtype=float)).sum() / vectors.shape[1])
    fitted = RidgeCV(STRENGTHS * variance).fit(vectors.astype(float), values)
    return fitted.coef_, float(fitted.intercept_)


def reading(scores: np.ndarray, values: np.ndarray, different: int) -> Reading:
    """Measure how well scores predict a property: by the area under the ROC curve if its `values` are 0 or 1 (interval:
    Hanley, McNeil 1982), else by the correlation (interval: Fisher's z). `different` counts independent sentences."""
    if set(values) <= {0.0, 1.0}:
        ones, zeros = scores[values == 1], scores[values == 0]
        positive, negative = different * values.mean(), different * (1 - values.mean())
        area = float(((ones[:, None] > zeros).mean() + (ones[:, None] >= zeros).mean()) / 2)
        both, twice = area / (2 - area), 2 * area**2 / (1 + area)
        spread = (positive - 1) * (both - area**2) + (negative - 1) * (twice - area**2)
        error = math.sqrt((area * (1 - area) + spread) / (positive * negative))
        return Reading("AUC", area, max(0.0, area - 1.96 * error), min(1.0, area + 1.96 * error))
    correlation = float(np.corrcoef(scores, values)[0, 1])
    z, half = math.atanh(correlation), 1.96 / math.sqrt(different - 3)
    return Reading("correlation", correlation, math.tanh(z - half), math.tanh(z + half))


def on_axes(vectors: np.ndarray, chosen: Sequence[Axis]) -> geometry.Projection:
    """Return the map of vectors (N, D) whose coordinates are the scores on these axes."""
    weights = np.column_stack([axis.weights for axis in chosen]).astype(np.float32)  # (D, K)
    bias = np.array([axis.bias for axis in chosen], np.float32)

    def project(new: np.ndarray) -> np.ndarray:
        blocks = [new[start : start + geometry.BLOCK] for start in range(0, len(new), geometry.BLOCK)]
        return np.concatenate([unit(block) @ weights + bias for block in blocks])

    # `pinv` gives, for each score, the shortest vector that adds 1 to this score, and 0 to the others.
    read = tuple(f"{axis.name.lower()} {axis.reading}" for axis in chosen)
    return geometry.Projection(project(vectors), project, None, np.linalg.pinv(weights).T, read)


if __name__ == "__main__":
    for path in inventory.shipped().values():
        write(Path(path))
