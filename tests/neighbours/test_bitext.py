"""Mined translations have the scores of Artetxe and Schwenk's formulas, computed pair by pair; files are read."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import bgt_core
from bgt_core.errors import BgtError
from bgt_core.neighbours import bitext
from bgt_core.neighbours.bitext import MARGINS, Mined, Pairs, Sentences, best_threshold, mine, read_gold, read_vectors
from bgt_core.neighbours.search import Rows
from tests.close import FLOAT32, assert_close

RNG = np.random.default_rng(0)
LEFT = RNG.standard_normal((40, 8)).astype(np.float32)
RIGHT = (LEFT + 0.3 * RNG.standard_normal((40, 8)))[::-1].astype(np.float32)
WORDS = {"encoder": bgt_core.open_encoder("baseline:words"), "langs": ("en", "fr")}


def pairs(left: Any, right: Any, **settings: Any) -> list[tuple[int, int]]:
    mined = bgt_core.mine(left, right, **settings).pairs
    return list(zip(mined.left.tolist(), mined.right.tolist(), strict=True))


def test_one_string_is_one_sentence() -> None:
    assert pairs("abc", "abc", **WORDS) == [(0, 0)]
    assert pairs(iter(["b", "a c"]), np.array(["a c", "b"]), **WORDS) == [(0, 1), (1, 0)]
    assert pairs(["a"], ["a"], **{**WORDS, "langs": "en,fr"}) == [(0, 0)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (LEFT.tolist(), torch.tensor(RIGHT, requires_grad=True)),
        (sparse.csr_array(LEFT), list(torch.tensor(RIGHT))),
        (LEFT.astype(">f8"), np.asfortranarray(RIGHT)),
        (np.float32(LEFT * 1e-30), np.float32(RIGHT * 1e30)),
        (LEFT * 1e37, np.float32(RIGHT * 1e-37)),
    ],
    ids=["list and tensor", "sparse and tensors", "byte order", "scale", "largest scale"],
)
def test_vectors_of_any_kind_and_scale_give_the_same_pairs(left: Any, right: Any) -> None:
    expected, mined = bgt_core.mine(LEFT, RIGHT).pairs, bgt_core.mine(left, right).pairs
    assert len(expected.scores) and np.array_equal(expected.right, 39 - expected.left)
    assert np.array_equal(np.sort(mined.left), np.sort(expected.left)) and np.array_equal(mined.right, 39 - mined.left)
    np.testing.assert_allclose(mined.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"left": [None], "right": ["a"], **WORDS}, "left row 1 of 1 is of type NoneType; expected a string"),
        ({"left": LEFT[0]}, r"left: float32 \(8,\); expected numbers, \(N, D\)"),
        ({"right": RIGHT[:0]}, "right: no vectors; expected at least one"),
        ({"right": np.where(np.arange(40)[:, None] == 8, np.inf, RIGHT)}, "right: row 9 contains NaN or infinity"),
        ({"left": LEFT[:, :3]}, "Vectors of 3 and 8 units can't be compared"),
        ({"left": ["a"], "right": ["a"], **WORDS, "langs": "en"}, "langs en: expected 2 languages, as in en,fr"),
        ({"k": 2.5}, "k 2.5 must be a whole number of at least 1"),
        ({"margin": "cosine"}, "margin 'cosine': choose from ratio, distance, absolute"),
        ({"recall": 0.0}, "recall 0.0: expected a share"),
        ({"recall": 95}, "recall 95: expected a share"),
        ({"index": "flat"}, "index 'flat': choose from exact, approximate"),
        ({"threshold": None}, "threshold None: expected a number, the minimum score"),
    ],
)
def test_invalid_arguments_are_errors_that_name_the_parameter(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BgtError, match=f"^{message}"):
        bgt_core.mine(**{"left": LEFT, "right": RIGHT, **settings})


MARGIN = {  # the paper's margins: a = cos(x, y); b is the mean cosine of x and y with their nearest neighbours
    "ratio": lambda a, b: a / b,
    "distance": lambda a, b: a - b,
    "absolute": lambda a, b: a,
}


def rows(vectors: np.ndarray) -> Rows:
    return Rows(vectors, np.arange(len(vectors)))


def views(count: int = 30, extra: int = 12, noise: float = 0.6, seed: int = 0) -> tuple[Rows, Rows]:
    """Make vectors of two languages. Row i of both is one point plus noise, except in the last `extra` rows.

    All points have a common mean, as vectors of text do, so that every cosine is positive.
    """
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count + 2 * extra, 16)) + 1.5
    left, right = np.r_[0:count, count : count + extra], np.r_[0:count, count + extra : count + 2 * extra]
    return tuple(
        rows((points[side] + noise * rng.normal(size=(count + extra, 16))).astype(np.float32)) for side in (left, right)
    )


def margins(left: Rows, right: Rows, k: int, margin: str) -> tuple[np.ndarray, list[list[int]], list[list[int]]]:
    """Score each pair by itself, as in Artetxe and Schwenk (2019), sec. 3. Return scores and nearest neighbours."""
    x, y = (side.vectors.astype(float) for side in (left, right))
    cosine = np.array([[a @ b / math.sqrt((a @ a) * (b @ b)) for b in y] for a in x])
    near_x = [sorted(range(len(y)), key=lambda j, i=i: -cosine[i, j])[:k] for i in range(len(x))]
    near_y = [sorted(range(len(x)), key=lambda i, j=j: -cosine[i, j])[:k] for j in range(len(y))]
    of_x = [sum(cosine[i, z] / (2 * k) for z in near_x[i]) for i in range(len(x))]
    of_y = [sum(cosine[z, j] / (2 * k) for z in near_y[j]) for j in range(len(y))]
    scores = [[MARGIN[margin](cosine[i, j], of_x[i] + of_y[j]) for j in range(len(y))] for i in range(len(x))]
    return np.array(scores), near_x, near_y


def straight(left: Rows, right: Rows, k: int, margin: str) -> list[tuple[float, int, int]]:
    """Mine pairs by the paper's method "max". Return (score, left row, right row) of each pair, best first."""
    scores, near_x, near_y = margins(left, right, k, margin)
    forward = {max((scores[i, j], i, j) for j in near) for i, near in enumerate(near_x)}
    backward = {max((scores[i, j], i, j) for i in near) for j, near in enumerate(near_y)}
    chosen: set[tuple[float, int, int]] = set()
    for pair in sorted(forward | backward, reverse=True):
        if all(pair[1] != other[1] and pair[2] != other[2] for other in chosen):
            chosen.add(pair)
    return sorted(chosen, reverse=True)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("margin", MARGINS)
def test_scores_and_pairs_are_the_papers(margin: str, k: int) -> None:
    left, right = views()
    mined = mine(left, right, k=k, margin=margin).pairs
    expected = straight(left, right, k, margin)
    assert list(zip(mined.left.tolist(), mined.right.tolist(), strict=True)) == [pair[1:] for pair in expected]
    assert_close(mined.scores, [pair[0] for pair in expected], FLOAT32, scale=1)  # scale: the largest cosine is 1


def sentences(tmp_path: Path, text: str = "a\nb\n\na\nc\n") -> Sentences:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return bitext.read_sentences(path)


def test_copies_and_blank_lines_are_left_out(tmp_path: Path) -> None:
    text = sentences(tmp_path, "One dog.\n\n  One   dog. \r\nTwo\tdogs.\n \u200b\nOne cat.\nTwo dogs.")
    assert text.texts == ["One dog.", "Two dogs.", "One cat."]
    assert (text.first.tolist(), text.of_line.tolist()) == ([0, 3, 5], [0, -1, 0, 1, -1, 2, 1])


def test_vectors_are_mapped_from_disk_and_are_those_of_first_copies(tmp_path: Path) -> None:
    text = sentences(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float16)
    np.save(tmp_path / "x.npy", vectors)
    side = read_vectors(tmp_path / "x.npy", text)
    assert isinstance(side.vectors, np.memmap)
    expected = vectors[[0, 1, 4]].astype(np.float32)
    np.testing.assert_allclose(
        side.read(np.arange(3)), expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (None, 3, "can't be read"),
        (np.zeros((4, 3), np.float32), 4, ".*each of 5 lines"),
        (np.array([[0.0], [1], [2], [math.nan], [math.inf]], np.float32), 4, "row 4 contains"),
    ],
)
def test_invalid_vectors_are_errors(content: object, code: int, says: str, tmp_path: Path) -> None:
    path, text = tmp_path / "x.npy", sentences(tmp_path)
    if content is not None:
        np.save(path, content)
    with pytest.raises(BgtError, match=f"x.npy: {says}") as caught:
        read_vectors(path, text)
    assert caught.value.exit_code == code


def test_known_translations_are_line_numbers_and_copies_count_once(tmp_path: Path) -> None:
    text, path = sentences(tmp_path), tmp_path / "gold.tsv"
    path.write_text("5\t1\n1\t2\textra\n4\t2\n")  # line 4 is a copy of line 1
    left, right = read_gold(path, text, text)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "gold.tsv: empty"),
        ("1\t1\n1\n", "gold.tsv:2: .*at most 5 <tab> 5, found '1'"),
        ("0\t1\n", "gold.tsv:1"),
        ("1\t6\n", "gold.tsv:1"),
        ("1\t1\n3\t1\n", "gold.tsv:2: refers to a blank line"),
    ],
)
def test_an_invalid_line_of_known_translations_is_named(content: str, says: str, tmp_path: Path) -> None:
    text, path = sentences(tmp_path), tmp_path / "gold.tsv"
    path.write_text(content)
    with pytest.raises(BgtError, match=says):
        read_gold(path, text, text)


def drawn(scores: list[float], left: list[int], right: list[int]) -> Mined:
    """Make mined pairs with these scores and row numbers."""
    return Mined(Pairs(np.array(scores), np.array(left), np.array(right)), 0.8, None, (9, 9))  # type: ignore[arg-type]


def test_kept_pairs_are_counted_by_hand() -> None:
    every, above, *_ = drawn([0.9, 0.8, 0.7, 0.6, 0.5], [0, 1, 2, 3, 4], [0, 1, 0, 3, 0]).against(
        *np.array([[0, 0], [1, 1], [3, 3], [8, 8]]).T
    )
    assert (every.correct, every.kept, every.known) == (3, 5, 4)
    assert (every.precision, every.recall, every.f1) == (0.6, 0.75, pytest.approx(2 * 0.6 * 0.75 / 1.35))
    assert (above.precision, above.recall) == (1.0, 0.5)


def test_the_best_threshold_beats_every_other() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 12, 40) / 10  # only 12 different values, so that many are equal
        correct = rng.random(40) < scores

        def f1(threshold: float, scores: np.ndarray = scores, correct: np.ndarray = correct) -> float:
            return 2 * (correct & (scores >= threshold)).sum() / ((scores >= threshold).sum() + 30)

        assert f1(best_threshold(scores, correct, known=30)) == max(map(f1, np.arange(-0.05, 1.3, 0.1)))
    for none in (scores, np.array([])):
        assert best_threshold(none, np.zeros(len(none), dtype=bool), known=3) == math.inf


def test_the_threshold_of_each_half_is_that_of_the_other_half() -> None:
    # for left rows 0, 2, 4, the threshold 0.3 keeps all pairs and has the best F1, 4/5; for rows 1 and 3, 0.6 is best
    *_, apart = drawn([0.9, 0.5, 0.3, 0.8, 0.4], [0, 2, 4, 1, 3], [0, 0, 4, 1, 0]).against(
        np.array([0, 4, 1]), np.array([0, 4, 1])
    )
    assert apart.thresholds == (pytest.approx(0.6), pytest.approx(0.3))
    assert (apart.correct, apart.kept, apart.known) == (1 + 1, 1 + 2, 3)
