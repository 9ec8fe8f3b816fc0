"""What decides a training, and nothing else, is in its name; and what the tables say is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bgt_core.errors import BgtError
from bgt_core.recipes import RECIPES
from bgt_core.reproduce import datasets, tables
from bgt_core.reproduce.cells import Cell, cell_of, changed
from bgt_core.reproduce.experiments import System
from bgt_core.reproduce.locks import locked

SCALE = {"width": 64, "vocab_size": 500, "encoder_layers": 3}


def cell(recipe: str = "bgt", seed: int = 1, data: str = "d", langs: tuple = ("en", "fr"), **overrides: object) -> Cell:
    return cell_of(System("x", recipe, overrides, langs), SCALE, {}, seed, data)


def test_the_key_is_of_recipe_overrides_languages_seed_and_data() -> None:
    others = [
        cell("bgt-small"),
        cell(seed=2),
        cell(data="e"),
        cell(langs=("en", "de")),
        cell(read="mean"),
        cell(width=32),
    ]
    assert len({cell().key, *(one.key for one in others)}) == 7
    assert cell().key == cell().key


def test_the_same_training_in_other_words_is_the_same() -> None:
    assert cell(read="sample").key == cell().key  # the recipe's default
    assert cell(width=64).key == cell().key  # the scale's
    assert cell(encoder_layers=5).overrides == {"width": 64, "vocab_size": 500}  # the default again
    renamed = cell_of(System("y", "bgt", latent="language"), SCALE, {}, 1, "d")
    assert renamed.key == cell().key
    assert {cell(read="sample").name, cell(width=64).name, renamed.name} == {cell().name}  # and so is their folder
    own = cell_of(System("x", "bgt"), SCALE, {"width": 32}, 1, "d")
    assert own.key == cell(width=32).key


def test_arguments_of_the_scale_that_a_recipe_has_not_are_left_out_and_said() -> None:
    found = cell("bgt-small")
    assert found.left_out == ("encoder_layers",)
    assert "encoder_layers" not in found.overrides
    assert found.build().arguments["width"] == 64
    with pytest.raises(BgtError, match="no argument 'colour'"):
        cell(colour="red").build()
    with pytest.raises(BgtError, match="Unknown recipe 'nothing'"):
        cell("nothing").build()


def test_names_are_names_of_files() -> None:
    found = cell("english-trans-lstm", fuse=["word", "hidden"], rate=1e-3).name
    assert found.startswith("english-trans-lstm_fuse-word+hidden-rate-0.001_en-fr_seed1_")
    assert not set(found) & set("/= ,[]'")


def test_only_arguments_that_both_know_make_a_training_outdated() -> None:
    assert changed({"width": 1, "langs": ["en", "fr"]}, {"width": 1, "langs": ("en", "fr"), "new": 3}) == []
    assert changed({"width": 1, "gone": 2}, {"width": 2}) == ["width=1, now 2"]


def test_the_hash_of_data_is_of_its_content(data: Path, tmp_path: Path) -> None:
    langs = ("en", "fr")
    first = datasets.read(data, langs).sha256
    copy = Path(shutil.copytree(data, tmp_path / "copy"))
    assert datasets.read(copy, langs).sha256 == first
    (copy / "parallel" / "en-de.other.tsv").write_text("a\tb\n")
    (copy / "notes.txt").write_text("not data")
    assert datasets.read(copy, langs).sha256 == first
    for name in ("parallel/en-fr.toy.tsv", "sts/2013/B.tsv", "stsb/dev.tsv", "retrieval/en-fr.toy.tsv"):
        kept = (copy / name).read_text("utf-8")
        (copy / name).write_text(kept[kept.index("\n") + 1 :], encoding="utf-8")
        assert datasets.read(copy, langs).sha256 != first, name
        (copy / name).write_text(kept, encoding="utf-8")
    shutil.rmtree(copy / "stsb")
    assert datasets.read(copy, langs).sha256 != first


def test_what_a_folder_must_have(data: Path, tmp_path: Path) -> None:
    found = datasets.read(data, ("en", "fr"))
    assert [str(one) for one in found.sets] == [
        "2012 A",
        "2013 B",
        "stsb dev without 2016, 2017",
        "sts17 en-fr",
    ]
    assert len(found.sets[2].gold) == 20
    for absent, says in (("sts", "no STS year"), ("parallel", "no translations of en-fr")):
        copy = Path(shutil.copytree(data, tmp_path / absent))
        shutil.rmtree(copy / absent)
        with pytest.raises(BgtError, match=says) as error:
            datasets.read(copy, ("en", "fr"))
        assert error.value.exit_code == 3


def test_a_lock_goes_with_its_holder(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as ours:
        assert ours
        with locked(tmp_path / "lock") as again:
            assert not again
    with locked(tmp_path / "lock") as ours:
        assert ours


@pytest.mark.parametrize("name", [name for name in tables.TABLES if name != "toy"])
def test_tables_name_what_they_have(name: str) -> None:
    table = tables.TABLES[name]
    systems = [system.name for system in table.systems]
    assert len(set(systems)) == len(systems)
    assert {system.against for system in table.systems} <= set(systems)
    assert {one for claim in table.claims for one in claim.weights} <= set(systems)
    for scale in ("paper", "small"):
        for system in table.systems:
            arguments = tables.SCALES[scale]
            found = cell_of(system, arguments[tables.EVERY], arguments.get(system.recipe, {}), 1, "d")
            if system.recipe in RECIPES:
                found.build()


def test_published_averages_are_those_of_their_years() -> None:
    """The averages that the paper's figure 3 states beside the years."""
    stated = {"BGT": 73.1, "SP": 71.9, "BilingualTrans": 71.4, "BGT w/o Prior": 71.6, "EnglishAE": 65.7}
    for system, average in stated.items():
        numbers = [score for name, score in tables.MAIN_NUMBERS[system].items() if name.startswith("STS 2")]
        assert len(numbers) == 5
        assert sum(numbers) / 5 == pytest.approx(average, abs=0.1)
