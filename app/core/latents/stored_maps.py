"""Maps that ship with a model: t-SNE and UMAP of the example sentences that the app opens on, computed beforehand.

`python -m app.core.latents.stored_maps` computes those of every model in the package and writes `maps.safetensors` into
its folder; the same versions of the libraries write the same file. A map is stored under a hash of all that decides it,
so it is never shown for another model, other sentences or other settings. The file is not part of the checkpoint:
without it maps are computed.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import bgt_core
from app.core import rows, startup
from app.core.latents import geometry
from bgt_core.contracts import SEMANTIC
from bgt_core.data.examples import LANGS
from bgt_core.errors import DataError
from bgt_core.files import atomic_file

FILE = "maps.safetensors"
SENTENCES = 300  # translations shown when the app opens
METHODS = (geometry.Method("t-SNE", 30), geometry.Method("UMAP", 15))
TEXTS = (LANGS[:2], LANGS[:4])  # languages of these texts, as far as the model reads them


def content(table: pd.DataFrame) -> str:
    """Hash languages and sentences, in order."""
    hashed = hashlib.sha256()
    for lang, texts in rows.parts(table):
        hashed.update("\n".join([lang, *texts, ""]).encode())
    return hashed.hexdigest()


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


def parts(table: pd.DataFrame, second_latent: str) -> Iterator[tuple[str, pd.DataFrame]]:
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
        for latent, part in parts(rows.examples(langs, SENTENCES), second_latent):
            by_lang = [encoder.embed(texts, lang=lang, latent=latent) for lang, texts in rows.parts(part)]
            vectors = np.concatenate(by_lang)
            for method in METHODS:
                xy = geometry.fit(vectors, method).xy.astype(np.float32)
                maps[name(key(digest, part, latent), method)] = xy
    if maps:
        with atomic_file(folder / FILE) as partial:
            save_file(maps, partial)
            shutil.copymode(folder / "config.json", partial)  # safetensors creates files that only their owner can read


if __name__ == "__main__":
    for path in startup.shipped().values():
        write(Path(path))
