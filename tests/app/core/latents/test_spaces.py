"""Maps stored with shipped models are faithful. The axes of a map may be linear probes, whose scores are right."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.manifold import trustworthiness
from sklearn.metrics import roc_auc_score

import bgt_core
from app.core import inventory, rows
from app.core.latents import geometry, spaces
from app.core.state import Loaded
from bgt_core.errors import DataError
from bgt_core.vectors.arrays import unit
from tests.close import FLOAT32, assert_close

SHIPPED = Path(next(iter(inventory.shipped().values()))).parent
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
        assert trustworthiness(unit(vectors), maps[key], n_neighbors=15) > 0.7  # a random map would have 0.5
    if name == "bgt-multilingual":  # translations must almost coincide on this model's semantic map
        key = spaces.key(digest, rows.examples(("en", "fr"), 300), "semantic")
        english, french = np.split(maps[spaces.name(key, TSNE)], 2)
        nearest = ((english[:, None] - french) ** 2).sum(-1).argmin(1)
        assert (nearest == np.arange(300)).mean() > 0.7


def test_a_stored_map_is_used_for_its_own_model_sentences_and_method_alone() -> None:
    folder = SHIPPED / "bgt-en-fr"
    loaded = Loaded("small", bgt_core.load(folder), ("en", "fr"), bgt_core.info(folder), [], "Runs on the CPU")
    text = inventory.read([]).texts["Example sentences (en-fr)"]
    table = inventory.sentences(text, 300)
    assert spaces.stored(loaded, table, TSNE)
    assert not spaces.stored(loaded, table, geometry.Method())
    assert not spaces.stored(loaded, table, replace(TSNE, seed=1))
    assert not spaces.stored(loaded, inventory.sentences(text, 299), TSNE)
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
def test_the_page_opens_on_the_stored_tsne_of_real_pairs_and_pca_of_others(start: Callable, opened: Callable) -> None:
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


@pytest.fixture
def vectors() -> np.ndarray:
    return unit(np.random.default_rng(0).normal(size=(400, 12))).astype(np.float32)


def test_ridge_is_that_of_another_implementation_at_one_of_the_strengths(vectors: np.ndarray) -> None:
    values = vectors[:, 0] + np.random.default_rng(2).normal(size=400)
    weights, bias = spaces.ridge(vectors, values)
    centred = vectors - vectors.mean(0)
    scale = np.linalg.svd(centred, compute_uv=False) ** 2
    others = [Ridge(alpha=strength * scale.mean()).fit(vectors, values) for strength in spaces.STRENGTHS]
    nearest = min(others, key=lambda other: np.abs(other.coef_ - weights).max())
    assert_close(weights, nearest.coef_)
    assert_close(bias, nearest.intercept_, scale=np.abs(weights).max())


def test_readings_are_those_of_the_literature() -> None:
    scores, values = np.array([0.1, 0.4, 0.4, 0.8, 0.9, 0.3]), np.array([0, 0, 1, 1, 1, 0.0])
    assert spaces.reading(scores, values, 6).value == pytest.approx(roc_auc_score(values, scores))
    rng = np.random.default_rng(0)  # Hanley and McNeil (1982): AUC 0.893 from 51 and 58 cases has standard error 0.032
    scores = np.concatenate([rng.normal(1.757, 1, 51), rng.normal(0, 1, 58)])
    reading = spaces.reading(scores, np.repeat([1.0, 0.0], [51, 58]), 109)
    assert reading.value - reading.low == pytest.approx(1.96 * 0.032, abs=0.02)
    line = np.arange(103.0)
    noisy = line + 60 * np.random.default_rng(1).normal(size=103)
    reading = spaces.reading(noisy, line, 103)
    assert np.arctanh(reading.high) - np.arctanh(reading.value) == pytest.approx(0.196)
    # translations repeat the same information, so the interval must not become narrower
    assert spaces.reading(np.tile(noisy, 4), np.tile(line, 4), 103).low == pytest.approx(reading.low)


def test_a_map_shows_the_scores_and_its_axes_say_how_to_move_on_it(saved: Path) -> None:
    loaded = Loaded("saved", bgt_core.load(saved), ("en", "fr"), bgt_core.info(saved), [], "the CPU")
    table = rows.examples(("en", "fr"), 40)
    method = geometry.Method(spaces.CHOSEN_AXES, axes=("Longer", "Question"))
    fitted = spaces.spaces(loaded, table, method)
    longer, question = (spaces.probe_axis(loaded, ("en",), "language", name) for name in method.axes)
    space = fitted.second["en"]
    assert_close(space.rows["x"], unit(space.vectors) @ longer.weights + longer.bias, FLOAT32)
    assert_close(space.rows["y"], unit(space.vectors) @ question.weights + question.bias, FLOAT32)
    axes = space.projection.axes
    weights = np.column_stack([longer.weights, question.weights])
    assert axes is not None
    assert_close(weights.T @ axes, np.eye(2), FLOAT32)
    # the axes lie in the plane of the weights, because a move perpendicular to it would change neither score
    assert np.linalg.matrix_rank(np.hstack([weights, axes]), tol=1e-3) == 2
