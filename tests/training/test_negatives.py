"""Hard negatives are found, and training uses the negatives in its batches."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core.contracts import EOS, UNK, Batch
from bgt_core.data.batching import Batching, StepBatch
from bgt_core.data.store import Corpus, tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.objectives import Sum
from bgt_core.objectives.similarity import Margin
from bgt_core.recipes import Recipe
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.training import negatives
from bgt_core.training.loop import Hooks, Trainer, make_optimizer, train_model
from bgt_core.training.negatives import hard_negatives, mega_batch_size, nearest_other
from bgt_core.training.workers import Workers
from tests.close import assert_close


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.sqrt((left @ left) * (right @ right)))


@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("columns", [("a", "b"), ("a", "b", "c")])
def test_negatives_are_those_of_a_plain_loop(
    columns: tuple[str, ...], both_sides: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop compares each sentence with all other rows of the next column and, if `both_sides`, of its own column."""
    monkeypatch.setattr(negatives, "BLOCK", block)
    rng = np.random.default_rng(1)
    first, second = ({column: rng.normal(size=(size, 3)) for column in columns} for size in (7, 4))
    means = [{column: torch.from_numpy(part[column]) for column in columns} for part in (first, second)]
    wrong = hard_negatives(columns, means, both_sides)
    joined = {column: np.concatenate([first[column], second[column]]) for column in columns}
    from_own_side = 0
    for number, column in enumerate(columns):
        before = columns[number - 1]
        for row in range(11):
            best, chosen = -2.0, -1
            for start, side in ((0, column), (11, before))[: 1 + both_sides]:
                for other in range(11):
                    near = cosine(joined[before][row], joined[side][other])
                    if other != row and near > best:
                        best, chosen = near, start + other
            assert wrong[column][row] == chosen
            from_own_side += chosen >= 11
    assert (from_own_side > 0) == both_sides and from_own_side < 11 * len(columns)


def test_only_the_same_row_is_excluded() -> None:
    """A copy of the translation in another row counts as a wrong sentence, as in the code released with the papers."""
    ahead, _ = nearest_other(torch.eye(3), torch.tensor([[1.0, 0, 0], [1.0, 0, 0], [0, 0.5, 1.0]]))
    assert ahead[1][0] == 1
    assert ahead[0][0] == 1


def test_mega_batches_grow_by_one() -> None:
    """As in the papers' code, mega-batches begin with one update, and grow by one every 150 updates, up to 60."""
    sizes, done = [], 0
    while done < 20_000:
        sizes.append(mega_batch_size(done, 60, 150))
        done += sizes[-1]
    assert sizes[:150] == [1] * 150
    assert sizes[150:225] == [2] * 75
    assert sizes[225:275] == [3] * 50
    assert sizes[-1] == max(sizes) == 60
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(sizes))
    assert mega_batch_size(0, 60, 0) == 60


CPU = torch.device("cpu")


def mined(
    updates: Iterator[StepBatch],
    model: nn.Module,
    config: TrainConfig,
    workers: Workers | None = None,
    both_sides: bool = False,
    start: int = 0,
    first: int = 0,
) -> Iterator[StepBatch]:
    objective = Sum({"margin": Margin(both_sides=both_sides)})
    trainer = Trainer(model, None, objective, config, CPU, workers or Workers())  # type: ignore[arg-type]
    return negatives.mined(updates, start, trainer, first)


MINING = TrainConfig(  # mega-batches grow to 3 updates (1, 1, 2, 3, 3, 3, ...): they end after 1, 2, 4, 7, 10, 13, ...
    epochs=2.0, batch_tokens=500, micro_tokens=300, learning_rate=1e-1, warmup_steps=0, scramble=0.3, mega_batch=3,
    mega_batch_warmup=2, valid_every=100, save_every=3, precision="fp32",
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tsv: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("mining")
    lines = tsv.read_text("utf-8").splitlines(keepends=True)[:140]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return tokenise(
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


def test_negatives_are_the_hardest_under_the_weights_of_the_start(
    corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]
) -> None:
    """Each update changes the weights, but the negatives are those that a search with the initial weights finds."""
    model, _ = build()
    config = replace(MINING, mega_batch_warmup=0)
    mined_updates, weights = [], []
    for update in mined(raw(corpus), model, config, both_sides=True):
        assert model.training
        weights.append({name: value.clone() for name, value in model.state_dict().items()})
        mined_updates.append(update)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter))
    assert [update.closes_mega_batch for update in mined_updates] == [False, False, True] * 2
    for before, after in zip(raw(corpus), mined_updates, strict=True):
        plain, made = list(before.batches.values()), list(after.batches.values())
        assert sorted(sentences(plain, "en")) == sorted(sentences(made, "en")) and before.rows == after.rows
        for batch in made:
            assert (batch.anchor, batch.shift) == (plain[0].anchor, plain[0].shift)
            longest = max(side.ids.shape[1] for side in (*batch.sides.values(), *batch.negatives.values()))
            assert len(batch) == 1 or len(batch) * longest <= MINING.micro_tokens
    for start in (0, 3):
        model.load_state_dict(weights[start])
        batches = [batch for update in mined_updates[start : start + 3] for batch in update.batches.values()]
        sides = {lang: sentences(batches, lang) for lang in ("en", "fr")}
        assert len(sides["en"]) > 30
        for own, other in (("en", "fr"), ("fr", "en")):
            cosine = directions(model, sides[own]) @ directions(model, sides[other]).T
            within = directions(model, sides[own]) @ directions(model, sides[own]).T
            cosine = torch.maximum(cosine, within).fill_diagonal_(-2)
            given = directions(model, sentences(batches, other, negatives=True))
            of_given = (directions(model, sides[own]) * given).sum(1)
            assert_close(of_given, cosine.amax(1))


def test_negatives_start_at_a_step_wherever_a_run_is_resumed(
    corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]
) -> None:
    """Updates before step 2 have no negatives. From step 2 on, mega-batches consist of 1, 1 and 2 updates."""
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


def test_a_run_stops_between_mega_batches_and_resumes_to_the_same_weights(
    corpus: Corpus, build: Callable[[], tuple[nn.Module, Recipe]]
) -> None:
    """The run uses dropout and scrambled words. It is asked to stop after step 5, inside the mega-batch of steps 5 to
    7, or after step 7."""
    valid = Corpus.open(corpus.folder, "valid")

    def train(given: dict | None = None, start: int = 0, stop: int = 1_000) -> tuple[nn.Module, dict, list[int]]:
        model, recipe = build()
        optimizer, saved, steps = make_optimizer(model, MINING), [], count(1)
        if given:
            model.load_state_dict(given["model"])
            optimizer.load_state_dict(given["optimizer"])
        hooks = Hooks(lambda row: None, saved.append, lambda: next(steps) >= stop)
        trainer = Trainer(model, optimizer, recipe.objective, MINING, CPU, Workers())
        train_model(trainer, corpus, valid, hooks, start=start)
        return model, {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved

    whole, _, saved = train()
    # a checkpoint that is due inside a mega-batch (after 3, 6, 9, ... steps) is saved at the end of the mega-batch
    assert saved[:-1] == [end for end in (4, 7, 10, 13, 16) if end < saved[-1]]
    assert saved[-1] > 10
    for stop in (5, 7):
        _, state, saved = train(stop=stop)
        assert saved[-1] == 7
        resumed, *_ = train(state, start=7)
        assert all(torch.equal(*pair) for pair in zip(resumed.parameters(), whole.parameters(), strict=True))
