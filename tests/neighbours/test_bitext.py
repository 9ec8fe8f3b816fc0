"""What `mine` takes: sentences, and vectors of any library at any scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import bgt_core
from bgt_core.errors import BgtError

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
        ({"left": ["a"], "right": 3, **WORDS}, "right is of type int; expected a string or a list of strings"),
        ({"left": LEFT[0]}, r"left: float32 \(8,\); expected numbers, \(N, D\)"),
        ({"right": RIGHT[:0]}, "right: no vectors; expected at least one"),
        ({"left": LEFT * np.nan}, "left: row 1 contains NaN or infinity"),
        ({"right": np.where(np.arange(40)[:, None] == 8, np.inf, RIGHT)}, "right: row 9 contains NaN or infinity"),
        ({"left": LEFT.astype(float) * 1e39}, "left: row 1 is beyond float32"),
        ({"left": LEFT[:, :3]}, "Vectors of 3 and 8 units can't be compared"),
        ({"left": ["a"], "right": ["a"], **WORDS, "langs": "en"}, "langs en: expected 2, as in en,fr"),
        ({"k": 2.5}, "k 2.5 must be at least 1, a whole number"),
        ({"k": True}, "k True must be"),
        ({"margin": None}, "margin 'None': choose from ratio"),
        ({"retrieval": ["max"]}, "retrieval '..max..': choose from max"),
        ({"index": None}, "index 'None': choose from exact"),
        ({"recall": None}, "recall None: expected a share"),
        ({"threshold": None}, "threshold None: expected a score, a number"),
    ],
)
def test_what_cannot_be_mined_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BgtError, match=f"^{message}"):
        bgt_core.mine(**{"left": LEFT, "right": RIGHT, **settings})
