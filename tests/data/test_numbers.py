"""Numbers of cells, and what the others should have been."""

from __future__ import annotations

import math

import pytest

from bgt_core.data.numbers import no_number, number


@pytest.mark.parametrize(
    ("text", "value"), [("4.2", 4.2), (" 4.2 ", 4.2), ("\u00a04", 4), ("-1e-3", -0.001), ("４.２", 4.2), (".5", 0.5)]
)
def test_a_number_has_a_decimal_point(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("5,5", "write 5.5,"),
        (" -0,75 ", "write -0.75,"),
        ("1.234,5", "write 1234.5,"),
        ("1,234.5", "write 1234.5,"),
        ("1 234,5", "write 1234.5,"),
        ("1'234.5", "write 1234.5,"),
        ("1_000", "write 1000"),
        ("1,234,567", "write 1234567"),
        ("1.234.567", "write 1234567"),
        ("3,141", "write 3.141, or 3141,"),
        ("４，２", "write 4.2,"),
        ("４．２", "write 4.2,"),
        ("٤٫٢", "write 4.2,"),
        ("NaN", "expected one"),
        ("inf", "expected one"),
        ("-Infinity", "expected one"),
        ("", "expected one"),
        ("four", "expected one"),
        ("4/5", "expected one"),
        ("1,2,x", "expected one"),
        ("9" * 50 + "e400", "too large, expected"),
        ("-1e400", "too large, expected"),
    ],
)
def test_other_cells_are_no_numbers_and_the_intended_one_is_named(text: str, advice: str) -> None:
    assert math.isnan(number(text))
    assert no_number(text).startswith(f"is not a number: {text.strip()!r}; {advice}")
    assert no_number(text).endswith(", with a point") == ("." in advice)
