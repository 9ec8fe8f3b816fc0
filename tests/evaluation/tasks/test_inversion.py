"""Scores of the task inversion (generate a sentence from its vector) are sacrebleu's for the generated texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

import bgt_core
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.inversion import ALONE, BOTH, GREEDY, NEAREST, RERANKED, Inversion
from bgt_core.generation.generate import from_vectors
from bgt_core.grammar import Pair
from bgt_core.vectors.arrays import cosines

ROWS = 3


@pytest.fixture(scope="module")
def writer(save_writer: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An untrained writer, a model that generates text from another encoder's vectors; it can also correct drafts."""
    folder = save_writer(tmp_path_factory.mktemp("model") / "writer", columns=["en", "draft_en:en"])
    return bgt_core.open_encoder(folder, device="cpu", precision="fp32")


@pytest.fixture(scope="module")
def texts(grammar: list[Pair]) -> list[str]:
    return [pair.texts["en"] for pair in grammar[:ROWS]]


@pytest.fixture
def path(texts: list[str], tmp_path: Path) -> Path:
    (tmp_path / "held-out.txt").write_text("\n".join([*texts, ""]), "utf-8")
    return tmp_path / "held-out.txt"


def test_each_search_is_scored_as_sacrebleu_scores_its_text(writer: Any, texts: list[str], path: Path) -> None:
    task = Inversion(beam=3, corrections=2, train=path)
    result = evaluate(task, {"it": writer}, path, resamples=100)
    assert result.systems == [GREEDY, "beam 3", RERANKED, "2 corrections", NEAREST]
    vectors = writer.embed(texts, lang="en")
    plain: dict[str, Any] = {"lang": "en", "search": bgt_core.Beam(3)}
    written = {
        GREEDY: from_vectors(writer, vectors, lang="en", search=bgt_core.GREEDY),
        "beam 3": from_vectors(writer, vectors, **plain),
        RERANKED: from_vectors(writer, vectors, **plain, rerank=True),
        "2 corrections": from_vectors(writer, vectors, **plain, corrections=2),
        NEAREST: [[text] for text in texts],
    }
    for system, found in written.items():
        best = [first for first, *_ in found]
        expected = {
            "chrF": sacrebleu.metrics.CHRF(lowercase=True).corpus_score(best, [texts]).score,
            "BLEU": sacrebleu.metrics.BLEU(lowercase=True).corpus_score(best, [texts]).score,
            "exact %": 100 * np.mean([text.lower() == true.lower() for text, true in zip(best, texts, strict=True)]),
        }
        for measure, score in expected.items():
            assert result.value((ALONE, measure), system) == pytest.approx(score, rel=1e-9), (system, measure)
    assert np.isnan(result.value((BOTH, "chrF"), NEAREST))
    rows = result.rows()
    assert {row[rows.columns.index("model")] for row in rows.rows} == {"it"}
    kept = [cosines(writer.embed([first for first, *_ in written[name]], lang="en"), vectors) for name in written]
    assert np.diff(kept[1:4], axis=0).min() >= -1e-5 * np.abs(kept).max()


def test_both_latents_are_those_of_the_sentence(writer: Any, saved: Path, path: Path, texts: list[str]) -> None:
    """Text from both latents of a sentence equals text with this sentence as source and as style sentence.

    With two models, the name of each system begins with the name of its model.
    """
    ours = bgt_core.load(saved, "cpu", "fp32")
    result = evaluate(Inversion(beam=2), {"mine": ours, "it": writer}, path, resamples=100)
    assert result.systems == ["mine greedy", "mine beam 2", "mine reranked", "it greedy", "it beam 2", "it reranked"]
    for name, model in (("mine", ours), ("it", writer)):
        styled = [
            from_vectors(model, model.embed([text], lang="en"), lang="en", style=text, search=bgt_core.GREEDY)[0][0]
            for text in texts
        ]
        expected = sacrebleu.metrics.CHRF(lowercase=True).corpus_score(styled, [texts]).score
        assert result.value((BOTH, "chrF"), f"{name} greedy") == pytest.approx(expected, rel=1e-9)
