"""A model that was taught: vectors of the English side, from the command to the checkpoint and on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.linalg import orthogonal_procrustes

import bgt_core
from bgt_core import checkpoint, run
from bgt_core.data.batching import make_batch
from bgt_core.data.corpus import Mixture, open_corpus
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.recipes import Recipe
from bgt_core.recipes import build as build_recipe
from tests.close import FLOAT32, assert_close

UNITS, COMMON = 12, 40
Vectors = Callable[[Sequence[str]], np.ndarray]
SETTINGS: dict[str, Any] = {
    "data.vocab_size": 500,
    "data.valid_pairs": 30,
    "data.min_tokens": 1,
    "model.d_model": 24,
    "model.semantic_dim": 24,
    "model.language_dim": 6,
    "model.ffn_dim": 32,
    "model.heads": 2,
    "elbo.warmup_steps": 10,
    "train.epochs": 3.0,
    "train.batch_tokens": 400,
    "train.micro_tokens": 1_200,
    "train.learning_rate": 3e-2,
    "train.warmup_steps": 5,
    "train.valid_every": 20,
    "train.save_every": 10,
}


@pytest.fixture(scope="module")
def vectors(texts: dict[str, list[str]]) -> Vectors:
    """vectors(English texts): what stands for a teacher. Each common word or mark has a direction of its own, and a
    sentence their sum, (N, UNITS) float32."""
    counts = Counter(word for text in texts["en"] for word in words(text))
    directions = dict.fromkeys((word for word, count in counts.most_common(COMMON)), None)
    rng = np.random.default_rng(0)
    table = {word: rng.normal(size=UNITS) for word in directions}

    def embed(texts: Sequence[str]) -> np.ndarray:
        zero = np.zeros(UNITS)
        return np.array([sum((table.get(word, zero) for word in words(text)), zero) for text in texts], np.float32)

    return embed


def words(text: str) -> list[str]:
    """Words and marks."""
    return re.findall(r"\w+|[^\w\s]+", text.lower())


@pytest.fixture(scope="module")
def folder(
    texts: dict[str, list[str]],
    vectors: Vectors,
    write_rows: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """180 pairs English-French and 120 English sentences with vectors, 150 pairs English-German without."""
    folder = tmp_path_factory.mktemp("taught")
    for name, langs, rows in (("en-fr", "en fr", (0, 180)), ("en-de", "en de", (150, 300)), ("en", "en", (300, 420))):
        chosen = range(*rows)
        write_rows(folder / f"{name}.tsv", [[texts[lang][row] for lang in langs.split()] for row in chosen])
        np.save(folder / f"{name}.npy", vectors([texts["en"][row] for row in chosen]))
    return folder


@pytest.fixture(scope="module")
def data(folder: Path) -> list[str]:
    return [f"{name}={folder / name}.tsv" for name in ("en-fr", "en-de", "en")]


@pytest.fixture(scope="module")
def taught(folder: Path, data: list[str]) -> Path:
    """The run that nothing interrupts."""
    out = folder / "taught"
    teacher = [folder / "en-fr.npy", None, folder / "en.npy"]
    run.train("bgt-small", data, out, overrides=SETTINGS, teacher=teacher, device="cpu")
    return out


@pytest.fixture(scope="module")
def untaught(folder: Path, data: list[str]) -> Path:
    out = folder / "untaught"
    run.train("bgt-small", data, out, overrides=SETTINGS, device="cpu")
    return out


def valid_rows(out: Path) -> list[dict[str, Any]]:
    rows = map(json.loads, (out / "metrics.jsonl").read_text("utf-8").splitlines())
    return [row for row in rows if row["kind"] == "valid"]


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.mark.slow
def test_new_sentences_of_both_languages_come_nearer_to_the_teacher(
    taught: Path, untaught: Path, vectors: Vectors, texts: dict[str, list[str]]
) -> None:
    """Sentences of no file. The model that was not taught has no map: it gets the one that fits what the other was
    taught best, by least squares."""
    known, new = [*range(180), *range(300, 420)], [*range(900, 1_400)]
    head = checkpoint.load(taught).model.state_dict()["teacher.weight"].double().numpy()
    learner, plain = (bgt_core.load(out, "cpu", "fp32") for out in (taught, untaught))
    english = [texts["en"][row] for row in known]
    fitted, *_ = np.linalg.lstsq(plain.embed(english, lang="en"), vectors(english), rcond=None)
    new = [row for row in new if vectors([texts["en"][row]]).any()]
    truth = vectors([texts["en"][row] for row in new])
    for lang in ("en", "fr"):
        sentences = [texts[lang][row] for row in new]
        near = cosines(learner.embed(sentences, lang=lang) @ head.T, truth).mean()
        other = cosines(plain.embed(sentences, lang=lang) @ fitted, truth).mean()
        assert near > other + 0.1


def test_the_map_begins_as_the_rotation_that_fits_best(folder: Path, data: list[str], tmp_path: Path) -> None:
    """SciPy's, of targets with zeros for the units that the latent has more."""
    start = {**SETTINGS, "train.epochs": 0.0}
    run.train("bgt-small", data[:1], tmp_path, overrides=start, teacher=[folder / "en-fr.npy"], device="cpu")
    model = checkpoint.load(tmp_path).model
    corpus = open_corpus(tmp_path / "data")
    batch = make_batch(corpus, np.arange(len(corpus)), 0)
    assert batch.targets is not None
    means = F.normalize(model.encoders["semantic"](batch.sides["en"]).mean.detach(), dim=-1).double().numpy()
    targets = np.pad(F.normalize(batch.targets, dim=-1).double().numpy(), ((0, 0), (0, means.shape[1] - UNITS)))
    rotation, _ = orthogonal_procrustes(means, targets)
    head = model.state_dict()["teacher.weight"].double().numpy()
    assert_close(head, rotation.T[:UNITS], 10 * FLOAT32)


@pytest.mark.slow
def test_a_first_stage_moves_the_semantic_encoder_alone_and_a_second_trains_on_from_it(
    folder: Path, data: list[str], untaught: Path
) -> None:
    teacher = [folder / "en-fr.npy", None, folder / "en.npy"]
    first, second = folder / "first-stage", folder / "second-stage"
    stage = {"model.train_rarity": True, "model.train_decoders": False, "train.epochs": 1.0, "data.valid_pairs": 30}
    options: dict[str, Any] = {"teacher": teacher, "device": "cpu"}
    run.train("bgt-small", data, first, init_from=untaught, overrides=stage, **options)
    before, after = (checkpoint.load(path).model.state_dict() for path in (untaught, first))
    moved = {name.split(".")[0] for name, value in before.items() if not torch.equal(value, after[name])}
    assert moved <= {"encoders", "teacher"}
    assert not any("language" in name or ".en." in name for name in moved)
    assert all(
        torch.equal(value, after[name]) for name, value in before.items() if not name.startswith("encoders.semantic")
    )
    assert "encoders.semantic.body.rarity" in after.keys() - before.keys()

    stage = {"train.epochs": 0.0, "data.valid_pairs": 30}
    run.train("bgt-small", data, second, init_from=first, overrides=stage, **options)
    again = checkpoint.load(second).model
    assert again.train_decoders
    assert all(torch.equal(value, after[name]) for name, value in again.state_dict().items())


@pytest.mark.slow
def test_each_column_with_vectors_reports_how_far_it_is_and_the_others_nothing(taught: Path, untaught: Path) -> None:
    first, last = (valid_rows(taught)[i] for i in (0, -1))
    assert {name for name in last if name.startswith("distillation/")} == {"distillation/en", "distillation/fr"}
    for lang in ("en", "fr"):
        assert 0 < last[f"distillation/{lang}"] < first[f"distillation/{lang}"] < 0.7  # of what is untaught: 1
    assert not any(name.startswith("distillation") for name in valid_rows(untaught)[-1])
    rows = map(json.loads, (taught / "metrics.jsonl").read_text("utf-8").splitlines())
    assert all(0 < row["distillation/fr"] < 1.2 for row in rows if row["kind"] == "train")


@pytest.mark.slow
def test_the_run_says_what_taught_it_and_the_settings_follow_from_the_file(taught: Path, folder: Path) -> None:
    settings = json.loads((taught / "run.json").read_text("utf-8"))
    assert settings["teacher"] == [str(folder / "en-fr.npy"), None, str(folder / "en.npy")]
    assert settings["arguments"]["model.teacher_dim"] == UNITS
    assert settings["arguments"]["objective.distillation.weight"] > 0
    corpus = open_corpus(taught / "data")
    assert isinstance(corpus, Mixture)
    assert [corpus.targets(np.arange(2)) is not None for corpus in corpus.corpora] == [True, False, True]


@pytest.mark.slow
def test_the_command_killed_and_resumed_ends_in_the_same_weights(
    taught: Path, folder: Path, data: list[str], killed_run: Callable[..., int], tmp_path: Path
) -> None:
    teacher = [f"--teacher={path}" for path in (folder / "en-fr.npy", "none", folder / "en.npy")]
    killed_run("bgt-small", SETTINGS, tmp_path / "run", *(f"--data={source}" for source in data), *teacher)
    last, (expected, *_) = run.resume(tmp_path / "run", device="cpu"), reversed(checkpoint.steps_of(taught))
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (last / name).read_bytes() == (expected / name).read_bytes()


@pytest.mark.slow
def test_a_taught_model_is_trained_on_with_and_without_a_teacher(
    taught: Path, untaught: Path, folder: Path, data: list[str], tmp_path: Path
) -> None:
    short = {"train.epochs": 0.3, "data.valid_pairs": 30, "data.min_tokens": 1}
    start = checkpoint.load(taught).model.state_dict()["teacher.weight"]
    alone = run.train("bgt-small", data[:1], tmp_path / "alone", init_from=taught, overrides=short, device="cpu")
    assert np.array_equal(checkpoint.load(alone).model.state_dict()["teacher.weight"], start)  # kept, and at rest
    assert "distillation/en" not in valid_rows(alone.parent)[-1]
    for begun in (taught, untaught):
        out = tmp_path / f"from-{begun.name}"
        teacher = [folder / "en-fr.npy"]
        run.train("bgt-small", data[:1], out, init_from=begun, teacher=teacher, overrides=short, device="cpu")
        assert 0 < valid_rows(out)[-1]["distillation/fr"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["checkpoint", "sentence-transformers", "onnx"])
def test_an_export_embeds_as_the_checkpoint_does(
    form: str, taught: Path, texts: dict[str, list[str]], bgt: Callable[..., Any], tmp_path: Path
) -> None:
    pytest.importorskip({"onnx": "onnxscript", "checkpoint": "torch"}.get(form, "sentence_transformers"))
    out = tmp_path / "exported"
    done = bgt("export", taught, "--out", out, *("--to", form))
    assert done.code == 0, done.err
    if form != "onnx":
        vectors = (bgt_core.load(model, "cpu", "fp32").embed(texts["fr"][:9], lang="fr") for model in (taught, out))
        assert_close(*vectors)


ERRORS: dict[str, tuple[dict[str, Any], type[BgtError], str]] = {
    "more files": ({"teacher": ["en-fr", "en-fr"]}, UsageError, "2 files of vectors for 1 of data"),
    "no file": ({"teacher": ["missing"]}, NotFound, r"missing\.npy: can't be read"),
    "other rows": ({"teacher": ["en"]}, DataError, r"en\.npy has 120 rows, .*en-fr\.tsv 1(80|20 more)|has 120 rows"),
    "another width": ({"model.teacher_dim": 7}, DataError, r"vectors have 12 numbers, but model\.teacher_dim is 7"),
    "no weight": (
        {"distillation.weight": 0.0},
        UsageError,
        r"model\.teacher_dim=12 and objective\.distillation\.weight",
    ),
    "no vectors": (
        {"teacher": [], "distillation.weight": 9.0},
        UsageError,
        "teacher is missing: objective.distillation.weight is",
    ),
    "a recipe without": ({"recipe": "sp"}, UsageError, "'sp' can't learn from vectors; bgt, bgt-plus"),
}


@pytest.mark.parametrize("wrong", ERRORS)
def test_what_does_not_fit_is_refused_and_leaves_nothing(
    wrong: str, folder: Path, data: list[str], tmp_path: Path
) -> None:
    changes, error, message = ERRORS[wrong]
    options: dict[str, Any] = {"recipe": "bgt-small", "teacher": ["en-fr"]}
    overrides = SETTINGS if changes.get("recipe") is None else {}
    options |= {name: value for name, value in changes.items() if name in options}
    overrides = overrides | {name: value for name, value in changes.items() if name not in options}
    options["teacher"] = [folder / f"{name}.npy" for name in options["teacher"]]
    with pytest.raises(error, match=message) as caught:
        run.train(data=data[:1], out=tmp_path / "run", overrides=overrides, device="cpu", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_is_built_needs_both_settings(folder: Path, data: list[str], tmp_path: Path) -> None:
    recipe: Recipe = build_recipe("bgt-small", SETTINGS)
    with pytest.raises(UsageError, match=r"it needs model\.teacher_dim=12"):
        run.train(recipe, data[:1], tmp_path / "run", teacher=[folder / "en-fr.npy"], device="cpu")


def test_files_of_one_corpus_have_vectors_all_or_none(folder: Path, data: list[str], tmp_path: Path) -> None:
    for teacher in ([folder / "en-fr.npy", None], [None, folder / "en-fr.npy"]):
        with pytest.raises(UsageError, match="some files of en-fr have vectors and others none"):
            run.train("bgt-small", data[:1] * 2, tmp_path / "run", teacher=teacher, overrides=SETTINGS, device="cpu")


def test_vectors_that_are_not_finite_are_refused(folder: Path, data: list[str], tmp_path: Path) -> None:
    broken = np.load(folder / "en-fr.npy")
    broken[7, 3] = np.nan
    np.save(tmp_path / "broken.npy", broken)
    with pytest.raises(DataError, match=r"broken\.npy: a vector contains NaN or infinity"):
        run.train(
            "bgt-small", data[:1], tmp_path / "run", teacher=[tmp_path / "broken.npy"], overrides=SETTINGS, device="cpu"
        )
