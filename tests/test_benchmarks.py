"""How the benchmarks measure and what they write; their figures are nobody's test."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict

import pytest
import torch

from benchmarks.__main__ import document, growth
from benchmarks.growth import Curve, CurvePoint
from benchmarks.measure import Measurement, interleave, over, peak_memory


def row(ratios: list[float], target: str) -> Measurement:
    return Measurement("a step", "a slower one", ratios, target, "2 s", "4 s", "exact", "1 s", 0.5, "mm 60%")


@pytest.mark.parametrize(
    ("ratios", "target", "met"),
    [
        ([1.0, 9.0, 3.0], ">= 3", True),
        ([1.0, 2.9, 9.0], ">= 3", False),
        ([0.6], "<= 0.6", True),
        ([0.7], "<= 0.6", False),
    ],
)
def test_a_target_is_met_by_the_median(ratios: list[float], target: str, met: bool) -> None:
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


def test_results_name_the_rows_that_miss_their_target() -> None:
    text = document([row([5.0], ">= 3"), row([2.0], ">= 3")], 1.0, [])
    kept, missed = text.split("## Targets missed")
    assert kept.count("| a step |") == 2 and kept.count("**missed**") == 1
    assert "- a step: 2.00, target >= 3; its time goes to mm 60%" in missed
    assert "None." in document([row([5.0], ">= 3")], 1.0, []).split("## Targets missed")[1]


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
    line = next(line for line in growth([curve]).splitlines() if line.startswith("| pairs compared"))
    assert "| 21.0 s, 700 MiB |" not in line  # no size of the table's
    assert "| 6.0 s, 400 MiB |" in line and "| 2.00 |" in line
