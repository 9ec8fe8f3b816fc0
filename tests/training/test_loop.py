"""The training loop: updates, losses, reports, checkpoints, stopping, frozen parts, and extra encoder updates."""

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partialmethod
from itertools import count, islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from bgt_core import checkpoint, training
from bgt_core.contracts import BOS, Batch, Outputs, Readout, Tokens
from bgt_core.data.batching import StepBatch
from bgt_core.data.store import Corpus, tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError
from bgt_core.grammar import Pair
from bgt_core.models.bgt import LatentModel
from bgt_core.nets.encoders import Encoder, GaussianHead
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import PlainOutput, SentencePrediction
from bgt_core.objectives import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.recipes import Recipe
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training import loop
from bgt_core.training import run as training_run
from bgt_core.training.loop import GROUP, Aggressive, Hooks, Sums, Trainer, batching, frozen, train_model, train_step
from bgt_core.training.validate import information_of
from bgt_core.training.workers import Workers
from tests.close import assert_close

CPU = torch.device("cpu")
CONFIG = TrainConfig(
    epochs=2.0, batch_tokens=700, micro_tokens=700, learning_rate=1e-3, warmup_steps=10, clip=1e9, valid_every=4,
    save_every=3, precision="fp32",
)  # fmt: skip


class Log(Hooks):
    """Hooks that record their arguments, and ask the run to stop after the step `stop`."""

    def __init__(self, stop: int | None = None):
        self.rows: list[dict[str, object]] = []
        self.saved: list[int] = []
        steps = count(1)
        super().__init__(self.rows.append, self.saved.append, lambda: next(steps) == stop)

    __setattr__ = object.__setattr__  # `Hooks` is frozen, so that assignments would fail


@pytest.fixture(scope="module")
def mirrored(grammar: list[Pair], tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A corpus with the same text in both columns, so that the choice of the anchor column has no effect."""
    folder = tmp_path_factory.mktemp("mirrored")
    lines = [f"{pair.texts['en']}\t{pair.texts['en']}\n" for pair in grammar[:120]]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    source = [folder / "pairs.tsv"]
    return tokenise(source, ("en", "fr"), tokenizer, folder / "store", min_tokens=1, valid_pairs=20, seed=1)


@pytest.fixture
def exact(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, stirred: Callable[[nn.Module], nn.Module]
) -> Callable[..., tuple]:
    """exact(): a float64 model with random parameters and no noise, and its objective."""

    def make() -> tuple:
        recipe = tiny("bgt", readout="mean", dropout=0.0, label_smoothing=0.1, **{"objective.elbo.warmup_steps": 0})
        torch.manual_seed(0)
        return stirred(recipe.build(tokenizer)).double().train(), recipe.objective

    return make


def run(
    model: nn.Module, objective: object, corpus: Corpus, config: TrainConfig, log: Log, optimizer: object = None
) -> int:
    trainer = Trainer(model, optimizer or loop.make_optimizer(model, config), objective, config, CPU, Workers())
    return train_model(trainer, corpus, Corpus.open(corpus.folder, "valid"), log)


def test_an_update_is_the_mean_over_its_pairs_for_any_micro_batches(
    mirrored: Corpus, exact: Callable[..., tuple]
) -> None:
    class Descent(torch.optim.SGD):
        """An optimiser that keeps the gradients of the last update."""

        seen: list[torch.Tensor]

        def step(self, closure: None = None) -> None:
            self.seen = [parameter.grad.clone() for parameter in model.parameters()]
            super().step()

    gradients = []
    for micro in (40, 150, 100_000):
        model, objective = exact()
        optimizer = Descent(model.parameters())
        run(model, objective, mirrored, replace(CONFIG, micro_tokens=micro), Log(stop=1), optimizer)
        gradients.append(optimizer.seen)

    model, objective = exact()
    first = batching(replace(CONFIG, micro_tokens=50)).update(mirrored, 0).batches.values()
    sides = [batch.sides["en"] for batch in first]
    pairs = [ids[mask] for side in sides for ids, mask in zip(side.ids, side.mask, strict=True)]
    assert len(pairs) < len(mirrored)
    for ids in pairs:
        alone = Batch({lang: Tokens.pad([ids.tolist()], lang) for lang in ("en", "fr")}, "en")
        (objective(model(alone), 0).total / len(pairs)).backward()
    for reported in gradients:
        for one, parameter in zip(reported, model.parameters(), strict=True):
            assert_close(one, parameter.grad)


def test_a_run_reports_validates_and_saves_when_it_should(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    model, objective = exact()
    log, steps = Log(), loop.total_steps(mirrored, CONFIG)
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
    log = Log(stop=1)
    run(model, objective, mirrored, config, log, torch.optim.SGD(model.parameters()))
    moved = torch.cat([(now - then).flatten() for now, then in zip(model.parameters(), before, strict=True)])
    assert log.rows[0]["gradient_norm"] > 1
    assert moved.norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_an_update_of_frozen_parts_alone_changes_nothing(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    """If the loss depends on frozen parameters only (as for a writer whose drafts are all hidden), nothing changes."""
    model, objective = exact()
    model.requires_grad_(False)
    model.unused = nn.Parameter(torch.ones(()))
    before = [parameter.clone() for parameter in model.parameters()]
    assert run(model, objective, mirrored, CONFIG, Log(stop=2)) == 2
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))


TABLE = "encoders.semantic.body.table.weight"


def part(batch: Batch, rows: slice) -> Batch:
    """Return a batch of only these rows."""
    sides = {name: type(side).of(side.ids[rows], side.mask[rows], side.lang) for name, side in batch.sides.items()}
    return Batch(sides, batch.anchor)


@pytest.mark.parametrize("cut", [[slice(0, 6)], [slice(0, 1), slice(1, 6)]])
def test_an_update_has_the_penalty_once_for_any_micro_batches(
    cut: list[slice], tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch
) -> None:
    """The penalty's gradient is lambda_c W for composition weights, and lambda_w (W - W_start) for token vectors."""
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
        penalty = loop.Penalty(model, config, start)
        trainer = Trainer(model, sgd, recipe.objective, config, torch.device("cpu"), Workers(), penalty)
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


AGGRESSIVE = TrainConfig(
    epochs=4.0, batch_tokens=450, micro_tokens=450, learning_rate=3e-2, warmup_steps=0, clip=5.0, aggressive_steps=10,
    precision="fp32",
)  # fmt: skip
WIDTH, UNITS, WORDS = 16, 4, 25


class Bag(nn.Module):
    """A network that encodes a sentence as tanh of a linear map of its mean token vector: (B, H)."""

    def __init__(self, table: nn.Embedding):
        super().__init__()
        self.table, self.hidden = table, nn.Linear(WIDTH, WIDTH)

    def forward(self, side: Tokens) -> torch.Tensor:
        layout = PackedLayout.of(side)
        return torch.tanh(self.hidden(layout.mean(self.table(layout.pack(side.ids)))))


class Topics(LatentModel):
    """A VAE whose posterior would collapse, because its decoder can infer the topic from the previous words."""

    def __init__(self, tokens: int):
        encoder = Encoder(Bag(nn.Embedding(tokens, WIDTH)), GaussianHead(WIDTH, UNITS))
        super().__init__(("en",), {"semantic": encoder})
        self.table = nn.Embedding(tokens, WIDTH)
        self.hidden = nn.Linear(WIDTH + UNITS, WIDTH)
        self.layer = PlainOutput(nn.Linear(WIDTH, tokens, bias=False))

    def forward(self, batch: Batch, read: Readout | None = None) -> Outputs:
        side = batch.sides["en"]
        posterior = self.encoders["semantic"](side)
        z = read(posterior) if read else posterior.rsample()
        before = torch.cat([torch.full_like(side.ids[:, :1], BOS), side.ids[:, :-1]], 1)
        past = self.table(before).cumsum(1) / torch.arange(1, before.shape[1] + 1)[:, None] ** 0.5  # (B, T, H)
        layout = PackedLayout.of(side)
        past = past.flatten(0, 1)[layout.flat_index]  # (R, H)
        features = torch.tanh(self.hidden(torch.cat([past, layout.repeat(z)], 1)))
        prediction = SentencePrediction("reconstruct", "en", features, z, self.layer, side)
        return Outputs({}, {"semantic": {"semantic": posterior}}, [prediction])


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, int]:
    """A corpus of 600 sentences, and its vocabulary size. A sentence has 8 words from one of ten topics."""
    draw = np.random.default_rng(0)
    words = [a + b + c for a in "bdfgklmnpr" for b in "aeiou" for c in "st"][:WORDS]
    shares = draw.dirichlet([0.3] * WORDS, 10)
    lines = [" ".join(draw.choice(words, 8, p=shares[draw.integers(10)])) for _ in range(600)]
    folder = tmp_path_factory.mktemp("topics")
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines), encoding="utf-8")
    tokenizer = Tokenizer.train(lines, 40, lowercase=True)
    source = [folder / "pairs.tsv"]
    store = tokenise(source, ("en", "fr"), tokenizer, folder / "store", min_tokens=1, valid_pairs=100, seed=1)
    return store, tokenizer.vocab_size


def topics_trainer(tokens: int, config: TrainConfig) -> Trainer:
    torch.manual_seed(0)
    model = Topics(tokens).train()
    return Trainer(model, loop.make_optimizer(model, config), Sum({"elbo": Elbo(0)}), config, CPU, Workers())


def test_aggressive_training_keeps_information_that_ordinary_training_loses(topics: tuple[Corpus, int]) -> None:
    valid, done, kept = Corpus.open(topics[0].folder, "valid"), [], []
    for steps in (0, 10):
        log, trainer = Log(), topics_trainer(topics[1], replace(AGGRESSIVE, aggressive_steps=steps))
        done.append(train_model(trainer, topics[0], valid, log))
        assert any(row["kind"] == "information" for row in log.rows) == (steps > 0)
        kept.append(information_of(trainer, valid)["information/semantic"])
    assert done[0] == done[1] and kept[0] < 0.05 < 0.25 < kept[1]


def test_frozen_parts_do_not_move_in_an_update(topics: tuple[Corpus, int]) -> None:
    """The optimiser's momentum must not move frozen parameters, which get no gradient."""
    corpus, tokens = topics
    trainer = topics_trainer(tokens, replace(AGGRESSIVE, weight_decay=0.1))
    model = trainer.model
    inference, generation = loop.inference_and_generation_parameters(model)
    assert {id(parameter) for parameter in inference} == {id(parameter) for parameter in model.encoders.parameters()}
    assert len(inference) + len(generation) == len(list(model.parameters()))

    def moved(step: int, fixed: list[nn.Parameter]) -> list[set[bool]]:
        before = [[parameter.detach().clone() for parameter in part] for part in (inference, generation)]
        with frozen(fixed):
            train_step(trainer, step, batching(AGGRESSIVE).update(corpus, step))
        pairs = [zip(part, old, strict=True) for part, old in zip((inference, generation), before, strict=True)]
        return [{not torch.equal(*pair) for pair in of_part} for of_part in pairs]

    assert moved(0, []) == [{True}, {True}]
    assert moved(1, generation) == [{True}, {False}]
    assert moved(2, inference) == [{False}, {True}]


@pytest.mark.parametrize(
    ("groups", "most", "updates"),
    [
        ([5.0, 4.0, 4.5, 1.0], 100, 3 * GROUP),  # stops: the third group is worse than the second
        ([5.0, 5.0, 1.0], 100, 2 * GROUP),  # stops: the second group is no better than the first
        ([5.0, 4.0, 3.0, 2.0], 40, 4 * GROUP),  # stops at the limit of 40 updates
        ([5.0], 7, 7),
    ],
)
def test_encoders_are_updated_until_a_group_is_no_better(
    groups: Sequence[float], most: int, updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encoders are updated until the loss per token in a group of consecutive updates is not below the last group's."""
    numbers = []

    def scripted(trainer: Trainer, step: int, update: StepBatch, number: int) -> Sums:
        numbers.append(number)
        tokens = 10 * number
        loss = torch.tensor(groups[(number - 1) // GROUP] * tokens)
        return Sums({"loss": loss}, {"loss": 3}, tokens)

    monkeypatch.setattr(loop, "train_step", scripted)
    trainer = Trainer(Topics(10), None, None, AGGRESSIVE, CPU, Workers())
    ahead = Aggressive(trainer, lambda step: islice(iter(lambda: StepBatch(3, {}), None), most))
    assert ahead.train_inference_network(5) == (updates, 10 * sum(numbers))
    assert numbers == list(range(1, updates + 1))


def test_it_ends_when_information_rises_no_more() -> None:
    trainer = Trainer(Topics(10), None, None, AGGRESSIVE, CPU, Workers())
    for rises in ([], [0.1], [0.1, 0.2, 0.5]):
        assert Aggressive(trainer, lambda step: [], rises).active
    for ends in ([0.1, 0.2, 0.2, 0.9], [0.3, 0.1], [0.0]):
        assert not Aggressive(trainer, lambda step: [], ends).active


@pytest.mark.slow
def test_an_aggressive_run_is_resumed_with_its_reported_information(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tsv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer.save(tmp_path / "tokens.model")
    sizes = {"epochs": 2.0, "batch_tokens": 1000, "learning_rate": 1e-3, "train.warmup_steps": 0, "save_every": 2}
    recipe = tiny("english-vae", aggressive_steps=2, **sizes)
    last = training.train(recipe, [tsv], tmp_path / "run", tokenizer=tmp_path / "tokens.model", device="cpu")
    expected = (last / checkpoint.WEIGHTS).read_bytes()
    assert '"kind": "information"' in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8")
    seen: list[Sequence[float]] = []
    original = training_run.train_model
    monkeypatch.setattr(training_run, "train_model", lambda *parts: seen.append(parts[-1]) or original(*parts))
    shutil.rmtree(last)
    assert (training.resume(tmp_path / "run", device="cpu") / checkpoint.WEIGHTS).read_bytes() == expected
    assert seen[0]


def test_aggressive_training_of_points_is_refused(tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path) -> None:
    recipe = tiny("english-ae", aggressive_steps=10)
    with pytest.raises(BgtError, match=r"aggressive_steps: .* points") as error:
        training.train(recipe, [tsv], tmp_path / "run", device="cpu")
    assert error.value.exit_code == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch raises warnings while it traces
def test_compiled_layers_compute_the_same(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each layer must compile to a single graph, or an error is raised. The backend "eager" makes no machine code,
    which saves half a minute. French layers are not compiled, because they are like the English ones."""
    plain = partialmethod(nn.Module.compile, backend="eager", fullgraph=True)
    monkeypatch.setattr(nn.Module, "compile", plain)
    recipe, results = tiny("bgt-bound", roles_layers=1), []
    for setting in ("off", "on"):
        torch.manual_seed(0)
        model = recipe.build(tokenizer).train()
        loop.compile_layers(model, setting, CPU, 1)
        compiled = {name: layer for name, layer in model.named_modules() if layer._compiled_call_impl}
        assert bool(compiled) == (setting == "on")
        for name, layer in compiled.items():
            if "fr" in name.split("."):
                layer._compiled_call_impl = None
        torch.manual_seed(1)
        loss = recipe.objective(model(batch), step=3)
        loss.total.backward()
        gradients = [part.grad.flatten() for part in model.parameters() if part.grad is not None]
        results.append(torch.cat([loss.total[None].detach(), *gradients]))
    assert_close(results[1], results[0])


def test_the_rate_rises_linearly_falls_with_the_root_and_cools_down() -> None:
    def rates(**settings: float) -> list[float]:
        config = TrainConfig(learning_rate=0.5, **{"warmup_steps": 100, **settings})
        return [loop.learning_rate(step, 1000, config) for step in range(1000)]

    plain, cooled, fixed = rates(), rates(cooldown=0.25), rates(warmup_steps=0)
    assert [plain[0], plain[49], plain[399], plain[899]] == pytest.approx([0.005, 0.25, 0.25, 0.5 / 3])
    assert plain[99] == max(plain) == pytest.approx(0.5)
    assert cooled[:751] == plain[:751] and cooled[-1] == pytest.approx(plain[-1] / 250)
    assert all(later < earlier for earlier, later in pairwise(cooled[750:]))
    assert set(fixed) == {0.5} and rates(warmup_steps=0, cooldown=0.25)[875] == pytest.approx(0.25)
