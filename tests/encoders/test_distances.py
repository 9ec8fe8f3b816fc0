"""The option `--distance` compares sentences by their posteriors or their bags of tokens, or raises a clear error."""

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import checkpoint
from bgt_core.contracts import EOS, SEMANTIC, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.encoders.distances import LONGEST, NAMES, PosteriorEncoder, WordMover, compared_by
from bgt_core.errors import DataError, UsageError
from bgt_core.posterior import Gaussian
from bgt_core.posterior.distances import DISTANCES, similarity
from bgt_core.recipes import Recipe
from tests.close import FLOAT32, assert_close

TEXTS = ["one cat", "two dogs sleep", "the old man sees the red car", "", "one cat"]
Bgt = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def vae(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, stirred: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An untrained model whose posterior variances differ between sentences."""
    torch.manual_seed(0)
    recipe = tiny("var-siamese-repeat")
    folder = tmp_path_factory.mktemp("vae") / "model"
    checkpoint.save(folder, recipe, stirred(recipe.build(tokenizer)), tokenizer, step=1)
    return folder


@pytest.fixture(scope="module")
def model(vae: Path) -> Embedder:
    return bgt_core.load(vae, "cpu", "fp32")


def test_posteriors_are_those_of_each_sentence_alone(model: Embedder) -> None:
    posteriors = model.posteriors(TEXTS, lang="en")
    assert posteriors.mean.shape == posteriors.log_variance.shape == (len(TEXTS), 12)
    for row, ids in enumerate(model.tokenizer.encode(TEXTS)):
        with torch.no_grad():
            alone = model.encoder(SEMANTIC, "en")(Tokens.pad([ids], "en"))
        assert_close(posteriors.mean[row], alone.mean[0])
        assert_close(posteriors.log_variance[row], alone.log_variance[0])
    np.testing.assert_array_equal(posteriors.mean.numpy(), model.embed(TEXTS, lang="en"))
    assert model.posteriors([], lang="en").mean.shape == (0, 12)
    with pytest.raises(UsageError, match="lang fi: "):
        model.posteriors(TEXTS, lang="fi")


@pytest.mark.parametrize("distance", [name for name in DISTANCES if name != "cosine"])
def test_vectors_of_posteriors_are_compared_by_their_distance(distance: str, model: Embedder) -> None:
    encoder = compared_by(model, distance)
    vectors = encoder.embed(TEXTS, lang="en")
    assert vectors.shape == (5, 24) and vectors.dtype == np.float32
    posteriors = model.posteriors(TEXTS, lang="en")
    table = encoder.similarity(vectors, vectors[:3])
    # a pair that is compared alone has the same similarity as in the table
    assert encoder.similarity(vectors[:1], vectors[:1])[0, 0] == pytest.approx(table[0, 0])
    for i in range(5):
        for j in range(3):
            sides = (Gaussian(posteriors.mean[k], posteriors.log_variance[k]) for k in (i, j))
            assert_close(table[i, j], similarity(distance, *sides))
    np.testing.assert_array_equal(encoder.similarity_pairwise(vectors[:3], vectors[:3]), np.diag(table[:3]))
    assert table[4, 0] == table[0, 0] and (table[1:4, 0] < 0).all()
    assert_close(table[0, 0], 0, FLOAT32, scale=-table.min())


def by_hand(left: np.ndarray, right: np.ndarray) -> float:
    """Return the lowest mean distance over all pairings of two equally long lists of token vectors."""
    costs = np.linalg.norm(left[:, None] - right[None], axis=-1)
    ways = permutations(range(len(right)))
    return min(sum(costs[i, j] for i, j in enumerate(way)) for way in ways) / len(left)


def test_the_word_movers_distance_is_the_cheapest_way(model: Embedder) -> None:
    mover = compared_by(model, "wmd")
    assert isinstance(mover, WordMover)
    table = next(part for part in model.model.encoders[SEMANTIC].modules() if isinstance(part, torch.nn.Embedding))
    vectors = table.weight.detach().numpy().astype(float)
    rng = np.random.default_rng(0)
    ids = np.zeros((2, LONGEST), dtype=np.float32)
    for _ in range(5):
        left, right = rng.choice(np.arange(4, 60), 6), rng.choice(np.arange(4, 60), 6)  # tokens may repeat
        ids[0, :6], ids[1, :6] = left, right
        assert -mover.similarity_pairwise(ids[:1], ids[1:])[0] == pytest.approx(by_hand(vectors[left], vectors[right]))
    # here, the only token of one sentence is moved to two tokens of the other, half of it to each
    ids[:] = 0
    ids[0, 0], ids[1, :2] = 7, (9, 11)
    expected = (np.linalg.norm(vectors[7] - vectors[9]) + np.linalg.norm(vectors[7] - vectors[11])) / 2
    assert -mover.similarity(ids[:1], ids[1:])[0, 0] == pytest.approx(expected)


def test_a_bag_of_tokens_has_no_order_and_no_end(model: Embedder) -> None:
    mover = WordMover(model)
    rows = mover.embed(["one cat sleeps", "sleeps one cat", "", "two dogs"], lang="en")
    assert rows.shape == (4, LONGEST)
    assert (rows[0] != EOS).all() and rows[2, 0] == EOS
    assert_close(mover.similarity_pairwise(rows[:1], rows[1:2])[0], 0, scale=-mover.similarity(rows, rows).min())
    assert (mover.similarity(rows[:1], rows[2:]) < 0).all()
    with pytest.raises(DataError, match=r"tokens in 'cat cat .*up to 256"):
        mover.embed(["cat " * 300], lang="en")


def test_an_unknown_or_unsupported_distance_is_refused(
    model: Embedder, tiny: Callable[..., Recipe], tokenizer: Tokenizer
) -> None:
    with pytest.raises(UsageError, match=r"distance 'mahalanobi': choose from .* Did you mean 'mahalanobis'\?"):
        compared_by(model, "mahalanobi")
    with pytest.raises(UsageError, match=r"distance .probability. needs a duplicate classifier"):
        compared_by(model, "probability")
    points = Embedder(tiny("sp").build(tokenizer), tokenizer, ["en"])
    with pytest.raises(UsageError, match="posteriors are not Gaussian"):
        PosteriorEncoder(points, "w2").embed(TEXTS, lang="en")
    for distance in ("w2", "cosine"):
        with pytest.raises(UsageError, match="only our models have posteriors"):
            compared_by(bgt_core.open_encoder("baseline:words"), distance)


def test_sts_compares_by_each_distance(bgt: Bgt, vae: Path, tmp_path: Path) -> None:
    (tmp_path / "sts" / "2012").mkdir(parents=True)
    rows = [(5, "one cat", "one cat"), (3, "one cat", "one dog"), (2, "two dogs sleep", "a man"), (0, "one cat", "yes")]
    lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "sts" / "2012" / "A.tsv").write_text(lines, encoding="utf-8")
    names = [name for name in NAMES if name != "probability"]
    asked = [part for name in names for part in ("--distance", name)]
    code, out, err = bgt("evaluate", "sts", tmp_path / "sts", "--sets", "2012", "--model", f"mine={vae}", *asked,
                         "--resamples", 100, "--device", "cpu", "--json")  # fmt: skip
    assert code == 0, err
    systems = {row["system"]: row for row in json.loads(out)["scores"] if row["dataset"] == "A"}
    assert list(systems) == [f"mine {name}" for name in names]
    model = bgt_core.load(vae, "cpu")
    w2 = similarity("w2", *(model.posteriors([row[side] for row in rows], lang="en") for side in (1, 2))).numpy()
    assert systems["mine w2"]["value"] == pytest.approx(100 * np.corrcoef(w2, [row[0] for row in rows])[0, 1], abs=0.01)
