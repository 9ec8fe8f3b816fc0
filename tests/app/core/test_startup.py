"""What the app is started with: models of any kind, texts in some languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core import corpora, startup
from bgt_core.errors import UsageError


def test_the_text_of_most_languages_comes_first() -> None:
    given = [part for langs in ("en,de", "en,fr,de", "en,es") for part in ("--data", f"{langs}=triples.tsv")]
    built_in = [f"{startup.EXAMPLES} (en-fr)", f"{startup.EXAMPLES} (en-de)", startup.BUILT_IN]
    texts = startup.read(given).texts_in(("en", "fr", "de"))
    assert list(texts) == ["triples.tsv (en-fr-de)", *built_in, "triples.tsv (en-de)"]
    first, *_, four, grammar = startup.read([]).texts_in(["en", "ar", "de", "es", "fr", "ja", "tr"])
    assert (first, four, grammar) == (built_in[0], f"{startup.EXAMPLES} (en-fr-es-de)", startup.BUILT_IN)


@pytest.mark.parametrize("argument", ["=a.tsv", "_=a.tsv", "en,en=a.tsv", "en,,fr=a.tsv", "en,fr=", "en,fr"])
def test_data_names_its_languages(argument: str) -> None:
    with pytest.raises(UsageError, match="different languages"):
        startup.parallel_text(argument)


def test_one_column_of_a_text_is_read_and_each_sentence_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Salut.\tHi.\nBonjour.\tHi.\nNon.\tNo.\nOui.\tYes.\n", "utf-8")
    options = startup.read(["--data", f"fr,en={tmp_path / 'pairs.tsv'}", "--data", f"_,en={tmp_path / 'pairs.tsv'}"])
    texts = options.texts_in(["en"])
    assert list(texts) == [f"{startup.EXAMPLES} (en)", startup.BUILT_IN, "pairs.tsv (fr-en)", "pairs.tsv (en)"]
    for name in ("pairs.tsv (fr-en)", "pairs.tsv (en)"):
        table = corpora.sentences(texts[name], 2)
        assert table["text"].tolist() == ["Hi.", "No."] and set(table["lang"]) == {"en"}
        assert set(table["translation"]) == {""} and not table["own"].any()
    assert options.texts_in(["en", "fr"])["pairs.tsv (fr-en)"].langs == ("fr", "en")
