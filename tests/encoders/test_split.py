"""A split of an encoder's vectors into two latents works like any encoder, but fails if its encoder has changed."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bgt_core
from bgt_core.encoders import identity
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.encoders.split import split_encoder
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.splitting import parts
from bgt_core.splitting.parts import Map, Split
from tests.close import assert_close

PAIRS = [(f"the {noun} {number}", f"le {noun} {number}") for noun in ("cat", "dog", "hat") for number in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a split of an untrained encoder's vectors into two parts, fitted by the method "centring"."""
    inner = bgt_core.open_encoder("baseline:random")
    split = bgt_core.split(inner, [(["en", "fr"], list(zip(*PAIRS, strict=True)))], method="centring")
    parts.save(tmp_path / "split", parts.StoredSplit(split, "baseline:random", identity(inner)))
    return tmp_path / "split"


def test_its_latents_are_the_parts_of_the_inner_vectors(folder: Path) -> None:
    encoder, inner = bgt_core.open_encoder(f"split:{folder}"), bgt_core.open_encoder("baseline:random")
    assert encoder.langs == ("en", "fr") and encoder.latents == ("semantic", "language")
    texts = ["the cat 3", "the dog 4"]
    shared, private = (encoder.embed(texts, lang="en", latent=latent) for latent in encoder.latents)
    assert_close(shared + private, inner.embed(texts, lang="en"))
    assert_close(private[0], private[1])  # with "centring", the private part is the mean vector of the language
    assert encoder.embed("the cat 3", lang="en").shape == shared[0].shape
    again = copy.deepcopy(encoder)
    np.testing.assert_array_equal(again.embed(texts, lang="en"), shared)
    with pytest.raises(UsageError, match="split supports en, fr"):
        encoder.embed(texts, lang="de")


@pytest.mark.parametrize("spec", ["model", "vectors:v.npz", "split:./first/../first"])
def test_it_opens_from_every_folder(
    saved: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "model")
    shutil.copytree(folder, "first")
    texts = [text for column in zip(*PAIRS, strict=True) for text in column]
    np.savez("v.npz", vectors=np.random.default_rng(0).normal(size=(len(texts), 5)), sentences=texts)
    inner = bgt_core.open_encoder(spec)
    split = bgt_core.split(inner, [(["en", "fr"], list(zip(*PAIRS, strict=True)))], method="centring")
    parts.save(Path("second"), parts.StoredSplit(split, spec, identity(inner)))
    expected = bgt_core.open_encoder("split:second").embed(texts, lang="en")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    np.testing.assert_array_equal(bgt_core.open_encoder("split:../second").embed(texts, lang="en"), expected)


def test_a_relative_path_that_is_not_found_is_explained(folder: Path) -> None:
    about = json.loads((folder / "split.json").read_text())
    (folder / "split.json").write_text(json.dumps(about | {"encoder": "runs/mine"}))
    with pytest.raises(NotFound, match=r"made from vectors of runs/mine, which .* correct \"encoder\"") as error:
        bgt_core.open_encoder(f"split:{folder}")
    assert "runs/mine: no such checkpoint" in str(error.value) and "hub" not in str(error.value)


def test_an_encoder_that_has_changed_is_refused(folder: Path) -> None:
    about = folder / parts.ABOUT
    text = about.read_text("utf-8").replace('"fingerprint": "', '"fingerprint": "older ')
    about.write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"has changed since .* Restore the encoder, or make"):
        bgt_core.open_encoder(f"split:{folder}")


def test_values_below_the_range_of_float32_are_0() -> None:
    size = np.finfo(np.float32).tiny
    units = {"offset": np.zeros(2), "centre": np.zeros(2), "read": np.eye(2), "back": np.diag([1.0, 1 - 1e-3])}
    split = Split("mine", {"en": Map(**units)})
    encoder = split_encoder("split", split, ExternalEncoder("inner", lambda texts, *_: [[0.0, 100 * size]]))
    shared, private = (encoder.embed(["a"], lang="en", latent=latent) for latent in encoder.latents)
    assert shared.tolist() == [[0, 100 * size]] and private.tolist() == [[0, 0]]
