"""Each method of splitting agrees with another implementation, or finds the factors that generated the data."""

import numpy as np
import pytest
from sklearn.cross_decomposition import CCA
from sklearn.linear_model import LogisticRegression

from bgt_core.splitting import METHODS, Split, methods
from bgt_core.splitting.fit import FACTORED, found
from bgt_core.splitting.gather import Moments, Statistics, statistics
from tests.close import FLOAT32, assert_close

WIDTH, FACTORS = 8, 3


def planted(langs: list[str], rows: int, seed: int = 0) -> list[np.ndarray]:
    """Make vectors (N, 8) for each column: maps of three factors that all columns share, plus a mean and noise."""
    drawn = np.random.default_rng(7)
    maps = {lang: drawn.standard_normal((FACTORS, WIDTH)) for lang in dict.fromkeys(langs)}
    own = {lang: 0.5 * drawn.standard_normal((WIDTH, WIDTH)) for lang in maps}
    means = {lang: 3 * drawn.standard_normal(WIDTH) for lang in maps}
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((rows, FACTORS))
    return [means[lang] + shared @ maps[lang] + rng.standard_normal((rows, WIDTH)) @ own[lang] for lang in langs]


def summed(langs: list[str], columns: list[np.ndarray]) -> Statistics:
    moments = Moments(langs, columns[0].shape[1])
    moments.add(np.hstack(columns))
    return statistics([moments])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("langs", [["en", "fr"], ["en", "fr", "de"]])
def test_both_parts_restore_the_vector(method: str, langs: list[str]) -> None:
    columns = planted(langs, 2_000)
    held_out, rows = [(langs, planted(langs, 200, seed=1))], [(langs, columns)]
    needed = {"held_out": held_out} if method in FACTORED else {}
    split: Split = METHODS[method](summed(langs, columns), **needed, **({"rows": rows} if method == "neural" else {}))
    for lang, vectors in zip(langs, columns, strict=True):
        shared, private = split.parts(vectors, lang)
        assert shared.shape == (2_000, split.shared_width) and private.shape == vectors.shape
        assert_close(split.join(shared, private, lang), vectors)


def test_the_mean_is_0_after_centring_and_that_of_the_first_language_after_shift() -> None:
    langs = ["en", "fr"]
    columns = planted(langs, 500)
    sums = summed(langs, columns)
    for lang, vectors in zip(langs, columns, strict=True):
        assert_close(methods.centring(sums).shared(vectors, lang).mean(0), 0, scale=np.abs(vectors).max())
        assert_close(methods.shift(sums).shared(vectors, lang).mean(0), columns[0].mean(0))
    np.testing.assert_array_equal(methods.shift(sums).shared(columns[0], "en"), columns[0])


def test_after_leace_no_linear_probe_predicts_the_language_and_the_change_is_small() -> None:
    langs = ["en", "fr", "de"]
    columns = planted(langs, 1_000)
    split = methods.leace(summed(langs, columns))
    erased = [split.shared(vectors, lang) for lang, vectors in zip(langs, columns, strict=True)]
    labels = np.repeat(np.arange(3), 1_000)
    probe = LogisticRegression(max_iter=1_000)
    assert probe.fit(np.concatenate(columns), labels).score(np.concatenate(columns), labels) > 0.9
    assert probe.fit(np.concatenate(erased), labels).score(np.concatenate(erased), labels) < 0.4
    # LEACE must change the vectors less than the orthogonal projection that makes language means equal
    between = np.stack([vectors.mean(0) for vectors in columns])
    basis = np.linalg.svd(between - between.mean(0), full_matrices=False)[2][:2]
    joined = np.concatenate(columns)
    projected = (joined - joined.mean(0)) @ basis.T @ basis
    assert np.square(joined - np.concatenate(erased)).sum() < np.square(projected).sum()


def test_subspace_removes_the_first_axis_of_each_language() -> None:
    columns = planted(["en", "fr"], 500)
    split = methods.subspace(summed(["en", "fr"], columns))
    for lang, vectors in zip(["en", "fr"], columns, strict=True):
        axes = np.linalg.svd(vectors, full_matrices=False)[2][:1]
        assert_close(split.shared(vectors, lang), vectors - vectors @ axes.T @ axes)


def test_bgt_of_two_languages_is_canonical_correlation_analysis() -> None:
    langs = ["en", "fr"]
    columns = planted(langs, 3_000)
    split = methods.bgt(summed(langs, columns), [(langs, columns)], factors=FACTORS, shrinkages=[0.0])
    reference = CCA(n_components=FACTORS, scale=False, max_iter=10_000, tol=1e-12).fit(*columns)
    for ours, theirs in zip(
        (split.shared(columns[0], "en"), split.shared(columns[1], "fr")), reference.transform(*columns), strict=True
    ):
        for factor in range(FACTORS):
            assert_close(abs(np.corrcoef(ours[:, factor], theirs[:, factor])[0, 1]), 1, 1e-6)
    english, french = reference.transform(*columns)
    correlations = [np.corrcoef(english[:, factor], french[:, factor])[0, 1] for factor in range(FACTORS)]
    assert_close(split.about["correlations"], correlations, 1e-6)  # scikit-learn's CCA has this precision
    assert_close(split.about["nats"], -np.log(1 - np.square(correlations)) / 2, 1e-6)


@pytest.mark.parametrize("langs", [["en", "en"], ["en", "fr"], ["en", "fr", "de"]])
def test_bgt_finds_the_factors_of_the_data_if_there_are_many_rows(langs: list[str]) -> None:
    """With many rows, the shared part predicts the three factors of the data as well as the whole vectors do."""
    far = []
    for rows in (300, 30_000):
        columns = planted(langs, rows)
        held_out = planted(langs, 4_000, seed=1)
        split = methods.bgt(summed(langs, columns), [(langs, held_out)])
        ours = methods.bgt(summed(langs, columns), [(langs, held_out)], factors=FACTORS).shared(held_out[0], langs[0])
        shared = np.random.default_rng(1).standard_normal((4_000, FACTORS))
        best = np.linalg.lstsq(held_out[0] - held_out[0].mean(0), shared, rcond=None)[0]
        truth = (held_out[0] - held_out[0].mean(0)) @ best
        left = truth - ours @ np.linalg.lstsq(ours, truth, rcond=None)[0]
        far.append(np.square(left).sum() / np.square(truth).sum())
    assert far[1] < min(0.01, far[0]) and split.about["factors"] == FACTORS


def test_held_out_nats_are_the_mean_log_ratio_of_densities() -> None:
    langs = ["en", "fr"]
    columns, held_out = planted(langs, 5_000), planted(langs, 1_000, seed=1)
    sums = summed(langs, columns)
    split = methods.bgt(sums, [(langs, held_out)], factors=WIDTH, shrinkages=[0.0])
    joint = np.cov(np.hstack(columns).T, bias=True)
    centred = np.hstack([vectors - sums.means[lang] for vectors, lang in zip(held_out, langs, strict=True)])

    def density(of: slice) -> np.ndarray:
        covariance, rows = joint[of, of], centred[:, of]
        return -(np.linalg.slogdet(covariance)[1] + (rows @ np.linalg.inv(covariance) * rows).sum(1)) / 2

    ratios = density(slice(None)) - density(slice(0, WIDTH)) - density(slice(WIDTH, None))
    assert_close(split.about["held_out_nats"], ratios.mean())


def test_languages_without_common_rows_are_aligned_through_a_third() -> None:
    pairs = [(["en", "fr"], 20_000, 0), (["en", "de"], 20_000, 1)]
    moments = []
    for langs, rows, seed in pairs:
        part = Moments(langs, WIDTH)
        columns = dict(zip(["en", "fr", "de"], planted(["en", "fr", "de"], rows, seed), strict=True))
        part.add(np.hstack([columns[lang] for lang in langs]))
        moments.append(part)
    english, french, german = planted(["en", "fr", "de"], 500, seed=2)
    split = methods.bgt(statistics(moments), [(["en", "fr"], [english, french])], factors=FACTORS)
    left, right = split.shared(french, "fr"), split.shared(german, "de")
    assert min(np.corrcoef(left[:, factor], right[:, factor])[0, 1] for factor in range(FACTORS)) > 0.5


def folded(rows: int, seed: int) -> list[np.ndarray]:
    """Make vectors (N, 8) of two languages from two factors, or in the second language from their absolute values."""
    drawn = np.random.default_rng(7)
    maps = drawn.standard_normal((2, 2, WIDTH))
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((rows, 2))
    noise = 0.02 * rng.standard_normal((2, rows, WIDTH))
    return [shared @ maps[0] + noise[0], np.abs(shared) @ maps[1] + noise[1]]


def test_neural_finds_translations_that_no_linear_map_finds() -> None:
    langs = ["en", "fr"]
    columns, held_out, tested = (folded(rows, seed) for rows, seed in ((20_000, 0), (1_000, 1), (500, 2)))
    sums = summed(langs, columns)
    plain = methods.bgt(sums, [(langs, held_out)], factors=2)
    split = methods.neural(sums, [(langs, held_out)], [(langs, columns)], factors=2)
    found_by = {
        each.method: found([each.shared(of, lang) for lang, of in zip(langs, tested, strict=True)])
        for each in (plain, split)
    }
    assert found_by["neural"] > 2 * found_by["bgt"]
    assert split.about["contrast"][-1] < split.about["contrast"][0]
    for lang, vectors in zip(langs, columns, strict=True):
        shared, private = split.parts(vectors, lang)
        assert_close(shared.mean(0), 0, FLOAT32, scale=np.abs(shared).max())
        # the private part is a least-squares residual, so no linear map of the shared part can predict it
        crosses = (shared.T @ (private - private.mean(0))) / len(shared)
        assert_close(crosses, 0, FLOAT32, scale=shared.std() * private.std())
