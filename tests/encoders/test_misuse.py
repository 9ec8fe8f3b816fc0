"""All kinds of encoders respond alike to wrong input and unusual environments."""

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import bgt_core
from bgt_core import bulk, checkpoint
from bgt_core.contracts import SentenceEncoder
from bgt_core.encoders import onnx, open_encoder
from bgt_core.encoders.distances import compared_by
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import NotFound, UsageError
from tests.close import assert_close

TEXTS = ["The dog sleeps.", "It is late.", "Where is the old man's house?"]
KINDS = "checkpoint int8 w2 wmd probability words tfidf random vectors python onnx sentence-transformers".split()


@pytest.fixture(scope="module")
def openers(
    saved: Path, saved_siamese: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Callable[[], SentenceEncoder]]]:
    """A dict from each kind of encoder to a function that opens one."""
    folder = tmp_path_factory.mktemp("encoders")
    (folder / "text.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    bulk.embed_file(bgt_core.load(saved, "cpu"), folder / "text.txt", folder / "text.npy", lang="en")
    (folder / "encoder_of_a_user.py").write_text("def lengths(texts): return [[len(text), 1] for text in texts]\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield {
            "checkpoint": partial(bgt_core.load, saved, "cpu", "fp32"),
            "int8": partial(bgt_core.load, saved, "cpu", "int8"),
            "w2": lambda: compared_by(bgt_core.load(saved, "cpu"), "w2"),
            "wmd": lambda: compared_by(bgt_core.load(saved, "cpu"), "wmd"),
            "probability": lambda: compared_by(bgt_core.load(saved_siamese, "cpu"), "probability"),
            **{name: partial(open_encoder, f"baseline:{name}") for name in ("words", "tfidf", "random")},
            "vectors": partial(open_encoder, f"vectors:{folder / 'text.npy'}"),
            "python": partial(open_encoder, "python:encoder_of_a_user:lengths"),
        }


@pytest.fixture(scope="module", params=KINDS)
def encoder(
    request: pytest.FixtureRequest,
    openers: dict[str, Callable[[], SentenceEncoder]],
    saved: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> SentenceEncoder:
    if request.param == "sentence-transformers":
        return open_encoder(f"sentence-transformers:{request.getfixturevalue('bert') / 'st'}", device="cpu")
    if request.param == "onnx":
        pytest.importorskip("onnxscript")
        folder = tmp_path_factory.mktemp("onnx") / "model"
        onnx.export(checkpoint.load(saved), folder)
        return open_encoder(f"onnx:{folder}")
    return openers[request.param]()


def test_one_string_is_one_sentence(encoder: SentenceEncoder) -> None:
    vectors = encoder.embed(TEXTS, lang="en")
    alone = encoder.embed(TEXTS[0], lang="en")
    assert alone.shape == vectors.shape[1:]
    assert repr(encoder).startswith("<") and "; semantic" in repr(encoder)
    assert_close(alone, vectors[0])


@pytest.mark.parametrize(
    "make",
    [tuple, np.array, partial(np.array, dtype=object), partial(pd.Series, index=[7, 8, 9]), iter],
    ids=["tuple", "array", "objects", "series", "generator"],
)
def test_strings_in_an_order_are_sentences(encoder: SentenceEncoder, make: Callable[[list[str]], object]) -> None:
    assert_close(encoder.embed(make(TEXTS), lang="en"), encoder.embed(TEXTS, lang="en"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "is of type NoneType; expected a string or a list of strings"),
        (b"The dog sleeps.", "is of type bytes"),
        (pd.DataFrame({"text": TEXTS}), "is of type DataFrame"),
        ({"text": TEXTS}, "is of type dict"),
        (set(TEXTS), "is of type set"),
        (pd.Series([TEXTS[0], None, TEXTS[1]]), "row 2 of 3 is of type "),
        ([TEXTS[0], None], "row 2 of 2 is of type NoneType; expected a string. Drop or fill missing values"),
        ([TEXTS], "row 1 of 1 is of type list; expected a string.$"),
        (np.array([1.0, np.nan]), "row 1 of 2 is of type float64"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_anything_else_is_one_clear_error(encoder: SentenceEncoder, given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        encoder.embed(given, lang="en")
    assert str(error.value).startswith("sentences ")


def test_vectors_are_paired_row_by_row_only(encoder: SentenceEncoder) -> None:
    vectors = encoder.embed(TEXTS, lang="en")
    with pytest.raises(UsageError, match=r"left has shape \(3, \d+\), right \(1, \d+\)"):
        encoder.similarity_pairwise(vectors, vectors[:1])
    for compare in (encoder.similarity, encoder.similarity_pairwise):
        assert_close(compare(vectors.tolist(), torch.tensor(vectors, requires_grad=True)), compare(vectors, vectors))
        with pytest.raises(UsageError, match=r"left has vectors of \d+ units, right of 1"):
            compare(vectors, vectors[:, :1])


def test_a_pickled_encoder_gives_the_same_vectors(encoder: SentenceEncoder) -> None:
    again = ForkingPickler.loads(ForkingPickler.dumps(encoder))  # a pool of processes would send an encoder in this way
    assert np.array_equal(again.embed(TEXTS, lang="en"), encoder.embed(TEXTS, lang="en"))
    assert again.fingerprint == encoder.fingerprint


def test_threads_share_an_encoder(encoder: SentenceEncoder) -> None:
    expected = encoder.embed(TEXTS, lang="en")
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(encoder.embed(TEXTS, lang="en"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.array_equal(result, expected) for result in results)


@contextmanager
def defaults(dtype: torch.dtype, device: str) -> Iterator[None]:
    """Change the default type and the default device of torch's new tensors, and restore them at the end."""
    torch.set_default_dtype(dtype)
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("onnx", "sentence-transformers")])
def test_defaults_of_torch_change_nothing(openers: dict[str, Callable[[], SentenceEncoder]], kind: str) -> None:
    expected = openers[kind]().embed(TEXTS, lang="en")
    similarity = openers[kind]().similarity(expected, expected[:2])
    with defaults(torch.float64, "meta"):
        given = openers[kind]().embed(TEXTS, lang="en")
        compared = openers[kind]().similarity(given, given[:2])
    assert given.dtype == np.float32 and np.array_equal(given, expected) and np.array_equal(compared, similarity)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu")])
def test_a_device_may_be_named_in_several_ways(saved: Path, device: str | torch.device) -> None:
    assert bgt_core.load(saved, device).device == torch.device("cpu")
    assert open_encoder(saved, device=device).embed(TEXTS, lang="en").shape == (3, 12)
    assert open_encoder("baseline:random", device=device).device == torch.device("cpu")


@pytest.mark.parametrize("path", [None, 3, b"bgt-en-fr", ["bgt-en-fr"]])
@pytest.mark.parametrize("opens", [bgt_core.load, bgt_core.info, open_encoder])
def test_a_model_has_a_path_or_a_name(opens: Callable[[object], object], path: object) -> None:
    with pytest.raises(UsageError, match=r"^path .*: expected a folder, or the name of a model"):
        opens(path)


def test_an_unknown_device_is_named(saved: Path) -> None:
    for device in ("tpu", None, torch.device("meta")):
        with pytest.raises(UsageError, match=f"device '{device}': expected auto, cpu, cuda"):
            bgt_core.load(saved, device)
    with pytest.raises(NotFound, match="no such CUDA device"):
        bgt_core.load(saved, torch.device("cuda:99"))


def test_an_encoder_made_by_hand_says_that_it_cannot_be_pickled() -> None:
    with pytest.raises(UsageError, match="mine can't be pickled: make it in each process"):
        pickle.dumps(ExternalEncoder("mine", lambda texts, lang, latent: [[1.0]] * len(texts)))
