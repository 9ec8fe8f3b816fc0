"""Semantic textual similarity: known embedders, uneven datasets, bad files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bgt_core.contracts import BadInput
from bgt_core.evaluation.sts import StsScores, StsSet, read_sts, score_set, sts


class Angles:
    """A sentence is an angle in degrees; lengths differ."""

    langs, latents = ("en",), ("semantic",)

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        turned = np.radians([float(sentence) for sentence in sentences])
        return (np.stack([np.cos(turned), np.sin(turned)], 1) * (1 + turned[:, None])).astype(np.float32)


class Constant(Angles):
    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return np.full((len(sentences), 3), 0.1, dtype=np.float32)


def dataset(gold: list[float], year: str = "2012", name: str = "A") -> StsSet:
    """Pairs whose cosine is gold / 5."""
    return StsSet(year, name, np.array(gold), ["0"] * len(gold), [str(math.degrees(math.acos(g / 5))) for g in gold])


def test_a_perfect_embedder_scores_100_and_a_constant_one_0() -> None:
    data = dataset([0.0, 1.5, 2.0, 4.9, 5.0])
    assert score_set(Angles(), data, lang="en", latent="semantic") == pytest.approx(100, abs=1e-3)
    assert score_set(Constant(), data, lang="en", latent="semantic") == 0
    opposite = StsSet("2012", "A", 5 - data.gold, data.left, data.right)
    assert score_set(Angles(), opposite, lang="en", latent="semantic") == pytest.approx(-100, abs=1e-3)


def test_a_score_is_pearson_times_100() -> None:
    data = StsSet("2012", "A", np.array([0.0, 1.0, 2.0]), ["0"] * 3, ["90", "60", "0"])  # cosines 0, 0.5, 1 in 3 steps
    assert score_set(Angles(), data, lang="en", latent="semantic") == pytest.approx(100, abs=1e-3)
    data = StsSet("2012", "A", np.array([0.0, 2.0, 1.0]), ["0"] * 3, ["90", "60", "0"])
    assert score_set(Angles(), data, lang="en", latent="semantic") == pytest.approx(50, abs=1e-3)


def test_years_count_alike_whatever_their_datasets_sizes() -> None:
    scores = StsScores({("2012", "A"): 10.0, ("2012", "B"): 20.0, ("2012", "C"): 60.0, ("2013", "A"): 50.0})
    assert scores.years == {"2012": 30.0, "2013": 50.0}
    assert scores.average == 40.0


def test_a_large_dataset_weighs_no_more_than_a_small_one() -> None:
    large, small = dataset([0.0, 1.0, 2.0, 3.0] * 50, name="large"), dataset([5.0, 1.0], name="small")
    small = StsSet("2012", "small", 5 - small.gold, small.left, small.right)  # -100
    found = sts(Angles(), [large, small])
    assert found.datasets["2012", "large"] == pytest.approx(100, abs=1e-3)
    assert found.datasets["2012", "small"] == pytest.approx(-100, abs=1e-3)
    assert found.average == pytest.approx(0, abs=1e-3)


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    for year, name in (("2012", "b"), ("2012", "a"), ("2013", "x"), ("2014", "unread")):
        (tmp_path / year).mkdir(exist_ok=True)
        text = '4.5\tA "quoted" one.\tUn\u2028deux\tmore\n0\tleft\tright\n'
        (tmp_path / year / f"{name}.tsv").write_text(text, encoding="utf-8")
    sets = read_sts(tmp_path, ["2012", "2013"])
    assert [(item.year, item.name) for item in sets] == [("2012", "a"), ("2012", "b"), ("2013", "x")]
    assert sets[0].gold.tolist() == [4.5, 0]
    assert sets[0].left == ['A "quoted" one.', "left"]
    assert sets[0].right == ["Un\u2028deux", "right"]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"4\ta\tb\nfour\ta\tb\n", "bad.tsv:2"),
        (b"4\ta\tb\n3\ta\n", "bad.tsv:2"),
        (b"4\ta\tb\nnan\ta\tb\n", "bad.tsv:2"),
        (b"4\ta\tb\n3\tcaf\xe9\tb\n", "bad.tsv"),
        (b"4\ta\tb\n", "at least 2"),
        (b"", "at least 2"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, where: str) -> None:
    (tmp_path / "2012").mkdir()
    (tmp_path / "2012" / "bad.tsv").write_bytes(content)
    with pytest.raises(BadInput, match=where) as error:
        read_sts(tmp_path, ["2012"])
    assert error.value.exit_code == 4
    assert "bad.tsv" in str(error.value)


def test_a_missing_year_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"2015.*no STS files") as error:
        read_sts(tmp_path, ["2015"])
    assert error.value.exit_code == 3
