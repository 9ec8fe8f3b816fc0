"""Files of every format give the same pairs. Bad lines are skipped and counted, or raise an error."""

import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from bgt_core.data import parallel, textfile
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import BgtError, UsageError

LANGS = ("en", "fr")
PAIRS = [("The cat sleeps.", "Le chat dort."), ("Good evening!", "Bonsoir !"), ("A red house.", "Une maison rouge.")]
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def tsv(pairs: Iterable[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(pair) + "\n" for pair in pairs).encode()


def read(source: Path, **options) -> tuple[list[tuple[str, ...]], Skipped]:
    skipped = Skipped()
    return list(read_pairs(source, LANGS, skipped, **options)), skipped


@pytest.mark.parametrize("end", PACK)
def test_tsv_and_moses(tmp_path: Path, end: str) -> None:
    (tmp_path / f"corpus.tsv{end}").write_bytes(PACK[end](tsv(PAIRS)))
    for side, lang in enumerate(LANGS):
        text = "".join(pair[side] + "\n" for pair in PAIRS).encode()
        (tmp_path / f"corpus.{lang}{end}").write_bytes(PACK[end](text))
    assert read(tmp_path / f"corpus.tsv{end}") == read(tmp_path / "corpus") == (PAIRS, Skipped())
    if end:  # a file may consist of two compressed streams
        (tmp_path / f"parts.tsv{end}").write_bytes(PACK[end](tsv(PAIRS[:2])) + PACK[end](tsv(PAIRS[2:])))
        assert read(tmp_path / f"parts.tsv{end}")[0] == PAIRS


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
def test_parquet(tmp_path: Path, text: pa.DataType) -> None:
    english, french = (pa.array(side, text) for side in zip(*PAIRS, strict=True))
    table = pa.table({"fr": french, "score": [1.0, 2.0, 3.0], "en": english})
    pq.write_table(table, tmp_path / "corpus.parquet", row_group_size=2)
    assert read(tmp_path / "corpus.parquet") == (PAIRS, Skipped())
    pq.write_table(pa.table({"en": ["one", None, "three"], "fr": ["un", "deux", ""]}), tmp_path / "bad.parquet")
    pairs, skipped = read(tmp_path / "bad.parquet")
    assert pairs == [("one", "un")] and skipped.counts == {"empty side": 2}
    assert skipped.examples[0].endswith("bad.parquet:2: the en side is empty; expected text")


def test_bad_lines_are_skipped_and_named(tmp_path: Path) -> None:
    source = tmp_path / "corpus.tsv"
    bad = [b"alone", b"a\tb\tc", b"caf\xe9\tcaf\xe9", b"left\t \xe2\x80\x8b", b"", b"\tright", b"a\0\tb"]
    good = tsv(PAIRS).splitlines()
    source.write_bytes(b"\n".join([good[0], *bad[:2], good[1], *bad[2:], good[2]]))
    pairs, skipped = read(source)
    assert pairs == PAIRS
    assert skipped.counts == {"wrong number of columns": 3, "not UTF-8": 1, "empty side": 2, "NUL": 1}
    assert skipped.examples == [
        f"{source}:2: 1 column, expected 2 (en, fr)",
        f"{source}:3: 3 columns, expected 2 (en, fr)",
        f"{source}:5: byte 0xe9 is not UTF-8; convert the file to UTF-8",
        f"{source}:6: the fr side is empty; expected text",
        f"{source}:7: 1 column, expected 2 (en, fr)",
        f"{source}:8: the en side is empty; expected text",
        f"{source}:9: contains a NUL; expected text",
    ]
    with pytest.raises(BgtError, match=r"corpus\.tsv:2: 1 column, expected 2 \(en, fr\)"):
        read(source, strict=True)
    source.write_bytes(b"bad\n" * 50 + tsv(PAIRS))
    assert (read(source)[1].counts.total(), len(read(source)[1].examples)) == (50, 20)


def test_text_is_normalised_and_quotes_are_text(tmp_path: Path) -> None:
    source = tmp_path / "corpus.tsv"
    source.write_bytes('\ufeff"A quote\t  cafe\u0301  noir\n"'.encode() + b"b\tc\n")
    assert read(source)[0] == [('"A quote', "café noir"), ('"b', "c")]
    source.write_bytes("one\u2028two\tthree\rfour\r\n".encode())  # only a line feed ends a line
    assert read(source)[0] == [("one two", "three four")]
    source.write_bytes(b'"Go!"\t"Va !"\nNo.\tNon.\n')
    assert read(source)[0] == [('"Go!"', '"Va !"'), ("No.", "Non.")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"corpus\.tsv is empty; expected one translation per line, in en, fr"),
        (b"en\tfr\na\tb\n", r"corpus\.tsv:1: a header, which would be read as a translation; remove this line"),
        (b"English\tFrench\na\tb\n", r"corpus\.tsv:1: a header"),
        (b'"a"\t"b"\n"c"\t"d"\n', r"corpus\.tsv: every cell is quoted, and the quotes would be read as text"),
        (b"one\ntwo\n", r"none of the 2 lines .* is a translation; .*:1: 1 column, expected 2 \(en, fr\)"),
    ],
)
def test_a_file_without_translations_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    source = tmp_path / "corpus.tsv"
    source.write_bytes(content)
    with pytest.raises(BgtError, match=message):
        read(source)


def test_absent_files_and_files_of_different_length_are_refused(tmp_path: Path) -> None:
    for source in (tmp_path / "absent.tsv", tmp_path):
        with pytest.raises(
            BgtError, match=r"expected a \.tsv .* a \.parquet file, or the prefix of .*\.en and .*\.fr"
        ) as error:
            read(source)
        assert error.value.exit_code == 3
    (tmp_path / "corpus.en.gz").write_bytes(b"")
    with pytest.raises(BgtError, match=r"found .*corpus\.en\.gz, but no .*corpus\.fr beside it"):
        read(tmp_path / "corpus")
    (tmp_path / "corpus.en").write_bytes(b"a\nb\nc\n")
    (tmp_path / "corpus.fr").write_bytes(b"a\nb\nc\nd\ne")
    with pytest.raises(BgtError, match=r"same number of lines; .*\.en has 3, .*\.fr has 5"):
        read(tmp_path / "corpus")


@pytest.mark.parametrize("end", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["truncated", "foreign"])
def test_damaged_compression_is_refused(tmp_path: Path, end: str, damage: str) -> None:
    noise = np.random.default_rng(0).integers(97, 123, (2000, 8), dtype=np.uint8)
    packed = PACK[end](b"".join(row.tobytes() + b"\ttext\n" for row in noise))
    source = tmp_path / f"corpus.tsv{end}"
    source.write_bytes(packed[: len(packed) // 2] if damage == "truncated" else b"a\tb\n" * 100)
    with pytest.raises(BgtError, match=rf"corpus\.tsv{end} is cut short or damaged"):
        read(source)


def test_unusable_parquet_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"en": ["a"], "de": ["b"]}), source)
    with pytest.raises(BgtError, match=r"no column 'fr'; its columns are en, de"):
        read(source)
    pq.write_table(pa.table({"en": ["a"], "fr": [1]}), source)
    with pytest.raises(BgtError, match=r"column 'fr' .* is of type int64; expected text"):
        read(source)
    source.write_bytes(source.read_bytes()[:-20])
    with pytest.raises(BgtError, match="not a Parquet file, or damaged"):
        read(source)


def test_a_file_without_line_feeds_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "LONGEST_LINE", 1000)
    source = tmp_path / "corpus.tsv"
    source.write_bytes(b"x" * 1001)
    with pytest.raises(BgtError, match="a line of more than 1000 bytes"):
        read(source)


def test_stdin_and_pipes_are_read_where_once_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(tsv(PAIRS))))
    assert read(Path("-")) == (PAIRS, Skipped())
    reader, writer = os.pipe()
    os.write(writer, tsv(PAIRS))
    os.close(writer)
    pipe = Path(f"/dev/fd/{reader}")
    with pytest.raises(UsageError, match="a pipe, but this text is read more than once"):
        parallel.source_files(pipe, LANGS)
    assert read(pipe) == (PAIRS, Skipped())
    os.close(reader)
