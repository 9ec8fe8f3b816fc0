"""Numbers about the maps: nearest sentences, a selection against the rest, scores in the full space."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.core import rows
from app.core.interpolation import Interpolation
from app.core.latents import geometry, keywords, spaces
from app.core.latents.spaces import MAX_SCORED, Space, Spaces
from app.core.state import Loaded, embed
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.bootstrap import wilson

KEYWORDS = 8
MARK = 0.015  # width of a mark, as a share of the map


def closest(loaded: Loaded, fitted: Spaces, text: str, lang: str, latent: str, count: int) -> pd.DataFrame:
    """The sentences of the maps nearest to a typed one: in the semantic latent, of any language; in the second latent,
    of its own."""
    space = fitted.semantic if latent == SEMANTIC else fitted.second[lang]
    return spaces.nearest(loaded, embed(loaded, [text], lang, latent)[0], space.rows, space.vectors, count)


def described(loaded: Loaded, fitted: Spaces, chosen: Collection[str]) -> pd.DataFrame:
    """Compare the rows of these ids with all others."""
    ids = frozenset(chosen)
    parts = {SEMANTIC: fitted.semantic}
    parts |= {f"{loaded.second_latent}, {rows.language_name(lang)}": space for lang, space in fitted.second.items()}
    cosines = {}
    for name, space in parts.items():
        within = among(space.rows, ids)
        if within.any():
            cosines[name] = (
                geometry.mean_cosine(space.vectors[within]),
                _mean_cosine(space.digest, space.content, space),
            )
    table = fitted.semantic.rows
    return compared(table, among(table, ids), spaces.words(fitted.semantic.content, table["text"]), cosines)


def among(table: pd.DataFrame, ids: frozenset[str]) -> np.ndarray:
    """Tell which rows have these ids, (N,) bool; pandas takes ten times as long for a column of Arrow's strings."""
    return np.fromiter(map(ids.__contains__, table["id"].tolist()), bool, len(table))


@st.cache_data(max_entries=64, show_spinner=False)
def _mean_cosine(digest: str, content: str, _space: Space) -> float:
    return geometry.mean_cosine(_space.vectors)


def compared(
    table: pd.DataFrame, chosen: np.ndarray, words: keywords.WordCounts, cosines: Mapping[str, tuple[float, float]]
) -> pd.DataFrame:
    """Compare the chosen rows, (N,) bool, with the others: one measure per row, differences with 95% intervals.

    `cosines` are mean cosines among the chosen and among all rows, by the name of a latent. All cells are texts; a cell
    is empty if there is nothing to compare.
    """
    count = int(chosen.sum())
    lines = [("Sentences", f"{count:,}", f"{len(chosen) - count:,}", "")]
    lengths = table["words"].to_numpy()
    lines.append(("Words in a sentence", *mean_difference(lengths[chosen], lengths[~chosen])))
    shares = {
        f"Closing mark: {mark}": table["mark"] == mark
        for mark in dict.fromkeys((*rows.MARKS.values(), rows.OTHER, rows.NONE))
    }
    langs = table["lang"].unique().tolist()
    shares |= {rows.language_name(lang): table["lang"] == lang for lang in langs if len(langs) > 1}
    compared = [(title, *share_difference(has.to_numpy(), chosen)) for title, has in shares.items()]
    lines += [line for line in compared if {*line[1:3]} - {"0%", ""}]
    # otherwise words of another language would stand out
    comparable = table["lang"].isin(table["lang"][chosen].unique()).to_numpy()
    groups = np.where(chosen, 0, np.where(comparable, 1, -1))
    here, elsewhere = map(", ".join, keywords.keywords(words, groups, KEYWORDS, 2))
    lines.append(("Words that stand out", here, elsewhere, ""))
    for latent, (among_chosen, among_all) in cosines.items():
        lines.append((f"Mean cosine, {latent}", f"{among_chosen:z.2f}", f"{among_all:z.2f} among all", ""))
    return pd.DataFrame(lines, columns=["Measure", "Selected", "Rest", "Difference"]).replace("nan", "")


def mean_difference(left: np.ndarray, right: np.ndarray) -> tuple[str, str, str]:
    """Both means, and their difference with its 95% interval by Welch's t."""
    from scipy.special import stdtrit

    if min(len(left), len(right)) < 2:
        means = [f"{part.mean():.1f}" if len(part) else "" for part in (left, right)]
        return means[0], means[1], ""
    errors = [part.var(ddof=1) / len(part) for part in (left, right)]
    difference, error = left.mean() - right.mean(), math.sqrt(sum(errors))
    squares = sum(part**2 / (len(side) - 1) for part, side in zip(errors, (left, right), strict=True))
    half = float(stdtrit(error**4 / squares, 0.975)) * error if squares else 0.0
    interval = f"{difference:+z.1f} [{difference - half:z.1f}, {difference + half:z.1f}]"
    return f"{left.mean():.1f}", f"{right.mean():.1f}", interval


def share_difference(has: np.ndarray, chosen: np.ndarray) -> tuple[str, str, str]:
    """The share of rows, (N,) bool, among the chosen and the others, and their difference in percentage points with
    its 95% interval (Newcombe 1998, method 10)."""
    counts = [(int(has[side].sum()), int(side.sum())) for side in (chosen, ~chosen)]
    texts = [f"{right / count:.0%}" if count else "" for right, count in counts]
    if not all(count for _, count in counts):
        return texts[0], texts[1], ""
    (p, q), ((p_low, p_high), (q_low, q_high)) = (
        [right / count for right, count in counts],
        [wilson(right, count) for right, count in counts],
    )
    low = p - q - math.hypot(p - p_low, q_high - q)
    high = p - q + math.hypot(p_high - p, q - q_low)
    return texts[0], texts[1], f"{100 * (p - q):+z.0f} [{100 * low:z.0f}, {100 * high:z.0f}]"


def pair_table(loaded: Loaded, semantic: Space, left: str, right: str) -> pd.DataFrame:
    """Measure how often translations find each other in the semantic latent, and whether a probe can still identify the
    language; beside chance."""
    left_name, right_name = rows.language_name(left), rows.language_name(right)
    scores, (accuracy, low, high) = pair_scores(loaded, semantic, left, right)
    table = {
        f"{left_name} finds its {right_name}": [f"{scores.left_finds_right:.0%}", f"{scores.chance:.1%}"],
        f"{right_name} finds its {left_name}": [f"{scores.right_finds_left:.0%}", f"{scores.chance:.1%}"],
        "Mean cosine of translations": [f"{scores.translations:.2f}", f"{scores.others:.2f}"],
        "Language identified by a probe": [f"{accuracy:.0%} ({low:.0%} to {high:.0%})", "50%"],
    }
    return pd.DataFrame.from_dict(table, orient="index", columns=["Semantic", "Chance"])


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=spaces.BY_DIGEST)
def pair_scores(
    loaded: Loaded, semantic: Space, left: str, right: str
) -> tuple[geometry.PairScores, tuple[float, float, float]]:
    """The same as numbers, and the accuracy of the probe with its interval."""
    from probes.measures.language import language_probe_accuracy  # imports sklearn, which takes a second

    left_vectors, right_vectors = semantic.of(left), semantic.of(right)
    similarities = loaded.encoder.similarity(left_vectors, right_vectors)
    return geometry.pair_scores(similarities), language_probe_accuracy(left_vectors, right_vectors)


def agreements(loaded: Loaded, fitted: Spaces, columns: Sequence[str]) -> pd.DataFrame:
    """How often a sentence's nearest neighbour in its own language has the same `columns`, in each latent and by
    chance: means over the languages, as percentages."""
    table = {}
    for column in columns:
        by_lang = [agreement(loaded, fitted.semantic, own, lang, column) for lang, own in fitted.second.items()]
        fractions = np.mean(by_lang, 0)
        table[rows.COUNTED[column]] = [f"{fraction:.0%}" for fraction in fractions]
    latents = [latent.capitalize() for latent in (SEMANTIC, loaded.second_latent)]
    return pd.DataFrame.from_dict(table, orient="index", columns=[*latents, "Chance"])


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs=spaces.BY_DIGEST)
def agreement(loaded: Loaded, semantic: Space, own: Space, lang: str, column: str) -> tuple[float, float, float]:
    """The fractions of one language in the semantic and the second latent, and by chance."""
    values = own.rows.loc[own.given, column].tolist()[:MAX_SCORED]
    vectors = [space.of(lang) for space in (semantic, own)]
    (first, chance), (second, _) = (
        geometry.agreement(loaded.encoder.similarity(part, part), values) for part in vectors
    )
    return first, second, chance


def with_places(fitted: spaces.Spaces, second_latent: str) -> pd.DataFrame:
    """The rows by id, with their places on the semantic map (x, y) and on the second latent's."""
    table = fitted.semantic.rows.set_index("id", drop=False)
    if not fitted.second:
        return table
    places = pd.concat([space.rows.set_index("id")[["x", "y"]] for space in fitted.second.values()])
    return table.join(places.add_suffix(f"_{second_latent}"))


def vectors_of(fitted: spaces.Spaces, second_latent: str, chosen: Sequence[str]) -> dict[str, np.ndarray]:
    """The vectors (N, D) of the chosen rows in each latent; of all rows if none is chosen."""
    ids = list(chosen) or fitted.semantic.rows["id"].tolist()
    parts = {SEMANTIC: [fitted.semantic], second_latent: list(fitted.second.values())}
    vectors = {}
    for latent, held in parts.items():
        if held:
            place = pd.Index(np.concatenate([space.rows["id"] for space in held])).get_indexer(ids)
            vectors[latent] = np.concatenate([space.vectors for space in held])[place]
    return vectors


def selected(table: pd.DataFrame, chosen: Sequence[str]) -> pd.DataFrame:
    """The chosen rows of a table indexed by id, in the order of choice; all rows if none is chosen."""
    return table.loc[list(chosen)] if chosen else table


def caption(method: geometry.Method, fitted: spaces.Spaces, second_latent: str) -> str:
    alone = len(fitted.second) == 1
    space_of = {SEMANTIC: fitted.semantic}
    space_of |= {second_latent if alone else rows.language_name(lang): s for lang, s in fitted.second.items()}
    each = f"The {second_latent} latent" if alone else f"Each {second_latent} latent"
    number = {"UMAP": "neighbours", "t-SNE": "perplexity"}.get(method.name)
    how = f"{method.name}, {number} {method.neighbours}, seed {method.seed}," if number else "PCA (no seed needed)"
    if read := {name: space.projection.read for name, space in space_of.items() if space.projection.read}:
        readings = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in read.items())
        how = f"{method.axes[0]} to the right, {method.axes[1]} upwards, read by linear probes ({readings}),"
    elif not number:
        variance = {name: space.projection.variance for name, space in space_of.items()}
        how += f" shows {enumerated(variance, '.0%')} of the variance"
    same_place, pairs = coincide(fitted.semantic.rows)
    lengths = " at unit length" if method.metric == geometry.COSINE else ", their lengths kept"
    same = [name for name, space in space_of.items() if space.projection.variance == 0]
    few = [name for name, space in space_of.items() if number and space.projection.variance]
    lower = {name: space.projection.neighbours for name, space in space_of.items()}
    lower = {name: used for name, used in lower.items() if used and used < method.neighbours}
    trust = enumerated({name: spaces.trust(space, method) for name, space in space_of.items()}, ".2f")
    return (
        f"{how} of {len(fitted.semantic.rows):,} vectors{lengths}. "
        + f"The vectors of {' and '.join(same)} are all the same: no map can tell the sentences apart. " * bool(same)
        + f"{method.name} needs {geometry.LEAST} vectors that it can tell apart; drawn by PCA: {', '.join(few)}. "
        * bool(few)
        + f"{str(number).capitalize()} used, with so few vectors: {enumerated(lower, '.3g')}. " * bool(lower)
        + f"Trustworthiness of 15 neighbours: {trust}. " * bool(trust)
        + f"{same_place:,} of {pairs:,} translations coincide: the larger mark, of the first language, is below. "
        * bool(pairs)
        + f"{each} is a space of its own, fitted alone: compare within a panel, not across. " * bool(fitted.second)
        + "Distances between far groups are not meaningful."
    )


def coincide(table: pd.DataFrame) -> tuple[int, int]:
    """Count the translations whose sentences are all within a mark's width on the map, and all translations."""
    places = table.loc[~table["own"].to_numpy()].groupby("pair")[["x", "y"]]
    apart = (places.max() - places.min()).max(axis=1)[places.size() > 1]
    width = MARK * np.ptp(table[["x", "y"]].to_numpy(), axis=0).max()
    return int((apart <= width).sum()), len(apart)


def enumerated(values: Mapping[str, float | None], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items() if value is not None)


def paths(walk: Interpolation | None, fitted: spaces.Spaces) -> dict[str, np.ndarray]:
    """The steps on the maps, (steps, 2): under "semantic", and under the language whose latent moved."""
    if walk is None:
        return {}
    maps = {}
    for latent, vectors in walk.latents.items():
        name, space = (SEMANTIC, fitted.semantic) if latent == SEMANTIC else (walk.lang, fitted.second[walk.lang])
        maps[name] = space.projection.project(vectors)
    return maps
