"""Progress of a training run, on stderr: a rich bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from rich import progress
from rich.console import Console


class Progress:
    """Shows each row of metrics that it is called with."""

    def __init__(self) -> None:
        self.bar = None
        if sys.stderr.isatty():
            columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn())
            self.bar = progress.Progress(*columns, progress.TimeRemainingColumn(), console=Console(stderr=True))
            self.task = self.bar.add_task("training", total=None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def __call__(self, row: dict[str, Any]) -> None:
        if self.bar:
            self.bar.start()  # not before the first row: only one of several workers reports rows
        if row["kind"] == "data":
            self.print("data: " + ", ".join(f"{count} {what}" for what, count in row["pairs"].items()))
            for example in row["skipped"]:
                self.print(f"skipped {example}")
            return
        if row["kind"] == "note":
            self.print(row["text"])
            return
        values = " ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in row.items()
            if name not in ("kind", "step", "steps")
        )
        line = f"{row['kind']} {row['step']}/{row['steps']} {values}"
        if self.bar is None or row["kind"] != "train":
            self.print(line)
        else:
            self.bar.update(self.task, completed=row["step"], total=row["steps"])
            self.bar.update(self.task, description=f"loss {row['loss']:.4g}, {row['tokens_per_second']:,.0f} tokens/s")

    def print(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self.bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self.bar.console.print(line, markup=False, highlight=False)
