"""Tests mirror the modules: tests/X/test_Y.py tests bgt_core/X/Y.py, and tests/app/X/test_Y.py tests app/X/Y.py."""

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("analysis", "app", "bench", "bgt_core", "probes")

# Folders and files with tests of whole programs, documents or the repository, not of a single module.
WHOLE = ("browser", "end_to_end", "golden", "reliability")
ELSEWHERE = """
analysis/test_notebooks.py app/test_hostile_files.py encoders/test_misuse.py probes/tasks/test_parsed_tasks.py
test_close.py test_docs.py test_examples.py test_guide.py test_house.py test_mirror.py test_structure.py test_walks.py
""".split()

# a folder of small modules -> the file that tests all of them
TOGETHER = {"probes/tasks": "tests/probes/tasks/test_text_tasks.py"}

# Modules that are covered by the tests of other modules. When such a module gets a test file, remove it here.
WITHOUT_A_FILE = """
bgt_core/__init__.py
bgt_core/errors.py
bgt_core/startup.py
bgt_core/evaluation/edit_distance.py
probes/__init__.py
probes/classifiers/baselines.py
""".split()


def files(*folders: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\n")
    return [Path(name) for name in names if name.endswith(".py") and (ROOT / name).is_file()]


def defines(module: Path) -> bool:
    """Return whether a module defines a function or a class. An `__init__.py` often only imports names."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    return any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in tree.body)


def homes(module: Path) -> list[Path]:
    """Return the files that may test a module: the file of the same name, or the file that tests the module's folder.

    The modules of one page of the app are in one folder, and test_page.py tests them together.
    """
    folder = Path("tests", *module.parts[module.parts[0] == "bgt_core" : -1])
    own = [] if module.stem.startswith("__") else [folder / f"test_{module.stem}.py"]
    of_folder = f"test_{module.parent.name}.py"
    page = [folder / "test_page.py"] if module.parts[0] == "app" else []
    together = [Path(path) for name, path in TOGETHER.items() if module.is_relative_to(name)]
    return [*own, folder / of_folder, *page, *together]


def test_every_module_has_a_test_file() -> None:
    tests = set(files("tests"))
    modules = [module for module in files(*PACKAGES) if defines(module) and module.stem != "__main__"]
    without = {str(module) for module in modules if not tests.intersection(homes(module))}
    lost, tested = without - set(WITHOUT_A_FILE), set(WITHOUT_A_FILE) - without
    assert not lost, f"no test file of their own: {sorted(lost)}"
    assert not tested, f"tested now, or gone: {sorted(tested)}"


def test_every_test_file_is_where_its_module_is() -> None:
    expected = {home for module in files(*PACKAGES) for home in homes(module)}
    tests = [path for path in files("tests") if path.stem.startswith("test_") and path.parts[1] not in WHOLE]
    lost = [str(path) for path in tests if path not in expected and str(path.relative_to("tests")) not in ELSEWHERE]
    assert not lost, "no module of that name:\n" + "\n".join(lost)
