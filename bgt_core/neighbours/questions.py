"""Question retrieval: find the stored questions that mean the same as a new question (Deudon 2018, sec. 5).

    import bgt_core
    from bgt_core.neighbours.questions import QuestionStore, build

    siamese = bgt_core.load("runs/siamese")
    build(Path("questions.txt"), Path("store"), siamese, dev=read_labelled("dev.tsv"))
    for hit in QuestionStore.open("store", siamese).query(["How old is the earth?"])[0]:
        print(hit.probability, hit.w2, hit.question)

A search has two steps: FAISS finds the nearest questions by a Euclidean distance, then the model ranks them. The paper
first restricts the search to questions on the query's topics, as `examples/questions_by_topic.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bgt_core import __version__
from bgt_core.bulk import embed_file, read
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.text import normalise
from bgt_core.encoders import identity
from bgt_core.encoders.distances import DuplicateEncoder, with_own_probability
from bgt_core.errors import DataError, NotFound, UsageError, check_least
from bgt_core.files import atomic_folder, lasting_name, read_json, sha256_file, write_json, write_text
from bgt_core.neighbours.bitext import read_sentences
from bgt_core.neighbours.search import load_faiss
from bgt_core.vectors.arrays import unit

TINY = 1e-300  # lower probabilities are raised to this, so that their log odds are finite
SCHEMA = "bgt-questions/2"
CARD, QUESTIONS, VECTORS = "card.json", "questions.txt", "vectors.npy"
SHORTLIST = 500  # number of nearest questions that the model ranks
BLOCK = 4_096  # number of questions that the model compares with the query at once


class Ranking:
    """The rules by which stored questions are searched and ranked, given an encoder's vectors (N, D).

    A trained `var-siamese` ranks questions by the log odds that they are duplicates of the query. The search finds the
    posteriors with the smallest Wasserstein distance W2 to the query's. For Gaussians with diagonal covariances, W2 is
    the Euclidean distance between the points [mean ; standard deviation], so FAISS can search exactly.

    Any other encoder ranks by cosine. The points are then its vectors, scaled to length 1, so that the point with the
    smallest Euclidean distance has the highest cosine.
    """

    def __init__(self, encoder: SentenceEncoder):
        self.encoder = with_own_probability(encoder)
        self.by = "probability" if isinstance(self.encoder, DuplicateEncoder) else "cosine"

    def points(self, vectors: np.ndarray) -> np.ndarray:
        """Convert vectors (N, D) to points (N, D) float32 for the search by Euclidean distance."""
        points = np.array(vectors, dtype=np.float32)
        if self.by == "cosine":
            return np.ascontiguousarray(unit(points), dtype=np.float32)
        deviations = points[:, points.shape[1] // 2 :]  # [means ; log-variances] -> [means ; standard deviations]
        np.exp(0.5 * deviations, out=deviations)
        return points

    def scores(self, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Compute the log odds or the cosine of a query (D,) and each of N vectors (N, D): (N,) float64."""
        if self.by == "cosine":
            return (self.points(vectors) @ self.points(query[None])[0]).astype(np.float64)
        queries = np.repeat(query[None], len(vectors), axis=0)
        probabilities = self.encoder.similarity_pairwise(queries, vectors).astype(np.float64)
        return logit(probabilities.clip(TINY, 1 - np.finfo(np.float64).epsneg))


@dataclass(frozen=True)
class Platt:
    """Platt scaling (1999) of scores (N,) to probabilities (N,): 1 / (1 + exp(-(slope score + offset)))."""

    slope: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return expit(self.slope * scores + self.offset)


def fit_platt(scores: np.ndarray, labels: np.ndarray) -> Platt:
    """Fit the slope and the offset that maximise the likelihood of the labels (N,) bool, given the scores (N,).

    As in Platt's paper, the P positive pairs have the target (P + 1) / (P + 2), and the Q negative pairs have the
    target 1 / (Q + 2), so that the slope stays finite. Raises DataError unless higher scores make a positive label
    more probable.
    """
    positive = int(labels.sum())
    targets = np.where(labels, (positive + 1) / (positive + 2), 1 / (len(labels) - positive + 2))
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    scaled = np.tile((scores - centre) / spread, 2)[:, None]  # every pair appears twice, once with each label
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000)
    model.fit(scaled, np.repeat([True, False], len(labels)), np.concatenate([targets, 1 - targets]))
    slope, offset = float(model.coef_[0, 0]), float(model.intercept_[0])
    if not slope > 0:
        raise DataError(
            f"The model's scores of {len(labels)} labelled pairs are not higher for label 1 (slope {slope:.3g}). "
            "Give the label 1 to pairs that mean the same, or use another model."
        )
    return Platt(slope / spread, offset - slope * centre / spread)


# The following functions build a store: they embed questions once, and calibrate probabilities.


@dataclass(frozen=True)
class StoreCard:
    """The description of a store of questions."""

    questions: int  # number of stored questions
    text: str  # SHA-256 of questions.txt
    encoder: str  # `encoders.identity` of the encoder
    model: str  # the value of --model that opens the encoder
    by: str  # the order of results: "probability" or "cosine"
    lang: str
    calibration: Platt | None  # maps scores to probabilities; None for a ranking by cosine without calibration
    calibrated_on: str  # name of the labelled pairs; "" without calibration
    version: str  # version of this software

    @classmethod
    def load(cls, folder: Path) -> StoreCard:
        """Read the card of a store; NotFound if the folder has no card, DataError if the card is damaged."""
        try:
            fields = dict(read_json(folder / CARD))
            if (schema := fields.pop("schema")) != SCHEMA:
                raise ValueError(f"schema {schema}, expected {SCHEMA}")
            scaling = fields.pop("calibration")
            platt = scaling and Platt(float(scaling["slope"]), float(scaling["offset"]))
            return cls(**fields, calibration=platt)
        except NotFound:
            raise NotFound(
                f"{folder}: not a store of questions; make one: bgt retrieve-similar {folder} --build QUESTIONS"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{folder / CARD}: not the card of a store, or damaged ({error}); build it again."
            ) from None


def build(
    source: Path,
    out: Path,
    encoder: SentenceEncoder,
    *,
    model: str = "",
    lang: str = "en",
    dev: Any = None,
    report: Callable[[int, int], None] = lambda rows, total: None,
) -> StoreCard:
    """Store the distinct questions of a text, one per line, in the new folder `out`, completely or not at all.

    Args:
        source: File of questions, one per line.
        out: The folder to make.
        encoder: A trained `var-siamese`, which ranks questions by the probability that they are duplicates, or any
            other encoder, which ranks them by cosine.
        model: The value of --model that opens `encoder`; later commands open the encoder by it.
        lang: Language of the questions.
        dev: Labelled pairs (`evaluation.tasks.pairs.LabelledPairs`) on which probabilities are calibrated. Without
            them, the probabilities of a `var-siamese` are not calibrated, and results by cosine have no probability.
        report: Called with the number of questions embedded so far, and the number of all questions.

    Raises:
        UsageError: `out` exists. `embed_file` may raise further errors.
        DataError: The text has no questions, or `dev` is not suitable for calibration.
    """
    load_faiss()
    ranking = Ranking(encoder)
    questions = read_sentences(source).texts
    calibration = Platt(1.0, 0.0) if ranking.by == "probability" else None  # the scores are already log odds
    if dev is not None:
        left, right = (ranking.encoder.embed(list(side), lang=lang) for side in (dev.left, dev.right))
        scores = [ranking.scores(one, other[None])[0] for one, other in zip(left, right, strict=True)]
        calibration = fit_platt(np.array(scores), dev.labels)
    with atomic_folder(out) as partial:
        write_text(partial / QUESTIONS, "\n".join(questions) + "\n")
        embed_file(ranking.encoder, partial / QUESTIONS, partial / VECTORS, lang=lang, report=report)
        card = StoreCard(
            questions=len(questions), text=sha256_file(partial / QUESTIONS), encoder=identity(encoder),
            model=lasting_name(model), by=ranking.by, lang=lang, calibration=calibration,
            calibrated_on=dev.name if dev else "", version=__version__,
        )  # fmt: skip
        write_json(partial / CARD, {"schema": SCHEMA, **asdict(card)})
    return card


# The following classes search a store for the questions nearest to a new question.


class Hit(NamedTuple):
    """A stored question that is near a query."""

    row: int  # index of the question in the store
    question: str
    probability: float | None  # probability that both questions mean the same; None if the store is not calibrated
    w2: float | None  # Wasserstein distance to the query's posterior; None if ranked by cosine
    cosine: float | None  # cosine with the query; None if ranked by probability


class QuestionStore:
    """Stored questions, opened by `QuestionStore.open`.

    The questions and the points that FAISS searches are in memory. The vectors that the model ranks stay on disk.
    """

    def __init__(self, card: StoreCard, ranking: Ranking, questions: Sequence[str], vectors: np.ndarray):
        self.card, self.ranking, self.questions, self._vectors = card, ranking, questions, vectors
        self._points = ranking.points(vectors)  # (N, D)

    @classmethod
    def open(cls, folder: Path | str, encoder: SentenceEncoder) -> Self:
        """Open the store in a folder, with the encoder that made the store.

        Raises NotFound if the store or FAISS is absent, UsageError for another encoder, DataError if a file is damaged
        or belongs to another store.
        """
        load_faiss()
        folder = Path(folder)
        card = StoreCard.load(folder)
        if card.encoder != identity(encoder):
            made = f" ({card.model})" if card.model else ""
            raise UsageError(
                f"is not the encoder that made {folder}{made}; use that encoder, or build it again.", parameter="model"
            )
        if not (folder / QUESTIONS).is_file() or sha256_file(folder / QUESTIONS) != card.text:
            raise DataError(f"{folder / QUESTIONS}: absent or changed since it was embedded; build the store again.")
        questions = (folder / QUESTIONS).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        record, vectors = read(folder / VECTORS)
        if record["lang"] != card.lang or len(vectors) != len(questions):
            raise DataError(f"{folder / VECTORS}: not the vectors of {QUESTIONS}; build the store again.")
        return cls(card, Ranking(encoder), questions, vectors)

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
        """Find the k best stored questions for each query, best first.

        The model ranks the `shortlist` nearest questions, or all questions if `shortlist` is None. `among` restricts
        the search: it maps a query to the row numbers (M,) of the questions to search, such as the questions on the
        query's topics (`examples/questions_by_topic.py`). Raises UsageError if `k` or `shortlist` is below 1, or a
        query is empty.
        """
        check_least(1, k=k, shortlist=shortlist)
        texts = [normalise(query) for query in queries]
        if not all(texts):
            raise UsageError(f"Query {texts.index('') + 1} is empty; expected a question.")
        vectors = self.ranking.encoder.embed(texts, lang=self.card.lang)
        rows = [np.arange(len(self)) if among is None else np.asarray(among(text)) for text in texts]
        count = len(self) if shortlist is None else max(k, shortlist)
        return [self._nearest(vector, of, k, count) for vector, of in zip(vectors, rows, strict=True)]

    def _nearest(self, vector: np.ndarray, rows: np.ndarray, k: int, count: int) -> list[Hit]:
        """Search the questions in `rows`, rank the `count` questions nearest to the query, and return the k best."""
        point, points = self.ranking.points(vector[None]), self._points[rows]
        if count < len(rows):
            faiss = load_faiss()
            (squares,), (places,) = faiss.knn(point, points, count, faiss.METRIC_L2)
            rows = rows[places]
        else:
            squares = ((points - point) ** 2).sum(1)
        blocks = (self._vectors[rows[start : start + BLOCK]] for start in range(0, len(rows), BLOCK))
        scores = np.concatenate([self.ranking.scores(vector, block) for block in blocks])
        best = np.lexsort((rows, squares, -scores))[:k]  # equal scores are ordered by distance, then by row number
        probabilities = self.card.calibration(scores[best]).tolist() if self.card.calibration else [None] * len(best)
        distances = np.sqrt(squares[best].clip(min=0)).tolist() if self.card.by == "probability" else [None] * len(best)
        cosines = [None] * len(best) if self.card.by == "probability" else scores[best].tolist()
        texts = [self.questions[row] for row in rows[best]]
        return list(map(Hit, rows[best].tolist(), texts, probabilities, distances, cosines))
