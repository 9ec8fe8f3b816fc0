"""A writer generates text from another encoder's vectors: its decoders get the right vectors and drafts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bgt_core.contracts import EOS, Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.generation.options import Beam
from bgt_core.generation.search import n_best
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.layers import make_embedding
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import TiedOutput
from bgt_core.recipes import Recipe
from bgt_core.recipes.writer import LENGTH, LinearMemory, StoredVector, VectorWriter
from tests.close import assert_close

UNITS = 12


@pytest.fixture
def build(tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> Callable[..., VectorWriter]:
    """build(columns, **settings): make a small writer, which by default corrects drafts."""

    def make(columns: tuple[str, ...] = ("en", "draft_en:en"), **settings: Any) -> VectorWriter:
        torch.manual_seed(0)
        sizes = {"vector_dim": UNITS, "dropout": 0.0, "word_dropout": 0.0, "d_model": 32, "draft_layers": 1}
        return tiny("writer", columns=[*columns], **sizes | settings).build(tokenizer)  # type: ignore[return-value]

    return make


@pytest.fixture
def model(build: Callable[..., VectorWriter]) -> VectorWriter:
    return build(("en", "fr"), hidden_share=0.5)


@pytest.fixture
def vectors() -> torch.Tensor:
    """Vectors for six rows and two columns, with a mean that is not 0 and lengths that are not 1."""
    return 3 + 5 * torch.randn(6, 2 * UNITS, generator=torch.Generator().manual_seed(1))


def test_vectors_are_standardised_and_the_prior_mean_is_zero(model: VectorWriter, vectors: torch.Tensor) -> None:
    rows = vectors.view(-1, UNITS)
    model.stored.fit(rows)
    standard = model.stored.standardise(rows).numpy()
    assert np.abs(standard.mean(0)).max() < 1e-5 * LENGTH
    assert np.sqrt((standard**2).sum(1).mean()) == pytest.approx(LENGTH, rel=1e-5)
    style = torch.ones(12, 6)
    joined = model.join({"language": style, "semantic": model.prior_mean("semantic", rows)})
    assert torch.equal(joined, torch.cat([style, torch.zeros(12, UNITS)], 1))
    assert not model.prior_mean("language", style).any()


def test_each_column_is_written_from_its_own_vector(model: VectorWriter, vectors: torch.Tensor, batch: Batch) -> None:
    """For each column, the decoder gets the row's vector of this column, and the language latent."""
    model.stored.fit(vectors.view(-1, UNITS))
    model.eval()
    out = model(replace(batch, targets=vectors), lambda posterior: posterior.mean)
    for number, (lang, prediction) in enumerate(zip(batch.sides, out.predictions, strict=True)):
        side = batch.sides[lang]
        own = vectors[:, number * UNITS : (number + 1) * UNITS]
        joined = model.join({"language": model.encoders[lang](side).mean, "semantic": own})
        expected = model.decoder(lang)("reconstruct", lang, joined, side)
        assert torch.equal(prediction.nll()[1], expected.nll()[1])
    without = model(batch, lambda posterior: posterior.mean)
    assert all(not posterior.mean.any() for posterior in without.semantic.values())


def test_latents_are_hidden_in_training_alone(model: VectorWriter) -> None:
    latent = torch.ones(4_000, 3)
    torch.manual_seed(0)
    kept = model.train().hidden(latent)
    assert set(kept.sum(1).tolist()) == {0.0, 3.0}
    assert float(kept[:, 0].mean()) == pytest.approx(0.5, abs=0.03)
    assert torch.equal(model.eval().hidden(latent), latent)


def test_tokens_without_vectors_and_an_invalid_share_are_refused(
    model: VectorWriter, batch: Batch, build: Callable[..., VectorWriter]
) -> None:
    with pytest.raises(UsageError, match=r"vectors of baseline:words.*bgt_core\.open_encoder"):
        model.encoder("semantic", "en")(batch.sides["en"])
    with pytest.raises(UsageError, match=r"hidden_share 1\.0"):
        build(hidden_share=1.0)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e30])
def test_vectors_of_any_scale_are_standardised_alike(scale: float) -> None:
    vectors = torch.randn(50, 12, generator=torch.Generator().manual_seed(0)) + 0.5
    plain, scaled = StoredVector(12, 0.0, "x"), StoredVector(12, 0.0, "x")
    plain.fit(vectors)
    scaled.fit(vectors * scale)
    assert_close(scaled.standardise(vectors * scale), plain.standardise(vectors))
    assert plain.standardise(vectors).square().sum(1).mean().sqrt() == pytest.approx(LENGTH, rel=1e-5)


Stir = Callable[[nn.Module], nn.Module]
TEXT = [[20, 21, EOS], [30, 31, 32, 33, EOS], [40, EOS]]
DRAFTS = [[20, 25, 26, EOS], [30, 31, EOS], [41, 42, 43, 44, 45, EOS]]


def batch(rows: slice = slice(None)) -> Batch:
    """Make a batch of texts and drafts, with the vectors of both."""
    vectors = torch.randn(3, 2 * UNITS, generator=torch.Generator().manual_seed(1))
    sides = {"en": Tokens.pad(TEXT[rows], "en"), "draft_en": Tokens.pad(DRAFTS[rows], "en")}
    return Batch(sides, anchor="en", targets=vectors[rows])


def nats(model: VectorWriter, given: Batch) -> np.ndarray:
    """Return the NLL of each row's text, the only prediction, because drafts are only inputs."""
    (prediction,) = model.eval()(given, lambda posterior: posterior.mean).predictions
    assert prediction.name == "reconstruct/en"
    return np.asarray(prediction.nll()[1].detach())


def test_a_text_depends_on_its_own_draft_and_on_the_draft_s_vector(build: Callable[..., VectorWriter]) -> None:
    model = build()
    assert model.reader is not None
    (prediction,) = model(batch()).predictions
    prediction.nll()[0].backward()
    assert all(parameter.grad.any() for parameter in model.reader.parameters())
    together = nats(model, batch())
    np.testing.assert_allclose(together, [nats(model, batch(slice(row, row + 1)))[0] for row in range(3)], rtol=1e-4)
    whole = batch()
    alone = Batch({"en": whole.sides["en"]}, "en", targets=whole.targets[:, :UNITS])
    assert (np.abs(together - nats(model, alone)) > 1e-4).all()
    moved = whole.targets.clone()
    moved[1, UNITS:] += 1  # the vector of one draft changes
    changed = np.abs(nats(model, Batch(whole.sides, "en", targets=moved)) / together - 1) > 1e-5
    assert changed.tolist() == [False, True, False]


def test_without_drafts_it_is_the_writer_it_started_from(build: Callable[..., VectorWriter]) -> None:
    model, plain = build(), build(("en",))
    missing, unexpected = plain.load_state_dict(model.state_dict(), strict=False)
    assert not missing and all(name.startswith("reader.") for name in unexpected)
    alone = Batch({"en": batch().sides["en"]}, "en", targets=batch().targets[:, :UNITS])
    np.testing.assert_array_equal(nats(model, alone), nats(plain, alone))
    with pytest.raises(UsageError, match="was trained without drafts; train one with a column such as draft_en"):
        plain.drafted({}, batch().sides["draft_en"], torch.zeros(3, UNITS))


def test_a_search_scores_its_texts_as_training_does(build: Callable[..., VectorWriter]) -> None:
    model = build().eval()
    vectors, of_drafts = batch().targets.split(UNITS, dim=1)
    latents = {"language": torch.zeros(3, 6), "semantic": vectors}
    with torch.no_grad():
        beams = n_best(model.decoder("en"), model.drafted(latents, batch().sides["draft_en"], of_drafts), Beam(3), 3, 5)
        for row, hypotheses in enumerate(beams):
            ended = [each for each in hypotheses if len(each.tokens) < 5]  # longer texts were cut off before EOS
            for each in ended:
                one = {name: latent[row : row + 1] for name, latent in latents.items()}
                context = model.drafted(one, Tokens.pad([DRAFTS[row]], "en"), of_drafts[row : row + 1])
                target = Tokens.pad([[*each.tokens, EOS]], "en")
                expected = model.decoder("en")("reconstruct", "en", context, target).nll()[1]
                assert float(expected) == pytest.approx(-each.mean * (len(each.tokens) + 1), rel=1e-5)


@pytest.mark.parametrize("columns", [("en", "draft_fr:fr"), ("en", "fr", "draft_en:fr")])
def test_drafts_of_a_missing_column_are_refused(build: Callable[..., VectorWriter], columns: tuple[str, ...]) -> None:
    draft, _, lang = columns[-1].partition(":")
    with pytest.raises(UsageError, match=f"{draft}: has drafts of the missing column {draft[6:]}:{lang}; add it"):
        build(columns)


def test_a_linear_memory_is_one_product_for_each_slot_and_one_for_all_tokens(stirred: Stir) -> None:
    memory, latent = stirred(LinearMemory(5, 8, 3)).double(), torch.randn(2, 5, dtype=torch.float64)
    slots = memory.states(latent)
    assert slots.shape == (2, 3, 8)
    for number in range(3):
        rows = slice(8 * number, 8 * number + 8)
        assert_close(slots[:, number], latent @ memory.slot.weight[rows].T + memory.slot.bias[rows])
    layout = PackedLayout.of(Tokens.pad([[4, 5, EOS], [6, EOS]], "en"))
    own = latent @ memory.own.weight.T + memory.own.bias
    assert_close(memory.at(latent, layout.columns, layout), own[[0, 0, 0, 1, 1]])


def test_a_decoder_with_a_linear_memory_gives_the_same_scores_step_by_step(stirred: Stir) -> None:
    """Logits equal those of teacher forcing. Gradients stay small even if the latent is 0 and all words are hidden."""
    table = make_embedding(20, 8)
    decoder = TransformerDecoder(table, TiedOutput(table, 5), 5, 2, 8, 2, 0.0, memory=LinearMemory(5, 8, 3))
    dropped = Tokens.pad([[4, 5, EOS]], "en")
    decoder.word_dropout = 1.0
    decoder("reconstruct", "en", torch.zeros(1, 5), dropped).nll()[0].backward()
    assert max(float(each.grad.abs().max()) for each in decoder.parameters() if each.grad is not None) < 1e3
    decoder, latent = stirred(decoder).double().eval(), torch.randn(1, 5, dtype=torch.float64)
    expected = decoder("reconstruct", "en", latent, dropped).logits()
    state = decoder.start(latent)
    steps = [decoder.step(torch.tensor([[token]]), state)[0, 0] for token in (EOS, 4, 5)]
    assert_close(torch.stack(steps), expected)
