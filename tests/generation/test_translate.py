"""Translations of an untrained model, whose costs equal those of teacher forcing."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import bgt_core
from bgt_core import checkpoint, recipes
from bgt_core.contracts import BOS, EOS, PAD, UNK, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.generation.options import Beam
from bgt_core.generation.search import n_best
from bgt_core.generation.translate import BeamTranslator
from bgt_core.grammar import Pair

SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 24, "heads": 2, "vocab_size": 400}
LENGTH = 12  # tokens of a source, and of a translation


@pytest.fixture(scope="module")
def folder(
    tokenizer: Tokenizer, stirred: Callable[[nn.Module], nn.Module], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A translator from French to English and German. Its probabilities are flat, so that sentences end early."""
    torch.manual_seed(0)
    recipe = recipes.configure("translator", SIZES | {"columns": ["fr", "en", "de"]})
    model = stirred(recipe.build(tokenizer))
    path = tmp_path_factory.mktemp("translator") / "model"
    checkpoint.save(path, recipe, model, tokenizer, step=1)  # type: ignore[arg-type]
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> bgt_core.Embedder:
    return bgt_core.load(folder, "cpu", "fp32")


@pytest.fixture(scope="module")
def french(grammar: list[Pair], tokenizer: Tokenizer) -> list[str]:
    texts = [pair.texts["fr"] for pair in grammar]
    short = [text for text, ids in zip(texts, tokenizer.encode(texts), strict=True) if len(ids) <= LENGTH + 1]
    assert len({len(text) for text in short[:9]}) > 3
    return short[:9]


def cost(model: bgt_core.Embedder, source: str, tokens: list[int]) -> float:
    """Return the nats per token by teacher forcing; tokens that are never generated are excluded."""
    side = Tokens.pad(model.tokenizer.encode([source]), "fr")
    target = Tokens.pad([tokens], "en")
    scores = model.model.decoder("en")("translate", "en", model.model.states(side), target).logits().detach()
    scores[:, [PAD, UNK, BOS]] = -torch.inf
    scores[0, EOS] = -torch.inf
    return -scores.log_softmax(-1)[range(len(tokens)), tokens].mean().item()


def test_translations_are_the_cheapest_first_each_with_its_cost(model: bgt_core.Embedder, french: list[str]) -> None:
    """Every text of the beam has the cost, by teacher forcing, of its cheapest tokenization."""
    written = BeamTranslator(model, beam=6, count=4, max_length=LENGTH).translate(french)
    for source, translations in zip(french, written, strict=True):
        states = model.model.states(Tokens.pad(model.tokenizer.encode([source]), "fr"))
        (hypotheses,) = n_best(model.model.decoder("en"), states, Beam(6), 6, LENGTH)
        expected: dict[str, float] = {}
        for tokens in [each.tokens + [EOS] * (len(each.tokens) < LENGTH) for each in hypotheses]:
            (text,) = model.tokenizer.decode([tokens])
            expected[text] = min(cost(model, source, tokens), expected.get(text, math.inf))
        best = sorted(expected.items(), key=lambda pair: pair[1])[:4]
        assert [each.text for each in translations] == [text for text, _ in best]
        assert [each.cost for each in translations] == pytest.approx([value for _, value in best], rel=1e-5)
    assert {len(translations) for translations in written} == {4}


def test_an_empty_or_long_sentence_has_no_translation(model: bgt_core.Embedder, french: list[str]) -> None:
    (length,) = map(len, model.tokenizer.encode(french[:1]))
    long = " ".join(french[:2])
    written = BeamTranslator(model, max_length=length - 1).translate(["", french[0], " ", long])
    assert [len(each) for each in written] == [0, 1, 0, 0]
    assert [len(each) for each in BeamTranslator(model, max_length=length - 2).translate(french[:1])] == [0]
    assert BeamTranslator(model).translate([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lang": "es"}, "translates fr to en or de, not fr to es"),
        ({"source_lang": "en", "lang": "de"}, "translates fr to en or de, not en to de"),
        ({"count": 6}, "count 6: expected"),
        ({"count": 0}, "count 0: expected"),
        ({"max_length": 0}, "max_length 0 must be at least 1"),
    ],
)
def test_wrong_options_of_a_translator_are_refused(model: bgt_core.Embedder, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BeamTranslator(model, **options)


def test_a_translator_translates_but_has_no_latent_for_style(model: bgt_core.Embedder, saved: Path) -> None:
    with pytest.raises(UsageError, match="does not translate: use a model of `bgt train translator`"):
        BeamTranslator(bgt_core.load(saved, "cpu"))
    with pytest.raises(UsageError, match="no latent for style"):
        bgt_core.generate(model, ["a"], ["b"], lang="fr")
    assert model.embed(["un chat"], lang="fr").shape == (1, 16)
    with pytest.raises(UsageError, match="lang en: "):
        model.embed(["one cat"], lang="en")
