"""A token store has the right rows in each split, and is complete or absent."""

import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from bgt_core.contracts import EOS
from bgt_core.data import store, textfile
from bgt_core.data.columns import Source
from bgt_core.data.corpus import Corpus, Stratum
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import BgtError

LANGS = ("en", "fr")


def tsv(pairs: Iterable[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(pair) + "\n" for pair in pairs).encode()


class Words(Tokenizer):
    """A tokenizer with one token per word, so that a test can count tokens; ids are computed from the word."""

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
    """400 pairs of 5 to 12 words; each English sentence occurs with four translations, in different letter case."""
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
    return prepare([Source(source, LANGS, kind=kind)], LANGS, **(defaults | options))


def test_the_filter_keeps_5_to_100_tokens(tmp_path: Path) -> None:
    sizes = [(4, 50), (50, 4), (5, 100), (100, 5), (101, 50), (50, 101), (4, 101)]
    source = tmp_path / "corpus.tsv"
    source.write_bytes(tsv(words(*size) for size in sizes))
    corpus = make(source, valid_pairs=0)
    assert corpus.lengths(np.arange(2)).tolist() == [[6, 101], [101, 6]]  # EOS counts here
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
    monkeypatch.setattr(Words, "encode", None)  # nothing is tokenised again
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
        prepare([source, second], LANGS, trained(source), source.with_name("strict"), **limits, strict=True)
    told = prepare([source, second], LANGS, trained(source), source.with_name("store"), **limits).store
    assert told["skipped_examples"][0] == f"{second}:1: 1 column, expected 2 (en, fr)"
    assert all(told["pairs"].values())  # some are kept, too short, too long
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
    with pytest.raises(BgtError, match="no pair is left of 400: each side needs 50 to 100 tokens, 400 are too short"):
        make(source, min_tokens=50)
    with pytest.raises(BgtError, match="valid_pairs=400 leaves no pair to train on; the sources give 400"):
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
    with pytest.raises(BgtError, match=r"damaged, or of another version: fr\.ids; prepare it again"):
        Corpus.open(folder)
    (folder / "fr.ids").unlink()
    with pytest.raises(BgtError, match=r"fr\.ids"):
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
    """Ten times the pairs need no more memory; a list of all pairs would need ten times as much."""
    for module, size in ((store, "BLOCK"), (textfile, "BLOCK")):
        monkeypatch.setattr(module, size, 4096)
    peaks = []
    for size in (500, 500, 5000):  # the first call also makes objects that later calls reuse
        source = tmp_path / f"{size}.tsv"
        source.write_bytes(
            tsv((f"sentence number {n} of many", f"phrase {n} sur beaucoup d'autres") for n in range(size))
        )
        tracemalloc.start()
        make(source, out=tmp_path / f"store{len(peaks)}", valid_pairs=10)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1]
