"""The colours of marks are visible on both backgrounds, and distinct for colour-blind readers."""

from __future__ import annotations

import numpy as np
import pytest

from app.core import theme
from bgt_core.contracts import SYNTACTIC

GROUNDS = {"light": ("#ffffff", "#f7f7f6"), "dark": ("#171614", "#262730")}  # the page, and boxes on it
# Linear RGB as seen without one kind of cones (Machado, Oliveira and Fernandes 2009, severity 1).
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def linear(colour: str) -> np.ndarray:
    """Convert "#rrggbb" to linear RGB (3,), by the sRGB curve."""
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG."""
    low, high = sorted(XYZ[1] @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def marks(name: str) -> dict[str, str]:
    latents = {latent: colour for latent, colour in theme.LATENTS[name].items() if latent != SYNTACTIC}
    return {**latents, **theme.LANGUAGES[name]}


@pytest.mark.parametrize("name", GROUNDS)
def test_marks_stand_out_from_their_ground_and_words_can_be_read(name: str) -> None:
    for ground in GROUNDS[name]:
        assert min(contrast(colour, ground) for colour in marks(name).values()) >= 3
        assert contrast(theme.INK[name], ground) >= 4.5
    hover = theme.hover_label(name)
    assert contrast(hover["font"]["color"], hover["bgcolor"]) >= 4.5


def test_every_language_has_a_colour_and_a_symbol_of_its_own() -> None:
    langs = list(theme.LANGUAGES["light"])
    assert langs == list(theme.LANGUAGES["dark"])
    assert len({theme.cycled(theme.SYMBOLS, theme.lang_place(lang)) for lang in langs}) == len(langs)
    looks = {(theme.cycled(theme.PALETTE["light"], n), theme.cycled(theme.SYMBOLS, n)) for n in range(42)}
    assert len(looks) == 42  # combinations of colour and symbol: more than there are symbols
