"""Text files, whatever wrote them."""

from __future__ import annotations

from pathlib import Path

from bgt_core.data.textfile import text_lines


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "excel.tsv"
    path.write_bytes("\ufeff1\ta\r\n\ufeff2\tb\n".encode())
    assert [*text_lines(path)] == [(1, "1\ta"), (2, "\ufeff2\tb")]
