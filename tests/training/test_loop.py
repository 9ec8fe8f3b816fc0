"""The loop: what an update is, what is reported and saved, and where it stops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from bgt_core.contracts import Batch, Tokens
from bgt_core.data.corpus import Corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair
from bgt_core.recipes import Recipe
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, Trainer
from bgt_core.training.wiring import make_optimizer, total_steps, train
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
    return train(trainer, corpus, Corpus.open(corpus.folder, "valid"), log, **options)


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
        train(Trainer(model, optimizer, objective, config, CPU, SINGLE_PROCESS), mirrored, valid, Log(stop=1))
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


@pytest.mark.slow
def test_it_learns(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    model, objective = exact(stir=lambda model: model)
    log = Log()
    run(model, objective, mirrored, replace(CONFIG, learning_rate=1e-2, epochs=10.0), log)
    scores = [row["elbo"] for row in log.rows if row["kind"] == "valid"]
    assert scores[-1] > scores[0] + 5  # nats a pair


def test_a_run_that_is_stopped_and_begun_again_ends_in_the_same_weights(
    mirrored: Corpus, tiny: Callable[..., Recipe], tokenizer: Tokenizer
) -> None:
    """With dropout, word dropout and sampled latents."""

    def weights(stop: int | None) -> list[torch.Tensor]:
        recipe = tiny("bgt-small")
        torch.manual_seed(0)
        model = recipe.build(tokenizer).train()
        optimizer, valid = make_optimizer(model, CONFIG), Corpus.open(mirrored.folder, "valid")
        log = Log(stop)
        done = train(Trainer(model, optimizer, recipe.objective, CONFIG, CPU, SINGLE_PROCESS), mirrored, valid, log)
        if stop:
            assert done == stop == log.saved[-1] == log.rows[-1]["step"]
            torch.randn(7)  # what a process that starts again has drawn meanwhile
            state, moments = model.state_dict(), optimizer.state_dict()
            model = recipe.build(tokenizer).train()
            model.load_state_dict(state)
            optimizer = make_optimizer(model, CONFIG)
            optimizer.load_state_dict(moments)
            trainer = Trainer(model, optimizer, recipe.objective, CONFIG, CPU, SINGLE_PROCESS)
            train(trainer, mirrored, valid, Log(), start=done)
        return [parameter.detach().clone() for parameter in model.parameters()]

    whole = weights(None)
    for stop in (1, 4):
        assert all(torch.equal(one, other) for one, other in zip(weights(stop), whole, strict=True))


def test_a_large_gradient_is_clipped(mirrored: Corpus, exact: Callable[..., tuple]) -> None:
    model, objective = exact()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    config = replace(CONFIG, clip=1e-3, learning_rate=1.0, warmup_steps=1)
    optimizer, log = torch.optim.SGD(model.parameters()), Log(stop=1)
    trainer = Trainer(model, optimizer, objective, config, CPU, SINGLE_PROCESS)
    train(trainer, mirrored, Corpus.open(mirrored.folder, "valid"), log)
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
