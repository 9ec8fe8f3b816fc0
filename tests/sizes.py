"""Print the size of this software: `python -m tests.sizes`, as CI does."""

import subprocess
from pathlib import Path
from typing import Any

import typer.main

ROOT = Path(__file__).resolve().parent.parent


def lines(pattern: str) -> dict[str, int]:
    """Return {path: number of lines, with blank lines} for the tracked files that match a git pattern."""
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in listed.splitlines()}


def commands(program: Any, name: str) -> dict[str, int]:
    """Return {command: number of options, without --help} for a typer program."""
    counts = {name: count} if (count := sum(part.param_type_name == "option" for part in program.params)) else {}
    if hasattr(program, "list_commands"):
        context = program.make_context(name, [], resilient_parsing=True)
        for word in program.list_commands(context):
            counts |= commands(program.get_command(context, word), f"{name} {word}")
    return counts


def sizes() -> dict[str, int]:
    """Count lines of Python outside tests and in tests, files, commands, options, and lines of README.md."""
    from bgt_core.cli import program as bgt
    from probes.cli import app as bgt_probe

    python = lines("*.py")
    inside = sum(count for name, count in python.items() if name.startswith("tests/"))
    named = commands(typer.main.get_command(bgt), "bgt") | commands(typer.main.get_command(bgt_probe), "bgt-probe")
    return {
        "lines of Python outside tests": sum(python.values()) - inside,
        "lines of Python in tests": inside,
        "files of Python outside tests": sum(not name.startswith("tests/") for name in python),
        "commands": len(named),
        "options": sum(named.values()),
        "lines of README.md": lines("README.md")["README.md"],
    }


if __name__ == "__main__":
    for name, count in sizes().items():
        print(f"{count:>7,} {name}")
