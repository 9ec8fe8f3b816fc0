"""How alike are two sentences, to each latent, to a bag of words, and to people?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import streamlit as st

from app import rows
from app.state import Loaded, embed
from bgt_core.adapters import open_encoder
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.errors import DataError
from bgt_core.evaluation import bootstrap
from bgt_core.evaluation.sts.hard import RULES, extreme, negated, swer
from bgt_core.vectors.compare import cosines

RESAMPLES = 2_000
WORDS = "words"  # the column of the baseline
OTHERS = ("left", "right", "gold", "swer")  # columns of scored pairs that hold no system's similarity
NEGATION = "negation"
SPLITS = ("all", "Hard+", "Hard-", NEGATION)


@st.cache_resource(max_entries=1)
def baseline() -> SentenceEncoder:
    """What a model must beat: the words of a sentence, rare ones weighted more."""
    return open_encoder("baseline:tfidf")


def similarities(loaded: Loaded, pairs: pd.DataFrame, left_lang: str, right_lang: str) -> pd.DataFrame:
    """The pairs (left, right[, gold]) with each system's similarity, and the symmetric word error rate.

    The second latents of two languages share no axes, so they are compared within one language only.
    """
    sides = (("left", left_lang), ("right", right_lang))
    latents = loaded.latents if left_lang == right_lang else [SEMANTIC]
    scores = {}
    for latent in latents:
        vectors = [embed(loaded, pairs[side], lang, latent) for side, lang in sides]
        scores[latent] = loaded.encoder.similarity_pairwise(*vectors).astype(float)
    words = [baseline().embed(pairs[side].tolist(), lang=lang) for side, lang in sides]
    scores[WORDS] = cosines(*words).astype(float)
    return pairs.assign(**scores, swer=swer(pairs["left"].tolist(), pairs["right"].tolist()))


def systems(columns: Iterable[str]) -> dict[str, str]:
    """What each system among the columns of scored pairs is called: the latents, and the baseline."""
    names = (name for name in columns if name not in OTHERS)
    return {name: "Words (tf-idf)" if name == WORDS else rows.latent_title(name) for name in names}


def split(scored: pd.DataFrame, name: str) -> pd.DataFrame:
    """The pairs of a split of Hard STS (paper, sec. 4.3), cut from these pairs; "all" is all of them."""
    if name == "all":
        return scored
    if name == NEGATION:
        inside = negated(scored["left"].tolist()) != negated(scored["right"].tolist())
    else:
        rule = RULES[name]
        gold = scored["gold"].between(rule.low, rule.high).to_numpy()
        inside = extreme(scored["swer"].to_numpy(), rule.end, rule.share) & gold
    return scored[np.asarray(inside)]


@st.cache_data(max_entries=16, show_spinner="Resampling pairs")
def correlations(scored: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Pearson's r with the gold scores, x 100, and its 95% bootstrap interval; the systems meet the same resamples.

    Raises BgtError for fewer than 3 pairs or gold scores that are all the same.
    """
    gold = scored["gold"].to_numpy(float)
    if len(gold) < 3 or np.ptp(gold) == 0:
        raise DataError(f"{len(gold)} pairs with {len(set(gold))} different scores; a correlation needs 3 and 2.")
    titles = systems(scored)
    similarities = scored[list(titles)].to_numpy(float).T  # (S, N)
    rng, parts = np.random.default_rng(seed), []
    for _ in range(RESAMPLES // 100):  # a hundred at once, to bound memory
        parts.append(bootstrap.pearson(bootstrap.resample(rng, len(gold), 100), similarities, gold))
    low, high = bootstrap.interval(np.concatenate(parts), 0.95)
    (value,) = bootstrap.pearson(np.ones((1, len(gold))), similarities, gold)
    return pd.DataFrame(
        {"system": [*titles.values()], "pearson": 100 * value, "ci_low": 100 * low, "ci_high": 100 * high}
    )


def alike(loaded: Loaded, left: str, right: str, left_lang: str, right_lang: str) -> pd.DataFrame:
    """One pair, one row per measure."""
    pair = pd.DataFrame({"left": [left], "right": [right]})
    scored = similarities(loaded, pair, left_lang, right_lang).iloc[0]
    measures = [(title, float(scored[name])) for name, title in systems(scored.index).items()]
    return pd.DataFrame([*measures, ("Word error rate", float(scored["swer"]))], columns=["measure", "value"])


def random_pairs(loaded: Loaded, table: pd.DataFrame, latent: str, lang: str) -> float:
    """The mean similarity of unrelated sentences: what a similarity should be compared with."""
    part = table.loc[table["lang"] == lang, "text"]
    vectors = embed(loaded, part, lang, latent)
    return float(loaded.encoder.similarity_pairwise(vectors, np.roll(vectors, 1, axis=0)).mean())
