"""Splits of vectors into two parts can be fitted to an encoder or to stored vectors; held-out scores are right."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError
from bgt_core.splitting.fit import found_in_pool

ROWS, WIDTH = 400, 6
MEANING = np.random.default_rng(0).standard_normal((ROWS, 3))
COLUMNS = [[f"{lang} {row}" for row in range(ROWS)] for lang in ("en", "fr")]


def encode(sentences: list[str], lang: str, latent: str) -> np.ndarray:
    """Embed a sentence: three units are those of its translation, three are noise. French vectors are shifted by 5."""
    rows = [int(sentence.split()[1]) for sentence in sentences]
    seeds = [[*sentence.encode()] for sentence in sentences]
    own = np.stack([np.random.default_rng(seed).standard_normal(3) for seed in seeds])
    return np.hstack([MEANING[rows], 3 * own]) + (5 if lang == "fr" else 0)


ENCODER = ExternalEncoder("ours", encode, sample="en 0")
DATA = [(["en", "fr"], COLUMNS)]


def test_shared_parts_find_translations_and_do_not_predict_the_language() -> None:
    seen: list[tuple[int, int | None]] = []
    split = bgt_core.split(ENCODER, DATA, report=lambda *counts: seen.append(counts))
    assert split.method == "bgt" and split.about["rows"] == 360 and split.about["held_out_rows"] == 40
    assert seen == [(400, 400)]
    scores = split.about["scores"]
    assert scores["shared"]["found"] > 0.9 > 0.5 > scores["vectors"]["found"]
    assert scores["private"]["language_told"] == 1 > 0.7 > scores["shared"]["language_told"]


def test_a_single_language_is_split_by_paraphrases() -> None:
    split = bgt_core.split(ENCODER, [(["en", "en"], [COLUMNS[0], [f"{text} again" for text in COLUMNS[0]]])])
    assert split.langs == ("en",) and split.about["scores"]["shared"]["language_told"] is None


def test_sentences_stored_vectors_and_batches_give_the_same_split(tmp_path: Path) -> None:
    expected = bgt_core.split(ENCODER, DATA).about
    vectors = [ENCODER.embed(column, lang=lang) for column, lang in zip(COLUMNS, ["en", "fr"], strict=True)]
    for place, column in enumerate(vectors):
        np.save(tmp_path / f"{place}.npy", column)
    mapped = [np.load(tmp_path / f"{place}.npy", mmap_mode="r") for place in range(2)]
    assert bgt_core.split(None, [(["en", "fr"], mapped)]).about == expected

    def batches() -> Iterator[list[list[str]]]:
        for start in range(0, ROWS, 30):
            yield [column[start : start + 30] for column in COLUMNS]

    seen: list[tuple[int, int | None]] = []
    in_batches = bgt_core.split(ENCODER, [(["en", "fr"], batches())], report=lambda *counts: seen.append(counts)).about
    assert seen[0] == (30, None) and seen[-1] == (400, None)
    assert in_batches["held_out_nats"] == pytest.approx(expected["held_out_nats"])
    assert in_batches["scores"]["shared"] == pytest.approx(expected["scores"]["shared"])


def vectors_of(of: Any) -> dict[str, Any]:
    """Return arguments of `split` whose encoder is a fake, which returns the vectors `of(N)` for N sentences."""
    return {"encoder": ExternalEncoder("odd", lambda texts, *_: of(len(texts)))}


def file(langs: str, english: list[str], french: list[str]) -> tuple[list[str], list[list[str]]]:
    return langs.split(), [english, french]


ENGLISH, FRENCH = COLUMNS
ONE_LANGUAGE = {"data": [file("en en", *COLUMNS)], "method": "leace"}
FEW_GERMAN = {"data": [*DATA, file("en de", ENGLISH[:60], FRENCH[:60])], **vectors_of(lambda rows: np.eye(rows, 40))}
REPEATED = {"data": [file("en fr", ENGLISH[:5] * 80, FRENCH[:5] * 80)]}
APART = {"data": [*DATA, file("de es", *COLUMNS)]}
STORED = [ENCODER.embed(column, lang=lang) for column, lang in zip(COLUMNS, ["en", "fr"], strict=True)]
INFINITE = {"data": [(["en", "fr"], [STORED[0], np.full((ROWS, 6), np.inf)])]}
OTHER_WIDTH = {"data": [(["en", "fr"], [np.eye(ROWS, 5), np.eye(ROWS, 5)])]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "pca"}, "pca"),
        ({"data": [(["en"], [ENGLISH])]}, "langs en: expected two columns or more"),
        ({"data": [file("en fr", ENGLISH, FRENCH[:7])]}, "data has columns of .7, 400. rows"),
        ({"data": [file("en fr", ENGLISH[:20], FRENCH[:20])]}, "20 rows; at least 50"),
        ({"data": [file("en fr", [], [])]}, "data for en-fr has no rows"),
        ({"factors": 2, "method": "shift"}, "only the methods bgt and neural have factors"),
        ({"factors": 7}, "factors 7: expected at most 6, the width of the vectors"),
        (ONE_LANGUAGE, "leace compares languages; give two or more"),
        (APART, "langs de: no rows translate it into en, fr, even through other languages"),
        (REPEATED, "^data must have at least 14 different rows in en .got 5., .* of 6 units"),
        (FEW_GERMAN, "^data must have at least 89 different rows in de .got 60., .* of 40 units"),
        (vectors_of(lambda rows: np.eye(rows, 5_000)), "of 5,000 units: at most 4,096"),
        (vectors_of(lambda rows: np.full((rows, 3), 0.1)), "all sentences in en are the same"),
        (INFINITE, "^en-fr, fr: row 1 contains NaN or infinity"),
        (OTHER_WIDTH, "of 5 and of 6 units: use vectors of a single encoder"),
        *[({"factors": wrong}, "^factors .* must be a whole number of at least 1") for wrong in (2.5, 0)],
        *[({"seed": wrong}, "^seed .* must be a whole number of at least 0") for wrong in (-1, None)],
        ({"method": ["bgt"]}, "^method '.*': choose from bgt"),
        *[
            ({"data": wrong}, "^data must be a list of sets of columns, each with its languages")
            for wrong in (None, DATA[0], [("en", COLUMNS)], [(["en", "fr"], "ab")], [(1, 2, 3)])
        ],
        ({"data": [(["en", "fr"], [ENGLISH])]}, "^data for en-fr has 1 columns; expected 2"),
        ({"data": [(["en", "fr"], {"en": ENGLISH, "fr": FRENCH})]}, "^data for en-fr is dict; expected a list of col"),
        ({"encoder": None}, "encoder is needed to embed sentences"),
        ({"encoder": ExternalEncoder("two", encode, ["en", "de"])}, "langs fr: the encoder supports en, de"),
    ],
)
def test_invalid_arguments_are_errors_that_name_the_parameter(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BgtError, match=message) as error:
        bgt_core.split(**({"encoder": ENCODER, "data": DATA} | settings))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("method", ["bgt", "neural", "leace"])
def test_the_type_and_scale_of_vectors_make_no_difference(method: str) -> None:
    """Scores and losses do not depend on the number type or the scale of the vectors."""

    def about(columns: list[Any]) -> list[float]:
        made = bgt_core.split(None, [(["en", "fr"], columns)], method=method)
        of = made.about["scores"]
        numbers = [number for name in ("contrast", "nats", "correlations") for number in made.about.get(name, [])]
        return [of["vectors"]["found"], of["shared"]["found"], *numbers]

    expected = about(STORED)
    assert about([STORED[0].tolist(), torch.tensor(STORED[1], requires_grad=True)]) == expected
    for scale in (1e-30, 1e15):  # more extreme scales change the probe's accuracy
        assert about([vectors.astype(float) * scale for vectors in STORED]) == pytest.approx(expected, rel=1e-4)


def test_spellings_of_a_language_code_are_one_language() -> None:
    sets = [(["en", "fra"], COLUMNS), (["eng_Latn", "FR"], COLUMNS)]
    split = bgt_core.split(ENCODER, sets, method="leace")
    assert split.langs == ("en", "fr") and split.about["rows"] == 720
    vectors = ENCODER.embed(COLUMNS[0][:3], lang="en")
    np.testing.assert_array_equal(split.shared(vectors, "eng_Latn"), split.shared(vectors, "en"))
    assert bgt_core.split(ENCODER, [(["en", "EN"], COLUMNS)]).langs == ("en",)
    with pytest.raises(BgtError, match="lang de: the split supports en, fr"):
        split.shared(vectors, "de")


def test_the_pool_has_all_columns_and_counts_any_sentence_of_the_same_row() -> None:
    rng = np.random.default_rng(0)
    meaning = rng.standard_normal((40, 5))
    columns = [meaning + 0.7 * rng.standard_normal((40, 5)) for _ in range(3)]
    columns[0][1] = columns[0][0]  # row 0 is then nearer to its copy than to a translation
    right = []
    rows = [(row, vector / np.linalg.norm(vector)) for column in columns for row, vector in enumerate(column)]
    for place, (row, vector) in enumerate(rows):
        others = [(vector @ other, same) for at, (same, other) in enumerate(rows) if at != place]
        right.append(max(others)[1] == row)
    assert found_in_pool(columns) == pytest.approx(np.mean(right))
