"""`Embedder.embed` returns the right vectors for any order, batch size, precision, language and latent."""

import copy
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import embedder
from bgt_core.contracts import Posterior, Tokens
from bgt_core.errors import UsageError
from bgt_core.grammar import Pair
from bgt_core.nets.operations import PackedLayout
from tests.close import assert_close


@pytest.fixture(scope="module")
def model(saved: Path) -> bgt_core.Embedder:
    return bgt_core.load(saved)


def in_precision(model: bgt_core.Embedder, precision: str) -> bgt_core.Embedder:
    return bgt_core.Embedder(model.model, model.tokenizer, model.langs, precision)


@pytest.mark.parametrize(("precision", "cosine"), [("bf16", 0.998), ("int8", 0.997)])
def test_rough_matrix_products_turn_vectors_by_a_few_degrees(
    grammar: list[Pair], precision: str, cosine: float
) -> None:
    shipped = bgt_core.load(device="cpu", precision="fp32")
    before = {name: value.clone() for name, value in shipped.model.state_dict().items()}
    sentences = [pair.texts["fr"] for pair in grammar[:200]]
    for latent in shipped.latents:
        exact = shipped.embed(sentences, lang="fr", latent=latent)
        rough = in_precision(shipped, precision).embed(sentences, lang="fr", latent=latent)
        assert rough.dtype == np.float32
        assert shipped.similarity_pairwise(exact, rough).min() > cosine
        assert latent == "semantic" or np.abs(exact - rough).max() > 1e-4  # semantic latents hide rounding by averaging
        assert np.array_equal(shipped.embed(sentences, lang="fr", latent=latent), exact)
    assert all(torch.equal(value, before[name]) for name, value in shipped.model.state_dict().items())


def test_each_vector_is_the_posterior_mean_of_its_sentence(model: bgt_core.Embedder, grammar: list[Pair]) -> None:
    model = in_precision(model, "fp32")
    for lang in ("en", "fr"):
        sentences = [pair.texts[lang] for pair in grammar[:40]]
        for latent, name in (("semantic", "semantic"), ("language", lang)):
            vectors = model.embed(sentences, lang=lang, latent=latent)
            assert vectors.dtype == np.float32
            assert vectors.shape == (40, model.width(lang, latent))
            for row, ids in zip(vectors, model.tokenizer.encode(sentences), strict=True):
                with torch.inference_mode():
                    mean = model.model.encoders[name](Tokens.pad([ids], lang)).mean[0].numpy()
                assert_close(row, mean)


def test_vectors_are_scaled_to_length_one_on_request(model: bgt_core.Embedder) -> None:
    texts = ["The dog sleeps.", "It is late.", "Where is the old man's house?"]
    vectors, normalized = (model.embed(texts, lang="en", normalize=normalize) for normalize in (False, True))
    assert normalized.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(lengths - 1).max() > 0.1
    np.testing.assert_allclose(normalized, vectors / lengths, rtol=1e-5)
    assert_close(np.linalg.norm(model.embed(texts[0], lang="en", normalize=True)), 1)


def test_a_batch_has_at_most_batch_size_sentences(
    model: bgt_core.Embedder, grammar: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, sizes = [pair.texts["en"] for pair in grammar[:10]], []
    at_once = model.embed(sentences, lang="en")
    encoder = model.encoder("semantic", "en")
    forward = encoder.forward

    def spy(side: Tokens, layout: PackedLayout | None = None) -> Posterior:
        sizes.append(len(side.ids))
        return forward(side, layout)

    monkeypatch.setattr(encoder, "forward", spy)
    assert_close(model.embed(sentences, lang="en", batch_size=4), at_once)
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize("size", [0, 1.5, "2"])
def test_a_batch_size_is_a_whole_number_of_at_least_1(model: bgt_core.Embedder, size: Any) -> None:
    with pytest.raises(UsageError, match=f"batch_size {size} must be a whole number of at least 1"):
        model.embed("It is late.", lang="en", batch_size=size)


def test_a_progress_bar_is_drawn_on_stderr_on_request(
    model: bgt_core.Embedder, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["The dog sleeps.", "It is late."]
    vectors = model.embed(texts, lang="en")
    assert capsys.readouterr().err == ""
    assert np.array_equal(model.embed(texts, lang="en", show_progress=True), vectors)
    shown = capsys.readouterr()
    assert shown.out == "" and "embedding" in shown.err and "100%" in shown.err


def test_text_of_any_lengths_is_embedded_in_few_shapes(
    model: bgt_core.Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shape of a batch costs memory, because oneDNN keeps the code that it compiles for the shape."""
    latent, model, draw = "language", in_precision(model, "fp32"), random.Random(0)
    words = "dog house old man late sleeps where is the".split()
    lengths = [min(200, max(1, round(8 * draw.lognormvariate(0, 0.8)))) for _ in range(20_000)]
    texts = [" ".join(draw.choices(words, k=length)) for length in lengths]
    shapes: Counter[tuple[int, int, bool]] = Counter()
    encoder = model.encoder(latent, "en")
    forward = encoder.forward

    def spy(side: Tokens, layout: PackedLayout | None = None) -> Posterior:
        packed = layout is None and len(side.flat_index) < side.ids.numel()
        shapes[(*side.ids.shape, packed)] += 1
        return forward(side, layout)

    with monkeypatch.context() as patched:
        patched.setattr(encoder, "forward", spy)
        vectors = np.concatenate(
            [model.embed(texts[at : at + 5_000], lang="en", latent=latent) for at in range(0, 20_000, 5_000)]
        )
    assert not any(packed for *_, packed in shapes)  # batches without padding would have too many different shapes
    assert len(shapes) < 60 < shapes.total() / 2
    tokens = sum(map(len, model.tokenizer.encode(texts)))
    assert sum(rows * length * count for (rows, length, _), count in shapes.items()) < 1.1 * tokens
    for row in (*range(0, 20_000, 997), lengths.index(max(lengths)), lengths.index(min(lengths))):
        assert_close(vectors[row], model.embed(texts[row], lang="en", latent=latent))


def test_an_empty_sentence_is_embedded_as_eos(model: bgt_core.Embedder) -> None:
    both = model.embed(["", "The dog sleeps.", " \u200b "], lang="en")
    assert np.isfinite(both).all()
    assert_close(both[0], both[2])
    assert np.abs(both[0] - both[1]).max() > 0.01


def test_gradients_of_words_add_up_to_the_rise_of_the_cosine(model: bgt_core.Embedder) -> None:
    """Another model has the token embeddings of the line's start. Words with several tokens get one number."""
    model, text = in_precision(model, "fp32"), "The old dog sleeps; is it late?"
    start = in_precision(copy.deepcopy(model), "fp32")
    ids = model.tokenizer.encode(text)[0][:-1]
    for part in start.model.modules():
        if isinstance(part, torch.nn.Embedding):
            part.weight.data[ids] = torch.lerp(part.weight.data.mean(0), part.weight.data[ids], embedder.FIRST)
    for latent in model.latents:
        other, own = (model.embed(each, lang="en", latent=latent)[None] for each in ("Is it late?", text))
        gains = embedder.word_gradients(model, text, "en", other[0], latent)
        rise = model.similarity(own, other) - model.similarity(start.embed([text], lang="en", latent=latent), other)
        assert gains.shape == (9,) and abs(rise) > 0.01
        assert_close(gains.sum(), rise[0, 0], scale=1, tolerance=2e-3)  # the app shows two decimals
        assert np.array_equal(model.embed(text, lang="en", latent=latent)[None], own)  # the model stays as it was


def test_similarity_is_the_cosine(model: bgt_core.Embedder) -> None:
    """Every row of `left` is compared with every row of `right`, then only with the row of the same index."""
    left = np.array([[1, 0], [3, 4], [0, 0], [2, 2], [-1, 0]], dtype=np.float32)
    right = np.array([[5, 0], [4, -3], [1, 1], [1, 0], [7, 0]], dtype=np.float32)
    pairwise = model.similarity_pairwise(left, right)
    assert_close(pairwise, [1, 0, 0, 0.5**0.5, -1])
    matrix = model.similarity(left[:4], right)
    assert matrix.shape == (4, 5)
    assert_close(matrix.diagonal(), pairwise[:4])
    assert_close(matrix[0], [1, 0.8, 0.5**0.5, 1, 1])
    tiny = np.full((1, 3), 1e-30, dtype=np.float32)
    assert np.isfinite(model.similarity(tiny, tiny)).all() and np.isfinite(model.similarity_pairwise(tiny, tiny)).all()
