"""Similarities of every pair, written and read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bgt_core.errors import BgtError
from bgt_core.evaluation.sts.parquet import read_scores, write_scores
from bgt_core.evaluation.sts.score import StsScores, StsSet

SIZES = {("2012", "A"): 200, ("2012", "B"): 100, ("2013", "A"): 150, ("sts17", "en-ar"): 80}


def systems(*noises: float, seed: int = 0) -> dict[str, StsScores]:
    """Systems that see gold through noise of these deviations, "s0" and on; they share half of its variance."""
    rng = np.random.default_rng(seed)
    sets, shared = [], []
    for (year, name), pairs in SIZES.items():
        text = [[f"{side} {number}" for number in range(pairs)] for side in ("left", "right")]
        sets.append(StsSet(year, name, rng.integers(0, 26, pairs) / 5, *text, "en", name[-2:] if "-" in name else "en"))
        shared.append(rng.normal(size=pairs))
    named = {}
    for number, noise in enumerate(noises):
        errors = [(one + rng.normal(size=len(one))) * noise / np.sqrt(2) for one in shared]
        named[f"s{number}"] = StsScores(sets, [data.gold / 5 + e for data, e in zip(sets, errors, strict=True)])
    return named


def test_kept_scores_come_back_as_they_were(tmp_path: Path) -> None:
    given = systems(0.3, 0.4)
    write_scores(tmp_path / "kept.parquet", given)
    restored = read_scores(tmp_path / "kept.parquet")
    assert list(restored) == list(given)
    for name, scores in restored.items():
        for data, known in zip(scores.sets, given[name].sets, strict=True):
            assert (str(data), data.left_lang, data.right_lang) == (str(known), known.left_lang, known.right_lang)
        for ours, theirs in zip(scores.cosines, given[name].cosines, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.parquet"]


def test_files_that_hold_no_scores_are_named(tmp_path: Path) -> None:
    kept = tmp_path / "kept.parquet"
    with pytest.raises(BgtError, match=r"kept\.parquet: can't be read") as error:
        read_scores(kept)
    assert error.value.exit_code == 3
    kept.write_bytes(b"text, not Parquet")
    with pytest.raises(BgtError, match=r"kept\.parquet: not a file that bgt evaluate sts --out writes"):
        read_scores(kept)
    parquet.write_table(pa.table({"system": ["a"]}), kept)
    with pytest.raises(BgtError, match=r"kept\.parquet: not a file that bgt evaluate sts --out writes"):
        read_scores(kept)
    with pytest.raises(BgtError, match=r"can't be written"):
        write_scores(tmp_path, systems(0.3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.slice(1), "pairs are missing or repeated"),
        (lambda rows: rows.set_column(7, "cosine", pa.array([np.nan] * rows.num_rows)), "a cosine is NaN"),
        (lambda rows: rows.slice(0, 0), "it holds no scores"),
    ],
)
def test_damaged_scores_are_named(change: Callable, message: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.parquet"
    write_scores(kept, systems(0.3))
    parquet.write_table(change(parquet.read_table(kept)), kept)
    with pytest.raises(BgtError, match=message):
        read_scores(kept)
