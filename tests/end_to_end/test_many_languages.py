"""A model learns English with French, Japanese and Arabic. Corpora and kinds of text have sampling weights."""

import json
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import checkpoint, training
from bgt_core.contracts import EOS, UNK
from bgt_core.data.store import Mixture, open_corpus
from bgt_core.data.text import Tokenizer
from bgt_core.training.loop import batching
from tests.runs import metrics

pytestmark = pytest.mark.slow

LANGS = ("en", "fr", "ja", "ar")
PARTS = {  # (subjects, objects); a sentence is any combination of a subject, a verb and an object
    "en": (["the cat", "the dog", "my friend", "a child"], ["water", "the house", "a book", "bread", "the sea"]),
    "fr": (["le chat", "le chien", "mon ami", "un enfant"], ["l'eau", "la maison", "un livre", "le pain", "la mer"]),
    "ja": (["猫", "犬", "私の友達", "子供"], ["水", "家", "本", "パン", "海"]),
    "ar": (["القطة", "الكلب", "صديقي", "طفل"], ["الماء", "البيت", "كتابا", "الخبز", "البحر"]),
}
VERBS = {
    "en": ["sees", "wants", "does not see", "does not want", "found", "lost"],
    "fr": ["voit", "veut", "ne voit pas", "ne veut pas", "a trouvé", "a perdu"],
    "ja": ["見る", "欲しい", "見ない", "欲しくない", "見つけた", "失った"],
    "ar": ["يرى", "يريد", "لا يرى", "لا يريد", "وجد", "فقد"],
}  # fmt: skip
FORMS = {"en": "{0} {2} {1}.", "fr": "{0} {2} {1}.", "ja": "{0}は{1}を{2}。", "ar": "{2} {0} {1}."}
ROWS = {"fr": range(90), "ja": range(40, 100), "ar": range(70, 110)}  # indices of the translated English sentences
SETTINGS: dict[str, object] = {
    "data.vocab_size": 118, "data.valid_pairs": 20, "data.min_tokens": 1, "train.sampling_temperature": 5.0,
    "train.kind_weights": "plain:2", "train.epochs": 3.0, "train.batch_tokens": 300, "train.micro_tokens": 600,
    "train.warmup_steps": 5, "train.save_every": 100, "train.valid_every": 15,
}  # fmt: skip
BGT: dict[str, object] = {
    "model.d_model": 16, "model.average_dim": 16, "model.bound_dim": 16, "model.roles_dim": 16,
    "model.language_dim": 6, "model.tag_dim": 4, "model.ffn_dim": 16, "model.heads": 2, "train.learning_rate": 3e-3,
}  # fmt: skip


def sentences(lang: str) -> list[str]:
    subjects, objects = PARTS[lang]
    return [FORMS[lang].format(*words) for words in product(subjects, objects, VERBS[lang])]


@pytest.fixture(scope="module")
def data(write_rows: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Data files of English with French, Japanese and Arabic. The two French files have different kinds of text."""
    folder = tmp_path_factory.mktemp("many")

    def source(name: str, lang: str, rows: range) -> str:
        pairs = [(sentences("en")[row], sentences(lang)[row]) for row in rows]
        return f"{name}={write_rows(folder / f'{len(list(folder.iterdir()))}.tsv', pairs)}"

    french = [source("plain/en-fr", "fr", range(30)), source("other/en-fr", "fr", range(30, 90))]
    return [*french, source("en-ja", "ja", ROWS["ja"]), source("en-ar", "ar", ROWS["ar"])]


@pytest.fixture(scope="module")
def trained(data: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("many") / "run"
    training.train("bgt-bound", data, out, overrides=SETTINGS | BGT, device="cpu")
    return out


def test_every_language_learns_and_small_corpora_are_sampled_by_temperature(trained: Path, data: list[str]) -> None:
    assert json.loads((trained / "run.json").read_text("utf-8"))["data"] == data
    corpus, loaded = open_corpus(trained / "data"), checkpoint.load(trained)
    assert isinstance(corpus, Mixture) and loaded.recipe.data.columns == LANGS
    assert [(stratum.columns[1], stratum.kind) for stratum in corpus.strata] == [
        ("fr", "plain"), ("fr", "other"), ("ja", ""), ("ar", "")
    ]  # fmt: skip
    plan, tokens = batching(loaded.recipe.train), dict.fromkeys(LANGS[1:], 0)
    for step in range(loaded.config["step"]):
        for part, rows in corpus.parts(plan.rows(corpus, step)):
            tokens[[*part.columns][1]] += int(part.lengths(rows).max(axis=1).sum())
    counted = {part.columns[1]: 0.0 for part in corpus.strata}
    for part in corpus.strata:
        counted[part.columns[1]] += part.tokens * {"plain": 2}.get(part.kind, 1)
    shares = {lang: number**0.2 for lang, number in counted.items()}
    for lang in tokens:
        expected = shares[lang] / sum(shares.values())
        assert tokens[lang] / sum(tokens.values()) == pytest.approx(expected, rel=0.05)
    first, *_, last = metrics(trained)
    for lang in LANGS:
        assert last[f"reconstruct/{lang}"] < first[f"reconstruct/{lang}"]
        assert last[f"translate/{lang}"] < first[f"translate/{lang}"]


def test_japanese_and_arabic_are_decoded_from_their_tokens(trained: Path) -> None:
    """Encoding and decoding must not insert spaces into Japanese text, and must not change Arabic letters."""
    tokenizer = Tokenizer.load(trained / "tokenizer.model")
    for lang, rows in ROWS.items():
        learnt = [sentences(lang)[row] for row in rows]
        assert tokenizer.decode(tokenizer.encode(learnt)) == learnt


def test_a_decoder_only_generates_tokens_of_its_language(trained: Path) -> None:
    loaded = checkpoint.load(trained)
    for lang in LANGS:
        rows = ROWS.get(lang, range(110))
        own = {EOS, *chain.from_iterable(loaded.tokenizer.encode([sentences(lang)[row] for row in rows]))}
        decoder = loaded.model.decoders[lang]
        scores = decoder.step(torch.full((1, 1), EOS), decoder.start(torch.zeros(1, 6 + 48)))[0, 0]
        assert {*scores.isfinite().nonzero()[:, 0].tolist()} == own | {UNK}


def test_the_commands_embed_and_retrieve_pairs_of_languages_not_trained_together(
    trained: Path, write_rows: Callable[..., Path], bgt: Callable[..., Any], tmp_path: Path
) -> None:
    text = tmp_path / "ja.txt"
    text.write_text("\n".join(sentences("ja")[:5]) + "\n", "utf-8")
    done = bgt("embed", text, "--lang", "ja", "--model", trained, "--out", tmp_path / "ja.npy", "--device", "cpu")
    assert done.code == 0, done.err
    assert np.load(tmp_path / "ja.npy").shape == (5, 48)
    rows = [(sentences("ja")[row], sentences("ar")[row]) for row in ROWS["ja"] if row in ROWS["ar"]]
    pairs = write_rows(tmp_path / "ja-ar.tsv", rows)
    done = bgt("evaluate", "retrieval", pairs, "--langs", "ja,ar", "--model", trained, "--device", "cpu", "--json")
    assert done.code == 0, done.err
    assert {row["pairs"] for row in json.loads(done.out)["scores"]} == {len(rows)}


def test_each_language_is_generated_from_each(trained: Path, bgt: Callable[..., Any]) -> None:
    model = bgt_core.load(trained, "cpu", "fp32")
    for source, target in product(LANGS, LANGS):
        texts = sentences(source)[:4], sentences(target)[4:8]
        how: dict[str, Any] = {"lang": target, "source_lang": source, "search": bgt_core.Beam(1), "max_length": 9}
        written = bgt_core.generate(model, *texts, **how)
        letters = {char for text in sentences(target) for char in text} | {" "}
        assert len(written) == 4 and all({*text} <= letters for text in written)
    arguments = ("--source", texts[0][0], "--style", texts[1][0], "--lang", target, "--model", trained, "--beam", 1)
    done = bgt("generate", *arguments, "--source-lang", source, "--device", "cpu")
    assert done.code == 0 and done.out.strip() and {*done.out.strip()} <= letters, done.err
    wrong = bgt("generate", *arguments, "--source-lang", "es")
    assert (wrong.code, wrong.out) == (2, "") and "lang es: this model supports en, fr, ja, ar" in wrong.err
