"""Run the examples of README.md and of the guide. All `sh` and `python` blocks of a page run in order, in one folder.

A block after a line `<!-- not run: REASON -->` is skipped. A `text` block is the expected output of the block before
it; `...` matches any text. If a model has changed, `BGT_RENEW=1 python -m pytest tests/test_guide.py` writes the new
outputs.
"""

import doctest
import glob
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from itertools import groupby
from pathlib import Path

import pytest
import torch

import probes.cli
from bgt_core import cli
from bgt_core.data.examples import example_sentences

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
COMMANDS = {"bgt": cli.main, "bgt-probe": probes.cli.main}
BLOCK = re.compile(r"(^<!-- not run: [^\n]+ -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"|", "<", "<<", "&&"}


def blocks(page: str) -> list[tuple[bool, str, str]]:
    """Return for each code block of a page: whether it is skipped, its kind ("sh", "python", "text", ...), its text."""
    return [(bool(skip), kind, text) for skip, kind, text in BLOCK.findall(page)]


def is_command(line: str) -> bool:
    """Return whether a line is a single `bgt` or `bgt-probe` command, without a pipe or other shell syntax."""
    return line.split(" ")[0] in COMMANDS and SHELL.isdisjoint(shlex.split(line, comments=True))


def run_command(line: str) -> str:
    """Run `bgt ...` or `bgt-probe ...` in this process, because a new process would be slow. Return its output."""
    words = shlex.split(line, comments=True)
    words, file = (words[:-2], words[-1]) if ">" in words else (words, None)
    sys.argv = [match for word in words for match in sorted(glob.glob(word)) or [word]]
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(stdout), pytest.raises(SystemExit) as end:
        COMMANDS[words[0]]()
    assert not end.value.code, line
    stdout.seek(0)
    text = stdout.read()
    if file:
        Path(file).write_text(text, "utf-8")
    return "" if file else text


def run_shell(text: str) -> str:
    lines = [line for line in re.sub(r"\\\n", "", text).splitlines() if line[:1] != "#"]
    printed = ""
    for ours, group in groupby(lines, is_command):
        if ours:
            printed += "".join(map(run_command, group))
        else:
            command = ["sh", "-e", "-c", "\n".join(group)]
            printed += subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return printed


def run_python(text: str, names: dict[str, object]) -> str:
    with redirect_stdout(io.StringIO()) as stdout:
        exec(compile(text, "<page>", "exec"), names)
    return stdout.getvalue()


def stand_in(folder: Path) -> None:
    """Save a sentence-transformers model with random subword vectors, which some pages need."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    texts = (text for pair in example_sentences(["en", "fr"]) for text in pair)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=2_000, show_progress=False))
    torch.manual_seed(0)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=64)], device="cpu").save(str(folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] if page.stem == "split" else [], id=page.stem) for page in PAGES],
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "page"
    stored = Path("analysis", "results", "reproduce")
    shutil.copytree(ROOT / stored, folder / stored)
    if page.stem == "mixed-search":
        stand_in(folder / "my-encoder")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    source = page.read_text("utf-8")
    names: dict[str, object] = {}
    printed: str | None = None
    wrong = []
    for skipped, kind, text in blocks(source):
        if kind == "text" and printed is not None and not skipped:
            options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            if not doctest.OutputChecker().check_output(text, printed, options):
                wrong.append(f"the page says\n{text}\nprinted is\n{printed}")
                source = source.replace(f"```text\n{text}```", f"```text\n{printed.strip()}\n```")
        elif skipped or kind not in ("sh", "python"):
            printed = None
        else:
            printed = run_shell(text) if kind == "sh" else run_python(text, names)
    if wrong and os.environ.get("BGT_RENEW"):
        page.write_text(source, "utf-8")
    assert not wrong, "\n".join(wrong)


def test_every_page_has_an_example_that_runs() -> None:
    for page in PAGES:
        examples = [kind for skipped, kind, _ in blocks(page.read_text("utf-8")) if not skipped]
        assert {"sh", "python"} & set(examples), page
