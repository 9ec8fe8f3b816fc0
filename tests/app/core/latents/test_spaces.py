"""The maps that ship with a model, compared with the model's own vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

import bgt_core
from app.core import corpora, rows, startup
from app.core.latents import geometry, spaces
from app.core.state import Loaded
from bgt_core.errors import DataError
from bgt_core.vectors.compare import unit

SHIPPED = Path(next(iter(startup.shipped().values()))).parent
TSNE = spaces.METHODS[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bgt-en-fr", "bgt-multilingual"])
def test_each_stored_map_shows_this_models_sentences_faithfully(name: str) -> None:
    maps, encoder = spaces.read(SHIPPED / name), bgt_core.load(SHIPPED / name)
    digest = " ".join(bgt_core.info(SHIPPED / name)["files"].values())
    expected = {}
    for langs in (langs for langs in spaces.TEXTS if set(langs) <= set(encoder.langs)):
        for method, (latent, part) in product(spaces.METHODS, spaces.latents_of(rows.examples(langs, 300), "language")):
            expected[spaces.name(spaces.key(digest, part, latent), method)] = latent, part
    assert maps.keys() == expected.keys()
    for key, (latent, part) in expected.items():
        groups = part.groupby("lang", sort=False)["text"]
        vectors = np.concatenate([encoder.embed(list(texts), lang=lang, latent=latent) for lang, texts in groups])
        assert trustworthiness(unit(vectors), maps[key], n_neighbors=15) > 0.7  # 0.5 for a random map
    if name == "bgt-multilingual":  # on the semantic map, translations almost coincide
        key = spaces.key(digest, rows.examples(("en", "fr"), 300), "semantic")
        english, french = np.split(maps[spaces.name(key, TSNE)], 2)
        nearest = ((english[:, None] - french) ** 2).sum(-1).argmin(1)
        assert (nearest == np.arange(300)).mean() > 0.7


def test_a_stored_map_is_used_for_its_own_model_sentences_and_method_alone() -> None:
    folder = SHIPPED / "bgt-en-fr"
    loaded = Loaded("small", bgt_core.load(folder), ("en", "fr"), bgt_core.info(folder), [], "Runs on the CPU")
    text = startup.read([]).texts["Example sentences (en-fr)"]
    table = corpora.sentences(text, 300)
    assert spaces.stored(loaded, table, TSNE)
    assert not spaces.stored(loaded, table, geometry.Method())
    assert not spaces.stored(loaded, table, replace(TSNE, seed=1))
    assert not spaces.stored(loaded, corpora.sentences(text, 299), TSNE)
    changed = table.assign(text=[*table["text"][:-1], "Encore une phrase."])
    assert not spaces.stored(loaded, changed, TSNE)
    other = replace(loaded, info={**loaded.info, "files": {**loaded.info["files"], "model.safetensors": "0"}})
    assert not spaces.stored(other, table, TSNE)
    own = rows.typed("A sentence of my own.", "en", 0)[0]
    with_own = rows.pd.concat([table, own], ignore_index=True)
    fitted = spaces.spaces(loaded, with_own, TSNE)
    stored = spaces.read(folder)[spaces.name(fitted.semantic.digest, TSNE)]
    assert np.array_equal(fitted.semantic.rows[["x", "y"]].to_numpy(np.float32)[:-1], stored)
    assert np.isfinite(fitted.semantic.rows[["x", "y"]].to_numpy()).all()


@pytest.mark.slow
def test_the_page_opens_on_the_stored_tsne_of_real_pairs_and_on_pca_of_others(
    start: Callable[..., None], opened: Callable[..., Any]
) -> None:
    start()
    app = opened("maps")
    assert app.selectbox(key="map").value == "t-SNE"
    assert any(caption.value.startswith("t-SNE, perplexity 30, seed 0") for caption in app.caption)
    start("--model", SHIPPED / "bgt-en-fr")
    assert opened("maps", data="Built-in grammar").selectbox(key="map").value == "PCA"


def test_a_damaged_file_of_maps_says_what_to_do(tmp_path: Path) -> None:
    assert spaces.read(tmp_path) == {}
    (tmp_path / spaces.FILE).write_bytes(b"no maps")
    with pytest.raises(DataError, match="Delete it"):
        spaces.read(tmp_path)
