"""Codes of languages, as people and data sets write them."""

from __future__ import annotations

import pytest

from bgt_core.data.languages import THREE_LETTERS, known_lang, lang_code, matching, primary
from bgt_core.errors import UsageError


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("En", "en"),
        ("eng", "en"),
        ("eng_Latn", "en"),
        ("ENG-latn", "en"),
        ("fre", "fr"),
        ("jpn_Jpan", "ja"),
        ("arb_Arab", "ar"),
        ("arb_Latn", "ar-Latn"),
        ("kor_Hang", "ko"),
        ("zho_Hans", "zh-Hans"),
        ("zh_hant_tw", "zh-Hant-TW"),
        ("pt-br", "pt-BR"),
        ("es_419", "es-419"),
        ("ace_Arab", "ace-Arab"),
        ("ace_Latn", "ace"),
        ("zh-Hant", "zh-Hant"),
        ("de-1996", "de-1996"),
        ("label", "label"),
        ("_", "_"),
        ("a", "a"),
        ("all", "all"),
        ("English", "English"),
    ],
)
def test_one_language_has_one_spelling(given: str, code: str) -> None:
    assert lang_code(given) == code == lang_code(code)


def test_the_table_is_iso_639() -> None:
    """184 codes of two letters, with hbs; each of three letters leads back."""
    assert len(THREE_LETTERS) == 184 and len(set(THREE_LETTERS.values())) == 184
    assert all(lang_code(three) == two and len(two) == 2 < len(three) for two, three in THREE_LETTERS.items())


def test_a_model_may_have_any_spelling() -> None:
    assert matching("zho_Hant", ["en", "zh-Hant"]) == "zh-Hant"
    assert matching("en", ["eng", "fra"]) == "eng"
    assert matching("pt-BR", ["pt", "pt-br"]) == "pt-br"
    assert matching("eng", ["en", "eng"]) == "eng"
    assert known_lang("eng_Latn", (), "it") == "eng_Latn"
    assert (primary("por_Latn"), primary("zh-Hant")) == ("pt", "zh")


@pytest.mark.parametrize(("given", "hint"), [("english", "'en'"), ("zho_Hans", "'zh'"), ("fr-CA", "'fr'"), ("xx", "")])
def test_an_unknown_language_is_told_what_was_meant(given: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        known_lang(given, ("en", "fr", "zh"), "it")
    assert str(error.value) == f"lang {given}: it has en, fr, zh." + (f" Did you mean {hint}?" if hint else "")


@pytest.mark.parametrize("given", ["en,fr", "en fr", "en; fr"])
def test_several_languages_are_not_one(given: str) -> None:
    with pytest.raises(UsageError, match="expected one language, as en"):
        known_lang(given, ("en", "fr"), "it")
