"""The task fidelity generates texts from the right pairs of sentences, and its scores are right for fake models."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import DataError
from bgt_core.contracts import EOS, LANGUAGE, SEMANTIC
from bgt_core.evaluation import writing
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.fidelity import COPY, NEAREST, RANDOM_TRAINING, Fidelity, HeldOut, training_sentences
from bgt_core.evaluation.writing import EXACT, LENGTH_OFF, MARK, NEGATION, NO_NEGATION, NUMBER, OWN, RANDOM, Latents
from bgt_core.generation.generate import Writer, generate
from bgt_core.generation.options import GREEDY
from bgt_core.grammar import Pair

Rewrite = Callable[[str, str, str], str]


class Stub:
    """A fake model. A sentence's latent is its index in `texts`; `write` returns `rewrite(source, style, language)`."""

    langs = ("en", "fr")

    def __init__(self, rewrite: Rewrite, latents: Sequence[str] = (SEMANTIC, LANGUAGE)):
        self.rewrite, self.latents = rewrite, tuple(latents)
        self.texts: list[str] = []

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        start = len(self.texts)
        self.texts += sentences
        return np.arange(start, len(self.texts), dtype=np.float32)[:, None]

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return minus the difference of the sentences' lengths."""
        lengths = [np.array([len(self.texts[int(row)]) for row in side[:, 0]]) for side in (left, right)]
        return -np.abs(lengths[0][:, None] - lengths[1][None]).astype(float)

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        styles = latents.get(LANGUAGE, latents[SEMANTIC])
        pairs = zip(latents[SEMANTIC][:, 0], styles[:, 0], strict=True)
        return [self.rewrite(self.texts[int(one)], self.texts[int(two)], lang) for one, two in pairs]


def copies(source: str, style: str, lang: str) -> str:
    return source


@pytest.fixture(scope="module")
def columns(grammar: list[Pair]) -> dict[str, list[str]]:
    return {lang: [pair.texts[lang] for pair in grammar[:40]] for lang in ("en", "fr")}


def measured(
    stub: Stub, columns: dict[str, list[str]], train: dict[str, list[str]] | None = None, seed: int = 0
) -> Result:
    return evaluate(Fidelity("en,fr"), {"model": stub}, HeldOut(columns, train), resamples=100, seed=seed)


def row(result: Result, source: str, lang: str, style: str, by: str = "model") -> dict[str, float]:
    """Return one system's scores, by measure, for generated texts with this source, language and style."""
    meaning = OWN if style == OWN else source
    place = result.systems.index(by)
    return {
        key.measure: cells[place].value
        for key, cells in result.scores.items()
        if key[:3] == (lang, meaning, style) and cells[place] is not None
    }


def test_a_writer_that_copies_is_exact_and_keeps_everything(columns: dict[str, list[str]]) -> None:
    result = measured(Stub(copies), columns)
    for lang in columns:
        for style in (OWN, RANDOM):
            scores = row(result, lang, lang, style)
            assert [scores[name] for name in (EXACT, "chrF", "BLEU", NEGATION, NO_NEGATION)] == pytest.approx([100] * 5)
        assert scores[MARK] < 100 and scores[LENGTH_OFF] > 0  # copies lack the style sentence's mark and length
    assert row(result, "fr", "en", writing.REFERENCE)[EXACT] == 0


def test_a_writer_of_the_style_is_exact_in_the_style_of_the_reference_alone(columns: dict[str, list[str]]) -> None:
    result = measured(Stub(lambda source, style, lang: style), columns)
    assert row(result, "en", "fr", writing.REFERENCE)[EXACT] == 100
    random = row(result, "en", "fr", RANDOM)
    assert random[EXACT] < 10 and random[MARK] == 100 and random[LENGTH_OFF] == 0


def test_pairs_whose_numbers_cannot_be_read_are_counted() -> None:
    columns = {"en": ["Dozens of men.", "Two men.", "A man."], "fr": ["Deux hommes.", "Deux hommes.", "Un quart."]}
    result = measured(Stub(copies), columns)
    assert ("en", "fr", writing.REFERENCE, NUMBER, 1) in result.scores
    assert "the numbers in 2 pairs are ambiguous" in result.about


def test_without_language_latents_there_is_no_style(columns: dict[str, list[str]]) -> None:
    stub = Stub(copies, [SEMANTIC])
    assert {key.style_of for key in measured(stub, columns).scores} == {OWN, writing.REFERENCE}


@pytest.mark.slow
def test_baselines_are_the_source_and_training_sentences(columns: dict[str, list[str]], grammar: list[Pair]) -> None:
    train = {lang: [pair.texts[lang] for pair in grammar[40:]] * 2 for lang in ("en", "fr")}
    result = measured(Stub(copies), columns, train)
    assert result.systems == ["model", COPY, RANDOM_TRAINING, NEAREST]
    assert row(result, "en", "en", OWN, COPY)[EXACT] == 100
    stub = Stub(copies)
    latents = {"model": Latents(stub, columns)}
    by = training_sentences({"model": stub}, latents, columns, train, 0)["en", "fr"]
    assert set(by[RANDOM_TRAINING]) <= set(train["fr"]) and len(set(by[RANDOM_TRAINING])) > 20
    for text, source in zip(by[NEAREST], columns["en"], strict=True):
        assert abs(len(text) - len(source)) == min(abs(len(other) - len(source)) for other in train["fr"])
    assert measured(Stub(copies), columns).systems == ["model", COPY]
    two = evaluate(Fidelity("en,fr"), {"a": Stub(copies), "b": Stub(copies)}, HeldOut(columns, train), resamples=100)
    assert two.systems == ["a", "b", COPY, RANDOM_TRAINING, f"a {NEAREST}", f"b {NEAREST}"]
    assert {(gap.first, gap.second) for gap in two.differences} == {("a", "b")}


def test_the_same_seed_draws_the_same(columns: dict[str, list[str]]) -> None:
    first, again, other = (measured(Stub(copies), columns, seed=seed).scores for seed in (1, 1, 2))
    assert first == again != other


def test_pairs_of_the_given_lengths_are_chosen_evenly_spaced(tmp_path: Path, grammar: list[Pair]) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("".join("\t".join(pair.texts.values()) + "\n" for pair in grammar[:12]), "utf-8")
    items = Fidelity("en,fr", train=file, limit=5, lengths="4-9").load([file], seed=0)
    fitting = [pair.texts for pair in grammar[:12] if 4 <= len(pair.texts["en"].split()) <= 9]
    chosen = [fitting[number * len(fitting) // 5] for number in range(5)]
    assert items.columns == {lang: tuple(texts[lang] for texts in chosen) for lang in ("en", "fr")}
    assert items.train and len(items.train["fr"]) == 12


@pytest.mark.parametrize(("columns", "train", "message"), [
    ({"en": ["a", "b"], "fr": ["c"]}, None, "2 and 1 sent"), ({"en": ["a"], "fr": ["c"]}, None, "1 pairs"),
    ({"en": ["a", "b"], "fr": ["c", "d"]}, {"en": ["e"], "fr": []}, "No training sentences in fr"),
])  # fmt: skip
def test_too_few_sentences_are_refused(columns: dict, train: dict | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        measured(Stub(copies), columns, train)


def test_a_writer_generates_like_generate_and_scores_by_its_decoder(saved: Path, grammar: list[Pair]) -> None:
    bgt = bgt_core.load(saved, "cpu", "fp32")
    writer = Writer(bgt, GREEDY, max_length=12)
    sources = [pair.texts["en"] for pair in grammar[:5]]
    styles = [pair.texts["fr"] for pair in grammar[5:10]]
    latents = {SEMANTIC: writer.embed(sources, lang="en"), LANGUAGE: writer.embed(styles, lang="fr", latent=LANGUAGE)}
    expected = generate(bgt, sources, styles, lang="fr", source_lang="en", search=GREEDY, rerank=False, max_length=12)
    assert writer.write(latents, lang="fr") == expected
    reranked = writing.writers({"model": bgt}, ["fr"], 8, rerank=True)["model"]
    assert reranked.write(latents, lang="fr") == generate(bgt, sources, styles, lang="fr", source_lang="en")
    likelihoods = writer.log_likelihood(latents, styles, lang="fr")
    decoder = bgt.model.decoder("fr")
    for number, text in enumerate(styles):  # the expected value: the sum of the tokens' log-probabilities
        (ids,) = bgt.tokenizer.encode([text])
        joined = bgt.model.join({name: torch.tensor(rows[[number]]) for name, rows in latents.items()})
        with torch.no_grad():
            state, before, total = decoder.start(joined), EOS, 0.0
            for token in ids:
                scores = decoder.step(torch.tensor([[before]]), state)[0, 0]
                total += scores.log_softmax(-1)[token].item()
                before = token
        assert likelihoods[number] == pytest.approx(total, rel=1e-5)
