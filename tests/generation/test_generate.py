"""Compare candidates with a loop that embeds each hypothesis alone and ranks them by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import bgt_core
from bgt_core.errors import DataError
from bgt_core.generation.generate import candidates, from_vectors
from bgt_core.generation.options import Beam
from bgt_core.generation.search import n_best
from bgt_core.vectors.compare import cosines

SOURCES, STYLES = ["The old dog sleeps.", "Anna reads a book!"], ["Well, my brother is here.", "Is it late?"]
SEARCH = Beam(4, no_repeat_ngram=2)


@pytest.fixture(scope="module")
def model(saved: Path) -> bgt_core.Embedder:
    return bgt_core.load(saved)


@pytest.fixture(scope="module")
def latents(model: bgt_core.Embedder) -> dict:
    return {"semantic": model.embed(SOURCES, lang="en"), "language": model.embed(STYLES, lang="en", latent="language")}


@pytest.mark.parametrize(("second", "likelihood"), [(0.0, 0.0), (0.5, 0.3), (5.0, 0.0)])
def test_candidates_are_the_hypotheses_by_what_they_keep(
    model: bgt_core.Embedder, latents: dict, second: float, likelihood: float
) -> None:
    weights = {"second_weight": second, "likelihood_weight": likelihood}
    ranked = candidates(model, latents, lang="en", search=SEARCH, max_length=6, **weights)
    joined = torch.cat([torch.from_numpy(latents[name]) for name in ("language", "semantic")], dim=1)
    orders = []
    with torch.no_grad():
        searched = n_best(model.model.decoder("en"), joined, SEARCH, 4, 6)
    for row, hypotheses in enumerate(searched):
        scores = {}
        for hypothesis in reversed(hypotheses):
            (text,) = model.tokenizer.decode([hypothesis.tokens])
            kept = {
                name: cosines(model.embed([text], lang="en", latent=name)[0], latents[name][row]) for name in latents
            }
            scores[text] = kept["semantic"] + second * kept["language"] + likelihood * hypothesis.mean
        assert {each.text for each in ranked[row]} == set(scores)
        assert [each.score for each in ranked[row]] == pytest.approx(sorted(scores.values(), reverse=True), rel=1e-4)
        orders.append([each.text for each in ranked[row]] != list(reversed(scores)))
    assert any(orders)  # the order differs from that of the search
    as_searched = candidates(model, latents, lang="en", search=SEARCH, rerank=False, max_length=6)
    texts = [model.tokenizer.decode([each.tokens for each in hypotheses]) for hypotheses in searched]
    assert [[each.text for each in of_row] for of_row in as_searched] == [list(dict.fromkeys(each)) for each in texts]


def test_nothing_in_nothing_out(model: bgt_core.Embedder, latents: dict) -> None:
    assert candidates(model, {name: rows[:0] for name, rows in latents.items()}, lang="en") == []


def test_vectors_of_any_library_are_written_from(model: bgt_core.Embedder, latents: dict) -> None:
    settings = {"lang": "en", "search": Beam(1), "max_length": 5}
    expected = from_vectors(model, latents["semantic"], **settings)
    assert from_vectors(model, torch.tensor(latents["semantic"], requires_grad=True), **settings) == expected
    assert from_vectors(model, latents["semantic"].tolist(), **settings) == expected
    given = {name: torch.tensor(of).double() for name, of in latents.items()}
    assert candidates(model, given, **settings) == candidates(model, latents, **settings)
    for wrong in (latents["semantic"][0], ["abc"], None, {"semantic": latents["semantic"]}):
        with pytest.raises(DataError, match=r"^vectors: "):
            from_vectors(model, wrong, **settings)
