"""`make mutants`: the core formulas with one thing changed at a time, by mutmut; a test should fail for each change.

The files that are changed are set in pyproject.toml, `tool.mutmut`, the functions and their tests in `FORMULAS`. Prints
what no test noticed, and a table; `--write` puts that into docs/reliability.md. Sources are changed in a copy, the
folder `mutants`.

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
from collections.abc import Iterator, Sequence
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


class Formula(NamedTuple):
    """Functions that hold a formula, "module:pattern of their names", and the tests that look at them.

    Tests are files or beginnings of the names of tests, as pytest has them.
    """

    functions: str
    tests: Sequence[str]


def under(folder: str, *tests: str) -> list[str]:
    return [f"tests/{folder}/test_{test}" for test in tests]


OF_BOOTSTRAP = under(
    "evaluation",
    *(
        f"bootstrap.py::test_{test}"
        for test in "a_r each e_t is_ p_ ranks shares two weights what wilsons holm_b".split()
    ),
    "bootstrap.py::test_an_interval_is",
    "comparison.py",
)
FORMULAS = {
    "Gaussian posteriors: KL, densities, draws": Formula("bgt_core/posterior/__init__:", ["tests/test_posterior.py"]),
    "von Mises-Fisher posteriors": Formula("bgt_core/posterior/(vmf|bessel):", ["tests/test_vmf.py"]),
    "distances of posteriors": Formula("bgt_core/posterior/distances:", ["tests/test_distances.py"]),
    "ELBO and its weights": Formula("bgt_core/objectives/elbo:", under("objectives", "elbo.py", "auxiliary.py")),
    "margin": Formula("bgt_core/objectives/(margin|altered):", under("objectives", "margin", "altered", "device")),
    "softmax over translations, distillation": Formula(
        "bgt_core/objectives/(contrast|composition|distillation):",
        under("objectives", "contrast", "composition", "distillation", "device"),
    ),
    "cross-entropy and sums of objectives": Formula(
        "bgt_core/objectives/(cross_entropy|auxiliary|combine):",
        under("objectives", "cross_entropy", "auxiliary", "combine"),
    ),
    "pooling": Formula("bgt_core/nets/pooling:", under("nets", "pooling")),
    "binding": Formula("bgt_core/nets/binding:", under("nets", "binding")),
    "bootstrap and intervals": Formula(f"{EVALUATION}/bootstrap:(?!.*x_holm)", OF_BOOTSTRAP),
    "Holm": Formula(f"{EVALUATION}/bootstrap:x_holm", OF_BOOTSTRAP),
    "differences of systems": Formula(f"{EVALUATION}/comparison:", under("evaluation", "comparison")),
    "retrieval": Formula(f"{EVALUATION}/retrieval:(?!.*as_dict)", under("evaluation", "retrieval")),
    "translation and style scores": Formula(
        f"{EVALUATION}/(translation|style):", under("evaluation", "translation", "style")
    ),
    "back-translation statistics": Formula(
        f"{EVALUATION}/backtranslation:(?!.*(as_dict|table|plain))", under("evaluation", "backtranslation")
    ),
    "triples": Formula(
        f"{EVALUATION}/triples:x_(evaluate|systems_of|paraphrase_nearer|exactly_tested|rows_by_kind|share)",
        under("evaluation", *(f"triples.py::test_{test}" for test in ("shares", "diff", "triples_of", "what_an"))),
    ),
    "fidelity": Formula(
        f"{EVALUATION}/fidelity/(measures|kept|roles):", under("evaluation/fidelity", "kept", "measures", "roles")
    ),
    "pairs": Formula(
        f"{EVALUATION}/pairs/(measures|baselines):",
        under("evaluation/pairs", "measures", "pairs.py::test_a_bag", "pairs.py::test_tfidf"),
    ),
    "STS": Formula(
        f"{EVALUATION}/sts/(score|compare|hard):(?!.*(x_explain|x_note|__str__))",
        under("evaluation/sts", "score", "compare", "hard"),
    ),
    "syntax": Formula(
        f"{EVALUATION}/syntax/(edit_distance|measures|pairing|score):(?!.*x_explain)",
        under("evaluation/syntax", "pairing", *(f"measures.py::test_{test}" for test in ("all", "dep", "the", "a_r"))),
    ),
    "codelength and V-information": Formula(f"{PROBES}/(mdl|information):", under("probes", "information")),
    "control tasks and learning curves": Formula(
        f"{PROBES}/(control_task|controls):",
        under("probes", "summary", *(f"controls.py::test_{test}" for test in ("keys", "a_key", "shuffling"))),
    ),
    "erasure": Formula(f"{PROBES}/erasure:", under("probes", "erasure")),
    "significance": Formula(
        f"{PROBES}/significance:",
        under(
            "probes",
            *(f"significance.py::test_{test}" for test in "a_p boot holm of_s resamples seeds the_error with".split()),
            "summary",
        ),
    ),
    "training and testing a probe": Formula(
        f"{PROBES}/(measure|language|senteval_protocol|splits|study|config):", under("probes", "measure", "splits")
    ),
    "scores of probes": Formula(f"{PROBES}/(summary|warnings):", under("probes", "summary")),
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
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    parser.add_argument("--kept", action="store_true", help="go on from the last run, and retry what no test noticed")
    parser.add_argument("--report", action="store_true", help="print what the last run found, and try nothing")
    parser.add_argument("--only", default="", help="functions to try, a pattern, as in bgt_core.posterior")
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
