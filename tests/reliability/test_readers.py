"""Every reader of users' files returns a result or raises a one-line error, whatever the file contains."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bgt_core import checkpoint, recipes
from bgt_core.errors import BgtError, DataError, UsageError
from bgt_core.files import parse_json
from bgt_core.recipes import Recipe
from bgt_core.vectors.arrays import read_npy
from tests.reliability import commands
from tests.reliability.readers import READERS

DEEP, LONG = "[" * 100_000, "1" * 6_000


@pytest.mark.parametrize("text", [DEEP, LONG, "NaN", '{"a": -Infinity}', "", "{", b"\xff\xfe", "\0", '{"a": 1} x'])
def test_what_is_no_json_is_one_line(text: str | bytes) -> None:
    with pytest.raises(DataError, match=r"^file: not valid JSON") as error:
        parse_json(text, "file")
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_comes_back(value: object) -> None:
    assert parse_json(json.dumps(value), "value") == value


@pytest.mark.parametrize("setting", ["d_model=1000000000", f"seed={10**30}", f"log_variance={10**400}"])
def test_sizes_are_bounded(setting: str) -> None:
    with pytest.raises(UsageError, match="should be a number from"):
        recipes.configure("bgt-small", recipes.parse_overrides([setting]))


def test_a_whole_number_may_stand_for_a_float(tiny: Callable[..., Recipe], tokenizer: object) -> None:
    recipe = recipes.configure("bgt-small", {**(tiny("bgt-small").arguments or {}), "log_variance": -3})
    recipe.build(tokenizer)  # type: ignore[arg-type]
    assert isinstance((recipe.arguments or {})["model.log_variance"], float)


@pytest.fixture
def with_config(saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """with_config(name={...}): a checkpoint with these entries in its configuration. Dictionaries are merged."""

    def call(**entries: object) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(saved, folder)
        config = json.loads((folder / "config.json").read_text())
        for name, entry in entries.items():
            config[name] = {**config[name], **entry} if name in config and isinstance(entry, dict) else entry
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return call


def test_shapes_are_compared_before_anything_is_built(
    with_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_config(arguments={"model.d_model": 4096})

    def never(*_: object) -> None:
        raise AssertionError("values were read")

    monkeypatch.setattr("bgt_core.checkpoint.load_tensors", never)
    with pytest.raises(DataError, match=r"has shape .*, but the recipe needs"):
        checkpoint.load(folder)


CARDS = [
    [], {"scores": []}, {"scores": {"STS": []}}, {"probes": {"a": 1}}, {"probes": [{"task": "length"}]},
    {"protocol": ["x"]}, {"data": [{"pairs": 3}]}, {"fidelity": [{"a": 1}, {"b": 1}]},
    {"scores": {"STS": {"semantic": {"deep": 1}}}},
]  # fmt: skip


@pytest.mark.parametrize("card", CARDS, ids=str)
def test_a_card_of_another_form_is_refused(card: object, with_config: Callable[..., Path]) -> None:
    with pytest.raises(DataError, match="card"):
        checkpoint.load(with_config(card=card))


@pytest.mark.parametrize("name", ["/etc/passwd", "../model.safetensors", "a/b", "..", ".", "x\0", "", "a" * 300])
def test_a_checkpoint_names_only_files_beside_it(name: str, with_config: Callable[..., Path]) -> None:
    with pytest.raises(DataError, match="expected the names of files in the same folder"):
        checkpoint.load(with_config(files={name: "0"}))


def test_an_array_is_as_long_as_it_says(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((3, 2)))
    content = path.read_bytes()
    assert (read_npy(path) == np.ones((3, 2))).all()
    for damaged in (content.replace(b"(3, 2)", b"(9999999999999, 2)"), content + b"more", b"plain text"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"x\.npy: not a \.npy file of numbers, or damaged"):
            read_npy(path)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_cannot_be_printed_is_said_once(unbuffered: str) -> None:
    """Printing to an unbuffered stdout fails at once; to a buffered one, at the end, after a line on stderr."""
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as out:
        code = "from bgt_core.cli import main; import sys; sys.argv=['bgt','data','download']; main()"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    *before, last = done.stderr.splitlines()
    assert done.returncode == 3 and last == "bgt: the output can't be written (No space left on device)."
    assert len(before) == (not unbuffered) and not any("can't be written" in line for line in before)


ALONE = ("sets", "store")  # these readers need further files besides their input
TOKENS = [
    b"\t", b"\n", b"\0", b"\xff\xfe", b"NaN", b"-1", b"9" * 400, b"[", b"{", b'"', b"\xef\xbb\xbf", b"..", b"(", b")"
]  # fmt: skip
PLACES = st.integers(0, 10**6)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["flip", "cut", "drop", "copy"]), PLACES, PLACES)
    | st.tuples(st.sampled_from(TOKENS) | st.binary(min_size=1, max_size=6), PLACES, PLACES),
    min_size=1, max_size=5,
)  # fmt: skip


def changed(right: bytes, changes: list[tuple[str | bytes, int, int]]) -> bytes:
    """Damage an input in a few places: flip bits, drop or copy blocks, or insert tokens that are hard to parse."""
    content = bytearray(right)
    for what, first, second in changes:
        place = first % (len(content) + 1)
        if isinstance(what, bytes):
            content[place:place] = what
        elif what == "flip" and place < len(content):
            content[place] ^= 1 << second % 8
        elif what == "cut":
            del content[place:]
        elif what == "drop":
            del content[place : place + 1 + second % 8]
        elif what == "copy":
            content[place:place] = content[second % (len(content) + 1) :][:40]
    return bytes(content)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of a small training run, a small probe and a split."""
    folder = tmp_path_factory.mktemp("readers")
    data = commands.shared_data(folder / "data")
    commands.warm()
    for name in ("train", "probe", "split"):
        end = commands.run(commands.commands()[name], folder / name, data)
        assert not end.code, end.errors
    files = folder / "files"
    files.mkdir()
    shutil.copy(folder / "probe" / "p.parquet", files / "cell.parquet")
    for name in ("tokenizer.model", "data/store.json"):
        shutil.copy(folder / "train" / "run" / name, files)
    shutil.copytree(folder / "split" / "split", files / "split")
    return files


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_answers_any_file_with_a_result_or_a_line(name: str, prepared: Path, tmp_path: Path) -> None:
    right, file, read, beside = READERS[name]
    right = right if isinstance(right, bytes) else (prepared / right).read_bytes()
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(right)
    if beside:
        shutil.copy(prepared / beside, path.parent)
    with suppress(BgtError) if name in ALONE else nullcontext():
        read(path)

    @settings(max_examples=30, deadline=5_000, suppress_health_check=[HealthCheck.too_slow])
    @given(CHANGES)
    def answers(changes: list[tuple[str | bytes, int, int]]) -> None:
        path.write_bytes(changed(right, changes))
        try:
            read(path)
        except BgtError as error:
            message = str(error)
        else:
            message = ""
        assert "\n" not in message and len(message) <= 2_000

    answers()
