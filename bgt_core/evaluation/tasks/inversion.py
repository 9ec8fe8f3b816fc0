"""Inversion: generate sentences from their vectors, and measure how similar they are to the original sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.textfile import text_lines
from bgt_core.errors import DataError, check_least
from bgt_core.evaluation import writing
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.task import BeamSize, Lang, Task, evenly, one_path
from bgt_core.evaluation.writing import BLEU_SCORE, CHRF_SCORE, EXACT, OfWeights, bleu, chrf, of_systems, writers
from bgt_core.vectors.arrays import nearest

if TYPE_CHECKING:  # these imports load torch, which `bgt evaluate --help` does not need
    from bgt_core.embedder import Embedder

ALONE, BOTH = "semantic latent", "both latents"
GREEDY, RERANKED, NEAREST = "greedy", "reranked", "nearest training sentence"


class InversionKey(NamedTuple):
    written_from: str
    measure: str
    sentences: int


class Texts(NamedTuple):
    """N sentences to reconstruct from their vectors, and training sentences for the baseline, if any."""

    held_out: list[str]
    train: list[str]


@dataclass(frozen=True)
class Inversion(Task[Texts]):
    """Inversion: how much of a sentence can be generated from its vector?

    Text is generated from all latents of a sentence, and from its semantic latent alone, with the means of the priors
    as the other latents. The systems are the search methods: greedy search; beam search; and reranking, which chooses
    the text in the beam whose own vector is nearest to the sentence's vector. `--corrections` adds the correction
    rounds of a writer that was trained with drafts. See Morris et al. (2023), "Text Embeddings Reveal (Almost) As Much
    As Text".
    """

    data = "Sentences that were not trained on, one per line."
    across = "measure"

    lang: Lang = "en"
    train: Annotated[Path | None, "Training sentences; a baseline outputs the one with the nearest vector."] = None
    limit: Annotated[int, "Maximum number of lines to use, evenly spaced."] = 300
    beam: BeamSize = 8
    corrections: Annotated[int, "Number of correction rounds, for a writer that was trained with drafts."] = 0

    def load(self, paths: Sequence[Path], *, seed: int) -> Texts:
        check_least(2, limit=self.limit)
        check_least(0, corrections=self.corrections)
        path = one_path(paths, "one file of sentences")
        held_out, train = (
            [text for _, text in text_lines(file, sentences=True) if text.strip()] if file else []
            for file in (path, self.train)
        )
        if len(held_out) < 2:
            raise DataError(f"{path}: {len(held_out)} sentences; expected 2 or more sentences.")
        return Texts(evenly(held_out, self.limit), list(dict.fromkeys(train)))

    def statistic(self, items: Texts, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Generate all sentences with each model and each search method; the seed has no effect."""
        texts: dict[tuple[str, str], list[str]] = {}  # (system, latents) -> N sentences
        for name, writer in writers(encoders, [self.lang], self.beam).items():
            prefix = f"{name} " * (len(encoders) > 1)
            own = {latent: writer.embed(items.held_out, lang=self.lang, latent=latent) for latent in writer.latents}
            alone = {
                latent: vectors if latent == SEMANTIC else writer.prior_mean(latent, vectors)
                for latent, vectors in own.items()
            }
            for given, latents in {ALONE: alone, **({BOTH: own} if len(own) > 1 else {})}.items():
                for search, written in self.searched(writer.bgt, latents).items():
                    texts[prefix + search, given] = written
            if items.train:
                of_train = writer.embed(items.train, lang=self.lang, latent=SEMANTIC)
                closest = nearest(own[SEMANTIC], of_train, writer.similarity)
                texts[prefix + NEAREST, ALONE] = [items.train[row] for row in closest]
        systems, rows = list(dict.fromkeys(system for system, _ in texts)), len(items.held_out)
        metrics = {CHRF_SCORE: chrf(lowercase=True), BLEU_SCORE: bleu(self.lang, lowercase=True)}
        corpus: dict[InversionKey, dict[str, OfWeights]] = {}
        exact: dict[InversionKey, dict[str, np.ndarray]] = {}
        for (system, given), written in texts.items():
            for measure, metric in metrics.items():
                score = writing.corpus_score(metric, written, items.held_out)
                corpus.setdefault(InversionKey(given, measure, rows), {})[system] = score
            equal = [one.lower() == two.lower() for one, two in zip(written, items.held_out, strict=True)]
            exact.setdefault(InversionKey(given, EXACT, rows), {})[system] = np.array(equal, float)
        about = f"{rows:,} sentences in {self.lang}, lower-cased; chrF and BLEU of sacrebleu"
        return of_systems(systems, rows, corpus, exact, about=about)

    def searched(self, bgt: Embedder, latents: Mapping[str, np.ndarray]) -> dict[str, list[str]]:
        """Generate N sentences from latents by each search method: {method: sentences}."""
        from bgt_core.generation.generate import candidates
        from bgt_core.generation.options import Beam
        from bgt_core.generation.search import decode

        written = {GREEDY: decode(bgt, latents, lang=self.lang, search=Beam(1))}
        for corrections in sorted({0, self.corrections}):
            ranked = candidates(
                bgt, latents, lang=self.lang, search=Beam(self.beam), rerank=False, second_weight=0.0,
                likelihood_weight=0.0, corrections=corrections,
            )  # fmt: skip
            if not corrections:
                written[f"beam {self.beam}"] = [likeliest.text for likeliest, *_ in ranked]
            name = f"{corrections} corrections" if corrections else RERANKED
            written[name] = [max(of_row, key=lambda each: each.score).text for of_row in ranked]
        return written


TASK = Inversion
