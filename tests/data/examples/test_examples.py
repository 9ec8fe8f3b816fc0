"""The built-in example sentences are normalised, README.md credits their sources, and the wheel contains them."""

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from bgt_core.data.examples import FILE, LANGS, Styled, differing, example_sentences, style_sentences
from bgt_core.data.text import normalise
from bgt_core.errors import NotFound

README = FILE.with_name("README.md").read_text("utf-8")
LINES = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
ROWS = LINES[1:]


def test_texts_are_normalised_and_in_the_script_of_their_language() -> None:
    for row in ROWS:
        assert [normalise(text) for text in row] == row
        for lang, text in zip(LANGS, row[1:], strict=True):
            letters = [unicodedata.name(char).split()[0] for char in text if char.isalpha()]
            assert not text or letters, row
            latin = letters.count("LATIN") / max(1, len(letters))
            assert not text or (latin > 0.9 if lang not in ("ar", "ja") else latin < 0.5), row


def test_the_readme_counts_rows_and_languages_and_credits_every_source() -> None:
    counts = dict(re.findall(r"^\| ([\w-]+) \| ([\d,]+) \| .*creativecommons\.org", README, re.MULTILINE))
    assert counts == {source: f"{count:,}" for source, count in Counter(row[0] for row in ROWS).items()}
    table = re.search(r"^\| sentences \|(.*)\|$", README, re.MULTILINE)
    assert table
    columns = zip(*(row[1:] for row in ROWS), strict=True)
    assert table[1].replace(" ", "").split("|") == [f"{sum(map(bool, column)):,}" for column in columns]
    assert "tatoeba.org" in README and "manythings.org/anki" in README


def test_translations_are_those_that_all_the_languages_have() -> None:
    assert example_sentences(["en"]) == [(row[1],) for row in ROWS]
    for langs in (["en", "fr"], ["de", "es"], ["en", "ja", "ar"]):
        rows = example_sentences(langs)
        at = [1 + LANGS.index(lang) for lang in langs]
        assert rows == [tuple(row[column] for column in at) for row in ROWS if all(row[column] for column in at)]
        assert all(map(all, rows)) and len(rows) >= 40
    with pytest.raises(NotFound, match="no built-in sentences in 'it', only in en, fr"):
        example_sentences(["en", "it"])


def test_git_does_not_ignore_them_so_the_wheel_has_them() -> None:
    """Git must track `bgt_core/data`, because the wheel contains only tracked files of `bgt_core`. In .gitignore,
    `/data/` matches only the folder `data` at the root, while `data/` would match `bgt_core/data` as well."""
    ignored = (Path(__file__).resolve().parents[3] / ".gitignore").read_text("utf-8").split()
    assert "/data/" in ignored and not {"data/", "*.tsv", "*.md"} & set(ignored)


def test_sentences_of_style_are_counted_by_the_readme_and_of_people_s_text() -> None:
    rows = style_sentences()
    table = re.search(r"^\| rows \|(.*)\|$", README, re.MULTILINE)
    assert table and len(set(rows)) == len(rows)
    counts = [f"{sum(row.lang == lang for row in rows):,}" for lang in LANGS]
    assert table[1].replace(" ", "").split("|") == counts and f"{len(rows):,} Tatoeba sentences" in README
    assert all(normalise(text) == text for row in rows for text in row)


def test_pairs_share_a_translation_and_differ_in_one_property() -> None:
    def fr(text: str, english: str) -> Styled:
        return Styled("fr", text, "en", english)

    given = [
        fr("Tu es en retard.", "You're late."),
        fr("Vous êtes en retard.", "You're late."),
        fr("Vous êtes en retard !", "You're late."),  # differs from the first row in form of address and final mark
        fr("Tu viens.", "You come."),
        fr("On part.", "We leave."),
        fr("Nous partons.", "We leave."),  # the rules find no form of address
    ]
    assert [(pair.property, pair.left.text, pair.right.text) for pair in differing(given)] == [
        ("address", "Tu es en retard.", "Vous êtes en retard.")
    ]
    kinds = Counter((pair.property, pair.left.lang) for pair in differing(style_sentences()))
    assert min(kinds["address", "fr"], kinds["address", "de"]) > 150
    assert min(kinds["politeness", "ja"], kinds["contraction", "en"]) > 100
