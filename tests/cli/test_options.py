"""An option has the same meaning in all commands of `bgt` and `bgt-probe`."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text

from bgt_core.cli import program as bgt
from probes.cli import app as bgt_probe

ROOT = Path(__file__).resolve().parents[2]

# option whose help text may differ between commands -> the words with which all these help texts must begin
MEANINGS = {
    "--columns": "Columns",
    "--corrections": "Number of correction rounds",
    "--count": "Number of",
    "--data": "Data",
    "--dev": "Labelled pairs",
    "--into": "Target language",
    "--lang": "Language of",
    "--langs": "Languages of",
    "--latent": "Latent",
    "--lengths": "Minimum and maximum number of words",
    "--limit": "Maximum number of",
    "--max-length": "Maximum length",
    "--model": "A checkpoint or run",
    "--n-best": "Number of",
    "--out": "Output",
    "--precision": "fp32, bf16",
    "--rerank": "Embed every text of the beam",
    "--set": "A setting of",
    "--tokenizer": "A SentencePiece model",
    "--train": "Training",
    "--vectors": "Instead of --",
}

# option -> the commands that have their own default, which published results used; all others share one default
DEFAULTS = {
    "--beam": {
        "bgt generate": 8,
        "bgt evaluate inversion": 8,
        "bgt evaluate fidelity": 4,
        "bgt evaluate minimal-pairs": 4,
        "bgt evaluate transfer": 4,
    },
    "--device": {},
    "--json": {},
    "--k": {},
    "--precision": {},
    "--resamples": {},
    "--seed": {},
}


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (command name, parameter) for each parameter of a program and of all its subcommands."""
    yield from ((name, parameter) for parameter in command.params)
    for sub in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from walk(command.get_command(None, sub), f"{name} {sub}")


def programs() -> Iterator[tuple[str, Any]]:
    for program, name in ((bgt, "bgt"), (bgt_probe, "bgt-probe")):
        yield from walk(typer.main.get_command(program), name)


@pytest.fixture(scope="module")
def options() -> dict[str, dict[str, Any]]:
    """Return {option: {command: typer's object for the option}} for all options."""
    by_name: dict[str, dict[str, Any]] = defaultdict(dict)
    for command, parameter in programs():
        if parameter.param_type_name == "option":
            by_name[max(parameter.opts, key=len)][command] = parameter
    assert len(by_name) > 80
    return by_name


def test_a_name_means_one_thing(options: dict[str, dict[str, Any]]) -> None:
    helps = {name: {parameter.help or "" for parameter in uses.values()} for name, uses in options.items()}
    assert not [name for name, texts in helps.items() if not all(texts)]
    assert {name for name, texts in helps.items() if len(texts) > 1} == MEANINGS.keys()
    strangers = [text for name, start in MEANINGS.items() for text in helps[name] if not text.startswith(start)]
    assert not strangers


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_name_has_one_default(name: str, options: dict[str, dict[str, Any]]) -> None:
    own = {command: options[name][command].default for command in DEFAULTS[name]}
    assert own == DEFAULTS[name]
    others = {parameter.default for command, parameter in options[name].items() if command not in own}
    assert len(others) == 1


def errors(folder: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield (file and line, text before the first inserted value, argument `parameter`) of each error in the code."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("UsageError", "NotFound", "DataError"):
                continue
            message = node.args[0] if node.args else None
            if isinstance(message, ast.JoinedStr):
                message = message.values[0]
            text = message.value if isinstance(message, ast.Constant) else ""
            named = {keyword.arg: keyword.value for keyword in node.keywords}.get("parameter")
            parameter = named.value if isinstance(named, ast.Constant) else None
            yield f"{path.relative_to(ROOT)}:{node.lineno}", str(text), parameter


@pytest.mark.parametrize("folder", ["bgt_core", "probes", "analysis"])
def test_an_error_carries_its_parameter_and_does_not_spell_it(folder: str) -> None:
    spelled = [f"{place}: {text}" for place, text, _ in errors(folder) if text.startswith(("--", "`"))]
    assert not spelled, "\n".join(spelled)


@pytest.mark.parametrize("folder", ["bgt_core/cli", "probes"])
def test_an_error_of_a_command_names_one_of_its_parameters(folder: str) -> None:
    names = {parameter.name for _, parameter in programs()}
    unknown = [
        f"{place}: {parameter}" for place, _, parameter in errors(folder) if parameter and parameter not in names
    ]
    assert not unknown, "\n".join(unknown)


def test_help_has_no_markup() -> None:
    """Rich would interpret [words] in square brackets as markup, and would drop them from the help."""
    commands = [typer.main.get_command(bgt), typer.main.get_command(bgt_probe)]
    commands += getattr(commands[0], "commands", {}).values()
    texts = [each.help or "" for each in commands] + [getattr(each, "help", None) or "" for _, each in programs()]
    assert not [text for text in texts if Text.from_markup(text).plain != text.replace("\\[", "[")]
