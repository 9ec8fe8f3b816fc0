"""Tables of values, to print, or to write as CSV, LaTeX, Markdown and Parquet."""

from bgt_core.tables.table import LEGEND, Estimate, Table, Value, p_text, plain
from bgt_core.tables.terminal import show
from bgt_core.tables.writers import STDOUT, markdown, save

__all__ = ["LEGEND", "STDOUT", "Estimate", "Table", "Value", "markdown", "p_text", "plain", "save", "show"]
