"""Translation retrieval: how often is a sentence's nearest neighbour in the other language its translation?

    pairs -> `EmbeddedSentences` of each language -> neighbours -> hits, (N,) -> share of hits

Only the sentence on the same line is a hit, as in LASER's error rate: a copy of the translation on another line is a
miss. If k sentences are equally near, up to rounding, and the translation is one of them, it counts as 1 / k of a hit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.columns import text_columns
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.systems import System, systems
from bgt_core.evaluation.task import Langs, Task
from bgt_core.vectors.arrays import BLOCK, Similarity, cosine_similarity, found
from bgt_core.vectors.arrays import hits as hits_among

POOL = "cosine in the pool"  # name, in results, of the search among all sentences of both languages
SIMILARITY = "cosine"  # name, in results, of the search by the encoder's own similarity, mostly the cosine

Translations = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # file -> the sentences of each language, line by line


class RetrievalKey(NamedTuple):
    file: str
    by: str  # "cosine" or "cosine in the pool"
    direction: str
    pairs: int


@dataclass(frozen=True)
class Retrieval(Task[Translations]):
    """Retrieval: is the nearest sentence in the other language the translation?

    Measures precision at 1, in percent and in both directions, with semantic latents. A copy of the translation on
    another line is a miss.
    """

    data = "Translations: TSV, Parquet, or X for the files X.en and X.fr. Each text is measured separately."
    across = "direction"

    langs: Langs
    pool: Annotated[bool, "Also search among all sentences of both languages."] = False

    def load(self, paths: Sequence[Path], *, seed: int) -> Translations:
        language_pair(self.langs)
        names = text_columns(self.langs)[0]
        columns = {path: list(zip(*read_pairs(path, names, Skipped(), strict=True), strict=True)) for path in paths}
        if not columns:
            raise UsageError("is needed: give one or more files of translations.", parameter="data")
        files = [path.name for path in paths]
        called = {path: path.name if files.count(path.name) == 1 else str(path) for path in paths}
        return {called[path]: (sides[0], sides[1]) if sides else ((), ()) for path, sides in columns.items()}

    def statistic(self, items: Translations, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Find each sentence's nearest neighbour in the other language, in both directions."""
        langs = language_pair(self.langs)
        for file, columns in items.items():
            sizes = [len(column) for column in columns]
            if sizes[0] != sizes[1] or not sizes[0]:
                counted = f"{sizes[0]} sentences in {langs[0]} and {sizes[1]} in {langs[1]}"
                raise DataError(f"{file}: {counted}; expected equal numbers of at least 1.")
        rows = systems(encoders, langs, SEMANTIC)
        ways = f"{langs[0]} to {langs[1]}", f"{langs[1]} to {langs[0]}{', back' if langs[0] == langs[1] else ''}"
        hits: dict[RetrievalKey, list[np.ndarray]] = {}
        for system, (file, columns) in product(rows, items.items()):
            left, right = (embed_distinct(system, column, lang) for column, lang in zip(columns, langs, strict=True))
            system.check_widths(left.vectors, right.vectors)
            similarity, pairs = system.encoder.similarity, len(columns[0])
            for way, of_way in zip(ways, hits_of(left, right, similarity), strict=True):
                hits.setdefault(RetrievalKey(file, SIMILARITY, way, pairs), []).append(of_way)
            for way, sides in zip(ways, ((left, right), (right, left)), strict=True) if self.pool else ():
                hits.setdefault(RetrievalKey(file, POOL, way, pairs), []).append(in_pool(*sides, similarity))
        copies = [
            f"{file}: {len(columns[0]):,} pairs; repeated sentences: "
            + ", ".join(f"{len(text) - len(set(text))} in {lang}" for text, lang in zip(columns, langs, strict=True))
            for file, columns in items.items()
        ]
        return Statistic(
            systems=[system.name for system in rows],
            hits={key: np.stack(of_systems) for key, of_systems in hits.items()},
            about=f"{'; '.join(copies)}; precision at 1 in percent, strict: a copy of the translation on another line "
            "is a miss",
        )


TASK = Retrieval


def language_pair(text: str) -> tuple[str, str]:
    """Return the languages of two columns: "en,fr" or "a:en,b:fr" -> ("en", "fr"); UsageError unless there are two."""
    langs = text_columns(text)[1]
    if len(langs) != 2:
        joined = text.split("-")
        hint = f"; separate languages by a comma: {','.join(joined)}" if len(joined) == 2 else ", as in en,fr"
        raise UsageError(f"{text}: expected two languages{hint}.", parameter="langs")
    return langs[0], langs[1]


class EmbeddedSentences(NamedTuple):
    """The vectors of N sentences in one language: one for each of the U distinct sentences, so that copies share it."""

    vectors: np.ndarray  # (U, D)
    first: np.ndarray  # (U,) index of the first line with each distinct sentence
    of_line: np.ndarray  # (N,) index of each line's sentence among the distinct sentences


def embed_distinct(system: System, sentences: Sequence[str], lang: str) -> EmbeddedSentences:
    """Embed N sentences of one language, equal sentences only once."""
    rows: dict[str, int] = {}
    of_line = np.array([rows.setdefault(sentence, len(rows)) for sentence in sentences])
    return EmbeddedSentences(system.embed(list(rows), lang), np.unique(of_line, return_index=True)[1], of_line)


def hits_of(
    left: EmbeddedSentences, right: EmbeddedSentences, similarity: Similarity = cosine_similarity
) -> tuple[np.ndarray, np.ndarray]:
    """Search translations in both directions; return 1 where the nearest neighbour is the translation, (N,) each."""
    forward, backward = (
        found(queries.vectors[queries.of_line], answers.vectors, answers.of_line, similarity)
        * (answers.first[answers.of_line] == np.arange(len(answers.of_line)))  # a copy of an earlier line is a miss
        for queries, answers in ((left, right), (right, left))
    )
    return forward, backward


def in_pool(
    queries: EmbeddedSentences, answers: EmbeddedSentences, similarity: Similarity = cosine_similarity
) -> np.ndarray:
    """Search translations in the sentences of both languages, without the query itself; return 1 if found, (N,)."""
    shares = np.empty(len(queries.of_line))
    for start in range(0, len(shares), BLOCK):
        lines = slice(start, start + BLOCK)
        own, place = queries.of_line[lines], np.arange(len(queries.of_line[lines]))
        across = similarity(queries.vectors[own], answers.vectors)
        within = similarity(queries.vectors[own], queries.vectors)
        within[place, own] = -np.inf
        shares[lines] = hits_among(np.hstack([across, within]), answers.of_line[lines])
    return shares * (answers.first[answers.of_line] == np.arange(len(shares)))  # a copy of an earlier line is a miss
