"""How much content a recombination keeps for how much style it takes over, one curve a model.

    python analysis/frontier.py PAIRS en,fr MODEL... > frontier.tsv

PAIRS holds held-out translations, a TSV of the two languages. Each model writes every sentence from the semantic latent
of its translation and the language latent of a random sentence, which is multiplied by a strength from 0 to 1. At 0 a
language latent is the mean of its prior and tells no style; at 1 it is the style sentence's own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

import bgt_core
from bgt_core.contracts import LANGUAGE
from bgt_core.evaluation.tasks.fidelity import Fidelity
from bgt_core.evaluation.writing import RANDOM
from bgt_core.generation.options import Beam
from bgt_core.generation.writer import Writer

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
MEASURES = ("chrF", "exact %", "length r x 100", "other mark taken %", "style r x 100")
PAIRS, WORDS = 300, "4-12"  # number of pairs, and their length in English words


@dataclass(frozen=True)
class Styled(Writer):
    """A writer whose language latents are multiplied by a strength."""

    strength: float = 1.0

    def write(self, latents: Mapping[str, np.ndarray], *, lang: str) -> list[str]:
        """As `Writer`."""
        return super().write({**latents, LANGUAGE: np.float32(self.strength) * latents[LANGUAGE]}, lang=lang)


def main(file: Path, langs: list[str], models: list[str]) -> None:
    """Print a row for each model, strength and language."""
    task = Fidelity(langs=",".join(langs), limit=PAIRS, lengths=WORDS)
    items = task.load([file], seed=0)
    print("model", "strength", "written", *MEASURES, sep="\t")
    for model in models:
        bgt = bgt_core.load(model, "cpu")
        for strength in STRENGTHS:
            writer: Any = Styled(bgt, Beam(1), strength=strength)  # a task takes writers, too
            result = bgt_core.evaluate(task, {"model": writer}, items, resamples=100)
            for lang, source in permutations(langs, 2):
                scores = (result.value((lang, source, RANDOM, name), "model") for name in MEASURES)
                print(Path(model).name, strength, lang, *(f"{score:.1f}" for score in scores), sep="\t")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:])
