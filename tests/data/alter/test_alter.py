"""Altered sentences: what is swapped, what agrees, and what is left alone."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from bgt_core.data.alter import altered
from bgt_core.data.alter.english import english
from bgt_core.data.alter.french import french
from bgt_core.errors import UsageError
from bgt_core.grammar import pairs

ROLES = {
    "The dog bit the man.": "The man bit the dog.",
    "The man was bitten by the dog.": "The dog was bitten by the man.",
    "I love her.": "She loves me.",
    "He loves me.": "I love him.",
    "She doesn't know us.": "We don't know her.",
    "They're waiting for him.": "He's waiting for them.",
    "I'm waiting for Tom.": "Tom is waiting for me.",
    "Did you see them?": "Did they see you?",
    "Has he called you?": "Have you called him?",
    "Tom gave Mary a book.": "Mary gave Tom a book.",
    "My father bought me a bicycle.": "I bought my father a bicycle.",
    "You're taller than me.": "I'm taller than you.",
    "I think he trusts you.": "I think you trust him.",
    "The book is on the table.": "The table is on the book.",
    "I’ll call you.": "You'll call me.",
}
FRENCH_ROLES = {
    "Tom plus Marie font trois.": None,
    "Je t'aime.": "Tu m'aimes.",
    "Je ne vous crois pas.": "Vous ne me croyez pas.",
    "Tu m'as vu.": "Je t'ai vu.",
    "Il la regarde.": "Elle le regarde.",
    "Il m'a dit la vérité.": "Je lui ai dit la vérité.",
    "Je les ai attendus.": "Ils m'ont attendu.",
    "Il m'a attendu.": "Je l'ai attendu.",
    "Elle sait qu'il m'écoute.": "Elle sait que je l'écoute.",
    "Tom aime Mary.": "Mary aime Tom.",
    "Le chien a mordu le garçon.": "Le garçon a mordu le chien.",
    "Le roi parle au boulanger.": "Le boulanger parle au roi.",
    "Le livre est sur le bureau.": None,
    "Tom est plus grand que Mary.": None,
    "Tom et Mary parlent.": None,
}
NEGATIONS = {
    "I don't know.": "I know.",
    "He doesn't like it.": "He likes it.",
    "He didn't buy any bread.": "He bought some bread.",
    "I can't swim.": "I can swim.",
    "She has never seen it.": "She has seen it.",
    "He is happy.": "He isn't happy.",
    "I'm happy.": "I'm not happy.",
    "She went home.": "She didn't go home.",
    "It rains a lot.": "It doesn't rain a lot.",
    "Open the door.": "Don't open the door.",
    "Don't open the door.": "Open the door.",
    "Nobody knows.": "Everybody knows.",
    "Aren't you happy?": None,
    "": None,
    "I don't know yet.": None,
    "I already saw some of it.": None,
}
FRENCH_NEGATIONS = {
    "Je ne sais pas.": "Je sais.",
    "Je n'aime pas ça.": "J'aime ça.",
    "Ce n'est pas vrai.": "C'est vrai.",
    "Je ne fume plus.": "Je fume.",
    "Il mange une pomme.": "Il ne mange pas de pomme.",
    "C'est une pomme.": "Ce n'est pas une pomme.",
    "J'aime ça.": "Je n'aime pas ça.",
    "Il y a un oiseau.": "Il n'y a pas d'oiseau.",
    "Je n'ai pas de voiture.": None,
    "Ne me touche pas.": None,
    "Mieux vaut ne pas": None,
    "": None,
    "Tu ne viens pas ?": None,
}


@pytest.mark.parametrize(
    ("lang", "kind", "text", "expected"),
    [
        (lang, kind, text, expected)
        for lang, kind, cases in (
            ("en", "roles", ROLES),
            ("fr", "roles", FRENCH_ROLES),
            ("en", "negation", NEGATIONS),
            ("fr", "negation", FRENCH_NEGATIONS),
        )
        for text, expected in cases.items()
    ],
)
def test_sentences(lang: str, kind: str, text: str, expected: str | None) -> None:
    by_kind = {each.kind: each.text for each in (english if lang == "en" else french)(text)}
    assert by_kind.get(kind) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Tom and Mary met.",
        "You and I are friends.",
        "My brother is a doctor.",
        "He hurt himself.",
        "I agree with you.",
        "He did his best to help her.",
        "I want you to tell me.",
        "One of them is here.",
        "Tom's father left.",
    ],
)
def test_roles_are_left_alone_where_a_swap_says_the_same_or_is_no_english(text: str) -> None:
    assert "roles" not in [each.kind for each in english(text)]


def test_attributes_are_swapped_with_their_articles_and_agree() -> None:
    assert "A dirty man saw an old dog." in [each.text for each in english("An old man saw a dirty dog.")]
    assert "Three dogs saw two cats." in [each.text for each in english("Two dogs saw three cats.")]
    assert "Un chien blanc et une vache noire." in [each.text for each in french("Un chien noir et une vache blanche.")]


def test_attributes_of_the_same_noun_are_left_alone() -> None:
    for alter, text in ((english, "A red car and a blue car."), (french, "Un chien noir et un chien blanc.")):
        assert "attributes" not in [each.kind for each in alter(text)]


def test_swaps_share_most_words_and_the_choice_follows_the_seed() -> None:
    changes: Counter = Counter()
    for pair in pairs(3_000, seed=5):
        for lang, text in pair.texts.items():
            change = altered(text, lang, Random(1))
            changes[lang, change.kind if change else None] += 1
            assert change == altered(text, lang, Random(1))
            if change:
                assert change.text != text
                assert change.text[0] == change.text[0].upper()
                assert not re.search(r"  | [.,]|\\b[jlmtdn]' ", change.text), change
    assert all(changes[lang, "negation"] > 500 for lang in ("en", "fr"))
    assert changes["en", "roles"] > 100 and changes["fr", "roles"] > 30


def test_another_language_is_refused() -> None:
    with pytest.raises(UsageError, match="en and fr"):
        altered("Hallo.", "de", Random(0))
