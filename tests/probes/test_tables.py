"""Results with known accuracies are compared, and formatted as tables."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from bgt_core.errors import BgtError
from probes import ProbeConfig, measure_cell
from probes.languages import separation
from probes.measures.measure import Measured, Study
from probes.probe import result_of
from probes.results.store import Cell, ProbeScore
from probes.tables import corrected, gap, wide_table
from probes.task import Items

N = 10_000


def cell(task: str, lang: str, semantic: float, language: float, majority: float = 0.5, name: str = "m") -> Cell:
    """Make a result in which the latents have these accuracies and independent errors. True labels alternate."""
    rng, truth = np.random.default_rng(len(task)), np.arange(N) % 2
    rows, measured = [], {}
    for latent, share in (("semantic", semantic), ("language", language), ("majority", majority)):
        right = np.zeros((1, 1, N), dtype=bool)
        right[..., rng.permutation(N)[: round(share * N)]] = True
        bits = np.ones(right.shape, np.float32)
        measured[latent] = Measured(np.where(right, truth, 1 - truth), bits, bits, right, 0.5, 0)
        rows.append(ProbeScore(task, lang, latent, 10, N, 2, share, share - 0.02, share + 0.02, 0))
    items = Items([f"s{place}" for place in range(N)], ["ab"[label] for label in truth], list(range(N)))
    study = Study(task, lang, items, ["a", "b"], truth, [(truth, truth, np.arange(N))], 0)
    trail = {"probe": "linear", "latents": ["semantic", "language"], "langs": ["en", "fr"], "fingerprint": "abc"}
    trail |= {"data": "D", "items_sha256": "0", "version": "1", "measured": "2026-01-01"}
    kept = Cell(name, result_of(study, ProbeConfig(), rows, measured, difference=None), trail)
    against = [gap(kept, latent, kept, "majority") for latent in ("semantic", "language")]
    result = replace(kept.result, over_majority=against, difference=gap(kept, "semantic", kept, "language"))
    return replace(kept, result=result)


CELLS = [
    cell("subj-num", "en", 0.8, 0.7),  # the semantic latent is better, as in the BGT paper
    cell("length", "en", 0.8, 0.7),  # the semantic latent is better, unlike in the paper
    cell("punct-num", "en", 0.70, 0.705),  # the difference is not significant
    cell("tense", "en", 0.6, 0.9),  # this task is not in the paper
    cell("subj-num", "fr", 0.6, 0.9),  # the paper measures this task only on English
    cell("gender", "fr", 0.52, 0.60),  # the paper measures this task on French, too
]


def test_a_difference_from_stored_predictions_is_the_measured_difference(encoder: Callable) -> None:
    config = ProbeConfig(max_items=2_000, control=False, baselines=False)
    measured = measure_cell(encoder(), "punct-num", lang="fr", config=config)
    fresh = measured.result.difference
    kept = gap(measured, "semantic", measured, "language")
    for name in ("points", "ci_low", "ci_high", "p"):  # the stored and the new difference use the same resamples
        assert getattr(kept, name) == pytest.approx(getattr(fresh, name))


def test_a_difference_of_two_encoders_is_paired_on_items() -> None:
    left, right = cell("gender", "fr", 0.6, 0.5), cell("gender", "fr", 0.59, 0.5, name="other")
    difference = gap(left, "semantic", right, "semantic")  # if it were unpaired, `ci_low` would be -0.4
    assert difference.points == pytest.approx(1)
    assert difference.ci_low == pytest.approx(1 - 1.96 * 100 * np.sqrt(0.01 * 0.99 / N), abs=0.02)
    assert difference.p == pytest.approx(2 * norm.sf(np.sqrt(100 / 0.99)), rel=1)  # about 1e-23, so rel=1 is enough
    assert (difference.first, difference.second) == ("m/semantic", "other/semantic")
    fewer = replace(right, result=replace(right.result, predictions=right.predictions.slice(0, 5_000)))
    with pytest.raises(BgtError, match="gender fr: 'm/semantic' and 'other/semantic' have different items"):
        gap(left, "semantic", fewer, "semantic")


def test_holm_is_over_the_whole_table_and_notes_use_its_p() -> None:
    cells = [cell("length", "fr", 0.507, 0.526), cell("tense", "fr", 0.4, 0.9)]
    stale = [replace(row, note="not separable from majority; did not converge") for row in cells[0].result.rows]
    cells[0] = replace(cells[0], result=replace(cells[0].result, rows=stale))
    after = corrected(cells)
    ps = [each.result.difference.p for each in cells]
    adjusted = [each.result.difference.adjusted_p for each in after]
    assert adjusted == pytest.approx([max(ps), 2 * min(ps)] if ps[0] == max(ps) else [2 * min(ps), max(ps)])
    note = after[0].row("semantic").note
    assert note.startswith("did not converge; not separable from majority 50.0 after Holm (p=0.")
    assert after[0].row("language").note == "did not converge"
    assert after[1].row("semantic").note.startswith("below majority 50.0 after Holm")
    assert after[1].row("majority").note == ""


@pytest.mark.parametrize("turned", [False, True])
def test_signs_are_compared_with_the_papers(turned: bool) -> None:
    """The order in which the two latents were measured does not change the sign."""
    gaps = [gap(each, "language", each, "semantic") for each in CELLS]
    other = [replace(each, result=replace(each.result, difference=one)) for each, one in zip(CELLS, gaps, strict=True)]
    table, counted = separation(other if turned else CELLS)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["holds more"] for row in rows] == [
        "semantic", "semantic", "neither", "language", "language", "language"]  # fmt: skip
    assert [row["sign"] for row in rows] == [
        "as the paper", "not as the paper", "undecided", "no such cell", "no such cell", "as the paper"]  # fmt: skip
    assert "the paper has too: 2 with its sign, 1 with the other, 1 where the latents can't be told" in counted
    first = rows[0]["difference"]
    assert first.value == pytest.approx(10)
    assert first.low == pytest.approx(10 - 1.96 * 100 * np.sqrt((0.8 * 0.2 + 0.7 * 0.3) / N), abs=0.4)
    assert (rows[0]["paper semantic"], rows[0]["paper language"]) == (84.6, 75.2)
    with pytest.raises(BgtError, match="probe the semantic and the language latent"):
        separation([replace(CELLS[0], result=replace(CELLS[0].result, difference=None))])


def test_the_wide_table_marks_the_best_and_tied_latents() -> None:
    table = wide_table(CELLS)
    marks = [[value.mark for value in row[2:4]] for row in table.rows]
    assert marks[:4] == [["best", ""], ["best", ""], ["tied", "tied"], ["", "best"]]
    assert table.rows[0][4:] == [50.0, "majority", 50.0]
