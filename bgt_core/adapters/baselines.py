"""What a trained model must beat. None of them is fitted on the sentences that it embeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.feature_extraction.text import HashingVectorizer

from bgt_core import PRETRAINED, checkpoint, recipes
from bgt_core.adapters.outside import Outside
from bgt_core.contracts import BadInput
from bgt_core.embedder import Embedder
from bgt_core.text import Tokenizer
from bgt_core.train.device import pick_device

BUCKETS = 2**13  # of words; two of forty words meet in one with a chance of a tenth, and half of those cancel


def baseline(name: str, device: str = "auto", precision: str = "auto") -> Outside | Embedder:
    """`words`, `tfidf`, `random` or `random@SEED`; BadInput for another."""
    kind, at, seed = name.partition("@")
    if kind == "random" and (not at or seed.isdigit()):
        return random(int(seed or 1), device, precision)
    makers: dict[str, Callable[[], Outside]] = {"words": words, "tfidf": tfidf}
    if name not in makers:
        raise BadInput(f"baseline:{name}: there are words, tfidf, random and random@SEED, as in random@2.", 2)
    return makers[name]()


def words() -> Outside:
    """A bag of words: how often each lower-cased word occurs, hashed into 8,192 signed counts."""
    bag = HashingVectorizer(n_features=BUCKETS, token_pattern=r"\w+", norm=None, dtype=np.float32)
    return Outside("baseline:words", lambda texts, lang, latent: bag.transform(texts).toarray())


def tfidf() -> Outside:
    """Pieces of the shipped model's tokenizer, counted, each weighted by its rarity, -log of its probability.

    The probability is the tokenizer's own, of its training text in English and French: nothing is fitted here, so a
    sentence has the same vector wherever it stands. Text in other languages falls into short pieces.
    """
    tokenizer = Tokenizer.load(PRETRAINED / checkpoint.TOKENIZER)
    rarity = -np.log(tokenizer.probabilities())  # (V,), 0 for special pieces

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        counts = [np.bincount(ids, minlength=len(rarity)) for ids in tokenizer.encode(texts)]
        return np.stack(counts) * rarity  # (N, V)

    return Outside("baseline:tfidf", embed)


def random(seed: int = 1, device: str = "auto", precision: str = "auto") -> Embedder:
    """The shipped model before training, with its tokenizer: the paper's random encoder. The same for the same seed."""
    config = checkpoint.read_config(PRETRAINED)
    recipe = recipes.build(config["recipe"], config["arguments"])
    tokenizer = Tokenizer.load(PRETRAINED / checkpoint.TOKENIZER)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = recipe.model(tokenizer)
    return Embedder(model.to(pick_device(device)), tokenizer, recipe.langs, precision)
