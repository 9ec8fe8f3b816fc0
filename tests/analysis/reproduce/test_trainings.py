"""A training's name holds what decides it and nothing else; and comparisons name only what exists."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from analysis.reproduce import backtranslation, comparisons, datasets, results, var_siamese, vgvae
from analysis.reproduce.comparisons import EVERY
from analysis.reproduce.experiments import ExperimentSpec
from analysis.reproduce.trainings import OTHER_PAPERS, Training, as_json, training_of
from bgt_core.errors import BgtError
from bgt_core.recipes import RECIPES

SCALE = {EVERY: {"model.d_model": 64, "data.vocab_size": 500, "model.encoder_layers": 3}}
STORED = Path(__file__).resolve().parents[3] / "analysis" / "results" / "reproduce"
NAMES = [name for name in comparisons.COMPARISONS if name != "toy"]


def training(
    recipe: str = "bgt",
    overrides: dict[str, object] | None = None,
    seed: int = 1,
    data: str = "d",
    langs: tuple[str, str] = ("en", "fr"),
) -> Training:
    return training_of(ExperimentSpec("x", recipe, overrides or {}, langs), SCALE, seed, data)


def test_a_training_is_named_by_what_decides_its_outcome() -> None:
    others = [
        training("bgt-small"),
        training(seed=2),
        training(data="e"),
        training(langs=("en", "de")),
        training(overrides={"model.readout": "mean"}),
        training(overrides={"model.d_model": 32}),
    ]
    assert len({training().key, *(other.key for other in others)}) == 7
    renamed = training_of(ExperimentSpec("y", "bgt", latent="language"), SCALE, 1, "d")
    same = training(overrides={"model.readout": "sample"}), training(overrides={"model.d_model": 64}), renamed
    assert {other.key for other in same} == {training().key}  # the recipe's default, the scale's, another word
    assert {other.name for other in same} == {training().name}  # and so is their folder
    paper = training(overrides={"model.encoder_layers": 5})  # the default again
    assert paper.overrides == {"model.d_model": 64, "data.vocab_size": 500}
    own = training_of(ExperimentSpec("x", "bgt"), {**SCALE, "bgt": {"model.d_model": 32}}, 1, "d")
    assert own.key == training(overrides={"model.d_model": 32}).key
    name = training("english-trans-lstm", {"model.fuse": ["word", "hidden"], "train.rate": 1e-3}).name
    assert name.startswith("english-trans-lstm_fuse-word+hidden-rate-0.001_en-fr_seed1_")
    assert not set(name) & set("/= ,[]'")


def test_arguments_of_the_scale_that_a_recipe_has_not_are_left_out() -> None:
    small = training("bgt-small")
    assert small.left_out == ("model.encoder_layers",)
    assert "model.encoder_layers" not in small.overrides
    assert small.build().arguments["model.d_model"] == 64
    with pytest.raises(BgtError, match=r"no setting 'model\.colour'"):
        training(overrides={"model.colour": "red"}).build()
    with pytest.raises(BgtError, match="Unknown recipe 'nothing'"):
        training("nothing").build()


@pytest.mark.parametrize("name", NAMES)
def test_stored_results_are_of_the_trainings_that_would_run_today(name: str) -> None:
    """The same systems, each with what was set then, by the names of today, and so with the same arguments."""
    planned = {
        (system.name, str(seed)): system for system in comparisons.COMPARISONS[name].systems for seed in system.seeds
    }
    cells = results.stored(STORED, name)["cells"]
    assert {(row["system"], row["seed"]) for row in cells} == planned.keys()
    for row in cells:
        system, seed = planned[row["system"], row["seed"]], int(row["seed"])
        today = training_of(system, comparisons.SCALES["small"], seed, row["data"] or "d")
        assert today.overrides == json.loads(row["overrides"]), row["cell"]
        assert row["cell"].startswith(f"{row['recipe']}_")
        if row["state"] == "finished":
            then, now = json.loads(row["arguments"]), today.build().arguments
            assert not [key for key in then if key != "init_from" and as_json(now[key]) != then[key]]


EVERY_PAPER = {name: comparisons.COMPARISONS[name] for name in NAMES} | {
    "backtranslation": backtranslation.comparison(["fr-news", "de-ep", "quora", "ppdb"]),
    "vgvae": vgvae.comparison(),
    "var-siamese": var_siamese.comparison(),
}


@pytest.mark.parametrize("name", EVERY_PAPER)
def test_comparisons_name_what_they_have(name: str) -> None:
    comparison = EVERY_PAPER[name]
    systems = [system.name for system in comparison.systems]
    assert len(set(systems)) == len(systems)
    assert {each for system in comparison.systems for each in (*system.best_of, system.against)} <= set(systems)
    assert {each for claim in comparison.claims for each in claim.weights} <= set(systems)
    assert len({claim.statement for claim in comparison.claims}) == len(comparison.claims)
    assert set(comparison.published) <= set(systems) or comparison.published is comparisons.MAIN_NUMBERS
    for system in comparison.systems:
        assert not system.starts_from or systems.index(system.starts_from) < systems.index(system.name)
    scales = comparisons.SCALES if name in NAMES else OTHER_PAPERS[name].SCALES
    for scale in ("paper", "small"):
        for system in comparison.systems:
            if system.recipe in RECIPES:
                training_of(system, scales[scale], 1, "d").build()


def test_published_averages_are_those_of_their_years() -> None:
    """The averages that the paper's figure 3 states beside the years."""
    stated = {"BGT": 73.1, "SP": 71.9, "BilingualTrans": 71.4, "BGT w/o Prior": 71.6, "EnglishAE": 65.7}
    for system, average in stated.items():
        numbers = [score for name, score in comparisons.MAIN_NUMBERS[system].items() if name.startswith("STS 2")]
        assert len(numbers) == 5
        assert sum(numbers) / 5 == pytest.approx(average, abs=0.1)


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
    first = datasets.read_dataset(data, langs).sha256
    assert first[:10] == "6fc8e7d3f4"  # stored results name it: it must not change
    (data / "parallel" / "en-de.other.tsv").write_text("a\tb\n")
    (data / "notes.txt").write_text("not data")
    assert datasets.read_dataset(data, langs).sha256 == first
    for name in rows:
        kept = (data / name).read_text("utf-8")
        (data / name).write_text(kept[kept.index("\n") + 1 :], encoding="utf-8")
        assert datasets.read_dataset(data, langs).sha256 != first, name
        (data / name).write_text(kept, encoding="utf-8")


def test_what_a_folder_must_have(data: Path, tmp_path: Path) -> None:
    dataset = datasets.read_dataset(data, ("en", "fr"))
    assert [str(sts) for sts in dataset.sets] == ["2012 A", "2013 B", "stsb dev without 2016, 2017", "sts17 en-fr"]
    assert len(dataset.sets[2].gold) == 20
    for absent, says in (("sts", "no STS year"), ("parallel", "no translations of en-fr")):
        copy = Path(shutil.copytree(data, tmp_path / absent))
        shutil.rmtree(copy / absent)
        with pytest.raises(BgtError, match=says) as error:
            datasets.read_dataset(copy, ("en", "fr"))
        assert error.value.exit_code == 3
