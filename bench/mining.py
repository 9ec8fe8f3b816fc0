"""Compare approximate with exact search in bitext mining. Only the search is timed, because it takes most of the time.

The vectors are random. The vector of a meaning is the sum of a random vector and a mixture of four topic vectors. Each
of these two parts has half of the squared length. The two translations of a meaning are its vector plus noise, and have
a cosine of about 0.7. With these vectors, approximate search must probe about as many lists as with real text. Exact
search takes the same time for every query, so only a 20th of the queries is timed, and the time is multiplied by 20.
"""

import argparse
import math
from collections.abc import Iterator

import faiss
import numpy as np
import torch

from bench.measure import Measurement, clock_of, compare, product_rate, turns
from bgt_core.neighbours.search import ITERATIONS, POINTS, Rows, SearchPlan, approximate, exact, search

SENTENCES, WIDTH = 50_000, 256
TOPICS = 4  # number of topics of each sentence
ALL_TOPICS = 20  # the number of topics is 20 times the square root of the number of sentences
OWN = 0.5  # fraction of a vector's squared length from its random part; the rest is from its topics
NOISE = (0.05, 0.6)  # smallest and largest share of noise in the squared length of a sentence's vector
UNTRANSLATED = 5  # every fifth row of the second language is not a translation
PART = 20  # only every 20th row is a query of exact search
K = 4


def rows(options: argparse.Namespace) -> Iterator[Measurement]:
    """Compare approximate with exact search, in both directions."""
    faiss.omp_set_num_threads(options.threads)
    count = 4_000 if options.toy else SENTENCES
    left, right = (Rows(side, np.arange(count)) for side in draw(count))
    last: dict[str, list[np.ndarray]] = {}

    def fast(number: int) -> SearchPlan:
        plan = approximate(left, right, seed=number)
        ways = (left, right, plan.forward), (right, left, plan.backward)
        last["fast"] = [search(asking, held, way, K, plan.assignments)[1] for asking, held, way in ways]
        return plan

    def straight(number: int) -> None:
        some = [Rows(side.vectors, side.chosen[number::PART]) for side in (left, right)]
        ways = (some[0], right), (some[1], left)
        last["exact"] = [search(asking, held, exact(asking, held).forward, K)[1] for asking, held in ways]

    times = turns({"fast": fast, "exact": straight}, options.rounds, clock_of(options.threads))
    plan, number = fast(options.rounds - 1), options.rounds - 1
    straight(number)
    same = [ours[number::PART, 0] == theirs[:, 0] for ours, theirs in zip(last["fast"], last["exact"], strict=True)]
    yield compare(
        f"nearest neighbours both ways, {count:,} x {count:,} vectors of {WIDTH}, approximate",
        "the same, exact, by FAISS",
        times["fast"],
        [PART * seconds for seconds in times["exact"]],
        ">= 0" if options.toy else ">= 3",
        f"{100 * np.mean(same):.1f}% of nearest neighbours found ({plan})",
        *("rows", 2 * count, operations(plan, left, right), product_rate(torch.float32, options.threads)),
    )


def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the vectors of sentences in two languages, (count, WIDTH) each. All but every fifth row are translations."""
    rng = np.random.default_rng(0)
    topics = directions(rng, int(ALL_TOPICS * math.sqrt(count)))
    meant, others = meanings(rng, topics, count), meanings(rng, topics, -(-count // UNTRANSLATED))
    noise = rng.uniform(*NOISE, (count, 1)).astype(np.float32)
    left = np.sqrt(1 - noise) * meant + np.sqrt(noise) * directions(rng, count)
    meant[::UNTRANSLATED] = others
    return left, np.sqrt(1 - noise) * meant + np.sqrt(noise) * directions(rng, count)


def meanings(rng: np.random.Generator, topics: np.ndarray, count: int) -> np.ndarray:
    """Draw the vectors of meanings, which translations share, (count, WIDTH): a random vector plus topic vectors."""
    drawn = math.sqrt(OWN) * directions(rng, count)
    for share in rng.dirichlet(np.ones(TOPICS), count).astype(np.float32).T:
        ranks = (len(topics) ** rng.random(count)).astype(np.int64)  # topic frequencies fall as 1 / rank
        drawn += np.sqrt((1 - OWN) * share)[:, None] * topics[ranks - 1]
    return drawn


def directions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw random vectors of length 1, (count, WIDTH)."""
    drawn = rng.standard_normal((count, WIDTH), dtype=np.float32)
    faiss.normalize_L2(drawn)
    return drawn


def operations(plan: SearchPlan, left: Rows, right: Rows) -> float:
    """Count the operations of approximate search in both directions: comparisons, k-means, and assignment to lists."""
    compared = sum(len(asking) * len(held) for asking, held in plan.forward + plan.backward)
    to_lists = plan.nlist * (len(left) + len(right) + POINTS * plan.nlist * ITERATIONS)
    return 2.0 * WIDTH * (compared + to_lists)
