"""The app's maps and its plane of pairs as notebook widgets, whose selected points are available as a data frame."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import pandas as pd
import plotly.graph_objects as go
import traitlets
from streamlit.logger import set_log_level

from app.core import rows
from app.core.address import JS
from app.core.inventory import ParallelText
from app.core.latents import geometry, spaces
from app.core.state import Loaded, content
from app.maps import compute as of_maps
from app.maps.selection import unpacked
from app.pairs import compute as of_pairs
from bgt_core.contracts import SentenceEncoder
from bgt_core.errors import UsageError

NEIGHBOURS = {"t-SNE": 30, "UMAP": 15, "PCA": 15}  # number of neighbours of each method, as in the app


class Maps(anywidget.AnyWidget):
    """A widget with linked maps of sentence latents. Clicking or encircling points changes the property `selection`."""

    _esm = "\n".join((of_maps.JS / f"{name}.js").read_text("utf-8") for name in (*of_maps.VIEW, "notebook"))
    _css = of_maps.JS / "maps.css"
    data, picked = (traitlets.Dict().tag(sync=True) for _ in range(2))

    def __init__(self, table: pd.DataFrame, data: Mapping[str, Any]):
        super().__init__(data=dict(data))
        self.table = table

    @property
    def selection(self) -> pd.DataFrame:
        """The selected rows: language, sentence, translation, word count, closing punctuation and your columns."""
        own = {name: name.removeprefix(rows.OWN_COLUMN) for name in self.table if name.startswith(rows.OWN_COLUMN)}
        chosen = self.table[unpacked(self.picked.get("rows", ""), len(self.table))]
        return chosen[["lang", "text", "translation", "words", "mark", *own]].rename(columns=own)


def maps(
    encoder: SentenceEncoder,
    sentences: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[Any]] = {},
    *,
    method: str = "PCA",
    colour: str = "mark",
) -> Maps:
    """Map both latents of sentences, as the page "Maps" does.

    Args:
        encoder: A model with the latent "semantic", as from `bgt_core.load` or `bgt_core.open_encoder`.
        sentences: The N sentences in each language. Sentences at the same index are translations of each other.
        columns: Your own columns, name -> N values, for bars and colours.
        method: "PCA", "t-SNE" or "UMAP".
        colour: The column for the colours: "mark", "words", "lang", "address", "topic", or one of your own.

    Raises:
        UsageError: The method is not one of these, or the languages and columns have different numbers of rows.
    """
    if method not in NEIGHBOURS:
        raise UsageError(f"{method}: expected {', '.join(NEIGHBOURS)}.", parameter="method")
    counts = {len(values) for values in (*sentences.values(), *columns.values())}
    if len(counts) != 1:
        raise UsageError(f"{sorted(counts)} rows: all languages and columns need the same number.", parameter="columns")
    loaded, langs = model_of(encoder), list(sentences)
    table = rows.translations(list(zip(*sentences.values(), strict=True)), langs)
    own = {f"{rows.OWN_COLUMN}{name}": list(values) * len(langs) for name, values in columns.items()}
    fitted = spaces.spaces(loaded, table.assign(**own), geometry.Method(method, NEIGHBOURS[method]))
    colour = f"{rows.OWN_COLUMN}{colour}" if colour in columns else colour
    styles = [name for name in rows.STYLES if name in rows.colours(langs)]
    fitted = spaces.with_columns(fitted, {colour, *styles, *own})
    data = of_maps.view(fitted, loaded.second_latent, colour, langs, {}, ["translations"])
    return Maps(fitted.semantic.rows, data | {"file": "bgt-maps", "large": "semantic"})


class Figure(go.FigureWidget):
    """The figure of `Pairs`, with the keys that the plane has in the app."""

    _added = "\n".join((JS / f"{name}.js").read_text("utf-8") for name in ("../../maps/js/points", "keys", "notebook"))
    _esm = f"{go.FigureWidget._esm}\n{{\n{_added}\n}}"
    _css = JS / "plane.css"


class Pairs:
    """A widget that places pairs by their similarity in both latents. A lasso or the Enter key changes `selection`."""

    def __init__(self, plane: of_pairs.Plane):
        self.table, self.places = plane.pairs, list[int]()
        self.figure = Figure(of_pairs.draw(plane).update_layout(meta="plane of pairs"))
        for trace in self.figure.data:
            trace.on_selection(self._select)
            trace.on_deselect(self._select)

    def _select(self, trace: Any, points: Any, drawn: Any = None) -> None:
        here = set(trace.customdata or ())
        chosen = [trace.customdata[at] for at in points.point_inds]
        self.places = sorted({place for place in self.places if place not in here}.union(chosen))
        if drawn is None:  # a key selected one point or none, which plotly does not show by itself
            trace.selectedpoints = points.point_inds or None

    @property
    def selection(self) -> pd.DataFrame:
        """The selected pairs, with their similarities, and the percentages of random pairs that are less similar."""
        return self.table.iloc[self.places]

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.figure._repr_mimebundle_(**options)


def pairs(encoder: SentenceEncoder, left: Sequence[str], right: Sequence[str], langs: tuple[str, str]) -> Pairs:
    """Draw N pairs of sentences, and as many random pairs of the same sentences, as the page "Pairs" does.

    Args:
        encoder: A model with two latents.
        left: N sentences in the first language.
        right: Their partners in the second language: translations, paraphrases, or any other sentences.
        langs: The two languages, for example ("en", "en").

    Raises:
        UsageError: The encoder has only one latent, or `left` and `right` have different lengths.
    """
    loaded = model_of(encoder)
    if not loaded.second_latent or len(left) != len(right):
        given = f"{len(left)} and {len(right)} sentences, latents {', '.join(loaded.latents)}"
        raise UsageError(f"{given}: expected equal numbers of sentences, and two latents.")
    table = pd.DataFrame({"0": list(left), "1": list(right)})
    text = ParallelText(tuple(dict.fromkeys(langs)), None, columns=langs, table=table, digest=content([*left, *right]))
    source = of_pairs.PairSource(*langs, given=True)
    made, random = of_pairs.compared(loaded, text, len(left), source)
    across, upwards = (f"{rows.latent_title(latent)}: % of random pairs below" for latent in loaded.latents[:2])
    return Pairs(of_pairs.Plane(made, random, made.head(0), "kind", "Kind of pair", (across, upwards)))


def model_of(encoder: SentenceEncoder) -> Loaded:
    """Wrap an encoder as a model for the app's functions. Turn off Streamlit's warnings that no app is running."""
    set_log_level("ERROR")
    return Loaded("encoder", encoder, encoder.langs or ("en",), {}, [], "")
