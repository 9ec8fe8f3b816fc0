"""Fixtures that run `bgt-probe` in this process, on an encoder that needs no model."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bgt_core.backend import pick_device
from probes.cli import main


class Encoder:
    """A fake encoder. The language latent counts characters, spaces and full stops; the semantic latent is constant."""

    latents: Sequence[str] = ("semantic", "language")

    def __init__(self, langs: Sequence[str] = ("en", "fr"), fingerprint: str = "fake") -> None:
        self.langs, self.fingerprint, self.calls = langs, fingerprint, 0
        self.before: Callable[[], object] = lambda: None

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        self.before()
        self.calls += 1
        numbers = [[1, len(sentence), sentence.count(" "), sentence.count(".")] for sentence in sentences]
        return np.array(numbers, dtype=np.float32)[:, 1:] if latent == "language" else np.ones((len(numbers), 2), "f")


@pytest.fixture(scope="session")
def encoder() -> type[Encoder]:
    return Encoder


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    """Make `--model NAME` open the returned fake encoder, or another fake one for the names `other` and `german`."""
    model = Encoder()
    models = {"other": Encoder(fingerprint="other"), "german": Encoder(("en", "de"), "german")}

    def load(path: Path, device: str, precision: str) -> Encoder:
        pick_device(device)
        return models.get(Path(path).name, model)

    monkeypatch.setattr("bgt_core.encoders.load", load)
    return model


@pytest.fixture
def probe(in_process: Callable[..., Any]) -> Callable[..., Any]:
    """probe("--lang", "fr"): run `bgt-probe` in this process with these arguments."""
    return partial(in_process, main)
