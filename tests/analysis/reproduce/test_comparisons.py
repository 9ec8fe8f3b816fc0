"""Comparisons refer to existing systems and measures. A training's name depends only on what affects its result."""

import json
from pathlib import Path

import pytest

from analysis.reproduce import results
from analysis.reproduce.comparisons import COMPARISONS, DEV, DEV_GAP, EVERY, F1, F1_GAP, SETS, ExperimentSpec
from analysis.reproduce.measure import AUC_OF, OF_PAIRS, OVER_MOVERS
from analysis.reproduce.trainings import Training, as_json, training_of
from bgt_core.errors import BgtError
from bgt_core.recipes import RECIPES

SCALE = {EVERY: {"model.d_model": 64, "data.vocab_size": 500, "model.encoder_layers": 3}}
STORED = Path(__file__).resolve().parents[3] / "analysis" / "results" / "reproduce"
NAMES = [name for name in COMPARISONS if name != "toy"]


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
    assert {other.key for other in same} == {training().key}  # defaults and system names change no training
    assert {other.name for other in same} == {training().name}
    paper = training(overrides={"model.encoder_layers": 5})  # 5 is the recipe's default, but `SCALE` above sets 3
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
    assert (small.build().arguments or {})["model.d_model"] == 64
    with pytest.raises(BgtError, match=r"no setting 'model\.colour'"):
        training(overrides={"model.colour": "red"}).build()
    with pytest.raises(BgtError, match="Unknown recipe 'nothing'"):
        training("nothing").build()


@pytest.mark.parametrize("name", sorted({*NAMES} - {"growth"}))  # growth needs a GPU, and has not been trained
def test_stored_results_are_of_the_trainings_that_would_run_today(name: str) -> None:
    """The stored results come from the same systems, seeds and settings that the comparison has today."""
    comparison = COMPARISONS[name]
    planned = {(system.name, str(seed)): system for system in comparison.systems for seed in system.seeds}
    cells = results.stored(STORED, name)["cells"]
    assert {(row["system"], row["seed"]) for row in cells} == planned.keys()
    for row in cells:
        system, seed = planned[row["system"], row["seed"]], int(row["seed"])
        if system.best_of:
            continue
        today = training_of(system, comparison.scales["small"], seed, row["data"] or "d")
        assert today.overrides == json.loads(row["overrides"]), row["cell"]
        assert row["cell"].startswith(f"{row['recipe']}_")
        if row["state"] == "finished":
            then, now = json.loads(row["arguments"]), today.build().arguments or {}
            assert not [key for key in then.keys() & now if key != "init_from" and as_json(now[key]) != then[key]]


@pytest.mark.parametrize("name", NAMES)
def test_comparisons_name_what_they_have(name: str) -> None:
    comparison = COMPARISONS[name]
    systems = [system.name for system in comparison.systems]
    assert {each for system in comparison.systems for each in (*system.best_of, system.against)} <= set(systems)
    assert {each for claim in comparison.claims for each in claim.weights} <= set(systems)
    assert {each for part in comparison.parts.values() for each in part} <= set(systems)
    assert len({claim.statement for claim in comparison.claims}) == len(comparison.claims)
    assert set(comparison.published) <= set(systems) or comparison.published == COMPARISONS["main"].published
    for system in comparison.systems:
        assert not system.starts_from or systems.index(system.starts_from) < systems.index(system.name)
        for settings in comparison.scales.values():
            if system.recipe in RECIPES:
                training_of(system, settings, 1, "d").build()


def test_published_numbers_are_the_papers() -> None:
    """The means of the yearly scores are those in figure 3 of BGT's paper; other numbers are copied as printed."""
    stated = {"BGT": 73.1, "SP": 71.9, "BilingualTrans": 71.4, "BGT w/o Prior": 71.6, "EnglishAE": 65.7}
    for system, average in stated.items():
        published = COMPARISONS["main"].published[system]
        numbers = [score for name, score in published.items() if name.startswith("STS 2")]
        assert len(numbers) == 5
        assert sum(numbers) / 5 == pytest.approx(average, abs=0.1)
    numbers = {name: comparison.published for name, comparison in COMPARISONS.items()}
    assert numbers["backtranslation"]["AVG ppdb-xxxl-lexical"] == {SETS: 65.8}  # from Table 4 of the paper
    assert numbers["backtranslation"]["GRAN fr-news, BLEU"] == {SETS: 67.1}  # from Table 12 of the paper
    assert numbers["var-siamese"]["repeat"] == {"accuracy": 88.24, AUC_OF["w2"]: 86.74, OVER_MOVERS: 13.64}
    assert {claim.measure for claim in COMPARISONS["var-siamese"].claims} <= set(OF_PAIRS)
    poster = numbers["vgvae"]
    assert poster["ALL"] == {DEV: 72.3, F1: 25.4, DEV_GAP: 52.2, F1_GAP: 3.9}  # from Table 1 of VGVAE's poster
    assert poster["ALL + LSTM, syntactic latent"] == {DEV: 11.3, F1: 38.8}
    by_claim = [
        sum(weight * poster[name][claim.measure] for name, weight in claim.weights.items())
        for claim in COMPARISONS["vgvae"].claims
        if all(claim.measure in poster.get(name, {}) for name in claim.weights)
    ]
    assert len(by_claim) == 17 and min(by_claim) > 0  # a claim holds if its sum is positive; all hold in the poster
