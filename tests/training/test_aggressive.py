"""Aggressive training: its rules, what moves when, and a collapse that it delays."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from bgt_core import checkpoint, run
from bgt_core.contracts import BOS, Batch, Outputs, Readout, Tokens
from bgt_core.data.batching import StepBatch, validation
from bgt_core.data.corpus import Corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError
from bgt_core.models.latent import LatentModel
from bgt_core.nets.encoders import Encoder, GaussianHead
from bgt_core.nets.output import PlainOutput, SentencePrediction
from bgt_core.nets.packing import PackedLayout
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.recipes import Recipe
from bgt_core.run import session
from bgt_core.training import aggressive as module
from bgt_core.training.aggressive import GROUP, Aggressive, inference_and_generation_parameters, mi_increases
from bgt_core.training.config import TrainConfig
from bgt_core.training.loop import Hooks, Trainer, frozen, train_step
from bgt_core.training.meter import Sums
from bgt_core.training.validate import information_of
from bgt_core.training.wiring import batching, make_optimizer, total_steps, train
from bgt_core.training.workers import SINGLE_PROCESS, Workers

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
        self.done = train(trainer, corpus, valid, hooks, start, informations=before)
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


def test_a_table_that_both_use_goes_with_the_decoders(tiny: Callable[..., Recipe], tokenizer: Tokenizer) -> None:
    model = tiny("bgt-small").build(tokenizer)
    inference, generation = (
        {id(parameter) for parameter in part} for part in inference_and_generation_parameters(model)
    )
    assert not inference & generation
    assert inference | generation == {id(parameter) for parameter in model.parameters()}
    decoders = [*model.decoders.parameters(), *model.translators.parameters()]
    assert generation == {id(parameter) for parameter in decoders}
    assert inference < {id(parameter) for parameter in model.encoders.parameters()}


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


def test_it_ends_when_information_rises_no_more() -> None:
    assert mi_increases([]) and mi_increases([0.1]) and mi_increases([0.1, 0.2, 0.5])
    assert not (mi_increases([0.1, 0.2, 0.2, 0.9]) or mi_increases([0.3, 0.1]) or mi_increases([0.0]))


def test_reports_say_how_long_it_lasted(topics: tuple[Corpus, int], aggressive: Log) -> None:
    corpus, _ = topics
    ends = [row["step"] for row in aggressive.rows if row["kind"] == "information"]
    epoch = batching(CONFIG).updates(corpus)
    assert ends == [epoch * (number + 1) for number in range(len(ends))]
    inner = sum(row["inner_steps"] for row in aggressive.rows if row["kind"] == "train")
    assert inner == CONFIG.aggressive_steps * ends[-1]  # one group: none to compare it with
    assert [row["information"] for row in aggressive.rows if row["kind"] == "information"] == [
        row["information/semantic"] for row in aggressive.rows if row["kind"] == "information"
    ]


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(topics: tuple[Corpus, int]) -> None:
    """Stopped while aggressive, and after; what is known of earlier epochs decides how it goes on."""
    config = replace(CONFIG, epochs=3.0, batch_tokens=900, learning_rate=1e-2)  # too slow: the latent is given up
    whole = Log(topics, config)
    assert len(whole.informations) < 3
    assert not mi_increases(whole.informations)
    for stop in (3, whole.done - 2):
        begun = Log(topics, config, stop)
        assert torch.equal(Log(topics, config, begun=begun).weights(), whole.weights())
    begun.informations = []
    assert not torch.equal(Log(topics, config, begun=begun).weights(), whole.weights())


@pytest.mark.slow
def test_a_run_finds_what_it_needs_to_go_on(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, tsv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer.save(tmp_path / "tokens.model")
    sizes = {"epochs": 2.0, "batch_tokens": 1000, "learning_rate": 1e-3, "train.warmup_steps": 0, "save_every": 2}
    recipe = tiny("english-vae", aggressive_steps=2, **sizes)
    last = run.train(recipe, [tsv], tmp_path / "run", tokenizer=tmp_path / "tokens.model", device="cpu")
    expected = (last / checkpoint.WEIGHTS).read_bytes()
    assert '"kind": "information"' in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8")
    seen: list[Sequence[float]] = []
    original = session.train_loop
    monkeypatch.setattr(session, "train_loop", lambda *parts: seen.append(parts[-1]) or original(*parts))
    shutil.rmtree(last)
    assert (run.resume(tmp_path / "run", device="cpu") / checkpoint.WEIGHTS).read_bytes() == expected
    assert seen[0]


def test_points_are_refused_before_the_work(tiny: Callable[..., Recipe], tsv: Path, tmp_path: Path) -> None:
    recipe = tiny("english-ae", aggressive_steps=10)
    with pytest.raises(BgtError, match=r"aggressive_steps: .* points") as error:
        run.train(recipe, [tsv], tmp_path / "run", device="cpu")
    assert error.value.exit_code == 2


def test_one_worker_measures_for_all(topics: tuple[Corpus, int]) -> None:
    class Second(Workers):
        """Of two; the first has told."""

        def sum_over_ranks(self, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            assert values == {}
            return {"information/semantic": torch.tensor(0.7)}

    trainer = Trainer(nn.Identity(), None, None, CONFIG, CPU, Second(rank=1, count=2))  # type: ignore[arg-type]
    assert information_of(trainer, []) == {"information/semantic": pytest.approx(0.7)}
