"""Fixtures for all tests, such as a small corpus and models that are built in milliseconds. Tests use one thread."""

import io
import os
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import pytest
import torch
from filelock import FileLock
from threadpoolctl import threadpool_limits

import bgt_core
import probes
from bgt_core import checkpoint, cli, recipes, training
from bgt_core.contracts import Batch, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair, pairs
from bgt_core.recipes import RECIPES, Recipe

# With one thread, sums have the same order on every machine, and parallel tests don't slow each other down.
torch.set_num_threads(1)
threadpool_limits(1)
os.environ["OMP_NUM_THREADS"] = "1"  # processes that tests start also use one thread
os.environ["BGT_CACHE"] = os.devnull  # not a folder, so that no test reads vectors that another test has written

LANGS = ("en", "fr")
BGT_SMALL_SIZES = {"d_model": 16, "semantic_dim": 12, "language_dim": 6, "language_layers": 1, "ffn_dim": 24}
BGT_SMALL_SIZES |= {"heads": 2, "dropout": 0.1, "word_dropout": 0.2}
BATCHES = {"batch_tokens": 600, "micro_tokens": 400, "valid_pairs": 20}
SCHEDULE = {"objective.elbo.warmup_steps": 10, "train.warmup_steps": 5, "valid_every": 5, "save_every": 2}
TINY: dict[str, dict[str, Any]] = {
    "bgt": {"d_model": 16, "encoder_layers": 1, "ffn_dim": 24, "heads": 2, "dropout": 0.0, "valid_pairs": 20},
    "bgt-small": BGT_SMALL_SIZES | BATCHES | SCHEDULE | {"min_tokens": 2, "epochs": 2.0, "learning_rate": 1e-2},
}
SIAMESE = {"d_model": 16, "valid_pairs": 20, "batch_tokens": 600, "mega_batch": 3, "mega_batch_warmup": 1}
TINY |= {"sp": SIAMESE, "bilstm": SIAMESE}
PARAPHRASTIC = SIAMESE | {"columns": ["en", "fr"]}  # for recipes that usually train on two columns of one language
TINY |= {"avg": PARAPHRASTIC | {"mega_batch": 0}, "gran": PARAPHRASTIC}
TINY["vgvae"] = PARAPHRASTIC | {"semantic_dim": 12, "syntactic_dim": 6, "hidden_dim": 24, "mega_batch_start": 0.0}
VAR_SIAMESE = {"d_model": 16, "semantic_dim": 12, "hidden_dim": 10, "valid_pairs": 20, "columns": ["en", "fr"]}
TINY |= {"var-siamese-repeat": VAR_SIAMESE, "var-siamese-reformulate": VAR_SIAMESE}
TINY["pair-classifier"] = {f"model.base.{name}": value for name, value in BGT_SMALL_SIZES.items()}
TINY["pair-classifier"] |= BATCHES | {"epochs": 1.0}
UNBOUND = {name: value for name, value in TINY["bgt-small"].items() if name != "semantic_dim"}
TINY["bgt-bound"] = UNBOUND | {"average_dim": 12, "bound_dim": 8, "roles_dim": 16, "composed_layers": 1}
TINY["bgt-bound"] |= {"memory_slots": 5, "decoder_layers": 1}
TINY["writer"] = UNBOUND | {"encoder": "baseline:words", "vector_dim": 8192, "memory_slots": 3}
TINY |= {name: TINY["bgt"] for name in RECIPES if name not in TINY}
SHARED = {"vocab_size": 400}


# Folders of tests. In parallel runs, the browser tests start first, then the other folders, slowest first.
FIRST = ("browser", "end_to_end", "app", "analysis", "training", "run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests that need a CUDA device if there is none. In parallel runs, sort tests by the folders in `FIRST`."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))
    if hasattr(config, "workerinput"):
        ranks = {name: rank for rank, name in enumerate(FIRST)}
        items.sort(key=lambda item: ranks.get(item.path.relative_to(Path(__file__).parent).parts[0], len(FIRST)))


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Use one worker for each core, and one more because the browser tests mostly wait."""
    return (yield) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Schedule tests as `--dist loadfile` does, but all browser tests on one worker: two browsers would time out."""
    from xdist.scheduler import LoadFileScheduling

    class OneBrowser(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if "browser/" in nodeid else super()._split_scope(nodeid)

    return OneBrowser(config, log) if config.getvalue("dist") == "loadfile" else None


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """in_process(main, *arguments): call `main` in this process with these command-line arguments."""

    def call(main: Callable[[], None], *arguments: object, stdin: TextIO | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["bgt", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", stdin or io.StringIO())
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Done(int(end.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture
def bgt(in_process: Callable[..., Done]) -> Callable[..., Done]:
    """bgt("embed", "-", stdin=io.StringIO("...")): run `bgt` in this process."""
    return partial(in_process, cli.main)


@pytest.fixture(scope="session")
def grammar() -> list[Pair]:
    return pairs(300, seed=3)


@pytest.fixture(scope="session")
def tsv(grammar: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TSV file of 300 translations: English, then French."""
    path = tmp_path_factory.mktemp("corpus") / "pairs.tsv"
    path.write_text("".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in grammar), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tokenizer(grammar: list[Pair]) -> Tokenizer:
    text = [text for pair in grammar for text in pair.texts.values()]
    return Tokenizer.train(text, SHARED["vocab_size"], lowercase=True)


@pytest.fixture(scope="session")
def batch(grammar: list[Pair], tokenizer: Tokenizer) -> Batch:
    """A batch of six pairs of translations with different lengths. The anchor column is English."""
    ids = {lang: tokenizer.encode([pair.texts[lang] for pair in grammar[:6]]) for lang in LANGS}
    return Batch({lang: Tokens.pad(ids[lang], lang) for lang in LANGS}, anchor="en")


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Recipe]:
    """tiny(name, **settings): a recipe with small sizes. `d_model=8` is enough to set `model.d_model`."""

    def build(name: str = "bgt-small", **settings: object) -> Recipe:
        return recipes.configure(name, {**SHARED, **TINY[name], **settings})

    return build


@pytest.fixture(scope="session")
def made_once(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, Callable[[Path], object]], Path]:
    """made_once(name, make): return the path of a folder that `make` fills only once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if hasattr(request.config, "workerinput") else base

    def get(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = base / name, base / f"{name}.done"
        with FileLock(f"{folder}.lock"):
            if not done.exists():
                make(folder)
                done.touch()
        return folder

    return get


@pytest.fixture(scope="session")
def small_run(tiny: Callable[..., Recipe], grammar: list[Pair], made_once: Callable[..., Path]) -> Path:
    """A folder with pairs.tsv and a training run without interruption: about twenty updates of several micro-batches,
    with dropout and sampling, a checkpoint every two updates, and a validation every five. It is in float32, because in
    bfloat16 another order of summation changes results too much."""

    def make(folder: Path) -> None:
        folder.mkdir()
        text = "".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in grammar)
        (folder / "pairs.tsv").write_text(text, encoding="utf-8")
        recipe = tiny("bgt-small", epochs=1.4, batch_tokens=350, micro_tokens=150, precision="fp32")
        training.train(recipe, [folder / "pairs.tsv"], folder / "run", device="cpu")

    return made_once("small-run", make)


@pytest.fixture(scope="session")
def stirred() -> Callable[[torch.nn.Module], torch.nn.Module]:
    """stirred(model): the model with noise added to all its parameters, so that no parameter is zero."""

    def stir(model: torch.nn.Module) -> torch.nn.Module:
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        return model

    return stir


@pytest.fixture(scope="session")
def save_writer(
    tiny: Callable[..., Recipe], stirred: Callable[[torch.nn.Module], torch.nn.Module], tokenizer: Tokenizer
) -> Callable[..., Path]:
    """save_writer(folder, **settings): save an untrained writer, which generates text from bag-of-words vectors."""

    def save(folder: Path, **settings: object) -> Path:
        torch.manual_seed(0)
        recipe = tiny("writer", **settings)
        checkpoint.save(folder, recipe, stirred(recipe.build(tokenizer)), tokenizer, step=1)  # type: ignore[arg-type]
        return folder

    return save


@pytest.fixture(scope="session")
def saved(
    tiny: Callable[..., Recipe],
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The checkpoint of an untrained model. A test must copy it before damaging it."""
    torch.manual_seed(0)
    recipe = tiny()
    folder = tmp_path_factory.mktemp("saved") / "model"
    checkpoint.save(folder, recipe, stirred(recipe.build(tokenizer)), tokenizer, step=7)
    return folder


@pytest.fixture(scope="session")
def saved_siamese(
    stirred: Callable[[torch.nn.Module], torch.nn.Module],
    tokenizer: Tokenizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A checkpoint of an untrained `var-siamese`, whose predicted probabilities of a duplicate vary widely."""
    torch.manual_seed(0)
    sizes = {"d_model": 16, "hidden_dim": 12, "semantic_dim": 8}
    settings = {f"model.base.{name}": size for name, size in sizes.items()}
    recipe = recipes.configure("var-siamese", {**settings, "model.hidden_dim": 10})
    folder = tmp_path_factory.mktemp("saved_siamese") / "model"
    checkpoint.save(folder, recipe, stirred(recipe.build(tokenizer)), tokenizer, step=5)
    return folder


@pytest.fixture(scope="session")
def random_tokens() -> Callable[..., Tokens]:
    """random_tokens(lengths, vocab_size, seed): sentences of random tokens with these lengths, which include EOS."""

    def draw(lengths: Sequence[int], vocab_size: int, seed: int = 0, lang: str = "en") -> Tokens:
        rng = np.random.default_rng(seed)
        return Tokens.pad([[*rng.integers(4, vocab_size, length - 1), 3] for length in lengths], lang)

    return draw


@pytest.fixture(scope="session")
def cell(saved: Path) -> probes.Cell:
    """The result of `bgt-probe` for an untrained model: the task `length` in English."""
    config = probes.ProbeConfig(max_items=300, seeds=1)
    return probes.measure_cell(bgt_core.load(saved), "length", lang="en", name=str(saved), config=config)


@dataclass
class Site:
    """A fake web site: its files by path, the errors that it sends next, and the requests that it received."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)  # for each GET: a status ("503"), or "cut 9" to stop after 9 bytes
    asked: list[tuple[str, str, Message]] = field(default_factory=list)  # (method, path, headers) of each request

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"

    def gets(self) -> list[Message]:
        return [headers for method, _, headers in self.asked if method == "GET"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_HEAD(self) -> None:
        self.answer("")

    def do_GET(self) -> None:
        self.answer(self.site.trouble.pop(0) if self.site.trouble else "")

    def answer(self, trouble: str) -> None:
        path = re.sub(r"^https?://[^/]+", "", self.path).lstrip("/")  # a proxy receives the whole URL
        self.site.asked.append((self.command, path, self.headers))
        content = self.site.files.get(path.partition("?")[0])
        if content is None or trouble.isdecimal():
            self.send_response(int(trouble) if trouble else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.close_connection = trouble.startswith("cut ")
            self.wfile.write(content[: int(trouble[4:])] if self.close_connection else content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A `Site` on this machine. Environment variables for proxies are removed, so that requests reach it directly."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {})) as server:
        server.daemon_threads = True
        made = server.RequestHandlerClass.site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        server.shutdown()
        thread.join()
