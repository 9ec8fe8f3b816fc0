"""A split is restored from its folder, which omits identity matrices; a damaged folder raises an error."""

import json
import resource
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bgt_core.errors import BgtError, NotFound, UsageError
from bgt_core.files import sha256_file
from bgt_core.splitting import Map, Split, parts
from tests.close import FLOAT32, assert_close

SCORES = {"shared": {"found": 0.5, "language_told": None}}
ABOUT = {"rows": 90, "held_out_rows": 10, "scores": SCORES}
RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


MAPS = {
    "en": Map(draw(4), draw(2, 4), draw(4, 2), np.zeros(2)),
    "fr": Map(draw(4), draw(2, 4), draw(4, 2), np.ones(2), (draw(3, 4), draw(3), draw(2, 3))),
}


def saved(folder: Path, maps: dict[str, Map]) -> Path:
    parts.save(folder / "split", parts.StoredSplit(Split("bgt", maps, ABOUT), "baseline:tfidf", "print"))
    return folder / "split"


def test_a_saved_split_is_loaded_unchanged(tmp_path: Path) -> None:
    read = parts.load(saved(tmp_path, MAPS))
    assert (read.encoder, read.fingerprint) == ("baseline:tfidf", "print")
    assert (read.split.method, read.split.about) == ("bgt", ABOUT)
    vectors = RNG.standard_normal((5, 4))
    assert read.split.of("en").hidden is None and read.split.of("fr").hidden is not None
    for lang in MAPS:
        expected = Split("bgt", MAPS).parts(vectors, lang)
        for ours, theirs in zip(read.split.parts(vectors, lang), expected, strict=True):
            assert_close(ours, theirs, FLOAT32)  # stored as float32
    assert "baseline:tfidf" in (tmp_path / "split" / "README.md").read_text("utf-8")
    with pytest.raises(UsageError, match="exists already"):
        saved(tmp_path, MAPS)


def test_a_split_that_does_not_fit_on_the_disk_leaves_nothing(tmp_path: Path) -> None:
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, largest[1]))
    try:
        with pytest.raises(NotFound, match=r"split: can't be written"):
            saved(tmp_path, MAPS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, largest)
    assert not [*tmp_path.iterdir()]


def test_identity_matrices_are_not_stored(tmp_path: Path) -> None:
    wide = Map(np.arange(300.0), np.eye(300), np.eye(300), np.zeros(300))
    folder = saved(tmp_path, {"en": wide, "fr": wide})
    assert (folder / parts.WEIGHTS).stat().st_size < 10_000
    np.testing.assert_array_equal(parts.load(folder).split.of("fr").read, np.eye(300))


@pytest.mark.parametrize(
    ("name", "array"), [("en/read", np.ones((3, 4))), ("fr/centre", np.full(2, np.nan)), ("fr/down", np.ones((2, 9)))]
)
def test_an_array_with_a_wrong_shape_or_nan_is_an_error(tmp_path: Path, name: str, array: np.ndarray) -> None:
    folder = saved(tmp_path, MAPS)
    save_file(load_file(folder / parts.WEIGHTS) | {name: array.astype(np.float32)}, folder / parts.WEIGHTS)
    about = json.loads((folder / parts.ABOUT).read_text("utf-8"))
    about["files"][parts.WEIGHTS] = sha256_file(folder / parts.WEIGHTS)
    (folder / parts.ABOUT).write_text(json.dumps(about), "utf-8")
    with pytest.raises(BgtError, match="not a complete split"):
        parts.load(folder)


def test_a_damaged_folder_is_an_error(tmp_path: Path) -> None:
    folder = saved(tmp_path, MAPS)
    weights, about = folder / parts.WEIGHTS, folder / parts.ABOUT
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + b"!")
    with pytest.raises(BgtError, match="its hash differs from"):
        parts.load(folder)
    weights.write_bytes(whole)
    content = json.loads(about.read_text("utf-8"))
    about.write_text(json.dumps(content | {"langs": ["de"]}), "utf-8")
    with pytest.raises(BgtError, match="not a complete split"):
        parts.load(folder)
    for lost in ("files", "langs", "method", "encoder", "about"):
        about.write_text(json.dumps({name: value for name, value in content.items() if name != lost}), "utf-8")
        with pytest.raises(BgtError, match="not a complete split"):
            parts.load(folder)
    about.write_text(json.dumps(content | {"schema": "other"}), "utf-8")
    with pytest.raises(BgtError, match="its schema is not"):
        parts.load(folder)
    weights.unlink()
    with pytest.raises(BgtError, match=r"split\.safetensors: missing"):
        parts.load(folder)
