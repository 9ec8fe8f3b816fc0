"""The data sets of `reproduce` (translations, parsed sentences, labelled questions) exclude test sentences from
training, have a hash that depends only on the files that they read, and can be trained on."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import bgt_core
from analysis.reproduce.comparisons import AVERAGE, COMPARISONS, GAPS, Comparison
from analysis.reproduce.datasets import paired, read_parsed, read_questions, read_translations
from analysis.reproduce.measure import AUC_OF, OVER_MOVERS, WORDS_ACCURACY, WORDS_AUC
from analysis.reproduce.trainings import plan_trainings
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import BgtError
from bgt_core.evaluation.sts_files import read_sets
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.pairs import read_labelled
from bgt_core.evaluation.tasks.sts import Sts
from bgt_core.evaluation.tasks.syntax import Syntax
from bgt_core.grammar import pairs

Add = Callable[[str], Comparison]
PARSED = """
[pairs]
toy = 200
[scale.toy.every]
"data.vocab_size" = 200
"data.valid_pairs" = 10
"model.d_model" = 8
"train.epochs" = 1.0
"train.batch_tokens" = 900
[scale.toy.vgvae]
"train.mega_batch" = 2
"train.mega_batch_start" = 0.4
[parsed]
title = "Meaning apart from syntax"
measure = "STS gap"
data = "parsed"
defaults = { recipe = "vgvae", langs = ["a:en", "b:en"], against = "base" }
claims = [["ALL", "base", "Table 1"], ["ALL", "base", "Table 1", "F1 gap"]]
[parsed.systems]
base = { overrides = { "objective.margin.weight" = 0.0, "train.mega_batch" = 0, "train.mega_batch_start" = 0.0 } }
ALL = {}
"ALL, syntactic latent" = { like = "ALL", latent = "syntactic", against = "ALL" }
"word average" = { recipe = "avg" }
"""
QUESTIONS = """
[scale.toy.every]
"data.vocab_size" = 200
"data.valid_pairs" = 5
"train.epochs" = 1.0
"train.batch_tokens" = 900
[scale.toy.var-siamese-repeat]
"model.d_model" = 8
"model.hidden_dim" = 6
"model.semantic_dim" = 5
[scale.toy.var-siamese]
"model.base.d_model" = 8
"model.base.hidden_dim" = 6
"model.base.semantic_dim" = 5
"model.hidden_dim" = 7
[questions]
title = "Duplicates"
measure = "accuracy"
data = "questions"
defaults = { recipe = "var-siamese", langs = ["gold:label", "a:en", "b:en"], against = "none" }
claims = [["repeat", "none", "Table 1"], ["repeat", "VAE repeat", "Table 3", "AUC, w2"]]
[questions.systems]
"VAE repeat" = { recipe = "var-siamese-repeat" }
none = { share = 0.3 }
repeat = { starts_from = "VAE repeat" }
"""


def test_the_hash_of_data_is_of_its_content(tmp_path: Path) -> None:
    langs, data = ("en", "fr"), tmp_path / "data"
    texts = ("It is late.\tIl est tard.", "I am here.\tJe suis là.", "He runs.\tIl court.", "He sleeps.\tIl dort.")
    graded = [f"{grade}.0\t{text}" for grade, text in enumerate(texts)]
    rows = {
        "parallel/en-fr.toy.tsv": texts,
        "retrieval/en-fr.toy.tsv": texts[::-1],
        "sts/2012/A.tsv": graded[1:],
        "sts/2013/B.tsv": graded[:3],
        "stsb/dev.tsv": [f"{line}\tmain/news/2014" for line in graded],
        "sts17/en-fr.tsv": graded,
    }
    for name, lines in rows.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first = read_translations(data, langs).sha256
    assert first[:10] == "6fc8e7d3f4"  # stored results contain this hash, so it must not change
    (data / "parallel" / "en-de.other.tsv").write_text("a\tb\n")
    (data / "notes.txt").write_text("not data")
    assert read_translations(data, langs).sha256 == first
    for name in rows:
        kept = (data / name).read_text("utf-8")
        (data / name).write_text(kept[kept.index("\n") + 1 :], encoding="utf-8")
        assert read_translations(data, langs).sha256 != first, name
        (data / name).write_text(kept, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with paraphrases, syntax trees of some of them and of other sentences, STS, STS Benchmark's dev set, and
    labelled questions. A question's duplicate is the same question after the words "in short ,"."""
    folder = Path(shutil.copytree(data, tmp_path_factory.mktemp("data") / "all"))
    for name in ("paraphrase", "trees", "quora"):
        (folder / name).mkdir()
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
    labelled = [f"1\t{text}\tin short , {text}" if rng.random() < 0.5 else f"0\t{text}\t{rng.choice(texts)}"
                for text in texts]  # fmt: skip
    (folder / "quora/train.tsv").write_text("\n".join(labelled[:200]) + "\n", "utf-8")
    (folder / "quora/dev.tsv").write_text("\n".join(labelled[200:280]) + "\n", "utf-8")
    return folder


def test_what_a_folder_has_and_must_have(folder: Path, tmp_path: Path) -> None:
    dataset = read_translations(folder, ("en", "fr"))
    assert [str(sts) for sts in dataset.sets] == ["2012 A", "2013 B", "stsb dev without 2016, 2017", "sts17 en-fr"]
    assert len(dataset.sets[2].gold) == 20
    readers: dict[str, Callable[[Path], object]] = {
        "translations": lambda path: read_translations(path, ("en", "fr")),
        "parsed": lambda path: read_parsed(path, 100),
        "questions": read_questions,
    }
    for reader, absent, expected in (
        ("translations", ".", "no such folder"),
        ("translations", "sts", "no STS year"),
        ("translations", "parallel", "no translations of en-fr; add a table such as parallel/en-fr"),
        ("parsed", "paraphrase", r"no paraphrases; add a table such as paraphrase/en\.NAME"),
        ("parsed", "trees", r"no parsed sentences; add trees/en\.NAME"),
        ("questions", "quora", r"no labelled questions; add quora/train\.tsv\.xz"),
    ):
        copy = Path(shutil.copytree(folder, tmp_path / "copy"))
        shutil.rmtree(copy / absent)
        with pytest.raises(BgtError, match=expected) as error:
            readers[reader](copy)
        assert error.value.exit_code == 3
        shutil.rmtree(copy, ignore_errors=True)


def test_parsed_sentences_are_not_trained_on_and_files_decide_the_hash(folder: Path, tmp_path: Path) -> None:
    dataset = read_parsed(folder, 300)
    assert [path.name for path in dataset.sources] == ["en.a.tsv", "en.b.tsv"]
    source = dataset.pairs(tmp_path, "cpu")
    assert source.columns == ("a", "b")
    assert len(list(read_pairs(source.path, source.columns, Skipped()))) == 300
    pairing = paired((folder / "trees/en.toy.mrg",))
    parsed = {each.text for group in pairing.groups for side in group for each in side}
    every = read_parsed(folder, 10_000).pairs(tmp_path, "cpu")
    kept = {text for row in read_pairs(every.path, every.columns, Skipped()) for text in row}
    written = {line.split("\t")[0] for line in (folder / "paraphrase/en.a.tsv").read_text("utf-8").splitlines()}
    assert parsed & written and not parsed & kept
    assert not {text for data in dataset.sets for text in (*data.left, *data.right)} & kept
    more = Path(shutil.copytree(folder, tmp_path / "more"))
    assert read_parsed(more, 300).sha256 == dataset.sha256 != read_parsed(folder, 301).sha256
    (more / "trees/en.more.mrg").write_text("(S (NN rain))", "utf-8")
    assert read_parsed(more, 300).sha256 != dataset.sha256


def test_a_share_of_labels_is_part_of_a_larger_one_and_the_other_rows_are_only_repeated(
    folder: Path, tmp_path: Path
) -> None:
    dataset, systems = read_questions(folder), {each.name: each for each in COMPARISONS["var-siamese"].systems}
    given = (folder / "quora/train.tsv").read_text("utf-8").splitlines()
    shares = [dataset(systems[f"none{share}"]) for share in (", 10% of labels", ", 30% of labels", "")]
    parts = [share.pairs(tmp_path, "cpu").path.read_text("utf-8").splitlines() for share in shares]
    assert [len(rows) for rows in parts] == [20, 60, 200]
    assert set(parts[0]) < set(parts[1]) < set(parts[2]) == set(given)
    first = dataset(systems["VAE reformulate, 30% of labels"])
    read = first.pairs(tmp_path, "cpu")
    rows = ["\t".join(row) for row in read_pairs(read.path, read.columns, Skipped())]
    assert [row[1:] for row in rows] == [row[1:] for row in given]
    assert all(row[0] == (line[0] if line in parts[1] else "0") for row, line in zip(rows, given, strict=True))
    assert sum(row[0] == "1" for row in rows) == sum(row[0] == "1" for row in parts[1])
    assert len({dataset(system).sha256 for system in systems.values()}) == 6  # 3 shares of labels, 2 stages
    assert first.text(tmp_path, "cpu").path.read_text("utf-8").splitlines() == given


@pytest.mark.slow
def test_both_latents_of_parsed_sentences_are_measured(
    folder: Path, tmp_path: Path, whole_run: Callable[..., Any], add: Add
) -> None:
    add(PARSED)
    out = tmp_path / "out"
    done = whole_run("parsed", folder, out)
    assert {row["state"] for row in done.records["cells"]} == {"finished"}
    assert "not run" not in {row["verdict"] for row in done.records["claims"]}
    mean = done.means
    semantic, syntactic = "ALL", "ALL, syntactic latent"
    for gap, (measure, sign) in GAPS.items():
        apart = mean[semantic, measure] - mean[syntactic, measure]
        assert mean[semantic, gap] == pytest.approx(sign * apart, rel=1e-6)
        assert (syntactic, gap) not in mean and ("word average", gap) not in mean

    cell = next(row["cell"] for row in done.records["cells"] if row["system"] == "ALL")
    model = bgt_core.load(out / "cells" / cell / "run", "cpu")
    result = evaluate(Syntax(), {"m": model}, paired((folder / "trees/en.toy.mrg",)), resamples=100)
    for measure in {key.score for key in result.scores}:
        assert mean[semantic, measure] == pytest.approx(result.value((measure,), "m semantic"))
        assert mean[syntactic, measure] == pytest.approx(result.value((measure,), "m syntactic"))
    years = evaluate(Sts(latent="syntactic"), model, read_sets(folder, ["2012", "2013"]), resamples=100)
    average = np.mean([years.value((year, "all")) for year in ("2012", "2013")])
    assert average == pytest.approx(mean[syntactic, AVERAGE], abs=0.01)
    assert "## By latent" in done.page and "labelled F1 of constituents" in " ".join(done.page.split())


@pytest.mark.slow
def test_a_second_stage_starts_from_its_first_one(
    folder: Path, tmp_path: Path, whole_run: Callable[..., Any], reproduce: Callable[..., Any], add: Add
) -> None:
    add(QUESTIONS)
    out = tmp_path / "out"
    done = whole_run("questions", folder, out)
    assert {row["state"] for row in done.records["cells"]} == {"finished"}
    assert {row["verdict"] for row in done.records["claims"]} <= {"holds", "does not hold", "not separable"}
    mean = done.means
    assert ("VAE repeat", "accuracy") not in mean and ("VAE repeat", AUC_OF["wmd"]) in mean
    assert ("repeat", WORDS_ACCURACY) in mean and ("repeat", WORDS_AUC) in mean
    assert mean["repeat", OVER_MOVERS] == pytest.approx(mean["repeat", AUC_OF["w2"]] - mean["repeat", AUC_OF["wmd"]])
    assert "area under the ROC curve" in done.page and "Pearson" not in done.page

    cells = {row["system"]: row for row in done.records["cells"]}
    first, second = (out / "cells" / cells[system]["cell"] for system in ("VAE repeat", "repeat"))
    test = read_labelled(folder / "quora/dev.tsv")
    model = bgt_core.load(first / "run", "cpu")
    sides = [model.posteriors(side, lang="en") for side in (test.left, test.right)]
    squares = (sides[0].mean - sides[1].mean) ** 2
    squares += ((sides[0].log_variance / 2).exp() - (sides[1].log_variance / 2).exp()) ** 2
    auc = 100 * roc_auc_score(test.labels, -squares.sum(-1).double().numpy())
    assert mean["VAE repeat", AUC_OF["w2"]] == pytest.approx(auc, abs=0.05)
    begun = json.loads((second / "run" / "run.json").read_text("utf-8"))["arguments"]
    assert Path(begun["init_from"]) == first / "run"
    assert json.loads((second / "result.json").read_text("utf-8"))["arguments"]["init_from"] == first.name
    assert (first / "run/tokenizer.model").read_bytes() == (second / "run/tokenizer.model").read_bytes()

    add(
        QUESTIONS.replace('"model.d_model" = 8', '"model.d_model" = 0')
    )  # d_model 0 makes the first stage fail, so the second stage can't start
    command = ["questions", "--scale=toy", f"--data={folder}", f"--out={tmp_path}", "--resamples=100", "--only=repeat"]
    assert reproduce(*command, "--seeds=1", "--device=cpu", "--threads=1").code == 5
    (error,) = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("cells/var-siamese_*/error.json")]
    assert error["error"].startswith("var-siamese-repeat") and "is not finished" in error["error"]


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_a_second_stage_has_its_first_ones_sizes_and_comes_after_it(folder: Path, tmp_path: Path, scale: str) -> None:
    plan = plan_trainings(["var-siamese"], data=folder, out=tmp_path, scale=scale, seeds=(1, 2))
    order = [training.key for training in plan.chosen()]
    for system, trainings in plan.trainings["var-siamese"].items():
        for seed, training in enumerate(trainings, 1):
            if training.first:
                arguments, first = training.build().arguments or {}, training.first.build().arguments or {}
                for size in ("d_model", "hidden_dim", "semantic_dim"):
                    assert arguments[f"model.base.{size}"] == first[f"model.{size}"]
                assert training.first.seed == seed and training.first.recipe.endswith(system.partition(",")[0])
                assert order.index(training.first.key) < order.index(training.key)
            else:
                assert system.startswith(("VAE", "none"))
    assert [each.recipe for each in plan.chosen("reformulate")] == ["var-siamese-reformulate", "var-siamese"] * 2
