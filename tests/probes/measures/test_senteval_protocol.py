"""`--senteval` on a labelled file: its order, text and repeats, and the minibatches that SentEval makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

import probes
from probes import ProbeConfig
from probes.classifiers.senteval import SentEval
from probes.cli.output import about
from probes.dataset import load_items
from probes.task import SPLITS
from probes.tasks import TASKS
from tests.probes import sequential_senteval

TASK = TASKS["subj-num"]
WORDS = "the cats ca n't sleep , ` she said '' not now &quot; - LRB a 'd dog".split()


class Noise:
    """Vectors that say nothing, the same for the same sentence: what a probe learns of them hangs on the order."""

    langs, latents, fingerprint = ("en",), ("semantic", "language"), ""

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        seeds = [crc32(f"{latent} {sentence}".encode()) for sentence in sentences]
        return 5 * np.stack([np.random.default_rng(seed).standard_normal(24, dtype=np.float32) for seed in seeds])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 rows, splits mixed, with sentences that come again: in a split, in another, with another label."""
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
    """(split, label, tokens) of each line, as SentEval's README has its files."""
    rows = [line.rstrip().split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    return [(dict(zip(("tr", "va", "te"), SPLITS, strict=True))[row[0]], row[1], row[-1].split()) for row in rows]


def test_order_text_and_repeats_are_the_files(file: Path) -> None:
    items, rows = load_items(TASK, "en", file, senteval=True).items, read(file)
    assert items.splits == [split for split, _, _ in rows]
    assert items.labels == [label for _, label, _ in rows]
    assert items.sentences == [" ".join(tokens) for _, _, tokens in rows]
    assert len(set(items.sentences)) < len(items.sentences) == 400
    cleaned = load_items(TASK, "en", file).items
    assert len(set(cleaned.sentences)) == len(cleaned.sentences) < 400


def test_minibatches_are_those_of_the_sequential_form(file: Path) -> None:
    encoder, dataset = Noise(), load_items(TASK, "en", file, senteval=True)
    result = probes.run_senteval_protocol(encoder, TASK, dataset.items, lang="en", latents=["semantic"])
    assert result.items == dataset.items
    rows, splits = read(file), []
    for name in SPLITS:
        own = sorted((row for row in rows if row[0] == name), key=lambda row: (len(row[2]), row[1]))
        splits.append((encoder.embed([" ".join(tokens) for _, _, tokens in own], lang="en"), [row[1] for row in own]))
    train, dev, test = splits
    expected = sequential_senteval.split_classify(train, dev, test, SentEval())
    tested = [number for number, row in enumerate(rows) if row[0] == "test"]
    tested.sort(key=lambda number: (len(rows[number][2]), rows[number][1]))
    predicted = result.predictions["semantic"].labels[0, 0, tested]
    assert [result.labels[number] for number in predicted] == expected.predicted.tolist()
    assert round(100 * result.rows[0].accuracy, 2) == expected.test_accuracy
    assert result.rows[0].probe.endswith(f"L2 {expected.penalty:g}")
    backwards = sequential_senteval.split_classify((train[0][::-1].copy(), train[1][::-1]), dev, test, SentEval())
    assert backwards.predicted.tolist() != expected.predicted.tolist()  # else no order was seen


@pytest.mark.parametrize(
    ("settings", "senteval", "said"),
    [
        ({}, True, "with Wilson intervals; its items"),
        ({"max_items": 300}, True, "not its items"),
        ({"max_train": 200}, True, "not its items"),
        ({"seeds": 1, "control": None, "baselines": False}, False, "labelled files cleaned"),
    ],
)
def test_what_differs_by_choice_is_said(file: Path, settings: dict[str, int], senteval: bool, said: str) -> None:
    config = ProbeConfig(**settings)
    dataset = load_items(TASK, "en", file, senteval=senteval)
    cell = probes.measure_cell(Noise(), TASK, dataset, lang="en", config=config, senteval=senteval)
    assert said in about([cell], "holm")


def test_a_file_that_is_not_taken_whole_keeps_its_order(file: Path) -> None:
    items = load_items(TASK, "en", file, senteval=True).items
    result = probes.run_senteval_protocol(Noise(), TASK, items, lang="en", config=ProbeConfig(max_items=300))
    drawn = list(zip(result.items.sentences, result.items.labels, strict=True))
    rest = iter(zip(items.sentences, items.labels, strict=True))
    assert 290 < len(drawn) <= 300 and all(item in rest for item in drawn)  # a subsequence
