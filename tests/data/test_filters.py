"""Filters of pairs, and the set of hashes against Python's own."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter

import numpy as np

from bgt_core.data import filters


def test_a_key_is_letters_marks_and_digits_or_the_text_itself() -> None:
    assert filters.key("Straße, 3 km²!") == "strasse3km2"
    assert filters.key("...") == "..."
    assert filters.key("हिन्दी भाषा") == "हिन्दीभाषा"
    assert filters.key("私は、学生です。") == "私は学生です"
    for text in ("A, b!", "ÉTÉ", "ﬁn", "..."):
        assert filters.key(filters.key(text)) == filters.key(text)


def test_a_pair_is_counted_by_the_first_filter_that_drops_it() -> None:
    lengths = np.array([[1, 9], [1, 2], [3, 4]])
    candidates = filters.Candidates([("a", "A"), ("b", "B"), ("c", "C")], lengths)
    assert candidates.keys[2] == ("c", "c")
    short = filters.Filter("ratio", lambda some: some.lengths.max(axis=1) <= 3 * some.lengths.min(axis=1))
    few = filters.Filter("length", lambda some: some.lengths.min(axis=1) >= 2)
    for order, counts in (([short, few], {"ratio": 1, "length": 1}), ([few, short], {"length": 2, "ratio": 0})):
        dropped = Counter[str]()
        assert filters.apply(order, candidates, dropped).keys == [("c", "c")]
        assert dropped == counts


def test_seen_is_a_set() -> None:
    draw, expected, seen = random.Random(3), set(), filters.Seen()
    for _ in range(300):
        some = [draw.randrange(3000) for _ in range(draw.randrange(60))]
        fresh = seen.new(np.array(some, np.uint64)).tolist()
        for hash_, new in zip(some, fresh, strict=True):
            assert new == (hash_ not in expected)
            expected.add(hash_)
    assert len(seen) == len(expected)
    assert seen.smallest(100) == sorted(expected)[99]
    assert seen.holds(np.arange(3000, dtype=np.uint64)).tolist() == [number in expected for number in range(3000)]


def test_seen_takes_eight_bytes_a_hash() -> None:
    count = 200_000
    draws = np.random.default_rng(0).integers(0, 2**63, count).astype(np.uint64)
    tracemalloc.start()
    seen = filters.Seen()
    for start in range(0, count, 2000):
        seen.new(draws[start : start + 2000])
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 9 * count
    assert peak < 26 * count  # the last merge holds the old runs, the new one and what sorts it


def test_hashes_follow_text_and_seed() -> None:
    one, two = filters.hashes(["a", "b", "a"], 1), filters.hashes(["a", "b", "a"], 2)
    assert one[0] == one[2] != one[1]
    assert not set(one.tolist()) & set(two.tolist())
