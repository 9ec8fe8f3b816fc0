"""Checkpoints, runs and token stores of format 1: from before settings were nested and columns had names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bgt_core
from bgt_core import checkpoint, recipes, run
from bgt_core.data.corpus import Corpus, open_corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError
from bgt_core.recipes import RECIPES, legacy

DATA = {"vocab_size": 400, "lowercase": True, "min_pieces": 2, "max_pieces": 100, "valid_pairs": 20}
TRAIN = {
    "epochs": 1.0,
    "batch_tokens": 600,
    "micro_tokens": 400,
    "learning_rate": 0.01,
    "warmup_steps": 5,
    "cooldown": 0.4,
    "precision": "auto",
    "seed": 1,
}
SMALL: dict[str, Any] = {  # all that a checkpoint of bgt-small said of itself
    "langs": ["en", "fr"],
    "width": 16,
    "semantic": 12,
    "language": 6,
    "language_layers": 1,
    "decoder_layers": 1,
    "inner": 24,
    "heads": 2,
    "dropout": 0.1,
    "word_dropout": 0.2,
    "read": "sample",
    "log_variance": -3.0,
    "kl_warmup": 10,
    "semantic_weight": 0.01,
    "language_weight": 0.4,
    "label_smoothing": 0.1,
    "margin": 0.6,
    "margin_weight": 200.0,
    "weight_decay": 0.0001,
    "valid_every": 5,
    "save_every": 2,
    **DATA,
    **TRAIN,
}
NETS = {
    "langs": ["en", "fr"],
    "width": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "inner": 24,
    "heads": 2,
    "dropout": 0.1,
}
BGT = NETS | {
    "fuse": ["attention", "logit"],
    "prior": True,
    "language_latents": True,
    "share": False,
    "word_dropout": 0.0,
    "average": False,
    "read": "mean",
    "log_variance": 0.0,
    "kl_warmup": 65_536,
    "semantic_weight": 1.0,
    "language_weight": 0.5,
    "language_free_nats": 3.0,
    "label_smoothing": 0.1,
    "margin": 0.4,
    "margin_weight": 0.0,
    "temperature": 0.05,
    "contrast_weight": 1.0,
    "inner_steps": 0,
}
SEQ2SEQ = NETS | {
    "task": "translate",
    "body": "transformer",
    "fuse": ["logit"],
    "prior": False,
    "share": True,
    "read": "sample",
    "log_variance": 0.0,
    "kl_warmup": 65_536,
    "semantic_weight": 1.0,
    "label_smoothing": 0.1,
    "inner_steps": 0,
}
SIAMESE = {
    "langs": ["en", "fr"],
    "body": "average",
    "width": 16,
    "encoder_layers": 1,
    "dropout": 0.0,
    "margin": 0.4,
    "mega_batch": 60,
    "mega_growth": 150,
    "scramble": 0.3,
}


def old_settings(name: str) -> dict[str, Any]:
    """What a checkpoint of that recipe held."""
    if name == "bgt-small":
        return SMALL
    family = BGT if name.startswith(("bgt", "random")) else SIAMESE if name in ("sp", "bilstm") else SEQ2SEQ
    body = {"body": "lstm"} if "lstm" in name else {}
    return family | body | DATA | TRAIN


@pytest.mark.parametrize(
    "name",
    sorted(
        set(RECIPES)
        - {"bgt-bound", "pair-classifier", "reference-classifier", "avg", "gran", "translator", "vgvae"}
        - {"var-siamese-repeat", "var-siamese-reformulate", "var-siamese"}
    ),  # the younger ones
)
def test_every_old_setting_has_a_place(name: str, tokenizer: Tokenizer) -> None:
    old = old_settings(name)
    recipe = recipes.build(name, legacy.convert(old))
    recipe.build(tokenizer)
    arguments = recipe.arguments or {}
    for setting, value in old.items():
        value = tuple(value) if isinstance(value, list) else value
        assert arguments[legacy.RENAMED[setting]] == value, setting
    assert recipe.data.columns == ("en", "fr")


@pytest.fixture
def old(saved: Path, tmp_path: Path) -> Path:
    """The checkpoint `saved` as it was written in format 1."""
    folder = Path(shutil.copytree(saved, tmp_path / "old"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"format": 1, "arguments": SMALL}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def test_a_checkpoint_of_format_1_loads(old: Path, saved: Path) -> None:
    model, new = (bgt_core.load(folder, "cpu", "fp32") for folder in (old, saved))
    assert checkpoint.info(old)["format"] == checkpoint.FORMAT
    assert checkpoint.info(old)["arguments"]["model.d_model"] == 16
    assert model.fingerprint == new.fingerprint
    for lang in model.langs:
        for latent in model.latents:
            vectors = (each.embed(["one cat", "two dogs sleep"], lang=lang, latent=latent) for each in (model, new))
            assert np.array_equal(*vectors)


def test_a_second_stage_starts_from_a_checkpoint_of_format_1(old: Path, saved: Path, tsv: Path, tmp_path: Path) -> None:
    settings = {"train.epochs": 0.0, "data.valid_pairs": 20}
    folder = run.train("bgt-small", [tsv], tmp_path / "run", init_from=old, overrides=settings, device="cpu")
    assert (folder / "model.safetensors").read_bytes() == (saved / "model.safetensors").read_bytes()


def test_an_old_checkpoint_with_an_unknown_setting_is_refused(old: Path) -> None:
    config = json.loads((old / "config.json").read_text("utf-8"))
    config["arguments"] = SMALL | {"depth": 3}
    (old / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(DataError, match=r"config\.json: .*no setting 'depth'"):
        bgt_core.load(old)


def to_format_1(folder: Path) -> None:
    """Describe a token store as before columns had names."""
    store = json.loads((folder / "store.json").read_text("utf-8"))
    columns = store["settings"].pop("columns")
    store["settings"] |= {"format": 1, "langs": list(columns)}
    del store["target_width"]
    (folder / "store.json").write_text(json.dumps(store), "utf-8")


def test_a_store_of_format_1_opens_and_is_used_again(tsv: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    options: dict[str, Any] = {"min_pieces": 2, "valid_pairs": 20, "seed": 1}
    corpus = prepare([tsv], ["en", "fr"], tokenizer, tmp_path / "store", **options)
    assert isinstance(corpus, Corpus)
    rows = np.arange(5)
    before = [ids.tolist() for column in corpus.columns for ids in corpus.take(column, rows)]
    to_format_1(tmp_path / "store")
    old = open_corpus(tmp_path / "store")
    assert isinstance(old, Corpus)
    assert old.columns == {"en": "en", "fr": "fr"}
    assert [ids.tolist() for column in old.columns for ids in old.take(column, rows)] == before
    assert old.labels(rows) is None and old.targets(rows) is None
    again = prepare([tsv], ["en", "fr"], tokenizer, tmp_path / "store", **options)
    assert len(again) == len(corpus)


def test_a_run_begun_in_format_1_continues_to_the_same_weights(tsv: Path, tmp_path: Path) -> None:
    recipe = recipes.build("bgt-small", legacy.convert(SMALL))
    last = run.train(recipe, [tsv], tmp_path / "run", device="cpu")
    out = Path(shutil.copytree(tmp_path / "run", tmp_path / "old"))
    first, newest = checkpoint.steps_of(out)
    shutil.rmtree(newest)
    to_format_1(out / "data")
    (out / "run.json").write_text(json.dumps({"recipe": "bgt-small", "arguments": SMALL, "data": [str(tsv)]}), "utf-8")
    config = json.loads((first / "config.json").read_text("utf-8"))
    (first / "config.json").write_text(json.dumps(config | {"format": 1, "arguments": SMALL}), "utf-8")
    assert run.resume(out, device="cpu").name == last.name
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (newest / name).read_bytes() == (last / name).read_bytes()
    assert checkpoint.read_config(newest) == checkpoint.read_config(last)


@pytest.mark.parametrize("folder", sorted(bgt_core.PRETRAINED.parent.iterdir()), ids=lambda folder: folder.name)
def test_the_models_that_ship_are_converted(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["format"] == checkpoint.FORMAT
    recipe = recipes.build(config["recipe"], config["arguments"])
    settings = json.loads(json.dumps(dict(recipe.arguments or {})))
    assert config["arguments"].items() <= settings.items()
    assert set(settings) - set(config["arguments"]) <= {
        "data.character_coverage",
        "train.micro_batches",
        "train.explosion",
        "train.composition_l2",
        "train.table_l2",
        "train.sampling_temperature",
        "train.kind_weights",
        "model.composed_dim",
        "model.composed_dropout",
        "model.composed_layers",
        "model.composed_share",
        "model.tag_dim",
        "model.teacher_dim",
        "model.train_decoders",
        "model.train_rarity",
        "objective.distillation.weight",
        "objective.margin.both_sides",
        "objective.margin.mined_only",
        "objective.elbo.sigmoid_midpoint",
        "objective.elbo.sigmoid_steepness",
        "train.mega_batch_start",
    }  # younger than the model
    assert config["card"]["scores"]
