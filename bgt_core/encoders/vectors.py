"""An encoder that looks up the vector of each sentence in a file of stored vectors.

The file is one of:

    NAME.npy   (N, D) numbers, beside NAME.txt with one sentence per line, as `bgt embed NAME.txt --out NAME.npy` makes
    NAME.npz   "vectors", (N, D) numbers, and "sentences", (N,) text, as np.savez writes them; nothing is unpickled
"""

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np

from bgt_core.data.text import normalise
from bgt_core.data.textfile import text_lines
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from bgt_core.vectors.arrays import DAMAGE, matrix, read_npy


def open_encoder(name: str, device: str = "cpu", precision: str = "fp32") -> ExternalEncoder:
    """Open a file of stored vectors, NAME.npy or NAME.npz, as an encoder."""
    return look_up(Path(name))


def look_up(path: Path, name: str = "") -> ExternalEncoder:
    """Open a file of vectors as an encoder, which normalises sentences and looks up their vectors.

    `name`, by default the path, appears in messages. Raises UsageError for another kind of file, NotFound if the file
    is absent, DataError if it is damaged or has two different vectors for a sentence. The encoder raises DataError for
    a sentence that is not in the file.
    """
    name = name or str(path)
    spec = f"vectors:{name}"
    sentences, vectors = read(path, name)
    if len(sentences) != len(vectors):
        raise DataError(f"{name}: {len(vectors)} vectors for {len(sentences)} sentences; expected one for each.")
    if not sentences:
        raise DataError(f"{name}: empty; expected sentences and their vectors.")
    table = matrix(vectors, spec, (len(sentences), "D"), texts=sentences)
    rows: dict[str, int] = {}
    for row, sentence in enumerate(sentences):
        first = rows.setdefault(normalise(sentence), row)
        if first != row and not np.array_equal(table[first], table[row]):
            raise DataError(f"{name}: rows {first + 1} and {row + 1} differ for the same sentence, {sentence[:60]!r}.")

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        keys = [normalise(sentence) for sentence in texts]
        missing = [sentence for sentence, key in zip(texts, keys, strict=True) if key not in rows]
        if missing:
            raise DataError(f"{name}: no vector for {missing[0][:60]!r} ({len(missing)} of {len(texts)} missing).")
        return table[[rows[key] for key in keys]]

    fingerprint = hashlib.sha256(table.tobytes() + "\n".join(sentences).encode()).hexdigest()
    encoder = ExternalEncoder(spec, embed, sample=sentences[0], fingerprint=fingerprint)
    encoder.sentences = rows
    return encoder


def read(path: Path, name: str) -> tuple[list[str], np.ndarray]:
    """Read N sentences and their vectors (N, D) from a file. The numbers are not checked."""
    if path.suffix not in (".npy", ".npz"):
        raise UsageError(f"{name}: expected NAME.npy with NAME.txt beside it, or NAME.npz.")
    try:
        if path.suffix == ".npy":
            vectors, sentences = np.array(read_npy(path)), None
        else:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                vectors, sentences = file["vectors"], file["sentences"]
    except BgtError:
        raise
    except OSError as error:
        raise NotFound(f"{name}: can't be read ({error.strerror or error}).") from None
    except KeyError:
        raise DataError(f'{name}: expected two arrays, "vectors" and "sentences".') from None
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        objects = "Object arrays" in str(error)  # NumPy's messages advise to unpickle the file, which may run its code
        reason = "Python objects; use .astype(str) for text" if objects else str(error).partition(" If you")[0]
        raise DataError(f"{name}: not a NumPy file of numbers or text, or damaged ({reason}).") from None
    if sentences is None:
        text = path.with_suffix(".txt")
        if not text.is_file():
            raise NotFound(f"{text}: no such file; expected the sentences of {path.name}, one per line.")
        return [line for _, line in text_lines(text)], vectors
    if sentences.dtype.kind != "U" or sentences.ndim != 1:
        raise DataError(f'{name}: "sentences" is {sentences.dtype} of shape {sentences.shape}; expected text, (N,).')
    return sentences.tolist(), vectors
