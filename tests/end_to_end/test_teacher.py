"""A model learns to imitate a teacher's vectors of English sentences. A second training stage can start from it."""

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
from bgt_core import checkpoint, recipes, training
from bgt_core.data.batching import make_batch
from bgt_core.data.store import open_corpus
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from tests.close import FLOAT32, assert_close
from tests.runs import metrics

UNITS, COMMON = 12, 40
Vectors = Callable[[Sequence[str]], np.ndarray]
SETTINGS: dict[str, Any] = {
    "data.vocab_size": 500, "data.valid_pairs": 30, "data.min_tokens": 1, "model.d_model": 24,
    "model.semantic_dim": 24, "model.language_dim": 6, "model.ffn_dim": 32, "model.heads": 2, "elbo.warmup_steps": 10,
    "train.epochs": 3.0, "train.batch_tokens": 400, "train.micro_tokens": 1_200, "train.learning_rate": 3e-2,
    "train.warmup_steps": 5, "train.valid_every": 20, "train.save_every": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def vectors(texts: dict[str, list[str]]) -> Vectors:
    """vectors(texts): the teacher, which embeds N English texts as (N, UNITS) float32. It adds up the vectors of the
    words of a text. Common words and punctuation marks have random vectors; all other words have zeros."""
    counts = Counter(word for text in texts["en"] for word in words(text))
    directions = dict.fromkeys((word for word, count in counts.most_common(COMMON)), None)
    rng = np.random.default_rng(0)
    table = {word: rng.normal(size=UNITS) for word in directions}

    def embed(texts: Sequence[str]) -> np.ndarray:
        zero = np.zeros(UNITS)
        return np.array([sum((table.get(word, zero) for word in words(text)), zero) for text in texts], np.float32)

    return embed


def words(text: str) -> list[str]:
    """Split a text into words and punctuation marks."""
    return re.findall(r"\w+|[^\w\s]+", text.lower())


@pytest.fixture(scope="module")
def folder(
    texts: dict[str, list[str]],
    vectors: Vectors,
    write_rows: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Files of 180 English-French pairs, 150 English-German pairs and 120 English sentences; each file has vectors."""
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
    """A model trained without interruption; the teacher's vectors are given for all files but English-German."""
    out = folder / "taught"
    teacher = [folder / "en-fr.npy", None, folder / "en.npy"]
    training.train("bgt-small", data, out, overrides=SETTINGS, teacher=teacher, device="cpu")
    return out


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.mark.slow
def test_new_sentences_of_both_languages_are_near_the_teacher(
    taught: Path, vectors: Vectors, texts: dict[str, list[str]]
) -> None:
    """On average, new sentences are mapped nearer to their own teacher vectors than to those of other sentences."""
    head = checkpoint.load(taught).model.state_dict()["teacher.weight"].double().numpy()
    learner = bgt_core.load(taught, "cpu", "fp32")
    new = [row for row in range(900, 1_400) if vectors([texts["en"][row]]).any()]
    truth = vectors([texts["en"][row] for row in new])
    for lang in ("en", "fr"):
        mapped = learner.embed([texts[lang][row] for row in new], lang=lang) @ head.T
        assert cosines(mapped, truth).mean() > cosines(mapped, np.roll(truth, 1, axis=0)).mean() + 0.05
    first, last = (metrics(taught)[i] for i in (0, -1))
    assert {name for name in last if name.startswith("distillation/")} == {"distillation/en", "distillation/fr"}
    assert all(0 < last[f"distillation/{lang}"] < first[f"distillation/{lang}"] < 0.7 for lang in ("en", "fr"))
    assert json.loads((taught / "run.json").read_text("utf-8"))["arguments"]["model.teacher_dim"] == UNITS


def test_the_initial_map_is_the_best_rotation(folder: Path, data: list[str], tmp_path: Path) -> None:
    """The initial matrix from latents to teacher vectors is SciPy's best rotation to zero-padded teacher vectors."""
    start = {**SETTINGS, "train.epochs": 0.0}
    training.train("bgt-small", data[:1], tmp_path, overrides=start, teacher=[folder / "en-fr.npy"], device="cpu")
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
def test_a_first_stage_only_trains_the_semantic_encoder_and_a_second_starts_from_it(
    folder: Path, data: list[str], taught: Path
) -> None:
    teacher = [folder / "en-fr.npy", None, folder / "en.npy"]
    first, second = folder / "first-stage", folder / "second-stage"
    stage = {"model.train_rarity": True, "model.train_decoders": False, "train.epochs": 1.0, "data.valid_pairs": 30}
    options: dict[str, Any] = {"teacher": teacher, "device": "cpu"}
    training.train("bgt-small", data, first, init_from=taught, overrides=stage, **options)
    before, after = (checkpoint.load(path).model.state_dict() for path in (taught, first))
    fixed = [name for name in before if not name.startswith(("encoders.semantic", "teacher"))]
    assert all(torch.equal(before[name], after[name]) for name in fixed)
    assert "encoders.semantic.body.rarity" in after.keys() - before.keys()

    stage = {"train.epochs": 0.0, "data.valid_pairs": 30}
    training.train("bgt-small", data, second, init_from=first, overrides=stage, **options)
    again = checkpoint.load(second).model
    assert again.train_decoders
    assert all(torch.equal(value, after[name]) for name, value in again.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"teacher": ["en-fr", "en-fr"]}, UsageError, "2 files of vectors for 1 data files"),
        ({"teacher": ["missing"]}, NotFound, r"missing\.npy: can't be read"),
        ({"teacher": ["en"]}, DataError, r"en\.npy has 120 rows, .*en-fr\.tsv 1(80|20 more)|has 120 rows"),
        ({"teacher": ["broken"]}, DataError, r"broken\.npy: a vector contains NaN or infinity"),
        ({"model.teacher_dim": 7}, DataError, r"the vectors have 12 units, but model\.teacher_dim is 7"),
        ({"distillation.weight": 0.0}, UsageError, r"model\.teacher_dim=12 and objective\.distillation\.weight"),
        ({"teacher": [], "distillation.weight": 9.0}, UsageError, "teacher is missing: objective.distillation.weight"),
        ({"recipe": "sp"}, UsageError, "'sp' can't learn from vectors; choose from bgt, bgt-plus"),
        ({"files": 2, "teacher": ["en-fr", None]}, UsageError, "some files of en-fr have vectors, others don't"),
        ({"recipe": recipes.configure("bgt-small", SETTINGS)}, UsageError, r"set model\.teacher_dim=12"),
    ],
)
def test_unsuitable_vectors_and_settings_are_refused(
    changes: dict[str, Any], error: type[BgtError], message: str, folder: Path, data: list[str], tmp_path: Path
) -> None:
    broken = np.load(folder / "en-fr.npy")
    broken[7, 3] = np.nan
    np.save(folder / "broken.npy", broken)
    named = {"recipe": "bgt-small", "teacher": ["en-fr"], "files": 1}
    overrides = {} if "recipe" in changes else {**SETTINGS}
    overrides |= {name: value for name, value in changes.items() if name not in named}
    chosen: dict[str, Any] = {name: changes.get(name, value) for name, value in named.items()}
    teacher = [name and folder / f"{name}.npy" for name in chosen["teacher"]]
    with pytest.raises(error, match=message) as caught:
        training.train(
            chosen["recipe"], data[:1] * chosen["files"], tmp_path / "run",
            teacher=teacher, overrides=overrides, device="cpu",
        )  # fmt: skip
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
