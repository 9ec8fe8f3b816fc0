"""The comparison of back-translations trains on filtered pairs, and reports the filter with the best dev score."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from analysis.reproduce.comparisons import SETS, Comparison, ExperimentSpec, Selection
from analysis.reproduce.paraphrases import Paraphrases, SelectedPairs, read_paraphrases
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.scores import overlap
from bgt_core.errors import DataError, NotFound
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.grammar import pairs

REFERENCES, BEST = 800, 3
TABLES = """
[pairs]
toy = 60
[scale.toy.every]
"data.vocab_size" = 200
"data.valid_pairs" = 10
"model.d_model" = 8
"train.epochs" = 1.0
[scale.toy.reference-classifier]
"data.vocab_size" = 200
"data.valid_pairs" = 20
"model.d_model" = 8
"train.epochs" = 2.0
[selected]
title = "Filters"
measure = "mean of sets"
data = "paraphrases"
defaults = { recipe = "avg", langs = ["a:en", "b:en"], against = "AVG fr-large" }
claims = [["AVG fr-large", "AVG cost", "Table 7"], ["AVG fr-large", "AVG long", "Table 5"]]
[selected.systems]
"AVG fr-large" = { table = "fr-large" }
"AVG de-small" = { table = "de-small" }
"AVG people" = { table = "people" }
"AVG elsewhere" = { table = "no-such-table" }
"GRAN fr-large" = { recipe = "gran", table = "fr-large" }
"AVG long" = { table = "fr-large", keep = "words=30.." }
"AVG cost ..33%" = { table = "fr-large", keep = "cost=..33%" }
"AVG cost ..67%" = { table = "fr-large", keep = "cost=..67%" }
"AVG cost" = { best_of = ["AVG cost ..33%", "AVG cost ..67%"] }
"AVG language model" = { table = "fr-large", keep = "perplexity=..67%" }
"AVG classifier" = { table = "fr-large", keep = "classifier=33%.." }
"""


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables of back-translations, a table of human paraphrases, STS, STS Benchmark's dev set and SICK.

    A candidate of rank k has the words of its reference in reverse order, except that random words replace k of them.
    Candidates of a larger rank have a larger cost.
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
def paraphrases(folder: Path, selected_tables: Comparison) -> Paraphrases:
    return replace(read_paraphrases(folder, selected_tables, "toy"), pairs=100)


@pytest.fixture
def selected_tables(add: Callable[[str], Comparison]) -> Comparison:
    return add(TABLES)


def dataset(paraphrases: Paraphrases, *selection: object) -> SelectedPairs:
    made = paraphrases.dataset(ExperimentSpec("", "avg", selection=Selection(*selection)))  # type: ignore[arg-type]
    assert made
    return made


def selected(paraphrases: Paraphrases, out: Path, *selection: object) -> list[tuple[str, ...]]:
    source = dataset(paraphrases, *selection).pairs(out, "cpu")
    return list(read_pairs(source.path, source.columns, Skipped()))


def test_the_smallest_table_says_how_many_pairs(
    folder: Path, data: Path, tmp_path: Path, selected_tables: Comparison
) -> None:
    whole = read_paraphrases(folder, replace(selected_tables, pairs={"toy": 10_000}), "toy")
    assert list(whole.tables) == ["fr-large", "de-small", "people"]
    assert whole.pairs == REFERENCES // 5
    assert read_paraphrases(folder, selected_tables, "toy").pairs == 60
    assert [sts.year for sts in whole.sets] == ["2012", "2013", "stsb", "sick"]
    with pytest.raises(NotFound, match="no back-translations; add a table such as backtranslated/fr-news"):
        read_paraphrases(data, selected_tables, "toy")
    with pytest.raises(NotFound, match="no such folder"):
        read_paraphrases(tmp_path / "nowhere", selected_tables, "toy")


def test_a_selection_has_the_first_good_candidate_of_as_many_references(
    paraphrases: Paraphrases, folder: Path, tmp_path: Path
) -> None:
    candidates: dict[str, list[tuple[str, ...]]] = {}
    for row in read_pairs(folder / "backtranslated/fr-large.tsv", ("a", "b", "cost", "row"), Skipped()):
        candidates.setdefault(row[0], []).append(row)
    random = selected(paraphrases, tmp_path, "fr-large")
    assert len(random) == len({reference for reference, _ in random}) == 100
    assert all(pair[1] == candidates[pair[0]][0][1] for pair in random)
    diverse = selected(paraphrases, tmp_path, "fr-large", "overlap-1=..0.6")
    assert len(diverse) == 100
    for reference, translation in diverse:
        good = [row[1] for row in candidates[reference] if overlap(reference, row[1], 1) <= 0.6]
        assert translation == good[0]
    twice = selected(paraphrases, tmp_path, "fr-large", "", 2)
    assert len(twice) == 200
    assert {*random} < {*twice}  # a larger sample contains the smaller one
    parts = [tmp_path.glob(f"fr-large-*-{part}.*") for part in ("set-aside", "mined")]
    aside, mined = ({row[0] for row in read_pairs(next(part), ("a", "b", "_", "_"), Skipped())} for part in parts)
    assert aside | mined == {*candidates} and not aside & mined
    assert 0.25 < len(aside) / len(candidates) < 0.42
    assert not aside & {reference for reference, _ in [*twice, *diverse]}


def test_a_quantile_is_that_of_the_first_candidates(paraphrases: Paraphrases, tmp_path: Path) -> None:
    cheap = dataset(paraphrases, "fr-large", "cost=..33%")
    limits = cheap.range(tmp_path, {})
    rows = read_pairs(cheap.part(tmp_path, "mined"), ("a", "b", "cost", "_"), Skipped())
    firsts = [float(cost) for _, _, cost in rows if float(cost) <= 1]  # other candidates cost at least 2
    assert limits.most == pytest.approx(np.percentile(firsts, 33), rel=5e-4)  # costs are written with four digits
    assert limits.least == float("-inf")
    chosen = read_pairs(cheap.pairs(tmp_path, "cpu").path, ("a", "b", "cost"), Skipped())
    costs = [float(row[2]) for row in chosen]
    assert len(costs) == 100 and max(costs) <= limits.most


def test_a_filter_that_keeps_too_few_says_how_many(paraphrases: Paraphrases, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"fr-large words=30\.\.: .*0 pairs|no pair is left"):
        selected(paraphrases, tmp_path, "fr-large", "words=30..")
    few = dataset(replace(paraphrases, pairs=400), "fr-large", "overlap-1=..0.6")
    with pytest.raises(DataError, match=r"pairs pass; every filter needs 400"):
        few.pairs(tmp_path, "cpu")
    assert not few.path(tmp_path).exists()


def test_data_settings_and_the_classifier_decide_the_hash(paraphrases: Paraphrases) -> None:
    other = replace(paraphrases, classifier={"train.epochs": 2.0})
    for keep, same in (("words=..10", True), ("classifier=33%..", False)):
        hashes = {dataset(each, "fr-large", keep).sha256 for each in (paraphrases, other)}
        assert (len(hashes) == 1) == same
    hashes = {dataset(paraphrases, table, keep, times).sha256
              for table in paraphrases.tables for keep in ("", "words=..10") for times in (1, 2)}  # fmt: skip
    assert len(hashes) == 12


@pytest.mark.slow
@pytest.mark.usefixtures("selected_tables")
def test_filters_are_trained_on_and_the_best_range_counts(
    folder: Path, tmp_path: Path, whole_run: Callable[..., Any]
) -> None:
    out = tmp_path / "out"
    done = whole_run("selected", folder, out, code=5)  # one training fails, because no sentence has 30 words
    assert "1 of" in done.err.splitlines()[-1]

    by_system = {row["system"]: row for row in done.records["cells"]}
    assert "AVG elsewhere" not in by_system
    assert {name for name, row in by_system.items() if row["state"] != "finished"} == {"AVG long"}
    mean = done.means
    best = max(("AVG cost ..33%", "AVG cost ..67%"), key=lambda system: mean[system, "STSB dev"])
    assert by_system["AVG cost"]["cell"] == by_system[best]["cell"]
    assert mean["AVG cost", SETS] == mean[best, SETS]

    encoder = bgt_core.load(out / "cells" / by_system["AVG people"]["cell"] / "run", "cpu")
    sets = read_sets(folder, ["2012", "2013", "sick-train"])
    result = evaluate(Sts(latent="semantic"), encoder, sets, resamples=100)
    each = [cell.value for key, (cell,) in result.scores.items() if key.score == "Pearson"]
    assert len(each) == 3
    assert mean["AVG people", SETS] == pytest.approx(np.mean(each), abs=0.01)

    assert [row["verdict"] == "not run" for row in done.records["claims"]] == [False, True]
    repeated = {row["table"]: row for row in done.records["statistics"] if row["statistic"] == "unigram repetition"}
    assert list(repeated) == ["fr-large", "de-small"]  # only back-translations have this statistic
    assert repeated["fr-large"]["rho"] and not repeated["de-small"]["rho"]  # only fr-large has a classifier
    assert "## Ranges chosen on the dev set" in done.page and "## How translations differ from references" in done.page
