"""The report compares all methods that split an encoder's vectors, by the scores of the evaluation tasks."""

import numpy as np
import pytest

from bgt_core.encoders.external import ExternalEncoder
from bgt_core.evaluation.split_report import AS_THEY_ARE, PROBES, Remembered, report
from bgt_core.splitting import METHODS
from bgt_core.splitting.fit import fit
from bgt_core.splitting.gather import gather
from bgt_core.tables import Estimate

ROWS = 600
LANGS = ["en", "fr"]
MEANING = np.random.default_rng(0).standard_normal((ROWS, 3))
COLUMNS = [[f"{lang} {row}" for row in range(ROWS)] for lang in LANGS]
RETRIEVAL = "Retrieval of translations, en and fr"
embedded: list[str] = []


def encode(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed a line: three units depend on the number at its end, three are noise. French vectors are shifted by 5."""
    embedded.extend(sentences)
    own = np.stack([np.random.default_rng([*sentence.encode()]).standard_normal(6) for sentence in sentences])
    numbers = [sentence.split()[-1] for sentence in sentences]
    rows = [int(number) if number.isdigit() else -1 for number in numbers]
    return np.hstack([MEANING[rows] + 0.1 * own[:, 3:], 3 * own[:, :3]]) + (5 if lang == "fr" else 0)


@pytest.mark.slow
def test_every_method_is_measured_beside_the_whole_vectors() -> None:
    encoder = ExternalEncoder("ours", encode)
    gathered = gather(encoder, [(LANGS, COLUMNS)], keep=ROWS)
    splits = {method: fit(gathered, method) for method in METHODS}
    held_out = [[column[row] for row in gathered[0].held_out_rows] for column in COLUMNS]
    made = report(encoder, "ours", splits, held_out, LANGS, resamples=100)
    systems = [AS_THEY_ARE, *(f"{method}: {part}" for method in METHODS for part in ("shared", "private"))]
    probes, retrieval = made.results[PROBES], made.results[RETRIEVAL]
    assert retrieval.systems == probes.systems[:-1] == systems
    for method, split in splits.items():
        both_ways = [
            retrieval.value(("held-out lines", "cosine", way), f"{method}: shared") for way in ("en to fr", "fr to en")
        ]
        assert np.mean(both_ways) == pytest.approx(100 * split.about["scores"]["shared"]["found"])
    assert probes.value(("language",), "bgt: shared") < 65 < 99 < probes.value(("language",), "bgt: private")
    for text in (*systems, *made.tables, "bgt-probe --model ours"):
        assert text in made.page
    marked = {  # systems marked "best" or "tied"
        title: {
            system
            for cells in result.scores.values()
            for system, cell in zip(result.systems, cells, strict=True)
            if isinstance(cell, Estimate) and cell.mark
        }
        for title, result in made.results.items()
    }
    assert marked[RETRIEVAL] and not marked[PROBES]
    assert not any("private" in system for systems in marked.values() for system in systems)


def test_a_sentence_is_embedded_once() -> None:
    remembered = Remembered(ExternalEncoder("ours", encode))
    embedded.clear()
    first = remembered.embed(["a 1", "b 2", "a 1"], lang="en")
    np.testing.assert_array_equal(remembered.embed(["b 2", "a 1"], lang="en"), first[[1, 0]])
    assert embedded == ["a 1", "b 2"]
    assert not np.array_equal(remembered.embed(["a 1"], lang="fr")[0], first[0])  # another language is embedded anew
