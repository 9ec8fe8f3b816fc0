"""Pairs of sentences: examples on which the latents differ, scores of several systems, and the effect of each word."""

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app.core import exports
from app.core.display import NOTES, frame, table
from app.core.state import BY_DIGEST, STORED, Loaded, embed, inference
from bgt_core.contracts import SEMANTIC
from bgt_core.data.text import spans
from bgt_core.errors import DataError
from bgt_core.evaluation.bootstrap import ItemSample, pearson
from bgt_core.evaluation.comparison import Result, Statistic, compare
from bgt_core.evaluation.systems import word_effects

SEARCHED = 300  # maximum number of held-out pairs of a split from which the start page has pairs
LEAST = 0.005  # smaller effects are 0 when rounded to two decimals
MOST_WORDS = 300  # maximum number of words and marks of a sentence, which is embedded once without each of them
LONGEST = 120  # maximum number of characters shown of a sentence above the table of its words


class Pair(NamedTuple):
    """Two sentences and the language of each."""

    text: str
    lang: str
    other: str
    other_lang: str


_PAIRS = tomllib.loads(Path(__file__).with_name("pairs.toml").read_text("utf-8"))["pairs"]
LABELS = {Pair(*pair): label for *pair, label in _PAIRS}  # the pairs of the start page and their labels
PAIRS = tuple(LABELS)


def cosines_of(loaded: Loaded, pairs: Sequence[Pair]) -> list[dict[str, float]]:
    """Return the cosine of each pair in each latent, or only in the semantic latent if the pair has two languages."""
    found, texts = [dict[str, float]() for _ in pairs], defaultdict[str, list[str]](list)
    for pair in pairs:
        texts[pair.lang].append(pair.text)
        texts[pair.other_lang].append(pair.other)
    for latent in loaded.latents:
        vectors = {lang: iter(embed(loaded, of_lang, lang, latent)) for lang, of_lang in texts.items()}
        for pair, cosines in zip(pairs, found, strict=True):
            left, right = (next(vectors[lang])[None] for lang in (pair.lang, pair.other_lang))
            if latent == SEMANTIC or pair.lang == pair.other_lang:
                cosines[latent] = float(loaded.similarity_pairwise(left, right)[0])
    return found


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs=BY_DIGEST)
def of_start_page(loaded: Loaded) -> list[tuple[Pair, str, dict[str, float]]]:
    """Return the pairs of the start page, their labels, and their cosines in each latent: those of the `PAIRS` that the
    model can embed; or of a split's held-out pairs one translation, and in each language the two pairs of sentences on
    which the ranks of the cosines in both latents differ most."""
    shown = {pair: LABELS[pair] for pair in PAIRS if {pair.lang, pair.other_lang} <= set(loaded.langs)}
    shown = {pair: label for pair, label in shown.items() if loaded.embeds(pair.text, pair.other)}
    if loaded.corpus:
        langs, columns = loaded.corpus.columns, loaded.corpus.table.head(SEARCHED).to_numpy().T[:2].tolist()
        shown = {Pair(columns[0][0], langs[0], columns[1][0], langs[1]): "translation"}
        for lang, texts in zip(langs, columns, strict=False):
            left, right = np.triu_indices(len(texts), 1)
            vectors = (embed(loaded, texts, lang, latent) for latent in loaded.latents)
            semantic, second = (loaded.similarity(of, of)[left, right].argsort().argsort() for of in vectors)
            for at, label in (((semantic - second).argmin(), "style"), ((semantic - second).argmax(), "meaning")):
                shown[Pair(texts[left[at]], lang, texts[right[at]], lang)] = label
    return list(zip(shown, shown.values(), cosines_of(loaded, [*shown]), strict=True))


def ranks(values: Any, random: np.ndarray) -> np.ndarray:
    """Return the percentage of random pairs that are less similar than each value, (N,). Ties count half."""
    below = sum(np.searchsorted(np.sort(random), values, side=side) for side in ("left", "right"))
    return 50 * below / max(1, len(random))


class ItemsKey(NamedTuple):
    """The name of a score, and the number of items (such as pairs) from which it is computed."""

    score: str
    items: int


def compared(systems: Mapping[str, np.ndarray], score: Callable[..., np.ndarray], name: str) -> Result:
    """Compute a score of each system from its N numbers, one per item, with bootstrap intervals and the differences
    between systems. `score` maps B weightings (B, N) of the items, and all numbers (S, N), to scores (B, S)."""
    numbers = np.stack([np.asarray(row, float) for row in systems.values()])
    key, samples = ItemsKey(name, numbers.shape[1]), [ItemSample(numbers.shape[1])]
    made = Statistic(systems=list(systems), scores=lambda weights: {key: score(weights[0], numbers)}, samples=samples)
    return compare(made)


def correlations(similarities: Mapping[str, np.ndarray], gold: np.ndarray) -> Result:
    """Return each system's Pearson's r x 100 with human scores. Raises DataError for fewer than 3 pairs or 2 scores."""
    if len(gold) < 3 or np.ptp(gold) == 0:
        raise DataError(f"expected at least 3 pairs with 2 different scores (got {len(gold)} and {len(set(gold))}).")
    return compared(similarities, lambda weights, systems: 100 * pearson(weights, systems, gold), "Pearson x 100")


def shares(hits: Mapping[str, np.ndarray]) -> Result:
    """Return the percentage of items that each system gets right, with intervals. `hits` has 1 for these, else 0."""
    return compared(
        hits, lambda weights, systems: 100 * (weights @ systems.T) / weights.sum(1, keepdims=True), "share, %"
    )


def beside_first(result: Result) -> pd.DataFrame:
    """Return each system's score (value, low, high) and its difference from the first system's score (difference,
    difference_low, difference_high; NaN for the first), with 95% intervals from the same resamples."""
    scores = pd.DataFrame(result.records()).rename(columns={"ci_low": "low", "ci_high": "high"})
    first = result.systems[0]
    gaps = [gap.seen_from(gap.second).difference[:3] for gap in result.differences if gap.first == first]
    ends = ["difference", "difference_low", "difference_high"]
    return scores[["system", "value", "low", "high"]].join(pd.DataFrame([(np.nan,) * 3, *gaps], columns=ends))


def show_scores(result: Result, title: str, name: str, system: str = "Model") -> None:
    """Show a table of each system's score and its difference from the first system's, with intervals and an export."""
    st.markdown(f"**{title}**")
    scores, lines = beside_first(result), []
    for row in scores.itertuples():
        gap = f"{row.difference:+z.1f} [{row.difference_low:+z.1f}, {row.difference_high:+z.1f}]"
        score = f"{row.value:.1f} [{row.low:.1f}, {row.high:.1f}]"
        lines.append((row.system, score, "" if pd.isna(row.difference) else gap))
    shown = pd.DataFrame(lines, columns=[system, "Score", "Minus the first"])
    table(shown, f"{title}: each score, and its difference from the first")
    exports.offer(name, scores, latex=shown, title=f"Export: {title.partition(',')[0]}")


@st.cache_data(max_entries=256, show_spinner=False, hash_funcs=BY_DIGEST)
def effects(loaded: Loaded, text: str, lang: str, latent: str, other: np.ndarray, by_gradients: bool) -> np.ndarray:
    """Return how much each word and mark of a text, (W,), adds to the similarity of its latent and a vector (D,)."""
    if not by_gradients:
        return word_effects(loaded, text, lang, other, latent)
    from bgt_core.embedder import word_gradients  # importing this module is slow

    with inference():
        return word_gradients(loaded.bgt, text, lang, other, latent)


def show_words(systems: Mapping[str, tuple[Loaded, str]], pair: Pair, by_gradients: bool) -> None:
    """Show how much each word of two sentences adds to their similarity. A system is a model and one of its latents."""
    if any(model.sentences for model, _ in systems.values()):
        st.caption(STORED)
        return
    for column, (text, lang, *other) in zip(st.columns(2), (pair, (*pair[2:], *pair[:2])), strict=True):
        column.text(shorten(text, LONGEST, placeholder="…"))
        words = [text[start:end] for start, end in spans(text, lang)]
        if not 2 <= len(words) <= MOST_WORDS:
            column.caption(f"Shown for sentences of 2 to {MOST_WORDS} words and marks (got {len(words)}).")
            continue
        table = pd.DataFrame({"Word": words})
        for title, (model, latent) in systems.items():
            (vector,) = embed(model, other[:1], other[1], latent)
            gains = effects(model, text, lang, latent, vector, by_gradients)
            table[title] = np.where(np.abs(gains) < LEAST, 0.0, gains)  # otherwise, small losses are shown as -0.00
        with column:
            alt = f"Words of “{text}”, and how much each adds to the similarity by each system"
            frame(table, alt, dict.fromkeys(systems, "%+.2f"))
    st.caption(NOTES["by-gradients" if by_gradients else "by-leaving-out"])
