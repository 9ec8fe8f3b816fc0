"""`reproduce var-siamese`: what stands on what, shares of labels, scores of pairs, and what is stored and drawn."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

import bgt_core
from analysis.reproduce import var_siamese
from analysis.reproduce.comparisons import EVERY
from analysis.reproduce.measure import AUC_OF, LEADS, OF_PAIRS, OVER_MOVERS, WORDS_ACCURACY, pair_draws
from analysis.reproduce.trainings import plan_trainings
from analysis.reproduce.var_siamese import (
    NONE,
    REFORMULATE,
    REPEAT,
    comparison,
    read_questions,
    share_of,
    vae,
    with_labels,
)
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import NotFound
from bgt_core.evaluation.tasks.pairs import read_labelled
from bgt_core.grammar import pairs

Reproduce = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled questions: a duplicate is the same sentence with words before it."""
    folder, rng = tmp_path_factory.mktemp("questions"), random.Random(3)
    texts = list(dict.fromkeys(pair.texts["en"] for pair in pairs(400, seed=6)))
    rows = [(f"1\t{text}\tin short , {text}" if rng.random() < 0.5 else f"0\t{text}\t{rng.choice(texts)}")
            for text in texts]  # fmt: skip
    (folder / "quora").mkdir()
    (folder / "quora/train.tsv").write_text("\n".join(rows[:200]) + "\n", "utf-8")
    (folder / "quora/dev.tsv").write_text("\n".join(rows[200:280]) + "\n", "utf-8")
    return folder


@pytest.fixture
def toy_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny models."""
    first: dict[str, object] = {"model.d_model": 8, "model.hidden_dim": 6, "model.semantic_dim": 5}
    base = {key.replace("model.", "model.base."): value for key, value in first.items()}
    arguments: dict[str, dict[str, object]] = {
        EVERY: {"data.vocab_size": 200, "data.valid_pairs": 5, "train.epochs": 1.0, "train.batch_tokens": 900},
        "var-siamese-repeat": first,
        "var-siamese-reformulate": first,
        "var-siamese": {**base, "model.hidden_dim": 7},
    }
    monkeypatch.setitem(var_siamese.SCALES, "toy", arguments)


def test_claims_are_of_measures_that_there_are_and_names_tell_the_share_of_labels() -> None:
    whole = comparison()
    assert {claim.measure for claim in whole.claims} <= set(OF_PAIRS)
    assert whole.published[REPEAT] == {"accuracy": 88.24, AUC_OF["w2"]: 86.74, OVER_MOVERS: 13.64}
    assert [share_of(name) for name in (REPEAT, with_labels(REPEAT, 0.1), vae(with_labels(REFORMULATE, 0.3)))] == [
        1.0, 0.1, 0.3,
    ]  # fmt: skip


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_a_second_stage_has_its_first_ones_sizes_and_comes_after_it(folder: Path, tmp_path: Path, scale: str) -> None:
    plan = plan_trainings(["var-siamese"], data=folder, out=tmp_path, scale=scale, seeds=(1, 2))
    for system, (training, other) in plan.trainings["var-siamese"].items():
        arguments = training.build().arguments or {}
        if training.first:
            first = training.first.build().arguments or {}
            assert (training.first.seed, other.first and other.first.seed) == (1, 2)
            for size in ("d_model", "hidden_dim", "semantic_dim"):
                assert arguments[f"model.base.{size}"] == first[f"model.{size}"]
            assert training.first.recipe.endswith(system.partition(",")[0])
        else:
            assert system.startswith(("VAE", NONE))
    order = [training.key for training in plan.chosen()]
    assert all(order.index(each.first.key) < order.index(each.key) for each in plan.chosen() if each.first)
    chosen = plan.chosen(REFORMULATE)
    assert [training.recipe for training in chosen] == ["var-siamese-reformulate", "var-siamese"] * 2
    systems = plan.trainings["var-siamese"]
    assert len({systems[name][0].key for name in (NONE, REPEAT, REFORMULATE)}) == 3


def test_a_share_of_labels_is_part_of_a_larger_one_and_the_other_rows_are_only_repeated(
    folder: Path, tmp_path: Path
) -> None:
    files = read_questions(folder)
    given = (folder / "quora/train.tsv").read_text("utf-8").splitlines()
    parts = {share: files.dataset(share, False).rows for share in (0.1, 0.3, 1.0)}
    assert [len(rows) for rows in parts.values()] == [20, 60, 200]
    assert set(parts[0.1]) < set(parts[0.3]) < set(parts[1.0]) == set(given)
    first = files.dataset(0.3, True)
    read = first.pairs(tmp_path, print, "cpu")
    rows = ["\t".join(row) for row in read_pairs(read.path, read.columns, Skipped())]
    assert [row[1:] for row in rows] == [row[1:] for row in given]
    assert all(row[0] == (line[0] if line in parts[0.3] else "0") for row, line in zip(rows, given, strict=True))
    assert sum(row[0] == "1" for row in rows) == sum(row[0] == "1" for row in parts[0.3])
    assert len({files.dataset(share, whole).sha256 for share in (0.3, 1.0) for whole in (True, False)}) == 4
    texts = {path.read_bytes() for path in [files.dataset(0.1, False).text(tmp_path, print, "cpu").path,
                                            first.text(tmp_path / "b", print, "cpu").path]}  # fmt: skip
    assert len(texts) == 1
    with pytest.raises(NotFound, match=r"no labelled questions; expected quora/train\.tsv\.xz"):
        read_questions(tmp_path)


def test_scores_of_pairs_are_worth_what_scikit_learn_says() -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(300) < 0.4
    scores = {name: labels + rng.normal(0, 1, 300) for name in ("w2", "wmd", "probability", "tf-idf")}
    draws = pair_draws(labels, scores, 2_000)
    for name in ("w2", "wmd", "probability"):
        assert draws[AUC_OF[name]][0] == pytest.approx(100 * roc_auc_score(labels, scores[name]))
    right = scores["probability"] >= 0.5
    assert draws["accuracy"][0] == pytest.approx(100 * accuracy_score(labels, right))
    share = np.mean(right == labels)
    assert draws["accuracy"][1].std() == pytest.approx(100 * np.sqrt(share * (1 - share) / 300), rel=0.1)
    for lead, (first, second) in LEADS.items():
        assert draws[lead][0] == pytest.approx(draws[first][0] - draws[second][0])
        assert draws[lead][1] == pytest.approx(draws[first][1] - draws[second][1])
    again = pair_draws(labels, {"probability": scores["probability"]}, 2_000)
    assert again["accuracy"][1].tolist() == draws["accuracy"][1].tolist()  # the same pairs, whatever else is scored


@pytest.mark.slow
@pytest.mark.usefixtures("toy_scale")
def test_all_of_it_runs_and_is_drawn(folder: Path, tmp_path: Path, whole_run: Callable[..., Any]) -> None:
    out = tmp_path / "out"
    done = whole_run("var-siamese", folder, out)
    assert {row["state"] for row in done.records["cells"]} == {"finished"}
    assert "not run" not in {row["verdict"] for row in done.records["claims"]}
    mean = done.means
    assert ("VAE repeat", "accuracy") not in mean and ("VAE repeat", AUC_OF["wmd"]) in mean
    assert (REPEAT, WORDS_ACCURACY) in mean

    cells = {row["system"]: row for row in done.records["cells"]}
    folders = {system: out / "cells" / row["cell"] for system, row in cells.items()}
    test = read_labelled(folder / "quora/dev.tsv")
    model = bgt_core.load(folders["VAE repeat"] / "run", "cpu")
    sides = [model.posteriors(side, lang="en") for side in (test.left, test.right)]
    squares = (sides[0].mean - sides[1].mean) ** 2
    squares += ((sides[0].log_variance / 2).exp() - (sides[1].log_variance / 2).exp()) ** 2
    auc = 100 * roc_auc_score(test.labels, -squares.sum(-1).double().numpy())
    assert mean["VAE repeat", AUC_OF["w2"]] == pytest.approx(auc, abs=0.05)

    first, second = folders["VAE reformulate"], folders[REFORMULATE]
    begun = json.loads((second / "run" / "run.json").read_text("utf-8"))["arguments"]
    assert Path(begun["init_from"]) == first / "run"
    assert json.loads((second / "result.json").read_text("utf-8"))["arguments"]["init_from"] == first.name
    assert (first / "run/tokenizer.model").read_bytes() == (second / "run/tokenizer.model").read_bytes()

    assert "area under the ROC curve" in done.page and "Pearson" not in done.page


@pytest.mark.usefixtures("toy_scale")
def test_a_second_stage_fails_where_its_first_one_has(
    folder: Path, tmp_path: Path, reproduce: Reproduce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(var_siamese.SCALES["toy"], "var-siamese-repeat", {"model.d_model": 0})
    command = ["var-siamese", "--scale=toy", f"--data={folder}", f"--out={tmp_path}", "--resamples=100"]
    done = reproduce(*command, "--only=repeat", "--seeds=1", "--device=cpu", "--threads=1")
    assert done.code == 5
    (error,) = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("cells/var-siamese_*/error.json")]
    assert "starts from var-siamese-repeat" in error["error"] and "not finished" in error["error"]
