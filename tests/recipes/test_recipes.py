"""Tests that every recipe must pass; to add a recipe, name it in RECIPES and in TINY of conftest.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import bgt_core
from bgt_core import checkpoint, recipes
from bgt_core.contracts import LANGUAGE, SYNTACTIC, Batch
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, UsageError
from bgt_core.nets.output import PositionPrediction
from bgt_core.recipes import RECIPES, Recipe

Tiny = Callable[..., Recipe]

CLASSIFIERS = {"pair-classifier", "reference-classifier", "var-siamese"}  # tested where their stages are
FIRST_STAGES = [name for name in RECIPES if name not in CLASSIFIERS]
WIDTHS = {"d_model": "width|d_model"}  # nets call it their width
every_recipe = pytest.mark.parametrize("name", FIRST_STAGES)

ALL = ["reconstruct/en", "reconstruct/fr", "translate/en", "translate/fr"]
PREDICTIONS = {  # of what is not a plain BGT
    "bilingual-trans": ["translate/en", "translate/fr"],
    "english-trans": ["translate/fr"],
    "english-trans-lstm": ["translate/fr"],
    "english-ae": ["reconstruct/en"],
    "english-vae": ["reconstruct/en"],
    "english-vae-lstm": ["reconstruct/en"],
    "sp": [],
    "bilstm": [],
    "avg": [],
    "gran": [],
    "translator": ["translate/fr"],
    "var-siamese-repeat": ["reconstruct/en", "reconstruct/fr"],
    "var-siamese-reformulate": [f"{role}/{lang}" for role in ("paraphrase", "reconstruct") for lang in ("en", "fr")],
    "vgvae": [f"{role}/{lang}" for role in ("paraphrase", "position", "reconstruct") for lang in ("en", "fr")],
    "bgt-bound": ["recombine/en", "recombine/fr"],  # in training
    "writer": ["reconstruct/en", "reconstruct/fr"],
}
EMBEDDED_LANGS = {  # of what does not read both
    name: ["en"] for name in PREDICTIONS if name.startswith("english-") or name == "translator"
}
TERMS = {  # of what pays no KL
    **dict.fromkeys(("sp", "bilstm", "avg", "gran"), "margin"),
    "translator": "translate/fr",
    **dict.fromkeys(("vgvae", "var-siamese-repeat", "var-siamese-reformulate"), "kl/semantic/en"),
    "writer": "kl/en",
}
IN_BATCH = {"objective.margin.mined_only": False}
ABLATIONS = [
    ("bgt", {"tie_embeddings": True}),
    ("bgt", {"tie_embeddings": True, "fuse": ["word"]}),
    ("bgt", {"fuse": ["attention"], "encoder_layers": 3, "decoder_layers": 2}),
    ("bgt-plus", {"objective.margin.weight": 0.0, "objective.contrast.weight": 10.0, "free_nats.language": 3.0}),
    ("bgt-plus", {"prior": False}),
    ("bilingual-trans", {"prior": True}),
    ("english-trans-lstm", {"fuse": ["hidden"], "tie_embeddings": True}),
    ("english-trans-lstm", {"fuse": ["word", "hidden", "attention", "logit"], "decoder_layers": 2}),
    ("translator", {"encoder_layers": 2, "decoder_layers": 2, "tie_embeddings": False}),
    ("vgvae", IN_BATCH | {"model.decoder": "lstm", "model.syntactic_body": "lstm"}),
    ("vgvae", IN_BATCH | {"model.decoder": "lstm-without-previous-word", "model.semantic_body": "lstm"}),
    ("vgvae", IN_BATCH | {"model.syntactic_dim": 0}),
    ("bgt-bound", {"tag_dim": 4}),
    ("bgt-bound", {"train_rarity": True}),
]
WITHOUT_LANGUAGE = {*PREDICTIONS, "bgt-without-langvars"} - {"bgt-bound", "writer"}
WITHOUT_KL = {
    "bgt-without-prior",
    "bilingual-trans",
    "english-trans",
    "english-trans-lstm",
    "english-ae",
    "sp",
    "bilstm",
    "avg",
    "gran",
    "translator",
}


@every_recipe
def test_it_builds_and_makes_its_predictions(name: str, tiny: Tiny, tokenizer: Tokenizer, batch: Batch) -> None:
    recipe = tiny(name)
    assert recipe.name == name
    assert recipe.data.langs == ("en", "fr")
    model = recipe.build(tokenizer)
    out = model(batch)
    assert list(model.langs) == list(out.semantic) == EMBEDDED_LANGS.get(name, ["en", "fr"])
    assert sorted(prediction.name for prediction in out.predictions) == PREDICTIONS.get(name, ALL)
    for prediction in out.predictions:
        assert torch.equal(prediction.target.mask, batch.sides[prediction.target.lang].mask)
        if isinstance(prediction, PositionPrediction):
            continue
        assert prediction.logits().shape == (len(prediction.target.flat_index), tokenizer.vocab_size)
    for posterior in (*out.semantic.values(), *(posterior for _, posterior in out.named_posteriors())):
        assert posterior.mean.shape == posterior.rsample().shape
        assert posterior.kl().shape == (len(batch),)
        assert (posterior.kl() >= 0).all()
        assert posterior.kl().any() == (name not in WITHOUT_KL and posterior.mean.shape[1] > 0)


@pytest.mark.parametrize(("name", "arguments"), [*((name, {}) for name in FIRST_STAGES), *ABLATIONS])
def test_every_parameter_learns(
    name: str,
    arguments: dict[str, object],
    tiny: Tiny,
    tokenizer: Tokenizer,
    batch: Batch,
    stirred: Callable[[nn.Module], nn.Module],
) -> None:
    recipe = tiny(name, **arguments)
    torch.manual_seed(0)
    model = stirred(recipe.build(tokenizer))  # from the start itself a zero head would let nothing through
    loss = recipe.objective(model(batch), step=1_000_000)
    assert torch.isfinite(loss.total)
    assert set(loss.terms) >= {TERMS.get(name, "kl/semantic")}
    loss.total.backward()
    for path, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{path} gets no gradient"
        assert torch.isfinite(parameter.grad).all(), path
        assert parameter.grad.any(), f"the gradient of {path} is zero"


@every_recipe
def test_a_checkpoint_brings_it_back(
    name: str, tiny: Tiny, tokenizer: Tokenizer, batch: Batch, stirred: Callable[[nn.Module], nn.Module], tmp_path: Path
) -> None:
    recipe = tiny(name)
    torch.manual_seed(0)
    model = stirred(recipe.build(tokenizer)).eval()
    checkpoint.save(tmp_path / "model", recipe, model, tokenizer, step=3)
    loaded = checkpoint.load(tmp_path / "model")
    assert (loaded.recipe.name, loaded.recipe.data, loaded.config["step"]) == (name, recipe.data, 3)
    assert json.loads(json.dumps(recipe.arguments)) == json.loads(json.dumps(loaded.recipe.arguments))
    assert (loaded.recipe.objective, loaded.recipe.data, loaded.recipe.train) == (
        recipe.objective,
        recipe.data,
        recipe.train,
    )
    assert loaded.tokenizer.model == tokenizer.model
    results = []
    for each in (model, loaded.model.eval()):
        torch.manual_seed(1)
        results.append(recipe.objective(each(batch), step=10).total)
    assert torch.equal(*results)
    if name != "writer":
        assert_embeds(name, bgt_core.load(tmp_path / "model", "cpu", "fp32"))


def assert_embeds(name: str, model: bgt_core.Embedder) -> None:
    """In the languages and latents that the recipe has, and in no others."""
    assert list(model.langs) == EMBEDDED_LANGS.get(name, ["en", "fr"])
    assert (LANGUAGE in model.latents) == (name not in WITHOUT_LANGUAGE)
    for lang in model.langs:
        for latent in model.latents:
            vectors = model.embed(["one cat", "two dogs sleep", ""], lang=lang, latent=latent)
            assert vectors.shape == (3, model.width(lang, latent))
            assert np.isfinite(vectors).all()
            assert (vectors[0] != vectors[1]).any()
    for lang in {"en", "fr"} - {*model.langs}:
        with pytest.raises(BgtError, match=f"lang {lang}: this model has en"):
            model.embed(["un chat"], lang=lang)
    if name in WITHOUT_LANGUAGE:
        with pytest.raises(BgtError, match="latent language: this model has semantic"):
            model.embed(["one cat"], lang="en", latent=LANGUAGE)
    if name in WITHOUT_LANGUAGE and SYNTACTIC not in model.latents:
        with pytest.raises(BgtError, match="no latent for style"):
            bgt_core.generate(model, ["one cat"], ["two dogs"], lang="en")


@pytest.mark.parametrize("name", ["bgt", "sp", "vgvae"])
def test_its_arguments_are_named_in_errors(name: str) -> None:
    with pytest.raises(UsageError, match=rf"'{name}': no setting 'd_modle'\. Did you mean '(model\.)?d_model'\?"):
        recipes.build(name, {"d_modle": 3})
    with pytest.raises(UsageError, match=r"no setting 'train.'"):
        recipes.build(name, {"train.": 3})
    with pytest.raises(
        UsageError, match=r"'weight' is ambiguous: use objective\.elbo\.weight or objective\.margin\.weight"
    ):
        recipes.build("bgt", {"weight": 3.0})


@pytest.mark.parametrize("name", ["bgt-small", "sp"])
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("d_model", "wide"),
        ("d_model", 1.5),
        ("d_model", True),
        ("dropout", "a lot"),
        ("dropout", None),
        ("columns", "en,fr"),
        ("freeze", 3),
        ("learning_rate", float("nan")),
        ("epochs", float("inf")),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused(name: str, argument: str, value: object) -> None:
    with pytest.raises(BgtError, match=argument) as error:
        recipes.build(name, {argument: value})
    assert error.value.exit_code == 2


@pytest.mark.parametrize("name", ["bgt", "bgt-small", "english-vae-lstm", "sp", "vgvae", "var-siamese-repeat"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("readout", "median"),
        ("heads", 3),
        ("heads", 0),
        ("d_model", 0),
        ("d_model", -8),
        ("d_model", 15),
        ("dropout", 1.0),
        ("dropout", -0.5),
        ("epochs", -1.0),
        ("cooldown", 1.5),
        ("columns", []),
        ("columns", ["en", "en"]),
        ("columns", ["English"]),
        ("columns", ["en", "to"]),
    ],
)
def test_a_value_that_makes_no_model_is_refused(
    name: str, setting: str, value: object, tiny: Tiny, tokenizer: Tokenizer
) -> None:
    settings = dict(tiny(name).arguments or {})
    if not any(known.endswith(f".{setting}") for known in settings):
        pytest.skip(f"{name} has no {setting}")
    if setting == "heads" and settings.get("model.body") == "lstm":
        pytest.skip("heads are the Transformer's")
    if (setting, value) == ("d_model", 15) and (name in ("sp", "avg", "gran", "vgvae") or "siamese" in name):
        pytest.skip("token vectors may have any width")
    with pytest.raises(UsageError, match=WIDTHS.get(setting, setting)):
        tiny(name, **{setting: value}).build(tokenizer)


@pytest.mark.parametrize(
    "name",
    [
        "bilingual-trans",
        "english-trans",
        "sp",
        "bilstm",
        "avg",
        "gran",
        "translator",
        "vgvae",
        "var-siamese-reformulate",
    ],
)
def test_what_pairs_columns_needs_two(name: str, tiny: Tiny, tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="columns en"):
        tiny(name, columns=["en"]).build(tokenizer)


def test_an_unknown_recipe_is_named_with_its_nearest() -> None:
    with pytest.raises(BgtError, match=r"'bgt-smal'.*'bgt-small'") as error:
        recipes.build("bgt-smal", {})
    assert error.value.exit_code == 2


def test_overrides_are_json_or_words() -> None:
    loaded = recipes.parse_overrides(["d_model=128", "readout=mean", "dropout=0.5", 'columns=["en","de"]', "name=a=b"])
    assert loaded == {"d_model": 128, "readout": "mean", "dropout": 0.5, "columns": ["en", "de"], "name": "a=b"}


@pytest.mark.parametrize("text", ["width", "=3", "width=", ""])
def test_an_override_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(BgtError, match="NAME=VALUE") as error:
        recipes.parse_overrides([text])
    assert error.value.exit_code == 2


@pytest.mark.parametrize("name", ["bgt", "bgt-small", "vgvae"])
def test_a_step_waits_for_no_device(name: str, tiny: Tiny, tokenizer: Tokenizer, batch: Batch) -> None:
    """On torch's meta device tensors hold no values: whatever would fetch one from a GPU fails."""
    recipe = tiny(name)
    model = recipe.build(tokenizer).to("meta").train()
    loss = recipe.objective(model(batch.to("meta")), 3)
    (loss.total / 7).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert all(parameter.grad.is_meta for parameter in model.parameters())
    with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
        loss.total.item()
