"""Tense and gender in the grammar's sentences: their labels, and how well a probe predicts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from bgt_core.adapters.external import ExternalEncoder
from bgt_core.data.articles import candidates
from bgt_core.errors import UsageError
from bgt_core.evaluation.task import evaluate
from bgt_core.evaluation.tasks.forms import TIMED, Forms, Labelled, folds_of
from bgt_core.evaluation.tasks.surface import FOLDS, GUESS
from bgt_core.grammar import pairs

COUNT = 200


def items(lang: str) -> Mapping[str, Labelled]:
    return Forms(lang=lang, count=COUNT).load([], seed=0)


def past(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """A unit that is 1 for what was labelled past, and noise."""
    of = items(lang)["tense"]
    labels = dict(zip(of.sentences, of.labels, strict=True))
    noise = np.random.default_rng(0).standard_normal((len(sentences), 3))
    return np.column_stack([[labels.get(sentence) == "past" for sentence in sentences], noise])


def test_a_probe_tells_the_tense_that_a_vector_holds_and_not_the_gender() -> None:
    task = Forms(lang="fr", count=COUNT)
    result = evaluate(task, ExternalEncoder("past", past), items("fr"), resamples=100)
    assert result.systems == ["model", GUESS]
    assert result.value(("tense",), "model") == 100
    assert result.value(("gender of an article",), "model") < 60
    assert [result.value((name,), GUESS) for name in ("tense", "gender of an article")] == [50, 50]


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_each_verb_is_as_often_past_as_present_and_no_word_of_time_tells(lang: str) -> None:
    of = items(lang)["tense"]
    assert 100 < len(of.sentences) <= COUNT
    counts = Counter(zip(of.groups, of.labels, strict=True))
    assert all(counts[verb, "past"] == counts[verb, "present"] for verb in of.groups)
    meanings = {pair.texts[lang]: pair.meaning for pair in pairs(10 * COUNT)}
    for text, label, verb in zip(of.sentences, of.labels, of.groups, strict=True):
        meaning = meanings[text]
        assert not any(map(TIMED.match, meaning)) and verb in meaning
        assert ("past" in meaning) == (label == "past") and "future" not in meaning


def test_an_article_is_swapped_in_every_second_sentence_of_french_alone() -> None:
    assert list(items("en")) == ["tense"]
    of = items("fr")["gender of an article"]
    assert list(of.labels) == ["right", "wrong"] * (COUNT // 2)
    for right, wrong in zip(of.sentences[::2], of.sentences[1::2], strict=True):
        words = [set(text.split()) for text in (right, wrong)]
        assert candidates(right, "fr") and right != wrong and len(words[0] ^ words[1]) <= 2


def test_a_group_is_in_one_fold() -> None:
    folds = folds_of(["a", "b", "a", "c", "d", "e", "b"], seed=0)
    assert folds[0] == folds[2] and folds[1] == folds[6] and {*folds} == {*range(FOLDS)}


@pytest.mark.parametrize(
    ("settings", "message"), [({"lang": "de"}, "de: the grammar has en and fr"), ({"count": 99}, "at least 100")]
)
def test_settings_that_cannot_be_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Forms(**settings).load([], seed=0)
