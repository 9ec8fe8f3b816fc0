"""Triples: true paraphrases, altered sentences of nearly the same words, two parts that share function words only."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bgt_core.errors import UsageError
from bgt_core.grammar.triple_frames import KINDS
from bgt_core.grammar.triples import LIMIT, Triple, triple_rows, triples

COUNT = 2_000
FUNCTION_WORDS = set(
    """
    a after ago an at did didn does doesn going in is isn last next not t the this to was will won
    après au ce cet cette d dans de dernier est il l la le n ne pas plus prochain que un une va y à
    """.split()
)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@pytest.fixture(scope="module", params=[False, True], ids=["training", "held out"])
def many(request: pytest.FixtureRequest) -> list[Triple]:
    return triples(COUNT, seed=1, held_out=request.param)


def test_kinds_come_in_turn_and_sentences_once(many: list[Triple]) -> None:
    assert [triple.kind for triple in many] == [KINDS[row % len(KINDS)] for row in range(COUNT)]
    for lang in ("en", "fr"):
        assert len({triple.texts[lang][0] for triple in many}) == COUNT
        assert all(len(set(triple.texts[lang])) == 3 for triple in many)


def test_the_same_seed_gives_the_same_triples_and_a_short_list_starts_a_long_one(many: list[Triple]) -> None:
    held_out = many[0].frame != triples(1, seed=1)[0].frame
    assert triples(50, seed=1, held_out=held_out) == many[:50]
    assert triples(50, seed=2, held_out=held_out) != many[:50]


def test_parts_share_function_words_and_no_frame() -> None:
    parts = [triples(6_000, held_out=held_out) for held_out in (False, True)]
    training, held_out = (
        {word for triple in part for text in triple.texts.values() for word in words(" ".join(text))} for part in parts
    )
    assert not (training & held_out) - FUNCTION_WORDS
    assert len(training - FUNCTION_WORDS) > 500
    assert len(held_out - FUNCTION_WORDS) > 300
    frames = [{triple.frame for triple in part} for part in parts]
    assert frames[0].isdisjoint(frames[1])


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_english_swaps_keep_every_word(many: list[Triple], kind: str) -> None:
    """But for the article: "a huge lorry", "an expensive lorry"."""
    for triple in many:
        if triple.kind == kind:
            sentence, _, altered = (Counter(words(text)) for text in triple.texts["en"])
            sentence["a"] += sentence.pop("an", 0)
            altered["a"] += altered.pop("an", 0)
            assert sentence == altered


def test_negation(many: list[Triple]) -> None:
    """The altered sentence differs in negation from the sentence; so does the paraphrase only if it is an opposite."""
    patterns = {"en": r"\bnot\b|n't\b", "fr": r"\bne\b|\bn'"}
    for triple in many:
        for lang, pattern in patterns.items():
            sentence, paraphrase, altered = (bool(re.search(pattern, text)) for text in triple.texts[lang])
            assert (sentence == paraphrase) == (triple.frame not in ("opposite with negation", "opposite kind")), triple
            assert (sentence != altered) == (triple.kind == "negation"), triple


def test_swapped_sentences_share_more_words_than_paraphrases(many: list[Triple]) -> None:
    swapped = [triple for triple in many if triple.kind != "negation"]
    for triple in swapped:
        for texts in triple.texts.values():
            sentence, paraphrase, altered = (Counter(words(text)) for text in texts)
            assert (sentence & altered).total() >= (sentence & paraphrase).total(), texts


@pytest.fixture(scope="module")
def swaps() -> list[tuple[str, str, str]]:
    every = [*triples(10_000), *triples(10_000, held_out=True)]
    return [texts for each in every if each.kind != "negation" for texts in each.texts.values()]


@pytest.mark.parametrize(
    ("sentence", "paraphrase", "altered"),
    [
        (r"The (\w+) thanked the (\w+)\.", r"The {1} was thanked by the {0}.", r"The {1} thanked the {0}."),
        (r"The (\w+) is slower than the (\w+)\.", "The {1} is faster than the {0}.", "The {1} is slower than the {0}."),
        (r"Le (\w+) a (\w+é) la (\w+)\.", r"La {2} a été {1}e par le {0}.", r"La {2} a {1} le {0}."),
        (r"Le (\w+) est devant le (\w+)\.", r"Le {1} est derrière le {0}.", r"Le {1} est devant le {0}."),
        (r"This (\w+) ignored the (\w+)\.", r"It was this {0} who ignored the {1}.", r"The {1} ignored this {0}."),
        (r"Le (\w+) a (\w+é) la (\w+)\.", r"C'est la {2} que le {0} a {1}e.", r"La {2} a {1} le {0}."),
    ],
)  # fmt: skip
def test_roles_of_plain_sentences(
    swaps: list[tuple[str, str, str]], sentence: str, paraphrase: str, altered: str
) -> None:
    matches = 0
    for first, second, third in swaps:
        if (match := re.fullmatch(sentence, first)) and second == paraphrase.format(*match.groups()):
            matches += 1
            assert third == altered.format(*match.groups())
    assert matches


def test_rows_are_of_the_training_part() -> None:
    rows = [row.split("\t") for row in triple_rows(200, "en", "fr", seed=3)]
    expected = triples(200, seed=3)
    assert [(row[0], row[2]) for row in rows] == [(each.texts["en"][0], each.texts["en"][2]) for each in expected]
    translations = [
        each.texts["fr"].index(row[1]) for row, each in zip(rows, expected, strict=True)
    ]  # of the sentence or of the paraphrase, never of the altered sentence
    assert set(translations) == {0, 1}
    assert [row.split("\t") for row in triple_rows(9, "fr", "fr")] == [list(each.texts["fr"]) for each in triples(9)]


def test_errors_say_what_is_possible() -> None:
    with pytest.raises(UsageError, match=f"0 to {LIMIT:,}"):
        triples(LIMIT + 1)
    with pytest.raises(UsageError, match="en and fr"):
        next(triple_rows(1, "en", "de"))
