"""`python -m analysis.reproduce vgvae`: its settings, what is measured by each latent, and what is stored and drawn."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from analysis.reproduce import pages, vgvae
from analysis.reproduce.comparisons import EVERY
from analysis.reproduce.experiments import AVERAGE, DEV, DEV_GAP, F1, F1_GAP, GAPS, STS_GAP
from analysis.reproduce.measure import gaps, share_draws
from analysis.reproduce.trainings import Training, training_of
from analysis.reproduce.vgvae import paired, read_parsed
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import NotFound
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.evaluation.tasks.syntax import Syntax
from bgt_core.grammar import pairs

WEIGHTS = {"WPL": "objective.position.weight", "PRL": "objective.paraphrase.weight", "DPL": "objective.margin.weight"}


def trainings(scale: str) -> dict[str, Training]:
    """The first training of each system of the comparison."""
    return {
        system.name: training_of(system, vgvae.SCALES[scale], system.seeds[0], "data")
        for system in vgvae.comparison().systems
    }


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_each_system_has_the_losses_of_its_name_and_both_latents_are_one_training(scale: str) -> None:
    by_name = trainings(scale)
    for name, losses in vgvae.LOSSES.items():
        arguments = by_name[name].build().arguments or {}
        assert {loss for loss, weight in WEIGHTS.items() if arguments[weight]} == set(losses)
        assert bool(arguments["train.mega_batch"]) == ("DPL" in losses)
        assert by_name[f"{name}, syntactic latent"].key == by_name[name].key
    lstm = by_name[vgvae.LSTM].build().arguments or {}
    assert (lstm["model.semantic_body"], lstm["model.syntactic_body"], lstm["model.decoder"]) == (
        "average", "lstm", "lstm",
    )  # fmt: skip
    reader = by_name[vgvae.ENCODER].build().arguments or {}
    assert (reader["model.syntactic_body"], reader["model.decoder"]) == ("lstm", "bag-of-words")
    alone = by_name[vgvae.ONE_LATENT].build().arguments or {}
    assert alone["model.syntactic_dim"] == 0 and not any(alone[weight] for weight in WEIGHTS.values())
    assert len({training.key for training in by_name.values()}) == len(vgvae.LOSSES) + 4 + len(vgvae.LONGER)


def test_the_posters_numbers_are_its_own() -> None:
    whole = vgvae.comparison()
    assert whole.published["ALL"] == {DEV: 72.3, F1: 25.4, DEV_GAP: 52.2, F1_GAP: 3.9}  # Table 1
    assert whole.published["ALL + LSTM, syntactic latent"] == {DEV: 11.3, F1: 38.8}
    by_claim = {
        claim.statement: sum(weight * whole.published[name][claim.measure] for name, weight in claim.weights.items())
        for claim in whole.claims
        if all(claim.measure in whole.published.get(name, {}) for name in claim.weights)
    }
    assert len(by_claim) == 17 and min(by_claim.values()) > 0  # the poster says what we claim that it says
    assert pages.comparison_of(vgvae.NAME, {}) == whole


def test_a_gap_is_for_the_latent_that_should_be_better() -> None:
    draws = np.array([1.0, 2.0])
    semantic = {AVERAGE: (60.0, draws), DEV: (50.0, draws), F1: (20.0, draws)}
    syntactic = {AVERAGE: (40.0, draws + 1), F1: (35.0, 3 * draws)}
    apart = gaps({"semantic": semantic, "syntactic": syntactic})
    assert {name: value for name, (value, _) in apart.items()} == {STS_GAP: 20.0, F1_GAP: 15.0}
    assert apart[STS_GAP][1].tolist() == [-1.0, -1.0]
    assert apart[F1_GAP][1].tolist() == [2.0, 4.0]
    assert gaps({"semantic": semantic}) == {}


def test_the_spread_of_a_share_is_that_of_a_mean_of_right_answers() -> None:
    right = np.random.default_rng(0).random(400) < 0.3
    error = 100 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert share_draws(right, 2_000).std() == pytest.approx(error, rel=0.1)
    assert share_draws(~right, 2_000) == pytest.approx(100 - share_draws(right, 2_000))  # the same items are drawn


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Paraphrases, half of them with a parsed sentence; trees; STS and STS Benchmark's dev set."""
    folder = tmp_path_factory.mktemp("parsed")
    for name in ("sts", "stsb"):
        shutil.copytree(data / name, folder / name)
    (folder / "paraphrase").mkdir()
    (folder / "trees").mkdir()
    texts = list(dict.fromkeys(pair.texts["en"] for pair in pairs(900, seed=6)))
    rows = [f"{text}\tIn short, {text}\n" for text in texts]
    (folder / "paraphrase/en.a.tsv").write_text("".join(rows[:200]), "utf-8")
    (folder / "paraphrase/en.b.tsv").write_text("".join(rows[200:]), "utf-8")
    (folder / "paraphrase/en.ppdb-lexical.tsv").write_text("one\tsingle\n", "utf-8")
    rng = random.Random(0)
    trees = [
        f"(S (NP (DT the) (NN noun{rng.randrange(9)})) (VP (VB do{number}) (ADVP (RB well))) (. .))"
        if rng.random() < 0.5
        else f"(S (VP (VB go) (PP (IN to) (NN noun{rng.randrange(9)}) (NN x{number}))) (. .))"
        for number in range(80)
    ]
    trees += [f"(S {' '.join(f'(NN {word})' for word in text.split())})" for text in texts[:40]]
    (folder / "trees/en.toy.mrg").write_text("\n".join(trees), "utf-8")
    return folder


def test_what_is_measured_on_is_not_trained_on_and_files_decide_the_hash(folder: Path, tmp_path: Path) -> None:
    dataset = read_parsed(folder, 300)
    assert [path.name for path in dataset.sources] == ["en.a.tsv", "en.b.tsv"]
    source = dataset.pairs(tmp_path, print, "cpu")
    assert source.columns == ("a", "b")
    rows = list(read_pairs(source.path, source.columns, Skipped()))
    assert len(rows) == 300
    parsed = {each.text for each in (*paired(tuple(dataset.trees)).queries, *paired(tuple(dataset.trees)).candidates)}
    every = read_parsed(folder, 10_000).pairs(tmp_path, print, "cpu")
    kept = {text for row in read_pairs(every.path, every.columns, Skipped()) for text in row}
    written = {line.split("\t")[0] for line in (folder / "paraphrase/en.a.tsv").read_text("utf-8").splitlines()}
    assert parsed & written and not parsed & kept
    assert not {text for data in dataset.sets for text in (*data.left, *data.right)} & kept
    more = tmp_path / "more"
    shutil.copytree(folder, more)
    assert read_parsed(more, 300).sha256 == dataset.sha256 != read_parsed(folder, 301).sha256
    (more / "trees/en.more.mrg").write_text("(S (NN rain))", "utf-8")
    assert read_parsed(more, 300).sha256 != dataset.sha256


def test_what_a_folder_lacks_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such folder"):
        read_parsed(tmp_path / "nowhere", 100)
    with pytest.raises(NotFound, match=r"no paraphrases; expected paraphrase/en\.NAME"):
        read_parsed(tmp_path, 100)
    shutil.copytree(folder / "paraphrase", tmp_path / "paraphrase")
    with pytest.raises(NotFound, match=r"no parsed sentences; expected trees/en\.NAME"):
        read_parsed(tmp_path, 100)


@pytest.fixture
def toy_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny models, of no two losses together, and a longer training of two epochs."""
    arguments: dict[str, dict[str, object]] = {
        EVERY: {
            "data.vocab_size": 200,
            "data.valid_pairs": 10,
            "model.d_model": 8,
            "train.epochs": 1.0,
            "train.batch_tokens": 900,
        },
        "vgvae": {"train.mega_batch": 2, "train.mega_batch_start": 0.4},
    }
    monkeypatch.setitem(vgvae.SCALES, "toy", arguments)
    monkeypatch.setitem(vgvae.PAIRS, "toy", 200)
    monkeypatch.setattr(vgvae, "EPOCHS", 2)
    for table in (vgvae.LOSSES, vgvae.POSTER):
        for name in [name for name in table if name.count("+") and name != vgvae.LSTM]:
            monkeypatch.delitem(table, name)


@pytest.mark.slow
@pytest.mark.usefixtures("toy_scale")
def test_all_of_it_runs_and_is_drawn(folder: Path, tmp_path: Path, whole_run: Callable[..., Any]) -> None:
    out = tmp_path / "out"
    done = whole_run("vgvae", folder, out)
    assert {row["state"] for row in done.records["cells"]} == {"finished"}
    assert "not run" not in {row["verdict"] for row in done.records["claims"]}
    mean = done.means
    semantic, syntactic = "ALL", "ALL, syntactic latent"
    for gap, (measure, sign) in GAPS.items():
        apart = mean[semantic, measure] - mean[syntactic, measure]
        assert mean[semantic, gap] == pytest.approx(sign * apart, rel=1e-6)
        assert (syntactic, gap) not in mean and ("word average", gap) not in mean and ("one latent", gap) not in mean

    cell = next(row["cell"] for row in done.records["cells"] if row["system"] == "ALL")
    model = bgt_core.load(out / "cells" / cell / "run", "cpu")
    result = evaluate(Syntax(), {"m": model}, paired((folder / "trees/en.toy.mrg",)), resamples=100)
    for measure in {key.score for key in result.scores}:
        assert mean[semantic, measure] == pytest.approx(result.value((measure,), "m semantic"))
        assert mean[syntactic, measure] == pytest.approx(result.value((measure,), "m syntactic"))
    years = evaluate(Sts(latent="syntactic"), model, read_sets(folder, ["2012", "2013"]), resamples=100)
    expected = years.value(("2012-2013", "average", "mean Pearson"))
    assert expected == pytest.approx(mean[syntactic, AVERAGE], abs=0.01)

    assert "## By latent" in done.page and "labelled F1 of constituents" in " ".join(done.page.split())


def test_other_comparisons_have_no_table_by_latent(folder: Path) -> None:
    whole = vgvae.comparison()
    row = {"seed": "mean", "system": "ALL", "measure": DEV, "value": 70.0, "ci_low": 69.0, "ci_high": 71.0}
    table = pages.by_latent(whole, {"scores": [row]})
    assert table.columns == ["system", f"{DEV}, semantic", f"{DEV}, syntactic"]
    assert ["ALL", "70.0 [69.0, 71.0] (72.3)", "(20.1)"] in table.rows
    one = replace(whole, systems=[system for system in whole.systems if system.latent == "semantic"])
    assert not pages.by_latent(one, {"scores": [row]}).rows
