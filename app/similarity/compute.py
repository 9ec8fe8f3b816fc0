"""Similarity of pairs by each latent, by a bag of words, and by people, and its figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from app.core import pairs as scores_of_pairs
from app.core import rows
from app.core.state import Loaded, content, embed
from app.core.theme import finish, latent_colour, plain
from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.encoders import open_encoder
from bgt_core.evaluation.comparison import Result
from bgt_core.evaluation.tasks.sts import RULES, extreme, negated, swer
from bgt_core.vectors.compare import cosines

MANY = 2_000  # points; more are drawn with WebGL
AT_ONCE = 100  # pairs with their bags of words in memory
WORDS = "words"  # the column of the baseline
OTHERS = ("left", "right", "gold", "swer", "overlap", "misjudged")  # columns that are not a system's similarity
SIDES = ("left", "right")
NEGATION = "negation"
SPLITS = ("all", "Hard+", "Hard-", NEGATION)


@st.cache_resource(max_entries=1)
def baseline() -> SentenceEncoder:
    """The baseline: the words of a sentence, rare ones weighted more."""
    return open_encoder("baseline:tfidf")


def similarities(loaded: Loaded, pairs: pd.DataFrame, left_lang: str, right_lang: str) -> pd.DataFrame:
    """The pairs (left, right[, gold]) with each system's similarity, the share of words in common, `overlap`, and the
    symmetric word error rate, `swer`.

    The second latents of two languages are not comparable, so they are used for pairs of one language only.
    """
    texts = content([*pairs["left"], *pairs["right"]])
    return pairs.join(_similarities(loaded.digest, texts, left_lang, right_lang, pairs, loaded))


@st.cache_data(max_entries=8, show_spinner="Comparing pairs")
def _similarities(
    digest: str, content: str, left_lang: str, right_lang: str, _pairs: pd.DataFrame, _loaded: Loaded
) -> pd.DataFrame:
    left, right = _pairs["left"].tolist(), _pairs["right"].tolist()
    latents = _loaded.latents if left_lang == right_lang else [SEMANTIC]
    scores = {}
    for latent in latents:
        vectors = embed(_loaded, left, left_lang, latent), embed(_loaded, right, right_lang, latent)
        scores[latent] = _loaded.encoder.similarity_pairwise(*vectors).astype(float)
    parts = [slice(start, start + AT_ONCE) for start in range(0, len(left), AT_ONCE)]
    bags = (
        (baseline().embed(left[part], lang=left_lang), baseline().embed(right[part], lang=right_lang)) for part in parts
    )
    scores[WORDS] = np.concatenate([cosines(*pair) for pair in bags]).astype(float)
    scores["overlap"] = np.array(list(map(rows.overlap, left, right)))
    return pd.DataFrame({**scores, "swer": swer(left, right)}, index=_pairs.index)


def systems(columns: Iterable[str]) -> dict[str, str]:
    """The titles of the systems among the columns of scored pairs: the latents, and the baseline."""
    names = (name for name in columns if name not in OTHERS)
    return {name: "Words (tf-idf)" if name == WORDS else rows.latent_title(name) for name in names}


def split(scored: pd.DataFrame, name: str, langs: tuple[str, str] = ("en", "en")) -> pd.DataFrame:
    """The pairs of a split of Hard STS (paper, sec. 4.3), in these languages; "all" gives all pairs. No pair is negated
    in a language without rules of negation."""
    if name == "all":
        return scored
    if name == NEGATION:
        if not set(langs).issubset(rows.NEGATION_LANGS):
            return scored.head(0)
        left, right = (  # in English by the rule of Hard STS, "not" or "'t"
            negated(scored[side]) if lang == "en" else scored[side].map(partial(rows.negated, lang=lang)).to_numpy(bool)
            for side, lang in zip(SIDES, langs, strict=True)
        )
        inside = left != right
    else:
        rule = RULES[name]
        gold = scored["gold"].between(rule.low, rule.high).to_numpy()
        inside = extreme(scored["swer"].to_numpy(), rule.end, rule.share) & gold
    return scored[np.asarray(inside)]


def misjudged(scored: pd.DataFrame) -> pd.Series:
    """The deviation of the semantic latent from people on each pair: the difference of their standard scores among
    these pairs.

    Above 0 the latent finds a pair more alike than people do, below 0 less.
    """
    standard = [(scored[name] - scored[name].mean()) / max(scored[name].std(), 1e-12) for name in (SEMANTIC, "gold")]
    return standard[0] - standard[1]


def correlations(scored: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r with the gold scores, x 100, and its 95% bootstrap interval; the systems meet the same resamples.

    Raises BgtError for fewer than 3 pairs or gold scores that are all the same.
    """
    records = pd.DataFrame(_compared(scored).records()).rename(columns={"value": "pearson", "items": "n"})
    return records[["system", "pearson", "ci_low", "ci_high", "n"]]


def differences(scored: pd.DataFrame) -> pd.DataFrame:
    """The lead of the semantic latent's r over each other system's, x 100, with its 95% interval; paired, as both meet
    the same resamples of the pairs."""
    own = systems(scored)[SEMANTIC]
    gaps = [gap.seen_from(own) for gap in _compared(scored).differences if own in (gap.first, gap.second)]
    rows = [(f"{own} - {gap.second}", *gap.difference[:3], gap.key.items) for gap in gaps]
    return pd.DataFrame(rows, columns=["system", "pearson", "ci_low", "ci_high", "n"])


@st.cache_data(max_entries=16, show_spinner="Resampling pairs")
def _compared(scored: pd.DataFrame) -> Result:
    similarities = {title: scored[name].to_numpy(float) for name, title in systems(scored).items()}
    return scores_of_pairs.correlations(similarities, scored["gold"].to_numpy(float))


def alike(loaded: Loaded, left: str, right: str, left_lang: str, right_lang: str) -> pd.DataFrame:
    """One pair, one row per measure; a higher value means more alike."""
    pair = pd.DataFrame({"left": [left], "right": [right]})
    scored = similarities(loaded, pair, left_lang, right_lang).iloc[0]
    measures = [(title, float(scored[name])) for name, title in systems(scored.index).items()]
    return pd.DataFrame([*measures, ("Words in common", float(scored["overlap"]))], columns=["measure", "value"])


def random_pairs(loaded: Loaded, table: pd.DataFrame, latent: str, langs: tuple[str, str]) -> np.ndarray:
    """The similarity of different sentences in these languages that do not translate each other, (N,), to compare a
    similarity with: each sentence and the one before it, no pair twice."""
    same = langs[0] == langs[1]
    texts = [table.loc[table["lang"] == lang, "text"] for lang in langs]
    texts = [side.drop_duplicates() for side in texts] if same else texts
    left, right = (embed(loaded, side, lang, latent) for side, lang in zip(texts, langs, strict=True))
    similarities = loaded.encoder.similarity_pairwise(left, np.roll(right, 1, axis=0))
    return similarities[len(similarities) < 2 + same :]  # of so few, the first is a sentence with itself, or again


def alike_scatter(
    scored: pd.DataFrame, x: str, x_title: str, systems: Mapping[str, str], theme: str = "light"
) -> go.Figure:
    """Plot the cosine of each system, in its own panel, against a column: people's scores, or another system.

    Rows (left, right, `x`, and a column per system); a point's `customdata` is its row's index.
    """
    figure = make_subplots(rows=1, cols=len(systems), shared_yaxes=True)
    kind, opacity = (go.Scatter, 0.6) if len(scored) <= MANY else (go.Scattergl, 0.25)
    values = scored[x].to_numpy(float)
    if x == "gold":  # people give few different scores: equal ones would overlap
        values = values + np.random.default_rng(0).uniform(-0.06, 0.06, len(scored))
    texts = [f"{plain(row.left[:60])}<br>{plain(row.right[:60])}" for row in scored.itertuples()]
    for column, (system, title) in enumerate(systems.items(), 1):
        colour = latent_colour(system, theme)
        points = kind(
            x=values,
            y=scored[system],
            name=title,
            mode="markers",
            customdata=list(range(len(scored))),
            marker={"size": 5, "opacity": opacity, "color": colour, "line": {"width": 0}},
            text=texts,
            hovertemplate="%{text}<br>%{y:.2f}<extra></extra>",
            selected={"marker": {"opacity": 1, "size": 10}},
            unselected={"marker": {"opacity": 0.2}},
        )
        figure.add_trace(points, row=1, col=column)
        figure.update_yaxes(title_text=f"{title}: cosine", zeroline=False, col=column)
    figure = finish(figure, "", 360, theme, legend=False)
    figure.update_xaxes(title_text=x_title, zeroline=False)
    return figure.update_layout(dragmode="pan")
