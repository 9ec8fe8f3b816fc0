"""The app opens models and texts that its command-line options name. A link restores a user's sentences and files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from app.core import inventory
from app.core.inventory import ParallelText
from bgt_core.data.examples import example_sentences
from bgt_core.errors import UsageError

Open = Callable[..., Any]
ENGLISH = [en for en, _ in example_sentences(("en", "fr"))[:40]]


def text(count: int) -> ParallelText:
    return ParallelText(("en",), None, columns=("en",), table=pd.DataFrame({"0": ["a"] * count}), digest=str(count))


def state(count: int) -> inventory.OwnTexts:
    return inventory.OwnTexts(uploaded={"mine": text(count)})


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    inventory._kept.clear()


@pytest.fixture
def starred(opened: Open) -> Any:
    """The maps after the user typed a sentence, which is shown as a star."""
    app = opened("maps")
    app.text_area[0].set_value("My own line.")
    return app.press("Draw as stars")


def test_a_reload_brings_sentences_and_files_back(starred: Any, opened: Open) -> None:
    starred.upload("mine.txt", "\n".join(ENGLISH))
    assert any("“Your encoder” need two columns of sentences" in part.value for part in starred.markdown)
    starred.press(f"Use these {len(ENGLISH)} rows")
    own = opened("main", own=starred.query_params["own"]).session_state["own"]
    assert [table["text"].tolist() for table in own.typed] == [["My own line."]]
    assert own.uploaded["Yours: mine.txt (en)"].table["0"].tolist() == ENGLISH


def test_another_session_has_them_only_by_the_key(starred: Any, opened: Open) -> None:
    key = starred.query_params["own"]
    assert len(key) >= 22  # in base64, 128 random bits need 22 characters
    other = opened("main", own=key[:-1])
    assert not other.session_state["own"].typed and "own" not in other.query_params
    assert "not kept any more" in other.error[0].value
    assert not opened("main").error


def test_a_link_shows_what_was_there_when_it_was_made(starred: Any, opened: Open) -> None:
    key = starred.query_params["own"]
    assert "own" not in starred.press("Remove your 1 sentence").query_params
    assert opened("main", own=key).session_state["own"].typed[0]["text"].tolist() == ["My own line."]


def test_a_folder_keeps_sentences_and_files_for_the_next_start(
    start: Callable, saved: Path, tmp_path: Path, starred: Any, opened: Open
) -> None:
    start("--model", saved, "--work", tmp_path)
    starred.upload("mine.tsv", "en\tsize\n" + "\n".join(f"{line}\t{len(line) / 2}" for line in ENGLISH))
    key = starred.press(f"Use these {len(ENGLISH)} rows").query_params["own"]
    before = starred.session_state["own"]
    inventory._kept.clear()  # as a restart does
    after = opened("main", own=key).session_state["own"]
    assert after is not before and after.uploaded == before.uploaded
    pd.testing.assert_frame_equal(after.typed[0], before.typed[0])
    for content, problem in {'{"schema": "bgt-own/0"}': "another version", "{}": "damaged", "x": "JSON"}.items():
        inventory._kept.clear()
        (tmp_path / f"{key}.json").write_text(content)
        assert problem in opened("main", own=key).code[0].value


def test_what_was_not_asked_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "MAX_KEPT", 2)
    keys = [inventory.kept(state(1)) for _ in range(2)]
    assert inventory.recalled(keys[0])
    keys.append(inventory.kept(state(1)))
    assert [inventory.recalled(key) is not None for key in keys] == [True, False, True]


def test_memory_is_bounded_and_what_is_shared_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = state(60)
    size = int(shared.uploaded["mine"].table.memory_usage(deep=True).sum())
    monkeypatch.setattr(inventory, "MAX_BYTES", size + size // 2)
    keys = [inventory.kept(shared), inventory.kept(shared)]
    assert all(map(inventory.recalled, keys))
    keys.append(inventory.kept(state(60)))
    assert [inventory.recalled(key) is not None for key in keys] == [False, False, True]


def test_an_uploaded_text_is_shown_by_rows_spread_over_it_whose_ids_stay() -> None:
    table = pd.DataFrame({"0": [f"Line {n}." for n in range(101)], "1": [f"Ligne {n}." for n in range(101)]})
    whole = ParallelText(("en", "fr"), None, columns=("en", "fr"), table=table, digest="spread")
    shown = inventory.sentences(whole, 3)
    assert shown["id"].tolist() == ["en0", "en50", "en100", "fr0", "fr50", "fr100"]
    assert shown["text"].tolist()[1:5:3] == ["Line 50.", "Ligne 50."] and shown["pair"].tolist() == [0, 50, 100] * 2
    every = inventory.sentences(whole, 200).set_index("id")["text"]
    assert every[shown["id"]].tolist() == shown["text"].tolist()


def test_the_text_of_most_languages_comes_first() -> None:
    given = [part for langs in ("en,de", "en,fr,de", "en,es") for part in ("--data", f"{langs}=triples.tsv")]
    built_in = [f"{inventory.EXAMPLES} (en-fr)", f"{inventory.EXAMPLES} (en-de)", inventory.BUILT_IN]
    texts = inventory.texts_in(inventory.read(given).texts, ("en", "fr", "de"))
    assert list(texts) == ["triples.tsv (en-fr-de)", *built_in, "triples.tsv (en-de)"]
    first, *_, four, grammar = inventory.texts_in(inventory.read([]).texts, ["en", "ar", "de", "es", "fr", "ja", "tr"])
    assert (first, four, grammar) == (built_in[0], f"{inventory.EXAMPLES} (en-fr-es-de)", inventory.BUILT_IN)


@pytest.mark.parametrize("argument", ["=a.tsv", "_=a.tsv", "en,en=a.tsv", "en,,fr=a.tsv", "en,fr=", "en,fr"])
def test_data_names_its_languages(argument: str) -> None:
    with pytest.raises(UsageError, match="different languages"):
        inventory.parallel_text(argument)


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
    assert inventory.short_name(spec) == name
    assert list(inventory.short_names([spec])) == [name]


def test_models_and_texts_of_one_name_are_told_apart() -> None:
    specs = ["/a/x/m", "onnx:/b/x/m", "/c/y/m", "other", "/d/bgt-en-fr, as shipped"]
    given = [part for spec in specs for part in ("--model", spec)]
    names = inventory.read(given).models
    shipped = list(inventory.shipped())
    assert list(names) == ["x/m", "x/m (2)", "y/m", "other", f"{shipped[0]} (2)", *shipped]
    assert [*names.values()][:5] == specs
    files = ["en,fr=/a/x/p.tsv", "en,fr=/b/y/p.tsv", "en=/a/x/p.tsv", "en,fr=/a/x/p.tsv"]
    texts = inventory.read([part for file in files for part in ("--data", file)]).texts
    assert list(texts)[-3:] == ["x/p.tsv (en-fr)", "y/p.tsv (en-fr)", "p.tsv (en)"]


def test_a_spec_for_others_has_no_folders_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    for kind in ("sentence-transformers:", "split:", ""):
        assert inventory.portable(f"{kind}{tmp_path}/here/") == f"{kind}./here"
    monkeypatch.chdir(tmp_path)
    assert inventory.portable("onnx:here") == "onnx:./here"
    for name in ("sentence-transformers:ORG/NAME", "baseline:tfidf", "python:mine:letters"):
        assert inventory.portable(name) == name
    assert inventory.portable(next(iter(inventory.shipped().values()))) == "bgt-en-fr"
    assert inventory.public("/srv/x/labels.tsv") == inventory.public("vectors:/srv/x/labels.tsv") == "labels.tsv"
    assert inventory.public("UD English-EWT, 2.14") == "UD English-EWT, 2.14"


def test_one_column_of_a_text_is_read_and_each_sentence_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Salut.\tHi.\nBonjour.\tHi.\nNon.\tNo.\nOui.\tYes.\n", "utf-8")
    options = inventory.read(["--data", f"fr,en={tmp_path / 'pairs.tsv'}", "--data", f"_,en={tmp_path / 'pairs.tsv'}"])
    texts = inventory.texts_in(options.texts, ["en"])
    assert list(texts) == [f"{inventory.EXAMPLES} (en)", inventory.BUILT_IN, "pairs.tsv (fr-en)", "pairs.tsv (en)"]
    for name in ("pairs.tsv (fr-en)", "pairs.tsv (en)"):
        table = inventory.sentences(texts[name], 2)
        assert table["text"].tolist() == ["Hi.", "No."] and set(table["lang"]) == {"en"}
        assert set(table["translation"]) == {""} and not table["own"].any()
    assert inventory.texts_in(options.texts, ["en", "fr"])["pairs.tsv (fr-en)"].langs == ("fr", "en")
