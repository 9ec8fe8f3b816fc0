"""In training, the recipe bgt-bound takes each latent from the right sentence; networks are replaced by fakes."""

import pytest
import torch
from torch import Tensor, nn

from bgt_core.contracts import EOS, Batch, Role, Tokens
from bgt_core.errors import BgtError
from bgt_core.nets.bound import ClosingMarks
from bgt_core.nets.output import SentencePrediction
from bgt_core.posterior import Point
from bgt_core.recipes.bound import BoundConfig, RecombiningBGT

ROWS, STOP, ASK = 4_000, 4, 5
NUMBER = {"en": 1.0, "fr": 2.0}


class Reads(nn.Module):
    """A stub encoder. A latent has three units: base + the language's `NUMBER`, row index, last token before EOS."""

    def __init__(self, base: float):
        super().__init__()
        self.base = nn.Parameter(torch.tensor(float(base)))

    def forward(self, side: Tokens) -> Point:
        rows = torch.arange(len(side.ids), dtype=torch.float32)
        last = side.ids.gather(1, side.mask.sum(1, keepdim=True) - 2).squeeze(1).float()
        return Point(torch.stack([(self.base + NUMBER[side.lang]).expand(len(rows)), rows, last], dim=1))


class EchoDecoder(nn.Module):
    def forward(self, role: Role, column: str, latent: Tensor, target: Tokens) -> SentencePrediction:
        return SentencePrediction(role, column, torch.zeros(0), latent, None, target)  # type: ignore[arg-type]


def model(own: float = 0.5, borrowed: float = 0.0, exchanged: float = 0.0) -> RecombiningBGT:
    torch.manual_seed(0)
    return RecombiningBGT(
        BoundConfig(average_dim=1, own_share=own, borrowed_share=borrowed, exchanged_marks=exchanged),
        encoders={"semantic": Reads(10), "en": Reads(20), "fr": Reads(30)},
        decoders={"en": EchoDecoder(), "fr": EchoDecoder()},
        marks=ClosingMarks(torch.tensor([token in (STOP, ASK) for token in range(8)])),
        styles=lambda sides: {column: side.ids[:, 1] for column, side in sides.items()},
    )


def batch() -> Batch:
    """A batch in which every fourth sentence ends in a question mark, all others in a full stop."""
    ids = [[7, ASK if row % 4 == 0 else STOP, EOS] for row in range(ROWS)]
    return Batch({lang: Tokens.pad(ids, lang) for lang in ("en", "fr")}, "en")


def latents(given: RecombiningBGT) -> dict[str, Tensor]:
    """Return the latents of each decoder: in each row, 3 units of a language latent, then 3 of a semantic latent."""
    return {prediction.name: prediction.latent.detach() for prediction in given(batch()).predictions}


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_rows_has_its_own_semantic_latent(share: float) -> None:
    for name, own in (("recombine/en", 11.0), ("recombine/fr", 12.0)):
        read = latents(model(own=share))[name]
        assert set(read[:, 3].tolist()) <= {11.0, 12.0}
        assert abs((read[:, 3] == own).double().mean() - share) < 0.03
        assert torch.equal(read[:, 4], torch.arange(ROWS).float())  # all semantic latents are of their own row


def test_a_share_of_the_rows_has_the_language_latent_of_another_row_of_the_same_style() -> None:
    read = latents(model(borrowed=0.4))["recombine/fr"]
    moved = read[:, 1] != torch.arange(ROWS)
    assert abs(moved.double().mean() - 0.4) < 0.04
    mark = torch.where(torch.arange(ROWS) % 4 == 0, ASK, STOP)
    assert torch.equal(read[:, 2], mark.float())
    assert (read[:, 0] == 32).all()  # all language latents are from French sentences
    assert len(read[moved, 1].unique()) > 0.8 * moved.sum() * (1 - 1 / torch.e)  # the other row is drawn at random


def test_a_sentence_that_is_alone_in_its_style_keeps_its_own_language_latent() -> None:
    made = model(borrowed=1.0)
    made.styles = lambda sides: dict.fromkeys(sides, torch.arange(ROWS).clamp(min=1))  # rows 0 and 1 share a style
    read = latents(made)["recombine/en"][:, 1].long().tolist()
    assert read == [1, 0, *range(2, ROWS)]


def test_language_latents_and_styles_are_collected_from_all_columns_of_a_language() -> None:
    made, sides = model(), {"en": Tokens.pad([[7, STOP, EOS]] * 2, "en"), "en2": Tokens.pad([[7, ASK, EOS]] * 2, "en")}
    out = made(Batch(sides, "en"))
    assert list(out.styles) == ["en"]
    assert out.styles["en"].number.tolist() == [STOP, STOP, ASK, ASK]
    assert out.styles["en"].mean[:, 1:].tolist() == [[0, STOP], [1, STOP], [0, ASK], [1, ASK]]
    assert made.eval()(Batch(sides, "en")).styles == {}


def test_an_exchanged_mark_is_in_the_language_latent_and_in_the_target() -> None:
    made = model(exchanged=0.5)
    out = made(batch())
    for prediction in out.predictions:
        written = prediction.target.ids[:, 1]  # type: ignore[attr-defined]
        assert torch.equal(prediction.latent[:, 2], written.float())  # type: ignore[attr-defined]
        changed = (written != batch().sides["en"].ids[:, 1]).double().mean()
        assert abs(changed - 0.5 * 2 * 0.75 * 0.25) < 0.03


def test_language_encoders_only_learn_from_rows_with_a_translation_s_latent() -> None:
    for share, learns in ((1.0, False), (0.0, True)):
        made = model(own=share)
        total = sum(prediction.latent.sum() for prediction in made(batch()).predictions)  # type: ignore[attr-defined]
        total.backward()  # type: ignore[union-attr]
        assert bool(made.encoders["fr"].base.grad) == learns  # type: ignore[union-attr]


def test_in_evaluation_a_sentence_is_reconstructed_and_translated() -> None:
    read = latents(model(own=0.0, borrowed=1.0, exchanged=1.0).eval())
    assert {name: latent[7].tolist() for name, latent in read.items()} == {
        "reconstruct/en": [21, 7, STOP, 11, 7, STOP],
        "translate/en": [21, 7, STOP, 12, 7, STOP],
        "reconstruct/fr": [32, 7, STOP, 12, 7, STOP],
        "translate/fr": [32, 7, STOP, 11, 7, STOP],
    }


def test_the_average_is_compared_with_the_teacher() -> None:
    given = batch()
    targets = torch.full((ROWS, 1), -2.0)
    out = model()(Batch(given.sides, "en", targets=targets))
    assert set(out.agreement) == {"en", "fr"} and (out.agreement["en"] == -1).all()
    assert not model()(given).agreement


@pytest.mark.parametrize("name", ["own", "borrowed", "exchanged"])
def test_a_share_above_one_is_refused(name: str) -> None:
    with pytest.raises(BgtError, match=rf"{name}\w* 1.5 must be a share of the rows, from 0 to 1"):
        model(**{name: 1.5})
