"""Test recipes for paraphrases: avg, gran (which starts from avg's vectors), and a classifier of translations."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import checkpoint, recipes, training
from bgt_core.contracts import Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.encoders.distances import ReferenceProbability
from bgt_core.errors import NotFound, UsageError
from bgt_core.grammar import Pair, pairs
from bgt_core.nets.encoders import GRAN
from tests.runs import metrics

TEXTS = ["one cat", "two dogs sleep in the old house", ""]


def test_gran_starts_from_the_vectors_of_avg_and_equals_it_if_its_gate_is_1(tsv: Path, tmp_path: Path) -> None:
    sizes = {"d_model": 16, "vocab_size": 300, "valid_pairs": 20, "epochs": 1.0, "batch_tokens": 900}
    average = training.train("avg", [tsv], tmp_path / "avg", overrides=sizes, device="cpu")
    started = {"valid_pairs": 20, "epochs": 0.0}
    gated = training.train("gran", [tsv], tmp_path / "gran", init_from=average, overrides=started, device="cpu")
    assert (gated / "tokenizer.model").read_bytes() == (average / "tokenizer.model").read_bytes()
    avg, gran = (bgt_core.load(folder, "cpu", "fp32") for folder in (average, gated))
    (body,) = (part for part in gran.model.modules() if isinstance(part, GRAN))
    assert torch.equal(body.table.weight, avg.model.encoders["semantic"].body.table.weight)
    before = gran.embed(TEXTS, lang="en")
    for weight in (body.gate_words.weight, body.gate_states.weight):
        weight.detach().zero_()
    body.gate_words.bias.detach().fill_(100.0)  # this makes the gate's sigmoid exactly 1 in float32
    assert (before != avg.embed(TEXTS, lang="en")).any()
    assert np.array_equal(gran.embed(TEXTS, lang="en"), avg.embed(TEXTS, lang="en"))


def test_only_sizes_are_taken_from_another_checkpoint(saved: Path) -> None:
    """If gran starts from a BGT checkpoint, it copies only the sizes that both recipes have."""
    arguments = training.inherited("gran", str(saved))
    assert arguments["model.d_model"] == checkpoint.read_config(saved)["arguments"]["model.d_model"]
    assert "model.body" not in arguments


COLUMNS = ("reference:en", "translation:en")
SETTINGS: dict[str, Any] = {
    "model.d_model": 16, "data.vocab_size": 300, "data.valid_pairs": 60, "train.batch_tokens": 600,
    "train.learning_rate": 0.02, "train.valid_every": 20,
}  # fmt: skip


def translated(text: str) -> str:
    """Imitate a poor machine translation, which repeats the first word and appends "indeed"."""
    return f"{text.split()[0]} {text} indeed"


@pytest.fixture(scope="module")
def sample() -> list[Pair]:
    return pairs(300, seed=7)


@pytest.fixture(scope="module")
def backtranslated(sample: list, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "backtranslated.tsv"
    rows = [(pair.texts["en"], translated(pair.texts["en"]), f"{number / 7:.3f}") for number, pair in enumerate(sample)]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(backtranslated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of references and translations, trained on a file that also has a column of costs."""
    return training.train(
        "reference-classifier",
        [backtranslated],
        tmp_path_factory.mktemp("trained") / "run",
        columns=(*COLUMNS, "cost:label"),
        overrides=SETTINGS | {"train.epochs": 16.0},
        device="cpu",
    )


def test_it_learns_to_classify_and_reports_the_accuracy_of_each_column(trained: Path, sample: list) -> None:
    first, *_, last = metrics(trained)
    for column in ("reference", "translation"):
        assert last[f"accuracy/{column}"] > 0.9
        assert last[column] < first[column]
        assert last[column] < np.log(2) / 3
    score = ReferenceProbability.load(trained, "cpu")
    texts = [pair.texts["en"] for pair in sample[:50]]
    probabilities = score(texts), score([translated(text) for text in texts])
    assert (probabilities[0] > 0.5).mean() > 0.9 and (probabilities[1] <= 0.5).mean() > 0.9
    assert score([]).shape == (0,)
    assert score.fingerprint == bgt_core.load(trained, "cpu", "fp32").fingerprint


@pytest.mark.parametrize("body", ["average", "lstm"])
def test_its_loss_is_the_cross_entropy_of_both_sides(body: str, tokenizer: Tokenizer) -> None:
    recipe = recipes.configure("reference-classifier", {"model.body": body, "model.d_model": 12})
    torch.manual_seed(0)
    model = recipe.build(tokenizer)
    texts = {"reference": ["the dog sleeps", "a cat"], "translation": ["dogs sleep here", "one cat sees it"]}
    batch = Batch({name: Tokens.pad(tokenizer.encode(some), "en") for name, some in texts.items()}, "reference")
    out = model(batch)
    assert [prediction.name for prediction in out.predictions] == ["reference", "translation"]
    loss = recipe.objective(out, step=5)
    probabilities = {name: model.reference_probability(out.semantic[name].mean.detach()) for name in texts}
    expected = -probabilities["reference"].log().sum() - (1 - probabilities["translation"]).log().sum()
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-5)
    loss.total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_it_filters_pairs(trained: Path, sample: list, bgt: Callable[..., Any], tmp_path: Path) -> None:
    """In every other row, the second sentence is no machine translation, but the previous row's reference."""
    mixed = tmp_path / "mixed.tsv"
    texts = [pair.texts["en"] for pair in sample[:40]]
    sides = [(text, translated(text) if number % 2 else texts[number - 1]) for number, text in enumerate(texts)]
    mixed.write_text("".join(f"{one}\t{two}\n" for one, two in sides), encoding="utf-8")
    options = ("--langs", ",".join(COLUMNS), "--classifier", trained)
    done = bgt("data", "prepare", mixed, *options, "--keep", "classifier=0.5..", "--out", tmp_path / "o.tsv")
    assert done.code == 0, done.err
    left = [line.split("\t")[1] for line in (tmp_path / "o.tsv").read_text("utf-8").splitlines()]
    score = ReferenceProbability.load(trained, "cpu")
    kept = {two for one, two in sides if score([two])[0] >= 0.5}
    assert left and set(left) <= kept and not any("indeed" in text for text in left)
    assert json.loads((tmp_path / "o.tsv.json").read_text("utf-8"))["models"] == {"classifier": score.fingerprint}


def test_unsuitable_models_and_batches_are_refused(saved: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this model is not a reference classifier"):
        ReferenceProbability.load(saved, "cpu")
    with pytest.raises(NotFound, match=r"classifier .*nowhere: no such run"):
        ReferenceProbability.load(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="body 'gru': choose from average, lstm"):
        recipes.configure("reference-classifier", {"model.body": "gru"})
    model = recipes.configure("reference-classifier", {"model.d_model": 4}).build(tokenizer)
    side = Tokens.pad([[5, 3]], "en")
    with pytest.raises(UsageError, match="needs two columns, as in columns reference:en, translation:en"):
        model(Batch({"a": side}, "a"))
