"""The loop: what an update is, what it costs, what is reported and saved, and where it stops."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from bgt_core import checkpoint, training
from bgt_core.contracts import Batch, Tokens
from bgt_core.data.batching import StepBatch
from bgt_core.data.corpus import Corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import NotFound
from bgt_core.grammar import Pair
from bgt_core.recipes import Recipe
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training.course import total_steps, train_model
from bgt_core.training.loop import (
    Hooks,
    Penalty,
    Trainer,
    learning_rate,
    make_optimizer,
    token_tables,
    train_step,
)
from bgt_core.training.workers import SINGLE_PROCESS
from tests.close import assert_close

CPU = torch.device("cpu")
CONFIG = TrainConfig(
    epochs=2.0,
    batch_tokens=700,
    micro_tokens=700,
    learning_rate=1e-3,
    warmup_steps=10,
    clip=1e9,
    valid_every=4,
    save_every=3,
    precision="fp32",
)


class Log(Hooks):
    """Hooks that write down; `stop` is the step after which the run is asked to stop."""

    def __init__(self, stop: int | None = None):
        self.rows: list[dict[str, object]] = []
        self.saved: list[int] = []
        self.asked = 0
        super().__init__(self.rows.append, self.saved.append, lambda: self.count() == stop)

    __setattr__ = object.__setattr__  # Hooks is frozen

    def count(self) -> int:
        self.asked += 1
        return self.asked


@pytest.fixture(scope="module")
def mirrored(grammar: list[Pair], tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The same English text on both sides: both semantic posteriors are one, so the anchor changes nothing."""
    folder = tmp_path_factory.mktemp("mirrored")
    lines = [f"{pair.texts['en']}\t{pair.texts['en']}\n" for pair in grammar[:120]]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    source = [folder / "pairs.tsv"]
    return prepare(source, ("en", "fr"), tokenizer, folder / "store", min_tokens=1, valid_pairs=20, seed=1)


@pytest.fixture
def exact(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, stirred: Callable[[nn.Module], nn.Module]
) -> Callable[..., tuple]:
    """exact(): a model in float64 without noise, away from where it starts, and its objective, the ELBO."""

    def make(stir: Callable[[nn.Module], nn.Module] = stirred) -> tuple:
        recipe = tiny("bgt", readout="mean", dropout=0.0, label_smoothing=0.1, **{"objective.elbo.warmup_steps": 0})
        torch.manual_seed(0)
        return stir(recipe.build(tokenizer)).double().train(), recipe.objective

    return make


def run(model: nn.Module, objective: object, corpus: Corpus, config: TrainConfig, log: Log, **options: int) -> int:
    trainer = Trainer(model, make_optimizer(model, config), objective, config, CPU, SINGLE_PROCESS)  # type: ignore[arg-type]
    return train_model(trainer, corpus, Corpus.open(corpus.folder, "valid"), log, **options)


def test_an_update_is_the_mean_over_its_pairs_however_it_is_cut(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    class Descent(torch.optim.SGD):
        """Keeps the gradients of the first update."""

        seen: list[torch.Tensor]

        def step(self, closure: None = None) -> None:
            self.seen = [parameter.grad.clone() for parameter in model.parameters()]
            super().step()

    gradients = {}
    for micro in (40, 150, 100_000):
        model, objective = exact()
        config = replace(CONFIG, micro_tokens=micro)
        optimizer = Descent(model.parameters())
        valid = Corpus.open(mirrored.folder, "valid")
        train_model(Trainer(model, optimizer, objective, config, CPU, SINGLE_PROCESS), mirrored, valid, Log(stop=1))
        gradients[micro] = optimizer.seen

    model, objective = exact()
    updates = math.ceil(mirrored.tokens / CONFIG.batch_tokens)
    assert updates > 1
    from bgt_core.data.batching import Batching  # which pairs are in the first update; not how they are batched

    pairs = [
        (side.ids[row, : int(side.mask[row].sum())])
        for batch in Batching(CONFIG.batch_tokens, 50, CONFIG.seed).update(mirrored, 0).batches.values()
        for side in [batch.sides["en"]]
        for row in range(len(batch))
    ]
    assert len(pairs) < len(mirrored)
    for ids in pairs:
        alone = Batch({lang: Tokens.pad([ids.tolist()], lang) for lang in ("en", "fr")}, "en")
        (objective(model(alone), 0).total / len(pairs)).backward()
    expected = [parameter.grad for parameter in model.parameters()]

    for reported in gradients.values():
        for one, other in zip(reported, expected, strict=True):
            assert_close(one, other)


def test_a_run_reports_validates_and_saves_when_it_should(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    model, objective = exact()
    log, steps = Log(), total_steps(mirrored, CONFIG)
    assert steps == 2 * math.ceil(mirrored.tokens / CONFIG.batch_tokens) > 4
    assert run(model, objective, mirrored, CONFIG, log) == steps
    assert log.saved == [*range(3, steps, 3), steps]
    reported = [(row["kind"], row["step"]) for row in log.rows]
    assert [step for kind, step in reported if kind == "valid"] == [*range(4, steps, 4), steps]
    assert [step for kind, step in reported if kind == "train"][-1] == steps
    row = log.rows[-2]
    parts = [row[f"{kind}/{lang}"] for kind in ("reconstruct", "translate") for lang in ("en", "fr")]
    assert all(isinstance(value, float) and value > 0 for value in parts)
    assert {"loss", "learning_rate", "gradient_norm", "tokens_per_second", "kl/semantic", "kl/en", "kl/fr"} <= set(row)


def test_a_large_gradient_is_clipped(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    model, objective = exact()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    config = replace(CONFIG, clip=1e-3, learning_rate=1.0, warmup_steps=1)
    optimizer, log = torch.optim.SGD(model.parameters()), Log(stop=1)
    trainer = Trainer(model, optimizer, objective, config, CPU, SINGLE_PROCESS)
    train_model(trainer, mirrored, Corpus.open(mirrored.folder, "valid"), log)
    moved = torch.cat([(now - then).flatten() for now, then in zip(model.parameters(), before, strict=True)])
    assert log.rows[0]["gradient_norm"] > 1
    assert moved.norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_an_update_of_frozen_parts_alone_changes_nothing(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    """As of a writer that is trained to correct drafts, with all else frozen, when drafts are hidden."""
    model, objective = exact()
    model.requires_grad_(False)
    model.unused = nn.Parameter(torch.ones(()))
    before = [parameter.clone() for parameter in model.parameters()]
    assert run(model, objective, mirrored, CONFIG, Log(stop=2)) == 2
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))


def test_the_optimizer_decays_weights_apart_from_their_gradient() -> None:
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    optimizer = make_optimizer(model, TrainConfig(learning_rate=0.1, weight_decay=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert_close(model.weight, before * (1 - 0.1 * 0.5))


TABLE = "encoders.semantic.body.table.weight"


class TwoParts(nn.Module):
    """A table that two names share, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(2, 2)
        self.same = self.table
        self.layer = nn.Linear(2, 1)
        with torch.no_grad():
            self.table.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
            self.layer.weight.copy_(torch.tensor([[3.0, -1.0]]))
            self.layer.bias.fill_(2.0)


def test_both_by_hand() -> None:
    model, config = TwoParts(), TrainConfig(composition_l2=0.5, table_l2=0.1)
    penalty = Penalty(model, config, {"table.weight": torch.tensor([[1.0, 0.0], [0.0, 4.0]])})
    terms = penalty.terms()
    assert list(terms) == ["penalty/composition", "penalty/tables"]
    assert terms["penalty/composition"].item() == pytest.approx(0.5 / 2 * (9 + 1 + 4))
    assert terms["penalty/tables"].item() == pytest.approx(0.1 / 2 * (4 + 9))
    sum(terms.values()).backward()
    assert_close(model.layer.weight.grad, 0.5 * torch.tensor([[3.0, -1.0]]))
    assert_close(model.layer.bias.grad, torch.tensor([1.0]))
    assert_close(model.table.weight.grad, 0.1 * torch.tensor([[0.0, 2.0], [3.0, 0.0]]))


def test_what_has_no_weight_costs_nothing() -> None:
    model = TwoParts()
    assert Penalty(model, TrainConfig(), {}).terms() == {}
    penalty = Penalty(model, TrainConfig(composition_l2=0.5), {})
    assert list(penalty.terms()) == ["penalty/composition"]
    assert list(token_tables(model)) == ["table.weight"]


def part(batch: Batch, rows: slice) -> Batch:
    """Some rows of a batch."""
    sides = {name: type(side).of(side.ids[rows], side.mask[rows], side.lang) for name, side in batch.sides.items()}
    return Batch(sides, batch.anchor)


@pytest.mark.parametrize("cut", [[slice(0, 6)], [slice(0, 1), slice(1, 6)]])
def test_an_update_pays_once_however_it_is_cut(
    cut: list[slice], tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    """Its step is the loss's gradient, over all rows, and lambda_c W_c or lambda_w (W - W_start)."""
    recipe = tiny("gran")
    weights = TrainConfig(composition_l2=0.3, table_l2=0.2, weight_decay=0.0, clip=1e9, precision="fp32")
    batches = {number: part(batch, rows) for number, rows in enumerate(cut)}
    moved, losses = [], []
    for config in (weights, replace(weights, composition_l2=0.0, table_l2=0.0)):
        torch.manual_seed(0)
        model = recipe.build(tokenizer).train()
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        start = {TABLE: before[TABLE] - 1}
        sgd = torch.optim.SGD(model.parameters(), lr=1.0)
        penalty = Penalty(model, config, start)
        trainer = Trainer(model, sgd, recipe.objective, config, torch.device("cpu"), SINGLE_PROCESS, penalty)
        sums = train_step(trainer, 0, StepBatch(6, batches))
        moved.append({name: before[name] - value.detach() for name, value in model.named_parameters()})
        losses.append({name: value / 6 for name, value in sums.terms.items()})
    for name, value in before.items():
        expected = 0.2 * torch.ones_like(value) if name == TABLE else 0.3 * value
        assert_close(moved[0][name] - moved[1][name], expected)
    squares = sum(value.square().sum() for name, value in before.items() if name != TABLE)
    assert_close(losses[0]["penalty/composition"], 0.3 / 2 * squares)
    assert_close(losses[0]["penalty/tables"], torch.tensor(0.2 / 2 * before[TABLE].numel()))
    added = losses[0]["penalty/composition"] + losses[0]["penalty/tables"]
    assert_close(losses[0]["loss"], losses[1]["loss"] + added)


def test_a_run_that_restarts_holds_its_tables_to_the_same_start(
    tiny: Callable[..., Recipe], tsv: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    settings = {"epochs": 1.0, "min_tokens": 2, "valid_every": 6, "save_every": 3, "learning_rate": 0.1}
    recipe = tiny("avg", **settings, table_l2=0.5, batch_tokens=400, micro_tokens=400)
    tokenizer.save(tmp_path / "tokenizer.model")
    kept: list[Path] = []

    def keep(row: dict[str, object]) -> None:
        if row["kind"] == "valid" and not kept:
            kept.append(Path(shutil.copytree(tmp_path / "run", tmp_path / "half")))

    last = training.train(
        recipe, [tsv], tmp_path / "run", tokenizer=tmp_path / "tokenizer.model", device="cpu", report=keep
    )
    torch.manual_seed(recipe.train.seed)
    began = dict(recipe.build(tokenizer).named_parameters())[TABLE].detach()
    assert torch.equal(load_file(tmp_path / "run" / "start.safetensors")[TABLE], began)
    assert 0 < checkpoint.load(tmp_path / "half").config["step"] < checkpoint.load(last).config["step"]
    resumed = training.resume(tmp_path / "half", device="cpu")
    assert (resumed / "model.safetensors").read_bytes() == (last / "model.safetensors").read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert rows[-2]["penalty/tables"] > 0

    shutil.rmtree(resumed)
    (tmp_path / "half" / "start.safetensors").unlink()
    with pytest.raises(NotFound, match=r"start\.safetensors: missing: train\.table_l2"):
        training.resume(tmp_path / "half", device="cpu")


STEPS = 1000


def rates(cooldown: float) -> list[float]:
    config = TrainConfig(learning_rate=0.5, warmup_steps=100, cooldown=cooldown)
    return [learning_rate(step, STEPS, config) for step in range(STEPS)]


def test_it_rises_in_a_line_and_falls_with_the_root() -> None:
    by_step = rates(cooldown=0.0)
    assert by_step[0] == pytest.approx(0.005)
    assert by_step[49] == pytest.approx(0.25)
    assert by_step[99] == max(by_step) == pytest.approx(0.5)
    assert by_step[399] == pytest.approx(0.25)  # 4 times the warm-up: half the peak
    assert by_step[899] == pytest.approx(0.5 / 3)


def test_without_a_warmup_the_rate_is_fixed() -> None:
    config = TrainConfig(learning_rate=1e-3, warmup_steps=0)
    assert {learning_rate(step, STEPS, config) for step in range(STEPS)} == {1e-3}
    cooled = TrainConfig(learning_rate=1e-3, warmup_steps=0, cooldown=0.25)
    assert learning_rate(750, STEPS, cooled) == 1e-3
    assert learning_rate(875, STEPS, cooled) == pytest.approx(5e-4)


def test_a_cooldown_ends_near_zero_and_changes_nothing_before() -> None:
    plain, cooled = rates(cooldown=0.0), rates(cooldown=0.25)
    assert cooled[:751] == plain[:751]
    assert cooled[875] == pytest.approx(plain[875] / 2)
    assert cooled[-1] == pytest.approx(plain[-1] / 250)
    assert all(later < earlier for earlier, later in pairwise(cooled[750:]))
