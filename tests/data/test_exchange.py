"""Rules that change a sentence's style give the form that a speaker would use, or no form."""

import pytest

from bgt_core.data.exchange import EXCHANGED, exchanger
from bgt_core.data.properties import PROPERTIES

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
        ("de", "Sprichst du mit deiner Mutter?", ["Sprechen Sie mit Ihrer Mutter?"]),  # from a paraphrase
        ("de", "Ich gehe mit dir.", ["Ich gehe mit Ihnen."]),
        ("de", "Xylst du?", []),  # no known verb
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
        ("ja", "これは本だ。", []),  # the rule only changes polite to plain
    ],
)
def test_a_sentence_in_another_style(lang: str, text: str, expected: list[str]) -> None:
    assert exchanger(lang, TEXTS.get(lang, []), PARAPHRASES)(text) == expected


@pytest.mark.parametrize("lang", EXCHANGED)
def test_every_language_has_a_rule_for_its_property(lang: str) -> None:
    assert PROPERTIES[EXCHANGED[lang]].rules.keys() & {lang}
    assert exchanger(lang, [], [])("") == []
