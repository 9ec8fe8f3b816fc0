"""Numbers in the cells of a table."""

from __future__ import annotations

import math
import re
import unicodedata

_SPELT = str.maketrans({"٫": ",", "٬": "'"})  # Arabic separators of decimals and of thousands


def number(text: str) -> float:
    """Parse a finite number with a decimal point; NaN for anything else."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def no_number(text: str) -> str:
    """Say why `number` can't parse a cell, and what to write instead, after the name of its column.

    >>> no_number("5,5")
    "is not a number: '5,5'; write 5.5, with a point"
    """
    plain = re.sub(r"[\s'’_]", "", unicodedata.normalize("NFKC", text).translate(_SPELT))
    if {",", "."} <= set(plain):  # the last of them is that of decimals
        last = max(plain.rfind(","), plain.rfind("."))
        plain = re.sub("[,.]", "", plain[:last]) + "." + plain[last + 1 :]
    elif plain.count(",") + plain.count(".") > 1:
        plain = re.sub("[,.]", "", plain)
    value = number(plain.replace(",", "."))
    if math.isnan(value) and re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?", plain, re.IGNORECASE):
        return f"is not a number: {text.strip()[:60]!r}; too large, expected at most 1.8e308"
    if math.isnan(value):
        return f"is not a number: {text.strip()[:60]!r}; expected one, as 4.5"
    thousands = f", or {value * 1000:.12g}" if re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", plain) else ""
    written = f"{value:.12g}"
    return f"is not a number: {text.strip()[:60]!r}; write {written}{thousands}{', with a point' * ('.' in written)}"
