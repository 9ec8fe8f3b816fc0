"""Check the structure of the code: sizes, parameters, names and layers. Most tests only read the source."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.sizes import sizes

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = ("analysis", "app", "bench", "bgt_core", "probes")
PRODUCTION = (*PACKAGES, "docs", "examples")

LINES_OF_A_FILE = 500
LINES_OF_A_FUNCTION = 70
PARAMETERS = 12
MODULES_AT_THE_TOP = 12
SIZES = {
    "lines of Python outside tests": 40_000,
    "lines of Python in tests": 27_980,
    "files of Python outside tests": 236,
    "commands": 27,
    "options": 266,
}

# Matches an absolute tolerance below 0.001, whether it is given explicitly or is the default of a library.
LITTLE = r"(?:[\d.]+e-(?:[4-9]|\d\d)|0\.000\d+)"
ABSOLUTE = re.compile(
    rf"\batol=(?!0[,)])|\babs=-?{LITTLE}|<=? -?{LITTLE}(?! \*)|{LITTLE} >=? "
    r"|^(?!.* not |.*\batol=0[,)]).*\b(?:allclose|isclose|torch\.testing\.assert_close)\("
)

# Names that are too vague, except in tests.
VAGUE = {"asked", "said", "told", "wish", "wishes"}

# Each of these names may belong to only one class, because several classes once shared them.
ONE_CLASS = "Cell Contrast Corpus Encoder Mean Place Plan Point Report Row Rules Sample Side Source Table".split()

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources() -> dict[Path, tuple[str, ast.Module]]:
    """Return path -> (text, syntax tree) of each Python file that is committed or would be committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    texts = {Path(name): (ROOT / name).read_text("utf-8") for name in names if name and (ROOT / name).is_file()}
    assert texts, f"git lists no Python files in {ROOT}"
    return {path: (text, ast.parse(text)) for path, text in texts.items()}


def production() -> dict[Path, tuple[str, ast.Module]]:
    return {path: source for path, source in sources().items() if path.parts[0] in PRODUCTION}


def nodes(kind: type | tuple[type, ...], of: Callable[[], dict[Path, tuple[str, ast.Module]]]) -> Iterator[tuple]:
    """Yield (path, node) for every syntax node of this kind."""
    for path, (_, tree) in of().items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield path, node


def parameters(function: Function) -> list[ast.arg]:
    """Return all parameters except `self` and `cls`."""
    every = function.args
    stars = [star for star in (every.vararg, every.kwarg) if star]
    named = [*every.posonlyargs, *every.args, *every.kwonlyargs, *stars]
    return [parameter for parameter in named if parameter.arg not in ("self", "cls")]


def is_command(function: Function) -> bool:
    """Return whether a function is a command: its annotations use typer's types, or types named `...Option`."""
    notes = [ast.unparse(parameter.annotation) for parameter in parameters(function) if parameter.annotation]
    return any(re.search(r"typer\.(Option|Argument)|\w(Option|Argument)\b", note) for note in notes)


def length(function: Function) -> int:
    """Count the lines of a function, from `def` to its end. The parameters of a command are not counted."""
    start = function.body[0].lineno if is_command(function) else function.lineno
    return (function.end_lineno or start) - start + 1


def functions() -> Iterator[tuple[Path, Function]]:
    for path, function in nodes((ast.FunctionDef, ast.AsyncFunctionDef), sources):
        if path.parts[:2] != ("bgt_core", "grammar"):
            yield path, function


def longer(count: Callable[[Function], int], most: int, exempt: Callable[[Function], bool]) -> list[str]:
    """List the functions for which `count` returns more than `most`, without the functions that are exempt."""
    counts = [(path, function, count(function)) for path, function in functions() if not exempt(function)]
    return [f"{path}:{each.lineno}: {each.name} has {number}" for path, each, number in counts if number > most]


def test_functions_have_few_parameters() -> None:
    many = longer(lambda function: len(parameters(function)), PARAMETERS, is_command)
    assert not many, f"more than {PARAMETERS} parameters: group what belongs together\n" + "\n".join(many)


def test_functions_are_short() -> None:
    long = longer(length, LINES_OF_A_FUNCTION, lambda function: False)
    assert not long, f"more than {LINES_OF_A_FUNCTION} lines\n" + "\n".join(long)


def test_files_are_short() -> None:
    counts = {path: text.count("\n") for path, (text, _) in production().items()}
    long = [f"{path}: {lines}" for path, lines in counts.items() if lines > LINES_OF_A_FILE]
    assert not long, f"more than {LINES_OF_A_FILE} lines: split the file\n" + "\n".join(long)


def test_there_is_no_more_than_before() -> None:
    """The numbers that `python -m tests.sizes` prints must not grow. If a number falls, lower its limit here."""
    now = sizes()
    grown = {name: now[name] for name, most in SIZES.items() if now[name] > most}
    assert not grown, f"more than {SIZES}: remove as much as you add"


def test_the_library_has_few_modules_at_its_top() -> None:
    top = [path.name for path in sources() if path.parent == Path("bgt_core") and not path.stem.startswith("__")]
    assert len(top) <= MODULES_AT_THE_TOP, sorted(top)


def test_every_module_has_a_layer() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    exhaustive = [contract for contract in contracts if contract.get("exhaustive")]
    assert {contract["type"] for contract in exhaustive} == {"layers"}
    containers = [name for contract in exhaustive for name in contract["containers"]]
    assert sorted(containers) == sorted([*PACKAGES, "app.core"])
    assert set(PROJECT["tool"]["importlinter"]["root_packages"]) == set(PACKAGES)
    assert {name for contract in exhaustive for name in contract.get("exhaustive_ignores", [])} <= {"__main__"}


def test_what_a_page_computes_and_charts_is_drawn_by_its_layout() -> None:
    """Only page.py may draw on a page of the app. `compute.py` and `chart.py` may use Streamlit only for its caches."""
    drawn = [
        f"{path}:{node.lineno}: st.{node.attr}"
        for path, node in nodes(ast.Attribute, production)
        if path.parts[0] == "app" and path.stem in ("chart", "compute")
        if ast.unparse(node.value) == "st" and node.attr not in ("cache_data", "cache_resource")
    ]
    assert not drawn, "\n".join(drawn)


def test_tensors_are_not_compared() -> None:
    """A dataclass's `__eq__` needs the truth value of `field == field`, which is an error for tensors and arrays."""
    wrong = []
    for path, node in nodes(ast.ClassDef, sources):
        fields = [ast.unparse(item.annotation) for item in node.body if isinstance(item, ast.AnnAssign)]
        if not any(re.search(r"\b(Tensor|ndarray|NDArray)\b", field) for field in fields):
            continue
        for decorator in map(ast.unparse, node.decorator_list):
            if decorator.startswith("dataclass") and "eq=False" not in decorator:
                wrong.append(f"{path}:{node.lineno}: {node.name}")
    assert not wrong, "@dataclass(eq=False) is missing\n" + "\n".join(wrong)


def identifiers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield (name, line) for every name that a module defines or uses."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, line
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, line
            case ast.keyword(arg=str(name)):
                yield name, node.value.lineno
            case ast.alias(name=name, asname=alias):
                yield from ((part, line) for part in [*name.split("."), *([alias] if alias else [])])


def test_a_name_names_something() -> None:
    vague = [
        f"{path}:{line}: {name}"
        for path, (_, tree) in production().items()
        for name, line in identifiers(tree)
        if name in VAGUE
    ]
    assert not vague, "\n".join(sorted(set(vague)))


def test_a_word_names_one_class() -> None:
    names = Counter(node.name for _, node in nodes(ast.ClassDef, production))
    assert not [name for name in ONE_CLASS if names[name] > 1]


def test_rounding_is_measured_by_the_size_of_the_numbers() -> None:
    """Processors round differently, so tolerances must grow with the numbers: use `tests/close.py` or `rel=`."""
    lines = [
        f"{path}:{number}: {line.strip()}"
        for path, (text, _) in sources().items()
        for number, line in enumerate(text.splitlines(), 1)
        if path.parts[0] == "tests" and path.stem not in ("close", "test_structure") and ABSOLUTE.search(line)
    ]
    assert not lines, "\n".join(lines)
