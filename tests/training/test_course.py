"""Aggressive training: its rules, what moves when, and a collapse that it delays. Mega-batches in the loop."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partialmethod
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core import checkpoint, training
from bgt_core.contracts import BOS, EOS, UNK, Batch, Outputs, Readout, Tokens
from bgt_core.data.batching import Batching, StepBatch, validation
from bgt_core.data.corpus import Corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.encoders import Encoder, GaussianHead
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import PlainOutput, SentencePrediction
from bgt_core.objectives import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.objectives.similarity import Margin
from bgt_core.recipes import Recipe
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training import course as module
from bgt_core.training import run as runs
from bgt_core.training.course import (
    GROUP,
    Aggressive,
    batching,
    compile_layers,
    inference_and_generation_parameters,
    total_steps,
    train_model,
)
from bgt_core.training.loop import Hooks, Sums, Trainer, frozen, make_optimizer, train_step
from bgt_core.training.negatives import mined as mine_negatives
from bgt_core.training.validate import information_of
from bgt_core.training.workers import SINGLE_PROCESS, Workers
from tests.close import assert_close

CPU = torch.device("cpu")
CONFIG = TrainConfig(
    epochs=4.0,
    batch_tokens=450,
    micro_tokens=450,
    learning_rate=3e-2,
    warmup_steps=0,
    clip=5.0,
    aggressive_steps=10,
    precision="fp32",
)
WIDTH, UNITS, WORDS = 16, 4, 25


class Bag(nn.Module):
    """A sentence is the mean of its tokens' vectors, (B, H)."""

    def __init__(self, table: nn.Embedding):
        super().__init__()
        self.table, self.hidden = table, nn.Linear(WIDTH, WIDTH)

    def forward(self, side: Tokens) -> torch.Tensor:
        layout = PackedLayout.of(side)
        return torch.tanh(self.hidden(layout.mean(self.table(layout.pack(side.ids)))))


class Topics(LatentModel):
    """A VAE whose decoder reads all words before, from which it can tell the topic without a latent: it collapses."""

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
        past = past.flatten(0, 1)[layout.flat_index]  # (N, H)
        features = torch.tanh(self.hidden(torch.cat([past, layout.repeat(z)], 1)))
        prediction = SentencePrediction("reconstruct", "en", features, z, self.layer, side)
        return Outputs({}, {"semantic": {"semantic": posterior}}, [prediction])


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, int]:
    """600 sentences of 8 words, drawn from the distribution of one of ten topics; and the size of the vocabulary."""
    draw = np.random.default_rng(0)
    words = [a + b + c for a in "bdfgklmnpr" for b in "aeiou" for c in "st"][:WORDS]
    shares = draw.dirichlet([0.3] * WORDS, 10)
    lines = [" ".join(draw.choice(words, 8, p=shares[draw.integers(10)])) for _ in range(600)]
    folder = tmp_path_factory.mktemp("topics")
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines), encoding="utf-8")
    tokenizer = Tokenizer.train(lines, 40, lowercase=True)
    source = [folder / "pairs.tsv"]
    store = prepare(source, ("en", "fr"), tokenizer, folder / "store", min_tokens=1, valid_pairs=100, seed=1)
    return store, tokenizer.vocab_size


class Log:
    """A run on `topics`, to its end or to the step `stop`; `begun` is one to go on with."""

    def __init__(
        self, topics: tuple[Corpus, int], config: TrainConfig, stop: int | None = None, begun: Log | None = None
    ):
        corpus, tokens = topics
        valid = Corpus.open(corpus.folder, "valid")
        torch.manual_seed(0)
        self.model = Topics(tokens).train()
        self.optimizer = make_optimizer(self.model, config)
        self.rows: list[dict] = []
        start, before = 0, []
        if begun:
            self.model.load_state_dict(begun.model.state_dict())
            self.optimizer.load_state_dict(begun.optimizer.state_dict())
            start, before = begun.done, begun.informations
        left = iter(range(start + 1, total_steps(corpus, config) + 1))
        hooks = Hooks(self.rows.append, lambda step: None, lambda: next(left) == stop)
        trainer = Trainer(self.model, self.optimizer, Sum({"elbo": Elbo(0)}), config, CPU, SINGLE_PROCESS)
        self.done = train_model(trainer, corpus, valid, hooks, start, informations=before)
        self.informations = [*before, *(row["information"] for row in self.rows if row["kind"] == "information")]
        self.information = information_of(trainer, validation(valid, config.micro_tokens))["information/semantic"]

    def weights(self) -> torch.Tensor:
        return torch.cat([parameter.detach().flatten() for parameter in self.model.parameters()])


@pytest.fixture(scope="module")
def aggressive(topics: tuple[Corpus, int]) -> Log:
    return Log(topics, CONFIG)


def test_the_latent_keeps_what_ordinary_training_loses(topics: tuple[Corpus, int], aggressive: Log) -> None:
    ordinary = Log(topics, replace(CONFIG, aggressive_steps=0))
    assert ordinary.done == aggressive.done
    assert ordinary.informations == []
    assert ordinary.information < 0.05 < 0.25 < aggressive.information  # nats


def test_decoders_stand_still_while_encoders_catch_up(topics: tuple[Corpus, int]) -> None:
    corpus, tokens = topics
    torch.manual_seed(0)
    model = Topics(tokens).train()
    optimizer = make_optimizer(model, replace(CONFIG, weight_decay=0.1))
    inference, generation = inference_and_generation_parameters(model)
    assert {id(parameter) for parameter in inference} == {id(parameter) for parameter in model.encoders.parameters()}
    assert len(inference) + len(generation) == len(list(model.parameters()))

    def moved(step: int, *inner: int) -> list[list[bool]]:
        parts = (inference, generation)
        before = [[parameter.detach().clone() for parameter in part] for part in parts]
        update = batching(CONFIG).update(corpus, step)
        train_step(Trainer(model, optimizer, Sum({"elbo": Elbo(0)}), CONFIG, CPU, SINGLE_PROCESS), step, update, *inner)
        return [
            [not torch.equal(parameter, old) for parameter, old in zip(part, olds, strict=True)]
            for part, olds in zip(parts, before, strict=True)
        ]

    assert all(moved(0)[0] + moved(1)[1])  # both have momentum, and would go on without a gradient
    with frozen(generation):
        encoders, decoders = moved(2, 1)
    assert all(encoders) and not any(decoders)
    with frozen(inference):
        encoders, decoders = moved(3)
    assert all(decoders) and not any(encoders)
    assert all(map(all, moved(4)))


@pytest.mark.parametrize(
    ("groups", "most", "updates"),
    [
        ([5.0, 4.0, 4.5, 1.0], 100, 3 * GROUP),  # the third group is worse than the second
        ([5.0, 5.0, 1.0], 100, 2 * GROUP),  # no better
        ([5.0, 4.0, 3.0, 2.0], 40, 4 * GROUP),  # the limit
        ([5.0], 7, 7),
    ],
)
def test_encoders_catch_up_until_a_group_is_no_better(
    groups: Sequence[float], most: int, updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss per token: sentences of any length count by their tokens."""
    numbers = []

    def scripted(trainer: Trainer, step: int, update: StepBatch, number: int) -> Sums:
        numbers.append(number)
        tokens = 10 * number
        loss = torch.tensor(groups[(number - 1) // GROUP] * tokens)
        return Sums({"loss": loss}, {"loss": 3}, tokens)

    monkeypatch.setattr(module, "train_step", scripted)
    trainer = Trainer(Topics(10), None, None, CONFIG, CPU, SINGLE_PROCESS)  # type: ignore[arg-type]
    ahead = Aggressive(trainer, lambda step: islice(iter(lambda: StepBatch(3, {}), None), most))
    assert ahead.train_inference_network(5) == (updates, 10 * sum(numbers))
    assert numbers == list(range(1, updates + 1))


@pytest.mark.parametrize(
    ("informations", "active"),
    [
        ([], True),
        ([0.1], True),
        ([0.1, 0.2, 0.5], True),
        ([0.1, 0.2, 0.2, 0.9], False),
        ([0.3, 0.1], False),
        ([0.0], False),
    ],
)
def test_it_ends_when_information_rises_no_more(informations: list[float], active: bool) -> None:
    trainer = Trainer(Topics(10), None, None, CONFIG, CPU, SINGLE_PROCESS)  # type: ignore[arg-type]
    assert Aggressive(trainer, lambda step: [], informations).active == active


@pytest.mark.slow
def test_a_run_finds_what_it_needs_to_go_on(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tsv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer.save(tmp_path / "tokens.model")
    sizes = {"epochs": 2.0, "batch_tokens": 1000, "learning_rate": 1e-3, "train.warmup_steps": 0, "save_every": 2}
    recipe = tiny("english-vae", aggressive_steps=2, **sizes)
    last = training.train(recipe, [tsv], tmp_path / "run", tokenizer=tmp_path / "tokens.model", device="cpu")
    expected = (last / checkpoint.WEIGHTS).read_bytes()
    assert '"kind": "information"' in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8")
    seen: list[Sequence[float]] = []
    original = runs.train_model
    monkeypatch.setattr(runs, "train_model", lambda *parts: seen.append(parts[-1]) or original(*parts))
    shutil.rmtree(last)
    assert (training.resume(tmp_path / "run", device="cpu") / checkpoint.WEIGHTS).read_bytes() == expected
    assert seen[0]


def test_points_are_refused_before_the_work(tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path) -> None:
    recipe = tiny("english-ae", aggressive_steps=10)
    with pytest.raises(BgtError, match=r"aggressive_steps: .* points") as error:
        training.train(recipe, [tsv], tmp_path / "run", device="cpu")
    assert error.value.exit_code == 2


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


MINING = TrainConfig(
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
    plan = Batching(MINING.batch_tokens, MINING.micro_tokens, MINING.seed)
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
    config = replace(MINING, mega_batch_warmup=0)
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
    whole = list(mined(raw(corpus), model, MINING, first=2))
    assert [any(batch.negatives for batch in update.batches.values()) for update in whole] == [False] * 2 + [True] * 4
    assert [update.closes_mega_batch for update in whole] == [True, True, True, True, False, True]
    for plain, update in zip(raw(corpus), whole[:2], strict=False):
        assert sentences([*plain.batches.values()], "fr") == sentences([*update.batches.values()], "fr")
    for start in (1, 3):
        updates = list(raw(corpus))[start:]
        again = list(mined(iter(updates), model, MINING, start=start, first=2))
        for one, other in zip(whole[start:], again, strict=True):
            pair = [[*update.batches.values()] for update in (one, other)]
            assert sentences(pair[0], "en", negatives=start > 2) == sentences(pair[1], "en", negatives=start > 2)
    shares = [list(mined(raw(corpus), model, MINING, Workers(rank, 2), first=2)) for rank in range(2)]
    for update, *parts in zip(whole, *shares, strict=True):
        assert sorted([*parts[0].batches, *parts[1].batches]) == sorted(update.batches)


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
        optimizer = make_optimizer(model, MINING)
        log, saved = hooks(stop)
        trainer = Trainer(model, optimizer, recipe.objective, MINING, CPU, SINGLE_PROCESS)
        done = train_model(trainer, corpus, valid, log)
        if stop:
            assert done == saved[-1] == 7
            state, moments = model.state_dict(), optimizer.state_dict()
            model, _ = build()
            model.load_state_dict(state)
            optimizer = make_optimizer(model, MINING)
            optimizer.load_state_dict(moments)
            trainer = Trainer(model, optimizer, recipe.objective, MINING, CPU, SINGLE_PROCESS)
            train_model(trainer, corpus, valid, hooks(None)[0], start=done)
        return [parameter.detach().clone() for parameter in model.parameters()], saved

    whole, saved = run(None)
    assert saved[:-1] == [end for end in (4, 7, 10, 13, 16) if end < saved[-1]]  # after 3, 6, 9, ... at the next end
    assert saved[-1] > 10
    for stop in (5, 7):
        assert all(torch.equal(one, other) for one, other in zip(run(stop)[0], whole, strict=True))


@pytest.mark.filterwarnings("ignore")  # torch's, about its own tracing
def test_compiled_layers_compute_the_same(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one graph each, or compiling raises; without code for a processor, which takes half a minute. French has
    layers like those of English, which are left as they are."""
    plain = partialmethod(nn.Module.compile, backend="eager", fullgraph=True)
    monkeypatch.setattr(nn.Module, "compile", plain)
    recipe, results = tiny("bgt-bound"), []
    for setting in ("off", "on"):
        torch.manual_seed(0)
        model = recipe.build(tokenizer).train()
        compile_layers(model, setting, CPU, 1)
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
