"""A token store is complete or absent. Its batches have the rows, labels and target vectors of the data files."""

import gzip
import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from bgt_core.contracts import EOS
from bgt_core.data import store, textfile
from bgt_core.data.batching import Batching, validation
from bgt_core.data.columns import Source, parse_source
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.store import Corpus, Mixture, Stratum, open_corpus, tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError, DataError, NotFound

LANGS = ("en", "fr")


def tsv(pairs: Iterable[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(pair) + "\n" for pair in pairs).encode()


class Words(Tokenizer):
    """A fake tokenizer with one token per word, so that tests can count tokens. A word's letters determine its id."""

    def __init__(self, vocab_size: int = 1000):
        self.model, self.sha256, self.vocab_size = b"", f"words-{vocab_size}", vocab_size

    def encode(self, sentences: Sequence[str], *, normalised: bool = False) -> list[list[int]]:
        return [
            [*(4 + sum(map(ord, word)) % (self.vocab_size - 4) for word in text.split()), EOS] for text in sentences
        ]


def words(*counts: int) -> tuple[str, ...]:
    return tuple(" ".join(f"w{n}" for n in range(count)) for count in counts)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """400 pairs of 5 to 12 words. Each English sentence is in four pairs, in two of them in title case."""
    rng = np.random.default_rng(0)
    pairs = []
    for number in range(100):
        english = f"sentence number {number} " + " ".join(["word"] * int(rng.integers(2, 9)))
        for variant in range(4):
            french = f"phrase {number} variante {variant} " + " ".join(["mot"] * int(rng.integers(1, 8)))
            pairs.append((english.title() if variant % 2 else english, french))
    source = tmp_path / "corpus.tsv"
    source.write_bytes(tsv(sorted(pairs, key=lambda pair: len(pair[0] + pair[1]), reverse=True)))
    return source


def make(source: Path, kind: str = "", **options) -> Corpus:
    defaults = {"tokenizer": Words(), "out": source.with_name("store"), "valid_pairs": 40, "seed": 1}
    return tokenise([Source(source, LANGS, kind=kind)], LANGS, **(defaults | options))


def test_the_filter_keeps_5_to_100_tokens(tmp_path: Path) -> None:
    sizes = [(4, 50), (50, 4), (5, 100), (100, 5), (101, 50), (50, 101), (4, 101)]
    source = tmp_path / "corpus.tsv"
    source.write_bytes(tsv(words(*size) for size in sizes))
    corpus = make(source, valid_pairs=0)
    assert corpus.lengths(np.arange(2)).tolist() == [[6, 101], [101, 6]]  # the lengths include EOS
    assert corpus.store["pairs"] == {"kept": 2, "too short": 3, "too long": 2}
    assert corpus.store["longest"] == {"en": 101, "fr": 101}
    assert corpus.tokens == 202


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_the_store_gives_back_what_the_tokenizer_made(
    source: Path, monkeypatch: pytest.MonkeyPatch, vocab_size: int, dtype: type
) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 5000)
    monkeypatch.setattr(store, "BLOCK", 100)
    tokenizer = Words(vocab_size)
    make(source, tokenizer=tokenizer)
    stored = []
    for split in ("train", "valid"):
        corpus = Corpus.open(source.with_name("store"), split)
        everything = np.arange(len(corpus))
        sides = [corpus.take(lang, everything) for lang in corpus.columns]
        assert {ids.dtype.type for side in sides for ids in side} == {dtype}
        assert corpus.lengths(everything).tolist() == [[len(a), len(b)] for a, b in zip(*sides, strict=True)]
        assert corpus.tokens == sum(max(len(a), len(b)) for a, b in zip(*sides, strict=True))
        assert corpus.take("fr", np.array([3]))[0].tolist() == sides[1][3].tolist()
        stored += [(tuple(a.tolist()), tuple(b.tolist())) for a, b in zip(*sides, strict=True)]
    texts = zip(*read_pairs(source, LANGS, Skipped()), strict=True)
    expected = list(zip(*(map(tuple, tokenizer.encode(side)) for side in texts), strict=True))
    assert sorted(stored) == sorted(expected)
    assert corpus.store["longest"] == {lang: max(len(pair[i]) for pair in stored) for i, lang in enumerate(LANGS)}
    assert corpus.store["tokens"] == {lang: sum(len(pair[i]) for pair in stored) for i, lang in enumerate(LANGS)}


def test_no_sentence_of_the_first_language_is_on_both_sides(source: Path) -> None:
    make(source, tokenizer=trained(source), min_tokens=1)
    folder = source.with_name("store")
    train, valid = (Corpus.open(folder, split) for split in ("train", "valid"))
    english = [{tuple(ids.tolist()) for ids in split.take("en", np.arange(len(split)))} for split in (train, valid)]
    assert len(train) + len(valid) == 400
    assert 40 <= len(valid) < 44
    assert not english[0] & english[1]
    assert len(english[0]) + len(english[1]) == 100


def test_a_second_call_reuses_the_store(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make(source)
    before = {file.name: file.stat().st_mtime_ns for file in first.folder.iterdir()}
    moved = source.rename(source.with_name("moved.tsv"))
    monkeypatch.setattr(Words, "encode", None)  # tokenising the text again would fail
    again = make(moved)
    assert {file.name: file.stat().st_mtime_ns for file in again.folder.iterdir()} == before
    assert (len(again), again.store) == (len(first), first.store)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seed": 2}, "seed"),
        ({"min_tokens": 6}, "min_tokens"),
        ({"tokenizer": Words(999)}, "tokenizer"),
        ({"kind": "news"}, "kinds"),
    ],
)
def test_a_store_of_other_settings_is_left_alone(source: Path, options: dict, named: str) -> None:
    corpus = make(source)
    assert corpus.strata == [Stratum(LANGS, "", 0, len(corpus), corpus.tokens)]
    with pytest.raises(BgtError, match=rf"store was made with other {named}; delete it or choose another"):
        make(source, **options)


def trained(source: Path) -> Tokenizer:
    return Tokenizer.train(chain.from_iterable(read_pairs(source, LANGS, Skipped())), 40, lowercase=True)


def test_several_files_and_damage(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 5000)
    second = source.with_name("second.tsv")
    second.write_bytes(b"bad\n" + source.read_bytes()[:9000] + b"\nworse")
    limits = {"min_tokens": 18, "max_tokens": 23, "valid_pairs": 40, "seed": 1}
    with pytest.raises(BgtError, match=r"second\.tsv:1: 1 column"):
        tokenise([source, second], LANGS, trained(source), source.with_name("strict"), **limits, strict=True)
    told = tokenise([source, second], LANGS, trained(source), source.with_name("store"), **limits).store
    assert told["skipped_examples"][0] == f"{second}:1: 1 column, expected 2 (en, fr)"
    assert all(told["pairs"].values())  # some pairs are kept, some are too short, some are too long
    packed = source.with_name("corpus.tsv.gz")
    packed.write_bytes(gzip.compress(b"bad\n" + source.read_bytes())[:-9])
    for strict, message in ((True, "gz:1: 1 column"), (False, "gz is cut short or damaged")):
        with pytest.raises(BgtError, match=message):
            make(packed, strict=strict, out=source.with_name("other"))
    assert {path.name for path in source.parent.iterdir()} == {"corpus.tsv", "second.tsv", "corpus.tsv.gz", "store"}


def test_preparing_needs_no_torch() -> None:
    script = "import bgt_core.data.store, sys; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_nothing_left_to_train_on_is_refused(source: Path) -> None:
    with pytest.raises(BgtError, match="no pair is left of 400, because each sentence needs 50 to 100 tokens; 400"):
        make(source, min_tokens=50)
    with pytest.raises(BgtError, match="valid_pairs=400 leaves no pair to train on; the sources have 400"):
        make(source, valid_pairs=400)


@pytest.mark.parametrize("options", [{"min_tokens": 0}, {"max_tokens": 4}, {"valid_pairs": -1}, {"seed": -1}])
def test_impossible_settings_are_refused(source: Path, options: dict) -> None:
    with pytest.raises(BgtError) as error:
        make(source, **options)
    assert error.value.exit_code == 2
    assert next(iter(options)) in str(error.value)


def test_a_damaged_store_is_refused(source: Path) -> None:
    folder = make(source).folder
    with pytest.raises(BgtError, match="split 'test': choose from train, valid"):
        Corpus.open(folder, "test")
    ids = (folder / "fr.ids").read_bytes()
    (folder / "fr.ids").write_bytes(ids[:-2])
    with pytest.raises(BgtError, match=r"damaged, or of another version: fr\.ids; start a new run"):
        Corpus.open(folder)
    (folder / "fr.ids").write_bytes(ids)
    store = json.loads((folder / "store.json").read_text())
    other = store | {"settings": store["settings"] | {"format": 99}}
    for text in ("{", "[]", "{}", json.dumps(other)):
        (folder / "store.json").write_text(text)
        with pytest.raises(BgtError, match=r"store\.json"):
            Corpus.open(folder)
    (folder / "store.json").unlink()
    with pytest.raises(BgtError, match="is not a token store") as error:
        Corpus.open(folder)
    assert error.value.exit_code == 3


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times as many pairs need about the same memory; a list of all pairs would need ten times as much."""
    for module, size in ((store, "BLOCK"), (textfile, "BLOCK")):
        monkeypatch.setattr(module, size, 4096)
    peaks = []
    for size in (500, 500, 5000):  # the first call also allocates objects that later calls reuse
        source = tmp_path / f"{size}.tsv"
        source.write_bytes(
            tsv((f"sentence number {n} of many", f"phrase {n} sur beaucoup d'autres") for n in range(size))
        )
        tracemalloc.start()
        make(source, out=tmp_path / f"store{len(peaks)}", valid_pairs=10)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1]


THREE = {"en": "en", "fr": "fr", "de": "de"}


def write(path: Path, rows: list[tuple[object, ...]]) -> Path:
    path.write_bytes(tsv(tuple(map(str, row)) for row in rows))
    return path


@pytest.fixture
def tokenizer() -> Tokenizer:
    text = [f"{word} number {n} of the list" for n in range(60) for word in ("sentence", "phrase", "satz")]
    return Tokenizer.train(text, 40, lowercase=True)


@pytest.fixture
def pairwise(tmp_path: Path) -> list[Source]:
    """60 English-French and 40 English-German pairs. 20 English sentences are in both files."""
    french = write(tmp_path / "en-fr.tsv", [(f"sentence number {n}", f"phrase number {n}") for n in range(60)])
    numbers = [*range(20), *range(60, 80)]
    german = write(tmp_path / "en-de.tsv", [(f"sentence number {n}", f"satz number {n}") for n in numbers])
    return [parse_source(f"en-fr={french}", tuple(THREE)), parse_source(f"en-de={german}", tuple(THREE))]


@pytest.fixture
def mixture(pairwise: list[Source], tokenizer: Tokenizer, tmp_path: Path) -> Mixture:
    store = tokenise(pairwise, tuple(THREE), tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=15, seed=1)
    assert isinstance(store, Mixture)
    return store


def texts(corpus: Corpus, column: str) -> set[tuple[int, ...]]:
    return {tuple(ids.tolist()) for ids in corpus.take(column, np.arange(len(corpus)))}


def test_a_mixture_is_opened_again_and_no_english_sentence_is_in_both_splits(mixture: Mixture) -> None:
    assert mixture.columns == THREE
    assert [corpus.columns for corpus in mixture.corpora] == [{"en": "en", "fr": "fr"}, {"en": "en", "de": "de"}]
    valid = open_corpus(mixture.folder, "valid")
    assert isinstance(valid, Mixture) and len(mixture) + len(valid) == 100
    train, held_out = (set().union(*(texts(corpus, "en") for corpus in part.corpora)) for part in (mixture, valid))
    assert held_out and not train & held_out
    assert 15 <= len(valid) <= 15 + 20  # 20 sentences have a row in each corpus, and both rows are held out together


def test_every_row_comes_once_an_epoch_in_batches_of_one_corpus(mixture: Mixture) -> None:
    batching = Batching(batch_tokens=150, micro_tokens=60, seed=1)
    seen: Counter[tuple[str, ...]] = Counter()
    mixed = 0
    for step in range(batching.updates(mixture)):
        update = batching.update(mixture, step)
        kinds = {tuple(batch.sides) for batch in update.batches.values()}
        mixed += len(kinds) == 2
        for batch in update.batches.values():
            assert all(side.lang == THREE[column] for column, side in batch.sides.items())
            seen[tuple(batch.sides)] += len(batch)
        assert sum(map(len, update.batches.values())) == update.rows
    assert seen == {tuple(corpus.columns): len(corpus) for corpus in mixture.corpora}
    assert mixed > 2
    valid = open_corpus(mixture.folder, "valid")
    assert sum(len(batch) for batch in validation(valid, 60)) == len(valid)


def test_each_of_three_columns_is_written_from_each_other_in_turn(tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [(f"sentence number {n}", f"phrase number {n}", f"satz number {n}") for n in range(60)]
    source = write(tmp_path / "three.tsv", rows)
    corpus = tokenise([source], tuple(THREE), tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=0, seed=1)
    batching = Batching(batch_tokens=200, micro_tokens=100, seed=1)
    ways: Counter[tuple[str, str]] = Counter()
    anchors: Counter[str] = Counter()
    for step in range(40):
        for batch in batching.update(corpus, step).batches.values():
            anchors[batch.anchor] += 1
            ways.update((batch.source(column), column) for column in batch.sides)
    assert set(ways) == {(source, column) for source in THREE for column in THREE if source != column}
    assert min(ways.values()) > 0.8 * max(ways.values())
    assert min(anchors.values()) > 0.8 * max(anchors.values())


def test_labels_and_targets_stay_with_their_rows(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """If a row is skipped or too long, its label and its target vector are skipped as well."""
    rows: list[tuple[object, ...]] = [(f"sentence number {n}", f"phrase number {n}", n) for n in range(40)]
    rows[3] = ("sentence number 3", "phrase number 3", "none")
    rows[5] = ("sentence number 5", "", 5)
    rows[7] = (" ".join(["sentence"] * 80), "phrase", 7)
    path = write(tmp_path / "labelled.tsv", rows)
    np.save(tmp_path / "vectors.npy", np.stack([np.arange(40.0), -np.arange(40.0)], 1))
    columns = ("en", "fr", "gold:label")
    source = Source(path, ("en", "fr", "gold"), tmp_path / "vectors.npy")
    corpus = tokenise(
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
        tokenise([source], ["en"], tokenizer, tmp_path / "store", min_tokens=1, valid_pairs=5, seed=1)
    assert not (tmp_path / "store").exists()
    assert not list(tmp_path.glob(".store*"))
