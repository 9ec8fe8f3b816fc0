"""`make mutants`: the core formulas with one thing changed at a time, by mutmut; a test should fail for each change.

The files that are changed are set in pyproject.toml, `tool.mutmut`, the functions and their tests in formulas.py.
Prints what no test noticed, and a table; `--write` puts that into docs/reliability.md. Sources are changed in a copy,
the folder `mutants`.

A change that nobody can see is listed in equivalent.tsv: function, lines before, lines after, the reason. Neither it
nor a change of an error's wording alone counts.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from attack import pages, trials
from attack.formulas import FORMULAS, Formula

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "mutants"
OUTCOMES = COPY / "outcomes.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")
UNNOTICED = (trials.SURVIVED, trials.NO_TEST)


class Mutant(NamedTuple):
    """One change: the function, its lines before and after, and whether it only changes what an error says."""

    name: str
    function: str
    before: str
    after: str
    wording: bool


def make() -> None:
    """Write the mutants, and forget the outcomes of functions that have changed."""
    from mutmut.__main__ import create_mutants
    from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir

    before = hashes()
    copy_src_dir()
    copy_also_copy_files()
    create_mutants(1)
    after = hashes()
    kept = {name: code for name, code in outcomes().items() if before.get(where(name)) == after.get(where(name))}
    OUTCOMES.write_text("".join(json.dumps(line) + "\n" for line in kept.items()), "utf-8")


def hashes() -> dict[str, str]:
    """What mutmut knows each function by, by module and name."""
    found: dict[str, str] = {}
    for path in COPY.rglob("*.py.meta"):
        kept = json.loads(path.read_text("utf-8"))
        found |= {
            where(name): kept["hash_by_function_name"].get(function_of(name)) for name in kept["exit_code_by_key"]
        }
    return found


def where(name: str) -> str:
    """The module and function of a mutant."""
    return name.rpartition("__mutmut_")[0]


def names_of(formula: Formula) -> Iterator[str]:
    """The mutants of a formula."""
    modules, pattern = formula.functions.split(":")
    for path in sorted(COPY.rglob("*.py.meta")):
        if re.fullmatch(modules, str(path.relative_to(COPY)).removesuffix(".py.meta")):
            for name in json.loads(path.read_text("utf-8"))["exit_code_by_key"]:
                if re.match(pattern, function_of(name)):
                    yield name


def function_of(name: str) -> str:
    """What the function of a mutant is called: "bgt_core.posterior.xǁGaussianǁkl__mutmut_3" -> "xǁGaussianǁkl"."""
    return name.rpartition(".")[2].partition("__mutmut_")[0]


@cache
def functions_in(path: Path) -> dict[str, tuple[str, ast.FunctionDef]]:
    """The source and tree of each function of a file with mutants, by its name."""
    source = path.read_text("utf-8")
    lines = source.split("\n")
    found = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and "__mutmut" in node.name
    ]
    return {node.name: ("\n".join(lines[node.lineno - 1 : node.end_lineno]), node) for node in found}


def mutant(name: str) -> Mutant:
    """What a mutant changes."""
    module, _, own = name.rpartition(".")
    path = COPY / module.replace(".", "/")
    functions = functions_in(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    (before, old), (after, new) = functions[f"{function_of(name)}__mutmut_orig"], functions[own]
    changed = [line for line in difflib.ndiff(before.split("\n")[1:], after.split("\n")[1:]) if line[0] in "+-"]
    if before.split("\n")[0].partition("(")[2] != after.split("\n")[0].partition("(")[2]:
        changed = [f"- {before.partition(chr(10))[0].strip()}", f"+ {after.partition(chr(10))[0].strip()}"]
    gone, come = (" ".join(line[2:].strip() for line in changed if line[0] == sign) for sign in "-+")
    function = f"{module}.{function_of(name).removeprefix('x').lstrip('_ǁ').replace('ǁ', '.')}"
    return Mutant(name, function, gone, come, only_wording(old, new))


def only_wording(old: ast.FunctionDef, new: ast.FunctionDef) -> bool:
    """Whether two functions differ in nothing but text of the errors that they raise."""

    class Silent(ast.NodeTransformer):
        def visit_Raise(self, node: ast.Raise) -> ast.AST:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    part.value = ""
            return node

    bodies = [ast.dump(Silent().visit(ast.Module(function.body, []))) for function in (old, new)]
    return bodies[0] == bodies[1] and ast.dump(old.args) == ast.dump(new.args)


def outcomes() -> dict[str, int]:
    """The exit code of each mutant that was tried, the last where there are several."""
    lines = OUTCOMES.read_text("utf-8").splitlines() if OUTCOMES.exists() else []
    return dict(map(json.loads, lines))


def equivalent() -> dict[tuple[str, str, str], str]:
    """Why a change of a function can't be seen, by function, lines before and lines after."""
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        return {(row[0], row[1], row[2]): row[3] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def try_out(only: str) -> None:
    """Try the mutants with this pattern in their names, but those that a test has noticed or that nobody can see."""
    reasons = equivalent()
    done = {name for name, code in outcomes().items() if code not in UNNOTICED or mutant(name)[1:4] in reasons}
    batches = [
        ([name for name in names_of(formula) if name not in done and re.search(only, name)], formula.tests)
        for formula in FORMULAS.values()
    ]
    batches = [(names, tests) for names, tests in batches if names]
    starts = {test.partition("::")[0] for _, tests in batches for test in tests}
    files = sorted(
        {str(path.relative_to(COPY)) for start in starts for path in COPY.glob(f"{start.removesuffix('.py')}*.py")}
    )
    path = os.pathsep.join([str(COPY), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # Numba's functions are read by Python: to compile them in each process would take longer than the tests.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    command = [sys.executable, "-P", "-m", "attack.trials", str(OUTCOMES), "-p", "no:cacheprovider", "-s", *files]
    subprocess.run(command, cwd=COPY, env=environment, input=json.dumps(batches), text=True, check=True)


def report() -> str:
    """Print what no test noticed, and return the table."""
    reasons, codes = equivalent(), outcomes()
    lines = ["| formula | mutants | equivalent | noticed | share |", "|---|---:|---:|---:|---:|"]
    sums = Counter[str]()
    for title, formula in FORMULAS.items():
        counts = Counter[str]()
        for name in names_of(formula):
            change = mutant(name)
            if change.wording:
                continue
            code = codes.get(name)
            verdict = "untried" if code is None else "unnoticed" if code in UNNOTICED else "noticed"
            if verdict == "unnoticed" and change[1:4] in reasons:
                verdict = "equivalent"
            if verdict == "unnoticed":
                print(f"{name}\n- {change.before}\n+ {change.after}\n")
            counts[verdict] += 1
        if counts["untried"]:
            lines.append(f"| {title} | {counts.total():,} | | | {counts['untried']:,} not tried |")
        else:
            sums += counts
            lines.append(row(title, counts))
    return "\n".join([*lines, row("all that were tried", sums)])


def row(title: str, counts: Counter[str]) -> str:
    share = counts["noticed"] / max(1, counts.total() - counts["equivalent"])
    return f"| {title} | {counts.total():,} | {counts['equivalent']:,} | {counts['noticed']:,} | {share:.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack.mutants", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to docs/reliability.md")
    parser.add_argument(
        "--kept", action="store_true", help="continue the last run, and retry the mutants that no test noticed"
    )
    parser.add_argument("--report", action="store_true", help="print the results of the last run and stop")
    parser.add_argument("--only", default="", help="only functions that match this pattern, as in bgt_core.posterior")
    options = parser.parse_args()
    os.chdir(ROOT)
    if not options.report:
        if not options.kept:
            shutil.rmtree(COPY, ignore_errors=True)
        make()
        try_out(options.only)
    table = report()
    print(table)
    if options.write:
        pages.write("mutants", table)


if __name__ == "__main__":
    main()
