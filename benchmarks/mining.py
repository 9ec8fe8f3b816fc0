"""Bitext mining: approximate search against exact, FAISS against torch, and a run of a million by a million.

    python -m benchmarks.mining
    python -m benchmarks.mining --million    # about 20 minutes on one thread, 2 GB in TMPDIR

Vectors are drawn. A sentence is half its own and half four topics in uneven shares; each language adds noise, a
twentieth to three fifths of the squared length, so that translations have cosines of about 0.7. A fifth of the right
side translates nothing. By the lists that it has to ask, approximate search finds them about as hard as real text.
Only search is timed, as it is nearly all the work. Exact search takes as long for each row that asks, so that a 20th
of them is timed and counted 20 times.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import faiss
import numpy as np
import torch

from benchmarks.measure import Measurement, interleave, over, page, product_rate
from bgt_core.neighbours.margin import margin_pairs
from bgt_core.neighbours.search import ITERATIONS, POINTS, Rows, SearchPlan, approximate, exact, search

SENTENCES, MILLION, WIDTH = 50_000, 1_000_000, 256
TOPICS = 4  # topics of a sentence
ALL_TOPICS = 20  # times the root of the sentences, as the words of a growing text; their frequencies fall as 1 / rank
OWN = 0.5  # share of a meaning's squared length that does not come from its topics
NOISE = (0.05, 0.6)  # minimum and maximum share of noise in a vector's squared length
UNTRANSLATED = 5  # every 5th sentence of the right side is not a translation
PART = 20  # each 20th row asks in exact search
BLOCK = 50_000  # vectors drawn together
K = 4


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Approximate against exact, then exact by FAISS against torch."""
    faiss.omp_set_num_threads(options.threads)
    rate = product_rate(torch.float32, options.threads)
    vectors = [np.empty((SENTENCES, WIDTH), dtype=np.float32) for _ in range(2)]
    draw(*vectors)
    left, right = (Rows(side, np.arange(SENTENCES)) for side in vectors)
    parts = [part(left, right, number) for number in range(options.rounds)]
    last: dict[str, tuple[SearchPlan, np.ndarray, np.ndarray]] = {}

    def fast(number: int) -> None:
        plan = approximate(left, right, seed=number)
        _, neighbours = search(left, right, plan.forward, K, plan.assignments)
        last["fast"] = plan, neighbours, search(right, left, plan.backward, K, plan.assignments)[1]

    def straight(number: int) -> None:
        some_left, some_right = parts[number]
        _, neighbours = search(some_left, right, exact(some_left, right).forward, K)
        last["straight"] = neighbours, search(some_right, left, exact(some_right, left).forward, K)[1]

    times, part_times = interleave(fast, straight, options.threads, options.rounds)
    full_times = [PART * seconds for seconds in part_times]
    plan, *neighbours = last["fast"]
    number = options.rounds - 1
    same = [ours[number::PART, 0] == exact[:, 0] for ours, exact in zip(neighbours, last["straight"], strict=True)]
    ops = operations(plan, left, right)
    yield Measurement(
        work=f"nearest neighbours both ways, {SENTENCES:,} x {SENTENCES:,} vectors of {WIDTH}, approximate",
        against="the same, exact, by FAISS",
        ratios=over(full_times, times),
        target=">= 3",
        ours=f"{2 * SENTENCES / statistics.median(times):,.0f} rows/s",
        peer=f"{2 * SENTENCES / statistics.median(full_times):,.0f} rows/s",
        error=f"{100 * np.mean(same):.1f}% of nearest neighbours found ({plan})",
        floor=f"{ops / 1e9:,.0f} G operations at {rate / 1e9:.0f} G/s: {ops / rate:.2f} s",
        reached=ops / rate / statistics.median(times),
        bottleneck=profile(lambda: fast(0)),
    )
    yield products(left, right, rate, options)


def products(left: Rows, right: Rows, rate: float, options: argparse.Namespace) -> Measurement:
    """FAISS's exact search of 1,000 rows against torch's product and topk, block by block; both on the same vectors."""
    asking, held = left.read(np.arange(1_000)), right.read(np.arange(SENTENCES))
    dtypes = (torch.float32, torch.bfloat16)
    theirs = {dtype: [torch.from_numpy(side).to(dtype) for side in (asking, held)] for dtype in dtypes}
    kept: dict[object, np.ndarray] = {}

    def by_faiss(_: int) -> None:
        kept["faiss"] = faiss.knn(asking, held, K, faiss.METRIC_INNER_PRODUCT)[1]

    def by_torch(dtype: torch.dtype) -> None:
        queries, candidates = theirs[dtype]
        best = torch.full((len(queries), K), -math.inf, dtype=dtype)
        rows = torch.zeros((len(queries), K), dtype=torch.int64)
        for start in range(0, len(candidates), 8_192):
            cosines, block_rows = (queries @ candidates[start : start + 8_192].T).topk(K, 1)
            best, order = torch.cat([best, cosines], 1).topk(K, 1)
            rows = torch.cat([rows, block_rows + start], 1).gather(1, order)
        kept[dtype] = rows.numpy()

    ours, full = interleave(by_faiss, lambda _: by_torch(torch.float32), options.threads, options.rounds)
    again, half = interleave(by_faiss, lambda _: by_torch(torch.bfloat16), options.threads, options.rounds)
    same = {dtype: 100 * (kept["faiss"][:, 0] == kept[dtype][:, 0]).mean() for dtype in theirs}
    ops = 2.0 * len(asking) * len(held) * WIDTH
    return Measurement(
        work=f"exact nearest neighbours of 1,000 among {SENTENCES:,}, FAISS",
        against="torch, fp32 product and topk",
        ratios=over(full, ours),
        target=">= 1",
        ours=f"{ops / statistics.median(ours) / 1e9:.0f} G operations/s",
        peer=f"{ops / statistics.median(full) / 1e9:.0f} G operations/s",
        error=f"{same[torch.float32]:.1f}% the same nearest",
        floor=f"{ops / 1e9:.0f} G operations at {rate / 1e9:.0f} G/s: {ops / rate:.2f} s",
        reached=ops / rate / statistics.median(ours),
        bottleneck=f"torch in bf16 takes {statistics.median(over(half, again)):.2f} of FAISS's time, "
        f"with {same[torch.bfloat16]:.1f}% the same nearest",
    )


def draw(left: np.ndarray, right: np.ndarray) -> None:
    """Fills both (N, D) with two views of the same meanings, row for row, but for each 5th."""
    rng = np.random.default_rng(0)
    topics = directions(rng, int(ALL_TOPICS * math.sqrt(len(left))), left.shape[1])
    for start in range(0, len(left), BLOCK):
        meant = meanings(rng, topics, min(BLOCK, len(left) - start))
        noise = rng.uniform(*NOISE, (len(meant), 1)).astype(np.float32)
        for side in (left, right):
            side[start : start + BLOCK] = np.sqrt(1 - noise) * meant + np.sqrt(noise) * directions(rng, *meant.shape)
            meant[-start % UNTRANSLATED :: UNTRANSLATED] = meanings(
                rng, topics, len(meant[-start % UNTRANSLATED :: UNTRANSLATED])
            )


def meanings(rng: np.random.Generator, topics: np.ndarray, count: int) -> np.ndarray:
    """(count, D): each something of its own, and some topics."""
    drawn = math.sqrt(OWN) * directions(rng, count, topics.shape[1])
    for share in rng.dirichlet(np.ones(TOPICS), count).astype(np.float32).T:
        ranks = (len(topics) ** rng.random(count)).astype(np.int64)  # from 1; the logarithm is even
        drawn += np.sqrt((1 - OWN) * share)[:, None] * topics[ranks - 1]
    return drawn


def directions(rng: np.random.Generator, count: int, width: int) -> np.ndarray:
    """Vectors of length 1, (count, width)."""
    drawn = rng.standard_normal((count, width), dtype=np.float32)
    faiss.normalize_L2(drawn)
    return drawn


def part(left: Rows, right: Rows, number: int) -> tuple[Rows, Rows]:
    """Each 20th row of both sides."""
    return tuple(Rows(side.vectors, side.chosen[number::PART]) for side in (left, right))


def operations(plan: SearchPlan, left: Rows, right: Rows) -> float:
    """Multiplications and additions of an approximate search both ways: comparisons, lists, k-means."""
    compared = sum(len(asking) * len(held) for asking, held in plan.forward + plan.backward)
    to_lists = plan.nlist * (len(left) + len(right) + POINTS * plan.nlist * ITERATIONS)
    return 2.0 * WIDTH * (compared + to_lists)


def profile(work: Callable[[], object], most: int = 4) -> str:
    """The functions that take the largest share of one call."""
    with cProfile.Profile() as seen:
        work()
    stats = pstats.Stats(seen)
    largest = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:most]
    return ", ".join(
        f"{name.strip('<>').removeprefix('built-in method ')} {100 * own / stats.total_tt:.0f}%"
        for (_, _, name), (_, _, own, *_) in largest
    )


def million() -> None:
    """Mines a million by a million vectors that lie on disk; prints time, memory and the true pairs found."""
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    rate = product_rate(torch.float32, threads=1)
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("left.npy", "right.npy")]
        draw(*(np.lib.format.open_memmap(path, "w+", np.float32, (MILLION, WIDTH)) for path in paths))
        left, right = (Rows(np.load(path, mmap_mode="r"), np.arange(MILLION)) for path in paths)
        with Memory() as memory:
            begun, wall = time.process_time(), time.perf_counter()
            plan = approximate(left, right)
            planned = time.process_time()
            print(f"{plan}; {planned - begun:.0f} s", flush=True)
            pairs = margin_pairs(left, right, plan, k=K)
            seconds, wall = time.process_time() - begun, time.perf_counter() - wall
    known = MILLION - MILLION // UNTRANSLATED
    true = (pairs.left == pairs.right) & (pairs.left % UNTRANSLATED != 0)
    needed, full = operations(plan, left, right), 2 * 2.0 * WIDTH * MILLION**2
    best = 100 * true[:known].mean()
    print(f"compared, scored and paired: {begun + seconds - planned:.0f} s")
    print(f"{MILLION:,} x {MILLION:,} vectors of {WIDTH}: {seconds:.0f} s of processor, {wall:.0f} s on the wall")
    print(f"true pairs found: {100 * true.sum() / known:.2f}%; true among the {known:,} best: {best:.2f}%")
    print(f"{needed / 1e12:.1f} T operations at {needed / seconds / 1e9:.0f} G/s; a product reaches {rate / 1e9:.0f}")
    print(
        f"exact: {full / 1e12:.0f} T operations, at that rate {full / rate / 3600:.1f} h: {full / rate / seconds:.0f} x"
    )
    print(f"own memory at most {memory.own / 1e9:.2f} GB: {memory.own / (2 * MILLION):.0f} bytes a sentence")
    print(
        f"resident at most {memory.resident / 1e9:.2f} GB, with pages of the files, which leave where memory is short"
    )


class Memory:
    """Bytes that this process holds at most during a `with` block: its own, and all that is resident."""

    own = resident = 0

    def __enter__(self) -> Memory:
        self.ended = threading.Event()
        self.watch = threading.Thread(target=self.look)
        self.watch.start()
        return self

    def look(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            now = {
                line.split()[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "RssAnon"))
            }
            self.own, self.resident = max(self.own, now["RssAnon:"]), max(self.resident, now["VmRSS:"])
            if self.ended.wait(0.2):
                return

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.watch.join()


if __name__ == "__main__":
    million() if sys.argv[1:] == ["--million"] else page(rows, __doc__)
