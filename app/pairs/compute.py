"""Compute similarities of sentence pairs in both latents, and find and draw pairs on which the latents disagree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.core import inventory, pairs, rows
from app.core.display import AMOUNTS, EDGE, INK, PALETTE, REST, cycled, finish, latent_colour, plain
from app.core.latents import spaces
from app.core.state import Loaded, content, embed
from bgt_core.contracts import LANGUAGE, SEMANTIC, SentenceEncoder
from bgt_core.data.properties import exchanger
from bgt_core.encoders import open_encoder
from bgt_core.evaluation.comparison import Result
from bgt_core.grammar import ATTRIBUTES, LANGS, NEGATION, TRIPLES, triples
from bgt_core.vectors.arrays import cosines, rounded

NEAR_IN_MEANING, NEAR_IN_STYLE, RANDOM = "Nearest in meaning", "Nearest in style", "Random pairs"  # kinds of pairs
KINDS = (NEAR_IN_MEANING, NEAR_IN_STYLE)
OWN_PAIRS, MINE, EARLIER, START = "Your pairs", "Your two sentences", "Typed before", "Pairs of the start page"
PARAPHRASES, NEGATIONS, ROLES = "Paraphrases", "Negations", "Roles swapped"  # kinds of built-in pairs
BUILT_IN = 200  # number of built-in sentences; each is paired with a paraphrase, and with a negation or swapped roles
PLAIN = 9  # maximum number of words of a built-in sentence in English
BACKGROUND = 20_000  # maximum number of random pairs for percentiles; `help/pairs.md` names it
NEAR = 95  # a near pair is more similar than this percentage of random pairs; `help/pairs.md` names it
TICKS = (1, 50, 90, 99, 99.9)  # percentiles marked on the axes
MAX_SEARCHED = 5_000  # maximum number of sentences whose neighbours are searched, because the time is quadratic
AT_ONCE = 1_000  # number of rows whose similarities are computed at once
BAGS = 100  # number of pairs whose bags of words (for tf-idf) are in memory at once
ANCHORS = 300  # number of translations through which two languages are compared; `help/pairs.md` names it
REWORDED = ("en", "fr", "es", "tr")  # languages in which rules can change a sentence's form without word lists
NEIGHBOURS = 300  # number of sentences among which a partner is searched for a typed sentence
AXES = ("semantic", "style")  # columns with the similarity of a pair in each latent
GOLD = f"{rows.OWN_COLUMN}gold"
QUADRANTS = {  # (near in meaning, near in style) -> name of this quadrant
    (False, True): "Near in style only", (True, True): "Near in both", (False, False): "Near in neither",
    (True, False): "Near in meaning only",
}  # fmt: skip
CORNERS = ((0.01, 0.99), (0.99, 0.99), (0.01, 0.01), (0.99, 0.01))  # (x, y) of the quadrants' names in the figure
LOOKS = {START: ("diamond-open", 13), EARLIER: ("star-open", 13), MINE: ("star", 18)}  # for `marked`: symbol, size
NONE = "without a value"  # legend entry of points without a value in the column for colours
EXTREME = 2  # number of pairs listed in each quadrant
MAX_SVG = 2_000  # maximum number of points drawn as SVG; more are drawn with WebGL
MAX_HOVER = 10_000  # maximum number of points with their own hover text
SHORT = 70  # maximum number of characters of a sentence in a hover text
HEIGHT = 520
CLIPPED = 0.98  # quantile of the colour values above which all points have the same colour


@dataclass(frozen=True)
class PairSource:
    """A way to make pairs from a text. Random pairs of the text's sentences are added for comparison."""

    left: str  # language of the left sentences
    right: str
    given: bool  # whether the text's rows are the pairs; otherwise, pairs are found by similarity
    built_in: bool = False  # whether the pairs come from the built-in grammar

    @property
    def title(self) -> str:
        left, right = map(rows.language_name, (self.left, self.right))
        if self.built_in:
            return f"Paraphrases, negations, roles: {left}"
        if not self.given:
            return f"Within {left}"
        return OWN_PAIRS if self.left == self.right else f"{left} and {right}"


def sources(text: inventory.ParallelText) -> list[PairSource]:
    """Return the ways to make pairs from a text; those within one language come first."""
    own = [PairSource(text.langs[0], text.langs[0], True)] if len(text.sides) > len(text.langs) else []
    own += [PairSource(lang, lang, False) for lang in text.langs]
    own += [PairSource(lang, lang, False, True) for lang in text.langs if lang in LANGS]
    return [*own, *(PairSource(left, right, True) for left, right in combinations(text.langs, 2))]


def compared(
    loaded: Loaded, text: inventory.ParallelText, count: int, source: PairSource
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Return a table of pairs from the first `count` rows of a text, and the sorted similarities of random pairs, by
    the names in `AXES`. Both are shared: do not change them. The table has the columns `kind`; `left` and `right`;
    `left_row` and `right_row`, the ids of these sentences; the similarities `semantic` and `style`; `semantic_rank` and
    `style_rank`, the percentage of random pairs that are less similar; and the user's columns if `source.given`."""
    table = inventory.sentences(text, count)
    made, random = _compared(loaded.digest, content(table["text"]), source, table, loaded)
    own = [column for column in table if column.startswith(rows.OWN_COLUMN)]
    if own and source.given:
        given = made[made["kind"] != RANDOM]
        made = made.join(table.set_index("id").loc[given["left_row"], own].set_axis(given.index))
    return made, random


@st.cache_data(max_entries=8, show_spinner="Comparing pairs")
def _compared(
    digest: str, content: str, source: PairSource, _table: pd.DataFrame, _loaded: Loaded
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    part = _table[_table["lang"].isin([source.left, source.right])]
    if not source.given:
        part = part.drop_duplicates("text").head(MAX_SEARCHED)
    size = len(part) // 2 if source.given else len(part)  # if the text has pairs, all left sentences come first
    if source.built_in:
        known = built_in(source.left)
        own = rows.table([*known["left"], *known["right"]], source.left, None).assign(id="")
        part = pd.concat([part, own], ignore_index=True)
    texts, ids = (part[column].to_numpy() for column in ("text", "id"))
    vectors = vectors_of(_loaded, part)

    left, right = np.divmod(np.random.default_rng(1).choice(size**2, min(size**2, BACKGROUND), replace=False), size)
    other = right + size * source.given
    unlike = (left != right) & (texts[left] != texts[other])
    left, right = left[unlike], other[unlike]

    random = similarities(_loaded, source, vectors, left, right)
    tables = []
    for kind, first, second in [*indices(_loaded, source, vectors, size), (RANDOM, left[:size], right[:size])]:
        values = similarities(_loaded, source, vectors, first, second)
        ranked = {f"{axis}_rank": pairs.ranks(values[axis], random[axis]) for axis in AXES}
        places = {"left": texts[first], "right": texts[second], "left_row": ids[first], "right_row": ids[second]}
        tables.append(pd.DataFrame({"kind": kind, **places, **values, **ranked}))
    return pd.concat(tables, ignore_index=True), {axis: np.sort(of) for axis, of in random.items()}


def vectors_of(loaded: Loaded, part: pd.DataFrame) -> list[np.ndarray]:
    """Embed rows in the semantic latent, and in the second latent if there is one: a list of arrays (N, D)."""
    return [spaces.vectors_of(loaded, part, latent) for latent in (SEMANTIC, loaded.second_latent) if latent]


def similarities(
    loaded: Loaded, source: PairSource, vectors: Sequence[np.ndarray], left: np.ndarray, right: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the rounded similarities (P,) of rows `left` (indices) with rows `right`, by the names in `AXES`."""
    values = dict.fromkeys(AXES, np.full(len(left), np.nan))
    for axis, of in zip(AXES, vectors, strict=False):
        translated = axis != SEMANTIC and source.left != source.right
        pairwise = loaded.similarity_pairwise
        values[axis] = rounded(across(loaded, of, left, right) if translated else pairwise(of[left], of[right]))
    return values


@cache
def built_in(lang: str) -> pd.DataFrame:
    """Return pairs (`kind`, `left`, `right`) of the built-in grammar, with words that no shipped model has seen. They
    are plain: short, without exchanged adjectives, and without "this"."""
    pairs = []
    for triple in triples(TRIPLES, held_out=True):
        sentence, paraphrase, altered = triple.texts[lang]
        words = triple.texts["en"][0].lower().split()
        if triple.kind != ATTRIBUTES and "this" not in words and len(words) <= PLAIN:
            pairs.append((PARAPHRASES, sentence, paraphrase))
            pairs.append((NEGATIONS if triple.kind == NEGATION else ROLES, sentence, altered))
    return pd.DataFrame(pairs[: 2 * BUILT_IN], columns=["kind", "left", "right"])


def indices(
    loaded: Loaded, source: PairSource, vectors: Sequence[np.ndarray], size: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield (kind, left, right) for each kind of pairs, with the indices of their sentences; built-in kinds last."""
    if source.given:
        yield OWN_PAIRS if source.left == source.right else "Translations", np.arange(size), np.arange(size) + size
    elif source.built_in:
        kinds = built_in(source.left)["kind"].to_numpy()
        for kind in (PARAPHRASES, NEGATIONS, ROLES):
            left = size + np.flatnonzero(kinds == kind)
            yield kind, left, left + len(kinds)
    else:
        for kind, of in zip(KINDS, vectors, strict=False):
            near = nearest(loaded, of)
            ends = np.unique(np.sort(np.stack([np.arange(len(near)), near], 1), axis=1), axis=0)  # drops repeated pairs
            yield kind, ends[:, 0], ends[:, 1]


def nearest(loaded: Loaded, vectors: np.ndarray) -> np.ndarray:
    """For each vector (N, D), return the index (N,) of the most similar other vector."""
    places = []
    for start in range(0, len(vectors), AT_ONCE):
        similarities = loaded.similarity(vectors[start : start + AT_ONCE], vectors)
        similarities[np.arange(len(similarities)), start + np.arange(len(similarities))] = -np.inf
        places.append(similarities.argmax(1))
    return np.concatenate(places)


def across(loaded: Loaded, style: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compare the styles of sentences in two languages through translations, because the latents have no common axes.

    A sentence's profile contains its similarities to up to `ANCHORS` other sentences in its language, the anchors,
    minus the mean similarity to each anchor. The anchors of the other language are translations of these anchors. The
    result (P,) is the correlation of the profiles of both sentences. The second half of `style` (N, D) has the
    translations of the first.
    """
    half = len(style) // 2
    anchors = np.unique(np.linspace(0, half - 1, min(ANCHORS, half)).astype(int))
    profiles = []
    for part in (style[:half], style[half:]):
        profile = loaded.similarity(part, part[anchors]).astype(float)  # (N / 2, A)
        profile -= profile.mean(0)
        profile -= profile.mean(1, keepdims=True)
        profile[anchors, np.arange(len(anchors))] = 0
        profiles.append(profile / np.maximum(np.linalg.norm(profile, axis=1, keepdims=True), 1e-12))
    return (profiles[0][left] * profiles[1][right - half]).sum(1)


@st.cache_resource(max_entries=1)
def bag_of_words() -> SentenceEncoder:
    """Return the tf-idf baseline: an encoder of word counts in which rare words have more weight."""
    return open_encoder("baseline:tfidf")


def alike(loaded: Loaded, pair: pairs.Pair) -> dict[str, float]:
    """Return how similar two sentences are in each comparable latent, by tf-idf, and by their share of common words."""
    bags = (bag_of_words().embed([text], lang=lang) for text, lang in (pair[:2], pair[2:]))
    by_latent = {rows.latent_title(latent): of for latent, of in pairs.cosines_of(loaded, [pair])[0].items()}
    overlap = rows.overlap(pair.text, pair.other)
    return by_latent | {"Words (tf-idf)": float(cosines(*bags)[0]), "Words in common": overlap}


def suggested(loaded: Loaded, text: str, lang: str, other_lang: str) -> str:
    """Suggest a sentence to compare with a text: the text in another form, such as contracted, if rules can change it;
    else the sentence in `other_lang` nearest in meaning, or the first one for an empty text; "" if there is none."""
    if forms := exchanger(lang, ())(text) if lang == other_lang in REWORDED and not loaded.sentences else []:
        return forms[0]
    table, known = loaded.listed(other_lang), [each for each in loaded.texts().values() if other_lang in each.langs]
    if table.empty and known:
        table = inventory.sentences(known[0].alone(other_lang), NEIGHBOURS)
    texts = [each for each in table["text"] if each != text]
    if not (text and texts):
        return "".join(texts[:1])
    similarities = loaded.similarity(embed(loaded, [text], lang, SEMANTIC), embed(loaded, texts, other_lang, SEMANTIC))
    return texts[int(similarities[0].argmax())]


def marked(
    loaded: Loaded,
    mine: pairs.Pair | None,
    earlier: Sequence[pairs.Pair],
    source: PairSource,
    table: pd.DataFrame,
    random: dict[str, np.ndarray],
) -> pd.DataFrame:
    """Return the pairs of the start page and the user's pairs, if they are in the languages of `source`: a table like
    that of `compared`, with the column `label`. `table` has the rows of the text."""
    typed = (pair for pair in earlier if loaded.embeds(pair.text, pair.other))
    known = {pair: (START, label) for pair, label, _ in pairs.of_start_page(loaded)}
    known |= dict.fromkeys(typed, (EARLIER, ""))
    known |= {mine: (MINE, "yours")} if mine else {}
    turned = {pair: pair if pair.lang == source.left else pairs.Pair(*pair[2:], *pair[:2]) for pair in known}
    drawn = {of: known[pair] for pair, of in turned.items() if of[1::2] == (source.left, source.right)}
    lines = [(*names, *pair[::2]) for pair, names in drawn.items()]
    stars = pd.DataFrame(lines, columns=["kind", "label", "left", "right"])
    parts = []  # these include the text's rows, because `across` needs them to compare styles in two languages
    for lang, side in ((source.left, "left"), (source.right, "right")):
        parts += [table[table["lang"] == lang]] * (source.left != source.right)
        parts.append(rows.table(stars[side].tolist(), lang, None))
    part = pd.concat(parts, ignore_index=True)
    left = len(part) // 2 - len(stars) + np.arange(len(stars))
    values = dict.fromkeys(AXES, np.empty(0))
    if len(stars):
        values = similarities(loaded, source, vectors_of(loaded, part), left, left + len(part) // 2)
    return stars.assign(**values, **{f"{axis}_rank": pairs.ranks(values[axis], random[axis]) for axis in AXES})


@st.cache_data(max_entries=16, show_spinner="Resampling pairs")
def judged(given: pd.DataFrame, second_latent: str, langs: tuple[str, str]) -> Result:
    """Compare the latents and tf-idf by Pearson's r x 100 with human scores. Raises DataError like `correlations`."""
    by_words = np.empty(len(given))
    for start in range(0, len(given), BAGS):
        part = given.iloc[start : start + BAGS]
        left, right = (
            bag_of_words().embed(part[side].tolist(), lang=lang)
            for side, lang in zip(("left", "right"), langs, strict=True)
        )
        by_words[start : start + BAGS] = cosines(left, right)
    systems = {rows.latent_title(SEMANTIC): given["semantic"].to_numpy(float)}
    if second_latent and langs[0] == langs[1]:
        systems[rows.latent_title(second_latent)] = given["style"].to_numpy(float)
    return pairs.correlations({**systems, "Words (tf-idf)": by_words}, given[GOLD].to_numpy(float))


def misjudged(given: pd.DataFrame) -> pd.Series:
    """Return each pair's cosine in the semantic latent minus its human score, after standardising both."""
    semantic, gold = ((given[name] - given[name].mean()) / max(given[name].std(), 1e-12) for name in ("semantic", GOLD))
    return semantic - gold


def ordered(pairs: pd.DataFrame) -> str:
    """Describe how similar each kind of built-in pairs is in meaning, and whether paraphrases are most similar."""
    medians = pairs.groupby("kind", sort=False)["semantic"].median()
    near = ", ".join(f"{kind.lower()} {medians[kind]:z.2f}" for kind in (PARAPHRASES, NEGATIONS, ROLES))
    nearer = [kind.lower() for kind in (NEGATIONS, ROLES) if medians[kind] >= medians[PARAPHRASES]]
    wrong = f"{' and '.join(nearer)} are as near as paraphrases, or nearer: here, the cosine does not measure meaning"
    return f"Median cosine of meaning: {near}. " + (
        f"{wrong.capitalize()}." if nearer else "Paraphrases are the nearest."
    )


@dataclass(frozen=True, eq=False)
class Plane:
    """The pairs in the figure and how they are drawn: x is the similarity in meaning, y in style."""

    pairs: pd.DataFrame  # the table that `compared` returned
    random: dict[str, np.ndarray]  # name in `AXES` -> similarities of random pairs
    stars: pd.DataFrame  # pairs with their own symbols, which `marked` returned
    colour: str  # the column for colours: categories or numbers
    colour_title: str
    axes: tuple[str, str]  # titles of the axes

    @cached_property
    def lines(self) -> tuple[float, float]:
        """The lowest similarity in meaning, and the lowest similarity in style, of a pair that counts as near."""
        ends = (np.percentile(self.random[axis], NEAR, method="inverted_cdf") for axis in AXES)
        meaning, style = (float(np.nextafter(end, np.inf)) for end in ends)
        return meaning, style

    @cached_property
    def quadrants(self) -> dict[str, pd.DataFrame]:
        """The pairs of each quadrant, by the quadrant's name. They are sorted by their distance from the nearer of the
        two `lines`, the largest distance first, in standard deviations over all pairs."""
        meaning, style = (self.pairs[axis].to_numpy() - line for axis, line in zip(AXES, self.lines, strict=True))
        spread = [max(self.pairs[axis].std(), 1e-12) for axis in AXES]
        table = self.pairs.assign(extreme=np.minimum(np.abs(meaning) / spread[0], np.abs(style) / spread[1]))
        table = table.assign(meant=meaning >= 0, styled=style >= 0)
        ranked = table.sort_values("extreme", ascending=False, kind="stable")
        parts = {near: part.drop(columns=["meant", "styled"]) for near, part in ranked.groupby(["meant", "styled"])}
        return {name: parts.get(near, ranked.head(0)) for near, name in QUADRANTS.items()}

    @property
    def extremes(self) -> pd.DataFrame:
        """The pairs of each quadrant that are farthest from the lines; the column `label` has the quadrant's name."""
        parts = {name: part.drop_duplicates(["left", "right"]).head(EXTREME) for name, part in self.quadrants.items()}
        return pd.concat([part.assign(label=name) for name, part in parts.items()])


def draw(plane: Plane, theme: str = "light") -> go.Figure:
    """Draw the pairs. A point's `customdata` is the index of its row."""
    pairs, compared = plane.pairs, len(plane.random["semantic"])
    # transparent, so that overlapping points look darker
    size, opacity = (7, 0.75) if len(pairs) <= 2_000 else (5, 0.4) if len(pairs) <= 10_000 else (4, 0.15)
    figure = go.Figure()
    kind = go.Scatter if len(pairs) <= MAX_SVG else go.Scattergl
    hover = len(pairs) <= MAX_HOVER
    for name, places, marker in traces(pairs, plane.colour, plane.colour_title, theme):
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
    # labels of two pairs at about the same place stand above and below it
    beside = plane.stars["style"].rank(method="first").mod(2).map({0: "top left", 1: "bottom left"})
    for name, part in plane.stars.groupby("kind", sort=False):
        symbol, size = LOOKS[name]
        figure.add_trace(
            go.Scatter(
                x=part["semantic"].tolist(), y=part["style"].tolist(), name=name, mode="markers+text",
                text=part["label"].tolist(), textposition=beside[part.index].tolist(), textfont_color=INK[theme],
                hovertext=[hover_text(row, compared) for row in part.itertuples()],
                hovertemplate="%{hovertext}<extra></extra>",
                marker={"symbol": symbol, "size": size, "color": INK[theme], "line": {"width": 2}},
            )
        )  # fmt: skip
    line = {"width": 1, "dash": "dash", "color": INK[theme]}
    figure.add_vline(plane.lines[0], line=line)
    figure.add_hline(plane.lines[1], line=line)
    for (x, y), (name, part) in zip(CORNERS, plane.quadrants.items(), strict=True):
        side = "left" if x < 0.5 else "right"
        figure.add_annotation(
            x=x, y=y, xref="paper", yref="paper", showarrow=False, xanchor=side, align=side, font_color=INK[theme],
            yanchor="top" if y > 0.5 else "bottom", text=f"<b>{name}</b><br>{len(part):,} pair{'s' * (len(part) != 1)}",
        )  # fmt: skip
    finish(figure, "", HEIGHT, theme)
    grid = {"zeroline": False, "gridcolor": EDGE, "griddash": "dot"}
    # a tick needs at least 100 random pairs below it and 100 above it
    at = [each for each in TICKS if min(each, 100 - each) * compared >= 100]
    styles = pd.concat([pairs["style"], plane.stars["style"]])
    room = 0.18 * max(styles.max() - styles.min(), 0.1)  # space for the names of the quadrants
    for axis, update, apart in zip(AXES, (figure.update_xaxes, figure.update_yaxes), (0, room / 3), strict=True):
        ticks = {each: float(np.percentile(plane.random[axis], each)) for each in at}
        clear = [one for one in at if all(ticks[more] - ticks[one] > apart for more in at if more > one)]
        update(tickvals=[ticks[one] for one in clear], ticktext=list(map("{:g}".format, clear)), **grid)
    figure.update_xaxes(title_text=plane.axes[0], tickangle=0)
    figure.update_yaxes(title_text=plane.axes[1], range=[float(styles.min() - room), float(styles.max() + room)])
    return figure.update_layout(margin={"l": 8, "r": 8, "t": 8, "b": 84}, dragmode="pan")


def traces(pairs: pd.DataFrame, colour: str, title: str, theme: str) -> Iterator[tuple[str, np.ndarray, dict]]:
    """Yield the name, row indices and plotly marker of each group of pairs of one colour; the last is drawn on top."""
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
        if len(amounts):  # clip the scale; otherwise, a few extreme values would make all others look alike
            scale |= {"cmin": float(amounts.min()), "cmax": float(np.quantile(amounts, CLIPPED))}
        yield title, shown, scale
        return
    grey = dict.fromkeys((RANDOM, NONE), REST)
    fixed = {NEAR_IN_MEANING: latent_colour(SEMANTIC, theme), NEAR_IN_STYLE: latent_colour(LANGUAGE, theme), **grey}
    names = values.fillna(NONE).astype(str)
    order = names.value_counts().index.tolist()
    for name in sorted(order, key=lambda name: name not in grey):  # draw grey points first, below the others
        colour_of = fixed.get(name) or cycled(PALETTE[theme], order.index(name))
        yield name, np.flatnonzero(names == name), {"color": colour_of}


def share(rank: float, compared: int) -> str:
    """Describe which percentage `rank` of the `compared` random pairs is less similar."""
    return f"all {compared:,} random pairs" if rank == 100 else f"{rank:.1f} % of {compared:,} random pairs"


def hover_text(row: Any, compared: int) -> str:
    """Return the sentences of a pair, and each cosine with the percentage of random pairs below it."""
    lines = [plain(text if len(text) <= SHORT else f"{text[:SHORT]}…") for text in (row.left, row.right)]
    lines.append(f"meaning {row.semantic:z.2f}: nearer than {share(row.semantic_rank, compared)}")
    lines.append(f"style {row.style:z.2f}: nearer than {share(row.style_rank, compared)}")
    return "<br>".join(lines)
