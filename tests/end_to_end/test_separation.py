"""A small model is trained on sentences that a grammar generates from factors. Its latents separate the factors.

Each pair of sentences has a meaning, which both languages share, and in each language a style: a filler word and a
closing punctuation mark. The columns are results after training (range over seeds 1 to 4), and before training:

    retrieval by the semantic latent, chance 0.002          0.78 to 0.79   0.07 to 0.08
              by the language latent                        0.00           0.00
    area under the curve of a probe for content words,
              trained on semantic latents of one language
              and tested on latents of the other            0.96 to 0.97   0.53 to 0.58
    additional nats of a reconstruction with
              another sentence's semantic latent            2.2 to 2.5     0.0
              the semantic latent of its translation        0.1 to 0.3     0.0
              another sentence's language latent            5.9 to 7.9     0.0

A probe within one language would hardly improve, because even averages of untrained token vectors encode the words.
"""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import bgt_core
from bgt_core import Embedder, checkpoint, recipes, training
from bgt_core.contracts import LANGUAGE, SEMANTIC, Tokens
from bgt_core.grammar import Pair, pairs
from bgt_core.vectors.arrays import found

pytestmark = [pytest.mark.slow, pytest.mark.long]

LANGS = ("en", "fr")
TRAIN, UNSEEN = 3000, 3000
WORDS = 6  # maximum number of words per sentence; short sentences are learnt in a minute
SEED = 1
ARGUMENTS: dict[str, object] = {
    "data.vocab_size": 800, "model.d_model": 48, "model.semantic_dim": 64, "model.language_dim": 5,
    "model.language_layers": 1, "model.decoder_layers": 1, "model.ffn_dim": 96, "model.heads": 2, "model.dropout": 0.0,
    "model.word_dropout": 0.4, "model.readout": "sample", "model.log_variance": -3.0,
    "objective.elbo.warmup_steps": 100, "objective.elbo.weights.semantic": 0.01,
    "objective.elbo.weights.language": 0.5, "objective.elbo.label_smoothing": 0.0, "objective.margin.margin": 0.4,
    "objective.margin.weight": 20.0, "data.min_tokens": 1, "data.valid_pairs": 50, "train.epochs": 3.5,
    "train.batch_tokens": 500, "train.micro_tokens": 500, "train.learning_rate": 1.2e-2, "train.warmup_steps": 40,
    "train.cooldown": 0.3, "train.weight_decay": 1e-4, "train.valid_every": 1000, "train.save_every": 1000,
    "train.seed": SEED,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus() -> tuple[list[Pair], list[Pair]]:
    """Pairs of short sentences for training, and others that are not trained on. No sentence is in two pairs."""
    corpus = [pair for pair in pairs(27_000) if all(len(text.split()) <= WORDS for text in pair.texts.values())]
    assert len(corpus) >= TRAIN + UNSEEN
    return corpus[:TRAIN], corpus[TRAIN : TRAIN + UNSEEN]


class Reading:
    """A model, and its vectors of the sentence pairs that it was not trained on."""

    def __init__(self, model: Embedder, unseen: list[Pair]):
        self.model, self.unseen = model, unseen
        self.vectors = {
            (lang, latent): model.embed([pair.texts[lang] for pair in unseen], lang=lang, latent=latent)
            for lang in LANGS
            for latent in (SEMANTIC, LANGUAGE)
        }

    def retrieval(self, latent: str) -> float:
        """Search for translations among 500 sentences. Return the mean precision of both directions (chance: 0.002)."""
        english, french = (self.vectors[lang, latent][:500] for lang in LANGS)
        return float(found(english, french).mean() + found(french, english).mean()) / 2

    def predicts(self, labels: np.ndarray, latent: str, learnt: str, tested: str) -> float:
        """Return the mean area under the ROC curve of linear probes for `labels` (N, K); chance is 0.5. They are fitted
        to the first half of the sentences in the language `learnt`, and tested on the second half in `tested`."""
        half = len(labels) // 2
        x, y = (StandardScaler().fit_transform(self.vectors[lang, latent]) for lang in (learnt, tested))
        scores = Ridge(alpha=30.0).fit(x[:half], labels[:half].astype(float)).predict(y[half:])
        return float(np.mean([roc_auc_score(labels[half:, k], scores[:, k]) for k in range(labels.shape[1])]))

    def lost(self, lang: str) -> dict[str, float]:
        """Return by how many nats the loss of reconstruction grows if another sentence's latent replaces one latent."""
        own, meant, translated = (
            torch.from_numpy(self.vectors[key][:1000])
            for key in ((lang, LANGUAGE), (lang, SEMANTIC), ("fr" if lang == "en" else "en", SEMANTIC))
        )
        side = Tokens.pad(self.model.tokenizer.encode([pair.texts[lang] for pair in self.unseen[:1000]]), lang)

        def cost(style: torch.Tensor, meaning: torch.Tensor) -> float:
            latent = self.model.model.join({LANGUAGE: style, SEMANTIC: meaning})
            return self.model.model.decoder(lang)("reconstruct", lang, latent, side).nll()[1].mean().item()

        with torch.no_grad():
            base = cost(own, meant)
            return {
                "another's meaning": cost(own, meant.roll(1, 0)) - base,
                "its translation's meaning": cost(own, translated) - base,
                "another's style": cost(own.roll(1, 0), meant) - base,
            }


@pytest.fixture(scope="module")
def models(corpus: tuple[list[Pair], list[Pair]], tmp_path_factory: pytest.TempPathFactory) -> tuple[Reading, Reading]:
    """The trained model, and the same model before training."""
    path = tmp_path_factory.mktemp("separation")
    text = "".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in corpus[0])
    (path / "pairs.tsv").write_text(text, encoding="utf-8")
    folder = training.train(recipes.configure("bgt-small", ARGUMENTS), [path / "pairs.tsv"], path / "run", device="cpu")
    saved = checkpoint.load(folder)
    torch.manual_seed(SEED)
    untrained = Embedder(saved.recipe.build(saved.tokenizer), saved.tokenizer, LANGS)
    return Reading(bgt_core.load(folder), corpus[1]), Reading(untrained, corpus[1])


@pytest.fixture(scope="module")
def meaning(corpus: tuple[list[Pair], list[Pair]]) -> np.ndarray:
    """Labels (N, K): whether each of K content words is in a pair. The words are frequent in both halves of the data.
    Grammatical words are left out, because they depend on the language as much as on the meaning."""
    closed = set(
        "past habit now future plural not never the some this what my your our own all of two three four five six ten "
        "say be ask think order how when if but compare because more who where at in to have I you he she we they "
        "it".split()
    ) | {"there is", "let us", "who does"}
    keys = sorted({key for pair in corpus[1] for key in pair.meaning} - closed)
    labels = [np.array([key in pair.meaning for pair in corpus[1]]) for key in keys]
    half = UNSEEN // 2
    frequent = [label for label in labels if min(label[:half].sum(), label[half:].sum()) >= 10]
    assert len(frequent) >= 5
    return np.stack(frequent, axis=1)


def test_the_semantic_latent_finds_translations(models: tuple[Reading, Reading]) -> None:
    trained, untrained = models
    assert trained.retrieval(SEMANTIC) > 0.6
    assert trained.retrieval(LANGUAGE) < 0.03
    assert untrained.retrieval(SEMANTIC) < 0.15


@pytest.mark.parametrize(("learnt", "tested"), [("en", "fr"), ("fr", "en")])
def test_a_probe_for_meaning_works_in_another_language(
    learnt: str, tested: str, models: tuple[Reading, Reading], meaning: np.ndarray
) -> None:
    trained, untrained = models
    assert trained.predicts(meaning, SEMANTIC, learnt, tested) > 0.85
    assert trained.predicts(meaning, LANGUAGE, learnt, tested) < 0.65  # the languages' latents are not comparable
    assert untrained.predicts(meaning, SEMANTIC, learnt, tested) < 0.65


@pytest.mark.parametrize("lang", LANGS)
def test_the_decoder_takes_meaning_from_one_latent_and_style_from_the_other(
    lang: str, models: tuple[Reading, Reading]
) -> None:
    nats = models[0].lost(lang)
    assert nats["another's meaning"] > 1
    assert nats["its translation's meaning"] < 0.3 * nats["another's meaning"]  # a translation has the same meaning
    assert nats["another's style"] > 3
    assert max(map(abs, models[1].lost(lang).values())) < 0.2
