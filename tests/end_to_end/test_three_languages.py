"""Three languages from two files that pair English with each of the others: from text to sentences and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import bgt_core
import probes
from bgt_core import Embedder, checkpoint, run
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.corpus import Mixture, open_corpus
from bgt_core.errors import UsageError
from bgt_core.evaluation.tasks.retrieval import precision_at_1
from bgt_core.neighbours.bitext import mine
from probes.data.texts import Text

pytestmark = pytest.mark.slow

LANGS = ("en", "fr", "de")
SHARED = 30  # English sentences that both files have
SETTINGS: dict[str, object] = {
    "data.vocab_size": 500,
    "data.valid_pairs": 30,
    "model.d_model": 24,
    "model.semantic_dim": 48,
    "model.language_dim": 6,
    "model.ffn_dim": 32,
    "model.heads": 2,
    "elbo.warmup_steps": 10,
    "train.epochs": 5.0,
    "train.batch_tokens": 400,
    "train.micro_tokens": 1_200,
    "train.learning_rate": 3e-2,
    "train.warmup_steps": 5,
    "train.valid_every": 20,
    "train.save_every": 10,
}


@pytest.fixture(scope="module")
def data(
    texts: dict[str, list[str]], write_rows: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """English-French and English-German; French and German never meet."""
    folder = tmp_path_factory.mktemp("pairwise")
    rows = {"fr": range(150 + SHARED), "de": range(150, 300)}
    return [
        f"en-{lang}={write_rows(folder / f'en-{lang}.tsv', [(texts['en'][row], texts[lang][row]) for row in chosen])}"
        for lang, chosen in rows.items()
    ]


@pytest.fixture(scope="module")
def whole(data: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing interrupts."""
    out = tmp_path_factory.mktemp("three") / "run"
    run.train("bgt-small", data, out, overrides=SETTINGS, device="cpu")
    return out


@pytest.fixture(scope="module")
def model(whole: Path) -> Embedder:
    return bgt_core.load(whole, "cpu", "fp32")


def test_it_trains_on_a_mixture_and_reports_every_pair_it_has(whole: Path, data: list[str]) -> None:
    loaded = checkpoint.load(whole)
    assert loaded.recipe.data.columns == loaded.model.langs == LANGS
    assert json.loads((whole / "run.json").read_text("utf-8"))["data"] == data
    corpus, held_out = (open_corpus(whole / "data", split) for split in ("train", "valid"))
    assert isinstance(corpus, Mixture) and isinstance(held_out, Mixture)
    assert len(corpus) + len(held_out) == 330
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text("utf-8").splitlines()]
    first, last = ([row for row in rows if row["kind"] == "valid"][i] for i in (0, -1))
    names = {f"{role}/{lang}" for role in ("reconstruct", "translate", "kl", "active") for lang in LANGS}
    assert names | {"kl/semantic", "elbo"} <= last.keys()
    measured = {name for name in last if name.startswith("retrieval/")}
    assert measured == {f"retrieval/{pair}" for pair in ("en-fr", "fr-en", "en-de", "de-en")}
    for lang in LANGS:
        assert last[f"reconstruct/{lang}"] < first[f"reconstruct/{lang}"]
    means = [row["reconstruct/de"] / row["reconstruct/en"] for row in rows if row["kind"] == "train"]
    assert all(0.3 < mean < 3 for mean in means)  # each term is divided by the rows that have it


def test_each_language_is_embedded_in_both_latents(model: Embedder, texts: dict[str, list[str]]) -> None:
    assert model.langs == LANGS
    for lang in LANGS:
        assert model.embed(texts[lang][:7], lang=lang).shape == (7, 48)
        assert model.embed(texts[lang][:7], lang=lang, latent=LANGUAGE).shape == (7, 6)
        assert model.embed(texts[lang][0], lang=lang).shape == (48,)
    for left, right in permutations(LANGS, 2):  # a space of its own for each language
        style = [model.embed(texts["en"][:7], lang=lang, latent=LANGUAGE) for lang in (left, right)]
        assert not np.allclose(*style)
    with pytest.raises(UsageError, match="lang es: this model has en, fr, de"):
        model.embed(["el perro"], lang="es")


def test_it_writes_each_language_from_each(model: Embedder, texts: dict[str, list[str]]) -> None:
    words = {lang: {word for text in texts[lang] for word in text.lower().split()} for lang in LANGS}
    for source, target in [*permutations(LANGS, 2), *zip(LANGS, LANGS, strict=True)]:
        written = bgt_core.generate(model, texts[source][:8], texts[target][8:16], lang=target, source_lang=source)
        assert len(written) == 8 and all(written)
        shares = {lang: np.mean([word in words[lang] for text in written for word in text.split()]) for lang in LANGS}
        assert max(shares, key=shares.__getitem__) == target, (written, shares)
        assert written == bgt_core.generate(model, texts[source][:8], texts[target][8:16], lang=target)  # one encoder


def test_the_command_says_what_the_language_of_the_source_is(
    bgt: Callable[..., Any], model: Embedder, whole: Path, texts: dict[str, list[str]]
) -> None:
    source, style = texts["fr"][0], texts["de"][1]
    arguments = ("--source", source, "--source-lang", "fr", "--style", style, "--lang", "de", "--model", whole)
    done = bgt("generate", *arguments, "--device", "cpu", "--beam", 1)
    assert done.code == 0, done.err
    (written,) = bgt_core.generate(model, [source], [style], lang="de", source_lang="fr", search=bgt_core.Beam(1, 3, 1))
    assert done.out == f"{written}\n"
    wrong = bgt("generate", *arguments, "--source-lang", "es")
    assert (wrong.code, wrong.out) == (2, "") and "lang es: this model has en, fr, de" in wrong.err


def test_french_and_german_are_mined_though_they_never_met(model: Embedder, texts: dict[str, list[str]]) -> None:
    """Chance is 1 in 300."""
    french, german = texts["fr"][:300], texts["de"][:300]
    vectors = model.embed(french, lang="fr"), model.embed(german, lang="de")
    assert precision_at_1(*vectors) > 0.05
    pytest.importorskip("faiss")
    mined = mine(french, german, encoder=model, langs=("fr", "de"), retrieval="intersection")
    translations = {*zip(french, german, strict=True)}
    correct = [(french[i], german[j]) in translations for _, i, j in zip(*mined.pairs, strict=True)]
    assert len(correct) > 50 and np.mean(correct) > 0.1


def test_what_the_latents_know_is_probed_in_each_language(model: Embedder, texts: dict[str, list[str]]) -> None:
    """With a task and labels of one's own: is it a question? Of new sentences, half are."""
    chosen = [[row for row in range(300, 1_500) if texts["en"][row].endswith("?") == asks][:120] for asks in (0, 1)]
    labels = ["statement"] * 120 + ["question"] * 120
    config = probes.ProbeConfig(seeds=3, baselines=False, control=None, resamples=100)
    task = probes.ProbeTask("question", "is it a question?", {})
    for lang in LANGS:
        items = probes.Items([texts[lang][row] for rows in chosen for row in rows], labels, list(range(240)))
        result = probes.run(model, task, items, lang=lang, config=config)
        accuracies = {row.latent: row.accuracy for row in result.rows}
        assert accuracies.keys() == {SEMANTIC, LANGUAGE}
        assert max(accuracies.values()) > 0.6


def test_a_probe_tells_the_three_languages_apart(model: Embedder, texts: dict[str, list[str]]) -> None:
    """From the one space that they share; each sentence is embedded in its own language."""
    sides = {lang: Text(texts[lang][:300], list(range(300))) for lang in LANGS}
    items = probes.TASKS["lang-id"].builds["texts"](sides, "-".join(LANGS), Random(0))
    config = probes.ProbeConfig(seeds=1, control=None, resamples=100)
    result = probes.run(model, "lang-id", items, lang="-".join(LANGS), config=config)
    rows = {row.latent: row for row in result.rows}
    assert (rows[SEMANTIC].classes, rows[SEMANTIC].n_test) == (3, 90)
    assert LANGUAGE not in rows
    assert rows["word 1-2-grams"].accuracy > 0.97
