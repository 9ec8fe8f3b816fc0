"""Articles are swapped for those of the other gender, unless a rule skips them."""

from random import Random

import pytest

from bgt_core.data.articles import candidates, swap

FRENCH = """
L'eau de l'étang est à l'ombre. | Je la vois. | Il ne le sait pas. | Donne-le ! | Elle vient pour le voir.
Tu le regardes ? | Le voici. | Quelqu'un vient. | L'un dort. | Il sort de la maison. | Elle va à la gare. | Le, dit-il.
C'est un de mes amis. | Qui le dit ? | Il faut le faire. | Il parle du chat au roi.
"""
SPANISH = "No la veo. | Él duerme. | Viene de la casa. | Me los dio. | Habla del libro."


@pytest.mark.parametrize(("lang", "sentences"), [("fr", FRENCH), ("es", SPANISH)])
def test_what_is_no_article_or_would_give_itself_away_is_not_swapped(lang: str, sentences: str) -> None:
    for sentence in sentences.strip().replace("\n", " | ").split(" | "):
        assert swap(sentence, lang, Random(0)) is None, sentence


@pytest.mark.parametrize(
    ("lang", "sentence", "swapped"),
    [
        ("fr", "D'une main sûre.", "D'un main sûre."),
        ("fr", "LA LUNE BRILLE.", "LE LUNE BRILLE."),
        ("fr", "Une femme dort.", "Un femme dort."),
        ("fr", "Il dit qu’un ami dort.", "Il dit qu’une ami dort."),
        ("fr", "Je le donne à un ami.", "Je le donne à une ami."),
        ("fr", "Donne-moi le livre.", "Donne-moi la livre."),
        ("es", "El perro duerme.", "La perro duerme."),
        ("es", "Veo las casas.", "Veo los casas."),
    ],
)
def test_a_swap_keeps_case_and_the_rest(lang: str, sentence: str, swapped: str) -> None:
    assert swap(sentence, lang, Random(0)) == swapped


def test_one_swap_a_sentence_and_every_article_has_its_chance() -> None:
    sentence = "Le chat voit la lune et un arbre."
    assert len(candidates(sentence, "fr")) == 3
    versions = {swap(sentence, "fr", Random(seed)) for seed in range(40)}
    assert versions == {
        "La chat voit la lune et un arbre.",
        "Le chat voit le lune et un arbre.",
        "Le chat voit la lune et une arbre.",
    }
