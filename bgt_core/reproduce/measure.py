"""One trained cell -> its scores: every pair's cosine, every translation found or not, and what its run reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.store import Corpus
from bgt_core.embedder import Embedder
from bgt_core.evaluation.retrieval import retrieve
from bgt_core.evaluation.sts.score import StsScores, StsSet, sts
from bgt_core.recipes import Recipe
from bgt_core.reproduce.datasets import Material


def cosines(embedder: Embedder, material: Material) -> dict[str, StsScores]:
    """By latent: of all sets in languages that the model has, for the language latent in one language."""
    found = {}
    for latent in latents(embedder):
        sets = [
            data
            for data in material.measured
            if {data.left_lang, data.right_lang} <= set(embedder.langs)
            and (latent != LANGUAGE or data.left_lang == data.right_lang)
        ]
        found[latent] = sts(Once(embedder, sets, latent), sets, latent=latent)
    return found


class Once:
    """An embedder of one latent that has embedded each sentence of some sets once: Hard STS repeats those of the years,
    and would cost as much again."""

    def __init__(self, embedder: Embedder, sets: Sequence[StsSet], latent: str):
        self.langs, self.latents, self.fingerprint = embedder.langs, embedder.latents, embedder.fingerprint
        self.similarity, self.similarity_pairwise = embedder.similarity, embedder.similarity_pairwise
        self.places: dict[str, dict[str, int]] = {}  # language -> sentence -> row
        for data in sets:
            for _, sentences, lang in data.sides:
                of = self.places.setdefault(lang, {})
                for sentence in sentences:
                    of.setdefault(sentence, len(of))
        self.vectors = {lang: embedder.embed(list(of), lang=lang, latent=latent) for lang, of in self.places.items()}

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """Those of the latent that it was made for, (N, D) float32."""
        return self.vectors[lang][[self.places[lang][sentence] for sentence in sentences]]


def latents(embedder: Embedder) -> list[str]:
    """Those that hold anything: without language variables the language latent has no units."""
    return [latent for latent in embedder.latents if embedder.width(embedder.langs[0], latent)]


def hits(embedder: Embedder, material: Material) -> dict[str, np.ndarray]:
    """By file of translations: which of N are found, there and back, (2, N) bool; none of a model of one language."""
    if not set(material.langs) <= set(embedder.langs):
        return {}
    found = {}
    for name, columns in material.translations.items():
        (by_cosine,) = retrieve(embedder, *columns, langs=material.langs)
        found[name] = np.stack([by_cosine.forward, by_cosine.backward])
    return found


def reported(metrics: Path) -> tuple[dict[str, Any], float | None]:
    """The last validation of a run, and its median tokens a second; nothing of a run of no updates."""
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    rows = [json.loads(line) for line in lines]
    valid = [row for row in rows if row["kind"] == "valid"]
    rates = [row["tokens_per_second"] for row in rows if row["kind"] == "train"]
    last = {name: value for name, value in (valid or [{}])[-1].items() if name not in ("kind", "step", "steps")}
    return last, median(rates) if rates else None


def spent(recipe: Recipe, corpus: Corpus, rate: float | None) -> dict[str, float | None]:
    """Tokens of both sides of all pairs, EOS included, in an epoch and the run; an epoch's seconds at that rate."""
    tokens = int(corpus.lengths(np.arange(len(corpus))).sum())
    run = round(recipe.train.epochs * tokens)
    return {"epoch_tokens": tokens, "tokens": run, "tokens_per_second": rate, "epoch_seconds": rate and tokens / rate}


def write_hits(path: Path, found: dict[str, np.ndarray]) -> None:
    """As JSON: {file: ["0110...", "1010..."]}."""
    text = {name: ["".join(map(str, way.astype(int))) for way in ways] for name, ways in found.items()}
    path.write_text(json.dumps(text), encoding="utf-8")


def read_hits(path: Path) -> dict[str, np.ndarray]:
    """(2, N) float64 by file."""
    ways: dict[str, Sequence[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {name: np.array([[float(one) for one in way] for way in both]) for name, both in ways.items()}
