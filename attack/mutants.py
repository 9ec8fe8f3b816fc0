"""`make mutants`: the core formulas with one thing changed at a time, by mutmut; a test should fail for each change.

What is changed and which tests look at it is set in pyproject.toml, `tool.mutmut`. Prints what no test noticed, and a
table; `--write` puts that into docs/reliability.md. Sources are changed in a copy, the folder `mutants`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from attack import pages

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "mutants"
SURVIVED, NO_TEST = 0, 33  # exit codes as mutmut keeps them; any other is that of a test that noticed
FORMULAS = {  # the functions that hold a formula: "module:pattern"
    "KL": "posterior/__init__:Gaussian.*kl$",
    "ELBO and its weights": "objectives/elbo:Elbo.*(call__|annealing)$",
    "margin": "objectives/margin:",
    "pooling": "nets/pooling:",
    "bootstrap and intervals": "evaluation/bootstrap:(?!.*x_holm)",
    "Holm": "evaluation/bootstrap:x_holm",
}


def outcomes(formula: str) -> dict[str, int | None]:
    """The exit code of each mutant of a formula, by its name."""
    module, pattern = formula.split(":")
    kept = json.loads((COPY / "bgt_core" / f"{module}.py.meta").read_text("utf-8"))["exit_code_by_key"]
    functions = {name: name.rpartition(".")[2].partition("__mutmut_")[0].replace("\u01c1", ".") for name in kept}
    return {name: code for name, code in kept.items() if re.search(pattern, functions[name])}


def table() -> str:
    lines = ["| formula | mutants | noticed | share |", "|---|---:|---:|---:|"]
    for title, formula in FORMULAS.items():
        codes = list(outcomes(formula).values())
        noticed = len(codes) - codes.count(SURVIVED) - codes.count(NO_TEST)
        lines.append(f"| {title} | {len(codes)} | {noticed} | {noticed / len(codes):.1%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack.mutants", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args()
    mutmut = [Path(sys.executable).parent / "mutmut"]
    shutil.rmtree(COPY, ignore_errors=True)
    subprocess.run([*mutmut, "run"], cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
    for formula in FORMULAS.values():
        for name, code in outcomes(formula).items():
            if code in (SURVIVED, NO_TEST):
                subprocess.run([*mutmut, "show", name], cwd=ROOT, check=True)
    print(table())
    if options.write:
        pages.write("mutants", table())


if __name__ == "__main__":
    main()
