"""`open_encoder` opens encoders of all kinds by name, and checks their vectors. Each error message is one line."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import bgt_core
from bgt_core import bulk, encoders
from bgt_core.encoders import open_encoder, with_kind
from bgt_core.encoders.baseline import reference_encoders
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import BgtError, DataError, NotFound, UsageError
from tests.close import assert_close

TEXTS = ["The dog sleeps.", "Le chien dort.", "The dog sees the dog."]

MODULE = """
import numpy as np
import torch
from scipy import sparse

def lengths(sentences):
    return [[len(text), text.count("o"), 1] for text in sentences]

class Model:
    langs, latents = ("en", "de"), ("semantic", "language")
    def embed(self, sentences, *, lang, latent):
        return np.full((len(sentences), 2), [len(lang), len(latent)])

class Fitted:
    def __init__(self, path): ...

model = Model()

class Distant(Model):
    fingerprint = "two constants"
    def similarity(self, left, right):
        return -np.linalg.norm(left[:, None] - right, axis=-1)
    def similarity_pairwise(self, left, right):
        return -np.linalg.norm(left - right, axis=-1)
    def count_truncated(self, sentences, *, lang):
        return len([sentence for sentence in sentences if len(sentence) > 15])

def make(size=3):
    return lambda sentences: np.ones((len(sentences), size))

class Encodes:
    langs = "en"
    def encode(self, sentences):
        return torch.tensor([[len(text), 1.0] for text in sentences], requires_grad=True).bfloat16()
    def similarity(self, left, right): return torch.tensor(left) @ torch.tensor(right).T

class Plain:
    def embed(self, sentences): return (torch.tensor([len(text), 1.0]) for text in sentences)

encodes, plain = Encodes(), Plain()
def rows(sentences): return sparse.csr_matrix([[len(text), 1] for text in sentences])
text = "abc"
def short(sentences): return np.ones((len(sentences) - 1, 2))
def nan(sentences): return np.where(np.arange(len(sentences))[:, None] == 1, np.nan, [[1.0, 2.0]])

def leaves(sentences): raise SystemExit
def pipes(sentences): raise BrokenPipeError
def lazy(sentences):
    yield [1.0, 2.0]
    yield {}["absent"]
def full(sentences): raise MemoryError
class Asks(Model):
    def langs(self): return ["en"]
asks = Asks()

class Speaks:
    langs = ["en", "fra"]
    def encode(self, sentences, lang="en"): return [[len(sentences), len(lang)] for _ in sentences]
    def said(self, sentences, lang, *, latent): return [[len(lang), len(latent)] for _ in sentences]
    def prompted(self, sentences, prompt): ...
    def transform(self, sentences): return lengths(sentences)

class Numbered(Encodes):
    fingerprint, latents = 12345, None

class Vectoriser:
    def fit(self, sentences): return self
    transform = Speaks.transform

speaks, vectoriser = Speaks(), Vectoriser()
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Change to a folder with the module my_encoders.py, in which a user has defined encoders."""
    (tmp_path / "my_encoders.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    monkeypatch.delitem(sys.modules, "my_encoders", raising=False)
    yield
    monkeypatch.delitem(sys.modules, "my_encoders", raising=False)


@pytest.mark.parametrize(
    ("spec", "message", "code"),
    [
        ("no/such/folder/at-all", r"no such checkpoint", 3),
        ("a" * 5_000, r"no such checkpoint", 3),
        ("\0", r"no such checkpoint", 3),
        ("sentence-transformer:x", r"'sentence-transformer'. Did you mean 'sentence-transformers:'\?", 2),
        ("word2vec:x", r"no kind of encoder 'word2vec'.*python:MODULE:OBJECT", 2),
        ("python:", r"the name of the encoder is missing", 2),
        ("python:my_encoders", r"expected python:MODULE:OBJECT", 2),
        ("python:my_encoderz:lengths", r"no module 'my_encoderz'", 3),
        ("python:my_encoders:width", r"no attribute 'width'", 3),
        ("python:my_encoders:asks", r"asks: langs is of type method; expected strings, such as \('en', 'fr'\)", 4),
        ("python:my_encoders:text", r"is str; expected an object with `embed` or `encode`", 4),
        ("python:my_encoders:Fitted", r"is a class that needs arguments. Make an object of it in the module", 4),
        ("python:my_encoders:speaks.prompted", r"\(sentences, prompt\) can't be called .*argument: 'prompt'", 4),
        ("python:my_encoders:Speaks.encode", r"missing a required argument: 'sentences'.* method of an object", 4),
        ("python:my_encoders:vectoriser", r"is Vectoriser; expected an object with `embed` or `encode`, or a func", 4),
        ("baseline:bow", r"expected words, tfidf, random or random@SEED", 2),
        ("baseline:random@x", r"random@2", 2),
        ("vectors:x.txt", r"expected NAME.npy", 2),
        ("vectors:x.npy", r"x.npy: can't be read", 3),
    ],
)
def test_a_name_that_opens_no_encoder_is_an_error(mine: None, spec: str, message: str, code: int) -> None:
    with pytest.raises(BgtError, match=message) as error:
        open_encoder(spec)
    assert error.value.exit_code == code and "\n" not in str(error.value)


@pytest.fixture
def lying(saved: Path, tmp_path: Path) -> Path:
    """A folder of fake models and other files. `with_kind` must recognise the kind of each model by its file names."""
    modules = [{"type": "sentence_transformers.models.Transformer"}], [{"type": "bgt_core.Encode"}]
    files = {
        "st/modules.json": json.dumps(modules[0]), "onnx/onnx.json": "{}", "split/split.json": "{}",
        "ours/modules.json": json.dumps(modules[1]), "ours/config.json": "{}", "run/step-5/config.json": "{}",
        "both/modules.json": json.dumps(modules[0]), "both/onnx.json": "{}", "mine.npy": "", "mine.npz": "",
        "model.bin": "", "all-MiniLM-L6-v2/modules.json": json.dumps(modules[0]),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


KINDS = {
    "sentence-transformers:": ["st", "st/", "all-MiniLM-L6-v2"], "onnx:": ["onnx"], "split:": ["split"],
    "vectors:": ["mine.npy", "mine.npz"], "": ["ours", "run", "nowhere", "absent.npy"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for kind, names in KINDS.items() for name in names])
def test_the_files_of_a_path_determine_its_kind(lying: Path, name: str, kind: str) -> None:
    assert with_kind(f"{lying}/{name}") == f"{kind}{lying}/{name}"
    assert with_kind(f"{kind}{lying}/{name}") == f"{kind}{lying}/{name}"


def test_a_path_of_two_kinds_or_none_is_refused(lying: Path) -> None:
    with pytest.raises(UsageError, match=r"both: contains encoders of several kinds.*:.*both or onnx:.*both"):
        with_kind(str(lying / "both"))
    with pytest.raises(UsageError, match=r"model.bin: this file is not an encoder.*vectors:"):
        with_kind(str(lying / "model.bin"))


PUBLISHED = ["all-MiniLM-L6-v2", "paraphrase-multilingual-mpnet-base-v2", "LaBSE", "sentence-transformers/any_v1.5"]
OTHERS = ["bgt-en-fr", "my-run", "ORG/NAME", "runs/MiniLM", "./LaBSE", "MiniLM.npy", "python:mine:bert"]


@pytest.mark.parametrize("name", [*PUBLISHED, *OTHERS])
def test_published_names_are_known_and_names_of_paths_are_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert with_kind(name) == "sentence-transformers:" * (name in PUBLISHED) + name


@pytest.mark.parametrize(
    "name", ["/no/MiniLM", "./MiniLM", "../x", "~/MiniLM", "a/b/c", "here/MiniLM", "C:\\a\\MiniLM"]
)
def test_the_hub_is_not_asked_for_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match=r"MiniLM: no such folder|x: no such folder|c: no such folder"):
        open_encoder(f"sentence-transformers:{name}")


def test_a_home_folder_is_found_behind_a_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    np.savez(tmp_path / "mine.npz", vectors=np.eye(1), sentences=np.array(["a"]))
    for spec in ("~/mine.npz", "vectors:~/mine.npz", tmp_path / "mine.npz"):
        assert open_encoder(spec).embed(["a"], lang="en").tolist() == [[1.0]]


def test_functions_objects_classes_and_factories_of_the_current_folder(mine: None) -> None:
    expected = [[15, 1, 1], [14, 1, 1], [21, 2, 1]]
    encoder = open_encoder("python:my_encoders:lengths")
    vectors = encoder.embed(TEXTS, lang="xx")
    assert vectors.dtype == np.float32 and vectors.tolist() == expected
    assert (encoder.langs, encoder.latents) == ((), ("semantic",))
    assert encoder.embed([], lang="en").shape == (0, 3)
    for name in ("model", "Model"):
        own = open_encoder(f"python:my_encoders:{name}")
        assert (own.langs, own.latents) == (("en", "de"), ("semantic", "language"))
        assert own.embed(["a"], lang="de", latent="language").tolist() == [[2, 8]]
        with pytest.raises(BgtError, match=r"lang fr: .* supports en, de"):
            own.embed(["a"], lang="fr")
    assert open_encoder("python:my_encoders:make").embed(TEXTS, lang="en").shape == (3, 3)
    assert open_encoder("python:my_encoders:model.embed.__self__").latents == ("semantic", "language")


@pytest.mark.parametrize("name", ["encodes", "Encodes", "plain", "rows"])
def test_tensors_and_sparse_rows_of_usual_methods(mine: None, name: str) -> None:
    encoder = open_encoder(f"python:my_encoders:{name}")
    vectors = encoder.embed(TEXTS, lang="en")
    assert vectors.dtype == np.float32 and vectors.tolist() == [[15, 1], [14, 1], [21, 1]]
    if name == "encodes":
        assert encoder.langs == ("en",)
        similarity = encoder.similarity(vectors, vectors[:2])
        assert isinstance(similarity, np.ndarray) and similarity.tolist() == (vectors @ vectors[:2].T).tolist()


def test_every_function_gets_the_language_and_latent_that_it_names(mine: None) -> None:
    speaks = open_encoder("python:my_encoders:speaks")
    # the attribute `langs` of this encoder has fra instead of fr, so the language fr is passed to it as fra
    assert [speaks.embed("a", lang=lang).tolist() for lang in ("en", "fr")] == [[1, 2], [1, 3]]
    for name, lang, expected in (("speaks.encode", "yue", [1, 3]), ("speaks.said", "pt-BR", [5, 8])):
        assert open_encoder(f"python:my_encoders:{name}").embed("a", lang=lang).tolist() == expected
    assert open_encoder("python:my_encoders:vectoriser.transform").embed("ao", lang="en").tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leaves", r"failed in my_encoders\.py, line \d+: SystemExit\."),
        ("pipes", r"failed in my_encoders\.py, line \d+: BrokenPipeError\."),
        ("lazy", r"failed in my_encoders\.py, line \d+: KeyError: 'absent'\."),
        ("short", r".*float64 \(2, 2\); expected numbers, \(3, D\)"),
        ("nan", r".*row 2 contains NaN or infinity, for 'Le chien dort.'"),
    ],
)
def test_failing_user_code_and_wrong_vectors_are_errors(mine: None, name: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"python:my_encoders:{name}: {message}"):
        open_encoder(f"python:my_encoders:{name}").embed(TEXTS, lang="en")


def test_a_lack_of_memory_and_a_failing_module_are_errors(mine: None, tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        open_encoder("python:my_encoders:full").embed(TEXTS, lang="en")
    for name, text, message in (
        ("leaving", "import sys\nsys.exit(3)\n", r"leaving\.py, line 2: SystemExit: 3"),
        ("unclosed", "f = (\n", r"unclosed\.py, line 1: SyntaxError: "),
        ("wanting", "import absent_module\n", r"no module 'absent_module'"),
    ):
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
        with pytest.raises(BgtError, match=message):
            open_encoder(f"python:{name}:f")


def test_a_fingerprint_is_text(mine: None) -> None:
    assert open_encoder("python:my_encoders:Numbered").fingerprint == "12345"
    with pytest.raises(BgtError, match=r"x: fingerprint is of type list; expected text"):
        _ = ExternalEncoder("x", lambda texts, lang, latent: [[1.0]], fingerprint=lambda: [1]).fingerprint


def test_similarity_fingerprint_and_truncation_of_an_object_are_used(mine: None) -> None:
    plain, distant = (open_encoder(f"python:my_encoders:{name}") for name in ("Model", "Distant"))
    left, right = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(plain.similarity(left, right), [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(plain.similarity_pairwise(left, right[:2]), [1, 1])
    np.testing.assert_allclose(distant.similarity(left, right)[:, 2], [-3, -1])
    np.testing.assert_allclose(distant.similarity_pairwise(left, right[:2]), [-2, -1])
    assert (plain.fingerprint, distant.fingerprint) == ("", "two constants")
    counts = [encoder.count_truncated(TEXTS, lang="en") for encoder in (plain, distant)]
    assert counts == [0, 1]


def test_vectors_that_embed_wrote_are_looked_up(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join([*TEXTS, "", TEXTS[0]]) + "\n", "utf-8")
    model = bgt_core.load(saved)
    bulk.embed_file(model, tmp_path / "text.txt", tmp_path / "text.npy", lang="en")
    encoder = open_encoder(f"vectors:{tmp_path / 'text.npy'}")
    expected = model.embed([TEXTS[2], TEXTS[0], ""], lang="en")
    assert np.array_equal(encoder.embed([TEXTS[2], f"  {TEXTS[0]} ", ""], lang="en"), expected)
    assert encoder.embed([], lang="en").shape == (0, 12)
    with pytest.raises(BgtError, match=r"no vector for 'A cat.' \(2 of 3 missing\)"):
        encoder.embed([TEXTS[0], "A cat.", "Two cats."], lang="en")


def test_vectors_of_an_npz_and_errors_of_files(tmp_path: Path) -> None:
    path, vectors = tmp_path / "v.npz", np.arange(6).reshape(3, 2)
    np.savez(path, vectors=vectors, sentences=TEXTS)
    assert open_encoder(f"vectors:{path}").embed(TEXTS[::-1], lang="en").tolist() == vectors[::-1].tolist()
    for content, message in (
        ({"sentences": np.array(TEXTS, dtype=object)}, "not a NumPy file of numbers or text"),  # saved as a pickle
        ({"sentences": TEXTS[:2]}, "3 vectors for 2 sentences"),
        ({"sentences": [*TEXTS[:2], TEXTS[0]]}, "rows 1 and 3 differ for the same sentence, 'The dog sleeps.'"),
        ({"vectors": vectors * np.nan}, "row 1 contains NaN or infinity"),
        ({"vectors": vectors[:0], "sentences": np.array([], dtype=str)}, "empty; expected sentences"),
    ):
        np.savez(path, **{"vectors": vectors, "sentences": TEXTS} | content)
        with pytest.raises(BgtError, match=message):
            open_encoder(f"vectors:{path}")
    np.savez(path, vectors=vectors)
    with pytest.raises(BgtError, match='two arrays, "vectors" and "sentences"'):
        open_encoder(f"vectors:{path}")
    np.save(tmp_path / "alone.npy", vectors)
    with pytest.raises(BgtError, match=r"alone\.txt: no such file"):
        open_encoder(f"vectors:{tmp_path / 'alone.npy'}")


def test_the_bag_of_words_has_the_cosines_of_counted_words() -> None:
    texts = [*TEXTS, "A storm was coming over the hills, and the old ferry did not leave.", "the DOG, the dog"]

    def cosine(one: str, two: str) -> float:
        a, b = (Counter(text.lower().replace(".", "").replace(",", "").split()) for text in (one, two))
        norm = np.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
        return sum(a[word] * b[word] for word in a) / norm

    vectors = open_encoder("baseline:words").embed(texts, lang="en")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert_close(unit @ unit.T, [[cosine(a, b) for b in texts] for a in texts])


def test_tfidf_weights_rare_tokens_more_and_each_sentence_alone() -> None:
    bag = open_encoder("baseline:tfidf")
    common, rare, both = bag.embed(["the", "hospital", "the hospital the"], lang="en")
    np.testing.assert_allclose(both, 2 * common + rare, rtol=1e-6)
    assert rare.max() > common.max() > 0
    assert np.array_equal(bag.embed(["the hospital the", *TEXTS], lang="en")[0], both)


def test_the_random_encoder_is_the_shipped_architecture_and_its_seed() -> None:
    before = torch.get_rng_state()
    first, again, other = (open_encoder(f"baseline:random{at}") for at in ("", "@1", "@2"))
    assert torch.equal(torch.get_rng_state(), before)
    shipped = bgt_core.load()
    for latent in shipped.latents:
        vectors = first.embed(TEXTS, lang="fr", latent=latent)
        assert vectors.shape == shipped.embed(TEXTS, lang="fr", latent=latent).shape
        assert np.array_equal(again.embed(TEXTS, lang="fr", latent=latent), vectors)
        assert not np.allclose(other.embed(TEXTS, lang="fr", latent=latent), vectors)


def test_the_references_of_a_probe_have_the_shape_and_tokenizer_of_its_model(saved: Path) -> None:
    mine = bgt_core.load(saved)
    references = reference_encoders(mine, saved)
    assert [len(several) for several in references.values()] == [3, 1]
    vectors = [one.embed(TEXTS, lang="fr") for one in references["untrained encoder"]]
    trained = mine.embed(TEXTS, lang="fr")
    assert {one.shape for one in vectors} == {trained.shape}
    assert not any(np.allclose(one, other) for one in vectors for other in (trained, vectors[0]) if one is not other)

    (tokens,) = references["mean of tokens"]
    table = mine.model.encoders["semantic"].body.table.weight.detach().numpy()
    expected = [table[ids[:-1]].mean(0) for ids in mine.tokenizer.encode(TEXTS)]  # without EOS
    np.testing.assert_allclose(tokens.embed(TEXTS, lang="fr"), expected, rtol=1e-5)
    assert not tokens.embed([""], lang="fr").any()


def test_libraries_that_are_absent_are_named_with_their_extra(
    saved: Path, tmp_path: Path, bgt: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bgt_core.errors.find_spec", lambda name: None)
    with pytest.raises(BgtError, match=r'pip install "bgt\[sentence-transformers\]"') as error:
        open_encoder("sentence-transformers:x")
    assert error.value.exit_code == 3
    for form in ("onnx", "sentence-transformers"):
        done = bgt("export", saved, "--out", tmp_path / "x", "--to", form)
        assert done.code == 3 and f'pip install "bgt[{form}]"' in done.err and not (tmp_path / "x").exists()


def test_a_kind_from_outside_is_a_module_and_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("bgt_core.encoders.counting")
    module.open_encoder = lambda name, device, precision: ExternalEncoder(  # type: ignore[attr-defined]
        f"counting:{name}", lambda texts, *_: np.array([[text.count(name), 1.0] for text in texts])
    )
    monkeypatch.setitem(sys.modules, "bgt_core.encoders.counting", module)
    monkeypatch.setitem(encoders.KINDS, "counting", encoders.Kind("LETTER", "counts a letter", "Counts letters"))
    np.testing.assert_array_equal(open_encoder("counting:o").embed(["of", "no one"], lang="en"), [[1, 1], [2, 1]])
    with pytest.raises(UsageError, match="counting:: the name of the encoder is missing"):
        open_encoder("counting:")
