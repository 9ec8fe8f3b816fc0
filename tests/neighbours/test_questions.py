"""A search in a store of questions finds the same questions as a search of all of them, with the same probabilities."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration

import bgt_core
from bgt_core.encoders import open_encoder
from bgt_core.encoders.distances import DuplicateEncoder
from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.tasks.pairs import LabelledPairs
from bgt_core.grammar import Pair
from bgt_core.neighbours.questions import QuestionStore, build, fit_platt
from tests.close import FLOAT32, assert_close

pytest.importorskip("faiss")
QUERIES = ["The cat sleeps.", "Where is the dog?", "It is late."]


@pytest.fixture(scope="module")
def encoder(saved_siamese: Path) -> bgt_core.Embedder:
    return bgt_core.load(saved_siamese, "cpu", "fp32")


@pytest.fixture(scope="module")
def sentences(grammar: list[Pair]) -> list[str]:
    return list(dict.fromkeys(pair.texts["en"] for pair in grammar))


@pytest.fixture(scope="module")
def text(sentences: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the sentences, with a copy of one of them and a blank line in the middle."""
    path = tmp_path_factory.mktemp("text") / "questions.txt"
    path.write_text("\n".join([*sentences[:5], "", sentences[0], *sentences[5:]]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def store(text: Path, encoder: bgt_core.Embedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "store"
    build(text, folder, encoder)
    return folder


@pytest.fixture(scope="module")
def truth(encoder: bgt_core.Embedder, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query and sentence the probability that they are duplicates, and the W2 distance: (Q, N) each."""
    model = encoder.model
    stored, queries = (encoder.posteriors(texts, lang="en") for texts in (sentences, QUERIES))
    probabilities = np.zeros((len(QUERIES), len(sentences)))
    distances = np.zeros_like(probabilities)
    for query in range(len(QUERIES)):
        for row in range(len(sentences)):
            left, right = (
                type(stored)(side.mean[at : at + 1], side.log_variance[at : at + 1])
                for side, at in ((queries, query), (stored, row))
            )
            with torch.no_grad():
                probabilities[query, row] = model.duplicate_probability(left, right).item()
            deviations = [(0.5 * side.log_variance).exp() for side in (left, right)]
            moved = np.concatenate([left.mean - right.mean, deviations[0] - deviations[1]], 1)
            distances[query, row] = np.sqrt((moved.astype(np.float64) ** 2).sum())
    return probabilities, distances


def test_without_a_shortlist_the_order_is_that_of_exhaustive_search(
    store: Path, encoder: bgt_core.Embedder, sentences: list[str], truth: tuple[np.ndarray, np.ndarray]
) -> None:
    opened = QuestionStore.open(store, encoder)
    assert opened.questions == sentences  # copies and blank lines are left out
    probabilities, distances = truth
    for row, hits in enumerate(opened.query(QUERIES, k=len(sentences), shortlist=None)):
        assert sorted(hit.row for hit in hits) == list(range(len(sentences)))
        for hit in hits:
            assert hit.question == sentences[hit.row] and hit.cosine is None
            assert_close(hit.probability, probabilities[row, hit.row], FLOAT32, scale=1)
            assert hit.w2 == pytest.approx(distances[row, hit.row], rel=1e-4)
        ranked = probabilities[row][[hit.row for hit in hits]]
        assert (np.diff(ranked) <= FLOAT32).all()


@pytest.mark.parametrize("shortlist", [1, 7, 40])
def test_the_shortlist_is_the_nearest_by_w2(
    shortlist: int, store: Path, encoder: bgt_core.Embedder, truth: tuple[np.ndarray, np.ndarray]
) -> None:
    probabilities, distances = truth
    for row, hits in enumerate(QuestionStore.open(store, encoder).query(QUERIES, k=shortlist, shortlist=shortlist)):
        nearest = np.argsort(distances[row])[:shortlist]
        assert {hit.row for hit in hits} == set(nearest)
        assert hits[0].row == nearest[probabilities[row][nearest].argmax()]


def test_only_the_chosen_rows_are_searched(store: Path, encoder: bgt_core.Embedder) -> None:
    opened = QuestionStore.open(store, encoder)
    chosen = {query: np.arange(at, len(opened), 3) for at, query in enumerate(QUERIES)}
    every = opened.query(QUERIES, k=1_000, shortlist=None, among=chosen.get)
    assert [{hit.row for hit in hits} for hits in every] == [set(chosen[query]) for query in QUERIES]
    (few,) = opened.query(QUERIES[:1], k=3, shortlist=5, among=chosen.get)
    nearest = sorted(every[0], key=lambda hit: hit.w2)[:5]
    assert [hit.row for hit in few] == [hit.row for hit in sorted(nearest, key=lambda hit: -hit.probability)][:3]


def test_calibration_changes_probabilities_and_not_the_order(
    text: Path, encoder: bgt_core.Embedder, sentences: list[str], truth: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    classifier = DuplicateEncoder(encoder)
    left, right = sentences[:60], sentences[60:120]
    own = classifier.similarity_pairwise(*(classifier.embed(side, lang="en") for side in (left, right)))
    labels = own > np.quantile(own, 0.7)
    labels[::7] = ~labels[::7]
    card = build(text, tmp_path / "store", encoder, dev=LabelledPairs("dev.tsv", labels, left, right))
    assert card.calibration and card.calibrated_on == "dev.tsv"
    (hits,) = QuestionStore.open(tmp_path / "store", encoder).query(QUERIES[:1], k=9, shortlist=None)
    best = truth[0][0][[hit.row for hit in hits]]
    slope, offset = card.calibration.slope, card.calibration.offset
    expected = 1 / (1 + np.exp(-(slope * np.log(best / (1 - best)) + offset)))
    assert_close([hit.probability for hit in hits], expected, FLOAT32)
    assert (np.diff(best) <= FLOAT32).all()


def test_other_encoders_rank_by_cosine(text: Path, sentences: list[str], tmp_path: Path) -> None:
    words = open_encoder("baseline:tfidf")
    card = build(text, tmp_path / "store", words)
    assert (card.by, card.calibration) == ("cosine", None)
    opened = QuestionStore.open(tmp_path / "store", words)
    vectors = words.embed(sentences, lang="en").astype(np.float64)
    queries = words.embed(QUERIES, lang="en").astype(np.float64)
    lengths = [np.linalg.norm(side, axis=1) for side in (queries, vectors)]
    cosines = queries @ vectors.T / np.outer(*lengths)
    for row, hits in enumerate(opened.query(QUERIES, k=5)):
        assert_close([hit.cosine for hit in hits], np.sort(cosines[row])[::-1][:5], FLOAT32)
        assert all(hit.probability is None and hit.w2 is None for hit in hits)
    labels = np.arange(40) % 2 == 0
    left, right = sentences[:40], [sentences[at] if labels[at] else sentences[at + 41] for at in range(40)]
    calibrated = build(text, tmp_path / "calibrated", words, dev=LabelledPairs("dev", labels, left, right))
    assert calibrated.calibration and calibrated.calibration.slope > 0


def test_a_store_is_complete_or_absent_and_never_replaced(
    text: Path, encoder: bgt_core.Embedder, store: Path, tmp_path: Path
) -> None:
    def stop(rows: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(text, tmp_path / "new", encoder, report=stop)
    (tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"blank\.txt: empty"):
        build(tmp_path / "blank.txt", tmp_path / "new", encoder)
    assert not (tmp_path / "new").exists()
    with pytest.raises(UsageError, match="exists already; choose another folder"):
        build(text, store, encoder)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("card.json", lambda content: b"{}"),
        ("questions.txt", lambda content: content.replace(b"the", b"a")),
        ("vectors.npy", lambda content: content[:-8]),
    ],
)
def test_a_damaged_store_is_an_error(
    name: str, damage: Callable, store: Path, encoder: bgt_core.Embedder, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(store, folder)
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    with pytest.raises(DataError, match=name.replace(".", r"\.")):
        QuestionStore.open(folder, encoder)


def test_invalid_queries_are_errors(store: Path, encoder: bgt_core.Embedder) -> None:
    opened = QuestionStore.open(store, encoder)
    with pytest.raises(UsageError, match="Query 2 is empty"):
        opened.query(["Who?", " "])
    for name in ("k", "shortlist"):
        with pytest.raises(UsageError, match=f"{name} 0 must be at least 1"):
            opened.query(QUERIES, **{name: 0})


def test_the_command_has_the_results_of_the_library(
    bgt: Callable, text: Path, saved_siamese: Path, encoder: bgt_core.Embedder, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    done = bgt("retrieve-similar", folder, "--build", text, "--model", saved_siamese)
    assert done.code == 0 and "uncalibrated probabilities of the model" in done.err
    queries = tmp_path / "queries.txt"
    queries.write_text(f"{QUERIES[1]}\n\n", encoding="utf-8")
    asked = ("retrieve-similar", folder, QUERIES[0], "--file", queries, "--top", 3)
    document = json.loads(bgt(*asked, "--json").out)
    expected = QuestionStore.open(folder, encoder).query(QUERIES[:2], k=3)
    for entry, hits in zip(document["queries"], expected, strict=True):
        for shown, hit in zip(entry["hits"], hits, strict=True):
            assert shown["question"] == hit.question
            assert shown["probability"] == pytest.approx(hit.probability, abs=0.02)
    head, *rows = bgt(*asked).out.splitlines()
    assert head.split("\t") == ["query", "question", "probability", "W2"] and len(rows) == 6
    assert rows[0].split("\t")[:2] == [QUERIES[0], document["queries"][0]["hits"][0]["question"]]
    for arguments, code, message in (
        ((folder,), 2, "QUESTION is needed: give a question in quotes"),
        ((folder, "Who?", "--top", 0), 2, "--top 0 must be at least 1"),
        ((tmp_path / "no", "Who?"), 3, "not a store of questions"),
        ((folder, "Who?", "--model", bgt_core.PRETRAINED), 2, "--model is not the encoder that made"),
    ):
        refused = bgt("retrieve-similar", *arguments)
        assert refused.code == code and message in refused.err, refused.err


def drawn(slope: float, offset: float, count: int, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores and labels. A label is true with the probability expit(slope * score + offset)."""
    rng = np.random.default_rng(0)
    scores = rng.normal(0.5, spread, count)
    return scores, rng.random(count) < expit(slope * scores + offset)


@pytest.mark.parametrize(("slope", "offset", "spread"), [(0.4, -1.0, 3.0), (2.0, 3.0, 40.0)])
def test_platt_s_scaling_is_that_of_scikit_learn(slope: float, offset: float, spread: float) -> None:
    scores, labels = drawn(slope, offset, 400, spread)
    theirs = _SigmoidCalibration().fit(scores, labels).predict(scores)
    assert fit_platt(scores, labels)(scores) == pytest.approx(theirs, rel=1e-4)  # optimisers differ a little
    with pytest.raises(DataError, match="are not higher for label 1"):
        fit_platt(-scores, labels)
