"""Pairs of sentences: examples on which the latents differ, scores of several systems, and the effect of each word."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from textwrap import shorten
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from app.core import exports
from app.core.display import frame, table
from app.core.state import BY_DIGEST, Loaded, embed
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.bootstrap import ItemSample, pearson
from bgt_core.evaluation.comparison import Result, Statistic, compare
from bgt_core.evaluation.systems import word_effects

LEAST = 0.005  # smaller effects are 0 when rounded to two decimals
LONGEST = 120  # maximum number of characters shown of a sentence above the table of its words


class Pair(NamedTuple):
    """Two sentences and the language of each."""

    text: str
    lang: str
    other: str
    other_lang: str


PAIRS = (  # pairs that are similar in only one of the latents
    Pair("Tu es en retard.", "fr", "Vous êtes en retard.", "fr"),
    Pair("I haven't seen him.", "en", "I have not seen him.", "en"),
    Pair("Can you help me?", "en", "Tu peux m'aider ?", "fr"),
    Pair("It's a good idea.", "en", "It's not a good idea.", "en"),
    Pair("Tom saw Mary.", "en", "Mary saw Tom.", "en"),
)
LABELS = dict(zip(PAIRS, ("tu / vous", "contracted", "translated", "negated", "roles swapped"), strict=True))


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
def of_start_page(loaded: Loaded) -> list[tuple[Pair, dict[str, float]]]:
    """Return those of the `PAIRS` that are in the model's languages, with their cosines in each latent."""
    shown = [pair for pair in PAIRS if {pair.lang, pair.other_lang} <= set(loaded.langs)]
    return list(zip(shown, cosines_of(loaded, shown), strict=True))


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
    """Return each system's Pearson correlation x 100 with human scores. Raises DataError for fewer than 3 pairs, or if
    all human scores are the same."""
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


def show_words(systems: Mapping[str, tuple[Loaded, str]], pair: Pair) -> None:
    """Show how much each word of two sentences adds to their similarity. A system is a model and one of its latents."""
    langs = pair.lang, pair.other_lang
    try:
        of_systems = {
            title: word_effects({title: model}, pair.text, pair.other, langs, latent)
            for title, (model, latent) in systems.items()
        }
    except UsageError as error:  # raised for sentences with too many words
        st.caption(str(error))
        return
    words = next(iter(of_systems.values()))
    if not words:
        st.caption("Neither sentence has two words.")
        return
    effects = pd.DataFrame({title: [each.effects[0] for each in of] for title, of in of_systems.items()})
    effects = effects.where(effects.abs() >= LEAST, 0.0)  # otherwise, small negative effects would be shown as -0.00
    for side, (column, text) in enumerate(zip(st.columns(2), (pair.text, pair.other), strict=True)):
        places = [at for at, each in enumerate(words) if each.side == side]
        part = effects.iloc[places]
        part.insert(0, "Word", [words[at].word for at in places])
        column.text(shorten(text, LONGEST, placeholder="…"))
        with column:
            alt = f"Words of “{text}”, and how much each adds to the similarity by each system"
            frame(part, alt, dict.fromkeys(effects, "%+.2f"))
    st.caption(
        "Each word or mark is left out in turn. The number is the decrease of the similarity without it. Below 0, the "
        "pair is more similar without the word."
    )
