"""Every recipe must pass these tests; wrong settings raise errors. `TINY` in conftest.py must have every recipe."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import bgt_core
from bgt_core import checkpoint, recipes
from bgt_core.backend import pick_device
from bgt_core.contracts import LANGUAGE, SYNTACTIC, Batch
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, UsageError
from bgt_core.recipes import RECIPES, Recipe

Tiny = Callable[..., Recipe]

CLASSIFIERS = {"pair-classifier", "reference-classifier", "var-siamese"}  # these recipes are trained by other tests
FIRST_STAGES = [name for name in RECIPES if name not in CLASSIFIERS]
MARGIN = ("sp", "bilstm", "avg", "gran")


# Recipes of models that embed only English, and recipes of models without a language latent.
ENGLISH = {"english-trans", "english-trans-lstm", "english-ae", "english-vae", "english-vae-lstm", "translator"}
WITHOUT_LANGUAGE = {*MARGIN, *ENGLISH, "bilingual-trans", "bgt-without-langvars", "vgvae"}
WITHOUT_LANGUAGE |= {"var-siamese-repeat", "var-siamese-reformulate"}
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
    model = stirred(recipe.build(tokenizer))  # without noise, output layers of zeros would pass no gradient on
    loss = recipe.objective(model(batch), step=1_000_000)
    assert torch.isfinite(loss.total)
    loss.total.backward()
    for path, parameter in model.named_parameters():
        assert parameter.grad is not None, f"{path} gets no gradient"
        assert torch.isfinite(parameter.grad).all(), path
        assert parameter.grad.any(), f"the gradient of {path} is zero"


@pytest.mark.parametrize("name", FIRST_STAGES)
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
    assert (loaded.recipe.objective, loaded.recipe.train) == (recipe.objective, recipe.train)
    assert loaded.tokenizer.model == tokenizer.model
    results = []
    for each in (model, loaded.model.eval()):
        torch.manual_seed(1)
        results.append(recipe.objective(each(batch), step=10).total)
    assert torch.equal(*results)
    if name != "writer":
        assert_embeds(name, bgt_core.load(tmp_path / "model", "cpu", "fp32"))


def assert_embeds(name: str, model: bgt_core.Embedder) -> None:
    """Check that the model embeds in the languages and latents of its recipe, and in no others."""
    assert list(model.langs) == (["en"] if name in ENGLISH else ["en", "fr"])
    assert (LANGUAGE in model.latents) == (name not in WITHOUT_LANGUAGE)
    for lang in model.langs:
        for latent in model.latents:
            vectors = model.embed(["one cat", "two dogs sleep", ""], lang=lang, latent=latent)
            assert vectors.shape == (3, model.width(lang, latent))
            assert np.isfinite(vectors).all()
            assert (vectors[0] != vectors[1]).any()
    for lang in {"en", "fr"} - {*model.langs}:
        with pytest.raises(BgtError, match=f"lang {lang}: this model supports en"):
            model.embed(["un chat"], lang=lang)
    if name in WITHOUT_LANGUAGE:
        with pytest.raises(BgtError, match="latent language: this model has only semantic"):
            model.embed(["one cat"], lang="en", latent=LANGUAGE)
    if name in WITHOUT_LANGUAGE and SYNTACTIC not in model.latents:
        with pytest.raises(BgtError, match="no latent for style"):
            bgt_core.generate(model, ["one cat"], ["two dogs"], lang="en")


def test_unknown_and_ambiguous_names_are_refused_with_the_nearest() -> None:
    for name, settings, message in (
        ("bgt-smal", {}, r"'bgt-smal'.*'bgt-small'"),
        ("sp", {"d_modle": 3}, r"'sp': no setting 'd_modle'\. Did you mean '(model\.)?d_model'\?"),
        ("sp", {"train.": 3}, "no setting 'train.'"),
        ("bgt", {"weight": 3.0}, r"ambiguous: use objective\.elbo\.weight or objective\.margin\.weight"),
    ):
        with pytest.raises(UsageError, match=message):
            recipes.configure(name, settings)


@pytest.mark.parametrize(
    ("setting", "value"),
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
        ("epochs", -1.0),
        ("batch_tokens", 0),
        ("micro_tokens", -1),
        ("learning_rate", 0.0),
        ("train.warmup_steps", -1),
        ("scramble", 1.1),
        ("scramble", -0.1),
        ("save_every", 0),
        ("precision", "fp8"),
    ],
)
def test_a_value_of_a_wrong_kind_or_out_of_range_is_refused(setting: str, value: object) -> None:
    with pytest.raises(UsageError, match=setting.removeprefix("train.")):
        recipes.configure("bgt-small", {setting: value})


@pytest.mark.parametrize("name", ["bgt", "bgt-small", "english-vae-lstm", "sp", "vgvae", "var-siamese-repeat"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("readout", "median"),
        ("heads", 3),
        ("heads", 0),
        ("d_model", 0),
        ("d_model", 15),
        ("dropout", 1.0),
        ("dropout", -0.5),
        ("columns", []),
        ("columns", ["en", "en"]),
        ("columns", ["English"]),
        ("columns", ["en", "to"]),
    ],
)
def test_a_value_that_makes_no_model_is_refused(
    name: str, setting: str, value: object, tiny: Tiny, tokenizer: Tokenizer
) -> None:
    settings = tiny(name).arguments
    any_width = name in ("sp", "vgvae", "var-siamese-repeat") and (setting, value) == ("d_model", 15)
    lstm_heads = setting == "heads" and settings.get("model.body") == "lstm"
    if any_width or lstm_heads or not any(known.endswith(f".{setting}") for known in settings):
        return
    with pytest.raises(UsageError, match="width|d_model" if setting == "d_model" else setting):
        tiny(name, **{setting: value}).build(tokenizer)


@pytest.mark.parametrize(
    "name", [*MARGIN, "bilingual-trans", "english-trans", "translator", "vgvae", "var-siamese-reformulate"]
)
def test_recipes_that_pair_columns_need_two(name: str, tiny: Tiny, tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="columns en"):
        tiny(name, columns=["en"]).build(tokenizer)


def test_overrides_are_json_or_words() -> None:
    loaded = recipes.parse_overrides(["d_model=128", "readout=mean", "dropout=0.5", 'columns=["en","de"]', "name=a=b"])
    assert loaded == {"d_model": 128, "readout": "mean", "dropout": 0.5, "columns": ["en", "de"], "name": "a=b"}
    for text in ("width", "=3", "width=", ""):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            recipes.parse_overrides([text])


@pytest.mark.parametrize("name", ["bgt", "bgt-small", "vgvae"])
def test_a_step_waits_for_no_device(name: str, tiny: Tiny, tokenizer: Tokenizer, batch: Batch) -> None:
    """Code that needs a tensor's value waits for the GPU, and fails on torch's meta device, which has no values."""
    recipe = tiny(name)
    model = recipe.build(tokenizer).to("meta").train()
    loss = recipe.objective(model(batch.to("meta")), 3)
    (loss.total / 7).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert all(parameter.grad.is_meta for parameter in model.parameters())
    with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
        loss.total.item()


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "meta"])
def test_an_unknown_device_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}': expected auto, cpu, cuda"):
        pick_device(name)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("native", [{}, {"avx512_bf16": True}, {"amx_bf16": True}])
def test_bf16_on_a_processor_without_it_warns_once(
    saved: Path, native: dict[str, bool], monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    for limit in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"):
        monkeypatch.delenv(limit, raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: native)
    assert bgt_core.load(saved, "cpu").precision == ("bf16" if native else "fp32")
    assert not recwarn
    bgt_core.load(saved, "cpu", "bf16").embed(["one"] * 3, lang="en")
    warned = [str(each.message) for each in recwarn]
    assert len(warned) == (not native) and all("no bf16 instructions" in line for line in warned)
