"""The ledger against sums and means that are computed in another way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import bgt_core
from bgt_core import checkpoint
from bgt_core.contracts import Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.evaluation.result import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.ledger import ALL, HELD, MEANING, NOTHING, OTHERS, Ledger
from bgt_core.generation.options import Beam
from bgt_core.generation.writer import Writer
from bgt_core.grammar import Pair
from bgt_core.recipes import Recipe

GIVEN = (NOTHING, OTHERS, MEANING, ALL)
ROWS = 12


@pytest.fixture(scope="module")
def path(grammar: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "pairs.tsv"
    path.write_text("".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in grammar[:ROWS]), "utf-8")
    return path


@pytest.fixture(scope="module")
def writer(
    tiny: Callable[..., Recipe],
    tokenizer: Tokenizer,
    stirred: Callable[[nn.Module], nn.Module],
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    torch.manual_seed(0)
    recipe = tiny("writer")
    model = stirred(recipe.build(tokenizer))
    model.stored.fit(torch.randn(20, 8192))  # type: ignore[attr-defined]
    folder = tmp_path_factory.mktemp("model") / "writer"
    checkpoint.save(folder, recipe, model, tokenizer, step=1)
    return bgt_core.open_encoder(folder, device="cpu", precision="fp32")


def nll(bgt: Any, texts: list[str], lang: str, hidden: tuple[str, ...]) -> np.ndarray:
    """Nats of each sentence by log-softmax of its logits, with some latents at 0, or at the mean vector: (N,)."""
    latents = {latent: torch.from_numpy(bgt.embed(texts, lang=lang, latent=latent)) for latent in bgt.latents}
    for latent in hidden:
        stored = getattr(bgt.model, "stored", None)
        mean = stored.mean if stored is not None and latent == "semantic" else 0.0
        latents[latent] = torch.zeros_like(latents[latent]) + mean
    costs = []
    with torch.no_grad():
        for row, ids in enumerate(bgt.tokenizer.encode(texts)):
            joined = bgt.model.join({latent: rows[row : row + 1] for latent, rows in latents.items()})
            prediction = bgt.model.decoder(lang)("reconstruct", lang, joined, Tokens.pad([ids], lang))
            log_p = prediction.logits().log_softmax(-1)
            costs.append(-sum(float(log_p[place, token]) for place, token in enumerate(ids)))
    return np.array(costs)


def measured(result: Result, lang: str, words: str, given: str) -> float:
    return result.value((lang, words, "sentence" if words == "all" else "word", given), result.systems[0])


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_each_condition_is_the_nll_of_the_sentence_by_its_logits(
    lang: str, writer: Any, saved: Path, path: Path, grammar: list[Pair]
) -> None:
    texts = [pair.texts[lang] for pair in grammar[:ROWS]]
    for bgt in (writer, bgt_core.load(saved, "cpu", "fp32")):
        result = evaluate(Ledger(langs="en,fr"), {"it": bgt}, path, resamples=100)
        for given, hidden in zip(GIVEN, (("language", "semantic"), ("semantic",), ("language",), ()), strict=True):
            assert measured(result, lang, "all", given) == pytest.approx(nll(bgt, texts, lang, hidden).mean(), rel=1e-4)
        held = measured(result, lang, "all", NOTHING) - measured(result, lang, "all", MEANING)
        assert measured(result, lang, "all", HELD) == pytest.approx(held, rel=1e-5)


def test_classes_add_up_to_the_sentence(writer: Any, path: Path) -> None:
    result = evaluate(Ledger(langs="en,fr"), {"it": writer}, path, resamples=100)
    for lang in ("en", "fr"):
        of_classes = [key for key in result.scores if key.lang == lang and key.given == ALL and key.nats_per == "word"]
        total = sum(measured(result, lang, key.words, ALL) * key.items for key in of_classes) / ROWS
        assert total == pytest.approx(measured(result, lang, "all", ALL), rel=0.05)  # rare classes have no row
        assert {"function", "other", "punctuation", "end"} <= {key.words for key in of_classes}
    cell = next(cells[0] for key, cells in result.scores.items() if key.given == HELD)
    assert cell.low < cell.value < cell.high  # type: ignore[union-attr]


class Counting:
    """A writer whose tokens are words, each of a cost that says which latents it was given."""

    langs, latents = ("en", "fr"), ("semantic", "language")

    def embed(self, sentences: list[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        return np.full((len(sentences), 1), {"semantic": 1.0, "language": 10.0}[latent])

    def prior_mean(self, latent: str, vectors: np.ndarray) -> np.ndarray:
        return vectors * {"semantic": 100, "language": 200}[latent]

    def tokens(self, sentences: list[str]) -> list[list[str]]:
        return [[f" {word}" for word in sentence.split()] for sentence in sentences]

    def token_nats(self, latents: dict[str, np.ndarray], sentences: list[str], *, lang: str) -> list[np.ndarray]:
        cost = float(sum(rows[0, 0] for rows in latents.values())) + (lang == "fr")
        return [np.full(len(words) + 1, cost) for words in self.tokens(sentences)]

    def count_unknown(self, sentences: list[str], *, lang: str) -> tuple[int, int]:
        words = " ".join(sentences).split()
        return words.count("???"), len(words) + len(sentences)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left @ right.T

    def write(self, latents: dict[str, np.ndarray], *, lang: str) -> list[str]:
        raise NotImplementedError

    def log_likelihood(self, latents: dict[str, np.ndarray], sentences: list[str], *, lang: str) -> np.ndarray:
        raise NotImplementedError


def test_tokens_that_were_never_seen_are_counted(writer: Any, path: Path) -> None:
    columns = {"en": ["1 2 ??? 4", "5 ??? dogs"], "fr": ["chiens"] * 2}
    (warning,) = evaluate(Ledger(langs="en,fr"), {"it": Counting()}, columns, resamples=100).warnings
    assert warning.startswith("it: 2 of 9 tokens of en (22.2%) never occurred in its training text")
    assert not any("of en" in each for each in evaluate(Ledger(langs="en,fr"), {"it": writer}, path).warnings)
    texts = [line.split("\t")[0] for line in path.read_text("utf-8").splitlines()]
    ids = [token for sentence in writer.tokenizer.encode(texts) for token in sentence]
    layer = writer.model.decoder("en").layer
    kept = layer.occurs.clone()
    try:
        layer.occurs[ids[0]] = False
        count = Writer(writer, Beam(1)).count_unknown(texts, lang="en")
    finally:
        layer.occurs.copy_(kept)
    assert count == (ids.count(ids[0]), len(ids))


def test_costs_are_those_of_the_latents_that_are_given() -> None:
    """Five numbers and one word a line in English; a word in French."""
    columns = {"en": ["1 2 3 4 5 dogs"] * 2, "fr": ["chiens"] * 2}
    result = evaluate(Ledger(langs="en,fr"), {"it": Counting()}, columns, resamples=100)
    of_token = {NOTHING: 2_100, OTHERS: 110, MEANING: 2_001, ALL: 11, HELD: 99}
    for given, cost in of_token.items():
        assert measured(result, "en", "number", given) == pytest.approx(cost)
        assert measured(result, "en", "all", given) == pytest.approx(7 * cost)
        assert measured(result, "fr", "all", given) == pytest.approx(2 * (cost + (given != HELD)))
    rows = {(key.lang, key.words, key.items) for key in result.scores}
    assert rows == {("en", "all", 2), ("en", "number", 10), ("fr", "all", 2)}  # of fewer than 5 there is no row
    five = evaluate(Ledger(langs="en,fr"), {"it": Counting()}, {"en": ["1"] * 5}, resamples=100)
    assert {key.words for key in five.scores} == {"all", "number", "end"}
    assert result.about.startswith("2 lines in en, fr; ") and result.counts == {"lines": 2}


def test_a_lower_cost_is_better_and_more_held_is() -> None:
    class Worse(Counting):
        def prior_mean(self, latent: str, vectors: np.ndarray) -> np.ndarray:
            return super().prior_mean(latent, vectors) * 2

    columns = {"en": ["1 " * count for count in range(1, 21)]}
    result = evaluate(Ledger(langs="en"), {"it": Counting(), "worse": Worse()}, columns, resamples=100)
    assert "a latent that is not given is the mean of its prior" in result.about
    best = {key.given: [cell.mark for cell in cells] for key, cells in result.scores.items() if key.words == "all"}
    assert best[NOTHING] == ["best", ""] and best[HELD] == ["", "best"]


def test_a_model_without_a_language_latent_has_no_such_columns(
    tiny: Callable[..., Recipe], tokenizer: Tokenizer, path: Path, writer: Any
) -> None:
    model = tiny("bgt-without-langvars").build(tokenizer)
    one = bgt_core.Embedder(model, tokenizer, ["en"], "fp32")
    result = evaluate(Ledger(langs="en,_", limit=5), {"one": one, "writer": writer}, path, resamples=100)
    shown = {key.given for key, cells in result.scores.items() if cells[0] is not None}
    assert shown == {NOTHING, MEANING, HELD}
    assert result.counts == {"lines": 5}


def test_an_encoder_that_does_not_write_and_bad_columns_are_refused(path: Path, writer: Any) -> None:
    words = bgt_core.open_encoder("baseline:words")
    with pytest.raises(UsageError, match="words: This model can't generate"):
        evaluate(Ledger(langs="en,fr"), {"words": words}, path, resamples=100)
    with pytest.raises(UsageError, match="each language once"):
        evaluate(Ledger(langs="en,en"), {"writer": writer}, path, resamples=100)
