"""Each decoder of a BGT gets the right latents: fake encoders have known latents, fake decoders return their input."""

import math

import pytest
import torch
from torch import Tensor, nn

from bgt_core.contracts import Batch, Role, Tokens
from bgt_core.models.bgt import BGT, cosine_to_targets
from bgt_core.nets.output import SentencePrediction
from bgt_core.posterior import READOUTS, Gaussian
from tests.close import assert_close

NUMBER = {"en": 1.0, "fr": 2.0}


class Reads(nn.Module):
    """A fake encoder of two units: both means are `base` + 1 for English, `base` + 2 for French; variances are e^-2."""

    def __init__(self, base: float):
        super().__init__()
        self.base = base

    def forward(self, side: Tokens) -> Gaussian:
        mean = torch.full((len(side.ids), 2), self.base + NUMBER[side.lang])
        return Gaussian(mean, torch.full_like(mean, -2.0))


class EchoDecoder(nn.Module):
    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        return SentencePrediction(role, column, torch.zeros(0), latent, None, target)  # type: ignore[arg-type]


def model(read: str) -> BGT:
    return BGT(
        encoders={"semantic": Reads(10), "en": Reads(20), "fr": Reads(30)},
        decoders={"en": EchoDecoder(), "fr": EchoDecoder()},
        translators={"en": EchoDecoder(), "fr": EchoDecoder()},
        readout=READOUTS[read],
    )


def batch(anchor: str) -> Batch:
    return Batch({lang: Tokens.pad([[5, 3]] * 4, lang) for lang in ("en", "fr")}, anchor)


def test_without_training_decoders_only_the_semantic_latent_is_read() -> None:
    both = model("mean")
    both.train_decoders = False
    out = both(batch("fr"))
    assert out.predictions == []
    assert {name: posterior.mean[0, 0].item() for name, posterior in out.named_posteriors()} == {"semantic": 12}
    assert {lang: posterior.mean[0, 0].item() for lang, posterior in out.semantic.items()} == {"en": 11, "fr": 12}


@pytest.mark.parametrize(("anchor", "shared"), [("en", 11.0), ("fr", 12.0)])
def test_the_anchor_explains_both_sides_and_pays(anchor: str, shared: float) -> None:
    out = model("mean")(batch(anchor))
    latents = {prediction.name: prediction.latent[0].tolist() for prediction in out.predictions}
    assert latents == {
        "reconstruct/en": [21, 21, shared, shared],  # English language latent, then semantic latent
        "reconstruct/fr": [32, 32, shared, shared],
        "translate/en": [12, 12],  # for either anchor, decoded from the French semantic latent
        "translate/fr": [11, 11],
    }
    for prediction in out.predictions:
        assert prediction.target.lang == prediction.column
    assert {name: posterior.mean[0, 0].item() for name, posterior in out.named_posteriors()} == {
        "semantic": shared,
        "en": 21,
        "fr": 32,
    }
    assert {lang: posterior.mean[0, 0].item() for lang, posterior in out.semantic.items()} == {"en": 11, "fr": 12}


def test_reconstruction_reads_one_draw_and_translation_reads_means() -> None:
    torch.manual_seed(0)
    out = {prediction.name: prediction.latent for prediction in model("sample")(batch("en")).predictions}
    assert torch.equal(out["reconstruct/en"][:, 2:], out["reconstruct/fr"][:, 2:])  # both columns get one sample
    for name, mean in (("reconstruct/en", [21, 21, 11, 11]), ("reconstruct/fr", [32, 32, 11, 11])):
        noise = out[name] - torch.tensor(mean)
        assert (noise != 0).all()
        assert noise.abs().max() < 5 * 0.37  # the standard deviation is e**-1 = 0.37
    assert (out["translate/en"] == 12).all()
    assert (out["translate/fr"] == 11).all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_cosine_to_a_teacher_does_not_depend_on_its_scale(scale: float) -> None:
    means, targets = torch.randn(2, 9, 12, generator=torch.Generator().manual_seed(0))
    expected = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in zip(means.double(), targets.double(), strict=True)]
    cosines = cosine_to_targets(means, targets * scale)
    assert_close(cosines, torch.stack(expected).float())
