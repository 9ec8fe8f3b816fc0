"""`bgt-probe compare-languages`: the paper's claims on language distance, judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from bgt_core.errors import BgtError
from bgt_core.evaluation.bootstrap import FAILS, HOLDS, NOT_RUN, NOT_SEPARABLE
from probes.measures.distance import FSI_WEEKS, URIEL_SYNTAX
from probes.result import Difference, ProbeResult
from probes.results.languages import (
    CLAIMS,
    LanguageGap,
    by_task,
    judge,
    other_language,
    paper_gaps,
    probe_gaps,
    sts_gap,
)
from probes.results.store import read_document

STEEP = dict(zip(sorted(FSI_WEEKS, key=FSI_WEEKS.__getitem__), range(len(FSI_WEEKS)), strict=True))


@pytest.fixture
def results(tmp_path: Path) -> Callable[..., Path]:
    """A file of `bgt-probe --json`: the length of English sentences, a model for each language and its gap."""

    def write(sentences: str = "en", **gaps: float) -> Path:
        def entry(lang: str, points: float) -> dict:
            gap = Difference("length", sentences, "semantic", "language", points, points - 1.96, points + 1.96, 0.01)
            result = ProbeResult("length", sentences, 5, 0, 0.95, [], gap, 0)
            trail = {"fingerprint": lang, "langs": ["en", lang], "probe": "linear"}
            return {"model": f"en-{lang}", **result.as_dict(), "trail": trail}

        path = tmp_path / "results.json"
        document = {"schema": "bgt-probe/5", "results": [entry(lang, points) for lang, points in gaps.items()]}
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.mark.parametrize(
    ("lang", "langs", "other"),
    [
        ("en", ["en", "fr"], "fr"),
        ("fr", ["en", "fr"], "fr"),
        ("en", ["en", "fr", "de"], "en"),
        ("de", ["fr", "de"], "de"),
    ],
)
def test_a_result_is_about_the_language_beside_english(lang: str, langs: list[str], other: str) -> None:
    assert other_language(lang, langs) == other


def test_gaps_and_their_errors_are_those_of_the_file(results: Callable) -> None:
    (gap,) = probe_gaps(read_document(results(fr=-7.0)))
    assert (gap.other, gap.task, gap.points) == ("fr", "length", -7.0)
    assert gap.error == pytest.approx(1.0, rel=1e-3)


def test_a_pair_with_english_is_judged_on_english_sentences(results: Callable) -> None:
    assert probe_gaps(read_document(results("fr", fr=-7.0))) == []


def test_the_papers_own_table() -> None:
    """Word content and STS by hand; rho of a claim is scipy's of the mean over its tasks."""
    gaps = by_task(paper_gaps())
    assert gaps["word-content"]["fr"].points == pytest.approx(77.4 - 65.4)
    assert gaps["sts"]["ja"].points == pytest.approx(71.9 - 60.6)
    rows = judge([], {"syntax": URIEL_SYNTAX})
    assert {row.verdict for row in rows} == {NOT_RUN}
    (row,) = (row for row in rows if row.claim is CLAIMS[0])
    langs = row.paper.langs
    means = [sum(gaps[task][lang].points for task in row.claim.tasks) / 3 for lang in langs]
    assert row.paper.spearman == pytest.approx(spearmanr([URIEL_SYNTAX[lang] for lang in langs], means).statistic)


@pytest.mark.parametrize(("slope", "expected"), [(-1, HOLDS), (1, FAILS), (0, NOT_SEPARABLE)])
def test_verdicts(slope: int, expected: str) -> None:
    """Thirty-odd languages whose gap falls, rises, or goes up and down with distance."""
    points = {lang: slope * step or (step % 2) for lang, step in STEEP.items()}
    rows = judge([LanguageGap(lang, "sts", gap) for lang, gap in points.items()], {"weeks": FSI_WEEKS})
    assert [row.verdict for row in rows if row.claim.tasks == ("sts",)] == [expected]
    assert {row.verdict for row in rows if row.claim.tasks != ("sts",)} == {NOT_RUN}


def test_five_languages_can_hardly_show_anything() -> None:
    """Two orders of 120 are as steep as a perfect one: with four tests no p is below 1/15."""
    gaps = [LanguageGap(lang, "sts", -step) for step, lang in enumerate(("es", "fr", "ar", "tr", "ja"))]
    (row,) = (row for row in judge(gaps, {"syntax": URIEL_SYNTAX}) if row.claim.tasks == ("sts",))
    assert row.ours.spearman == pytest.approx(-1)
    assert row.ours.spearman_p == pytest.approx(2 / 120)


def test_the_command(probe: Callable, results: Callable, tmp_path: Path) -> None:
    pairs = tmp_path / "en-fr.tsv"
    nouns = ["dog chien", "cat chat", "boy garçon", "girl fille", "horse cheval", "house maison", "tree arbre"]
    words = [noun.split() for noun in nouns]
    rows = [f"the {a} sees the {b}\tle {x} voit le {y}\n" for a, x in words for b, y in words]
    pairs.write_text("".join(rows * 200))
    sts = tmp_path / "sts.json"
    row = {
        "dataset": "average",
        "first": "a language",
        "second": "a semantic",
        "value": -9.0,
        "ci_low": -11,
        "ci_high": -7,
    }
    sts.write_text(json.dumps({"level": 0.95, "differences": [{**row, "dataset": "all"}, row]}))
    file = results(fr=-4.0, es=-3.0, tr=-6.0, ja=-9.0)
    command = ["compare-languages", str(file), "--sts", f"fr={sts}"]
    done = probe(*command, "--json")
    document = json.loads(done.out)
    assert {"other": "fr", "task": "sts", "points": 9.0, "error": pytest.approx(1.02, abs=0.01)} in document["gaps"]
    claims = {(row["claim"], row["distance"]): row for row in document["claims"]}
    assert {row["ours"] for row in claims.values()} == {NOT_RUN}  # a claim is of three tasks, and one was measured
    shown = probe(*command).out
    assert "fr\t30\t0.397" in shown and "word content goes" not in shown  # that needs --pairs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sts", "FILE"], "expected fr=FILE"),
        (["--sts", "fr=absent.json"], "absent.json: can't be read (No such file"),
        (["--pairs", "fr-es=x.tsv"], "expected English and one other"),
        (["absent.json"], "no such file or folder"),
    ],
)
def test_bad_input_is_named(probe: Callable, arguments: list[str], message: str) -> None:
    done = probe("compare-languages", *arguments)
    assert done.code in (2, 3) and message in done.err


def test_an_sts_file_is_of_an_average_or_one_set(tmp_path: Path) -> None:
    path = tmp_path / "sts.json"
    row = {"dataset": "dev-fr", "first": "a semantic", "second": "a language", "value": 11, "ci_low": 8, "ci_high": 14}

    def gap(*rows: dict) -> float:
        path.write_text(json.dumps({"level": 0.95, "differences": rows}))
        return sts_gap("fr", path).points

    assert gap(row) == 11  # of a model of many languages, in one of them
    assert gap(row, {**row, "dataset": "average", "value": 12}) == 12
    for rows in ((), (row, {**row, "dataset": "test-fr"}), ({**row, "second": "other semantic"},)):
        with pytest.raises(BgtError, match="one model with both latents"):
            gap(*rows)
