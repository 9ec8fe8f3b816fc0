"""What axe-core, the standard checker of accessibility, finds on every page: no serious violation of WCAG 2 A or AA."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Rule -> the parts of Streamlit's own markup that it may find, and why they stay.
EXCLUDED = {
    # a wide table scrolls inside its box, which Streamlit gives no tabindex; browsers focus such a box themselves
    "scrollable-region-focusable": "[data-testid=stTable]",
}
VIOLATIONS = """async excluded => {
  const { violations } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
  const kept = (rule, { target: [selector] }) =>
    !(excluded[rule] && document.querySelector(selector)?.closest(excluded[rule]));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) =>
    nodes.filter(node => kept(id, node)).map(node =>
      [id, node.html.slice(0, 120), node.failureSummary.split("\\n").slice(1).join(" ").trim()].join(" | ")));
}"""


@pytest.fixture
def violations() -> Callable[[Page], list[str]]:
    """violations(page): what is seriously or critically wrong, as rule, markup and reason."""

    def find(page: Page) -> list[str]:
        page.evaluate(AXE_SCRIPT)
        return page.evaluate(VIOLATIONS, EXCLUDED)

    return find


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_violation(
    visit: Callable[..., Page],
    settle: Callable[[Page], None],
    violations: Callable[[Page], list[str]],
    address: str,
    theme: str,
) -> None:
    page = visit(address, theme=theme)
    page.set_viewport_size({"width": 1280, "height": 3000})  # contrast is measured of what is on the screen
    links = page.get_by_test_id("stSidebarNavLink")
    assert links.count() >= 8
    wrong = {}
    for link in links.all():
        link.click()
        settle(page)
        title = link.inner_text().split("\n")[-1]
        if page.get_by_role("button", name="Export").count():
            page.get_by_role("button", name="Export").first.click()
            page.get_by_test_id("stPopoverBody").wait_for()
            wrong[f"{title}, exports"] = violations(page)
            page.keyboard.press("Escape")
        wrong[title] = violations(page)
    assert len(wrong) > links.count()  # every page, and exports
    assert {title: found for title, found in wrong.items() if found} == {}


def test_a_violation_is_seen(visit: Callable[..., Page], violations: Callable[[Page], list[str]], address: str) -> None:
    page = visit(address)
    assert violations(page) == []
    page.evaluate("document.querySelector('h1').style.color = '#bbb'")
    assert [text.partition(" | ")[0] for text in violations(page)] == ["color-contrast"]
