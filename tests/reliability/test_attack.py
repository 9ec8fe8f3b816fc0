"""`make attack` in small: some tries of every part, and one tried again by its seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attack import commands, fuzz
from attack.__main__ import PARTS, table
from attack.trying import Tried
from bgt_core.errors import DataError

ROOT = Path(__file__).resolve().parents[2]


def attack(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "attack", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=500
    )


@pytest.mark.slow
def test_nothing_of_a_small_attack_gets_through() -> None:
    done = attack("fuzz", "--count", "400")
    assert done.returncode == 0, done.stdout
    assert "fuzz: 400 of 400 tried, 0 failed" in done.stdout
    done = attack("hostile", "states", "disks", "kills", "--count", "6", "--seed", "5")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("6 of 6 tried, 0 failed") == 4 and "seeds from 5 on" in done.stdout


@pytest.mark.slow
def test_one_try_is_tried_again_by_its_seed() -> None:
    done = attack("hostile", "--replay", "7")
    assert done.returncode == 0 and "hostile: 1 of 1 tried" in done.stdout
    assert attack("nonsense").returncode == 2


def test_a_command_that_ends_in_a_traceback_or_hangs_is_a_failure() -> None:
    assert not commands.unclean(commands.Ended(3, "bgt: x: can't be written (No space left on device)."))
    assert commands.unclean(commands.Ended(1, "Traceback (most recent call last): ..."))
    assert commands.unclean(commands.Ended(0, "Traceback (most recent call last): ..."))
    assert commands.unclean(commands.Ended(-9, "hung for 120 seconds"))


def test_inputs_are_the_same_again_and_differ_by_their_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reader(path: Path) -> None:
        seen.append(path.read_bytes())
        if seen[0] == seen[-1] and len(seen) > 1:
            raise DataError("long " * 1_000)
        raise KeyError("x")

    seen: list[bytes] = []
    monkeypatch.setattr(fuzz, "readers", lambda prepared: {"one": (b"a right input", "x", reader)})
    assert fuzz.attack(1, tmp_path, tmp_path / "1").startswith("one: KeyError")
    assert fuzz.attack(1, tmp_path, tmp_path / "2") == ""  # a message of ours is short, however long it was
    assert fuzz.attack(2, tmp_path, tmp_path / "1").startswith("one: KeyError")
    assert seen[0] == seen[1] != seen[2]


def test_the_table_counts_what_was_tried() -> None:
    shown = table([Tried("fuzz", 100_000, [(3, "x")], 4.25)])
    assert shown.splitlines()[-1] == "| fuzz | 100,000 | 1 | 4.2 |" and set(PARTS) >= {"fuzz", "kills", "disks"}


READ_ONLY = ("train", "embed npy", "prepare", "export", "mine", "sts", "probe", "reproduce", "store", "backtranslate")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    commands.warm()
    return commands.shared_data(tmp_path_factory.mktemp("attack") / "data")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that can't be written, for root neither."""
    out = tmp_path / "out"
    out.mkdir()
    if os.geteuid():
        out.chmod(0o555)
        yield out
        out.chmod(0o755)
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", out], capture_output=True, check=False).returncode:
        pytest.skip("this root may not mount, and nothing else is read-only for it")
    yield out
    subprocess.run(["umount", "--lazy", out], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", READ_ONLY)
def test_a_file_system_that_is_read_only_is_one_line(name: str, data: Path, read_only: Path) -> None:
    end = commands.run(commands.commands()[name].arguments, read_only, data)
    assert end.code in (3, 5) and "Traceback" not in end.errors and "can't be" in end.errors, end.errors
