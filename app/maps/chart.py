"""The settings of the maps: one for each latent, and one for all in one figure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from app.core import rows, theme
from app.core.latents import chart, spaces
from app.core.latents.lines import TRANSLATIONS
from app.maps import settings
from bgt_core.contracts import SEMANTIC

ALL = "all"  # the maps of all latents in one figure
MAP_HEIGHT = 240  # pixels of each language's map


def map_figures(
    fitted: spaces.Spaces, second_latent: str, choice: settings.Choice, paths: Mapping[str, np.ndarray]
) -> dict[str, partial]:
    """The settings of each latent's map, by its name, and of all in one; `paths` are by "semantic" or language."""
    langs = choice.text.langs
    name = rows.language_name if len(langs) <= 3 else str  # more names would not fit
    signs = {lang: theme.lang_title(lang, name(lang)) for lang in fitted.second}
    title_of = {SEMANTIC: "Semantic latent  " + "  ".join(signs.values())}
    title_of |= {lang: f"{rows.latent_title(second_latent)}  {sign}" for lang, sign in signs.items()}
    panels = {
        SEMANTIC: {title_of[SEMANTIC]: fitted.semantic.rows},
        second_latent: {title_of[lang]: space.rows for lang, space in fitted.second.items()},
    }
    shown = {name: tables for name, tables in panels.items() if choice.panels in (settings.BOTH, name.capitalize())}
    together = {title: table for tables in shown.values() for title, table in tables.items()}
    return {
        name: partial(
            chart.latent_map,
            tables,
            choice.colour,
            langs,
            named=name != second_latent,  # clusters of meaning lie anywhere on the others
            lines=[kind for kind in choice.lines if name != second_latent or kind != TRANSLATIONS],
            paths={title_of[key]: steps for key, steps in paths.items()},
            svg=choice.svg,
            side_by_side=name == ALL and len(shown) > 1,
            theme=theme.current(),
            height=MAP_HEIGHT * max(2, len(fitted.second)),
        )
        for name, tables in {**shown, ALL: together}.items()
        if tables
    }
