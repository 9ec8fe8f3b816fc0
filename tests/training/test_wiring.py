"""Mega-batches in the loop: whose weights choose the negatives, and where a run may stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.contracts import EOS, UNK, Batch
from bgt_core.data.batching import Batching, StepBatch
from bgt_core.data.corpus import Corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.nets.layers import EncoderLayer
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.margin import Margin
from bgt_core.recipes import Recipe
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, Trainer
from bgt_core.training.negatives import mined as mine_negatives
from bgt_core.training.wiring import compile_layers, make_optimizer, train
from bgt_core.training.workers import SINGLE_PROCESS, Workers
from tests.close import assert_close

CPU = torch.device("cpu")


def mined(
    updates: Iterator[StepBatch],
    model: nn.Module,
    config: TrainConfig,
    workers: Workers = SINGLE_PROCESS,
    both_sides: bool = False,
    start: int = 0,
    first: int = 0,
) -> Iterator[StepBatch]:
    objective = Sum({"margin": Margin(both_sides=both_sides)})
    trainer = Trainer(model, None, objective, config, CPU, workers)  # type: ignore[arg-type]
    return mine_negatives(updates, start, trainer, first)


CONFIG = TrainConfig(
    epochs=2.0,
    batch_tokens=500,
    micro_tokens=300,
    learning_rate=1e-1,
    warmup_steps=0,
    scramble=0.3,
    mega_batch=3,
    mega_batch_warmup=2,  # mega-batches of 1, 1, 2, 3, 3, ... updates: they end after 1, 2, 4, 7, 10, 13, ...
    valid_every=100,
    save_every=3,
    precision="fp32",
)


@pytest.fixture(scope="module")
def corpus(tsv: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("mining")
    lines = tsv.read_text("utf-8").splitlines(keepends=True)[:140]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return prepare(
        [folder / "pairs.tsv"], ("en", "fr"), tokenizer, folder / "store", min_tokens=2, valid_pairs=20, seed=1
    )


@pytest.fixture
def build(tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> Callable[[], tuple[nn.Module, Recipe]]:
    def make() -> tuple[nn.Module, Recipe]:
        recipe = tiny("sp", dropout=0.2)
        torch.manual_seed(0)
        return recipe.build(tokenizer).train(), recipe

    return make


def raw(corpus: Corpus) -> Iterator[StepBatch]:
    plan = Batching(CONFIG.batch_tokens, CONFIG.micro_tokens, CONFIG.seed)
    return (plan.update(corpus, step) for step in range(6))


def sentences(batches: list[Batch], lang: str, negatives: bool = False) -> list[tuple[int, ...]]:
    sides = [(batch.negatives if negatives else batch.sides)[lang] for batch in batches]
    return [tuple(ids[mask].tolist()) for side in sides for ids, mask in zip(side.ids, side.mask, strict=True)]


def directions(model: nn.Module, side: list[tuple[int, ...]]) -> torch.Tensor:
    table = model.encoders["semantic"].body.table.weight.detach()
    known = [[token for token in ids if token not in (EOS, UNK)] for ids in side]
    return F.normalize(torch.stack([table[ids].mean(0) for ids in known]), dim=1)


@pytest.mark.parametrize("both_sides", [False, True])
def test_negatives_are_the_hardest_under_the_weights_of_the_start(
    both_sides: bool, corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]
) -> None:
    """Brute force over the mega-batch; each update is followed by a change of all weights."""
    model, _ = build()
    config = replace(CONFIG, mega_batch_warmup=0)
    mined_updates, weights = [], []
    for update in mined(raw(corpus), model, config, both_sides=both_sides):
        assert model.training
        weights.append({name: value.clone() for name, value in model.state_dict().items()})
        mined_updates.append(update)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter))
    assert [update.closes_mega_batch for update in mined_updates] == [False, False, True] * 2
    for start in (0, 3):
        model.load_state_dict(weights[start])
        batches = [batch for update in mined_updates[start : start + 3] for batch in update.batches.values()]
        sides = {lang: sentences(batches, lang) for lang in ("en", "fr")}
        assert len(sides["en"]) > 30
        for asks, told in (("en", "fr"), ("fr", "en")):
            cosine = directions(model, sides[asks]) @ directions(model, sides[told]).T
            cosine.fill_diagonal_(-2)
            if both_sides:
                within = directions(model, sides[asks]) @ directions(model, sides[asks]).T
                cosine = torch.maximum(cosine, within.fill_diagonal_(-2))
            given = directions(model, sentences(batches, told, negatives=True))
            of_given = (directions(model, sides[asks]) * given).sum(1)
            assert_close(of_given, cosine.amax(1))


def test_negatives_come_from_a_step_on_wherever_a_run_begins(
    corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]
) -> None:
    """Before it updates come as they are, one at a time; from it on in mega-batches of 1, 1 and 2."""
    model, _ = build()
    whole = list(mined(raw(corpus), model, CONFIG, first=2))
    assert [any(batch.negatives for batch in update.batches.values()) for update in whole] == [False] * 2 + [True] * 4
    assert [update.closes_mega_batch for update in whole] == [True, True, True, True, False, True]
    for plain, update in zip(raw(corpus), whole[:2], strict=False):
        assert sentences([*plain.batches.values()], "fr") == sentences([*update.batches.values()], "fr")
    for start in (1, 3):
        updates = list(raw(corpus))[start:]
        again = list(mined(iter(updates), model, CONFIG, start=start, first=2))
        for one, other in zip(whole[start:], again, strict=True):
            pair = [[*update.batches.values()] for update in (one, other)]
            assert sentences(pair[0], "en", negatives=start > 2) == sentences(pair[1], "en", negatives=start > 2)
    shares = [list(mined(raw(corpus), model, CONFIG, Workers(rank, 2), first=2)) for rank in range(2)]
    for update, *parts in zip(whole, *shares, strict=True):
        assert sorted([*parts[0].batches, *parts[1].batches]) == sorted(update.batches)


def test_every_pair_is_still_trained_on_once(corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]) -> None:
    model, _ = build()
    for plain, update in zip(raw(corpus), mined(raw(corpus), model, CONFIG), strict=True):
        assert update.pairs == plain.pairs
        told, expected = (
            sorted(zip(sentences(batches, "en"), sentences(batches, "fr"), strict=True))
            for batches in ([*update.batches.values()], [*plain.batches.values()])
        )
        assert told == expected


def test_workers_share_out_what_one_finds(corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]) -> None:
    model, _ = build()
    alone = list(mined(raw(corpus), model, CONFIG))
    shares = [list(mined(raw(corpus), model, CONFIG, Workers(rank, 2))) for rank in range(2)]
    for whole, *parts in zip(alone, *shares, strict=True):
        assert {number % 2 for number in parts[1].batches} <= {1}
        together = parts[0].batches | parts[1].batches
        assert sorted(together) == sorted(whole.batches)
        for number, batch in together.items():
            assert sentences([batch], "fr", negatives=True) == sentences([whole.batches[number]], "fr", negatives=True)


def test_a_run_stops_between_mega_batches_and_goes_on_to_the_same_weights(
    corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]
) -> None:
    """With dropout and scrambling; asked to stop after step 5, amid the mega-batch of 5 to 7, or after step 7."""
    valid = Corpus.open(corpus.folder, "valid")

    def hooks(stop: int | None) -> tuple[Hooks, list[int]]:
        saved: list[int] = []
        asked = iter(range(1, 1000))
        return Hooks(lambda row: None, saved.append, lambda: stop is not None and next(asked) >= stop), saved

    def run(stop: int | None) -> tuple[list[torch.Tensor], list[int]]:
        model, recipe = build()
        optimizer = make_optimizer(model, CONFIG)
        log, saved = hooks(stop)
        trainer = Trainer(model, optimizer, recipe.objective, CONFIG, CPU, SINGLE_PROCESS)
        done = train(trainer, corpus, valid, log)
        if stop:
            assert done == saved[-1] == 7
            state, moments = model.state_dict(), optimizer.state_dict()
            model, _ = build()
            model.load_state_dict(state)
            optimizer = make_optimizer(model, CONFIG)
            optimizer.load_state_dict(moments)
            trainer = Trainer(model, optimizer, recipe.objective, CONFIG, CPU, SINGLE_PROCESS)
            train(trainer, corpus, valid, hooks(None)[0], start=done)
        return [parameter.detach().clone() for parameter in model.parameters()], saved

    whole, saved = run(None)
    assert saved[:-1] == [end for end in (4, 7, 10, 13, 16) if end < saved[-1]]  # after 3, 6, 9, ... at the next end
    assert saved[-1] > 10
    for stop in (5, 7):
        assert all(torch.equal(one, other) for one, other in zip(run(stop)[0], whole, strict=True))


@pytest.mark.filterwarnings("ignore")  # torch's, about its own tracing
@pytest.mark.parametrize("name", ["bgt", "bgt-bound"])
def test_compiled_layers_compute_the_same(
    name: str, tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one graph each, or compiling raises; without code for a processor, which takes half a minute."""
    plain = partialmethod(nn.Module.compile, backend="eager", fullgraph=True)
    monkeypatch.setattr(nn.Module, "compile", plain)
    recipe, results = tiny(name), []
    for setting in ("off", "on"):
        torch.manual_seed(0)
        model = recipe.build(tokenizer).train()
        compile_layers(model, setting, CPU, 1)
        assert any(layer._compiled_call_impl for layer in model.modules()) == (setting == "on")
        torch.manual_seed(1)
        loss = recipe.objective(model(batch), step=3)
        loss.total.backward()
        gradients = [part.grad.flatten() for part in model.parameters() if part.grad is not None]
        results.append(torch.cat([loss.total[None].detach(), *gradients]))
    assert_close(results[1], results[0])


@pytest.mark.parametrize(
    ("setting", "device", "steps", "compiles"),
    [
        ("auto", "cuda", 1_000, True),
        ("auto", "cuda", 999, False),  # compiling would not pay
        ("auto", "cpu", 10**6, False),
        ("on", "cpu", 1, True),
        ("off", "cuda", 10**6, False),
    ],
)
def test_layers_are_compiled_where_that_pays(
    setting: str, device: str, steps: int, compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[nn.Module] = []
    monkeypatch.setattr(nn.Module, "compile", lambda layer, dynamic: compiled.append(layer))
    model = nn.Sequential(EncoderLayer(4, 4, 2, 0.0), nn.Linear(4, 4))
    compile_layers(model, setting, torch.device(device), steps)  # type: ignore[arg-type]
    assert compiled == ([model[0]] if compiles else [])
