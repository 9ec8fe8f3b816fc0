"""A finished training -> its scores: each pair's cosine, which translations are found, what its run reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from analysis.reproduce.datasets import Dataset
from bgt_core.contracts import LANGUAGE, SEMANTIC
from bgt_core.data.store import Corpus
from bgt_core.embedder import Embedder
from bgt_core.evaluation.sts_files import StsScores, StsSet
from bgt_core.evaluation.systems import System
from bgt_core.evaluation.tasks.retrieval import embed_distinct, hits_of
from bgt_core.evaluation.tasks.sts import score_sets
from bgt_core.files import write_text
from bgt_core.recipes import Recipe


def sts_scores(embedder: Embedder, dataset: Dataset) -> dict[str, StsScores]:
    """By latent: of all sets in languages that the model has; for the language latent only those of one language."""
    scores = {}
    for latent in nonempty_latents(embedder):
        sets = [
            data
            for data in dataset.evaluation_sets
            if {data.left_lang, data.right_lang} <= set(embedder.langs)
            and (latent != LANGUAGE or data.left_lang == data.right_lang)
        ]
        scores[latent] = score_sets(System("model", PrecomputedEncoder(embedder, sets, latent), latent), sets)
    return scores


class PrecomputedEncoder:
    """An embedder of one latent that has embedded each sentence of some sets once: Hard STS repeats those of the years,
    and would cost as much again."""

    def __init__(self, embedder: Embedder, sets: Sequence[StsSet], latent: str):
        self.langs, self.latents, self.fingerprint = embedder.langs, embedder.latents, embedder.fingerprint
        self.similarity, self.similarity_pairwise = embedder.similarity, embedder.similarity_pairwise
        self.rows: dict[str, dict[str, int]] = {}  # language -> sentence -> row
        for data in sets:
            for sentences, lang in ((data.left, data.left_lang), (data.right, data.right_lang)):
                rows = self.rows.setdefault(lang, {})
                for sentence in sentences:
                    rows.setdefault(sentence, len(rows))
        self.vectors = {lang: embedder.embed(list(rows), lang=lang, latent=latent) for lang, rows in self.rows.items()}

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = SEMANTIC) -> np.ndarray:
        """The vectors of the latent given at construction, (N, D) float32."""
        return self.vectors[lang][[self.rows[lang][sentence] for sentence in sentences]]


def nonempty_latents(embedder: Embedder) -> list[str]:
    """Without language variables the language latent has no units, and is left out."""
    return [latent for latent in embedder.latents if embedder.width(embedder.langs[0], latent)]


def retrieval_hits(embedder: Embedder, dataset: Dataset) -> dict[str, np.ndarray]:
    """By file of translations: which of N pairs are found alone, left to right and back, (2, N) bool; empty for a model
    of one language."""
    if not set(dataset.langs) <= set(embedder.langs):
        return {}
    hits = {}
    for name, columns in dataset.translations.items():
        system = System(name, embedder)
        left, right = (
            embed_distinct(system, column, lang) for column, lang in zip(columns, dataset.langs, strict=True)
        )
        hits[name] = np.stack(hits_of(left, right, embedder.similarity)) == 1
    return hits


def reported(metrics: Path) -> tuple[dict[str, Any], float | None]:
    """The last validation row of a run, and its median tokens per second; ({}, None) for a run without updates."""
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    rows = [json.loads(line) for line in lines]
    valid = [row for row in rows if row["kind"] == "valid"]
    rates = [row["tokens_per_second"] for row in rows if row["kind"] == "train"]
    last = {name: value for name, value in (valid or [{}])[-1].items() if name not in ("kind", "step", "steps")}
    return last, median(rates) if rates else None


def token_counts(recipe: Recipe, corpus: Corpus, rate: float | None) -> dict[str, float | None]:
    """Tokens of both sides of all pairs, EOS included, in an epoch and in the run; an epoch's seconds at `rate`, tokens
    per second."""
    tokens = int(corpus.lengths(np.arange(len(corpus))).sum())
    run = round(recipe.train.epochs * tokens)
    return {"epoch_tokens": tokens, "tokens": run, "tokens_per_second": rate, "epoch_seconds": rate and tokens / rate}


def write_hits(path: Path, hits: dict[str, np.ndarray]) -> None:
    """As JSON, atomically: {file: ["0110...", "1010..."]}."""
    digits = {name: ["".join(map(str, way.astype(int))) for way in ways] for name, ways in hits.items()}
    write_text(path, json.dumps(digits))


def read_hits(path: Path) -> dict[str, np.ndarray]:
    """(2, N) float64 by file."""
    digits: dict[str, Sequence[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {name: np.array([[float(digit) for digit in way] for way in ways]) for name, ways in digits.items()}
