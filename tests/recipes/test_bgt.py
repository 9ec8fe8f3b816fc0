"""Which sentence each prediction is made from: stub networks record their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Mean = the number of the side's language, two units; remembers what it has read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def forward(self, side: Tokens) -> Gaussian:
        self.seen.append(side.lang)
        mean = torch.full((len(side.ids), 2), NUMBER[side.lang])
        return Gaussian(mean, torch.full_like(mean, -2.0))


class EchoDecoder(nn.Module):
    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        return SentencePrediction(role, column, torch.zeros(0), latent, None, target)  # type: ignore[arg-type]


COLUMNS = {"en": "en", "fr": "fr", "de": "de"}
TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Role]] = {
    "translate-both": (("en", "fr"), ("en", "fr"), "translate"),
    "translate": (("en",), ("fr",), "translate"),
    "reconstruct": (("en",), ("en",), "reconstruct"),
    "translate three": (("en", "fr", "de"), ("en", "fr", "de"), "translate"),
    "translate from the first": (("en",), ("fr", "de"), "translate"),
}


def run(
    task: str, anchor: str = "en", read: str = "mean", columns: Sequence[str] = ("en", "fr"), shift: int = 1
) -> tuple[Outputs, list[str]]:
    read_from, written, role = TASKS[task]
    encoder = Reads()
    sources = {column: COLUMNS[column] for column in read_from}
    model = Seq2Seq(encoder, {COLUMNS[column]: EchoDecoder() for column in written}, sources, role, READOUTS[read])
    batch = Batch({column: Tokens.pad([[5, 3]] * 4, COLUMNS[column]) for column in columns}, anchor, shift)
    return model(batch), encoder.seen


@pytest.mark.parametrize(
    ("task", "told", "read"),
    [
        ("translate-both", {"translate/en": 2.0, "translate/fr": 1.0}, ["en", "fr"]),
        ("translate", {"translate/fr": 1.0}, ["en"]),
        ("reconstruct", {"reconstruct/en": 1.0}, ["en"]),
    ],
)
def test_each_prediction_reads_its_source_and_no_other_side_is_encoded(
    task: str, told: dict[str, float], read: list[str]
) -> None:
    out, seen = run(task)
    assert {prediction.name: prediction.latent[0, 0].item() for prediction in out.predictions} == told
    assert all(prediction.target.lang == prediction.column for prediction in out.predictions)
    assert seen == list(out.semantic) == read


def test_the_anchor_pays_and_without_it_whoever_is_read() -> None:
    for task, anchor, pays in (("translate-both", "fr", 2.0), ("translate-both", "en", 1.0), ("translate", "fr", 1.0)):
        out, _ = run(task, anchor)
        assert list(out.posteriors) == ["semantic"]
        assert out.posteriors["semantic"]["semantic"].mean[0, 0] == pays


def test_of_three_languages_each_is_written_from_each_in_turn_or_from_the_first() -> None:
    def latents(task: str, columns: Sequence[str], shift: int) -> dict[str, float]:
        out, _ = run(task, columns=columns, shift=shift)
        return {prediction.name: prediction.latent[0, 0].item() for prediction in out.predictions}

    written = [
        latents(*case)
        for case in (
            ("translate three", ("en", "fr", "de"), 1),
            ("translate three", ("en", "fr", "de"), 2),
            ("translate three", ("en", "de"), 1),
            ("translate from the first", ("en", "fr", "de"), 1),
            ("translate from the first", ("en", "fr", "de"), 2),
        )
    ]
    assert written == [
        {"translate/en": 2.0, "translate/fr": 3.0, "translate/de": 1.0},
        {"translate/en": 3.0, "translate/fr": 1.0, "translate/de": 2.0},
        {"translate/en": 3.0, "translate/de": 1.0},
        {"translate/fr": 1.0, "translate/de": 1.0},
        {"translate/fr": 1.0, "translate/de": 1.0},
    ]
    with pytest.raises(UsageError, match="columns fr, de: each corpus needs one of the source columns en"):
        run("translate from the first", columns=("fr", "de"))
    with pytest.raises(UsageError, match="task 'copy': choose from translate-both, translate, reconstruct"):
        Seq2SeqConfig(task="copy")


@pytest.mark.parametrize("name", ["bilingual-trans", "english-trans-lstm", "english-vae"])
def test_the_loss_is_torchs_cross_entropy_of_the_scores(
    name: str, tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    """Two directions count half each; labels of translations are smoothed; KL by hand."""
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
    nats = sum(prediction.nll()[1].sum() for prediction in out.predictions)  # the terms are not weighted
    told = sum(value.sum() for term, value in loss.terms.items() if not term.startswith("kl/"))
    assert_close(told, nats)


def test_an_autoencoder_reads_its_first_language(tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    german = tiny("english-ae", columns=["de", "en"])
    assert (german.data.langs, german.name) == (("de", "en"), "english-ae")
    assert german.build(tokenizer).langs == ("de",)
    assert tiny("bilingual-trans", columns=["de", "en"]).build(tokenizer).langs == ("de", "en")


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


def test_a_sentence_is_embedded_as_the_mean_of_its_states(model: Translator, batch: Batch) -> None:
    side = batch.sides["fr"]
    states = model.states(side).states.split(side.mask.sum(1).tolist())
    expected = torch.stack([state.mean(0) for state in states])
    assert_close(model.encoder(SEMANTIC, "fr")(side).mean, expected)
    assert_close(model(batch).semantic["fr"].mean, expected)


def test_without_its_source_it_learns_nothing(model: Translator, batch: Batch, tiny: Callable[..., Recipe]) -> None:
    with pytest.raises(UsageError, match="columns en: each corpus needs the source column fr"):
        model(Batch({"en": batch.sides["en"]}, "en"))
