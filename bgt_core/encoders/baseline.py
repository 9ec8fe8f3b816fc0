"""Baseline encoders that a trained model should beat. They are not fitted on the sentences that they embed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.feature_extraction.text import HashingVectorizer

from bgt_core import PRETRAINED, checkpoint, recipes
from bgt_core.backend import pick_device, usual_defaults
from bgt_core.contracts import EOS, SentenceEncoder
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import Embedder
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import UsageError

# Number of hash buckets. Among forty words, the probability that any two share a bucket is 0.1. In half of these cases,
# the two words count with opposite signs.
BUCKETS = 2**13
UNTRAINED = 3  # number of untrained models with different seeds; the weights of a single one could be good by chance


def open_encoder(name: str, device: str = "auto", precision: str = "auto") -> ExternalEncoder | Embedder:
    """Open the baseline words, tfidf, random or random@SEED; UsageError for any other name."""
    kind, at, seed = name.partition("@")
    if kind == "random" and (not at or seed.isdigit()):
        return random(int(seed or 1), device, precision)
    if name not in ("words", "tfidf"):
        raise UsageError(f"baseline:{name}: expected words, tfidf, random or random@SEED, as in random@2.")
    return words() if name == "words" else tfidf()


def words() -> ExternalEncoder:
    """Make a bag-of-words encoder: counts of lower-cased words, hashed with random signs into 8,192 units."""
    bag = HashingVectorizer(n_features=BUCKETS, token_pattern=r"\w+", norm=None, dtype=np.float32)
    return ExternalEncoder(
        "baseline:words", lambda texts, lang, latent: bag.transform(texts).toarray(), fingerprint=f"words {BUCKETS}"
    )


def tfidf() -> ExternalEncoder:
    """Make a tf-idf encoder: counts of tokens, each weighted by -log of the token's probability.

    The tokenizer and the probabilities come from the shipped model, which was trained on English and French text. Both
    are fixed, so the vector of a sentence does not depend on the other sentences. Text in other languages is cut into
    short tokens. (Model cards use `FittedTfIdf`, which counts words and is fitted on the test sentences.)
    """
    tokenizer = Tokenizer.load(PRETRAINED / checkpoint.TOKENIZER)
    rarity = -np.log(tokenizer.probabilities())  # (V,), 0 for special tokens

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        counts = [np.bincount(ids, minlength=len(rarity)) for ids in tokenizer.encode(texts)]
        return np.stack(counts) * rarity  # (N, V)

    return ExternalEncoder("baseline:tfidf", embed, fingerprint=f"tfidf {tokenizer.sha256}")


def random(seed: int = 1, device: str = "auto", precision: str = "auto", like: str | Path = PRETRAINED) -> Embedder:
    """Make the random encoder of the BGT paper: an untrained model with the recipe and tokenizer of the model in the
    folder `like`. The same seed gives the same weights."""
    folder = checkpoint.find(Path(like))
    config = checkpoint.read_config(folder)
    recipe = recipes.configure(config["recipe"], config["arguments"])
    tokenizer = Tokenizer.load(folder / checkpoint.TOKENIZER)
    with torch.random.fork_rng(devices=[]), usual_defaults():
        torch.manual_seed(seed)
        model = recipe.build(tokenizer).float()
    return Embedder(model.to(pick_device(device)), tokenizer, model.langs, precision)


def tokens(bgt: Embedder) -> ExternalEncoder:
    """Make an encoder that averages the token vectors of a sentence. The vectors are from the embedding table of the
    model's semantic encoder. A sentence without tokens gets zeros."""
    table = bgt.model.semantic_table.weight.detach().float().cpu()

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        ids = [[token for token in sentence if token != EOS] for sentence in bgt.tokenizer.encode(texts)]
        offsets = torch.tensor([0, *map(len, ids[:-1])]).cumsum(0)
        flat = torch.tensor([token for sentence in ids for token in sentence], dtype=torch.int64)
        return F.embedding_bag(flat, table, offsets, mode="mean").numpy()  # (N, H)

    fingerprint = f"mean token vectors of {bgt.fingerprint}"
    return ExternalEncoder("baseline:tokens", embed, tuple(bgt.langs), fingerprint=fingerprint)


def reference_encoders(
    bgt: Embedder, folder: str | Path = PRETRAINED, device: str = "auto"
) -> dict[str, Sequence[SentenceEncoder]]:
    """Make the encoders that a probe compares with the model in `folder`: three untrained models, and the mean of the
    model's token vectors."""
    untrained = [random(seed, device, bgt.precision, folder) for seed in range(1, UNTRAINED + 1)]
    return {"untrained encoder": untrained, "mean of tokens": [tokens(bgt)]}
