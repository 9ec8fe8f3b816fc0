"""How the benchmarks measure and what they write; their figures are nobody's test."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import generation, gpu
from benchmarks.__main__ import GROWTH, document, measurements
from benchmarks.growth import Curve, CurvePoint
from benchmarks.measure import Measurement, interleave, over, page, peak_memory, profile
from benchmarks.record import Page, shown
from benchmarks.workload import longer, pairs_of, released_batches


def row(ratios: list[float], target: str) -> Measurement:
    return Measurement("a step", "a slower one", ratios, target, "2 s", "4 s", "exact", "mm 60%", "1 s", 0.5)


def measured(rows: Sequence[Measurement | Curve], *arguments: str) -> Page:
    """A page as it is stored and read."""
    stored = {"command": " ".join(arguments), "date": "2026-01-01", "minutes": 1.0, "machine": "a machine"}
    return Page(**json.loads(json.dumps({**stored, "rows": [asdict(row) for row in rows]})))


@pytest.mark.parametrize(
    ("ratios", "target", "met"),
    [
        ([1.0, 9.0, 3.0], ">= 3", True),
        ([1.0, 2.9, 9.0], ">= 3", False),
        ([0.6], "<= 0.6", True),
        ([0.7], "<= 0.6", False),
        ([9.0], ">= 50 % of the floor", True),  # a row reaches half of its floor
        ([9.0], ">= 51 % of the floor", False),
    ],
)
def test_a_target_is_met_by_the_median_or_the_share(ratios: list[float], target: str, met: bool) -> None:
    assert row(ratios, target).met is met


def test_sides_alternate_over_the_same_rounds_after_a_warm_up() -> None:
    seen: list[tuple[str, int]] = []

    def ours(number: int) -> None:
        seen.append(("ours", number))

    def peer(number: int) -> None:
        seen.append(("peer", number))
        until = time.process_time() + 0.002
        while time.process_time() < until:
            pass

    fast, slow = interleave(ours, peer, threads=1, rounds=3)
    assert seen[:2] == [("ours", 0), ("peer", 0)]
    assert sorted(seen[2:]) == [(side, number) for side in ("ours", "peer") for number in range(3)]
    assert seen[2][0] != seen[4][0]  # who comes first changes
    assert min(over(slow, fast)) > 1


def test_peak_memory_is_that_of_tensors_alive_together() -> None:
    def work() -> None:
        first = torch.ones(1000, 250)  # 1 MB
        second = torch.cat([first, first])  # 2 MB
        del first
        second.add_(1)

    assert peak_memory(work) == pytest.approx(3e6, rel=0.01)


def test_a_profile_reaches_the_backward_pass() -> None:
    x = torch.ones(4, 6, requires_grad=True)
    shares = profile(lambda: (x * x).sum().backward(), most=9)
    assert re.search(r"\bmul \d+%", shares) and "MulBackward0" in shares


def test_results_name_the_rows_that_miss_their_target() -> None:
    text = document({"training": measured([row([5.0], ">= 3")]), "maps": measured([row([2.0], ">= 3")])})
    kept, missed = text.split("## Targets missed")
    assert kept.index("## training") < kept.index("## maps") and kept.count("a machine.") == 2
    assert kept.count("| a step |") == 2 and kept.count(">= 3, **missed**") == 1
    assert "- a step: **2.00** (2.00-2.00), 50% of the floor, target >= 3; its time goes to mm 60%" in missed
    assert "None." in document({"training": measured([row([5.0], ">= 3")])}).split("## Targets missed")[1]


def test_pages_measured_again_take_the_place_of_their_own_rows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    ratios = iter([2.0, 4.0, 8.0])
    monkeypatch.setattr(command, "run", lambda name, arguments: measured([row([next(ratios)], ">= 3")], *arguments))
    monkeypatch.setattr(command, "KEPT", tmp_path / "results")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "RESULTS.md")
    for chosen in (["app", "mining"], ["app", "--rounds", "3"]):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *chosen])
        command.main()
    mining, app = (tmp_path / "RESULTS.md").read_text("utf-8").split("## app")  # in the order of PAGES
    assert "**4.00**" in mining and "**8.00**" in app and "--rounds 3" in app and "**2.00**" not in mining + app
    monkeypatch.setattr(sys, "argv", ["benchmarks", "apps"])
    with pytest.raises(SystemExit):
        command.main()
    assert "'apps' is no page; choose from training" in capsys.readouterr().err


def test_a_page_that_fails_does_not_stop_the_pages_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(name: str, arguments: list[str]) -> Page:
        if name == "mining":
            raise subprocess.CalledProcessError(1, name)
        return measured([row([2.0], ">= 3")])

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "KEPT", tmp_path / "results")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(sys, "argv", ["benchmarks", "training", "mining", "app"])
    with pytest.raises(SystemExit, match=r"failed, and their rows are older: mining$"):
        command.main()
    assert {file.name for file in (tmp_path / "results").iterdir()} == {"training.json", "app.json"}


def test_the_command_is_shown_without_paths(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").touch()
    assert [shown(part) for part in ("--sts", str(tmp_path), str(tmp_path / "dev.tsv"), "3")] == [
        "--sts",
        "FOLDER",
        "dev.tsv",
        "3",
    ]


@pytest.mark.parametrize("tokens", [100, 500])
def test_released_batches_are_by_length_within_the_budget_in_eights(tokens: int) -> None:
    pairs = pairs_of(vocab=100, update=3_000)
    batches = released_batches(pairs, tokens)
    order = [pair for rows in batches for pair in rows]
    assert sorted(map(id, order)) == sorted(map(id, pairs))
    lengths = [(len(pair["en"]), len(pair["fr"])) for pair in order]
    assert lengths == sorted(lengths)
    for rows in batches[:-1]:
        assert len(rows) * max(map(longer, rows)) <= tokens
        assert len(rows) % 8 == 0 or len(rows) < 8


@pytest.mark.slow
def test_the_page_for_a_gpu_is_rehearsed_at_a_toy_size(tmp_path: Path) -> None:
    """As on a bare machine, from its script to the file that comes back."""
    script = ["bash", "benchmarks/bare.sh", "run", str(tmp_path / "out"), "--device", "cpu", "--size", "tiny"]
    machine = {"PYTHON": sys.executable, "WHEELS": str(tmp_path)}  # it lacks nothing
    environment = {**os.environ, **machine, "TORCH_COMPILE_DISABLE": "1"}  # compiling takes half a minute
    done = subprocess.run(script, check=True, capture_output=True, text=True, env=environment)
    assert re.findall(r"^-- (\S+): (\w+)", done.stdout, re.MULTILINE) == [(name, "done") for name in gpu.PARTS]
    page = command.read(tmp_path / "out" / "gpu.json")
    assert (page.name, page.command.split()[4:]) == ("gpu", ["--device", "cpu", "--size", "tiny"])
    against = [row.against.split(",")[0] for row in measurements(page)]
    step = ["the straight form"] * 6  # two with layers compiled
    assert against == [*step, "its step alone", *["sentence-transformers"] * 2, "transformers"]
    assert all(min(row.ratios) > 0 for row in measurements(page))


def test_the_page_for_a_gpu_says_how_long_it_takes_six_minutes_with_installing() -> None:
    head, *parts = gpu.plan()
    seconds = [int(line.split()[0]) for line in parts]
    assert len(parts) == len(gpu.PARTS) and f"At most {sum(seconds)} s" in head and "bare.sh: 30 s" in head
    assert sum(seconds) + 30 <= 6 * 60


def test_what_a_part_has_measured_when_its_time_is_up_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Its process writes a row, then hangs; or it fails after that row."""
    stored = tmp_path / "stored.json"
    stored.write_text(json.dumps(asdict(measured([row([2.0], ">= 1")]))), "utf-8")
    script = tmp_path / "part.sh"
    monkeypatch.setattr(sys, "executable", str(script))
    for last, note in (("exec sleep 60", "killed"), ("exit 3", "failed with 3")):
        script.write_text(
            f'#!/bin/sh\ncp {stored} "$6"\n{last}\n', "utf-8"
        )  # python -m benchmarks.gpu --part NAME --json FILE
        script.chmod(0o755)
        rows = list(gpu.measured("encoding", 2, argparse.Namespace(device="cpu", size="tiny")))
        assert rows == [row([2.0], ">= 1")]
        assert f"-- encoding: {note} after" in capsys.readouterr().out


def test_a_page_is_written_after_each_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, counts = tmp_path / "page.json", []

    def rows(options: argparse.Namespace) -> Iterator[Measurement]:
        for number in (1.0, 2.0, 3.0):
            yield row([number], ">= 1")
            counts.append(len(command.read(written).rows))

    monkeypatch.setattr(sys, "argv", ["maps.py", "--rounds", "2", "--json", str(written)])
    page(rows, "")
    assert counts == [1, 2, 3]
    assert command.read(written).command == "python -m benchmarks maps --rounds 2"


def test_a_page_of_another_machine_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "RESULTS.md")
    elsewhere = tmp_path / "brought.json"
    page = measured([row([2.0], ">= 1")], "python -m benchmarks", "gpu")
    elsewhere.write_text(json.dumps(asdict(page)), "utf-8")
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--keep", str(elsewhere)])
    command.main()
    assert command.read(tmp_path / "kept" / "gpu.json") == page
    assert "## gpu" in (tmp_path / "RESULTS.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["bgt", "bgt-bound"])
def test_generation_is_refereed_and_of_equal_work_at_a_toy_size(recipe: str) -> None:
    sizes = {"model.d_model": 32, "model.ffn_dim": 32, "model.heads": 4}
    size = generation.Size("3 sentences", sizes, 60, 3, None, ">= 0", recipe)
    exact, rounded = generation.rows_of(size, argparse.Namespace(threads=1, rounds=1), "as in fp32")
    assert exact.error.startswith("3 of 3 as by a straight search")
    assert rounded.error == "as in fp32" and min(exact.ratios + rounded.ratios) > 0
    assert exact.reached and exact.reached < 1


def test_the_page_for_a_gpu_says_that_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu"])
    page(gpu.rows, "", gpu.own_options)
    assert capsys.readouterr().out == "No GPU here: nothing measured.\n"


def test_growth_states_the_exponents_of_the_last_points_and_what_comes_next() -> None:
    seconds = {1: 5.0, 10_000: 6.0, 20_000: 9.0, 40_000: 21.0}  # 5 are the start
    points = [CurvePoint(items, took, 300 + (items > 1) * items / 100) for items, took in seconds.items()]
    curve = Curve("pairs compared", "lines", points)
    assert curve.exponent("seconds") == pytest.approx(2)
    assert curve.exponent("mebibytes") == pytest.approx(1)
    assert math.isnan(Curve("flat", "lines", [point._replace(mebibytes=300) for point in points]).exponent("mebibytes"))
    assert curve.predicted(80_000) == (pytest.approx(49), pytest.approx(1_100))
    assert curve.next_item == (pytest.approx(0.6), pytest.approx(2**20 / 100))
    assert Curve.read(json.loads(json.dumps(asdict(curve)))) == curve
    text = document({GROWTH: measured([curve])})
    line = next(line for line in text.splitlines() if line.startswith("| pairs compared"))
    assert "| 21.0 s, 700 MiB |" not in line  # no size of the table's
    assert "| 6.0 s, 400 MiB |" in line and "| 2.00 |" in line
