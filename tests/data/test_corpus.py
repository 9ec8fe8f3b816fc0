"""Mixtures of corpora, labels and target vectors arrive in batches as they were in the files."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bgt_core.data.batching import Batching, validation
from bgt_core.data.columns import Source, parse_source
from bgt_core.data.corpus import Corpus, Mixture, open_corpus
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, DataError, NotFound

LANGS = {"en": "en", "fr": "fr", "de": "de"}


def write(path: Path, rows: list[tuple[object, ...]]) -> Path:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def tokenizer() -> Tokenizer:
    text = [f"{word} number {n} of the list" for n in range(60) for word in ("sentence", "phrase", "satz")]
    return Tokenizer.train(text, 40, lowercase=True)


@pytest.fixture
def pairwise(tmp_path: Path) -> list[Source]:
    """60 English-French and 40 English-German pairs; the English of the first 20 is in both."""
    french = write(tmp_path / "en-fr.tsv", [(f"sentence number {n}", f"phrase number {n}") for n in range(60)])
    numbers = [*range(20), *range(60, 80)]
    german = write(tmp_path / "en-de.tsv", [(f"sentence number {n}", f"satz number {n}") for n in numbers])
    return [parse_source(f"en-fr={french}", tuple(LANGS)), parse_source(f"en-de={german}", tuple(LANGS))]


@pytest.fixture
def mixture(pairwise: list[Source], tokenizer: Tokenizer, tmp_path: Path) -> Mixture:
    store = prepare(pairwise, tuple(LANGS), tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=15, seed=1)
    assert isinstance(store, Mixture)
    return store


def texts(corpus: Corpus, column: str) -> set[tuple[int, ...]]:
    return {tuple(ids.tolist()) for ids in corpus.take(column, np.arange(len(corpus)))}


def test_a_mixture_is_opened_again_and_no_english_sentence_is_in_both_splits(mixture: Mixture) -> None:
    assert mixture.columns == LANGS
    assert [corpus.columns for corpus in mixture.corpora] == [{"en": "en", "fr": "fr"}, {"en": "en", "de": "de"}]
    valid = open_corpus(mixture.folder, "valid")
    assert isinstance(valid, Mixture) and len(mixture) + len(valid) == 100
    train, held_out = (set().union(*(texts(corpus, "en") for corpus in part.corpora)) for part in (mixture, valid))
    assert held_out and not train & held_out
    assert 15 <= len(valid) <= 15 + 20  # a sentence in both corpora has two rows


def test_every_row_comes_once_an_epoch_in_batches_of_one_corpus(mixture: Mixture) -> None:
    batching = Batching(batch_tokens=150, micro_tokens=60, seed=1)
    seen: Counter[tuple[str, ...]] = Counter()
    mixed = 0
    for step in range(batching.updates(mixture)):
        update = batching.update(mixture, step)
        kinds = {tuple(batch.sides) for batch in update.batches.values()}
        mixed += len(kinds) == 2
        for batch in update.batches.values():
            assert all(side.lang == LANGS[column] for column, side in batch.sides.items())
            seen[tuple(batch.sides)] += len(batch)
        assert sum(map(len, update.batches.values())) == update.rows
    assert seen == {tuple(corpus.columns): len(corpus) for corpus in mixture.corpora}
    assert mixed > 2
    valid = open_corpus(mixture.folder, "valid")
    assert sum(len(batch) for batch in validation(valid, 60)) == len(valid)


def test_each_of_three_columns_is_written_from_each_other_in_turn(tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [(f"sentence number {n}", f"phrase number {n}", f"satz number {n}") for n in range(60)]
    source = write(tmp_path / "three.tsv", rows)
    corpus = prepare([source], tuple(LANGS), tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=0, seed=1)
    batching = Batching(batch_tokens=200, micro_tokens=100, seed=1)
    ways: Counter[tuple[str, str]] = Counter()
    anchors: Counter[str] = Counter()
    for step in range(40):
        for batch in batching.update(corpus, step).batches.values():
            anchors[batch.anchor] += 1
            ways.update((batch.source(column), column) for column in batch.sides)
    assert set(ways) == {(source, column) for source in LANGS for column in LANGS if source != column}
    assert min(ways.values()) > 0.8 * max(ways.values())
    assert min(anchors.values()) > 0.8 * max(anchors.values())


def test_two_columns_of_one_language_keep_their_names(tokenizer: Tokenizer, tmp_path: Path) -> None:
    source = write(tmp_path / "a.tsv", [(f"sentence number {n}", f"number {n} of the list") for n in range(30)])
    corpus = prepare([source], ["a:en", "b:en"], tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=5, seed=1)
    (batch, *_) = Batching(300, 300, 1).update(corpus, 0).batches.values()
    assert {column: (side.lang, batch.source(column)) for column, side in batch.sides.items()} == {
        "a": ("en", "b"), "b": ("en", "a")
    }  # fmt: skip


def test_labels_and_targets_stay_with_their_rows(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """The labels and targets of rows that are skipped or too long are left out too."""
    rows: list[tuple[object, ...]] = [(f"sentence number {n}", f"phrase number {n}", n) for n in range(40)]
    rows[3] = ("sentence number 3", "phrase number 3", "none")
    rows[5] = ("sentence number 5", "", 5)
    rows[7] = (" ".join(["sentence"] * 80), "phrase", 7)
    path = write(tmp_path / "labelled.tsv", rows)
    np.save(tmp_path / "vectors.npy", np.stack([np.arange(40.0), -np.arange(40.0)], 1))
    columns = ("en", "fr", "gold:label")
    source = Source(path, ("en", "fr", "gold"), tmp_path / "vectors.npy")
    corpus = prepare(
        [source], columns, tokenizer, tmp_path / "store", min_tokens=1, max_tokens=60, valid_pairs=5, seed=1
    )
    assert isinstance(corpus, Corpus)
    assert corpus.store["skipped"] == {"no number": 1, "empty side": 1}
    assert "labelled.tsv:4: the gold is not a number" in corpus.store["skipped_examples"][0]
    seen = set()
    for batch in Batching(200, 100, 1).update(corpus, 0).batches.values():
        assert batch.labels is not None and batch.targets is not None
        assert batch.targets.tolist() == [[label, -label] for label in batch.labels.tolist()]
        for ids, mask, label in zip(batch.sides["en"].ids, batch.sides["en"].mask, batch.labels, strict=True):
            assert tokenizer.decode([ids[mask][:-1].tolist()]) == [f"sentence number {int(label)}"]
            seen.add(int(label))
        assert batch.to("cpu").labels is not None
    assert seen and not seen & {3, 5, 7}


@pytest.mark.parametrize(
    ("vectors", "error", "message"),
    [
        (np.zeros((39, 2)), DataError, "has 39 rows"),
        (np.zeros((41, 2)), DataError, "has 41 rows"),
        (np.zeros(40), DataError, r"expected floats \(rows, D\)"),
        (np.zeros((40, 2), int), DataError, "expected floats"),
        (None, NotFound, "can't be read"),
    ],
)
def test_targets_that_do_not_fit_are_refused_and_leave_nothing(
    vectors: np.ndarray | None, error: type[BgtError], message: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.tsv", [(f"sentence number {n}",) for n in range(40)])
    if vectors is not None:
        np.save(tmp_path / "vectors.npy", vectors)
    source = Source(path, ("en",), tmp_path / "vectors.npy")
    with pytest.raises(error, match=message):
        prepare([source], ["en"], tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=5, seed=1)
    assert not (tmp_path / "store").exists()
    assert not list(tmp_path.glob(".store*"))
