"""Test `bgt generate` from vectors and from text, with a writer and with a model of the recipe bgt-small."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import checkpoint
from bgt_core.data.text import Tokenizer
from bgt_core.generation.generate import candidates, drafted, from_vectors
from bgt_core.generation.search import decoder_input, n_best
from bgt_core.recipes import Recipe
from bgt_core.vectors.arrays import cosines

Bgt = Callable[..., Any]
TEXTS = ["The dog sleeps.", "Is it late?", "A cat sees two dogs."]
SHORT = ("--max-length", 6, "--beam", 3)


@pytest.fixture(scope="module")
def writer(save_writer: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a writer, which generates text from vectors. Beside it is vectors.npy."""
    folder = save_writer(tmp_path_factory.mktemp("writer") / "writer", fingerprint="words 8192")
    np.save(folder.parent / "vectors.npy", bgt_core.open_encoder("baseline:words").embed(TEXTS, lang="en"))
    return folder


def test_vectors_and_their_sentences_give_the_same_output(writer: Path, bgt: Bgt) -> None:
    vectors = writer.parent / "vectors.npy"
    done = bgt("generate", "--vectors", vectors, "--model", writer, *SHORT)
    assert (done.code, done.err) == (0, "")
    alone = [bgt("generate", "--source", text, "--model", writer, *SHORT).out for text in TEXTS]
    assert done.out == "".join(alone)
    assert len(set(alone)) == len(TEXTS)
    styled = bgt("generate", "--vectors", vectors, "--style", "Is it late?", "--model", writer, *SHORT).out
    assert styled != done.out and styled.count("\n") == 3
    assert bgt("generate", "--vectors", vectors, "--lang", "fr", "--model", writer, *SHORT).out != done.out
    three = bgt("generate", "--source", TEXTS[0], "--n-best", 3, "--model", writer, *SHORT).out
    assert three.splitlines()[0] == alone[0].strip() and 1 < three.count("\n") <= 3
    drawn = bgt("generate", "--vectors", vectors, "--set", "temperature=1", "--model", writer, "--max-length", 6).out
    assert drawn.count("\n") == 3 and drawn != done.out


def test_reranked_texts_are_in_the_order_of_their_cosine_with_the_vector(writer: Path, bgt: Bgt) -> None:
    """The test computes the expected order from texts that it embeds one by one."""
    model, encoder = bgt_core.open_encoder(writer), bgt_core.open_encoder("baseline:words")
    vectors = np.load(writer.parent / "vectors.npy")
    vectors += encoder.embed(["a cat a dog"], lang="en")  # so that cosines with generated words are not all 0
    options: dict[str, Any] = {"lang": "en", "search": bgt_core.Beam(6), "max_length": 8}
    plain, ranked = (from_vectors(model, vectors, rerank=rerank, **options) for rerank in (False, True))  # type: ignore[arg-type]
    for vector, before, after in zip(vectors, plain, ranked, strict=True):
        cosine = [float(cosines(encoder.embed([text], lang="en")[0], vector)) for text in before]
        assert after == [before[row] for row in sorted(range(len(before)), key=lambda row: -cosine[row])]


def test_a_changed_encoder_is_an_error_only_if_it_is_needed(
    writer: Path, bgt: Bgt, tmp_path: Path, tiny: Callable[..., Recipe], tokenizer: Tokenizer
) -> None:
    recipe = tiny("writer", fingerprint="words 12")
    checkpoint.save(tmp_path / "changed", recipe, recipe.build(tokenizer), tokenizer, step=1)
    vectors = ("generate", "--vectors", writer.parent / "vectors.npy", "--model", tmp_path / "changed", *SHORT)
    assert bgt(*vectors).code == 0
    for command in ((*vectors, "--rerank"), ("generate", "--source", "a", "--model", tmp_path / "changed", *SHORT)):
        done = bgt(*command)
        assert done.code == 4 and done.out == ""
        assert done.err.startswith("bgt: baseline:words has changed") and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 5), np.float32), "bad.npy: float32 (2, 5); expected numbers, (N, 8192)"),
        (np.zeros(8192, np.float32), "bad.npy: float32 (8192,)"),
        (np.full((3, 8192), np.nan, np.float32), "bad.npy: row 1 contains NaN or infinity"),
    ],
)
def test_bad_vectors_are_one_line(writer: Path, bgt: Bgt, tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "bad.npy", array)
    done = bgt("generate", "--vectors", tmp_path / "bad.npy", "--model", writer)
    assert done.code == 4 and message in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize("given", [(), ("--source", "a", "--vectors", __file__)])
def test_text_or_vectors_but_not_both(writer: Path, bgt: Bgt, given: tuple[str, ...]) -> None:
    done = bgt("generate", *given, "--model", writer)
    assert done.code == 2 and "--source is needed, unless --vectors is given" in done.err


def test_a_model_of_ours_generates_from_vectors_too(saved: Path, bgt: Bgt, tmp_path: Path) -> None:
    """A BGT model generates text from semantic vectors alone, with a language latent of 0, the mean of the prior."""
    model = bgt_core.load(saved)
    semantic = model.embed(TEXTS, lang="en")
    np.save(tmp_path / "own.npy", semantic)
    done = bgt("generate", "--vectors", tmp_path / "own.npy", "--model", saved, *SHORT)
    latents = {"semantic": semantic, "language": np.zeros((3, 6), np.float32)}
    search = bgt_core.Beam(3, 3, 1)
    expected = candidates(model, latents, lang="en", search=search, rerank=False, max_length=6)
    assert done.out == "".join(best.text + "\n" for best, *_ in expected)


def test_each_correction_decodes_from_the_best_text_and_ranks_all(
    bgt: Bgt, tmp_path: Path, save_writer: Callable[..., Path], tokenizer: Tokenizer
) -> None:
    """The test computes each round of correction itself: the model decodes again, given the best text so far."""
    save_writer(tmp_path / "drafts", columns=["en", "draft_en:en"], fingerprint="words 8192")
    model, search = bgt_core.open_encoder(tmp_path / "drafts"), bgt_core.Beam(3)
    vectors = model.embed(TEXTS, lang="en")
    latents = {"semantic": vectors, "language": np.zeros((3, 6), np.float32)}
    texts: list[set[str]] = [set() for _ in TEXTS]
    context: Any = decoder_input(model, latents, "en", 6)
    for corrections in range(3):
        with torch.no_grad():
            beams = n_best(model.model.decoder("en"), context, search, 3, 6)
        written = from_vectors(
            model, vectors, lang="en", search=search, rerank=True, corrections=corrections, max_length=6
        )
        for row, hypotheses in enumerate(beams):
            texts[row] |= {*tokenizer.decode([each.tokens for each in hypotheses])}
            assert {*written[row]} == texts[row] and len(written[row]) == len(texts[row])
            kept = cosines(model.embed(written[row], lang="en"), vectors[[row] * len(written[row])])
            assert (np.diff(kept) <= 1e-5 * np.abs(kept).max()).all()
        (context,) = drafted(model, latents, [best for best, *_ in written], "en")
    np.save(tmp_path / "vectors.npy", vectors)
    of_command = ("--vectors", tmp_path / "vectors.npy", "--model", tmp_path / "drafts", *SHORT)
    done = bgt("generate", *of_command, "--set", "no_repeat_ngram=0", "--set", "max_run=0", "--corrections", 2)
    assert (done.code, done.out.splitlines()) == (0, [best for best, *_ in written])


def test_corrections_need_a_beam_and_a_writer_trained_with_drafts(writer: Path, saved: Path, bgt: Bgt) -> None:
    vectors = ("generate", "--vectors", writer.parent / "vectors.npy", "--corrections", 1, *SHORT)
    done = bgt(*vectors, "--model", writer)
    assert done.code == 2 and "was trained without drafts; train one with a column such as draft_en" in done.err
    done = bgt(*vectors, "--model", writer, "--set", "seed=1")
    assert done.code == 2 and "--corrections 1: works only with beam search, not with sampling" in done.err
    for style in ((), ("--style", "Is it late?")):
        done = bgt("generate", "--source", "Is it late?", *style, "--corrections", 1, "--model", saved, *SHORT)
        assert done.code == 2 and "corrections need a writer of `bgt train writer`" in done.err


def test_sentences_without_a_known_token_are_counted(saved: Path, bgt: Bgt, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\u65e5\u672c\n\n\u732b\nThe dog sleeps.\n", "utf-8")
    done = bgt("embed", tmp_path / "in.txt", "--out", tmp_path / "out.npy", "--model", saved)
    assert "2 of 4 sentences have no token that the model knows\n" in done.err
    note = bgt("generate", "--source", "\u732b", "--style", "Is it late?", "--model", saved, *SHORT).err
    assert note == "1 of 2 sentences have no token that the model knows\n"
    assert bgt("generate", "--source", "The dog sleeps.", "--model", saved, *SHORT).err == ""
