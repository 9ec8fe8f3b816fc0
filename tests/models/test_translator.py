"""A translator's model: what it reads and writes, and what embeds a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bgt_core import recipes
from bgt_core.contracts import SEMANTIC, Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.translator import Translator
from bgt_core.recipes import Recipe
from tests.close import assert_close

SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 24, "heads": 2, "vocab_size": 400}


@pytest.fixture
def model(tokenizer: Tokenizer) -> Translator:
    torch.manual_seed(0)
    built = recipes.build("translator", SIZES | {"columns": ["fr", "en", "x:en", "de"]}).build(tokenizer)
    assert isinstance(built, Translator)
    return built.eval()


def test_the_first_column_is_read_and_the_others_are_written(model: Translator, batch: Batch) -> None:
    out = model(batch)  # English and French, in that order
    assert model.langs == ("fr",) and model.latents == (SEMANTIC,)
    assert list(model.decoders) == ["en", "de"]  # two columns of one language have one decoder
    assert [prediction.name for prediction in out.predictions] == ["translate/en"]
    assert out.predictions[0].role == "translate"
    sides = {**batch.sides, "x": batch.sides["en"]}
    assert [each.name for each in model(replace(batch, sides=sides)).predictions] == ["translate/en", "translate/x"]


def test_each_target_depends_on_its_own_source_alone(model: Translator, batch: Batch) -> None:
    before = model(batch).predictions[0].nll()[1]
    ids = batch.sides["fr"].ids.clone()
    ids[2, 0] += 1
    changed = Tokens.of(ids, batch.sides["fr"].mask, "fr")
    after = model(replace(batch, sides={**batch.sides, "fr": changed})).predictions[0].nll()[1]
    assert (before != after).tolist() == [row == 2 for row in range(len(batch))]


def test_a_sentence_is_embedded_as_the_mean_of_its_states(model: Translator, batch: Batch) -> None:
    side = batch.sides["fr"]
    states = model.states(side).states.split(side.mask.sum(1).tolist())
    expected = torch.stack([state.mean(0) for state in states])
    assert_close(model.encoder(SEMANTIC, "fr")(side).mean, expected)
    assert_close(model(batch).semantic["fr"].mean, expected)


def test_without_its_source_it_learns_nothing(model: Translator, batch: Batch, tiny: Callable[..., Recipe]) -> None:
    with pytest.raises(UsageError, match="columns en: each corpus needs the source column fr"):
        model(Batch({"en": batch.sides["en"]}, "en"))
