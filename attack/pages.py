"""Tables of docs/reliability.md, each between two marks."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reliability.md"


def write(name: str, table: str) -> None:
    """Puts a table between the marks of that name, in place of the one before."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}", "utf-8")
