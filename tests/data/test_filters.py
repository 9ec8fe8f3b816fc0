"""Keys of sentences, and the set of hashes compared with Python's set."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np

from bgt_core.data import filters


def test_a_key_is_letters_marks_and_digits_or_the_text_itself() -> None:
    assert filters.key("Straße, 3 km²!") == "strasse3km2"
    assert filters.key("...") == "..."
    assert filters.key("हिन्दी भाषा") == "हिन्दीभाषा"
    assert filters.key("私は、学生です。") == "私は学生です"
    for text in ("A, b!", "ÉTÉ", "ﬁn", "..."):
        assert filters.key(filters.key(text)) == filters.key(text)


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
    assert peak < 26 * count  # the last merge needs the old runs, the new run and memory to sort it


def test_hashes_follow_text_and_seed() -> None:
    one, two = filters.hashes(["a", "b", "a"], 1), filters.hashes(["a", "b", "a"], 2)
    assert one[0] == one[2] != one[1]
    assert not set(one.tolist()) & set(two.tolist())
