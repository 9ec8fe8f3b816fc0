"""The app can be started with any kind of model, and with texts in some of the languages."""

from pathlib import Path

import pytest

from app.core import corpora, startup
from bgt_core.errors import UsageError


def test_the_text_of_most_languages_comes_first() -> None:
    given = [part for langs in ("en,de", "en,fr,de", "en,es") for part in ("--data", f"{langs}=triples.tsv")]
    built_in = [f"{startup.EXAMPLES} (en-fr)", f"{startup.EXAMPLES} (en-de)", startup.BUILT_IN]
    texts = startup.texts_in(startup.read(given).texts, ("en", "fr", "de"))
    assert list(texts) == ["triples.tsv (en-fr-de)", *built_in, "triples.tsv (en-de)"]
    first, *_, four, grammar = startup.texts_in(startup.read([]).texts, ["en", "ar", "de", "es", "fr", "ja", "tr"])
    assert (first, four, grammar) == (built_in[0], f"{startup.EXAMPLES} (en-fr-es-de)", startup.BUILT_IN)


@pytest.mark.parametrize("argument", ["=a.tsv", "_=a.tsv", "en,en=a.tsv", "en,,fr=a.tsv", "en,fr=", "en,fr"])
def test_data_names_its_languages(argument: str) -> None:
    with pytest.raises(UsageError, match="different languages"):
        startup.parallel_text(argument)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("sentence-transformers:/srv/x/MiniLM", "MiniLM"),
        ("/srv/x/runs/mine/", "mine"),
        ("ORG/NAME@v2", "NAME@v2"),
        ("vectors:/srv/x/mine.npy", "mine.npy"),
        ("split:~/a split", "a split"),
        ("python:mine:letters", "mine:letters"),
        ("baseline:tfidf", "baseline:tfidf"),
        ("/srv/x/**a** [b](c)", "**a** [b](c)"),
    ],
)
def test_a_model_is_shown_by_a_short_name(spec: str, name: str) -> None:
    assert startup.short_name(spec) == name
    assert list(startup.short_names([spec])) == [name]


def test_models_and_texts_of_one_name_are_told_apart() -> None:
    specs = ["/a/x/m", "onnx:/b/x/m", "/c/y/m", "other", "/d/bgt-en-fr, as shipped"]
    given = [part for spec in specs for part in ("--model", spec)]
    names = startup.read(given).models
    shipped = list(startup.shipped())
    assert list(names) == ["x/m", "x/m (2)", "y/m", "other", f"{shipped[0]} (2)", *shipped]
    assert [*names.values()][:5] == specs
    files = ["en,fr=/a/x/p.tsv", "en,fr=/b/y/p.tsv", "en=/a/x/p.tsv", "en,fr=/a/x/p.tsv"]
    texts = startup.read([part for file in files for part in ("--data", file)]).texts
    assert list(texts)[-3:] == ["x/p.tsv (en-fr)", "y/p.tsv (en-fr)", "p.tsv (en)"]


def test_a_spec_for_others_has_no_folders_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    for kind in ("sentence-transformers:", "split:", ""):
        assert startup.portable(f"{kind}{tmp_path}/here/") == f"{kind}./here"
    monkeypatch.chdir(tmp_path)
    assert startup.portable("onnx:here") == "onnx:./here"
    for name in ("sentence-transformers:ORG/NAME", "baseline:tfidf", "python:mine:letters"):
        assert startup.portable(name) == name
    assert startup.portable(next(iter(startup.shipped().values()))) == "bgt-en-fr"
    assert startup.public("/srv/x/labels.tsv") == startup.public("vectors:/srv/x/labels.tsv") == "labels.tsv"
    assert startup.public("UD English-EWT, 2.14") == "UD English-EWT, 2.14"


def test_one_column_of_a_text_is_read_and_each_sentence_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Salut.\tHi.\nBonjour.\tHi.\nNon.\tNo.\nOui.\tYes.\n", "utf-8")
    options = startup.read(["--data", f"fr,en={tmp_path / 'pairs.tsv'}", "--data", f"_,en={tmp_path / 'pairs.tsv'}"])
    texts = startup.texts_in(options.texts, ["en"])
    assert list(texts) == [f"{startup.EXAMPLES} (en)", startup.BUILT_IN, "pairs.tsv (fr-en)", "pairs.tsv (en)"]
    for name in ("pairs.tsv (fr-en)", "pairs.tsv (en)"):
        table = corpora.sentences(texts[name], 2)
        assert table["text"].tolist() == ["Hi.", "No."] and set(table["lang"]) == {"en"}
        assert set(table["translation"]) == {""} and not table["own"].any()
    assert startup.texts_in(options.texts, ["en", "fr"])["pairs.tsv (fr-en)"].langs == ("fr", "en")
