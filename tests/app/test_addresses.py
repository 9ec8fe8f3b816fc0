"""Every parameter of the app's addresses, set to what a stranger may write into a link: the page opens."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.app.conftest import App
from tests.app.hostile import HOSTILE, hostile_in

KINDS = ("selectbox", "multiselect", "button_group", "slider", "number_input", "text_input", "text_area", "toggle")
ALWAYS = ("ckpt", "own", "rows", "pairs", "data", "how")  # read from the address by the app itself
VALUES = (
    HOSTILE, "", " ", "9" * 5_000, "-1", "1e999", "NaN", "٣" * 12, "\0", "\ud7ff", "true", "[" * 5_000, "a,b,,",
    '{"a": 1}', "../../etc/passwd", "<img src=x onerror=alert(1)>", "x" * 20_000, "🙂" * 300, "=1+1", "%00",
    "en1-999999999", "~.-", "en" + "9" * 400, "a\nb\r\nc", "Both", "English", "\u202e", ";" * 50, "((((", "0.5", "5",
)  # fmt: skip
PAGES = ("maps", "plane", "rewrite", "similarity", "probes", "languages", "models", "split", "card")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_any_address_opens_and_shows_no_markdown(page: str, opened: Callable[..., App]) -> None:
    draw = random.Random(page)
    app = opened(page)
    names = [*dict.fromkeys([*ALWAYS, *(widget.key for kind in KINDS for widget in app.get(kind) if widget.key)])]
    for count in (2, len(names)):
        link = {name: draw.choice(VALUES) for name in draw.sample(names, count)}
        assert not hostile_in(opened(page, **link)), link
