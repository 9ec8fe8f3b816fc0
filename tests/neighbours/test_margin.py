"""Bitext mining against the paper's formulas worked sentence by sentence, and its files, good and bad."""

from __future__ import annotations

import gzip
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
import zstandard

from bgt_core.errors import BgtError
from bgt_core.neighbours.bitext import Sentences, read_gold, read_sentences, read_vectors
from bgt_core.neighbours.margin import (
    MARGINS,
    RETRIEVALS,
    Counts,
    best_threshold,
    count,
    held_out,
    margin_pairs,
    rescore,
)
from bgt_core.neighbours.search import Rows, approximate, exact
from tests.close import FLOAT32, assert_close

MARGIN = {  # the paper's three margins of a = cos(x, y) and b, the mean over the neighbours of both
    "ratio": lambda a, b: a / b,
    "distance": lambda a, b: a - b,
    "absolute": lambda a, b: a,
}


def rows(vectors: np.ndarray) -> Rows:
    return Rows(vectors, np.arange(len(vectors)))


def views(count: int = 30, extra: int = 12, noise: float = 0.6, seed: int = 0) -> tuple[Rows, Rows]:
    """Row i of both sides is one point seen twice; the last `extra` rows of each are points of their own.

    All lean to one direction, as vectors of text do, so that every cosine is positive.
    """
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count + 2 * extra, 16)) + 1.5
    left, right = np.r_[0:count, count : count + extra], np.r_[0:count, count + extra : count + 2 * extra]
    return tuple(
        rows((points[side] + noise * rng.normal(size=(count + extra, 16))).astype(np.float32)) for side in (left, right)
    )


def margins(left: Rows, right: Rows, k: int, margin: str) -> tuple[np.ndarray, list[list[int]], list[list[int]]]:
    """Artetxe and Schwenk (2019), sec. 3, sentence by sentence: the score of every pair, both sides' neighbours."""
    x, y = (side.vectors.astype(float) for side in (left, right))
    cosine = np.array([[a @ b / math.sqrt((a @ a) * (b @ b)) for b in y] for a in x])
    near_x = [sorted(range(len(y)), key=lambda j, i=i: -cosine[i, j])[:k] for i in range(len(x))]
    near_y = [sorted(range(len(x)), key=lambda i, j=j: -cosine[i, j])[:k] for j in range(len(y))]
    of_x = [sum(cosine[i, z] / (2 * k) for z in near_x[i]) for i in range(len(x))]
    of_y = [sum(cosine[z, j] / (2 * k) for z in near_y[j]) for j in range(len(y))]
    scores = [[MARGIN[margin](cosine[i, j], of_x[i] + of_y[j]) for j in range(len(y))] for i in range(len(x))]
    return np.array(scores), near_x, near_y


def straight(left: Rows, right: Rows, k: int, margin: str, retrieval: str) -> list[tuple[float, int, int]]:
    """The paper's retrieval: scores and pairs, best first."""
    scores, near_x, near_y = margins(left, right, k, margin)
    forward = {max((scores[i, j], i, j) for j in near) for i, near in enumerate(near_x)}
    backward = {max((scores[i, j], i, j) for i in near) for j, near in enumerate(near_y)}
    match retrieval:
        case "forward":
            chosen = forward
        case "backward":
            chosen = backward
        case "intersection":
            chosen = forward & backward
        case "max":
            chosen = set()
            for pair in sorted(forward | backward, reverse=True):
                if all(pair[1] != other[1] and pair[2] != other[2] for other in chosen):
                    chosen.add(pair)
    return sorted(chosen, reverse=True)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize("margin", MARGINS)
def test_scores_and_pairs_are_the_papers(margin: str, retrieval: str, k: int) -> None:
    left, right = views()
    pairs = margin_pairs(left, right, exact(left, right), k=k, margin=margin, retrieval=retrieval)
    expected = straight(left, right, k, margin, retrieval)
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == [pair[1:] for pair in expected]
    assert_close(pairs.scores, [pair[0] for pair in expected], FLOAT32, scale=1)  # that of cosines


@pytest.mark.parametrize("margin", MARGINS)
def test_scores_of_approximate_search_can_be_made_exact(margin: str) -> None:
    left, right = views(count=60, extra=60)
    rough = margin_pairs(left, right, approximate(left, right, recall=0.3), margin=margin)
    again = rescore(rough, left, right, margin=margin)
    scores, *_ = margins(left, right, 4, margin)
    assert_close(again.scores, scores[again.left, again.right], FLOAT32, scale=1)
    assert (np.diff(again.scores) <= 0).all()
    assert set(zip(*again[1:], strict=True)) == set(zip(*rough[1:], strict=True))
    too_high = rough.scores - scores[rough.left, rough.right]
    assert too_high.min() > -FLOAT32  # neighbours that were missed can't lower a score
    assert (too_high.max() > 0.01) == (margin != "absolute")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"k": 0}, "k 0 must be at least 1"),
        ({"margin": "cosine"}, "margin 'cosine': choose from ratio, distance, absolute"),
        ({"retrieval": "best"}, "retrieval 'best': choose from max, intersection, forward, backward"),
    ],
)
def test_bad_settings_are_refused(how: dict[str, object], says: str) -> None:
    left, right = views(3, 0)
    with pytest.raises(BgtError, match=says) as caught:
        margin_pairs(left, right, exact(left, right), **how)
    assert caught.value.exit_code == 2


TEXT = "One dog.\n\n  One   dog. \r\nTwo\tdogs.\n \u200b\nOne cat.\nTwo dogs."


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_sentences_are_read_once_each(suffix: str, tmp_path: Path) -> None:
    packed = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}[suffix]
    path = tmp_path / f"text.txt{suffix}"
    path.write_bytes(packed(TEXT.encode()))
    sentences = read_sentences(path)
    assert sentences.texts == ["One dog.", "Two dogs.", "One cat."]
    assert sentences.first.tolist() == [0, 3, 5]
    assert sentences.of_line.tolist() == [0, -1, 0, 1, -1, 2, 1]


def sentences(tmp_path: Path, text: str = "a\nb\n\na\nc\n") -> Sentences:
    path = tmp_path / "text.txt"
    path.write_text(text)
    return read_sentences(path)


def test_vectors_are_those_of_the_first_lines_and_stay_on_disk(tmp_path: Path) -> None:
    text = sentences(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", vectors)
    side = read_vectors(tmp_path / "x.npy", text)
    assert isinstance(side.vectors, np.memmap)
    expected = vectors[[0, 1, 4]]
    np.testing.assert_allclose(
        side.read(np.arange(3)), expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (None, 3, "can't be read"),
        (b"", 4, "not a .npy file"),
        (b"some words", 4, "not a .npy file"),
        (np.zeros((4, 3), np.float32), 4, ".*each of 5 lines"),
        (np.zeros(5, np.float32), 4, r"float32 \(5,\); expected numbers, \(N, D\)"),
        (np.zeros((5, 3), complex), 4, r"complex128 \(5, 3\); expected numbers"),
        (np.array([[None] * 3] * 5), 4, "not a .npy file"),  # would be a pickle
        (np.array([[0.0], [1], [2], [math.nan], [math.inf]], np.float32), 4, "row 4 contains"),
    ],
)
def test_bad_vectors_are_refused(content: object, code: int, says: str, tmp_path: Path) -> None:
    path, text = tmp_path / "x.npy", sentences(tmp_path)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    with pytest.raises(BgtError, match=f"x.npy: {says}") as caught:
        read_vectors(path, text)
    assert caught.value.exit_code == code


def test_known_pairs_name_lines_and_copies_count_once(tmp_path: Path) -> None:
    text, path = sentences(tmp_path), tmp_path / "gold.tsv"
    path.write_text("5\t1\n1\t2\textra\n4\t2\n")  # line 4 is line 1 again
    left, right = read_gold(path, text, text)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "gold.tsv: empty"),
        ("1\t1\n1\n", "gold.tsv:2: .*up to 5 <tab> 5, found '1'"),
        ("1\tb\n", "gold.tsv:1"),
        ("0\t1\n", "gold.tsv:1"),
        ("1\t6\n", "gold.tsv:1"),
        ("1\t1\n3\t1\n", "gold.tsv:2: refers to a blank line"),
    ],
)
def test_bad_known_pairs_are_refused(content: str, says: str, tmp_path: Path) -> None:
    text, path = sentences(tmp_path), tmp_path / "gold.tsv"
    path.write_text(content)
    with pytest.raises(BgtError, match=says):
        read_gold(path, text, text)


SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
CORRECT = np.array([True, True, False, True, False])


def test_by_hand() -> None:
    counts = count(SCORES, CORRECT, known=4)
    assert counts == Counts(correct=3, kept=5, known=4)
    assert (counts.precision, counts.recall, counts.f1) == (0.6, 0.75, pytest.approx(2 * 0.6 * 0.75 / 1.35))
    counts = count(SCORES, CORRECT, known=4, threshold=0.8)
    assert (counts.precision, counts.recall) == (1.0, 0.5)


def test_the_best_threshold_beats_every_other() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 12, 40) / 10  # many are equal
        correct = rng.random(40) < scores
        best = best_threshold(scores, correct, known=30)
        tried = [count(scores, correct, 30, value).f1 for value in np.arange(-0.05, 1.3, 0.1)]
        assert count(scores, correct, 30, best).f1 == max(tried)


@pytest.mark.parametrize("scores", [SCORES, np.array([])])
def test_without_a_correct_pair_none_is_worth_keeping(scores: np.ndarray) -> None:
    assert best_threshold(scores, np.zeros(len(scores), dtype=bool), known=3) == math.inf


def test_each_half_is_judged_at_the_threshold_of_the_other() -> None:
    scores = np.array([0.9, 0.5, 0.3, 0.8, 0.4])
    correct = np.array([True, False, True, True, False])
    half = np.array([0, 0, 0, 1, 1])
    # half 0 is best with all three (4 / 5), kept from 0.3 on; half 1 with its first, from 0.6 on
    counts, used = held_out(scores, correct, half, known=(2, 1))
    assert used == (pytest.approx(0.6), pytest.approx(0.3))
    assert counts == Counts(correct=1 + 1, kept=1 + 2, known=3)
