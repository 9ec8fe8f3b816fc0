"""Pairs of sentences with their similarity in each of the two latents, to find where the latents disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.core import corpora, rows
from app.core.latents import spaces
from app.core.startup import ParallelText
from app.core.state import Loaded, content
from app.core.theme import AMOUNTS, EDGE, INK, PALETTE, REST, cycled, finish, latent_colour, plain
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.grammar import LANGS, NEGATION, triples
from bgt_core.vectors.compare import rounded

NEAR_IN_MEANING, NEAR_IN_STYLE, RANDOM = "Nearest in meaning", "Nearest in style", "Random pairs"  # kinds of pairs
OWN_PAIRS = "Your pairs"
PARAPHRASES, NEGATIONS, ROLES = "Paraphrases", "Negations", "Roles swapped"  # kinds of built-in pairs
BUILT_IN = 200  # sentences, each with a paraphrase, and with a negation or swapped roles
BACKGROUND = 20_000  # random pairs that percentiles are of, or all if there are fewer; `help/plane.md` names it
TICKS = (1, 50, 90, 99, 99.9)  # percentiles marked on the axes
MAX_SEARCHED = 5_000  # sentences searched for neighbours; all against all is quadratic
AT_ONCE = 1_000  # rows whose similarities are in memory at once
ANCHORS = 300  # translations through which two sentences of different languages are compared; `help/plane.md` names it
AXES = ("semantic", "style")  # columns of pairs
QUADRANTS = {  # (near in meaning, near in style) -> its name, in the order of the page
    (False, True): "Near in style only",
    (True, True): "Near in both",
    (False, False): "Near in neither",
    (True, False): "Near in meaning only",
}
NONE = "without a value"  # legend entry of points without a colour value
MAX_SVG = 2_000  # points; more are drawn with WebGL
MAX_HOVER = 10_000  # points with their own hover text
SHORT = 70  # characters of a sentence in a hover text
HEIGHT = 560
CLIPPED = 0.98  # share of the amounts up to which colours differ
CORNERS = ((0.01, 0.99), (0.99, 0.99), (0.01, 0.01), (0.99, 0.01))  # of the labels, in the order of the quadrants


@dataclass(frozen=True)
class PairSource:
    """Kinds of pairs from a text: translations of two languages; the user's own pairs of one language, pairs made
    here, or those of the built-in grammar beside random pairs of the text."""

    left: str
    right: str
    given: bool  # the text's own pairs
    built_in: bool = False

    @property
    def title(self) -> str:
        left, right = map(rows.language_name, (self.left, self.right))
        if self.built_in:
            return f"Paraphrases, negations, roles: {left}"
        if not self.given:
            return f"Within {left}"
        return OWN_PAIRS if self.left == self.right else f"{left} and {right}"


def sources(text: ParallelText) -> list[PairSource]:
    """The pairs that can be made of a text, those of one language first."""
    own = [PairSource(text.langs[0], text.langs[0], True)] if len(text.sides) > len(text.langs) else []
    made = [PairSource(lang, lang, False) for lang in text.langs]
    built_in = [PairSource(lang, lang, False, True) for lang in text.langs if lang in LANGS]
    return [*own, *made, *built_in, *(PairSource(left, right, True) for left, right in combinations(text.langs, 2))]


def pairs(loaded: Loaded, text: ParallelText, count: int, source: PairSource) -> pd.DataFrame:
    """A row per pair of the first `count` rows of a text, random pairs last; shared, so do not change it.

    Columns: `kind`; `left`, `right`, and the ids of their rows `left_row` and `right_row` ("" for built-in pairs);
    their similarity `semantic`, and `style` in the second latent; the share of random pairs that are less alike in
    each, in percent, `semantic_rank` and `style_rank`; the share of words in common, `overlap`, and the difference in
    length, `length`; a user's own columns, for given pairs only.
    """
    table = corpora.sentences(text, count)
    compared = _pairs(loaded.digest, content(table["text"]), source, table, loaded)
    random = background(loaded, text, count, source)
    compared = compared.assign(**{f"{axis}_rank": ranks(compared[axis], random[axis]) for axis in AXES})
    own = [column for column in table if column.startswith(rows.OWN_COLUMN)]
    if not (own and source.given):
        return compared
    given = compared[compared["kind"] != RANDOM]
    extra = table.set_index("id").loc[given["left_row"], own].set_axis(given.index)
    return compared.join(extra)


def background(loaded: Loaded, text: ParallelText, count: int, source: PairSource) -> pd.DataFrame:
    """The similarities `semantic` and `style` of many random pairs, to which all others are compared."""
    table = corpora.sentences(text, count)
    return _background(loaded.digest, content(table["text"]), source, table, loaded)


@st.cache_data(max_entries=8, show_spinner="Comparing random pairs")
def _background(digest: str, content: str, source: PairSource, _table: pd.DataFrame, _loaded: Loaded) -> pd.DataFrame:
    part = sentences(_table, source)
    meaning, style = (spaces.vectors_of(_loaded, part, latent) for latent in (SEMANTIC, _loaded.second_latent))
    size = len(part) // 2 if source.given else len(part)  # given pairs: all left sentences come before all right ones
    left, right = unlike(size, in_order=source.given)
    right = right + size * source.given
    texts = part["text"].to_numpy()
    different = texts[left] != texts[right]
    left, right = left[different], right[different]
    return pd.DataFrame(dict(zip(AXES, similarities(_loaded, source, (meaning, style), left, right), strict=True)))


def unlike(size: int, in_order: bool) -> tuple[np.ndarray, np.ndarray]:
    """Different pairs of two different numbers below `size`, both (P,): all of them, or a random `BACKGROUND`.

    (1, 2) and (2, 1) are two pairs only if they are taken in order.
    """
    count = size * (size - 1) // (1 if in_order else 2)
    pairs = np.random.default_rng(1).choice(count, min(count, BACKGROUND), replace=False)
    if in_order:
        left, right = np.divmod(pairs, max(1, size - 1))
        return left, right + (right >= left)
    right = ((1 + np.sqrt(1 + 8 * pairs)) / 2).astype(int)  # pairs 0, 1, 2 are (0, 1), (0, 2), (1, 2)
    return pairs - right * (right - 1) // 2, right


def sentences(table: pd.DataFrame, source: PairSource) -> pd.DataFrame:
    """The rows of a text that a source makes pairs of."""
    part = table[table["lang"].isin([source.left, source.right])]
    if not source.given:
        part = part.drop_duplicates("text").head(MAX_SEARCHED)
    return part.reset_index(drop=True)


def similarities(
    loaded: Loaded, source: PairSource, latents: tuple[np.ndarray, np.ndarray], left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compare rows `left` and `right` of both latents, (N, D) and (N, M), in meaning and in style: (P,), rounded."""
    meaning, style = latents
    pairwise = loaded.encoder.similarity_pairwise
    in_style = (
        pairwise(style[left], style[right]) if source.left == source.right else across(loaded, style, left, right)
    )
    return rounded(pairwise(meaning[left], meaning[right])), rounded(in_style)


def ranks(values: pd.Series, random: pd.Series) -> np.ndarray:
    """The share of random pairs that are less alike than each value, in percent, ties counting half: (N,)."""
    below = sum(np.searchsorted(np.sort(random), values, side=side) for side in ("left", "right"))
    return 50 * below / max(1, len(random))


@cache
def built_in(lang: str) -> pd.DataFrame:
    """Pairs of the built-in grammar, of words that the shipped models were not trained on: `kind`, `left`, `right`."""
    pairs = []
    for triple in triples(BUILT_IN, held_out=True):
        sentence, paraphrase, altered = triple.texts[lang]
        pairs.append((PARAPHRASES, sentence, paraphrase))
        pairs.append((NEGATIONS if triple.kind == NEGATION else ROLES, sentence, altered))
    return pd.DataFrame(pairs, columns=["kind", "left", "right"])


@st.cache_data(max_entries=8, show_spinner="Comparing pairs")
def _pairs(digest: str, content: str, source: PairSource, _table: pd.DataFrame, _loaded: Loaded) -> pd.DataFrame:
    part = sentences(_table, source)
    if source.built_in:
        pairs = built_in(source.left)
        own = rows.table([*pairs["left"], *pairs["right"]], source.left, None).assign(id="")
        part = pd.concat([part, own], ignore_index=True)
    meaning, style = (spaces.vectors_of(_loaded, part, latent) for latent in (SEMANTIC, _loaded.second_latent))
    texts, ids, words = (part[column].to_numpy() for column in ("text", "id", "words"))
    tables = []
    for kind, left, right in indices(_loaded, part, source, meaning, style):
        in_meaning, in_style = similarities(_loaded, source, (meaning, style), left, right)
        compared = {"kind": kind, "left": texts[left], "right": texts[right], "left_row": ids[left],
                    "right_row": ids[right], "semantic": in_meaning, "style": in_style,
                    "length": np.abs(words[left] - words[right])}  # fmt: skip
        tables.append(pd.DataFrame(compared))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(overlap=list(map(rows.overlap, table["left"], table["right"])))


def indices(
    loaded: Loaded, table: pd.DataFrame, source: PairSource, meaning: np.ndarray, style: np.ndarray
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Kinds of pairs, with the indices in the table of their left and right sentences."""
    rng = np.random.default_rng(0)
    if source.given:  # all left sentences come before all right ones
        left = np.arange(len(table) // 2)
        right = left + len(left)
        yield OWN_PAIRS if source.left == source.right else "Translations", left, right
        shuffled = rng.permutation(left)
        other = np.roll(shuffled, 1) + len(left)
    elif source.built_in:
        kinds = built_in(source.left)["kind"].to_numpy()
        first = len(table) - 2 * len(kinds)
        for kind in (PARAPHRASES, NEGATIONS, ROLES):
            left = first + np.flatnonzero(kinds == kind)
            yield kind, left, left + len(kinds)
        shuffled = rng.permutation(first)
        other = np.roll(shuffled, 1)
    else:
        latents = {NEAR_IN_MEANING: meaning, NEAR_IN_STYLE: style}
        for kind, vectors in latents.items():
            near = nearest(loaded, vectors)
            ends = np.unique(np.sort(np.stack([np.arange(len(near)), near], 1), axis=1), axis=0)  # each pair once
            yield kind, ends[:, 0], ends[:, 1]
        shuffled = rng.permutation(len(table))
        other = np.roll(shuffled, 1)
    texts = table["text"].to_numpy()
    different = texts[shuffled] != texts[other]
    yield RANDOM, shuffled[different], other[different]


def nearest(loaded: Loaded, vectors: np.ndarray) -> np.ndarray:
    """The index of the vector most similar to each, without itself: (N, D) -> (N,)."""
    places = []
    for start in range(0, len(vectors), AT_ONCE):
        similarities = loaded.encoder.similarity(vectors[start : start + AT_ONCE], vectors)
        similarities[np.arange(len(similarities)), start + np.arange(len(similarities))] = -np.inf
        places.append(similarities.argmax(1))
    return np.concatenate(places)


def across(loaded: Loaded, style: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compare the styles of sentences in two languages, which have no common axes, by their relations to translations.

    Each sentence's similarities to `ANCHORS` sentences of its own language, less the anchors' means, are correlated
    with those of the other sentence to the anchors' translations; a sentence is never its own anchor. The first half of
    `style` (N, D) holds sentences of one language, the second their translations. Returns (P,), -1 to 1.
    """
    half = len(style) // 2
    anchors = np.unique(np.linspace(0, half - 1, min(ANCHORS, half)).astype(int))
    profiles = []
    for part in (style[:half], style[half:]):
        profile = loaded.encoder.similarity(part, part[anchors]).astype(float)  # (N / 2, A)
        profile -= profile.mean(0)
        profile -= profile.mean(1, keepdims=True)
        profile[anchors, np.arange(len(anchors))] = 0
        profiles.append(profile / np.maximum(np.linalg.norm(profile, axis=1, keepdims=True), 1e-12))
    return (profiles[0][left] * profiles[1][right - half]).sum(1)


def ordered(pairs: pd.DataFrame) -> str:
    """Say how near in meaning the built-in pairs of each kind are, and whether paraphrases are the nearest."""
    medians = pairs.groupby("kind", sort=False)["semantic"].median()
    near = ", ".join(f"{kind.lower()} {medians[kind]:z.2f}" for kind in (PARAPHRASES, NEGATIONS, ROLES))
    nearer = [kind.lower() for kind in (NEGATIONS, ROLES) if medians[kind] >= medians[PARAPHRASES]]
    wrong = f"{' and '.join(nearer)} are nearer than paraphrases: this cosine is no measure of meaning there"
    return f"Median cosine of meaning: {near}. " + (f"Here {wrong}." if nearer else "Paraphrases are the nearest.")


def cuts(random: pd.DataFrame, percentiles: tuple[int, int]) -> tuple[float, float]:
    """The lowest similarities in meaning and in style above which a pair exceeds a given percentage of random pairs."""
    ends = (np.percentile(random[axis], at, method="inverted_cdf") for axis, at in zip(AXES, percentiles, strict=True))
    meaning, style = (float(np.nextafter(end, np.inf)) for end in ends)
    return meaning, style


def quadrants(table: pd.DataFrame, lines: tuple[float, float]) -> dict[str, pd.DataFrame]:
    """The pairs of each quadrant by its name, the most extreme first: those farthest from both lines, in standard
    deviations of all pairs."""
    meaning, style = (table[axis].to_numpy() >= line for axis, line in zip(AXES, lines, strict=True))
    apart = [(table[axis] - line) / max(table[axis].std(), 1e-12) for axis, line in zip(AXES, lines, strict=True)]
    extreme = np.minimum(*np.abs(np.array(apart)))  # the distance to the nearer line
    table = table.assign(extreme=extreme)
    return {
        name: table[(meaning == alike) & (style == similar)].sort_values("extreme", ascending=False, kind="stable")
        for (alike, similar), name in QUADRANTS.items()
    }


def ticks(random: pd.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
    """For each axis the similarities at the percentiles of random pairs that are marked, by their labels: those that
    pairs are on both sides of."""
    marked = [at for at in TICKS if min(at, 100 - at) * len(random) >= 100]
    meaning, style = ({f"{at:g}": float(np.percentile(random[axis], at)) for at in marked} for axis in AXES)
    return meaning, style


def plane(
    pairs: pd.DataFrame,
    colour: str,
    cuts: tuple[float, float],
    counts: Mapping[str, int],
    titles: Sequence[str],
    ticks: tuple[Mapping[str, float], Mapping[str, float]],
    compared: int,
    theme: str = "light",
) -> go.Figure:
    """Draw rows (kind, left, right, semantic, style, their ranks, `colour`) as points; `customdata` is the row's index.

    `colour` is the column "kind", another category, or a number. `cuts` are the similarity thresholds of both axes;
    `counts` are the pairs of the four quadrants by name: upper left, upper right, lower left, lower right. `titles`
    name the axes and the colour. `ticks` are similarities by their labels, for both axes. `compared` is the number of
    random pairs that ranks are of.
    """
    # overlapping points look darker
    size, opacity = (7, 0.75) if len(pairs) <= 2_000 else (5, 0.4) if len(pairs) <= 10_000 else (4, 0.15)
    figure = go.Figure()
    kind = go.Scatter if len(pairs) <= MAX_SVG else go.Scattergl
    hover = len(pairs) <= MAX_HOVER
    for name, places, marker in traces(pairs, colour, titles[2], theme):
        part = pairs.iloc[places]
        figure.add_trace(
            kind(
                x=part["semantic"].to_numpy(np.float32),
                y=part["style"].to_numpy(np.float32),
                customdata=places.tolist(),
                text=[hover_text(row, compared) for row in part.itertuples()] if hover else None,
                hovertemplate="%{text}<extra></extra>" if hover else "%{x:.2f}, %{y:.2f}",
                name=plain(name),
                showlegend="colorscale" not in marker,
                mode="markers",
                marker={"size": size, "opacity": opacity, "line": {"width": 0}, **marker},
                selected={"marker": {"opacity": 1, "size": size + 5}},
                unselected={"marker": {"opacity": opacity / 2}},
            )
        )
    figure.add_vline(cuts[0], line={"width": 1, "dash": "dash", "color": INK[theme]})
    figure.add_hline(cuts[1], line={"width": 1, "dash": "dash", "color": INK[theme]})
    for (x, y), (name, count) in zip(CORNERS, counts.items(), strict=True):
        side, lines = "left" if x < 0.5 else "right", name.replace(", ", ",<br>")  # on a phone the names would overlap
        figure.add_annotation(
            x=x, y=y, xref="paper", yref="paper", text=f"<b>{lines}</b><br>{count:,} pairs", showarrow=False,
            xanchor=side, yanchor="top" if y > 0.5 else "bottom", align=side, font_color=INK[theme],
        )  # fmt: skip
    finish(figure, "", HEIGHT, theme)
    grid = {"zeroline": False, "gridcolor": EDGE, "griddash": "dot"}
    across, up = ({"tickvals": list(axis.values()), "ticktext": list(axis)} for axis in ticks)
    figure.update_xaxes(title_text=titles[0], tickangle=0, **grid, **across)
    low, high = pairs["style"].min(), pairs["style"].max()
    room = 0.18 * max(high - low, 0.1)  # for the names of the quadrants
    figure.update_yaxes(title_text=titles[1], range=[float(low - room), float(high + room)], **grid, **up)
    return figure.update_layout(margin={"l": 8, "r": 8, "t": 8, "b": 84}, dragmode="pan")


def traces(pairs: pd.DataFrame, colour: str, title: str, theme: str) -> Iterator[tuple[str, np.ndarray, dict]]:
    """The name, rows and marker of each part with its own look; the last is drawn on top."""
    values = pairs[colour]
    if pd.api.types.is_numeric_dtype(values):
        missing = values.isna().to_numpy()
        if missing.any():
            yield NONE, np.flatnonzero(missing), {"color": REST}
        bar = {"title": {"text": title, "side": "right", "font_color": INK[theme]}, "thickness": 10, "len": 0.8,
               "tickfont_color": INK[theme]}  # fmt: skip
        shown = np.flatnonzero(~missing)
        amounts = values.to_numpy(float)[shown]
        scale = {"color": amounts, "colorscale": AMOUNTS[theme], "colorbar": bar}
        if len(amounts):  # a few extremes would make all others look alike
            scale |= {"cmin": float(amounts.min()), "cmax": float(np.quantile(amounts, CLIPPED))}
        yield title, shown, scale
        return
    grey = dict.fromkeys((RANDOM, NONE), REST)
    fixed = {NEAR_IN_MEANING: latent_colour(SEMANTIC, theme), NEAR_IN_STYLE: latent_colour(LANGUAGE, theme), **grey}
    names = values.fillna(NONE).astype(str)
    order = names.value_counts().index.tolist()
    for name in sorted(order, key=lambda name: name not in grey):  # grey points lie below
        colour_of = fixed.get(name) or cycled(PALETTE[theme], order.index(name))
        yield name, np.flatnonzero(names == name), {"color": colour_of}


def share(rank: float, compared: int) -> str:
    """The share `rank`, in percent, of the random pairs that a pair is compared with."""
    return f"all {compared:,} random pairs" if rank == 100 else f"{rank:.1f} % of {compared:,} random pairs"


def hover_text(row: Any, compared: int) -> str:
    """Both sentences; then each cosine, and the share of random pairs below it."""
    lines = [plain(text if len(text) <= SHORT else f"{text[:SHORT]}…") for text in (row.left, row.right)]
    lines.append(f"meaning {row.semantic:z.2f}: nearer than {share(row.semantic_rank, compared)}")
    lines.append(f"style {row.style:z.2f}: nearer than {share(row.style_rank, compared)}")
    return "<br>".join(lines)
