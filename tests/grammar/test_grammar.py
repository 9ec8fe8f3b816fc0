"""The built-in grammar's tables of sentences never change; `pairs`, `triples` and `role_pairs` return their rows."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

import bgt_core
from bgt_core.errors import UsageError
from bgt_core.grammar import KINDS, LIMIT, ROLE_PAIRS, TRIPLES, pairs, role_pairs, triples

# Published scores were measured on these tables, so a table that changes must get a new name.
HASHES = """
pairs 259ba31bc40eb8ea
roles 4d1606442776a60c
triples-held-out 6650e66b71679359
triples 9631a4e377bc67a4
"""


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


def test_the_tables_have_not_changed() -> None:
    files = sorted((Path(bgt_core.__file__).parent / "grammar").glob("*.tsv.xz"))
    hashes = [f"{path.name.partition('.')[0]} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" for path in files]
    assert hashes == HASHES.strip().splitlines()


def test_pairs_differ_and_longer_lists_begin_with_shorter_ones() -> None:
    every = pairs(LIMIT)
    assert len({pair.meaning for pair in every}) == LIMIT
    assert all(len({pair.texts[lang] for pair in every}) == LIMIT for lang in ("en", "fr"))
    assert pairs(50) == every[:50] and pairs(50, seed=3) == pairs(100, seed=3)[:50]
    sentences = [{pair.texts["en"] for pair in pairs(300, seed)} for seed in range(20)]
    assert len(set.union(*sentences)) == 20 * 300


def test_rows_have_their_columns_in_order() -> None:
    (held_out, *_), (pair, _) = triples(5, seed=2, held_out=True), role_pairs(2)
    assert [triple.kind for triple in triples(10, seed=2)] == [*KINDS, *KINDS]
    sentence, paraphrase, altered = held_out.texts["fr"]
    assert sentence == "Le gamin envoie le sac à ce héros à midi."
    assert (paraphrase, altered) == (
        "À midi, l'enfant envoie le sac à ce héros.",
        "Ce héros envoie le sac au gamin à midi.",
    )
    for lang, (left, right) in pair.texts.items():
        assert words(left) == words(right) and left != right
        first, second = pair.persons[lang]
        assert left.lower().index(first) < left.lower().rindex(second)


@pytest.mark.parametrize(("draw", "most"), [(pairs, LIMIT), (triples, TRIPLES), (role_pairs, ROLE_PAIRS)])
def test_counts_outside_the_table_are_refused(draw: object, most: int) -> None:
    for count in (-1, most + 1):
        with pytest.raises(UsageError, match="expected 0 to"):
            draw(count)  # type: ignore[operator]
