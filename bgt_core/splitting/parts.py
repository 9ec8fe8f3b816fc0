"""A split of an encoder's vectors into the part that sentences with the same meaning share, and the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as serialised

from bgt_core.data.columns import known_lang
from bgt_core.errors import DataError, NotFound
from bgt_core.files import atomic_folder, lasting_name, read_json, sha256_file, write_json, write_text
from bgt_core.vectors.arrays import matrix

HIDDEN = ("up", "bias", "down")  # names of the arrays of `Map.hidden` in a file


@dataclass(frozen=True, eq=False)
class Map:
    """The map that splits the vectors of one language into a shared and a private part.

    shared = (vector - offset) read^T + relu((vector - offset) up^T + bias) down^T + centre
    private = vector - shared back^T
    """

    offset: np.ndarray  # (D,)
    read: np.ndarray  # (K, D)
    back: np.ndarray  # (D, K)
    centre: np.ndarray  # (K,)
    hidden: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # up (H, D), bias (H,), down (K, H)

    def shared(self, vectors: np.ndarray) -> np.ndarray:
        """Compute the shared parts: (N, D) -> (N, K)."""
        centred = vectors - self.offset
        linear = centred @ self.read.T + self.centre
        if self.hidden is None:
            return linear
        up, bias, down = self.hidden
        return linear + np.maximum(centred @ up.T + bias, 0) @ down.T

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the map by name, as they are stored in a file."""
        named = {"offset": self.offset, "read": self.read, "back": self.back, "centre": self.centre}
        return named | dict(zip(HIDDEN, self.hidden or (), strict=False))

    def check(self, width: int, shared_width: int) -> None:
        """Raise ValueError if an array has a wrong shape, or contains NaN or infinity."""
        units = len(self.hidden[1]) if self.hidden else 0
        expected = {
            "offset": (width,), "read": (shared_width, width), "back": (width, shared_width), "centre": (shared_width,),
            "up": (units, width), "bias": (units,), "down": (shared_width, units),
        }  # fmt: skip
        for name, array in self.arrays().items():
            if array.shape != expected[name] or not np.isfinite(array).all():
                raise ValueError(f"{name} {array.shape}: expected the shape {expected[name]} and finite numbers")


@dataclass(frozen=True, eq=False)
class Split:
    """A fitted split of an encoder's vectors of D units.

    Args:
        method: Name of the method that fitted the split.
        maps: Language code -> the map that splits the vectors of this language.
        about: The method's choices and scores, as numbers, strings and lists, for the README of the split's folder.
    """

    method: str
    maps: Mapping[str, Map]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def langs(self) -> Sequence[str]:
        """The languages whose vectors can be split."""
        return tuple(self.maps)

    @property
    def width(self) -> int:
        """The number of units D of a vector, and of its private part."""
        return len(next(iter(self.maps.values())).offset)

    @property
    def shared_width(self) -> int:
        """The number of units K of a shared part."""
        return len(next(iter(self.maps.values())).centre)

    def shared(self, vectors: np.ndarray, lang: str) -> np.ndarray:
        """Return the shared part of each vector, (N, D) -> (N, K); raises the errors of `parts`."""
        return self.of(lang).shared(self.checked(vectors))

    def private(self, vectors: np.ndarray, lang: str) -> np.ndarray:
        """Return the private part of each vector, (N, D) -> (N, D); raises the errors of `parts`."""
        return self.parts(vectors, lang)[1]

    def parts(self, vectors: np.ndarray, lang: str) -> tuple[np.ndarray, np.ndarray]:
        """Split vectors of one language into shared and private parts.

        Args:
            vectors: Vectors (N, D).
            lang: Language of the sentences.

        Returns:
            The shared parts (N, K) and the private parts (N, D), in the precision of the split.

        Raises:
            UsageError: The split was not fitted on this language.
            DataError: The split was fitted on vectors of another width, or `matrix` rejects the vectors.
        """
        of, vectors = self.of(lang), self.checked(vectors)
        shared = of.shared(vectors)
        private = vectors - shared @ of.back.T
        # Set rounding errors to 0: they depend on the vector, so a probe could learn from them.
        private[np.abs(private) <= 4 * np.finfo(private.dtype).eps * (np.abs(vectors) + np.abs(of.offset))] = 0
        return shared, private

    def join(self, shared: np.ndarray, private: np.ndarray, lang: str) -> np.ndarray:
        """Combine shared and private parts to vectors of `lang`: (N, K), (N, D) -> (N, D).

        The two parts of one sentence restore its vector. The shared part of one sentence, in any language, and the
        private part of another combine the meaning of the first with the other properties of the second.
        """
        back, shared = self.of(lang).back, matrix(shared, "shared", ("N", self.shared_width), dtype=None)
        return shared @ back.T + matrix(private, "private", (len(shared), self.width), dtype=None)

    def of(self, lang: str) -> Map:
        """Return the map that splits vectors of a language; UsageError if the split was not fitted on this language."""
        return self.maps[known_lang(lang, self.langs, "the split")]

    def checked(self, vectors: object) -> np.ndarray:
        """Convert vectors to an array (N, D) without changing their precision; raises the errors of `matrix`."""
        return matrix(vectors, "vectors", ("N", self.width), dtype=None)


# The folder of a split contains split.safetensors (float32), split.json, and README.md, which describes the split.

WEIGHTS, ABOUT, CARD, SCHEMA = "split.safetensors", "split.json", "README.md", "bgt-split/1"

TEXT = """# A split of {encoder}

Fitted by `bgt split` with the method {method} on {rows} rows of sentences that mean the same, in {langs}. A vector of
{width} units is split into a shared part of {shared_width} units and a private part of {width} units.

| {held_out_rows} held-out rows | translation is nearest in its column, % | in all columns, % | language told, % |
|---|---:|---:|---:|
{table}

`--model split:FOLDER` opens this split in every command, `bgt_core.open_encoder("split:FOLDER")` in Python. The encoder
itself is not in this folder.
"""


@dataclass(frozen=True, eq=False)
class StoredSplit:
    """A split, and the name and fingerprint (`encoders.identity`) of the encoder whose vectors it splits; both are ""
    if stored vectors were split without naming their encoder. If the name is a path, `save` makes it absolute."""

    split: Split
    encoder: str
    fingerprint: str
    sha256: str = ""  # hash of split.safetensors; "" unless the split was loaded


def save(folder: Path, stored: StoredSplit) -> None:
    """Write a split to a new folder, completely or not at all; UsageError if the folder exists."""
    split = stored.split
    tensors = {
        f"{lang}/{name}": np.ascontiguousarray(array, np.float32)
        for lang, of in split.maps.items()
        for name, array in of.arrays().items()
        if array.ndim != 2 or not np.array_equal(array, np.eye(len(array)))  # an identity matrix need not be stored
    }
    with atomic_folder(folder) as partial:
        (partial / WEIGHTS).write_bytes(serialised(tensors))  # `save_file` raises no OSError if the disk is full
        about = {
            "schema": SCHEMA,
            "method": split.method,
            "encoder": lasting_name(stored.encoder),
            "fingerprint": stored.fingerprint,
            "langs": list(split.langs),
            "about": dict(split.about),
            "files": {WEIGHTS: sha256_file(partial / WEIGHTS)},
        }
        write_json(partial / ABOUT, about)
        write_text(partial / CARD, card(stored))


def load(folder: Path) -> StoredSplit:
    """Read a folder that `save` wrote.

    Raises:
        NotFound: A file is missing.
        DataError: A file is damaged, or is not a file of a split.
    """
    for name in (ABOUT, WEIGHTS):
        if not (folder / name).is_file():
            raise NotFound(f"{folder / name}: missing; expected a folder that `bgt split` wrote.")
    about = read_json(folder / ABOUT)
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise DataError(f"{folder / ABOUT}: its schema is not {SCHEMA}; expected a file that `bgt split` wrote.")
    sha256 = sha256_file(folder / WEIGHTS)
    try:
        if sha256 != about["files"][WEIGHTS]:
            reason = f"its hash differs from that in {ABOUT}: the file is damaged, or belongs to another split"
            raise DataError(f"{folder / WEIGHTS}: {reason}. Copy it again.")
        tensors = load_file(folder / WEIGHTS)
        same = np.eye(len(tensors[f"{about['langs'][0]}/offset"]), dtype=np.float32)
        maps = {
            lang: Map(
                tensors[f"{lang}/offset"],
                tensors.get(f"{lang}/read", same),
                tensors.get(f"{lang}/back", same),
                tensors[f"{lang}/centre"],
                (tensors[f"{lang}/up"], tensors[f"{lang}/bias"], tensors[f"{lang}/down"])
                if f"{lang}/up" in tensors
                else None,
            )
            for lang in about["langs"]
        }
        for of in maps.values():
            of.check(len(same), len(maps[about["langs"][0]].centre))
        split = Split(str(about["method"]), maps, dict(about["about"]))
        return StoredSplit(split, str(about["encoder"]), str(about["fingerprint"]), sha256)
    except (SafetensorError, KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(f"{folder}: not a complete split ({error}). Fit it again.") from None


def card(stored: StoredSplit) -> str:
    """Describe a split in Markdown, for its README: the data, the sizes, and the scores on held-out rows."""
    split, about = stored.split, stored.split.about
    columns = ("found", "pool", "language_told")
    rows = [
        [part, *("" if of.get(name) is None else f"{100 * of[name]:.1f}" for name in columns)]
        for part, of in about["scores"].items()
    ]
    return TEXT.format(
        encoder=stored.encoder or "stored vectors",
        method=split.method,
        langs=", ".join(split.langs),
        width=split.width,
        shared_width=split.shared_width,
        table="\n".join(f"| {' | '.join(row)} |" for row in rows),
        **{name: f"{about[name]:,}" for name in ("rows", "held_out_rows")},
    )
