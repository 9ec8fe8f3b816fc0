"""A file is either written completely or absent, and a lock is released when its process ends."""

import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from bgt_core import PRETRAINED, files
from bgt_core.errors import UsageError


def fail_half_way(context: AbstractContextManager[Path]) -> None:
    """Write part of a file or folder, then raise an exception."""
    with suppress(RuntimeError), context as partial:
        (partial / "part" if partial.is_dir() else partial).write_text("half")
        raise RuntimeError


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    fail_half_way(files.atomic_file(path))
    assert list(path.parent.iterdir()) == []
    with files.atomic_file(path) as partial:
        partial.write_text("whole")
        assert not path.exists()
    fail_half_way(files.atomic_file(path))
    assert [entry.read_text() for entry in path.parent.iterdir()] == ["whole"]


WRITER = """
import sys
from pathlib import Path
from bgt_core import PRETRAINED, files
with files.atomic_file(Path(sys.argv[1])) as partial:
    partial.write_text("theirs")
    print(partial.name, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_goes_with_the_next_one_and_what_another_writes_stays(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin and writer.stdout
        partial = tmp_path / writer.stdout.readline().strip()
        files.write_text(path, "ours")
        assert partial.read_text() == "theirs"
        writer.kill()
    elsewhere = tmp_path / f"{partial.name.partition('-')[0]}-000000.partial"  # a partial file of another machine
    elsewhere.write_text("theirs")
    files.write_text(path, "ours again")
    assert sorted(tmp_path.iterdir()) == sorted([path, elsewhere]) and path.read_text() == "ours again"


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    fail_half_way(files.atomic_folder(folder))
    assert list(tmp_path.iterdir()) == []
    with files.atomic_folder(folder) as partial:
        (partial / "a").touch()
    assert [path.name for path in folder.iterdir()] == ["a"]
    with pytest.raises(UsageError, match="exists already"), files.atomic_folder(folder):
        pass


def test_a_lock_keeps_others_out_and_goes_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom bgt_core.files import file_lock\n"
        f"with file_lock(Path({str(path)!r})) as ours:\n    print(ours, flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with files.file_lock(path) as ours:
            assert not ours
    finally:
        holder.kill()
        holder.communicate()
    with files.file_lock(path) as ours:
        assert ours


def test_a_stored_name_of_an_encoder_leads_to_it_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/a", "words", "x:y"):
        Path(name).mkdir(parents=True)
    for name, stored in {
        "runs/a": f"{tmp_path}/runs/a",
        "split:runs/a": f"split:{tmp_path}/runs/a",
        "x:y": f"{tmp_path}/x:y",
        "baseline:words": "baseline:words",
        "python:runs:a": "python:runs:a",
        "org/name@main": "org/name@main",
        "sentence-transformers:org/name": "sentence-transformers:org/name",
        "bgt-multilingual": "bgt-multilingual",
        str(PRETRAINED): "bgt-en-fr",
        "": "",
    }.items():
        assert files.lasting_name(name) == stored == files.lasting_name(stored)
