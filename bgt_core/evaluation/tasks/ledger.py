"""How many nats a text costs a decoder that is given no latent, one, or all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import numpy as np

from bgt_core.contracts import SEMANTIC, SentenceEncoder
from bgt_core.data.columns import text_columns
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import UsageError, check_least
from bgt_core.evaluation.bootstrap import ItemSample
from bgt_core.evaluation.comparison import Statistic
from bgt_core.evaluation.fidelity.plan import writers
from bgt_core.evaluation.task import Langs, Task, one_path
from bgt_core.evaluation.wordclass import CLASSES, count_classes, token_classes

if TYPE_CHECKING:  # imports torch, which the command's help does not need
    from bgt_core.generation.writer import Writer

Columns = Mapping[str, Sequence[str]]  # language -> N sentences
NOTHING, OTHERS, MEANING, ALL = "nothing", "language latent", "semantic latent", "both"
HELD = "held by the semantic latent"  # NOTHING - MEANING
FEWEST = 5  # words of a class that has a row


class LedgerKey(NamedTuple):
    lang: str
    words: str
    nats_per: str
    given: str
    items: int  # sentences or words


@dataclass(frozen=True)
class Ledger(Task[Columns]):
    """Ledger: nats of held-out text, given nothing, the language latent, the semantic latent, or both.

    The negative log-likelihood of text by the model's own decoder, teacher-forced. Latents that are given are the
    sentence's posterior means; the others are the means of their priors (of a writer's vectors, the mean over its
    training text). A writer has seen such rows in training. Other models have not, so they pay more than necessary for
    "nothing" and for one latent, and what a latent holds may be overstated. Rules find the classes of words; "end" is
    the end of the sentence.
    """

    data = "Sentences that were not trained on, a column for each language: TSV, Parquet, or X for X.en and X.fr."
    across = "given"

    langs: Langs
    limit: Annotated[int, "At most this many lines, evenly spaced."] = 1_000

    def load(self, paths: Sequence[Path], *, seed: int) -> Columns:
        """Read the columns."""
        check_least(1, limit=self.limit)
        columns, named = text_columns(self.langs)
        if len(set(named)) < len(named):
            raise UsageError(f"{self.langs}: expected each language once.", parameter="langs")
        rows = list(read_pairs(one_path(paths, "one file of sentences"), columns, Skipped(), strict=True))
        count = min(self.limit, len(rows))
        chosen = [rows[number * len(rows) // count] for number in range(count)]
        return dict(zip(named, zip(*chosen, strict=True), strict=True))

    def statistic(self, items: Columns, encoders: Mapping[str, SentenceEncoder], *, seed: int) -> Statistic:
        """Score the text under each condition."""
        models = cast(Mapping[str, "Writer"], writers(encoders, list(items), beam=1))
        nats = {lang: [nats_of(each, texts, lang) for each in models.values()] for lang, texts in items.items()}
        words = {lang: np.stack([count_classes(text, lang) for text in texts]) for lang, texts in items.items()}
        costs: dict[LedgerKey, tuple[np.ndarray, np.ndarray]] = {}  # nats (S, N), and what they are divided by (N,)
        for lang, counts in words.items():
            for given in (NOTHING, OTHERS, MEANING, ALL, HELD):
                cost = np.stack([of.get(given, np.full(counts.shape, np.nan)) for of in nats[lang]])  # (S, N, C)
                costs[LedgerKey(lang, "all", "sentence", given, len(counts))] = cost.sum(2), np.ones(len(counts))
                for number, kind in enumerate(CLASSES):
                    if (items_of := int(counts[:, number].sum())) >= FEWEST:
                        key = LedgerKey(lang, kind, "word", given, items_of)
                        costs[key] = cost[:, :, number], counts[:, number]
        rows = len(next(iter(words.values())))
        return Statistic(
            systems=list(models),
            scores=lambda weights: {
                key: weights[0] @ cost.T / np.maximum(weights[0] @ count, 1)[:, None]
                for key, (cost, count) in costs.items()
            },
            samples=[ItemSample(rows)],
            about=f"{rows:,} lines in {', '.join(items)}; nats of the text by the decoder, teacher-forced; "
            "a latent that is not given is the mean of its prior",
            warnings=[
                f"{name}: {count:,} of {tokens:,} tokens of {lang} ({100 * count / tokens:.1f}%) never occurred in its "
                "training text and cost what the unknown token costs, which is too little."
                for name, model in models.items()
                for lang, texts in items.items()
                for count, tokens in [model.count_unknown(texts, lang=lang)]
                if count
            ],
            counts={"lines": rows},
            lower_is_better=[key for key in costs if key.given != HELD],
        )


TASK = Ledger


def nats_of(writer: Writer, texts: Sequence[str], lang: str) -> dict[str, np.ndarray]:
    """Nats of the words of each class in each sentence, given each choice of latents, (N, C); also their difference."""
    latents = {latent: writer.embed(texts, lang=lang, latent=latent) for latent in writer.latents}
    hidden = {latent: writer.prior_mean(latent, vectors) for latent, vectors in latents.items()}
    others = [latent for latent in latents if latent != SEMANTIC]
    given = {NOTHING: [], MEANING: [SEMANTIC], **({OTHERS: others, ALL: [*latents]} if others else {})}
    kinds = [token_classes(text, tokens, lang) for text, tokens in zip(texts, writer.tokens(texts), strict=True)]
    nats = {}
    for name, known in given.items():
        parts = {latent: (latents if latent in known else hidden)[latent] for latent in latents}
        nats[name] = np.zeros((len(texts), len(CLASSES)))
        for row, (of_tokens, of_kinds) in enumerate(
            zip(writer.token_nats(parts, texts, lang=lang), kinds, strict=True)
        ):
            np.add.at(nats[name][row], [CLASSES.index(kind) for kind in of_kinds], of_tokens)
    return nats | {HELD: nats[NOTHING] - nats[MEANING]}
