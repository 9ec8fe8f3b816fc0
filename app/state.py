"""What sessions share: the model, its vectors and maps, cached; and the one lock around inference."""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

import bgt_core
from app import geometry, rows
from bgt_core import BadInput
from bgt_core.contracts import LANGUAGE, SEMANTIC

MAX_CHARACTERS = 500  # of a sentence to generate from: far past what models are trained on
PATIENCE = 60  # seconds to wait for another session's request
_inference = threading.Lock()
_umap = threading.Lock()  # numba's default threads must not be entered twice


@dataclass(frozen=True)
class Loaded:
    """The model in use, what its checkpoint says of itself, and the rows of its training log."""

    bgt: bgt_core.Embedder
    info: Mapping[str, Any]
    log: list[dict[str, Any]]

    @property
    def digest(self) -> str:
        """Names the weights and the tokenizer; cached vectors are kept under it."""
        return " ".join(self.info["files"].values())

    @property
    def name(self) -> str:
        return f"{self.info['recipe']}, step {self.info['step']:,}"

    @property
    def languages(self) -> str:
        return ", ".join(map(rows.name, self.bgt.langs))

    @property
    def device(self) -> str:
        return f"Runs on {'the CPU' if self.bgt.device.type == 'cpu' else self.bgt.device}"


def theme() -> str:
    """The browser's theme, "light" or "dark"."""
    return st.context.theme.type or "light"


def model() -> Loaded:
    """The checkpoint named after `--` on the command line, or the one that ships; BadInput as `bgt_core.load`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model", type=Path, default=bgt_core.PRETRAINED)
    return _load(str(parser.parse_known_args()[0].model))


@st.cache_resource(max_entries=2, show_spinner="Loading the model")
def _load(path: str) -> Loaded:
    info = bgt_core.info(Path(path))
    folder = Path(info["folder"])
    logs = [folder / "metrics.jsonl", folder.parent / "metrics.jsonl"]  # a checkpoint's own; a run's
    log = next((read_log(file) for file in logs if file.is_file()), [])
    log = [row for row in log if row["step"] <= info["step"]]  # the run may have gone on
    return Loaded(bgt_core.load(folder), info, log)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The whole rows of a training log; the last may be half written."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


@contextmanager
def inference() -> Iterator[None]:
    """One request at a time; BadInput after a minute's wait."""
    if not _inference.acquire(timeout=PATIENCE):
        raise BadInput("The model is busy with another request; try again in a moment.", 3)
    try:
        yield
    finally:
        _inference.release()


@st.cache_data(max_entries=8, show_spinner=False)
def built_in(count: int) -> pd.DataFrame:
    """`rows.built_in`, made once."""
    return rows.built_in(count)


@st.cache_resource(max_entries=64, show_spinner="Embedding")
def _vectors(digest: str, texts: tuple[str, ...], lang: str, latent: str, _bgt: bgt_core.Embedder) -> np.ndarray:
    with inference():
        found = _bgt.embed(texts, lang=lang, latent=latent)
    found.setflags(write=False)  # shared by all sessions
    return found


@st.cache_resource(max_entries=32, show_spinner=False)
def _fitted(digest: str, method: geometry.Method, _vectors: np.ndarray) -> geometry.Projection:
    with _umap:
        return geometry.fit(_vectors, method)


@st.cache_data(max_entries=64, show_spinner=False)
def _placed(
    digest: str, fitted_on: str, method: geometry.Method, _fit: geometry.Projection, _new: np.ndarray
) -> np.ndarray:
    with _umap:
        return _fit.place(_new)


def digest(vectors: np.ndarray) -> str:
    """The content of a matrix."""
    return hashlib.sha256(np.ascontiguousarray(vectors).tobytes()).hexdigest()


@dataclass(frozen=True)
class Space:
    """One latent of some sentences: a table with map coordinates `x` and `y`, and a vector a row, (N, D)."""

    rows: pd.DataFrame
    vectors: np.ndarray
    share: float | None  # of the variance that the map shows

    @property
    def given(self) -> np.ndarray:
        """Which rows are built in: the ones the map is fitted on and scores are taken of, (N,) bool."""
        return ~self.rows["own"].to_numpy()

    def of(self, lang: str) -> np.ndarray:
        """Vectors of the built-in rows of a language."""
        return self.vectors[self.given & (self.rows["lang"] == lang).to_numpy()]


def space(loaded: Loaded, table: pd.DataFrame, latent: str, method: geometry.Method) -> Space:
    """The latent of every row; the map is fitted on the built-in ones, and the user's are placed on it."""
    parts = [
        pd.DataFrame(_vectors(loaded.digest, tuple(part["text"]), lang, latent, loaded.bgt), index=part.index)
        for (lang, _), part in table.groupby(["lang", "own"], sort=False)
    ]
    vectors = pd.concat(parts).loc[table.index].to_numpy()
    own = table["own"].to_numpy()
    key = digest(vectors[~own])
    fit = _fitted(key, method, vectors[~own])
    xy = np.empty((len(table), 2))
    xy[~own] = fit.xy
    if own.any():
        xy[own] = _placed(digest(vectors[own]), key, method, fit, vectors[own])
    return Space(table.assign(x=xy[:, 0], y=xy[:, 1]), vectors, fit.share)


def spaces(loaded: Loaded, table: pd.DataFrame, method: geometry.Method) -> tuple[Space, dict[str, Space]]:
    """The semantic space of all rows, and a space for each language's own latent: they share no axes."""
    own = {lang: space(loaded, part, LANGUAGE, method) for lang, part in table.groupby("lang", sort=False)}
    return space(loaded, table, SEMANTIC, method), own


def nearest(space: Space, row: str, count: int) -> pd.DataFrame:
    """The sentences nearest to the one of that id in the full space, with their cosines."""
    at = space.rows["id"].tolist().index(row)
    found, cosines = geometry.nearest(space.vectors, at, count)
    near = space.rows.iloc[found]
    return pd.DataFrame({"Cosine": cosines, "In": near["lang"], "Sentence": near["text"]})


def pair_table(semantic: Space, left: str, right: str) -> pd.DataFrame:
    """How well translations find each other in the semantic latent, beside chance: a random pairing."""
    found = geometry.pair_scores(semantic.of(left), semantic.of(right))
    one, other = rows.name(left), rows.name(right)
    table = {
        f"{one} finds its {other}": [f"{found.there:.0%}", f"{found.chance:.1%}"],
        f"{other} finds its {one}": [f"{found.back:.0%}", f"{found.chance:.1%}"],
        "Mean cosine of translations": [f"{found.translations:.2f}", f"{found.others:.2f}"],
    }
    return pd.DataFrame.from_dict(table, orient="index", columns=["Semantic", "Chance"])


def agreements(semantic: Space, language: Mapping[str, Space]) -> pd.DataFrame:
    """How often a built-in sentence's nearest in its own language shares what is counted, in each latent and
    by chance: means over the languages, as percentages."""
    table = {}
    for column, title in rows.COUNTED.items():
        parts = []
        for lang, own in language.items():
            values = own.rows.loc[own.given, column].tolist()
            (meaning, chance), (manner, _) = (geometry.agreement(space.of(lang), values) for space in (semantic, own))
            parts.append((meaning, manner, chance))
        table[title] = [f"{share:.0%}" for share in np.mean(parts, axis=0)]
    return pd.DataFrame.from_dict(table, orient="index", columns=["Semantic", "Language", "Chance"])


def transfer(
    loaded: Loaded, source: str, style: str, lang: str, search: bgt_core.Beam | bgt_core.Sample, seed: int, length: int
) -> dict[str, Any]:
    """The meaning of `source` in the manner of `style`, with what can be measured of all three."""
    with inference():
        (output,) = bgt_core.transfer(
            loaded.bgt, [source], [style], lang=lang, search=search, seed=seed, max_length=length
        )
        vectors = loaded.bgt.embed([output, source, style], lang=lang, latent=SEMANTIC)
    cosines = loaded.bgt.similarity(vectors, vectors[:1])
    measures = [
        {
            "sentence": sentence,
            "cosine": None if sentence == "Output" else float(cosine),
            "words": rows.words(text),
            "punctuation": rows.punctuation(text),
            "mark": rows.mark(text),
        }
        for sentence, text, cosine in zip(("Output", "Source", "Style"), (output, source, style), cosines, strict=True)
    ]
    asked = {"source": source, "style": style, "lang": lang, "search": repr(search), "seed": seed, "max_length": length}
    return {"output": output, **asked, "measures": measures}
