"""The report of a split: it has every method, and its numbers are those that the tasks measure."""

from __future__ import annotations

import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.evaluation.split_report import AS_THEY_ARE, Remembered, report
from bgt_core.splitting import METHODS
from bgt_core.splitting.fit import fit
from bgt_core.splitting.gather import gather
from bgt_core.tables import Estimate

ROWS = 600
LANGS = ["en", "fr"]
MEANING = np.random.default_rng(0).standard_normal((ROWS, 3))
COLUMNS = [[f"{lang} {row}" for row in range(ROWS)] for lang in LANGS]
embedded: list[str] = []


def encode(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Three units of meaning, three of noise of its own, and a mean of the language; other sentences are noise."""
    embedded.extend(sentences)
    own = np.stack([np.random.default_rng([*sentence.encode()]).standard_normal(6) for sentence in sentences])
    numbers = [sentence.split()[-1] for sentence in sentences]
    rows = [int(number) if number.isdigit() else -1 for number in numbers]
    return np.hstack([MEANING[rows] + 0.1 * own[:, 3:], 3 * own[:, :3]]) + (5 if lang == "fr" else 0)


@pytest.mark.slow
def test_every_method_is_measured_beside_the_vectors_as_they_are() -> None:
    encoder = ExternalEncoder("ours", encode)
    gathered = gather(encoder, [(LANGS, COLUMNS)], keep=ROWS)
    splits = {method: fit(gathered, method) for method in METHODS}
    held_out = [[column[row] for row in gathered[0].held_out_rows] for column in COLUMNS]
    made = report(encoder, "ours", splits, held_out, LANGS, resamples=100)
    systems = [AS_THEY_ARE, *(f"{method}: {part}" for method in METHODS for part in ("shared", "private"))]
    surface = made.results["What a linear probe tells"]
    retrieval = made.results["The line of the same meaning found, en and fr"]
    assert retrieval.systems == systems
    for method, split in splits.items():
        both_ways = [
            retrieval.value(("held-out lines", "cosine", way), f"{method}: shared") for way in ("en to fr", "fr to en")
        ]
        assert np.mean(both_ways) == pytest.approx(100 * split.about["scores"]["shared"]["found"])
    assert surface.value(("language",), "bgt: shared") < 65 < 99 < surface.value(("language",), "bgt: private")
    assert surface.systems[:-1] == systems
    for text in (*systems, *made.tables, "bgt-probe --model ours"):
        assert text in made.page
    marked = {name: set() for name in made.results}  # the systems that are marked as best or tied
    for name, result in made.results.items():
        for cells in result.scores.values():
            of_systems = zip(result.systems, cells, strict=True)
            marked[name] |= {system for system, cell in of_systems if isinstance(cell, Estimate) and cell.mark}
    assert marked["The line of the same meaning found, en and fr"]
    assert not any("private" in system for systems in marked.values() for system in systems)
    assert not any(marked[name] for name in marked if "probe tells" in name)


def test_a_sentence_is_embedded_once() -> None:
    remembered = Remembered(ExternalEncoder("ours", encode))
    embedded.clear()
    first = remembered.embed(["a 1", "b 2", "a 1"], lang="en")
    np.testing.assert_array_equal(remembered.embed(["b 2", "a 1"], lang="en"), first[[1, 0]])
    assert embedded == ["a 1", "b 2"]
    assert not np.array_equal(remembered.embed(["a 1"], lang="fr")[0], first[0])  # another language, another vector
