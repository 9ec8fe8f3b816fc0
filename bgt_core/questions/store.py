"""Search a store: the stored questions nearest to a new one, with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from bgt_core.adapters.named import identity
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.text import normalise
from bgt_core.errors import DataError, UsageError, check_least
from bgt_core.files import sha256_file
from bgt_core.mining.neighbours import load_faiss
from bgt_core.questions.card import MAIN_TOPICS, QUESTIONS, TOPICS, VECTORS, StoreCard
from bgt_core.questions.ranking import Ranking, ranking_of
from bgt_core.questions.topics import TopicModel
from bgt_core.vectors.arrays import read_npy
from bgt_core.vectors.file import read

SHORTLIST = 500  # candidates nearest by distance, which the model then ranks
BLOCK = 4_096  # questions that the model compares at once


class Hit(NamedTuple):
    """A stored question."""

    row: int  # in the store, from 0
    question: str
    probability: float | None  # that it means the same as the query; None if the store has no probabilities
    w2: float | None  # Wasserstein distance of the two posteriors; None for an encoder without them
    cosine: float | None  # for an encoder compared by cosine
    topic: int | None  # its main topic; None for a store without topics


class QuestionStore:
    """Questions in memory, as points that FAISS searches; the vectors for ranking by the model stay on disk.

    `questions` are the stored ones, `topics` their topic model, or None; `main_topics` (N,) is the largest topic of
    each question. Open one with `QuestionStore.open`.
    """

    def __init__(
        self,
        card: StoreCard,
        ranking: Ranking,
        questions: Sequence[str],
        vectors: np.ndarray,
        topics: TopicModel | None = None,
        main_topics: np.ndarray | None = None,
    ):
        self.card, self.questions, self.topics, self.main_topics = card, questions, topics, main_topics
        self.ranking, self._vectors = ranking, vectors
        # Sorted by topic, so that those of a topic are contiguous.
        self._order = np.arange(len(questions)) if main_topics is None else np.argsort(main_topics, kind="stable")
        self._points = ranking.points(vectors[self._order])  # (N, P)
        self._ends = np.zeros(1, dtype=int)  # (K + 1,): a zero, then the end of each topic's points
        if main_topics is not None:
            self._ends = np.append(self._ends, np.bincount(main_topics, minlength=card.topics).cumsum())

    @classmethod
    def open(cls, folder: Path | str, encoder: SentenceEncoder) -> Self:
        """Open the store in a folder, which `encoder` must have made.

        Raises NotFound without a store or without FAISS, UsageError for another encoder, DataError for files that do
        not belong together.
        """
        load_faiss()
        folder = Path(folder)
        card = StoreCard.load(folder)
        if card.encoder != identity(encoder):
            made = f", {card.model}" if card.model else ""
            raise UsageError(
                f"did not make {folder}{made}; use the encoder that did, or build the store again.",
                parameter="model",
            )
        if not (folder / QUESTIONS).is_file() or sha256_file(folder / QUESTIONS) != card.text:
            raise DataError(f"{folder / QUESTIONS}: absent or changed since it was embedded; build the store again.")
        questions = (folder / QUESTIONS).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        record, vectors = read(folder / VECTORS)
        if record["lang"] != card.lang or len(vectors) != len(questions):
            raise DataError(f"{folder / VECTORS}: not the vectors of {QUESTIONS}; build the store again.")
        if not card.topics:
            return cls(card, ranking_of(encoder), questions, vectors)
        topics, main_topics = TopicModel.load(folder / TOPICS), load_main_topics(folder, len(questions), card.topics)
        return cls(card, ranking_of(encoder), questions, vectors, topics, main_topics)

    def __len__(self) -> int:
        return len(self.questions)

    def query(
        self, queries: Sequence[str], *, k: int = 10, within: int | None = None, shortlist: int | None = SHORTLIST
    ) -> list[list[Hit]]:
        """Find the k stored questions nearest to each of these, best first.

        The `shortlist` nearest by distance are ranked by the model; None ranks them all. With `within`, only questions
        whose main topic is one of the query's largest `within` topics are searched; a query without a word that has a
        topic searches all. Raises UsageError for numbers below 1, for topics that the store lacks, and for an empty
        query.
        """
        check_least(1, k=k, within=within, shortlist=shortlist)
        if within is not None and self.topics is None:
            raise UsageError(
                "needs topics, which this store lacks; build it with topics, or search all of it.", parameter="within"
            )
        texts = [normalise(query) for query in queries]
        if not all(texts):
            raise UsageError(f"Query {texts.index('') + 1} is empty; expected a question.")
        vectors = self.ranking.encoder.embed(texts, lang=self.card.lang)
        return [
            self._nearest(vector, self._ranges(text, within), k, shortlist)
            for text, vector in zip(texts, vectors, strict=True)
        ]

    def _ranges(self, text: str, within: int | None) -> list[tuple[int, int]]:
        """The ranges of points to search: from, to."""
        everything = [(0, len(self))]
        if within is None or self.topics is None:
            return everything
        shares = self.topics.shares([text])[0]
        if np.ptp(shares) < 1e-9:  # it has no word with a topic
            return everything
        largest = np.argsort(-shares, kind="stable")[:within]
        ranges = [(int(self._ends[topic]), int(self._ends[topic + 1])) for topic in sorted(largest)]
        return [(start, end) for start, end in ranges if start < end] or everything

    def _nearest(
        self, vector: np.ndarray, ranges: Sequence[tuple[int, int]], k: int, shortlist: int | None
    ) -> list[Hit]:
        point = self.ranking.points(vector[None])  # (1, P)
        count = len(self) if shortlist is None else max(k, shortlist)
        places, squares = nearest_points(point, self._points, ranges, count)
        rows = self._order[places]
        scores = np.concatenate(
            [
                self.ranking.scores(vector, self._vectors[rows[start : start + BLOCK]])
                for start in range(0, len(rows), BLOCK)
            ]
        )
        best = np.lexsort((rows, squares, -scores))[:k]  # ties are ordered by distance, then by row
        distances = np.sqrt(squares[best].clip(min=0))
        calibration = self.card.calibration
        probabilities = calibration(scores[best]) if calibration else [None] * len(best)
        siamese = self.ranking.by == "probability"
        return [
            Hit(
                row=int(row),
                question=self.questions[row],
                probability=None if probability is None else float(probability),
                w2=float(distance) if siamese else None,
                cosine=None if siamese else float(score),
                topic=None if self.main_topics is None else int(self.main_topics[row]),
            )
            for row, probability, distance, score in zip(
                rows[best], probabilities, distances, scores[best], strict=True
            )
        ]


def nearest_points(
    point: np.ndarray, points: np.ndarray, ranges: Sequence[tuple[int, int]], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` points (N, P) nearest to one, (1, P), among these ranges: indices (C,), squared distances (C,).

    If that is all of them, they come in order of index.
    """
    if count >= sum(end - start for start, end in ranges):
        places = np.concatenate([np.arange(start, end) for start, end in ranges])
        return places, np.concatenate([((points[start:end] - point) ** 2).sum(1) for start, end in ranges])
    faiss = load_faiss()
    searched = [
        (start, *faiss.knn(point, points[start:end], min(count, end - start), faiss.METRIC_L2)) for start, end in ranges
    ]
    squares = np.concatenate([squares[0] for _, squares, _ in searched])
    places = np.concatenate([start + places[0] for start, _, places in searched])
    kept = np.argsort(squares, kind="stable")[:count]
    return places[kept], squares[kept]


def load_main_topics(folder: Path, questions: int, topics: int) -> np.ndarray:
    """The largest topic of each question, (N,); DataError if the file is damaged."""
    try:
        main_topics = read_npy(folder / MAIN_TOPICS)
        if main_topics.shape != (questions,) or not 0 <= main_topics.min() <= main_topics.max() < topics:
            raise ValueError(f"no {questions} topics below {topics}")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{folder / MAIN_TOPICS}: absent or damaged ({error}); build the store again.") from None
    return main_topics
