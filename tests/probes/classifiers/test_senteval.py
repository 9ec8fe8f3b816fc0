"""Our version of SentEval's protocol has the results of a sequential version with torch's optimiser. With `--senteval`,
items keep the order, text and repeats of their file, and are divided into SentEval's minibatches."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import torch
from torch import nn

import probes
from bgt_core.errors import DataError
from probes import ProbeConfig
from probes.classifiers.senteval import SentEval, Split, SplitResult, Stack, split_classify
from probes.cli import about
from probes.data.load import load_items
from probes.task import SPLITS
from probes.tasks import TASKS
from tests.close import assert_close
from tests.probes import sequential_senteval

Task = tuple[Split, Split, Split]


def task(items: int, width: int, classes: int, noise: float, seed: int = 0) -> Task:
    """Draw normal vectors, with labels that depend linearly on them, plus noise. Dev and test have 60 items each."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((items + 120, width), dtype=np.float32)
    scores = vectors @ rng.standard_normal((width, classes))
    labels = (scores + noise * rng.gumbel(size=scores.shape)).argmax(1)
    ends = [items, items + 60]
    train, dev, test = zip(np.split(vectors, ends), np.split(labels, ends), strict=True)
    return train, dev, test


@pytest.fixture(scope="module")
def easy() -> Task:
    """A task whose label is the sign of one unit, which is far from 0, so that dev accuracy is always 100 %."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    vectors = np.stack([20.0 * labels - 10.0, rng.standard_normal(400)], axis=1).astype(np.float32)
    return tuple((vectors[part], labels[part]) for part in (slice(200), slice(200, 300), slice(300, None)))


def numbers(result: SplitResult) -> dict[str, object]:
    return vars(result) | {"predicted": result.predicted.tolist()}


@pytest.mark.parametrize(
    ("data", "protocol"),
    [
        (
            task(300, 12, 6, noise=2.0, seed=1),
            SentEval(seed=5, penalties=(1e-2, 0.3, 1e-4, 1.0)),
        ),  # 300 items make four minibatches of 64, and one of 44
        (task(256, 12, 4, noise=1.0), SentEval(seed=5, penalties=(1.0, 0.3, 1e-2))),
        (task(200, 12, 5, noise=3.0), SentEval(hidden=7)),
    ],
)
def test_training_all_penalties_at_once_gives_the_results_of_one_after_another(data: Task, protocol: SentEval) -> None:
    fast, straight = split_classify(*data, protocol), sequential_senteval.split_classify(*data, protocol)
    assert numbers(fast) == numbers(straight)
    # otherwise, the test would not cover the choice of a penalty or early stopping
    assert len(set(fast.dev_accuracies)) > 1 and len(set(fast.epochs)) > 1


@pytest.mark.parametrize("hidden", [0, 5])
def test_weights_after_training_are_those_of_torch(hidden: int) -> None:
    """Each network has the weights that torch.optim.Adam gives, even if the second of three networks is removed."""
    sizes, rng = ([6, hidden, 4] if hidden else [6, 4]), np.random.default_rng(1)
    vectors, labels = rng.standard_normal((25, 6), dtype=np.float32), rng.integers(0, 4, 25)
    orders = [rng.permutation(25) for _ in range(6)]
    stack = Stack(sizes, (1e-3, 0.1, 1.0), seed=3)
    for number, order in enumerate(orders):
        if number == 3:
            stack.keep([0, 2])
        stack.train(torch.from_numpy(vectors), labels, order, batch_size=10)
    for network, penalty in enumerate((1e-3, 1.0)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            layers = [nn.Linear(inside, outside) for inside, outside in pairwise(sizes)]
        model = nn.Sequential(layers[0], nn.Sigmoid(), layers[1]) if hidden else layers[0]
        optimiser = torch.optim.Adam(model.parameters(), weight_decay=penalty)
        for rows in (order[begin : begin + 10] for order in orders for begin in (0, 10, 20)):
            optimiser.zero_grad()
            logits = model(torch.from_numpy(vectors[rows]))
            nn.functional.cross_entropy(logits, torch.from_numpy(labels[rows])).backward()
            optimiser.step()
        for part, expected in zip(stack.parameters, model.parameters(), strict=True):
            assert_close(part[network].view_as(expected), expected)


@pytest.mark.parametrize(
    ("setting", "epochs"),
    [
        ({}, 28),  # 7 evaluations on dev, one per 4 passes: the best, then six that are no better
        ({"tenacity": 0}, 8),
        ({"epoch_size": 1}, 7),
        ({"max_epoch": 0}, 4),
        ({"max_epoch": 8}, 12),  # 8 passes do not exceed the maximum, so 4 more follow
        ({"tenacity": 99}, 204),
    ],
)
def test_when_training_ends(easy: Task, setting: dict[str, int], epochs: int) -> None:
    result = split_classify(*easy, SentEval(penalties=(1e-5, 1e-2), **setting))
    assert result.epochs == (epochs, epochs)
    assert result.dev_accuracies == (100.0, 100.0)


def test_global_random_states_are_unchanged_and_the_seed_determines_the_result() -> None:
    data = task(100, 4, 3, noise=1.0)
    for vectors, _ in data:
        vectors.flags.writeable = False  # read-only, like vectors that are mapped from a file
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002, the generator SentEval seeds
    first, again = split_classify(*data), split_classify(*data)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert numbers(first) == numbers(again) != numbers(split_classify(*data, SentEval(seed=2)))


def test_vectors_with_nan_or_infinity_are_an_error() -> None:
    for index, name, value in ((0, "train", np.nan), (1, "dev", np.inf), (2, "test", np.nan)):
        splits = [(np.eye(4, 3, dtype=np.float32), ["a", "b", "a", "b"]) for _ in range(3)]
        splits[index][0][2, 1] = value
        with pytest.raises(DataError, match=f"{name} vectors contain NaN or infinity"):
            split_classify(*splits)


SUBJECTS, SENTEVAL = TASKS["subj-num"], ProbeConfig(senteval=True)
WORDS = "the cats ca n't sleep , ` she said '' not now &quot; - LRB a 'd dog".split()


class Noise:
    """An encoder whose vectors are random, but equal for equal sentences, so that the order of items matters."""

    langs, latents, fingerprint = ("en",), ("semantic", "language"), ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        seeds = [crc32(f"{latent} {sentence}".encode()) for sentence in sentences]
        return 5 * np.stack([np.random.default_rng(seed).standard_normal(24, dtype=np.float32) for seed in seeds])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled file of 400 lines of train, dev and test, in mixed order. Some sentences repeat or have two labels."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(380):
        words = " ".join(rng.choice(WORDS, rng.integers(3, 7)))
        rows.append((rng.choice(["tr", "tr", "tr", "va", "te"]), rng.choice(["NN", "NNS"]), f"{words}  {number} ."))
    rows[7] = ("tr", "NN ", '" He said "" no "" . "')
    rows += [rows[0], rows[0], ("te", *rows[1][1:]), (rows[2][0], "NNS" if rows[2][1] == "NN" else "NN", rows[2][2])]
    rows += rows[10:26]
    path = tmp_path_factory.mktemp("paper") / "subj_number.txt"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(file: Path) -> list[tuple[str, str, list[str]]]:
    """Return (split, label, tokens) of each line, parsed as SentEval's README describes."""
    rows = [line.rstrip().split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    return [(dict(zip(("tr", "va", "te"), SPLITS, strict=True))[row[0]], row[1], row[-1].split()) for row in rows]


def test_order_text_and_repeats_of_a_file_are_kept(file: Path) -> None:
    items, rows = load_items(SUBJECTS, "en", file, senteval=True).items, read(file)
    assert items.splits == [split for split, _, _ in rows]
    assert items.labels == [label for _, label, _ in rows]
    assert items.sentences == [" ".join(tokens) for _, _, tokens in rows]
    assert len(set(items.sentences)) < len(items.sentences) == 400
    cleaned = load_items(SUBJECTS, "en", file).items
    assert len(set(cleaned.sentences)) == len(cleaned.sentences) < 400


@pytest.mark.parametrize("hidden", [0, 10])
def test_minibatches_are_those_of_the_sequential_version(hidden: int, file: Path) -> None:
    encoder, dataset, protocol = Noise(), load_items(SUBJECTS, "en", file, senteval=True), SentEval(hidden)
    config = replace(SENTEVAL, probe=f"mlp{hidden}" if hidden else "linear")
    result = probes.run(encoder, SUBJECTS, dataset.items, lang="en", latents=["semantic"], config=config)
    rows, splits = read(file), []
    for name in SPLITS:
        own = sorted((row for row in rows if row[0] == name), key=lambda row: (len(row[2]), row[1]))
        splits.append((encoder.embed([" ".join(tokens) for _, _, tokens in own], lang="en"), [row[1] for row in own]))
    train, dev, test = splits
    expected = sequential_senteval.split_classify(train, dev, test, protocol)
    tested = [number for number, row in enumerate(rows) if row[0] == "test"]
    tested.sort(key=lambda number: (len(rows[number][2]), rows[number][1]))
    predicted = {row["item"]: row["predicted"] for row in result.predictions.to_pylist()}
    assert [predicted[number] for number in tested] == expected.predicted.tolist()
    assert round(100 * result.rows[0].accuracy, 2) == expected.test_accuracy
    assert result.rows[0].probe == f"senteval, {hidden} hidden units, L2 {expected.penalty:g}" and result.seeds == 1
    backwards = sequential_senteval.split_classify((train[0][::-1].copy(), train[1][::-1]), dev, test, protocol)
    assert numbers(backwards) != numbers(expected)  # the order of the items matters


def test_the_output_names_differences_to_sentevals_items(file: Path) -> None:
    for config, said in (
        (ProbeConfig(senteval=True), "with Wilson intervals; items as in the file"),
        (ProbeConfig(senteval=True, max_items=300), "other items than SentEval's"),
        (ProbeConfig(seeds=1, control=False, baselines=False), "labelled files cleaned"),
    ):
        dataset = load_items(SUBJECTS, "en", file, senteval=config.senteval)
        assert said in about([probes.measure_cell(Noise(), SUBJECTS, dataset, lang="en", config=config)])
