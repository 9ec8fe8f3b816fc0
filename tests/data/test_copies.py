"""Which sentences are copies of each other."""

from __future__ import annotations

import pytest

from bgt_core.data.copies import copy_key, join_copies


@pytest.mark.parametrize(
    "other",
    [
        "DÉJÀ vu, Straße…",
        "déjà  vu,\u00a0straße…\n",
        "de\u0301ja\u0300 vu, straße…",
        "dé\u00adjà\u200b vu,\ufeff straße\u200d…",
        "déjà vu, STRASSE...",
        "déjà ｖｕ， straße…",
    ],
)
def test_case_spaces_unicode_form_and_invisible_characters_make_no_other_sentence(other: str) -> None:
    assert copy_key(other) == copy_key("déjà vu, straße…") == copy_key(copy_key(other))


@pytest.mark.parametrize("other", ["deja vu, straße…", "déjà vu straße…", "déjàvu, straße…", ""])
def test_accents_marks_and_words_do(other: str) -> None:
    assert copy_key(other) != copy_key("déjà vu, straße…")


def test_groups_are_joined_in_a_chain_and_others_keep_theirs() -> None:
    assert join_copies(["a", "b", "c", "A", "B ", "d"], [5, 6, 7, 8, 8, 9]) == [5, 5, 7, 5, 5, 9]
    assert len(set(join_copies(["a", "b", "B", "c", "C", "A"], [0, 1, 2, 2, 3, 3]))) == 1
    assert join_copies([], []) == []
