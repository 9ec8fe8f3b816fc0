"""`reproduce backtranslation`: what filters select, what is chosen by the dev set, and what is stored and drawn."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from analysis.reproduce import backtranslation, comparisons, pages
from analysis.reproduce.comparisons import EVERY
from analysis.reproduce.experiments import SETS, Comparison, ExperimentSpec, Selection
from analysis.reproduce.paraphrases import Paraphrases, read_paraphrases
from analysis.reproduce.results import choices
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.scores import overlap
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.bootstrap import BootstrappedScore
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.grammar import pairs

ROOT = Path(__file__).resolve().parents[3]
REFERENCES, BEST = 800, 3


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables of back-translations, one that people wrote, STS, STS Benchmark's dev set and SICK.

    A candidate repeats the words of its reference but for its rank's number of them, in another order; the larger its
    rank, the more it costs.
    """
    folder = tmp_path_factory.mktemp("paraphrases")
    rng = np.random.default_rng(0)
    texts = list(dict.fromkeys(pair.texts["en"] for pair in pairs(4 * REFERENCES, seed=5)))

    def translation(reference: str, rank: int) -> str:
        words = reference.split()
        return " ".join([*(f"word{rng.integers(30)}" for _ in range(rank)), *words[rank:][::-1], "again"])

    def table(name: str, references: list[str]) -> None:
        lines = [
            f"{reference}\t{translation(reference, rank)}\t{2 * rank + rng.random():.3f}\t{row}\n"
            for row, reference in enumerate(references)
            for rank in range(BEST)
        ]
        (folder / "backtranslated").mkdir(exist_ok=True)
        (folder / "backtranslated" / f"{name}.tsv").write_text("".join(lines), "utf-8")

    assert len(texts) > 2.5 * REFERENCES
    table("de-small", texts[:REFERENCES])
    table("fr-large", texts[REFERENCES : 2 * REFERENCES + 100])
    (folder / "paraphrase").mkdir()
    people = [f"{text}\t{translation(text, 1)}\n" for text in texts[-REFERENCES:]]
    (folder / "paraphrase/en.people.tsv").write_text("".join(people), "utf-8")
    for name in ("sts", "stsb"):
        shutil.copytree(data / name, folder / name)
    (folder / "sick").mkdir()
    shutil.copy(data / "sts/2012/A.tsv", folder / "sick/train.tsv")
    return folder


@pytest.fixture
def paraphrases(folder: Path) -> Paraphrases:
    return read_paraphrases(folder, 100, {"data.vocab_size": 300, "data.valid_pairs": 20, "train.epochs": 1.0})


def selected(paraphrases: Paraphrases, selection: Selection, out: Path) -> list[tuple[str, ...]]:
    source = paraphrases.select(selection).pairs(out, lambda line: None, "cpu")
    return list(read_pairs(source.path, source.columns, Skipped()))


def test_the_largest_table_is_the_first_and_the_smallest_says_how_many_pairs(folder: Path) -> None:
    paraphrases = read_paraphrases(folder, 10_000, {})
    assert list(paraphrases.tables) == ["fr-large", "de-small", "people"]
    assert paraphrases.pairs == REFERENCES // 5
    assert read_paraphrases(folder, 100, {}).pairs == 100
    assert [data.year for data in paraphrases.sets] == ["2012", "2013", "stsb", "sick"]


def test_a_folder_without_back_translations_says_so(data: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no back-translations; expected backtranslated/fr-news"):
        read_paraphrases(data, 100, {})
    with pytest.raises(NotFound, match="no such folder"):
        read_paraphrases(tmp_path / "nowhere", 100, {})


def test_a_selection_has_the_first_good_candidate_of_as_many_references(
    paraphrases: Paraphrases, folder: Path, tmp_path: Path
) -> None:
    table = list(read_pairs(folder / "backtranslated/fr-large.tsv", ("a", "b", "cost", "row"), Skipped()))
    candidates: dict[str, list[tuple[str, ...]]] = {}
    for row in table:
        candidates.setdefault(row[0], []).append(row)
    random = selected(paraphrases, Selection("fr-large"), tmp_path)
    assert len(random) == len({reference for reference, _ in random}) == 100
    assert all(pair[1] == candidates[pair[0]][0][1] for pair in random)
    diverse = selected(paraphrases, Selection("fr-large", "overlap-1=..0.6"), tmp_path)
    assert len(diverse) == 100
    for reference, translation in diverse:
        good = [row[1] for row in candidates[reference] if overlap(reference, row[1], 1) <= 0.6]
        assert translation == good[0]
    twice = selected(paraphrases, Selection("fr-large", times=2), tmp_path)
    assert len(twice) == 200
    assert {*random} < {*twice}  # the same sample, and more
    aside = {
        row[0] for row in read_pairs(next(tmp_path.glob("fr-large-*-set-aside.*")), ("a", "b", "_", "_"), Skipped())
    }
    mined = {row[0] for row in read_pairs(next(tmp_path.glob("fr-large-*-mined.*")), ("a", "b", "_", "_"), Skipped())}
    assert aside | mined == {*candidates} and not aside & mined
    assert 0.25 < len(aside) / len(candidates) < 0.42
    assert not aside & {reference for reference, _ in [*twice, *diverse]}


def test_a_quantile_is_that_of_the_first_candidates(paraphrases: Paraphrases, tmp_path: Path) -> None:
    cheap = paraphrases.select(Selection("fr-large", "cost=..33%"))
    limits = cheap.range(tmp_path, {})
    rows = read_pairs(cheap.part(tmp_path, "mined"), ("a", "b", "cost", "_"), Skipped())
    firsts = [float(cost) for _, _, cost in rows if float(cost) <= 1]  # those of rank 0
    assert limits.most == pytest.approx(np.percentile(firsts, 33), rel=5e-4)  # of costs of four digits
    assert limits.least is None
    costs = [
        float(row[2]) for row in read_pairs(cheap.pairs(tmp_path, print, "cpu").path, ("a", "b", "cost"), Skipped())
    ]
    assert len(costs) == 100 and max(costs) <= limits.most


def test_a_filter_that_keeps_too_few_says_how_many(paraphrases: Paraphrases, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"fr-large words=30\.\.: .*0 pairs|no pair is left"):
        selected(paraphrases, Selection("fr-large", "words=30.."), tmp_path)
    few = replace(paraphrases, pairs=400).select(Selection("fr-large", "overlap-1=..0.6"))
    with pytest.raises(DataError, match=r"pairs; every filter needs 400"):
        few.pairs(tmp_path, print, "cpu")
    assert not few.path(tmp_path).exists()


def test_data_settings_and_the_classifier_decide_the_hash(paraphrases: Paraphrases) -> None:
    plain, by_class = Selection("fr-large", "words=..10"), Selection("fr-large", "classifier=33%..")
    other = replace(paraphrases, classifier={"train.epochs": 2.0})
    assert paraphrases.select(plain).sha256 == other.select(plain).sha256
    assert paraphrases.select(by_class).sha256 != other.select(by_class).sha256
    hashes = {paraphrases.select(Selection(table, keep, times)).sha256
              for table in paraphrases.tables for keep in ("", "words=..10") for times in (1, 2)}  # fmt: skip
    assert len(hashes) == 12


def test_the_plan_is_small_and_comes_back_from_its_results() -> None:
    whole = backtranslation.comparison(["fr-news", "de-ep", "quora", "ppdb"])
    assert sum(len(system.seeds) for system in whole.systems if not system.best_of) <= 60
    assert whole.published["AVG de-ep"] == {SETS: 65.6}  # Table 4
    assert whole.published["GRAN fr-news, BLEU"] == {SETS: 67.1}  # Table 12
    cells = [{"system": system.name} for system in whole.systems]
    assert pages.comparison_of(backtranslation.NAME, {"cells": cells}) == whole
    assert pages.comparison_of("main", {}) is comparisons.MAIN


def test_the_parts_are_the_papers_tables() -> None:
    parts = backtranslation.tables_of_paper(backtranslation.comparison(["fr-news", "quora"]))
    assert [system.name for system in parts["sources"].systems] == [
        "GRAN fr-news", "AVG fr-news", "GRAN quora", "AVG quora",
    ]  # fmt: skip
    assert [system.name for system in parts["quality"].systems if system.name.startswith("AVG")] == [
        "AVG fr-news", "AVG fr-news, cost", "AVG fr-news, language model", "AVG fr-news, classifier",
    ]  # fmt: skip


def test_the_best_on_the_dev_set_is_chosen_whatever_the_test_sets_say() -> None:
    def score(dev: float, test: float) -> dict[str, BootstrappedScore]:
        return {
            "STSB dev": BootstrappedScore(np.array([dev]), np.full((1, 2), dev)),
            SETS: BootstrappedScore(np.array([test]), np.full((1, 2), test)),
        }

    one, two, three = (ExperimentSpec(name, "avg") for name in ("one", "two", "three"))
    best = ExperimentSpec("best", "avg", best_of=["one", "two", "three"])
    planned = Comparison("", [one, two, three, best])
    assert choices(planned, {"one": score(50, 70), "two": score(60, 40)}) == {"best": "two"}
    assert choices(planned, {"one": {SETS: score(50, 70)[SETS]}}) == {}


@pytest.fixture
def small_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some filters with one range or two, tiny models."""
    arguments: dict[str, dict[str, object]] = {
        EVERY: {"data.vocab_size": 200, "data.valid_pairs": 10, "model.d_model": 8, "train.epochs": 1.0},
        "reference-classifier": {
            "data.vocab_size": 200, "data.valid_pairs": 20, "model.d_model": 8, "train.epochs": 2.0,
        },
    }  # fmt: skip
    monkeypatch.setitem(backtranslation.SCALES, "toy", arguments)
    monkeypatch.setitem(backtranslation.PAIRS, "toy", 60)
    lengths = {words: backtranslation.LENGTHS[words] for words in ("0-10 words", "30-100 words")}
    monkeypatch.setattr(backtranslation, "LENGTHS", lengths)
    quality = {
        words: (score, ranges if words == "cost" else ranges[:1], scores)
        for words, (score, ranges, scores) in backtranslation.QUALITY.items()
    }
    monkeypatch.setattr(backtranslation, "QUALITY", quality)
    monkeypatch.setattr(backtranslation, "DIVERSITY", {"BLEU": backtranslation.DIVERSITY["BLEU"]})


@pytest.mark.slow
@pytest.mark.usefixtures("small_scale")
def test_all_of_it_runs_and_is_drawn(folder: Path, tmp_path: Path, whole_run: Callable[..., Any]) -> None:
    out = tmp_path / "out"
    done = whole_run("backtranslation", folder, out, code=5)  # the grammar has no sentence of 30 words
    assert "2 of" in done.err.splitlines()[-1]

    by_system = {row["system"]: row for row in done.records["cells"]}
    assert {row["state"] for name, row in by_system.items() if "30-100" not in name} == {"finished"}
    assert {row["state"] for name, row in by_system.items() if "30-100" in name} == {"failed"}
    mean = done.means
    for name in ("GRAN", "AVG"):
        ranges = [f"{name} fr-large, cost ..{share}" for share in ("33%", "67%")]
        best = max(ranges, key=lambda system: mean[system, "STSB dev"])
        assert by_system[f"{name} fr-large, cost"]["cell"] == by_system[best]["cell"]
        assert mean[f"{name} fr-large, cost", SETS] == mean[best, SETS]

    encoder = bgt_core.load(out / "cells" / by_system["AVG people"]["cell"] / "run", "cpu")
    sets = read_sets(folder, ["2012", "2013", "sick-train"])
    result = evaluate(Sts(latent="semantic"), encoder, sets, resamples=100)
    each = [cell.value for key, (cell,) in result.scores.items() if key.score == "Pearson"]
    assert len(each) == 3
    assert mean["AVG people", SETS] == pytest.approx(np.mean(each), abs=0.01)

    verdicts = {row["claim"]: row["verdict"] for row in done.records["claims"]}
    assert verdicts[f"AVG fr-large, 0-10 words is above AVG fr-large, 30-100 words on {SETS}"] == "not run"
    assert "not run" not in [told for claim, told in verdicts.items() if "words" not in claim and "1-gram" not in claim]
    repeated = {row["table"]: row for row in done.records["statistics"] if row["statistic"] == "unigram repetition"}
    assert list(repeated) == ["fr-large", "de-small"]  # what people wrote is no translation
    assert repeated["fr-large"]["rho"] and not repeated["de-small"]["rho"]  # one classifier, of the filtered table
    assert "## Ranges chosen" in done.page and "## How translations differ from references" in done.page
