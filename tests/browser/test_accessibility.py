"""What axe-core, the standard checker of accessibility, finds in the ways to compare models; test_app checks pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_way_to_compare_models_has_a_serious_violation(
    visit: Callable[..., Page],
    settle: Callable[[Page], None],
    violations: Callable[[Page], list[str]],
    address: str,
    theme: str,
) -> None:
    page = visit(f"{address}/models", theme=theme, quiet_404=True)
    page.set_viewport_size({"width": 1280, "height": 3000})
    views = page.get_by_role("radiogroup", name="Compare by").get_by_role("radio")
    wrong = {}
    for view in views.all():
        view.click()
        settle(page)
        wrong[view.inner_text()] = violations(page)
    assert {"Maps", "Similarity", "Disagreements", "Writing"} <= wrong.keys()
    assert {title: found for title, found in wrong.items() if found} == {}


def test_a_violation_is_seen(visit: Callable[..., Page], violations: Callable[[Page], list[str]], address: str) -> None:
    page = visit(address)
    assert violations(page) == []
    page.evaluate("document.querySelector('h1').style.color = '#bbb'")
    assert [text.partition(" | ")[0] for text in violations(page)] == ["color-contrast"]
