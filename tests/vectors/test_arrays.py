"""Arrays of any library are converted, NaN is refused, and similarities agree with other implementations."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from bgt_core.errors import DataError, UsageError
from bgt_core.vectors import arrays
from bgt_core.vectors.arrays import above, cosine_similarity, cosines, found, hits, holds_vectors, listed, matrix, unit
from tests.close import FLOAT32, assert_close

VECTORS = np.arange(12.0).reshape(4, 3) / 2 - 1.5  # exact in every float type


def masked(where: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.MaskedArray(VECTORS, where)


KINDS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: VECTORS.astype(name) for name in ("f2", "f4", "f8", ">f4", ">f8", "longdouble")},
    "fortran": lambda: np.asfortranarray(VECTORS),
    "nothing masked": lambda: masked(VECTORS > 99),
    "lists": VECTORS.tolist,
    "arrays": lambda: list(VECTORS),
    "objects": lambda: VECTORS.astype(object),
    "generator": lambda: iter(VECTORS),
    "series of lists": lambda: pd.Series(VECTORS.tolist(), index=[7, 8, 9, 5]),
    "frame": lambda: pd.DataFrame(VECTORS),
    "nullable frame": lambda: pd.DataFrame(VECTORS).astype("Float64"),
    **{
        str(dtype): lambda dtype=dtype: torch.tensor(VECTORS).to(dtype)
        for dtype in (torch.bfloat16, torch.half, torch.float64, torch.float8_e4m3fn)
    },
    "tensors": lambda: [torch.tensor(row, requires_grad=True).bfloat16() for row in VECTORS],
    "sparse tensor": lambda: torch.tensor(VECTORS).bfloat16().to_sparse(),
    "sparse array": lambda: sparse.csr_array(VECTORS),
    "sparse rows": lambda: [sparse.csr_matrix(row) for row in VECTORS],
}


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_every_kind_are_the_same_array(kind: str) -> None:
    given = matrix(KINDS[kind]())
    assert given.dtype == np.float32 and given.dtype.isnative and np.array_equal(given, VECTORS)
    assert kind == "generator" or holds_vectors(KINDS[kind]())


def test_whole_numbers_are_vectors_and_an_array_is_not_copied() -> None:
    numbers = np.arange(6).reshape(2, 3)
    for dtype in ("i1", "u1", ">i4", "u8"):
        assert np.array_equal(matrix(numbers.astype(dtype)), numbers)
    frozen = np.broadcast_to(np.float32(2), (3, 2))
    assert matrix(frozen).base is not None and not matrix(frozen).flags.writeable
    assert matrix(np.float16(numbers), dtype=None).dtype == np.float16
    assert matrix(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "of type NoneType; expected numbers, (N, D)."),
        ("abc", "a str; expected numbers."),
        ({"pooled": VECTORS}, "a dict with the keys pooled; expected one of its arrays."),
        (VECTORS[0], "float64 (3,); expected numbers, (N, D)."),
        ([], "float64 (0,); expected numbers"),
        (VECTORS[None], "float64 (1, 4, 3); expected numbers, (N, D); pool it to one vector for each sentence."),
        (VECTORS[:, :0], "float64 (4, 0); expected numbers"),
        (torch.ones(2, 3, dtype=torch.complex64).conj(), "complex64 (2, 3)"),
        (pd.DataFrame({"text": ["a"], "x": [1.0]}), "object (1, 2)"),
        ([[1.0, 2.0], [3.0]], "row 2 has shape (1,), row 1 (2,); expected rows of one width."),
        (masked(VECTORS > 3), "has masked values; replace them, or leave their rows out."),
        (torch.ones(2, 3, device="meta", dtype=torch.bfloat16), "Tensor is not an array of numbers"),
        (pd.DataFrame(VECTORS).astype("Float64").mask(VECTORS > 3), "row 4 contains NaN or infinity."),
        (np.where(VECTORS > 3, 1e39, VECTORS), "row 4 is beyond float32, 1.2e-38 to 3.4e+38; scale the vectors."),
    ],
)
def test_other_objects_are_refused(given: object, message: str) -> None:
    with pytest.raises(DataError) as error:
        matrix(given, "ours")
    assert str(error.value).startswith("ours: ") and message in str(error.value)


def test_an_error_names_the_number_and_the_text_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bgt_core.vectors.arrays.BLOCK", 2)
    broken = np.where(np.arange(5)[:, None] == 3, np.nan, np.ones((5, 2)))
    with pytest.raises(DataError, match="ours: row 104 contains NaN or infinity, for 'd'"):
        arrays.check_finite(broken, "ours", "abcde", first=100)
    arrays.check_finite(np.array([[0.0, 0.0], [1e-300, 1.0]]), "ours")  # zeros and small numbers are allowed


def test_sentences_are_not_vectors() -> None:
    texts: list[object] = ["ab", ["ab"], ("ab",), np.array(["ab"]), pd.Series(["ab"]), [], [None], iter("ab"), {"ab"}]
    assert not any(map(holds_vectors, texts))


def test_objects_with_array_methods_and_iterators_of_rows_are_vectors() -> None:
    class Gives:
        def __init__(self) -> None:
            self.__array_interface__ = VECTORS.__array_interface__

    class Makes:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return VECTORS

    for given in (Gives(), Makes(), listed(iter(VECTORS))):
        assert holds_vectors(given) and np.array_equal(matrix(given), VECTORS)
    assert not any(map(holds_vectors, (None, 3, {"a": 1}, listed(iter("ab")), [{"a": 1}])))


def test_torch_is_not_imported() -> None:
    code = "import sys, bgt_core.vectors.arrays as c; c.matrix([[1.0]]); assert not {'torch'} & {*sys.modules}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


RNG = np.random.default_rng(0)
LEFT, RIGHT = RNG.standard_normal((2, 6, 40))
EXACT = (LEFT / np.linalg.norm(LEFT, axis=1)[:, None]) @ (RIGHT / np.linalg.norm(RIGHT, axis=1)[:, None]).T


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e-12, 1.0, 1e12, 1e30, 3e37])
def test_cosines_do_not_depend_on_the_size_of_the_numbers(scale: float) -> None:
    for left, right in ((scale, 1.0), (1.0, scale), (scale, scale)):
        sides = [np.float32(side * of) for side, of in ((LEFT, left), (RIGHT, right))]
        assert_close(cosine_similarity(*sides), EXACT, FLOAT32)
        assert_close(cosines(*sides), EXACT.diagonal(), FLOAT32)
    np.testing.assert_allclose(np.linalg.norm(unit(np.float32(LEFT * scale)), axis=1), 1, rtol=1e-6)


def test_each_row_has_a_scale_of_its_own_and_finer_types_keep_their_digits() -> None:
    scales = np.logspace(-300, 300, len(LEFT))[:, None]
    np.testing.assert_allclose(cosine_similarity(LEFT * scales, RIGHT), EXACT, rtol=1e-13)
    half = np.float16(100 * LEFT)  # the squares of these numbers overflow float16
    assert_close(cosine_similarity(half, RIGHT), EXACT, 2e-3)
    assert unit(half).dtype == np.float32


def test_vectors_that_cannot_be_compared_are_named() -> None:
    for function in (cosines, cosine_similarity):
        with pytest.raises(UsageError, match="left has vectors of 40 units, right of 7; expected those of one encoder"):
            function(LEFT, RIGHT[:, :7])
        with pytest.raises(DataError, match="right: of type NoneType; expected numbers"):
            function(LEFT, None)
        with pytest.raises(DataError, match="left: row 1 contains NaN"):
            function(LEFT * np.nan, RIGHT)


def test_answers_that_tie_share_a_hit() -> None:
    similarity = np.array([[0.9, 0.9 - 4e-7, 0.1], [0.5, 0.2, 0.5], [0.3, 0.3, 0.3 + 2e-6]])
    np.testing.assert_allclose(hits(similarity, np.arange(3)), [0.5, 0, 1])
    np.testing.assert_allclose(hits(similarity, np.array([1, 2, 2])), [0.5, 0.5, 1])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, answers = np.random.default_rng(0).integers(-1, 2, (2, 50, 3))  # small integers, so many ties
    whole, own = found(queries, answers), np.arange(50)[::-1]
    of_own = found(queries, answers, own)
    np.testing.assert_array_equal(whole, hits(cosine_similarity(queries, answers), np.arange(50)))
    assert set(whole) - {0.0, 1.0} and (of_own != whole).any()
    monkeypatch.setattr(arrays, "BLOCK", 7)
    np.testing.assert_array_equal(found(queries, answers), whole)
    np.testing.assert_array_equal(found(queries, answers, own), of_own)


@pytest.mark.parametrize("centre", [1.0, 0.0, -1.0, 1 / 3, 0.1234565, 0.9999995, 35.5])
@pytest.mark.parametrize("seed", range(5))
def test_values_that_differ_by_rounding_errors_are_equal(centre: float, seed: int) -> None:
    """`rounded` makes values equal that differ only by noise, even if a boundary of rounding lies between them."""
    noise = np.random.default_rng(seed).uniform(-2e-7, 2e-7, 40)
    given = arrays.rounded(np.concatenate([centre + noise, [centre + 1e-5, centre - 1e-5]]))
    assert len(set(given[:40])) == 1 and given[40] > given[0] > given[41]
    assert abs(given[0] - centre) <= 2 * arrays.ROUNDING and given[0] == given[0].round(6)


def test_a_tie_of_two_counts_half() -> None:
    assert above(np.array([0.5, 0.5, 0.5, 0.5000009]), np.array([0.4, 0.6, 0.5, 0.5])).tolist() == [1, 0, 0.5, 0.5]
