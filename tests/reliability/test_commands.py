"""Commands that write files, if killed and started again, give the same results. They fail on a read-only folder."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability import commands

KILLED = ("train", "embed npy", "prepare")
READ_ONLY = ("train", "embed npy", "prepare", "sts", "probe")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    commands.warm()
    return commands.shared_data(tmp_path_factory.mktemp("commands") / "data")


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_a_killed_command_leaves_what_an_undisturbed_one_leaves(name: str, data: Path, tmp_path: Path) -> None:
    command, whole, draw = commands.commands()[name], tmp_path / "whole", random.Random(name)
    begun = time.monotonic()
    assert not commands.run(command, whole, data).code
    seconds = time.monotonic() - begun
    for number in range(2):
        out, arguments = tmp_path / str(number), command
        out.mkdir()
        process = commands.started(arguments, out, data)
        time.sleep(draw.uniform(0, 1.05 * seconds))
        process.kill()
        process.join()
        if (out / "run" / "run.json").exists():
            arguments = commands.RESUME
        end = commands.run(arguments, out, data)
        done = end.code == 2 and "exists already" in end.errors  # the command had ended before it was killed
        assert done or not end.code, end.errors
        assert commands.results(out) == commands.results(whole)
        assert not [file for file in commands.names(out) - commands.names(whole) if not file.startswith("cache/")]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nobody can write, not even root."""
    out = tmp_path / "out"
    out.mkdir()
    if os.geteuid():
        out.chmod(0o555)
        yield out
        out.chmod(0o755)
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", out], capture_output=True, check=False).returncode:
        pytest.skip("as root, this test must be allowed to mount a read-only file system")
    yield out
    subprocess.run(["umount", "--lazy", out], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", READ_ONLY)
def test_a_file_system_that_is_read_only_is_one_line(name: str, data: Path, read_only: Path) -> None:
    end = commands.run(commands.commands()[name], read_only, data)
    assert end.code in (3, 5) and "Traceback" not in end.errors and "can't be" in end.errors, end.errors
