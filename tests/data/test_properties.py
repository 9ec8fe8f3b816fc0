"""Rules label a sentence's style as readers do, and change it as speakers would. README.md describes the labels."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from bgt_core.data.properties import EXCHANGED, PROPERTIES, exchanger, final_mark, signature, swap

LABELLED = Path(__file__).with_name("labelled_properties.tsv")  # columns: property, language, label or "", text


def labelled() -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line in LABELLED.read_text("utf-8").splitlines():
        name, lang, label, text = line.split("\t")
        groups.setdefault((name, lang), []).append((label, text))
    for (name, lang), rows in groups.items():
        yield name, lang, rows


@pytest.mark.parametrize(("name", "lang", "rows"), [pytest.param(*each, id="-".join(each[:2])) for each in labelled()])
def test_a_rule_is_right_where_it_speaks_and_speaks_often(name: str, lang: str, rows: list[tuple[str, str]]) -> None:
    assert len(rows) == 100
    told = [(PROPERTIES[name].value(text, lang), label) for label, text in rows]
    spoken = [(value, label) for value, label in told if value]
    assert sum(value == label for value, label in spoken) >= 0.98 * len(spoken)
    assert sum(value == label for value, label in spoken) >= 0.8 * sum(label != "" for _, label in told)


@pytest.mark.parametrize(
    ("lang", "text", "value"),
    [
        ("de", "Haben Sie Zeit?", "Sie"),
        ("de", "Sie haben Zeit.", ""),  # "Sie" may be "they" or the formal "you"
        ("de", "haben sie zeit?", "Sie"),  # a model may lower-case text
        ("de", "sie hat zeit.", ""),
        ("fr", "C'est le rendez-vous de Tom.", ""),
        ("fr", "Allez chez lui.", "vous"),
        ("fr", "Tu les as vus, vous deux ?", ""),
        ("tr", "Henüz gelmedi.", ""),
        ("es", "La suerte de Tom.", ""),
        ("xx", "Tu viens ?", ""),
        ("en", "It’s late.", "short"),
        ("en", "Tom's house is big.", ""),
        ("en", "He is late.", "full"),
        ("en", "Yes, he is.", ""),  # here, "he is" can't be contracted
        ("en", "I have a dog.", ""),
        ("en", "I have seen it.", "full"),
        ("en", "I cannot come.", "full"),
        ("en", "I don't know who he is talking to.", ""),
    ],
)
def test_a_sentence_shows_a_form_of_address_or_of_contraction(lang: str, text: str, value: str) -> None:
    assert PROPERTIES["contraction" if lang == "en" else "address"].value(text, lang) == value


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It is late.", "."),
        ("Où est-il ?", "?"),
        ("« Viens ! »", "!"),
        ('He said "no".', "."),
        ("Well...", "..."),
        ("Well (perhaps…)", "..."),
        ('She said "it is late!"', "!"),
        ("It is plan .X", ""),
        ("どこですか？", "?"),
        ("「行く。」", "."),
        ("أين هو؟", "?"),
        ("وہ آیا۔", "."),
        ("वह आया।", "."),
        ("colon:", ""),
        ("Room 5. X", ""),
        ("", ""),
    ],
)
def test_the_closing_mark_is_read_past_quotes_and_scripts(text: str, mark: str) -> None:
    assert final_mark(text) == mark


def test_sentences_of_one_signature_differ_in_content_alone() -> None:
    late, tired = signature("Vous êtes en retard.", "fr"), signature("Votre frère arrive.", "fr")
    assert late == tired != signature("Tu es en retard.", "fr")
    assert late != signature("Vous n'êtes pas en retard.", "fr")
    assert signature("متى؟", "ar") != signature("نعم.", "ar")


GERMAN = ["Sie gehen nach Hause.", "Wir gehen heim.", "Die Kinder gehen.", "Sie haben Zeit.", "Wir haben Hunger."] * 3
JAPANESE = ["毎日学校へ行く。", "本を読む。", "駅まで行った。", "本を読まない。", "何も食べない。", "肉を食べる。"] * 6
TEXTS = {"de": GERMAN, "ja": JAPANESE}
PARAPHRASES = [("Was sprichst du da?", "Was sprechen Sie da?"), ("Hast du Zeit?", "Haben Sie Zeit?")]


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("en", "I'm late.", ["I am late."]),
        ("en", "He's been here.", ["He has been here."]),
        ("en", "Don't you see? He won't swim.", ["Do you not see? He will not swim."]),
        ("en", "I cannot swim, and I will not learn it.", ["I can't swim, and I won't learn it."]),
        ("en", "They’d gone.", ["They had gone."]),
        ("en", "Yes, I am.", []),
        ("fr", "Est-ce que tu viens demain ?", ["Viens-tu demain ?", "Tu viens demain ?"]),
        ("fr", "Où va-t-il ?", ["Où est-ce qu'il va ?"]),
        ("fr", "Que fais-tu ?", ["Qu'est-ce que tu fais ?"]),
        ("fr", "Tu l'as vu ?", ["Est-ce que tu l'as vu ?", "L'as-tu vu ?"]),
        ("fr", "Elle aime le café ?", ["Est-ce qu'elle aime le café ?", "Aime-t-elle le café ?"]),
        ("fr", "Il est tard, n'est-ce pas ?", []),
        ("fr", "Tu viens.", []),
        ("es", "¿Tienes tu libro?", ["¿Tiene usted su libro?"]),
        ("es", "¿Cómo está usted?", ["¿Cómo estás?"]),
        ("es", "Tú no eres mi amigo.", ["Usted no es mi amigo."]),
        ("es", "Te quiero.", []),
        ("de", "Gehst du nach Hause?", ["Gehen Sie nach Hause?"]),
        ("de", "Sprichst du mit deiner Mutter?", ["Sprechen Sie mit Ihrer Mutter?"]),  # learnt from `PARAPHRASES`
        ("de", "Ich gehe mit dir.", ["Ich gehe mit Ihnen."]),
        ("de", "Xylst du?", []),  # the form of this verb is not known
        ("de", "Setz dich!", []),
        ("tr", "Geliyorsunuz.", ["Geliyorsun."]),
        ("tr", "Senin evin var mı?", ["Sizin evin var mı?"]),
        ("tr", "Sen geldin mi?", ["Siz geldiniz mi?"]),
        ("tr", "Deniz sizi seviyor.", ["Deniz seni seviyor."]),
        ("ja", "学校へ行きます。", ["学校へ行く。"]),
        ("ja", "本を読みませんでした。", ["本を読まなかった。"]),
        ("ja", "肉を食べますか？", ["肉を食べるか？"]),
        ("ja", "とても高いです。", ["とても高い。"]),
        ("ja", "これは本です。", ["これは本だ。"]),
        ("ja", "嫌いです。", ["嫌いだ。"]),
        ("ja", "これは本だ。", []),  # no rule changes plain to polite
    ],
)
def test_a_sentence_in_another_style(lang: str, text: str, expected: list[str]) -> None:
    assert exchanger(lang, TEXTS.get(lang, []), PARAPHRASES)(text) == expected


@pytest.mark.parametrize("lang", EXCHANGED)
def test_every_language_has_a_rule_for_its_property(lang: str) -> None:
    assert PROPERTIES[EXCHANGED[lang]].rules.keys() & {lang}
    assert exchanger(lang, [], [])("") == []


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
    versions = {swap(sentence, "fr", Random(seed)) for seed in range(40)}
    assert versions == {
        "La chat voit la lune et un arbre.",
        "Le chat voit le lune et un arbre.",
        "Le chat voit la lune et une arbre.",
    }
