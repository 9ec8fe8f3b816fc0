"""Column names, arguments such as en-fr=FILE, and language codes are parsed. Columns named "_" are skipped."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bgt_core.data import columns
from bgt_core.data.clean import clean
from bgt_core.data.columns import Source, lang_code, matching, parse_columns, parse_source, primary, text_columns
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.store import tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.errors import DataError, UsageError
from bgt_core.grammar import Pair

WIDE = "one cat\t0.5\ttwo cats\t1\na dog\t\ta big dog\t2\n"
PAIRS = [("one cat", "two cats"), ("a dog", "a big dog")]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "wide.tsv"
    path.write_text(WIDE, encoding="utf-8")
    return path


@pytest.mark.parametrize("bad", ["one cat\ttwo cats", "one cat\t0.5\ttwo cats", "\t0.5\ttwo cats\t1"])
def test_a_row_needs_every_column_of_the_file(bad: str, wide: Path) -> None:
    """A row must have all columns of its file, including those that are skipped."""
    wide.write_text(WIDE + bad + "\n", encoding="utf-8")
    skipped = Skipped()
    assert list(read_pairs(wide, ["a", "_", "b", "_"], skipped)) == PAIRS
    assert skipped.counts.total() == 1
    with pytest.raises(DataError, match=r"wide\.tsv:3: (\d columns, expected 4 \(a, _, b, _\)|the a side is empty)"):
        list(read_pairs(wide, ["a", "_", "b", "_"], Skipped(), strict=True))


def test_a_store_is_that_of_the_columns_alone(grammar: list[Pair], tokenizer: Tokenizer, tmp_path: Path) -> None:
    """A token store does not depend on skipped columns, but can't be reused for other columns of the same file."""
    rows = [(pair.texts["en"], "x", str(number % 3), pair.texts["fr"]) for number, pair in enumerate(grammar)]
    (tmp_path / "wide.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "narrow.tsv").write_text(
        "".join("\t".join(row[::2] + row[3:]) + "\n" for row in rows), encoding="utf-8"
    )
    columns, limits = ["a:en", "gold:label", "b:fr"], {"min_tokens": 1, "valid_pairs": 20, "seed": 1}
    sources = {"wide": ("a", "_", "gold", "b"), "narrow": ("a", "gold", "b")}
    wide, narrow = (
        tokenise([Source(tmp_path / f"{name}.tsv", names)], columns, tokenizer, tmp_path / name, **limits)
        for name, names in sources.items()
    )
    indices = np.arange(len(narrow))
    assert len(wide) == len(narrow) and wide.columns == narrow.columns == {"a": "en", "b": "fr"}
    np.testing.assert_array_equal(wide.labels(indices), narrow.labels(indices))
    for column in ("a", "b"):
        for one, other in zip(wide.take(column, indices), narrow.take(column, indices), strict=True):
            np.testing.assert_array_equal(one, other)
    other = [Source(tmp_path / "wide.tsv", ("_", "a", "gold", "b"))]
    with pytest.raises(UsageError, match="made with other file_columns"):
        tokenise(other, columns, tokenizer, tmp_path / "wide", **limits)


def test_cleaned_pairs_have_the_columns_that_are_read(wide: Path, tmp_path: Path) -> None:
    done = clean([wide], ["a:en", "_", "b:fr", "_"], tmp_path / "out.tsv")
    assert done.kept == 2
    assert (tmp_path / "out.tsv").read_text("utf-8") == "one cat\ttwo cats\na dog\ta big dog\n"


@pytest.mark.parametrize(
    "columns", ["English", "a:en a:en", "", "x:label", "a:en x:label y:label", "a,b", "a:", "_:en"]
)
def test_columns_that_are_none_are_refused(columns: str) -> None:
    with pytest.raises(UsageError, match="columns"):
        parse_columns(columns.split())


@pytest.mark.parametrize(
    ("text", "langs"),
    [
        ("en-fr", ["en", "fr"]),
        ("zh-Hant", ["zh-Hant"]),
        ("en-zh-Hant", ["en", "zh-Hant"]),
        ("pt-BR-en-zh-Hant-TW", ["pt-BR", "en", "zh-Hant-TW"]),
        ("es-419-de-1996", ["es-419", "de-1996"]),
        ("a-b", ["a", "b"]),
    ],
)
def test_a_script_or_region_belongs_to_its_language(text: str, langs: list[str]) -> None:
    assert columns.split_langs(text) == langs
    assert parse_source(f"{text}=x.tsv").columns == parse_source(f"{text}=x.tsv", langs).columns == tuple(langs)
    if "a" not in langs:
        assert parse_columns(langs) == {lang: lang for lang in langs}


def test_columns_and_sources_are_parsed_and_languages_get_one_spelling() -> None:
    assert parse_columns(["en", "fr"]) == {"en": "en", "fr": "fr"}
    assert parse_columns(["a:en", "b:en", "gold:label"]) == {"a": "en", "b": "en", "gold": "label"}
    assert parse_columns(["eng_Latn", "b:FR", "eng"]) == {"en": "en", "b": "fr", "eng": "eng"}
    assert columns.canonical_column("a:eng") == "a:en" and columns.canonical_column("_") == "_"
    assert columns.lang_codes("eng_Latn-FR") == "en-fr"
    assert parse_source("x.tsv", ("en", "fr")) == Source(Path("x.tsv"), ("en", "fr"))
    assert str(parse_source("kind/a-_-b=x.tsv")) == "kind/a-_-b=x.tsv"
    assert parse_source("news/en-fr=x.tsv", ("en", "fr")) == Source(Path("x.tsv"), ("en", "fr"), kind="news")
    with pytest.raises(UsageError, match=r"Did you mean 'fr'\?$"):
        parse_columns(["en", "french"])


@pytest.mark.parametrize(
    ("text", "known", "columns"),
    [
        ("en-fr=x.tsv", "", "en fr"),
        ("pt-br,en=x.tsv", "pt-br en", "pt-br en"),
        ("eng_Latn-fra_Latn=x.tsv", "", "en fr"),
        ("eng,fra=x.tsv", "en fr", "en fr"),
        ("a,_,b,_=x.tsv", "a b", "a _ b _"),
    ],
)
def test_a_source_names_its_columns(text: str, known: str, columns: str) -> None:
    assert parse_source(text, known.split()) == Source(Path("x.tsv"), tuple(columns.split()))


def test_files_and_columns_may_be_named_by_other_codes(tmp_path: Path) -> None:
    for code, text in (("eng_Latn", "a cat\n"), ("fra_Latn.gz", gzip.compress(b"un chat\n"))):
        (tmp_path / f"dev.{code}").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert list(read_pairs(tmp_path / "dev", ("en", "fr"), Skipped())) == [("a cat", "un chat")]
    pq.write_table(pa.table({"fra_Latn": ["un chat"], "eng_Latn": ["a cat"]}), tmp_path / "dev.parquet")
    assert list(read_pairs(tmp_path / "dev.parquet", ("en", "_", "fr"), Skipped())) == [("a cat", "un chat")]


def test_languages_of_text_are_parsed_in_one_way() -> None:
    assert text_columns("en, fr") == (["en", "fr"], ["en", "fr"])
    assert text_columns("a:en, _ ,b : FR") == (["a", "_", "b"], ["en", "fr"])
    assert text_columns("xx") == (["xx"], ["xx"])
    for wrong, message in (
        ("english,fr", r"langs 'english': .* Did you mean 'en'\?"),
        ("en,", "langs '': expected a language code"),
        ("a b,fr", "langs 'a b': expected"),
        ("_", "langs '_': expected languages"),
        ("en,x:label", "langs 'en,x:label': expected languages"),
    ):
        with pytest.raises(UsageError, match=message):
            text_columns(wrong)


def test_a_source_that_cannot_be_read_is_told_the_form(tmp_path: Path) -> None:
    (tmp_path / "tr.tsv").touch()
    for head in ("en_fr", "a:en-b:fr", "en fr"):
        for langs in ((), ("en", "fr")):
            with pytest.raises(UsageError, match=rf": expected COLUMNS=FILE, as in en-fr={tmp_path}/tr.tsv$"):
                parse_source(f"{head}={tmp_path}/tr.tsv", langs)
    for text, names, message in (
        ("en-xx=x.tsv", ("en", "fr"), "no column 'xx'; expected en, fr"),
        ("a,_,c=x.tsv", ("a", "b"), "no column 'c'; expected a, b"),
        ("x.tsv", (), "add the columns of the file"),
    ):
        with pytest.raises(UsageError, match=message):
            parse_source(text, names)


SPELLINGS = """
EN en; eng en; eng_Latn en; ENG-latn en; fre fr; jpn_Jpan ja; arb_Arab ar; arb_Latn ar-Latn; kor_Hang ko;
zho_Hans zh-Hans; zh_hant_tw zh-Hant-TW; pt-br pt-BR; es_419 es-419; ace_Arab ace-Arab; ace_Latn ace; de-1996 de-1996;
label label; _ _; a a; all all; English English
"""


def test_one_language_has_one_spelling() -> None:
    """All 184 two-letter codes of ISO 639 are known, including that of Serbo-Croatian (hbs). Each three-letter code is
    mapped to the two-letter code of the same language."""
    for given, code in map(str.split, SPELLINGS.split(";")):
        assert lang_code(given) == code == lang_code(code)
    assert len(columns.THREE_LETTERS) == 184 and len(set(columns.THREE_LETTERS.values())) == 184
    assert all(lang_code(three) == two and len(two) == 2 < len(three) for two, three in columns.THREE_LETTERS.items())


def test_a_model_may_have_any_spelling() -> None:
    assert matching("zho_Hant", ["en", "zh-Hant"]) == "zh-Hant"
    assert matching("en", ["eng", "fra"]) == "eng"
    assert matching("pt-BR", ["pt", "pt-br"]) == "pt-br"
    assert matching("eng", ["en", "eng"]) == "eng"
    assert columns.known_lang("eng_Latn", (), "it") == "eng_Latn"
    assert (primary("por_Latn"), primary("zh-Hant")) == ("pt", "zh")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("english", "it supports en, fr, zh. Did you mean 'en'?"),
        ("zho_Hans", "it supports en, fr, zh. Did you mean 'zh'?"),
        ("fr-CA", "it supports en, fr, zh. Did you mean 'fr'?"),
        ("xx", "it supports en, fr, zh."),
        ("en,fr", "expected one language, such as en"),
    ],
)
def test_an_unknown_language_is_an_error_with_a_hint(given: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        columns.known_lang(given, ("en", "fr", "zh"), "it")
    assert str(error.value) == f"lang {given}: {message}"
