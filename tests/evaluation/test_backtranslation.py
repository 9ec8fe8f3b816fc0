"""Measures that compare references with back-translations equal hand-computed values; correlations equal SciPy's."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from bgt_core.errors import DataError, UsageError
from bgt_core.evaluation.backtranslation import compare, repeated
from bgt_core.evaluation.bootstrap import resample

NICE = "the staff were very nice and the room was very nice and the staff were very nice".split()


class Scripted:
    """A fake scoring model that returns a given score for each sentence."""

    fingerprint = "by hand"

    def __init__(self, scores: dict[str, float]):
        self.scores = scores

    def __call__(self, sentences: list[str]) -> np.ndarray:
        return np.array([self.scores[text] for text in sentences])


def test_repetitions_by_hand() -> None:
    # repeated words in brackets: the staff were very nice and [the] room was [very nice and the staff were very nice]
    assert repeated(NICE, 1) == (9, 17)
    # 5 of the 15 trigrams repeat: very nice and, nice and the, the staff were, staff were very, were very nice
    assert repeated(NICE, 3) == (5, 15)
    assert repeated("of of of the the".split(), 1) == (1, 2)  # words of at most two characters do not count
    assert repeated(["a", "b"], 3) == (0, 0)
    assert repeated(list("abab"), 2) == (1, 3)  # in bigrams, words of any length count


def test_a_comparison_by_hand() -> None:
    result = compare(["red dogs run", "blue cats sleep"], ["dogs dogs run", "cats sleep"], costs=np.array([0.5, 1.0]))
    assert result["words"].reference == 3 and result["words"].translation == 2.5
    repetition = result["unigram repetition"]
    assert (repetition.reference, repetition.translation) == (0, 20)  # 20 %: 1 of the 5 words of both sentences
    assert repetition.difference[0] == -20
    entropies = result["unigram entropy"]
    assert entropies.reference == pytest.approx(math.log2(6))
    assert result["trigram entropy"].translation == 0
    assert entropies.difference == entropies.reference - entropies.translation < entropies.reference
    # IDF = ln(4 / documents): "red" and "blue" are in 1 of the 4 documents, all other words in 2
    assert result["average IDF"].reference == pytest.approx((math.log(4) + 2 * math.log(2)) / 3)
    assert result["average IDF"].translation == pytest.approx(math.log(2))
    assert [result[name].translation for name in ("cost", "overlap-1", "overlap-2")] == pytest.approx(
        [0.75, 5 / 6, 0.75]
    )
    assert result["cost"].reference is None and result["words"].correlation is None


def test_the_classifier_is_judged_on_each_side_and_correlated_with_all() -> None:
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(list("abcde"), rng.integers(3, 9))) + f" r{i}" for i in range(60)]
    translations = [" ".join(rng.choice(["aaa", "bbb", "c"], rng.integers(3, 14))) + f" t{i}" for i in range(60)]
    scores = {text: float(rng.random()) for text in (*references, *translations)}
    perplexities = {text: float(1 + len(text)) for text in scores}
    costs = rng.random(60)
    models = {"classifier": Scripted(scores), "perplexity": Scripted(perplexities)}
    result = compare(references, translations, costs=costs, models=models)
    right = result["classified right"]
    assert right.reference == pytest.approx(100 * np.mean([scores[text] > 0.5 for text in references]))
    assert right.translation == pytest.approx(100 * np.mean([scores[text] <= 0.5 for text in translations]))
    of_translations = [scores[text] for text in translations]
    of_all = [scores[text] for text in (*references, *translations)]
    lengths = [len(text.split()) for text in (*references, *translations)]
    words = result["words"]
    rho = spearmanr(lengths[60:], of_translations).statistic
    assert words.correlation.value == pytest.approx(100 * rho)
    assert words.correlation_of_all.value == pytest.approx(100 * spearmanr(lengths, of_all).statistic)
    error = 1.959964 * math.sqrt((1 + rho**2 / 2) / 57)
    assert words.correlation[1:3] == pytest.approx([100 * math.tanh(math.atanh(rho) + s * error) for s in (-1, 1)])
    assert result["cost"].correlation.value == pytest.approx(100 * spearmanr(costs, of_translations).statistic)
    assert result["perplexity"].translation == pytest.approx(np.mean([np.log2(1 + len(t)) for t in translations]))
    for n, name in ((1, "unigram"), (3, "trigram")):
        counts = np.array([repeated(text.split(), n) for text in translations])
        shares = counts[:, 0] / np.maximum(counts[:, 1], 1)
        given = result[f"{name} repetition"].correlation
        assert given.value == pytest.approx(100 * spearmanr(shares, of_translations).statistic)
    assert result["classifier"].correlation is None
    assert result["classifier"].translation == pytest.approx(np.mean(of_translations))


def test_the_resamples_of_all_measures_are_the_same_thousand() -> None:
    rng = np.random.default_rng(2)
    sides = [[" ".join(rng.choice(["aaa", "bbb", "c"], rng.integers(1, 7))) for _ in range(12)] for _ in range(2)]
    result = compare(*sides)
    drawn = np.random.default_rng(1)
    weights = np.concatenate([resample(drawn, 12, 50) for _ in range(20)])
    for name, n in (("words", 0), ("unigram repetition", 1), ("trigram repetition", 3)):
        counts = np.array(
            [[repeated(text.split(), n) if n else (len(text.split()), 1) for text in side] for side in sides]
        )
        means = [weights @ side[:, 0] / np.maximum(weights @ side[:, 1], 1) for side in counts]
        ends = np.quantile((100 if n else 1) * (means[0] - means[1]), [0.025, 0.975])
        assert result[name].difference[1:3] == pytest.approx(tuple(ends))


@pytest.mark.parametrize(("sign", "size"), [(1, 4), (-1, 4), (-1, 6), (1, 3)])
def test_a_perfect_correlation_has_an_interval_from_four_sentences_on(sign: int, size: int) -> None:
    texts = [" ".join(["word"] * n) for n in range(1, size + 1)]
    scores = {text: float(sign * place / (size - 1)) for place, text in enumerate(texts)}  # evenly from 0 to 1 or -1
    words = compare(texts, texts, models={"classifier": Scripted(scores)})["words"]
    if size < 4:
        assert words.correlation is None and words.correlation_of_all.value == pytest.approx(100)
    else:
        assert words.correlation[:3] == pytest.approx((100 * sign,) * 3)


def test_pairs_are_required() -> None:
    with pytest.raises(UsageError, match="1 references and 2 translations"):
        compare(["a"], ["a", "b"])
    with pytest.raises(DataError, match="no pair"):
        compare([], [])
