"""Check the repository: names, commands, documents and packaging; no unsafe code and no private paths."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bgt_core import __version__, checkpoint
from probes.results import store

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def kept_files(*suffixes: str) -> list[Path]:
    """List the files that git tracks or would add; with `suffixes`, only those with such an ending."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    paths = [ROOT / name for name in names if name.endswith(suffixes or "")]
    broken = [path for path in paths if path.is_file()]
    assert broken, f"git lists no {suffixes} files in {ROOT}"
    return broken


@pytest.mark.parametrize("entry", PROJECT["project"]["scripts"].values())
def test_help_needs_no_torch(entry: str) -> None:
    module, function = entry.split(":")
    code = f"""
import sys
from {module} import {function}
sys.argv = ["command", "--help"]
try:
    {function}()
except SystemExit as end:
    assert not end.code, end.code
heavy = {{"torch", "sklearn", "pandas", "streamlit"}} & set(sys.modules)
assert not heavy, f"--help imports {{heavy}}"
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_links_in_documents_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in kept_files(".md")
        for link in re.findall(r"\]\(([^)\s#]+)", page.read_text("utf-8"))
        if not re.match(r"[a-z]+:", link) and not (page.parent / link).exists()
    ]
    assert not broken


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    private = re.compile(r"(?<![\w.:/*-])/(?:work|root|home|Users)\b")
    broken = []
    for path in kept_files():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:  # weights and pictures are not text
            continue
        broken += [f"{path.relative_to(ROOT)}:{n}: {line}" for n, line in enumerate(lines, 1) if private.search(line)]
    assert not broken


def loads_pickle(call: ast.Call) -> bool:
    """Return whether a call reads a file in a way that may run code from the file."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    match ast.unparse(call.func).split("."):
        case ["pickle" | "dill" | "joblib" | "cloudpickle", "load" | "loads" | "Unpickler"] | [*_, "read_pickle"]:
            return True
        case ["torch", "load"]:
            return getattr(options.get("weights_only"), "value", None) is not True
        case [*_, "load" | "open_memmap"]:
            return getattr(options.get("allow_pickle"), "value", False) is not False
    return False


def test_unsafe_loading_is_recognised() -> None:
    unsafe = ["pickle.load(f)", "torch.load(f)", "torch.load(f, weights_only=x)", "np.load(f, allow_pickle=True)"]
    for source in (*unsafe, "torch.load(f, weights_only=True)", "np.load(f)"):
        assert loads_pickle(ast.parse(source, mode="eval").body) is (source in unsafe), source  # type: ignore[arg-type]


def test_nothing_loads_a_pickle() -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in kept_files(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and loads_pickle(node)
    ]
    assert not broken


@pytest.mark.slow
def test_the_wheel_holds_the_library_and_the_app_inside_it_in_less_than_80_mb(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"bgt-{__version__}-py3-none-any.whl" and wheel.stat().st_size < 80e6
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = {path.relative_to(ROOT).as_posix() for path in kept_files()}
    kept = {name for name in tracked if name.startswith(("bgt_core/", "probes/")) and "/translator-fr-en/" not in name}
    assert names == kept | {f"bgt_core/bundled/{name}" for name in tracked if name.startswith("app/")}


def test_version_and_date_are_the_same_everywhere() -> None:
    cited = re.findall(r'^(?:version|date-released): "?([\d.-]+)', (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    newest = re.search(r"^## \[(\d\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest and [*newest.groups()] == cited and cited[0] == __version__
    kept = (ROOT / "docs" / "releasing.md").read_text("utf-8")
    assert f"checkpoints of format {checkpoint.FORMAT}," in kept and f"`{store.SCHEMA}`" in kept


def test_every_requirement_is_pinned_within_its_range() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = {canonicalize_name(pin.name): pin for pin in map(Requirement, (x for x in lines if x and x[0] != "#"))}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *chain.from_iterable(extras.values())]  # `make` installs the extras
    for requirement in map(Requirement, wanted):
        if requirement.name == PROJECT["project"]["name"]:
            continue
        (pin,) = pins[canonicalize_name(requirement.name)].specifier
        assert pin.operator == "==", f"{requirement.name} is not pinned"
        assert pin.version in requirement.specifier, f"{pin} is outside {requirement}"


@pytest.mark.parametrize("extra", ["app", "dev"])
def test_what_make_installs_is_pinned_by_hash(extra: str) -> None:
    """The files in `requirements` have the versions of constraints.txt, and all packages of the extra except torch."""
    pins = dict(re.findall(r"^(\S+)==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    locked = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements" / f"{extra}.txt").read_text("utf-8").strip()):
        name, version = re.match(r"(\S+)==(\S+)", entry).groups()  # type: ignore[union-attr]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), f"{name} has no hash; run: make lock"
        locked[canonicalize_name(name)] = version
    assert all(version == pins.get(name, version) for name, version in locked.items()), "run: make lock"
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"][extra]]
    names = {canonicalize_name(Requirement(text).name) for text in wanted}
    assert names - {"bgt", "torch"} <= set(locked), "run: make lock"


@pytest.mark.slow
@pytest.mark.long
def test_every_module_imports_without_fcntl() -> None:
    """On Windows, Python has no module fcntl."""
    script = """
import importlib, pkgutil, sys
sys.modules["fcntl"] = None
import bgt_core, probes
failed = []
for package in (bgt_core, probes):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # of another module: an extra that is not installed
                failed += [module.name] if error.name == "fcntl" else []
print(*failed)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
