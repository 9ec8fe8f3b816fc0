"""The files of a store, and the card that records how it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from bgt_core.adapters.named import identity
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.text import normalise
from bgt_core.errors import DataError, NotFound, UsageError, check_least
from bgt_core.files import read_json, sha256_file, write_json
from bgt_core.mining.neighbours import load_faiss
from bgt_core.questions.ranking import Platt, Ranking, ranking_of
from bgt_core.vectors.file import read

SCHEMA = "bgt-questions/2"
CARD, QUESTIONS, VECTORS = "card.json", "questions.txt", "vectors.npy"


@dataclass(frozen=True)
class StoreCard:
    """The record of a store, written last: a folder without it is not a complete store."""

    questions: int
    text: str  # SHA-256 of questions.txt
    encoder: str  # `adapters.named.identity` of the encoder
    model: str  # the spec of that encoder
    by: str  # "probability" or "cosine": the order of results
    lang: str
    calibration: Platt | None  # from scores to probabilities; None if the store has none
    calibrated_on: str  # the labelled pairs; "" for a model's own probabilities
    version: str

    def save(self, folder: Path) -> None:
        """Write it as JSON."""
        write_json(folder / CARD, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def load(cls, folder: Path) -> StoreCard:
        """Read it. Raises NotFound if the folder is not a store, DataError if its card is damaged."""
        try:
            return cls._read(read_json(folder / CARD))
        except NotFound:
            raise NotFound(
                f"{folder}: not a store of questions; make one: bgt retrieve-similar build QUESTIONS --out {folder}"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{folder / CARD}: not the card of a store, or damaged ({error}); build it again."
            ) from None

    @classmethod
    def _read(cls, card: Mapping[str, Any]) -> StoreCard:
        fields = dict(card)
        if (schema := fields.pop("schema")) != SCHEMA:
            raise ValueError(f"schema {schema}, expected {SCHEMA}")
        scaling = fields.pop("calibration")
        return cls(**fields, calibration=scaling and Platt(float(scaling["slope"]), float(scaling["offset"])))


# Search a store: the stored questions nearest to a new one, with their scores.

SHORTLIST = 500  # candidates nearest by distance, which the model then ranks
BLOCK = 4_096  # questions that the model compares at once


class Hit(NamedTuple):
    """A stored question."""

    row: int  # in the store, from 0
    question: str
    probability: float | None  # that it means the same as the query; None if the store has no probabilities
    w2: float | None  # Wasserstein distance of the two posteriors; None for an encoder without them
    cosine: float | None  # for an encoder compared by cosine


class QuestionStore:
    """Questions in memory, as points that FAISS searches; the vectors for ranking by the model stay on disk.

    Open one with `QuestionStore.open`.
    """

    def __init__(self, card: StoreCard, ranking: Ranking, questions: Sequence[str], vectors: np.ndarray):
        self.card, self.ranking, self.questions, self._vectors = card, ranking, questions, vectors
        self._points = ranking.points(vectors)  # (N, P)

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
        return cls(card, ranking_of(encoder), questions, vectors)

    def __len__(self) -> int:
        return len(self.questions)

    def query(
        self,
        queries: Sequence[str],
        *,
        k: int = 10,
        shortlist: int | None = SHORTLIST,
        among: Callable[[str], np.ndarray] | None = None,
    ) -> list[list[Hit]]:
        """Find the k stored questions nearest to each of these, best first.

        The `shortlist` nearest by distance are ranked by the model; None ranks them all. `among` gives the rows of the
        store to search for a query, (M,), such as those of its topics (`examples/questions_by_topic.py`). Raises
        UsageError for numbers below 1, and for an empty query.
        """
        check_least(1, k=k, shortlist=shortlist)
        texts = [normalise(query) for query in queries]
        if not all(texts):
            raise UsageError(f"Query {texts.index('') + 1} is empty; expected a question.")
        vectors = self.ranking.encoder.embed(texts, lang=self.card.lang)
        rows = [np.arange(len(self)) if among is None else np.asarray(among(text)) for text in texts]
        return [self._nearest(vector, of, k, shortlist) for vector, of in zip(vectors, rows, strict=True)]

    def _nearest(self, vector: np.ndarray, rows: np.ndarray, k: int, shortlist: int | None) -> list[Hit]:
        point = self.ranking.points(vector[None])  # (1, P)
        count = len(self) if shortlist is None else max(k, shortlist)
        places, squares = nearest_points(point, self._points[rows], count)
        rows = rows[places]
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
            )
            for row, probability, distance, score in zip(
                rows[best], probabilities, distances, scores[best], strict=True
            )
        ]


def nearest_points(point: np.ndarray, points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` points (N, P) nearest to one, (1, P): indices (C,), squared distances (C,).

    If that is all of them, they come in order of index.
    """
    if count >= len(points):
        return np.arange(len(points)), ((points - point) ** 2).sum(1)
    faiss = load_faiss()
    squares, places = faiss.knn(point, points, count, faiss.METRIC_L2)
    return places[0], squares[0]
