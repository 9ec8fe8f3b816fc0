"""Fixtures for tests of `reproduce`: a folder of small generated data sets, and comparisons of tiny models."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from analysis.reproduce import comparisons, results, trainings
from analysis.reproduce.__main__ import main
from bgt_core.grammar import Pair, pairs


def sts_lines(sentences: list[str], count: int, rng: random.Random) -> list[tuple[float, str, str]]:
    """Make sentence pairs with random scores. In half of the pairs, the sentences differ in only one word."""
    rows = []
    for _ in range(count):
        left, right = rng.sample(sentences, 2)
        if rng.random() < 0.5:
            words = left.split()
            words[rng.randrange(len(words))] = "perhaps"
            right = " ".join(words)
        rows.append((round(rng.uniform(0, 5), 1), left, right))
    return rows


@pytest.fixture(scope="session")
def data(tsv: Path, grammar: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with translations, two years of STS, STS Benchmark, a cross-lingual STS track, and retrieval pairs."""
    folder, rng = tmp_path_factory.mktemp("data"), random.Random(1)
    others: list[Pair] = pairs(120, seed=9)
    english = [pair.texts["en"] for pair in others]
    files = {
        "parallel/en-fr.toy.tsv": [tuple(line.split("\t")) for line in tsv.read_text("utf-8").splitlines()],
        "retrieval/en-fr.toy.tsv": [(pair.texts["en"], pair.texts["fr"]) for pair in [*others[:20], *grammar[:5]]],
        "sts/2012/A.tsv": sts_lines(english, 140, rng),
        "sts/2013/B.tsv": sts_lines(english, 140, rng),
        "stsb/dev.tsv": [(*row, f"main/news/{year}") for year in (2014, 2016) for row in sts_lines(english, 20, rng)],
        "sts17/en-fr.tsv": [
            (number % 6, pair.texts["en"], pair.texts["fr"]) for number, pair in enumerate(others[40:80])
        ],
    }
    for name, rows in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.fixture
def reproduce(in_process: Callable[..., Any]) -> Callable[..., Any]:
    """reproduce("toy", "--out", out): run `reproduce` in this process; return its exit code, stdout and stderr."""
    return partial(in_process, main)


class WholeRun(NamedTuple):
    """The results of a complete run of a comparison: training, measurement and report."""

    err: str
    records: results.Records
    means: dict[tuple[str, str], float]  # (system, measure) -> mean score over the system's trainings
    page: str


@pytest.fixture
def whole_run(reproduce: Callable[..., Any]) -> Callable[..., WholeRun]:
    """whole_run(name, data, out, code): run a comparison, which must end with the exit code `code`. Check that
    `--report-only` writes the same report page from the stored results."""

    def run(name: str, data: Path, out: Path, code: int = 0) -> WholeRun:
        command = [name, "--scale=toy", f"--data={data}", f"--out={out}", "--resamples=100", "--seeds=1"]
        done = reproduce(*command, "--device=cpu", "--threads=1")
        assert done.code == code, done.err
        page = (out / "results" / f"{name}.md").read_text("utf-8")
        assert reproduce(name, "--report-only", f"--results={out / 'results'}").code == 0
        assert (out / "results" / f"{name}.md").read_text("utf-8") == page
        records = results.stored(out / "results", name)
        scores = [row for row in records["scores"] if row["seed"] == "mean"]
        means = {(row["system"], row["measure"]): row["value"] for row in scores}
        return WholeRun(done.err, records, means, page)

    return run


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], comparisons.Comparison]:
    """add(tables): add the comparisons in `tables`, the text of a TOML file, and return the last of them."""

    def put(tables: str) -> comparisons.Comparison:
        path = tmp_path / "tables.toml"
        path.write_text(tables, encoding="utf-8")
        for name, comparison in comparisons.read(path).items():
            monkeypatch.setitem(comparisons.COMPARISONS, name, comparison)
        return comparison

    return put


@pytest.fixture(autouse=True)
def toy(add: Callable[[str], comparisons.Comparison], monkeypatch: pytest.MonkeyPatch) -> comparisons.Comparison:
    """The comparison "toy", with models so small that they are trained in seconds."""
    monkeypatch.setitem(trainings.SAVE_EVERY, "toy", 3)
    return add(Path(__file__).with_name("toy.toml").read_text("utf-8"))
