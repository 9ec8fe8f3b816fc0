"""Training refuses columns and settings that do not fit the data; an encoder's vectors are computed once per row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from bgt_core import checkpoint, training
from bgt_core.data.store import open_corpus
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.recipes.writer import VectorWriter
from bgt_core.training.setup import LOCK, VECTORS
from tests.runs import weights


def test_a_column_and_a_kind_that_no_file_has_are_refused_before_anything_is_written(tsv: Path, tmp_path: Path) -> None:
    out, data, weights = tmp_path / "run", [f"news/en-fr={tsv}"], {"kind_weights": "docs:3"}
    with pytest.raises(UsageError, match="'es': no data file has this column"):
        training.train("bgt-bound", data, out, columns=["en", "fr", "es"], device="cpu")
    with pytest.raises(UsageError, match="no data file has the kind 'docs'; the kinds are news"):
        training.train("bgt-bound", data, out, overrides=weights, device="cpu")
    assert not out.exists()


WRITER: dict[str, Any] = {
    "encoder": "baseline:words", "data.vocab_size": 29, "data.valid_pairs": 4, "model.d_model": 8, "model.heads": 2,
    "model.ffn_dim": 8, "model.language_dim": 3, "model.memory_slots": 2, "model.decoder_layers": 1,
    "train.epochs": 0.0,
}  # fmt: skip
NOUNS = ["cat", "dog", "hat", "red car", "old man", "book"]
ROWS = [(f"the {noun} {number}", f"le {noun} {number} !") for noun in NOUNS for number in range(5)]
BAD = 7  # index of the row that lacks a column


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "pairs.rows"
    lines = ["\t".join(row) for row in ROWS]
    path.write_text("\n".join([*lines[:BAD], "one column", *lines[BAD:]]) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def trained(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    training.train("writer", [f"en-fr={rows}", f"fr,_={rows}"], out, overrides=WRITER, device="cpu")
    return out


def test_each_row_has_the_vectors_of_its_own_sentences(trained: Path) -> None:
    tokenizer = checkpoint.load(trained).tokenizer
    encoder = bgt_core.open_encoder("baseline:words")
    seen = 0
    for split in ("train", "valid"):
        for corpus in open_corpus(trained / "data", split).corpora:
            chosen = np.arange(len(corpus))
            targets = corpus.targets(chosen)
            assert targets is not None
            texts = [tokenizer.decode(corpus.take(column, chosen)) for column in corpus.columns]
            vectors = [encoder.embed(of_column, lang="en") for of_column in texts]
            np.testing.assert_array_equal(targets, np.concatenate(vectors, axis=1))
            seen += len(chosen)
    assert seen == 2 * len(ROWS)
    assert not list(trained.glob("vectors-*"))


def test_vectors_that_a_killed_run_left_are_overwritten(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    for name in (LOCK, VECTORS.format(0)):
        (out / name).write_bytes(b"half")
    training.train("writer", [f"en-fr={rows}"], out, overrides=WRITER, device="cpu")
    names = {"data", "metrics.jsonl", "run.json", "step-0000000", "tokenizer.model"}
    assert {path.name for path in out.iterdir()} == names


def test_the_checkpoint_names_the_encoder_and_its_fingerprint(trained: Path) -> None:
    loaded = checkpoint.load(trained)
    arguments = loaded.config["arguments"]
    assert arguments["model.encoder"] == "baseline:words"
    assert arguments["model.fingerprint"] == bgt_core.open_encoder("baseline:words").fingerprint
    assert arguments["model.vector_dim"] == 8192
    assert isinstance(loaded.model, VectorWriter)
    assert loaded.model.stored.mean.any() and loaded.model.stored.scale != 1


@pytest.mark.slow
def test_a_run_can_be_resumed_without_the_encoder(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**WRITER, "train.epochs": 2.0, "train.batch_tokens": 100}
    whole = training.train("writer", [f"en-fr={rows}"], tmp_path / "whole", overrides=settings, device="cpu")
    training.train("writer", [f"en-fr={rows}"], tmp_path / "resumed", overrides=WRITER, device="cpu")
    monkeypatch.setattr("bgt_core.training.setup.open_encoder", None)
    changed = {"train.epochs": 2.0, "train.batch_tokens": 100}
    resumed = training.resume(tmp_path / "resumed", device="cpu", overrides=changed)
    assert weights(whole) == weights(resumed)


def test_a_second_run_starts_from_the_first_with_its_mean_and_scale(trained: Path, rows: Path, tmp_path: Path) -> None:
    last = training.train(
        "writer", [f"en-fr={rows}"], tmp_path / "second", init_from=trained, device="cpu",
        overrides={"train.epochs": 0.0, "data.valid_pairs": 10},
    )  # fmt: skip
    first, second = (checkpoint.load(folder).model.state_dict() for folder in (trained, last))
    assert all((first[name] == value).all() for name, value in second.items())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"encoder": ""}, UsageError, "encoder is needed: name the encoder"),
        ({"encoder": "baseline:nouns"}, UsageError, "baseline:nouns"),
        ({"model.fingerprint": "words 12"}, DataError, "baseline:words has changed"),
        ({"encoder": "python:sentence_of_nan:embed"}, DataError, "NaN or infinity"),
    ],
)
def test_an_unsuitable_encoder_is_refused_and_no_file_stays(
    changes: dict[str, Any],
    error: type[BgtError],
    message: str,
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = (
        "import numpy\n\ndef embed(texts):\n    return numpy.full((len(texts), 3), 1 if texts == ['a'] else numpy.nan)"
    )
    (tmp_path / "sentence_of_nan.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message) as caught:
        training.train("writer", [f"en-fr={rows}"], tmp_path / "run", overrides=WRITER | changes, device="cpu")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_only_a_writer_has_an_encoder(rows: Path, tmp_path: Path, bgt: Callable[..., Any]) -> None:
    options = "--encoder", "baseline:words", "--data", f"en-fr={rows}", "--out", tmp_path / "run"
    done = bgt("train", "bgt-small", *options)
    assert done.code == 2 and "no setting 'model.encoder'" in done.err and done.err.count("\n") == 1
