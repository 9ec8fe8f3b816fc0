"""In a BGT of fake networks, each prediction uses the right latents, the loss is right, and the translator works."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core import recipes
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Role, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.nets.output import SentencePrediction
from bgt_core.posterior import READOUTS, Gaussian
from bgt_core.recipes import Recipe
from bgt_core.recipes.bgt import Seq2Seq, Seq2SeqConfig
from bgt_core.recipes.paraphrastic import Translator
from tests.close import assert_close

NUMBER = {"en": 1.0, "fr": 2.0, "de": 3.0}


class Reads(nn.Module):
    """A stub encoder, whose latents have two units, both equal to the language's `NUMBER`."""

    def forward(self, side: Tokens) -> Gaussian:
        mean = torch.full((len(side.ids), 2), NUMBER[side.lang])
        return Gaussian(mean, torch.full_like(mean, -2.0))


class EchoDecoder(nn.Module):
    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        return SentencePrediction(role, column, torch.zeros(0), latent, None, target)  # type: ignore[arg-type]


def run(role: Role, sources: str, targets: str, columns: str = "en fr", anchor: str = "en", shift: int = 1) -> Outputs:
    decoders = {lang: EchoDecoder() for lang in targets.split()}
    model = Seq2Seq(Reads(), decoders, {lang: lang for lang in sources.split()}, role, READOUTS["mean"])
    return model(Batch({lang: Tokens.pad([[5, 3]] * 4, lang) for lang in columns.split()}, anchor, shift))


@pytest.mark.parametrize(
    ("role", "sources", "targets", "columns", "shift", "latents"),
    [
        ("translate", "en fr", "en fr", "en fr", 1, {"translate/en": 2, "translate/fr": 1}),
        ("translate", "en", "fr", "en fr", 1, {"translate/fr": 1}),
        ("reconstruct", "en", "en", "en fr", 1, {"reconstruct/en": 1}),
        ("translate", "en fr de", "en fr de", "en fr de", 1, {"translate/en": 2, "translate/fr": 3, "translate/de": 1}),
        ("translate", "en fr de", "en fr de", "en fr de", 2, {"translate/en": 3, "translate/fr": 1, "translate/de": 2}),
        ("translate", "en fr de", "en fr de", "en de", 1, {"translate/en": 3, "translate/de": 1}),
        ("translate", "en", "fr de", "en fr de", 1, {"translate/fr": 1, "translate/de": 1}),
        ("translate", "en", "fr de", "en fr de", 2, {"translate/fr": 1, "translate/de": 1}),
    ],
)
def test_each_prediction_has_the_latent_of_its_source(
    role: Role, sources: str, targets: str, columns: str, shift: int, latents: dict[str, int]
) -> None:
    out = run(role, sources, targets, columns, shift=shift)
    assert {prediction.name: prediction.latent[0, 0].item() for prediction in out.predictions} == latents
    assert all(prediction.target.lang == prediction.column for prediction in out.predictions)
    assert list(out.semantic) == [lang for lang in columns.split() if lang in sources.split()]


@pytest.mark.parametrize(("sources", "anchor", "number"), [("en fr", "fr", 2), ("en fr", "en", 1), ("en", "fr", 1)])
def test_the_kl_is_that_of_the_anchor_or_else_of_the_first_source(sources: str, anchor: str, number: int) -> None:
    posteriors = run("translate", sources, "en fr", anchor=anchor).posteriors
    assert list(posteriors) == ["semantic"] and posteriors["semantic"]["semantic"].mean[0, 0] == number


def test_a_corpus_without_source_and_an_unknown_task_are_refused() -> None:
    with pytest.raises(UsageError, match="columns fr, de: each corpus needs one of the source columns en"):
        run("translate", "en", "fr de", "fr de")
    with pytest.raises(UsageError, match="task 'copy': choose from translate-both, translate, reconstruct"):
        Seq2SeqConfig(task="copy")


@pytest.mark.parametrize("name", ["bilingual-trans", "english-trans-lstm", "english-vae"])
def test_the_loss_is_torchs_cross_entropy_of_the_scores(
    name: str, tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    """Torch computes the expected loss and KL. The losses of predictions are averaged."""
    torch.manual_seed(0)
    made = tiny(name, readout="mean", **{"objective.elbo.warmup_steps": 4})
    out = made.build(tokenizer).double().eval()(batch)
    expected = 0.0
    for prediction in out.predictions:
        smoothing = 0.1 if prediction.role == "translate" else 0.0
        gold = prediction.target.ids[prediction.target.mask]
        nll = F.cross_entropy(prediction.logits(), gold, reduction="sum", label_smoothing=smoothing)
        expected = expected + nll / len(out.predictions)
    loss = made.objective(out, step=1)
    if name == "english-vae":
        q = torch.distributions.Normal(out.semantic["en"].mean, (0.5 * out.semantic["en"].log_variance).exp())
        kl = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum()
        assert_close(loss.terms["kl/semantic"], kl)
        expected = expected + kl / 4
    assert_close(loss.total, expected)
    nats = sum(prediction.nll()[1].sum() for prediction in out.predictions)  # reported terms have no weights
    told = sum(value.sum() for term, value in loss.terms.items() if not term.startswith("kl/"))
    assert_close(told, nats)


def test_an_autoencoder_embeds_its_first_language(tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    german = tiny("english-ae", columns=["de", "en"])
    assert (german.data.langs, german.name) == (("de", "en"), "english-ae")
    assert german.build(tokenizer).langs == ("de",)
    assert tiny("bilingual-trans", columns=["de", "en"]).build(tokenizer).langs == ("de", "en")


SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "ffn_dim": 24, "heads": 2, "vocab_size": 400}


@pytest.fixture
def model(tokenizer: Tokenizer) -> Translator:
    torch.manual_seed(0)
    built = recipes.configure("translator", SIZES | {"columns": ["fr", "en", "x:en", "de"]}).build(tokenizer)
    assert isinstance(built, Translator)
    return built.eval()


def test_the_first_column_is_translated_into_the_others(model: Translator, batch: Batch) -> None:
    with pytest.raises(UsageError, match="columns en: each corpus needs the source column fr"):
        model(Batch({"en": batch.sides["en"]}, "en"))
    out = model(batch)  # the batch has English and French columns
    assert model.langs == ("fr",) and model.latents == (SEMANTIC,)
    assert list(model.decoders) == ["en", "de"]  # both English columns share a decoder
    assert [prediction.name for prediction in out.predictions] == ["translate/en"]
    assert out.predictions[0].role == "translate"
    sides = {**batch.sides, "x": batch.sides["en"]}
    assert [each.name for each in model(replace(batch, sides=sides)).predictions] == ["translate/en", "translate/x"]


def test_a_sentence_is_embedded_as_the_mean_of_its_states(model: Translator, batch: Batch) -> None:
    side = batch.sides["fr"]
    states = model.states(side).states.split(side.mask.sum(1).tolist())
    expected = torch.stack([state.mean(0) for state in states])
    assert_close(model.encoder(SEMANTIC, "fr")(side).mean, expected)
    assert_close(model(batch).semantic["fr"].mean, expected)
