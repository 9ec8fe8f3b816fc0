"""Topics: scikit-learn's numbers after a round trip to disk, and planted topics found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.questions.topics import TopicModel, fit_topics

SUBJECTS = {
    "money": "bank loan invest stock market salary tax budget".split(),
    "health": "doctor diet sleep weight vitamin pain muscle heart".split(),
    "travel": "flight hotel visa beach island tourist train passport".split(),
}


@pytest.fixture(scope="module")
def planted() -> tuple[list[str], np.ndarray]:
    """300 questions of four words of one subject each, and which."""
    rng = np.random.default_rng(0)
    subjects = rng.integers(0, len(SUBJECTS), 300)
    words = list(SUBJECTS.values())
    return [f"How is the {' '.join(rng.choice(words[subject], 4))}?" for subject in subjects], subjects


def test_planted_topics_are_found(planted: tuple[list[str], np.ndarray]) -> None:
    questions, subjects = planted
    topics = fit_topics(questions, 3, "en")
    main = topics.shares(questions).argmax(1)
    pairs = {(int(subject), int(topic)) for subject, topic in zip(subjects, main, strict=True)}
    assert len(pairs) == 3  # one topic a subject
    for words in SUBJECTS.values():
        topic = topics.shares([" ".join(words)])[0].argmax()
        assert set(topics.words(int(topic))) <= set(words)


def test_shares_are_scikit_learns_after_saving(planted: tuple[list[str], np.ndarray], tmp_path: Path) -> None:
    questions, _ = planted
    counts = CountVectorizer(stop_words="english").fit(questions)
    lda = LatentDirichletAllocation(4, random_state=1).fit(counts.transform(questions))
    TopicModel(counts.get_feature_names_out().tolist(), lda.components_, "en").save(tmp_path / "topics.npz")
    loaded = TopicModel.load(tmp_path / "topics.npz")
    some = [*questions[:20], "Which bank pays my doctor for the flight?"]
    assert loaded.shares(some) == pytest.approx(lda.transform(counts.transform(some)), rel=1e-6)
    assert len(loaded) == 4 and loaded.shares([]).shape == (0, 4)


def test_without_a_known_word_no_topic_is_larger(planted: tuple[list[str], np.ndarray]) -> None:
    shares = fit_topics(planted[0], 3, "en").shares(["Why?", "the of and"])
    np.testing.assert_allclose(shares, 1 / 3)


def test_what_has_no_topics_is_said(planted: tuple[list[str], np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="topics 1: expected 2 or more"):
        fit_topics(planted[0], 1, "en")
    with pytest.raises(DataError, match="The questions have no words"):
        fit_topics(["Why?", "the"], 2, "en")
    with pytest.raises(DataError, match="5 topics of 2 different words"):
        fit_topics(["bank loan"], 5, "en")
    with pytest.raises(NotFound, match=r"topics\.npz"):
        TopicModel.load(tmp_path / "topics.npz")
    (tmp_path / "topics.npz").write_bytes(b"no such thing")
    with pytest.raises(DataError, match="no topics, or damaged"):
        TopicModel.load(tmp_path / "topics.npz")
