"""Scores, intervals and counts on random inputs, beside those of scipy, sklearn, sacrebleu and definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import sacrebleu
from scipy import stats
from scipy.spatial import distance
from sklearn.metrics import f1_score

from bgt_core.evaluation import bootstrap
from bgt_core.evaluation.facts import NUMBERS, numbers
from bgt_core.evaluation.writing import bleu, chrf, corpus_score
from bgt_core.neighbours.margin import MARGINS, Pairs, among, best_threshold, count, margin_pairs
from bgt_core.neighbours.search import Rows, exact
from bgt_core.vectors.compare import ROUNDING, nearest
from tests.reliability import counters

WORDS = "the a cat dog sees red old man , . not never Tom 3 22 house is in no sleeps".split()


def differ(ours: object, theirs: object, tolerance: float = 1e-8) -> str:
    """What both say where they do not agree; "" if they do."""
    one, other = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if one.shape == other.shape and (np.abs(one - other) <= tolerance * (1 + np.abs(other))).all():
        return ""
    return f"ours {np.round(one.ravel()[:4], 6).tolist()}, theirs {np.round(other.ravel()[:4], 6).tolist()}"


def correlations(rng: np.random.Generator) -> str:
    """Pearson's and Spearman's of resamples, of any offset and scale, with ties or one value far from all others."""
    n = int(rng.integers(5, 80))
    gold, system = rng.normal(size=(2, n)).round(int(rng.integers(0, 6)))
    system = (system + rng.integers(-2, 3) * gold) * 10.0 ** rng.integers(-6, 7) + 10.0 ** rng.integers(-3, 6)
    if rng.random() < 0.3:
        system[0] += 10.0 ** rng.integers(2, 7) * np.ptp(system)
    weights = bootstrap.resample(rng, n, 5)
    for ours, theirs in ((bootstrap.pearson, stats.pearsonr), (bootstrap.spearman, stats.spearmanr)):
        values = ours(weights, system[None], gold)[:, 0]
        for value, counts in zip(values, weights.astype(int), strict=True):
            rows = np.repeat(np.arange(n), counts)
            varied = np.ptp(system[rows]) > 0 and np.ptp(gold[rows]) > 0
            if failure := differ(value, theirs(system[rows], gold[rows]).statistic if varied else 0, 1e-6):
                return f"{ours.__name__}: {failure}"
    return ""


def intervals(rng: np.random.Generator) -> str:
    """Wilson's interval against scipy's, and how often a bootstrapped correlation's holds the truth."""
    n = int(rng.integers(1, 400))
    right, level = int(rng.integers(0, n + 1)), float(rng.choice([0.8, 0.9, 0.95, 0.99]))
    theirs = stats.binomtest(right, n).proportion_ci(level, "wilson")
    if failure := differ(bootstrap.wilson(right, n, level), (theirs.low, theirs.high)):
        return failure
    rho, inside = float(rng.uniform(-0.8, 0.8)), 0
    for _ in range(60):
        gold, noise = rng.normal(size=(2, 100))
        system = rho * gold + math.sqrt(1 - rho**2) * noise
        draws = bootstrap.pearson(bootstrap.resample(rng, 100, 200), system[None], gold)[:, 0]
        low, high = bootstrap.interval(draws, 0.95)
        inside += bool(low <= rho <= high)
    return "" if inside >= 47 else f"{inside} of 60 intervals of 95 % hold {rho:.2f}"  # under 47: once in 100,000


def holm(rng: np.random.Generator) -> str:
    """By its definition: the closure of Bonferroni's test over all sets of hypotheses."""
    p = rng.random(int(rng.integers(1, 8))) ** rng.integers(1, 6)
    sets = [subset for size in range(1, len(p) + 1) for subset in itertools.combinations(range(len(p)), size)]
    closed = [
        max(min(1.0, len(subset) * p[list(subset)].min()) for subset in sets if i in subset) for i in range(len(p))
    ]
    return differ(bootstrap.holm(p), closed)


def retrieval(rng: np.random.Generator) -> str:
    """The nearest row by a loop in float64; rows may be copies, and equal ones go to the first."""
    answers = rng.normal(size=(int(rng.integers(1, 40)), int(rng.integers(2, 20)))).astype(np.float32)
    answers = np.concatenate([answers, answers[: len(answers) // 3]])
    queries = rng.normal(size=(int(rng.integers(1, 30)), answers.shape[1])).astype(np.float32) * 100
    for query, row in zip(queries, nearest(queries, answers).tolist(), strict=True):
        cosines = [1 - distance.cosine(query.astype(float), answer.astype(float)) for answer in answers]
        best = max(cosines)
        if cosines[row] < best - 2 * ROUNDING or any(cosine >= best for cosine in cosines[:row]):
            return f"row {row} is given, row {int(np.argmax(cosines))} is nearest"
    return ""


def mining(rng: np.random.Generator) -> str:
    """Margins and greedy pairs by the paper's formulas, pair by pair; the best F1 by trying every threshold.

    From two neighbours on: with one, all pairs that are nearest both ways have one score, in no certain order.
    """
    k, margin = int(rng.integers(2, 6)), str(rng.choice(list(MARGINS)))
    points = rng.normal(size=(40, 12)) + 1.5
    sides = [(points[rng.permutation(40)[:n]] + 0.5 * rng.normal(size=(n, 12))) for n in rng.integers(6, 40, 2)]
    left, right = (Rows(side.astype(np.float32), np.arange(len(side))) for side in sides)
    cosine = 1 - distance.cdist(left.vectors.astype(float), right.vectors.astype(float), "cosine")
    near_left, near_right = (-np.sort(-table, axis=1)[:, :k].mean(1) for table in (cosine, cosine.T))
    mean = (near_left[:, None] + near_right) / 2
    scores = {"ratio": cosine / mean, "distance": cosine - mean, "absolute": cosine}[margin]
    candidates = set()  # the best pair of each row among its k nearest, by score
    for i, row in enumerate(cosine):
        candidates.add((i, max(np.argsort(-row)[:k].tolist(), key=lambda j: scores[i, j])))
    for j, column in enumerate(cosine.T):
        candidates.add((max(np.argsort(-column)[:k].tolist(), key=lambda i: scores[i, j]), j))
    chosen: list[tuple[int, int]] = []
    for i, j in sorted(candidates, key=lambda pair: -scores[pair]):
        if all(i != a and j != b for a, b in chosen):
            chosen.append((i, j))
    pairs = margin_pairs(left, right, exact(left, right), k=k, margin=margin)
    if [*zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)] != chosen:
        return f"{margin}, {k} neighbours: other pairs"
    return differ(pairs.scores, [scores[pair] for pair in chosen], 1e-4) or best_f1(rng, pairs)


def best_f1(rng: np.random.Generator, pairs: Pairs) -> str:
    """Of mined pairs with some known ones, against sklearn at every threshold."""
    known = rng.permutation(len(pairs.left))[: 1 + len(pairs.left) // 2]
    right = among(pairs.left, pairs.right, pairs.left[known], pairs.right[known])
    ours = count(pairs.scores, right, len(known), best_threshold(pairs.scores, right, len(known))).f1
    return differ(ours, max(f1_score(right, pairs.scores >= score) for score in pairs.scores))


def generated_text(rng: np.random.Generator) -> str:
    """chrF and BLEU of a text and of resamples, against sacrebleu on the sentences written out."""
    references = [" ".join(rng.choice(WORDS, rng.integers(1, 15))) for _ in range(int(rng.integers(2, 20)))]
    outputs = [" ".join(word for word in text.split() if rng.random() < 0.8) for text in references]
    lowercase = bool(rng.random() < 0.5)
    weights = bootstrap.resample(rng, len(outputs), 2)
    theirs = {
        "chrF": (chrf(lowercase), sacrebleu.CHRF(lowercase=lowercase)),
        "BLEU": (bleu("en", lowercase), sacrebleu.BLEU(lowercase=lowercase)),
    }
    for name, (ours, reference) in theirs.items():
        every = np.vstack([np.ones(len(outputs)), weights])
        for score, counts in zip(corpus_score(ours, outputs, references)(every), every, strict=True):
            rows = np.repeat(np.arange(len(outputs)), counts.astype(int))
            expected = reference.corpus_score([outputs[row] for row in rows], [[references[row] for row in rows]]).score
            if failure := differ(score, expected):
                return f"{name}: {failure}"
    return ""


def fidelity_counters(rng: np.random.Generator) -> str:
    """The share of hand-labelled sentences that a counter gets right; numbers in the digits of each language."""
    cases = counters.read_cases()
    chosen = cases[rng.integers(len(cases))]
    alike = [case.right for case in cases if (case.counter, case.lang) == (chosen.counter, chosen.lang)]
    if not counters.left_out(chosen.counter, chosen.lang) and np.mean(alike) < counters.LEAST:
        return f"{chosen.counter} in {chosen.lang}: {sum(alike)} of {len(alike)} right"
    lang = str(rng.choice(list(NUMBERS)))
    number = int(rng.integers(2, 10 ** int(rng.integers(1, 10))))
    written = [str(number), f"{number:,}".replace(",", NUMBERS[lang].group), f"{number:,}".replace(",", "\u202f")]
    wrong = next((text for text in written if numbers(f"x {text} x", lang) != [str(number)]), "")
    return f"{wrong!r} in {lang}: {numbers(wrong, lang)}" if wrong else ""
