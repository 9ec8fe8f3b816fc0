"""Results on random inputs, computed anew by scipy, sklearn, sacrebleu or definitions; and a wrong one is noticed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from bgt_core.evaluation import bootstrap
from bgt_core.posterior import Gaussian, VonMisesFisher
from probes.measures.controls import Eraser
from tests.reliability import recomputed_latents, recomputed_scores

ROUNDS = 12
CHECKS: tuple[Callable[[np.random.Generator], str], ...] = (
    recomputed_scores.correlations, recomputed_scores.intervals, recomputed_scores.holm, recomputed_scores.retrieval,
    recomputed_scores.mining, recomputed_scores.generated_text, recomputed_scores.fidelity_counters,
    recomputed_latents.codelengths, recomputed_latents.control_tasks, recomputed_latents.selectivities,
    recomputed_latents.erasure, recomputed_latents.divergences, recomputed_latents.likelihoods,
    recomputed_latents.distances,
)  # fmt: skip


def failures(check: Callable[[np.random.Generator], str]) -> list[str]:
    """Of some seeds."""
    return [failure for seed in range(ROUNDS) if (failure := check(np.random.default_rng(seed)))]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_both_agree(check: Callable[[np.random.Generator], str]) -> None:
    assert failures(check) == []


WRONG = [  # a check, what it looks at, and something that is nearly right
    ("scores", "correlations", bootstrap, "pearson", lambda weights, systems, gold: 0.999 * np.ones((5, 1))),
    ("scores", "correlations", bootstrap, "ranks", lambda weights, values: np.tile(values.argsort() + 1.0, (5, 1))),
    ("scores", "holm", bootstrap, "holm", lambda p: p),
    ("scores", "intervals", bootstrap, "wilson", lambda right, n, level: (right / n, right / n)),
    ("scores", "intervals", bootstrap, "interval", lambda draws, level: np.quantile(draws, [0.2, 0.8])),
    ("scores", "retrieval", recomputed_scores, "nearest", lambda queries, answers: (queries @ answers.T).argmax(1)),
    ("scores", "mining", recomputed_scores, "best_threshold", lambda scores, right, known: np.median(scores)),
    ("scores", "generated_text", recomputed_scores, "bleu", lambda lang, lowercase: recomputed_scores.chrf(lowercase)),
    ("scores", "fidelity_counters", recomputed_scores, "numbers", lambda text, lang: text.split()),
    ("latents", "codelengths", recomputed_latents, "codelength", lambda *given: np.ones((1, 2))),
    ("latents", "control_tasks", recomputed_latents, "keys", lambda texts: [text.split()[0] for text in texts]),
    ("latents", "selectivities", recomputed_latents, "selectivity",
     lambda *given: {"control": 0.3, "selectivity": 40.0}),
    ("latents", "erasure", recomputed_latents, "leace",
     lambda vectors, labels: Eraser(vectors.mean(0), np.eye(vectors.shape[1])[:, :1], np.eye(vectors.shape[1])[:, :1])),
    ("latents", "divergences", Gaussian, "kl", lambda self: 0.5 * self.mean.square().sum(-1)),
    ("latents", "divergences", VonMisesFisher, "kl", lambda self: self.concentration),
    ("latents", "likelihoods", Gaussian, "log_ratio", lambda self, z: torch.zeros(len(z))),
    ("latents", "distances", recomputed_latents, "similarity", lambda name, one, other: torch.zeros(())),
]  # fmt: skip


@pytest.mark.parametrize(("page", "name", "place", "attribute", "wrong"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_result_is_noticed(
    page: str, name: str, place: object, attribute: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, attribute, wrong)
    assert failures(getattr({"scores": recomputed_scores, "latents": recomputed_latents}[page], name))
