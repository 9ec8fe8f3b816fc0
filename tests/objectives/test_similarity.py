"""Losses on similarities have the values computed by hand or with NumPy."""

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

from bgt_core.contracts import Batch, Loss, Outputs, Styled
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError
from bgt_core.models.bgt import LatentModel
from bgt_core.objectives import Part
from bgt_core.objectives.similarity import AlteredMargin, Composition, Contrast, Distillation, Margin, StyleContrast
from bgt_core.posterior import Point
from bgt_core.recipes import configure
from bgt_core.training.validate import terms_of
from tests.close import assert_close


def angles(*degrees: float) -> Point:
    """Return two-dimensional vectors of different lengths at these angles in degrees."""
    turned = torch.tensor([math.radians(degree) for degree in degrees], dtype=torch.float64)
    lengths = torch.arange(1, len(degrees) + 1, dtype=torch.float64)[:, None]
    return Point((lengths * torch.stack([turned.cos(), turned.sin()], dim=1)).requires_grad_())


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def outputs(left: Point, right: Point) -> Outputs:
    return Outputs({"en": left, "fr": right}, {}, [])


def assert_total(loss: Loss, term: str, expected: float, rel: float = 1e-6) -> None:
    assert loss.total.item() == pytest.approx(expected, rel=rel)
    assert loss.terms[term].item() == pytest.approx(expected, rel=rel)
    assert not loss.terms[term].requires_grad


@pytest.mark.parametrize(("mined_only", "columns", "mega_batch", "message"), [
    (False, ["en", "fr"], 0, ""), (True, ["en", "fr"], 2, ""),
    (True, ["en", "fr"], 0, r"mega_batch 0: margin\.mined_only needs negatives.*mined_only=false"),
    (False, ["en"], 2, "columns en: this loss compares two columns"),
])  # fmt: skip
def test_what_it_needs_is_checked_before_training(
    mined_only: bool, columns: list[str], mega_batch: int, message: str
) -> None:
    with pytest.raises(BgtError, match=message) if message else nullcontext():
        Margin(mined_only=mined_only).check(columns, mega_batch)


def test_three_pairs_by_hand() -> None:
    """Each sentence is at an angle of 10, 20 or 30 degrees to its translation. Comments name sentences by angle."""
    loss = Margin(margin=0.6)(outputs(angles(0, 60, 180), angles(10, 80, 150)), step=0)
    hinges = [
        0,  # English 0°: 0.6 - cos(10) + cos(80) is below 0
        0.6 - cos(20) + cos(50),  # the most similar wrong sentence of English 60° is French 10°
        0,  # English 180°: 0.6 - cos(30) + cos(100) is below 0
        0.6 - cos(10) + cos(50),  # the most similar wrong sentence of French 10° is English 60°
        0,  # French 80°: 0.6 - cos(20) + cos(80) is below 0
        0,  # French 150°: 0.6 - cos(30) + cos(90) is below 0
    ]
    assert max(0.6 - cos(10) + cos(80), 0.6 - cos(30) + cos(100), 0.6 - cos(20) + cos(80), 0.6 - cos(30)) < 0
    assert_total(loss, "margin", sum(hinges))


def test_negatives_that_came_with_the_batch_by_hand() -> None:
    """The loss uses the negatives that the batch names, although other sentences of the batch are harder negatives."""
    out = Outputs({"en": angles(0, 10), "fr": angles(30, 40)}, {}, [], {"en": angles(90, 15), "fr": angles(60, 130)})
    hinges = [
        0.4 - cos(30) + cos(60),  # English 0° with the negative French 60°
        0,  # English 10° with the negative French 130°: 0.4 - cos(30) + cos(120) is below 0
        0.4 - cos(30) + cos(60),  # French 30° with the negative English 90°
        0.4 - cos(30) + cos(25),  # French 40° with the negative English 15°
    ]
    assert Margin(0.4)(out, step=0).total.item() == pytest.approx(sum(hinges), rel=1e-6)


def test_negatives_of_both_sides_by_hand() -> None:
    """The hardest negative of a sentence may be in the other column or in its own. Comments name sentences by angle."""
    loss = Margin(margin=0.6, both_sides=True)(outputs(angles(0, 30, 180), angles(10, 80, 150)), step=0)
    hinges = [
        0.6 - cos(10) + cos(30),  # the hardest negative of English 0° is English 30°, not French 80°
        0.6 - cos(50) + cos(20),  # the hardest negative of English 30° is French 10°, not English 0°
        0,  # English 180°: French 80° is the hardest negative: 0.6 - cos(30) + cos(100) is below 0
        0.6 - cos(10) + cos(20),  # the hardest negative of French 10° is English 30°, not French 80°
        0.6
        - cos(50)
        + cos(70),  # the hardest negatives of French 80° are French 10° and French 150°, both at 70 degrees
        0.6 - cos(30) + cos(70),  # the hardest negative of French 150° is French 80°, not English 30°
    ]
    assert 0.6 - cos(30) + cos(100) < 0
    assert loss.total.item() == pytest.approx(sum(hinges), rel=1e-6)


@pytest.mark.parametrize("both_sides", [False, True])
def test_a_pair_alone_costs_nothing_and_has_a_finite_gradient(both_sides: bool) -> None:
    left, right = angles(0), angles(90)
    loss = Margin(both_sides=both_sides)(outputs(left, right), 0)
    loss.total.backward()
    assert loss.total.item() == 0
    assert torch.isfinite(left.mean.grad).all()


def test_with_mined_negatives_only_a_batch_without_any_costs_nothing() -> None:
    out = outputs(angles(0, 60), angles(20, 90))
    waiting = Margin(margin=0.6, mined_only=True)
    assert waiting(out, step=0).total == 0 and waiting(out, step=0).terms == {}
    assert Margin(margin=0.6)(out, step=0).total > 0
    given = replace(out, negatives={"en": angles(35, 200), "fr": angles(10, 200)})
    assert waiting(given, step=0).total == Margin(margin=0.6)(given, step=0).total > 0


def sides(*rows: list[list[float]]) -> Outputs:
    vectors = (torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in rows)
    return Outputs(dict(zip(("en", "fr", "de"), map(Point, vectors), strict=False)), {}, [])


def test_two_pairs_by_hand() -> None:
    """The cosines of the English rows with the French rows are [[1, h], [0, h]]; h is the square root of 1/2."""
    h, t = math.sqrt(0.5), 0.5
    out = sides([[3.0, 0.0], [0.0, 0.1]], [[1.0, 0.0], [2.0, 2.0]])
    nats = [
        math.log(1 + math.exp((h - 1) / t)),  # English sentence 1 is compared with both French sentences
        math.log(1 + math.exp((0 - h) / t)),
        math.log(1 + math.exp((0 - 1) / t)),  # French sentence 1 is compared with both English sentences
        math.log(2),  # French sentence 2 has the same cosine with both English sentences
    ]
    assert_total(Contrast(temperature=t)(out, step=0), "contrast", sum(nats))


def test_one_column_has_nothing_to_compare() -> None:
    loss = Contrast()(sides([[1.0, 2.0], [0.5, 0.0]]), 0)
    assert loss.total.item() == 0 and loss.terms == {}


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def test_translations_are_nearer_to_each_other_than_an_altered_one_is_to_either() -> None:
    rng = np.random.default_rng(0)
    english, french, german, altered = rng.normal(size=(4, 6, 5))
    meaning = {"en": english, "fr": french, "de": german}
    points = {lang: Point(torch.from_numpy(vectors)) for lang, vectors in meaning.items()}
    out = Outputs(points, {}, altered={"fr": Point(torch.from_numpy(altered))})
    expected = sum(
        max(0.0, 0.3 - cosine(other[row], french[row]) + cosine(either[row], altered[row]))
        for other in (english, german)
        for either in (other, french)
        for row in range(6)
    )
    assert_total(AlteredMargin(margin=0.3)(out, 0), "altered", expected, rel=1e-5)


PARTS = slice(2, 5), slice(5, 7)


def composed(rng: np.random.Generator, altered: bool) -> tuple[Outputs, dict[str, np.ndarray]]:
    """Return random outputs for four pairs, and their vectors by name; `altered` adds altered English sentences."""
    vectors = {name: rng.normal(size=(4, 7)) for name in ("en", "fr", "altered")}
    posteriors = {name: Point(torch.from_numpy(value)) for name, value in vectors.items()}
    meaning = {lang: posteriors[lang] for lang in ("en", "fr")}
    return Outputs(meaning, {}, altered={"en": posteriors["altered"]} if altered else {}, composed=PARTS), vectors


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("altered", [False, True])
def test_each_composed_part_picks_its_translation_out_of_the_batch_and_of_altered_sentences(altered: bool) -> None:
    out, vectors = composed(np.random.default_rng(0), altered)
    expected = 0.0
    for part in PARTS:
        units = {name: unit(value[:, part]) for name, value in vectors.items()}
        own = (units["en"] * units["altered"]).sum(1) if altered else np.zeros(0)
        expected += np.log1p(np.exp((own - 0.3) / 0.5)).sum()
        for source, target in (("en", "fr"), ("fr", "en")):
            candidates = np.concatenate([units[target], *([units["altered"]] if altered else [])])
            for row in range(4):
                cosines = candidates @ units[source][row]
                expected += np.log(np.exp(cosines / 0.5).sum()) - cosines[row] / 0.5
    assert_total(Composition(temperature=0.5, apart=0.3)(out, 0), "composition", expected, rel=1e-5)


def styled(rows: list[list[float]], numbers: list[int]) -> Styled:
    return Styled(torch.tensor(rows, dtype=torch.float64, requires_grad=True), torch.tensor(numbers))


def test_two_of_a_style_and_one_of_another_by_hand() -> None:
    """Sentences 0 and 1 have one style, sentence 2 another. The cosine of 0 and 1 is h, the square root of 1/2."""
    h, t = math.sqrt(0.5), 0.5
    near, far = math.exp(h / t), math.exp(0 / t)
    nats = -math.log(near / (near + far)) - math.log(near / (near + near))  # losses of sentences 0 and 1
    out = Outputs({}, {}, styles={"en": styled([[3.0, 0.0], [2.0, 2.0], [0.0, 0.1]], [4, 4, 0])})
    assert_total(StyleContrast(temperature=t)(out, step=0), "style", nats)


@pytest.mark.parametrize("numbers", [[0, 1], [0]])
def test_styles_that_occur_once_cost_nothing(numbers: list[int]) -> None:
    given = styled([[1.0, 0.0], [0.5, 0.5]][: len(numbers)], numbers)
    loss = StyleContrast()(Outputs({}, {}, styles={"en": given}), 0)
    loss.total.backward()
    assert loss.total.item() == 0 and given.mean.grad is not None and given.mean.grad.isfinite().all()


SIZES, UNITS = {"d_model": 16}, 5


def model(tokenizer: Tokenizer) -> LatentModel:
    torch.manual_seed(0)
    return configure("bgt-small", {**SIZES, "teacher_dim": UNITS}).build(tokenizer).eval()


@pytest.fixture
def taught(batch: Batch) -> Batch:
    """Return a batch with a teacher's vectors. Their norms differ, but must not matter."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(len(batch), UNITS)) * rng.uniform(0.1, 9, (len(batch), 1))
    return replace(batch, targets=torch.tensor(vectors, dtype=torch.float32))


def test_the_loss_is_the_formula_in_numpy(tokenizer: Tokenizer, taught: Batch) -> None:
    learner = model(tokenizer)
    out = learner(taught)
    matrix = learner.state_dict()["teacher.weight"].double().numpy()  # (D, L)
    assert matrix.shape == (UNITS, configure("bgt-small", SIZES).model.semantic_dim)
    assert taught.targets is not None
    targets, costs = taught.targets.double().numpy(), {}
    for column, posterior in out.semantic.items():
        mapped = posterior.mean.detach().double().numpy() @ matrix.T
        cosines = (mapped * targets).sum(1) / np.linalg.norm(mapped, axis=1) / np.linalg.norm(targets, axis=1)
        costs[f"distillation/{column}"] = 1 - cosines
    loss = Distillation()(out, step=0)
    assert {name: value.item() for name, value in loss.terms.items()} == pytest.approx(
        {name: rows.sum() for name, rows in costs.items()}, rel=1e-5
    )
    assert loss.total.item() == pytest.approx(sum(rows.sum() for rows in costs.values()), rel=1e-5)
    assert not any(value.requires_grad for value in loss.terms.values())
    held_out = terms_of(out)
    for key, rows in costs.items():
        assert_close(held_out[key], rows)


def test_rows_without_vectors_cost_nothing(tokenizer: Tokenizer, batch: Batch) -> None:
    out = model(tokenizer)(batch)
    loss = Distillation()(out, 0)
    assert (out.agreement, loss.terms, loss.total.item()) == ({}, {}, 0)
    recipe = configure("bgt-small", {**SIZES, "distillation.weight": 7.0, "teacher_dim": UNITS})
    whole = recipe.objective(out, 0)
    plain = configure("bgt-small", SIZES).objective(out, 0)
    assert torch.equal(whole.total, plain.total) and whole.terms.keys() == plain.terms.keys()


@pytest.mark.parametrize(
    ("part", "settings", "message"),
    [
        (Margin, {"margin": 0.0}, "margin 0.0 must be above 0 and below 2"),
        (Margin, {"margin": 2.0}, "margin 2.0 must be above 0 and below 2"),
        (AlteredMargin, {"margin": 2.0}, r"altered\.margin 2.0 must be above 0 and below 2"),
        (Contrast, {"temperature": -0.1}, "temperature -0.1 must be above 0"),
        (Composition, {"temperature": 0.0}, r"composition\.temperature 0.0 must be above 0"),
        (StyleContrast, {"temperature": 0}, r"style\.temperature 0 must be above 0"),
    ],
)
def test_impossible_numbers_are_refused(part: type[Part], settings: dict[str, float], message: str) -> None:
    with pytest.raises(BgtError, match=message):
        part(**settings)
