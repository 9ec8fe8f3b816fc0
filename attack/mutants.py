"""`make mutants`: the core formulas with one thing changed at a time, by cosmic-ray; the tests must notice each change.

Not a part of `make attack`: it takes most of an hour on two cores. Prints what no test notices, and a table; `--write`
puts that into docs/reliability.md. Sources are changed in a copy.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from attack import pages

ROOT = Path(__file__).resolve().parent.parent
MARK = "mutants"
SECONDS = 60  # for the tests of one mutant
CONFIG = """
[cosmic-ray]
module-path = ["{module}"]
timeout = {seconds}
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = [
  "core/ReplaceBinaryOperator_BitOr_.*",
  "core/ReplaceBinaryOperator_.*_(FloorDiv|Mod|RShift|LShift|BitOr|BitAnd|BitXor|Pow)",
]
"""


class Formula(NamedTuple):
    """Where a formula is, and the tests that must notice what is changed there."""

    name: str
    module: str
    tests: str


FORMULAS = (
    Formula("bootstrap, Holm, intervals", "bgt_core/evaluation/bootstrap.py", "tests/evaluation/test_bootstrap.py"),
    Formula("pooling", "bgt_core/nets/pooling.py", "tests/nets/test_pooling.py"),
    Formula("KL", "bgt_core/posterior/__init__.py", "tests/test_posterior.py"),
    Formula("ELBO and its weights", "bgt_core/objectives/elbo.py", "tests/objectives/test_elbo.py"),
    Formula("margin", "bgt_core/objectives/margin.py", "tests/objectives/test_margin.py"),
)


class Survivors(NamedTuple):
    """What became of a formula's mutants."""

    formula: Formula
    tried: int
    diffs: list[str]  # of those that no test noticed


def tried(formula: Formula, folder: Path) -> Survivors:
    """All mutants of a formula, one after the other, in a copy of the sources."""
    copy, config, session = folder / "copy", folder / "config.toml", folder / "session.sqlite"
    for part in ("bgt_core", "probes", "tests"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    config.write_text(CONFIG.format(python=sys.executable, seconds=SECONDS, **formula._asdict()), "utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    bin_folder = Path(sys.executable).parent
    for command in ("cosmic-ray init", "cr-filter-operators", "cosmic-ray exec"):
        program, *verb = command.split()
        files = [session, config] if program == "cr-filter-operators" else [config, session]
        subprocess.run([bin_folder / program, *verb, *files], cwd=copy, env=environment, check=True)
    dumped = subprocess.run([bin_folder / "cosmic-ray", "dump", session], capture_output=True, text=True, check=True)
    results = [result for _, result in map(json.loads, dumped.stdout.splitlines()) if result]
    results = [result for result in results if result["worker_outcome"] != "skipped"]
    survived = [result["diff"] for result in results if result["test_outcome"] == "survived"]
    return Survivors(formula, len(results), survived)


def table(rows: list[Survivors]) -> str:
    lines = ["| formula | mutants | noticed | share |", "|---|---:|---:|---:|"]
    for formula, count, diffs in rows:
        noticed = count - len(diffs)
        lines.append(f"| {formula.name} (`{formula.module}`) | {count} | {noticed} | {noticed / count:.1%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names of formulas; all of them unless named")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args()
    formulas = [
        formula for formula in FORMULAS if not options.names or any(name in formula.name for name in options.names)
    ]
    with tempfile.TemporaryDirectory(prefix="bgt-mutants-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        places = [Path(folder) / str(number) for number in range(len(formulas))]
        rows = list(pool.map(tried, formulas, places))
    for row in rows:
        print("\n".join(row.diffs))
    print(table(rows))
    if options.write:
        pages.write(MARK, table(rows))


if __name__ == "__main__":
    main()
