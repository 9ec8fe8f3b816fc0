"""Validation computes the right scores on the held-out pairs of a run."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from bgt_core.contracts import Batch, Outputs, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.diagnose import diagnose
from bgt_core.posterior import READOUTS, Gaussian, Point
from bgt_core.recipes import Recipe
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training.loop import Trainer
from bgt_core.training.validate import retrieval
from bgt_core.training.validate import validate as validate_trainer
from bgt_core.training.workers import Workers


def validate(model: nn.Module, batches: list[Batch], seed: int) -> dict[str, float]:
    config = TrainConfig(precision="fp32", seed=seed)
    trainer = Trainer(model, None, None, config, torch.device("cpu"), Workers())  # type: ignore[arg-type]
    return validate_trainer(trainer, batches)


def halves(batch: Batch) -> list[Batch]:
    """Divide a batch into two of different sizes."""
    parts = []
    for rows in (slice(0, 2), slice(2, None)):
        sides = {lang: Tokens.of(side.ids[rows], side.mask[rows], lang) for lang, side in batch.sides.items()}
        parts.append(Batch(sides, batch.anchor))
    return parts


def test_means_are_over_pairs_and_the_elbo_excludes_translation(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch, stirred: Callable[[nn.Module], nn.Module]
) -> None:
    torch.manual_seed(0)
    model = stirred(tiny("bgt", readout="mean", dropout=0.5).build(tokenizer)).train()
    scores = validate(model, halves(batch), seed=1)
    assert model.training
    out = model.eval()(batch)
    expected = {prediction.name: prediction.nll()[1].mean().item() for prediction in out.predictions}
    expected |= {f"kl/{name}": posterior.kl().mean().item() for name, posterior in out.named_posteriors()}
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value, rel=1e-5)
    bound = sum(value for name, value in expected.items() if not name.startswith("translate/"))
    assert len(expected) == 7
    assert scores["elbo"] == pytest.approx(-bound, rel=1e-5)


@pytest.mark.parametrize("name", ["bgt", "bgt-plus", "bgt-bound"])
def test_the_elbo_is_right_for_rows_with_different_columns(
    name: str, tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    torch.manual_seed(0)
    model = tiny(name).build(tokenizer)
    model.readout = READOUTS["mean"]
    english = Batch({"en": batch.sides["en"]}, "en")
    scores = validate(model, [batch, english], seed=1)
    model.eval()
    bounds = []
    for part in (batch, english):
        out = model(part)
        written = sum(each.nll()[1] for each in out.predictions if each.role == "reconstruct")
        kl = sum(posterior.kl() for _, posterior in out.named_posteriors())
        assert len([each for each in out.predictions if each.role == "reconstruct"]) == len(part.sides)
        bounds.append(-(written + kl))
    assert scores["elbo"] == pytest.approx(torch.cat(bounds).mean().item(), rel=1e-4)


@pytest.mark.parametrize("name", ["bgt-bound", "vgvae"])
def test_the_elbo_is_below_the_importance_weighted_bound(
    name: str,
    tiny: Callable[..., Recipe],
    tokenizer: Tokenizer,
    batch: Batch,
    stirred: Callable[[nn.Module], nn.Module],
) -> None:
    """The importance-weighted bound is tighter than the ELBO, which includes the KLs of all latents."""
    torch.manual_seed(0)
    model = stirred(tiny(name).build(tokenizer)).eval()
    result = diagnose(model, [batch], torch.device("cpu"), samples=32)
    assert result.neg_elbo.nats >= result.iwae_nll.nats


def test_a_unit_counts_as_active_when_its_mean_varies(batch: Batch) -> None:
    class Units(nn.Module):
        """A posterior of three units: the first mean varies, the second is always 1000, the third varies too little to
        count."""

        def forward(self, batch: Batch) -> Outputs:
            rank = batch.sides["en"].mask.sum(1).float()
            mean = torch.stack([rank, torch.full_like(rank, 1000.0), 0.001 * rank], dim=1)
            return Outputs({}, {"semantic": {"semantic": Gaussian(mean, torch.zeros_like(mean))}}, [])

    assert validate(Units(), halves(batch), seed=1)["active/semantic"] == 1


def test_retrieval_is_over_all_held_out_pairs(batch: Batch) -> None:
    """Six pairs are divided into two batches. Five wrong sentences are found, four of them in the other batch."""

    class Angles(nn.Module):
        """Embed English at 0, 60, 120, ... degrees, and French near its translation except in two rows."""

        def forward(self, batch: Batch) -> Outputs:
            rows = [whole.index(ids[mask].tolist()) for ids, mask in rows_of(batch)]
            english = torch.tensor([60.0 * row for row in rows])
            french = english + torch.tensor([[5.0, 62.0, 10.0, 10.0, -8.0, 62.0][row] for row in rows])
            sides = {"en": english, "fr": french}
            return Outputs(
                {lang: Point(torch.stack([(a / R).cos(), (a / R).sin()], 1)) for lang, a in sides.items()}, {}
            )

    R = 180 / math.pi

    def rows_of(batch: Batch) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return list(zip(batch.sides["en"].ids, batch.sides["en"].mask, strict=True))

    whole = [ids[mask].tolist() for ids, mask in rows_of(batch)]
    scores = validate(Angles(), halves(batch), seed=1)
    # French is at 5, 122, 130, 190, 232 and 362 degrees. So English rows 0, 1 and 2 are wrong: they find French rows 5,
    # 0 and 1. French rows 1 and 5 are wrong, too: they find English rows 2 and 0.
    assert scores == pytest.approx({"retrieval/en-fr": 3 / 6, "retrieval/fr-en": 4 / 6})


def test_translations_of_copies_count_as_right_in_retrieval() -> None:
    """Rows 0 and 1 have one sentence with two translations; rows 2 and 3 have two sentences with one translation."""
    x, y = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    english = torch.tensor([x, x, y, [0.0, 0.9, 0.1]])
    french = torch.tensor([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], y, y])
    means, texts = torch.stack([english, french], 1), torch.tensor([[5, 1], [5, 2], [6, 3], [7, 3]])
    assert retrieval(["en", "fr"], means, texts) == {"retrieval/en-fr": 1, "retrieval/fr-en": 1}
    texts[1, 0] = 8  # English row 1 is no longer a copy, and French row 0 is nearer to it than French row 1
    assert retrieval(["en", "fr"], means, texts)["retrieval/en-fr"] == 0.75
