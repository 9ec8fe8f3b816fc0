"""`make mutants`: the core formulas with one thing changed at a time, by mutmut; a test should fail for each change.

What is changed and which tests look at it is set in pyproject.toml, `tool.mutmut`. Prints what no test noticed, and a
table; `--write` puts that into docs/reliability.md. Sources are changed in a copy, the folder `mutants`.

A change that nobody can see is listed in equivalent.tsv with the reason, and one of an error's wording is no change of
a formula: neither counts.
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
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from attack import pages, trials

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "mutants"
OUTCOMES = COPY / "outcomes.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")
UNNOTICED = (trials.SURVIVED, trials.NO_TEST)
EVALUATION, PROBES = "bgt_core/evaluation", "probes/measures"
FORMULAS = {  # the functions that hold a formula: "module:pattern of their names"
    "Gaussian posteriors: KL, densities, draws": ["bgt_core/posterior/__init__:"],
    "von Mises-Fisher posteriors": ["bgt_core/posterior/vmf:", "bgt_core/posterior/bessel:"],
    "distances of posteriors": ["bgt_core/posterior/distances:"],
    "ELBO and its weights": ["bgt_core/objectives/elbo:"],
    "margin": ["bgt_core/objectives/(margin|altered):"],
    "softmax over translations, distillation": ["bgt_core/objectives/(contrast|composition|distillation):"],
    "cross-entropy and sums of objectives": ["bgt_core/objectives/(cross_entropy|auxiliary|combine):"],
    "pooling": ["bgt_core/nets/pooling:"],
    "binding": ["bgt_core/nets/binding:"],
    "bootstrap and intervals": [f"{EVALUATION}/bootstrap:(?!.*x_holm)"],
    "Holm": [f"{EVALUATION}/bootstrap:x_holm"],
    "differences of systems": [f"{EVALUATION}/comparison:"],
    "retrieval": [f"{EVALUATION}/retrieval:(?!.*as_dict)"],
    "translation and style scores": [f"{EVALUATION}/(translation|style):"],
    "back-translation statistics": [f"{EVALUATION}/backtranslation:(?!.*(as_dict|table|plain))"],
    "triples": [f"{EVALUATION}/triples:x_(evaluate|systems_of|paraphrase_nearer|exactly_tested|rows_by_kind|share)"],
    "fidelity": [f"{EVALUATION}/fidelity/(measures|kept|roles):"],
    "pairs": [f"{EVALUATION}/pairs/(measures|baselines):"],
    "STS": [f"{EVALUATION}/sts/(score|compare|hard):(?!.*(x_explain|x_note|__str__))"],
    "syntax": [f"{EVALUATION}/syntax/(edit_distance|measures|pairing|score):(?!.*x_explain)"],
    "codelength and V-information": [f"{PROBES}/(mdl|information):"],
    "control tasks and learning curves": [f"{PROBES}/(control_task|controls):"],
    "erasure": [f"{PROBES}/erasure:"],
    "significance": [f"{PROBES}/significance:"],
    "training and testing a probe": [f"{PROBES}/(measure|language|senteval_protocol|splits|study|config):"],
    "scores of probes": [f"{PROBES}/(summary|warnings):"],
}


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
    found = {}
    for path in COPY.rglob("*.py.meta"):
        kept = json.loads(path.read_text("utf-8"))
        found |= {where(name): kept["hash_by_function_name"].get(function_of(name)) for name in kept["exit_code_by_key"]}
    return found


def where(name: str) -> str:
    """The module and function of a mutant."""
    return name.rpartition("__mutmut_")[0]


def names_of(formula: str) -> Iterator[str]:
    """The mutants of a formula."""
    modules, pattern = formula.split(":")
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
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and "__mutmut" in node.name]
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
    function = f"{module}.{function_of(name).removeprefix('x').strip('_ǁ').replace('ǁ', '.')}"
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
    return {name: code for name, code in map(json.loads, lines)}


def equivalent() -> dict[tuple[str, str, str], str]:
    """Why a change of a function can't be seen, by function, lines before and lines after."""
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        return {(row[0], row[1], row[2]): row[3] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def try_out(names: list[str], tests: list[str]) -> None:
    """Run the tests against these mutants."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]
    tests = tests or settings["pytest_add_cli_args_test_selection"]
    arguments = [sys.executable, "-P", "-m", "attack.trials", str(OUTCOMES), *settings["pytest_add_cli_args"], *tests]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(
        [str(COPY), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    subprocess.run(arguments, cwd=COPY, env=environment, input=json.dumps(names), text=True, check=True)


def report() -> str:
    """Print what no test noticed, and return the table."""
    reasons, codes = equivalent(), outcomes()
    lines = ["| formula | mutants | equivalent | noticed | share |", "|---|---:|---:|---:|---:|"]
    sums = [0, 0, 0]
    for title, formulas in FORMULAS.items():
        counts = [0, 0, 0]  # mutants, equivalent, noticed
        for name in (name for formula in formulas for name in names_of(formula)):
            if (code := codes.get(name)) is None:
                continue
            change = mutant(name)
            if change.wording:
                continue
            same = code in UNNOTICED and change[1:4] in reasons
            counts = [counts[0] + 1, counts[1] + same, counts[2] + (code not in UNNOTICED)]
            if code in UNNOTICED and not same:
                print(f"{name}\n- {change.before}\n+ {change.after}\n")
        if counts[0]:
            sums = [one + other for one, other in zip(sums, counts, strict=True)]
            lines.append(row(title, *counts))
    return "\n".join([*lines, row("all", *sums)])


def row(title: str, mutants: int, same: int, noticed: int) -> str:
    return f"| {title} | {mutants:,} | {same:,} | {noticed:,} | {noticed / max(1, mutants - same):.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack.mutants", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    parser.add_argument("--kept", action="store_true", help="go on from the last run, and retry what no test noticed")
    parser.add_argument("--report", action="store_true", help="print what the last run found, and try nothing")
    parser.add_argument("--only", default="", help="functions to try, a pattern, as in bgt_core.posterior")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run, in place of those in pyproject.toml")
    options = parser.parse_args()
    os.chdir(ROOT)
    if not options.report:
        if not options.kept:
            shutil.rmtree(COPY, ignore_errors=True)
        make()
        done = {name for name, code in outcomes().items() if code not in UNNOTICED}
        names = [name for formulas in FORMULAS.values() for formula in formulas for name in names_of(formula)]
        try_out([name for name in names if re.search(options.only, name) and name not in done], options.tests)
    table = report()
    print(table)
    if options.write:
        pages.write("mutants", table)


if __name__ == "__main__":
    main()
