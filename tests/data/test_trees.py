"""The text of a parsed sentence is restored by joining its tokens."""

import pytest

from bgt_core.data.trees import detokenise


@pytest.mark.parametrize(
    ("lang", "tokens", "text"),
    [
        ("en", "She said : &quot; I can 't go , Ann . &quot;", 'She said: "I can\'t go, Ann."'),
        ("en", "The dogs ' bones ( all 3 ) are n't Tom 's .", "The dogs' bones (all 3) aren't Tom's."),
        ("en", "A well @-@ made plan &amp; more &#91; 1 &#93;", "A well-made plan & more [1]"),
        ("en", "-LRB- So `` he '' left at 2 : 30 , 5 % off -RRB-", '(So "he" left at 2:30, 5% off)'),
        ("en", "Don ’ t go ; it ’s $ 5 !", "Don’t go; it’s $5!"),
        ("fr", "L' eau de l ’ étang : qu' il boit !", "L'eau de l’étang : qu'il boit !"),
        ("fr", "Il dit « Non » , puis s' en va .", "Il dit « Non », puis s'en va."),
        ("es", "¿ Qué ? dijo Ana ; ¡ nada !", "¿Qué? dijo Ana; ¡nada!"),
        ("de", "Er rief „ Halt “ ( laut ) .", "Er rief „Halt“ (laut)."),
        ("tr", "Madrid ' in % 5 ’ i , 1980 ' de", "Madrid'in %5’i, 1980'de"),
        ("ja", "猫 が 好き だ 。", "猫が好きだ。"),
        ("ja", "私 は Tom です", "私は Tom です"),
        ("ar", "هل تنام ؟ نعم ، أنام", "هل تنام؟ نعم، أنام"),
    ],
)
def test_each_convention_becomes_text(lang: str, tokens: str, text: str) -> None:
    assert detokenise(tokens, lang) == text


@pytest.mark.parametrize("lang", ["en", "fr", "es", "de", "tr", "ar"])
def test_text_without_tokens_apart_is_left_alone(lang: str) -> None:
    assert detokenise("Nothing here, or there, is apart.", lang) == "Nothing here, or there, is apart."
