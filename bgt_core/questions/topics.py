"""Topics of questions by latent Dirichlet allocation (Blei et al. 2003), as scikit-learn fits it on counts of words."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from scipy.special import digamma
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import atomic_file
from bgt_core.vectors.arrays import DAMAGE

MAX_WORDS = 10_000  # size of the vocabulary: the most frequent words
MAX_FITTED = 50_000  # questions for fitting; more do not improve topics, and take proportionally longer
BLOCK = 8_192  # questions whose topics are inferred at once


class TopicModel:
    """K topics over a vocabulary of V words.

    `components` (K, V) are those of scikit-learn: the count of each word under each topic, plus its prior. A word is a
    run of two letters or more, in lower case; English stop words are left out.
    """

    def __init__(self, vocabulary: Sequence[str], components: np.ndarray, lang: str):
        self.vocabulary, self.components, self.lang = tuple(vocabulary), components, lang
        self._counts = counter(lang, self.vocabulary)

    def __len__(self) -> int:
        return len(self.components)

    @cached_property
    def _lda(self) -> LatentDirichletAllocation:
        """Rebuild the fitted estimator from its arrays."""
        lda = LatentDirichletAllocation(len(self))
        lda.components_, lda.n_features_in_ = self.components, len(self.vocabulary)
        totals = digamma(self.components.sum(1, keepdims=True))
        lda.exp_dirichlet_component_ = np.exp(digamma(self.components) - totals)
        lda.doc_topic_prior_ = 1 / len(self)
        return lda

    def shares(self, questions: Sequence[str]) -> np.ndarray:
        """The share of each topic in N questions, (N, K); rows sum to 1, and are uniform without known words."""
        parts = [np.zeros((0, len(self)))]
        for start in range(0, len(questions), BLOCK):
            parts.append(self._lda.transform(self._counts.transform(questions[start : start + BLOCK])))
        return np.concatenate(parts)

    def words(self, topic: int, count: int = 5) -> list[str]:
        """The most frequent words of a topic."""
        return [self.vocabulary[word] for word in np.argsort(-self.components[topic], kind="stable")[:count]]

    def save(self, path: Path) -> None:
        """Write the arrays as .npz."""
        with atomic_file(path) as partial, partial.open("wb") as file:
            np.savez(file, vocabulary=np.array(self.vocabulary), components=self.components, lang=np.array(self.lang))

    @classmethod
    def load(cls, path: Path) -> TopicModel:
        """Read the arrays. Raises NotFound if the file is absent, DataError if it is damaged."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return cls(arrays["vocabulary"].tolist(), arrays["components"], str(arrays["lang"]))
        except OSError as error:
            raise NotFound(f"{path}: can't be read ({error.strerror or error}).") from None
        except (*DAMAGE, BadZipFile, zlib.error) as error:
            raise DataError(f"{path}: no topics, or damaged ({error}); build the store again.") from None


def counter(lang: str, vocabulary: Sequence[str] | None = None) -> CountVectorizer:
    """Count the words of questions: those of the vocabulary, or, for fitting, the most frequent ones."""
    stop_words = "english" if lang == "en" else None
    return CountVectorizer(stop_words=stop_words, vocabulary=vocabulary, max_features=MAX_WORDS)


def fit_topics(questions: Sequence[str], topics: int, lang: str, seed: int = 0) -> TopicModel:
    """Fit topics on these questions, or on a sample of MAX_FITTED.

    Raises UsageError for fewer than two topics, DataError if questions have fewer distinct words than topics.
    """
    if topics < 2:
        raise UsageError(f"{topics}: expected 2 or more, or 0 for none.", parameter="topics")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(questions))[:MAX_FITTED])
    try:
        words = counter(lang).fit([questions[row] for row in chosen])
    except ValueError:  # scikit-learn's error for an empty vocabulary
        raise DataError("The questions have no words for topics; build the store without topics.") from None
    vocabulary = words.get_feature_names_out().tolist()
    if len(vocabulary) < topics:
        raise DataError(f"{topics} topics of {len(vocabulary)} different words; choose fewer topics.")
    lda = LatentDirichletAllocation(topics, learning_method="online", batch_size=1_024, random_state=seed)
    lda.fit(words.transform([questions[row] for row in chosen]))
    return TopicModel(vocabulary, lda.components_, lang)
