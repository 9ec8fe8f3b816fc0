"""Draw the maps of latents and describe them; compare the selected sentences with the others; interpolate latents."""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from plotly.colors import sample_colorscale

from app.core import display, rows
from app.core.latents import chart, geometry, spaces, topics
from app.core.state import Loaded, embed, write
from bgt_core.contracts import SEMANTIC
from bgt_core.evaluation.bootstrap import wilson

JS = Path(__file__).parent / "js"
VIEW = ("points", "turn", "paint", "card", "legend", "bars", "topics", "onemap", "print", "view")  # JavaScript files
MAP_HEIGHT = 240  # height in pixels of each language's map
SHADES = 24  # number of colours in a colour scale
KEYWORDS = 8  # maximum number of keywords of a selection
NUMBERS = {"UMAP": "neighbours", "t-SNE": "perplexity"}  # method -> the name of its parameter
MARK = 0.015  # width of a point as a fraction of the map's width


def figure_of(fitted: spaces.Spaces, second: str, colour: str, langs: Sequence[str]) -> partial:
    """Return a function that draws all maps as one plotly figure."""
    places = {SEMANTIC: fitted.semantic, **fitted.second}
    tables = {title_of(key, second, fitted): space.rows for key, space in places.items()}
    return partial(chart.latent_map, tables, colour, langs, height=MAP_HEIGHT * max(2, len(fitted.second)))


def title_of(key: str, second: str, fitted: spaces.Spaces) -> str:
    """Return the title of a map: its latent, and the symbols and names of its languages."""
    langs = [key] if key != SEMANTIC else [*fitted.second]
    name_of = rows.language_name if len(fitted.second) <= 3 else str  # with more languages, full names would not fit
    signs = (display.lang_title(lang, name_of(lang)) for lang in langs)
    return "  ".join([rows.latent_title(SEMANTIC if key == SEMANTIC else second), *signs])


def drawn(fitted: spaces.Spaces, second: str, paths: Mapping[str, np.ndarray], of: str = "") -> list[dict[str, Any]]:
    """Return each map's name, title and panels with the coordinates of its rows. `of` is empty for the first model, and
    the second model's title for the second, whose maps then have other names."""
    place = pd.Index(fitted.semantic.rows["id"])

    def panel(latent: str, key: str, space: spaces.Space) -> dict[str, Any]:
        here = place.get_indexer(space.rows["id"]).astype(np.int32)
        found, _, finest = spaces.topics_of(space, latent)
        return {
            "title": title_of(key, second, fitted).partition("  ")[2],
            "rows": encoded(here),
            "topics": [topic | {"middle": int(here[topic["middle"]])} for topic in found],
            "finest": encoded(finest),  # the index in "topics" of each row's finer topic
            **{side: encoded(space.rows[side].to_numpy(np.float32)) for side in spaces.sides(space.rows)},
            "path": paths[key].tolist() if key in paths else [],
        }

    maps = {SEMANTIC: {SEMANTIC: fitted.semantic}} | ({second: fitted.second} if fitted.second else {})
    return [
        {
            "name": f"{name} of {of}" if of else name,
            "title": rows.latent_title(name) + f", {of}" * bool(of),
            "panels": [panel(name, key, space) for key, space in spaces_of.items()],
        }
        for name, spaces_of in maps.items()
    ]


def view(
    fitted: spaces.Spaces, second: str, colour: str, langs: Sequence[str], paths: Mapping[str, np.ndarray],
    lines: Sequence[str], theme: str = "light",
) -> dict[str, Any]:  # fmt: skip
    """Return the data with which the browser draws the maps: rows, their coordinates on each map, and bar charts."""
    table = fitted.semantic.rows
    return {
        "maps": drawn(fitted, second, paths),
        "rows": {name: table[name].tolist() for name in ("id", "lang", "text", "translation")}
        | {"pair": table["pair"].where(~table["own"], -1).tolist()},
        "columns": [column(table, name, langs, theme) for name in rows.charted(table, colour)],
        "colour": colour,
        "lines": lines,
        "languages": {lang: rows.language_name(lang) for lang in langs},
        "shapes": {lang: display.lang_symbol(lang) for lang in langs},
        "key": fitted.semantic.content,  # hash of the sentences; selections with another hash are ignored
    }


def standalone(data: Callable[[], Mapping[str, Any]], title: str, arrangement: Mapping[str, str]) -> str:
    """Return the maps and their table as one HTML file, which works without the app and without internet access."""
    script = "\n".join((JS / f"{name}.js").read_text("utf-8") for name in (*VIEW, "table", "saved"))
    sent = json.dumps({**data(), **arrangement}).replace("<", "\\u003c")  # so that no text can end the <script> element
    style, start = (JS / "maps.css").read_text("utf-8"), f"show(document.getElementById('maps'), {sent});"
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    body = f'<body class="bgt-saved"><div id="maps"></div><script type="module">{script}\n{start}</script></html>'
    return f"{head}<title>{display.plain(title)}</title><style>{style}</style>{body}"


def column(table: pd.DataFrame, name: str, langs: Sequence[str], theme: str) -> dict[str, Any]:
    """Return a column for bar charts and colours: the category of each row, or numbers with a colour scale."""
    values, about = table[name], {"name": name, "title": rows.colour_title(name)}
    if pd.api.types.is_numeric_dtype(values):
        scale = chart.colour_scale(values, name, theme)
        palette, light = (sample_colorscale(display.AMOUNTS[each], SHADES) for each in (theme, "light"))
        ends = {"low": scale["cmin"], "high": scale["cmax"], "ends": scale["colorbar"]["ticktext"], "print": light}
        return about | ends | {"values": encoded(values.to_numpy(np.float32)), "palette": palette}
    groups, on_paper = (chart.categories(values, name, langs, each) for each in (theme, "light"))
    codes = pd.Index([value for value, *_ in groups]).get_indexer(values.astype(object))
    both = zip(groups, on_paper, strict=True)
    shown = [{"label": label, "colour": shade, "print": ink} for (_, label, shade), (*_, ink) in both]
    return about | {"categories": shown, "codes": encoded(codes.astype(np.uint8))}


def encoded(values: np.ndarray) -> dict[str, str]:
    """Encode an array (N,) of numbers as plotly does: the name of its dtype, and its bytes in base64."""
    return {"dtype": values.dtype.str[1:], "bdata": base64.b64encode(values.tobytes()).decode()}


def among(table: pd.DataFrame, ids: frozenset[str]) -> np.ndarray:
    """Return a mask (N,) of the rows with these ids. With Arrow strings, pandas' `isin` takes ten times as long."""
    return np.fromiter(map(ids.__contains__, table["id"].tolist()), bool, len(table))


def compared(table: pd.DataFrame, chosen: np.ndarray) -> pd.DataFrame:
    """Compare the selected rows, a mask (N,), with all other rows: one measure per row, as texts with 95% intervals."""
    count = int(chosen.sum())
    lines = [("Sentences", f"{count:,}", f"{len(chosen) - count:,}", "")]
    lengths = table["words"].to_numpy()
    lines.append(("Words in a sentence", *mean_difference(lengths[chosen], lengths[~chosen])))
    marks = dict.fromkeys((*rows.MARKS.values(), rows.OTHER, rows.NONE))
    shares = {f"Closing mark: {mark}": table["mark"] == mark for mark in marks}
    for name in filter(table.__contains__, rows.STYLES):
        values = (value for value in table[name].unique() if value != rows.NONE)
        shares |= {f"{rows.STYLES[name]}: {value}": table[name] == value for value in values}
    langs = table["lang"].unique().tolist()
    shares |= {rows.language_name(lang): table["lang"] == lang for lang in langs if len(langs) > 1}
    by_share = [(title, *share_difference(has.to_numpy(), chosen)) for title, has in shares.items()]
    lines += [line for line in by_share if {*line[1:3]} - {"0%", ""}]
    # compare with sentences in the same languages only, or words of other languages would become keywords
    comparable = table["lang"].isin(table["lang"][chosen].unique()).to_numpy()
    here, elsewhere = table["text"][chosen].tolist(), table["text"][comparable & ~chosen].tolist()
    lines.append(("Words that stand out", keywords(here, elsewhere), keywords(elsewhere, here), ""))
    return pd.DataFrame(lines, columns=["Measure", "Selected", "Rest", "Difference"]).replace("nan", "")


def keywords(here: Sequence[str], elsewhere: Sequence[str]) -> str:
    """Return the words that distinguish the sentences `here` from those `elsewhere`. Large texts are sampled."""
    sides = [texts[:: 1 + len(texts) // topics.COUNTED] for texts in (here, elsewhere)]
    documents = [{*topics.WORD.findall(text.lower())} for side in sides for text in side]
    groups = np.repeat([0, 1], [len(side) for side in sides])
    return ", ".join(topics.distinguishing(documents, groups, np.array([-1, -1]))[0][:KEYWORDS])


def mean_difference(left: np.ndarray, right: np.ndarray) -> tuple[str, str, str]:
    """Return both means, and their difference with a 95% confidence interval (Welch's t-test), as texts."""
    from scipy.stats import ttest_ind

    first, second = (f"{part.mean():.1f}" if len(part) else "" for part in (left, right))
    if min(len(left), len(right)) < 2:
        return first, second, ""
    difference = low = high = left.mean() - right.mean()
    if left.var() or right.var():
        low, high = ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
    return first, second, f"{difference:+z.1f} [{low:z.1f}, {high:z.1f}]"


def share_difference(has: np.ndarray, chosen: np.ndarray) -> tuple[str, str, str]:
    """Return the share of selected rows, and of other rows, that are in the mask `has`, and the difference of these
    shares with its 95% confidence interval (Newcombe 1998, method 10), as texts."""
    counts = [(int(has[side].sum()), int(side.sum())) for side in (chosen, ~chosen)]
    first, second = (f"{right / count:.0%}" if count else "" for right, count in counts)
    if not (first and second):
        return first, second, ""
    p, q = (right / count for right, count in counts)
    (p_low, p_high), (q_low, q_high) = (wilson(right, count) for right, count in counts)
    low = p - q - math.hypot(p - p_low, q_high - q)
    high = p - q + math.hypot(p_high - p, q - q_low)
    return first, second, f"{100 * (p - q):+z.0f} [{100 * low:z.0f}, {100 * high:z.0f}]"


def with_places(fitted: spaces.Spaces, second_latent: str, method: geometry.Method, given: str) -> pd.DataFrame:
    """Return all rows by id, with their coordinates on the map of each latent ("x_semantic", for example), their
    topics, some of which have names `given` by the user, and how the maps were made, with the coordinates' unit."""
    found, coarse, finest = spaces.topics_of(fitted.semantic, SEMANTIC)
    own = dict(part.partition(":")[::2] for part in given.split("~"))
    names = np.array([own.get(f"{SEMANTIC}.{topic['key']}", topic["name"]) for topic in found], object)
    table = fitted.semantic.rows.assign(map=described(method), topic=names[coarse], finer_topic=names[finest])
    table = table.set_index("id", drop=False)
    sides = spaces.sides(table)
    table = table.rename(columns={side: f"{side}_{SEMANTIC}" for side in sides})
    places = [space.rows.set_index("id")[sides].add_suffix(f"_{second_latent}") for space in fitted.second.values()]
    return table.join(pd.concat(places)) if places else table


def described(method: geometry.Method) -> str:
    """Name a method of projection with its settings, and the unit of the coordinates, for a cell of a table."""
    if method.name == spaces.CHOSEN_AXES:
        units = dict.fromkeys(spaces.FACTORS, "standard deviations") | {spaces.FREE: "first sentence 0, second 1"}
        axes = zip("xyz", method.axes, strict=False)
        return "; ".join(f"{side}: {axis} ({units.get(axis, 'vector lengths')})" for side, axis in axes)
    if method.name == "PCA":
        return "PCA; unit: " + ("vector lengths" if method.metric == geometry.COSINE else "that of the vectors")
    return f"{method.name}, {NUMBERS[method.name]} {method.neighbours}, seed {method.seed}, {method.metric}; no unit"


def vectors_of(fitted: spaces.Spaces, second_latent: str, chosen: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the vectors (N, D) of the selected rows in each latent, or of all rows if none is selected."""
    ids = list(chosen) or fitted.semantic.rows["id"].tolist()
    vectors = {}
    for latent, held in {SEMANTIC: [fitted.semantic], second_latent: list(fitted.second.values())}.items():
        if held:
            place = pd.Index(np.concatenate([space.rows["id"] for space in held])).get_indexer(ids)
            vectors[latent] = np.concatenate([space.vectors for space in held])[place]
    return vectors


def caption(method: geometry.Method, fitted: spaces.Spaces, second_latent: str) -> str:
    """Describe how the maps were computed, and how trustworthy they are."""
    alone = len(fitted.second) == 1
    space_of = {SEMANTIC: fitted.semantic}
    space_of |= {second_latent if alone else rows.language_name(lang): s for lang, s in fitted.second.items()}
    projections = {name: space.projection for name, space in space_of.items()}
    number = NUMBERS.get(method.name)
    name = method.name + " in three dimensions" * (method.dims == 3)
    how = f"{name}, {number} {method.neighbours}, seed {method.seed}," if number else f"{name} (no seed needed)"
    if read := {name: each.read for name, each in projections.items() if each.read}:
        readings = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in read.items())
        probes = ", read by linear probes" if {*method.axes} & {*spaces.FACTORS} else ""
        way = zip(method.axes, ("to the right", "upwards", "towards you"), strict=False)
        how = f"{', '.join(map(' '.join, way))}{probes} ({readings}),"
    elif not number:
        how += f" shows {enumerated({name: p.variance for name, p in projections.items()}, '.0%')} of the variance"
    same_place, pairs = coincide(fitted.semantic.rows)
    lengths = " at unit length" if method.metric == geometry.COSINE else ", their lengths kept"
    same = [name for name, each in projections.items() if each.variance == 0]
    few = [name for name, each in projections.items() if number and each.variance]
    lower = {name: p.neighbours for name, p in projections.items() if p.neighbours and p.neighbours < method.neighbours}
    trust = enumerated({name: spaces.trust(space, method) for name, space in space_of.items()}, ".2f")
    each = f"The {second_latent} latent" if alone else f"Each {second_latent} latent"
    parts = {
        f"{how} of {len(fitted.semantic.rows):,} vectors{lengths}.": True,
        f"The vectors of {' and '.join(same)} are all the same: no map can tell the sentences apart.": same,
        f"{method.name} needs {geometry.LEAST} vectors that it can tell apart; drawn by PCA: {', '.join(few)}.": few,
        f"{str(number).capitalize()} used, because there are few vectors: {enumerated(lower, '.3g')}.": lower,
        f"Trustworthiness of 15 neighbours: {trust}.": trust,
        f"{same_place:,} of {pairs:,} translations coincide. There, the first language has the larger mark.": pairs,
        f"{each} has its own map: compare sentences within a map, not between maps.": fitted.second,
        "Distances between distant groups are not meaningful.": True,
    }
    return " ".join(text for text, needed in parts.items() if needed)


def coincide(table: pd.DataFrame) -> tuple[int, int]:
    """Count the translations whose points are at most one point's width apart on the map, and all translations."""
    sides = spaces.sides(table)
    places = table.loc[~table["own"].to_numpy()].groupby("pair")[sides]
    apart = (places.max() - places.min()).max(axis=1)[places.size() > 1]
    width = MARK * np.ptp(table[sides].to_numpy(), axis=0).max()
    return int((apart <= width).sum()), len(apart)


def enumerated(values: Mapping[str, float | None], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items() if value is not None)


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Sentences generated between two sentences, and the interpolated latents, (steps, D) each."""

    model: str  # `digest` of the model that generated the sentences
    lang: str
    measured: str  # the latent whose cosines to both ends are shown
    table: pd.DataFrame
    latents: Mapping[str, np.ndarray]


def paths(walk: Interpolation | None, fitted: spaces.Spaces) -> dict[str, np.ndarray]:
    """Return the coordinates (steps, 2) of an interpolation by the map's name: "semantic", or a language."""
    maps: dict[str, np.ndarray] = {}
    if walk is None:
        return maps
    for latent, vectors in walk.latents.items():
        name, space = (SEMANTIC, fitted.semantic) if latent == SEMANTIC else (walk.lang, fitted.second[walk.lang])
        maps[name] = space.projection.project(vectors)
    return maps


def interpolate(
    loaded: Loaded, start: str, end: str, lang: str, moved: Sequence[str], steps: int
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Generate a sentence at each step of the straight line between two sentences' latents. Also return the `moved`
    latents, {latent: (steps, D)}; the other latents stay as in the sentence `start`."""
    fraction = np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    latents = {}
    for latent in (SEMANTIC, loaded.second_latent):
        first, last = embed(loaded, [start, end], lang, latent)
        latents[latent] = first + fraction * ((last if latent in moved else first) - first)
    texts = write(loaded, latents[SEMANTIC], latents[loaded.second_latent], lang)
    vectors = embed(loaded, [start, end, *texts], lang, moved[0])
    similarities = loaded.similarity(vectors[2:], vectors[:2])  # (steps, 2)
    table = pd.DataFrame(
        {"step": range(1, steps + 1), "text": texts, "to_start": similarities[:, 0], "to_end": similarities[:, 1]}
    )
    return table, {latent: latents[latent] for latent in moved}
