"""The separation report: one self-contained HTML page, and one LaTeX table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from bgt_core.files import write_text
from bgt_core.tables import p_text, save
from probes.results.separation import Line, as_table, counts, separation
from probes.results.store import Cell
from probes.results.tables import short_table
from probes.tasks import TASKS

WIDTH, HEIGHT = 160, 18  # of the drawing of an interval, pixels
SIGNS = {"as the paper": "✓", "not as the paper": "✗", "undecided": "?"}

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #666; --line: #ddd; --page: #fff;
  --semantic: #0b62a8; --language: #b04a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #9a9a9a; --line: #3a3a3a; --page: #151515;
  --semantic: #6db3f2; --language: #f0a060; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 90rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
.wide th:first-child, .wide td:first-child { position: sticky; left: 0; background: var(--page); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { border-bottom-width: 2px; font-weight: 600; }
th:first-child, td:first-child, .text { text-align: left; }
small, .soft { color: var(--soft); }
.semantic { color: var(--semantic); } .language { color: var(--language); }
svg line.zero { stroke: var(--soft); stroke-dasharray: 2 2; }
svg .semantic { stroke: var(--semantic); fill: var(--semantic); }
svg .language { stroke: var(--language); fill: var(--language); }
svg .neither { stroke: var(--soft); fill: var(--soft); }
svg .paper { stroke: var(--ink); fill: none; }
@media (max-width: 40rem) {
  .signs thead { display: none; }
  .signs tr { display: grid; grid-template-columns: 1fr 1fr; padding: .5rem 0; border-bottom: 2px solid var(--line); }
  .signs td, .signs td.text { display: block; padding: .1rem 0; border: 0; text-align: left; white-space: normal; }
  .signs td::before { content: attr(data-name); display: block; font-size: .75rem; color: var(--soft); }
  .signs td:empty { display: none; }
}
"""


def write_report(path: Path, cells: Sequence[Cell], correction: str = "holm") -> None:
    """Write PATH.html and PATH.tex, each complete or not at all.

    Raises UsageError if no cell has both latents, NotFound if they can't be written.
    """
    lines = separation(cells, correction)
    write_text(path, page(lines, cells))
    save(as_table(lines), {"latex": path.with_suffix(".tex")}, explained(lines))


def explained(lines: Sequence[Line]) -> str:
    """Explain the numbers."""
    result = lines[0].cell.result
    level = f"{100 * result.level:g}%"
    return (
        f"Test accuracy in percent, {of_probes(result.seeds)}, with Wilson {level} intervals. The difference "
        f"is semantic minus language in points on the same test items, with a paired {level} interval over test items "
        f"(bootstrap) and probe seeds (Student's t). p comes from the same standard error, with "
        f"{lines[0].difference.correction} over the {len(lines)} rows; it decides which latent holds more."
    )


def of_probes(seeds: int) -> str:
    return "of one probe" if seeds == 1 else f"mean of {seeds} probe seeds"


def page(lines: Sequence[Line], cells: Sequence[Cell]) -> str:
    """The whole document."""
    models = list(dict.fromkeys(line.cell.model for line in lines))
    title = f"Properties in the latents of {', '.join(models)}"
    trail = lines[0].cell.trail
    facts = [
        f"{escape(model)}: <code>{escape(next(c.trail['fingerprint'] for c in cells if c.model == model))}</code>"
        for model in models
    ]
    paper = (
        "The paper used other sentences and a larger model, does not describe its probes, and gives no "
        "intervals: compare signs, not values. ○ marks its difference."
    )
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
<h1>{escape(title)}</h1>
<p><strong>{escape(counts(lines))}</strong></p>
<p>{escape(explained(lines))} {paper}</p>
<div class="wide">{signs(lines)}</div>
<h2>Every row</h2>
<div class="wide">{all_scores(cells)}</div>
<h2>Sources</h2>
<p>{"<br>".join(facts)}<br>Data: {escape(str(trail["data"]))}. Version {escape(trail["version"])}, measured
{escape(", ".join(sorted({cell.trail["measured"] for cell in cells})))}; seed {lines[0].cell.result.seed}.</p>
{all_warnings(cells)}
</html>
"""


def signs(lines: Sequence[Line]) -> str:
    """The table of signs, with a drawing of each interval."""
    ends = [abs(end) for line in lines for end in (line.difference.ci_low, line.difference.ci_high)]
    limit = max([5.0, *ends, *(abs(line.paper.gap) for line in lines if line.paper)])
    names = ["task", "lang", "semantic", "language", "difference", "", f"p ({lines[0].difference.correction})"]
    names += ["holds more", "paper", "its sign", "best baseline"]
    texts = {"lang", "holds more", "its sign", "best baseline"}
    head = "".join(f"<th class=text>{name}" if name in texts else f"<th>{name}" for name in names)
    rows = []
    for line in lines:
        gap = line.difference
        values = [
            f'<span title="{escape(TASKS[gap.task].about if gap.task in TASKS else "")}">{escape(gap.task)}</span>',
            escape(gap.lang),
            f"{100 * line.semantic.accuracy:.1f}",
            f"{100 * line.language.accuracy:.1f}",
            f"{gap.points:+.1f} <small>[{gap.ci_low:+.1f}, {gap.ci_high:+.1f}]</small>",
            drawing(line, limit),
            escape(p_text(line.p)),
            f'<span class="{line.holds}">{line.holds}</span>',
            "" if line.paper is None else f"{line.paper.semantic:.1f} / {line.paper.language:.1f}",
            f"{SIGNS[line.against_paper]} {line.against_paper}" if line.paper else "",
            "" if line.baseline is None else f"{escape(line.baseline.latent)} {100 * line.baseline.accuracy:.1f}",
        ]
        cells = (
            f'<td data-name="{name}"{" class=text" if name in texts else ""}>{value}'
            for name, value in zip(names, values, strict=True)
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table class="signs"><thead><tr>{head}</tr></thead>{"".join(rows)}</table>'


def drawing(line: Line, limit: float) -> str:
    """Draw the interval of a difference on an axis from minus to plus `limit` points, with language on the left."""

    def x(points: float) -> float:
        return round(WIDTH / 2 * (1 + points / math.ceil(limit)), 1)

    gap, middle = line.difference, HEIGHT / 2
    label = f"{gap.points:+.1f} points, {gap.ci_low:+.1f} to {gap.ci_high:+.1f}"
    paper = "" if line.paper is None else f'<circle class="paper" cx="{x(line.paper.gap)}" cy="{middle}" r="4"/>'
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f'<line class="zero" x1="{x(0)}" x2="{x(0)}" y1="0" y2="{HEIGHT}"/>'
        f'<line class="{line.holds}" x1="{x(gap.ci_low)}" x2="{x(gap.ci_high)}" y1="{middle}" y2="{middle}" '
        f'stroke-width="3"/><circle class="{line.holds}" cx="{x(gap.points)}" cy="{middle}" r="3.5"/>{paper}</svg>'
    )


def all_scores(cells: Sequence[Cell]) -> str:
    """All latents and baselines."""
    table = short_table(cells)
    head = "".join(f"<th>{escape(name)}" for name in table.columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(value)}' for value in row)}</tr>" for row in table.lines())
    return f"<table><tr>{head}</tr>{body}</table>"


def all_warnings(cells: Sequence[Cell]) -> str:
    """The warnings of all cells."""
    lines = [f"{c.result.task} {c.result.lang}, {c.model}: {line}" for c in cells for line in c.result.warnings]
    return f"<h2>Warnings</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
