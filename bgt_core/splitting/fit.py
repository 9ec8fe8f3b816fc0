"""Fit a split on the vectors of sentences with the same meaning, and score it on held-out sentences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import lang_code
from bgt_core.errors import DataError, UsageError, check_choice, check_whole
from bgt_core.splitting import methods
from bgt_core.splitting.gather import Data, Gathered, HeldOut, check_data, gather, needed_rows, statistics
from bgt_core.splitting.parts import Split
from bgt_core.vectors import arrays
from bgt_core.vectors.arrays import BLOCK, ROUNDING, cosine_similarity

METHODS: dict[str, Callable[..., Split]] = {
    "bgt": methods.bgt, "centring": methods.centring, "leace": methods.leace, "neural": methods.neural,
    "shift": methods.shift, "subspace": methods.subspace,
}  # fmt: skip
FACTORED = ("bgt", "neural")  # methods with latent factors; only these can split the vectors of a single language
TRAINED_ON = {"neural": 200_000}  # method that trains on single vectors -> maximum number of training rows
LEAST = 50  # minimum number of rows of translations for every method
CONSTANT = 1e-12  # a variance below this share of the squared mean counts as rounding error
ROWS, FOLDS = 1_000, 5  # maximum number of held-out rows to score; number of folds of the linear probe


def split(
    encoder: SentenceEncoder | None,
    data: Sequence[Data],
    *,
    method: str = "bgt",
    factors: int | None = None,
    seed: int = 0,
    report: Callable[[int, int | None], None] = lambda done, rows: None,
) -> Split:
    """Fit a split on the vectors of sentences with the same meaning.

        mine = bgt_core.split(encoder, [(["en", "fr"], [english, french]), (["en", "de"], [others, german])])
        mine.shared(encoder.embed(["A cat."], lang="en"), "en")

    Args:
        encoder: Any encoder; its semantic latent is split. None if all columns contain vectors.
        data: Sets of two or more columns, each set with the language codes of its columns. Row n has the same meaning
            in all columns of a set. A column is a list of sentences, or an array of vectors (N, D), which may be mapped
            from a file. Instead of whole columns, an iterator can yield batches of columns. Columns of paraphrases have
            the same language code. If all columns have the same language, only `bgt` and `neural` can be fitted.
        method: bgt, neural, centring, leace, shift or subspace.
        factors: Number of units of the shared part, for bgt and neural; by default chosen on held-out rows.
        seed: Seed of the random samples: the held-out rows, and the rows that `neural` is trained on.
        report: Called with the number of rows embedded so far, and the number of all rows (None if unknown).

    Returns:
        The split. Its `about` contains the numbers of rows, the method's choices, and the `scores` of the held-out rows
        before and after the split.

    Raises:
        UsageError: The method is unknown or can't use these languages, `data` does not have the form above, columns
            have different lengths, or there are too few rows.
        DataError: The vectors are constant, have more than 4,096 units, or are rejected by `matrix`.
    """
    check_choice(METHODS, method=str(method))
    check_whole(0, seed=seed)
    check_data(data)
    data = [(list(map(lang_code, langs)), columns) for langs, columns in data]
    check_settings([langs for langs, _ in data], method, factors)
    return fit(gather(encoder, data, keep=TRAINED_ON.get(method, 0), seed=seed, report=report), method, factors)


def fit(gathered: Sequence[Gathered], method: str, factors: int | None = None) -> Split:
    """Fit a split to the statistics from `gather`, and score it on the held-out rows; raises the errors of `split`."""
    check_rows(method, gathered)
    sums = statistics([each.moments for each in gathered])
    for lang, covariance in sums.covariances.items():
        if np.trace(covariance) <= CONSTANT * np.square(sums.means[lang]).sum():
            raise DataError(f"The vectors of all sentences in {lang} are the same; use another encoder or text.")
    if factors and factors > sums.width:
        raise UsageError(f"{factors}: expected at most {sums.width}, the width of the vectors", parameter="factors")
    held_out = [each.sample(each.held_out) for each in gathered]
    settings: dict[str, Any] = {"held_out": held_out, "factors": factors} if method in FACTORED else {}
    if method in TRAINED_ON:
        settings["rows"] = [each.sample(each.kept) for each in gathered]
    made = METHODS[method](sums, **settings)
    counts = {
        "rows": sum(each.moments.count for each in gathered),
        "held_out_rows": sum(each.held_out.count for each in gathered),
    }
    return replace(made, about={**counts, **made.about, "scores": scores(made, held_out)})


def check_rows(method: str, gathered: Sequence[Gathered], files: str = "data", option: str = "method") -> None:
    """Raise UsageError if `files` have fewer rows than the method needs. The error advises to use another `option`."""
    if (fewest := min(each.total for each in gathered)) < LEAST:
        raise UsageError(f"has {fewest} rows; at least {LEAST} are needed", parameter=files)
    width, needed = gathered[0].moments.width, needed_rows(gathered[0].moments.width)
    for lang in dict.fromkeys(lang for each in gathered for lang in each.langs) if method in FACTORED else ():
        having = [each for each in gathered if lang in each.langs]
        different = len(set[int]().union(*(each.different[lang] for each in having)))
        if (have := min(different, sum(each.total for each in having))) < needed:
            text = f"must have at least {needed:,} different rows in {lang} (got {have:,}), because {method} fits "
            text += f"covariances of vectors of {width:,} units. Give more rows, or use another {option}."
            raise UsageError(text, parameter=files)


def check_settings(langs: Sequence[Sequence[str]], method: str, factors: int | None) -> None:
    """Raise UsageError if the method can't use columns in these languages, or this number of factors."""
    if not langs:
        raise UsageError("is empty; give at least one set of columns", parameter="data")
    for each in langs:
        if len(each) < 2:
            raise UsageError(f"{','.join(each)}: expected two columns or more", parameter="langs")
    known = set(langs[0])
    for _ in langs:  # each round adds the languages that have translations into a language in `known`
        known = known.union(*(each for each in langs if not known.isdisjoint(each)))
    if apart := [lang for each in langs for lang in each if lang not in known]:
        raise UsageError(
            f"{apart[0]}: no rows translate it into {', '.join(langs[0])}, even through other languages; add such rows",
            parameter="langs",
        )
    if method not in FACTORED and len(known) < 2:
        raise UsageError(f"{','.join(langs[0])}: {method} compares languages; give two or more", parameter="langs")
    if factors is not None:
        check_whole(1, factors=factors)
        if method not in FACTORED:
            raise UsageError(f"{factors}: only the methods {' and '.join(FACTORED)} have factors", parameter="factors")


def scores(split: Split, held_out: Sequence[HeldOut]) -> dict[str, dict[str, Any]]:
    """Score the original vectors ("vectors"), their shared parts ("shared") and their private parts ("private").

    The score `found` is the share of translations found in the other language, and `pool` the share found among the
    sentences of all languages. With random vectors for N rows, `found` is 1 / N, and `pool` is lower. `language_told`
    is the accuracy of a linear probe that predicts the language, with five folds; None if there is only one language.
    Each score is computed on the first 1,000 held-out rows of each set of columns, and averaged over the sets.
    """
    measured: dict[str, dict[str, list[float]]] = {}
    for langs, columns in held_out:
        columns = [column[:ROWS] for column in columns]
        both = [split.parts(column, lang) for column, lang in zip(columns, langs, strict=True)]
        parts = {"vectors": columns, "shared": [each[0] for each in both], "private": [each[1] for each in both]}
        for kind, of in parts.items():
            values = {"found": found(of), "pool": found_in_pool(of), "language_told": language_told(of, langs)}
            for name, value in values.items():
                measured.setdefault(kind, {}).setdefault(name, []).extend([] if value is None else [value])
    return {
        kind: {name: float(np.mean(values)) if values else None for name, values in named.items()}
        for kind, named in measured.items()
    }


def found(columns: Sequence[np.ndarray]) -> float:
    """Compute the share of sentences whose nearest neighbour in another column, or language, is their translation.

    The share is averaged over all ordered pairs of columns. If k neighbours are equally near, and one of them is the
    translation, the sentence counts as 1 / k.
    """
    return float(np.mean([arrays.found(*pair) for pair in permutations(columns, 2)]))


def found_in_pool(columns: Sequence[np.ndarray]) -> float:
    """Compute the share of sentences whose nearest neighbour among the sentences of all languages is a translation."""
    vectors, count = np.concatenate(columns), len(columns[0])
    right = np.zeros(0)
    for start in range(0, len(vectors), BLOCK):
        queries = np.arange(start, min(start + BLOCK, len(vectors)))
        similarity = cosine_similarity(vectors[queries], vectors)
        similarity[np.arange(len(queries)), queries] = -np.inf
        nearest = similarity > similarity.max(1, keepdims=True) - ROUNDING
        same = np.arange(len(vectors)) % count == (queries % count)[:, None]
        right = np.append(right, (nearest & same).sum(1) / nearest.sum(1))
    return float(right.mean())


def verdict(scored: Mapping[str, Mapping[str, float | None]]) -> str:
    """Summarise the scores of a split in one line.

    >>> verdict({"vectors": {"pool": 0.155, "language_told": 0.99}, "shared": {"pool": 0.765, "language_told": 0.52}})
    'Before: 16 % find their translation, language told 99 %. After: 76 %, 52 %.'
    """
    before, after = (
        [f"{100 * value:.0f} %" for name in ("pool", "language_told") if (value := scored[part].get(name)) is not None]
        for part in ("vectors", "shared")
    )
    if len(before) == 1:
        return f"Before: {before[0]} find their paraphrase. After: {after[0]}."
    return f"Before: {before[0]} find their translation, language told {before[1]}. After: {', '.join(after)}."


def language_told(columns: Sequence[np.ndarray], langs: Sequence[str]) -> float | None:
    """Return the accuracy of a linear probe that predicts a vector's language. Translations share a fold."""
    from bgt_core.vectors.linear_probe import held_out_hits  # a slow import, not needed to open a split encoder

    if len(set(langs)) < 2:
        return None
    count = len(columns[0])
    folds = np.tile(np.arange(count) * FOLDS // count, len(columns))
    return float(held_out_hits(np.concatenate(columns), np.repeat(langs, count), folds).mean())
