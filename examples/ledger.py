"""Measure how many nats a text costs a decoder that is given no latent, some latents, or all of them.

    python examples/ledger.py held-out.tsv --langs en,fr --model runs/writer --model bgt-en-fr

The cost is the negative log-likelihood of the text under the model's own decoder. A latent that is not given is
replaced by the mean of its prior. Only models of `bgt train writer` were trained with missing latents, so for other
models, the costs without a latent are too high. The guide explains the table (docs/guide/write.md). Without a file, the
built-in sentences are scored.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bgt_core import open_encoder
from bgt_core.contracts import SEMANTIC
from bgt_core.data.columns import text_columns
from bgt_core.data.examples import example_sentences
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.data.text import normalise
from bgt_core.evaluation.bootstrap import ItemSample
from bgt_core.evaluation.comparison import Statistic, compare
from bgt_core.evaluation.facts import FUNCTION, NAME, NUMBER, OTHER, PUNCTUATION, classed_words
from bgt_core.generation.generate import Writer
from bgt_core.generation.options import Beam
from bgt_core.tables import markdown_text

NOTHING, OTHERS, MEANING, BOTH = "nothing", "language latent", "semantic latent", "both"
HELD = "held by the semantic latent"  # nats given no latent, minus nats given the semantic latent
END = "end"
CLASSES = (FUNCTION, NUMBER, NAME, PUNCTUATION, OTHER, END)
FEWEST = 5  # a class with fewer words gets no row


class LedgerKey(NamedTuple):
    lang: str
    words: str
    nats_per: str
    given: str
    items: int  # number of sentences or words in this row


def ledger(writers: Mapping[str, Writer], columns: Mapping[str, Sequence[str]]) -> Statistic:
    """Compute the NLL of each language's N sentences for each set of latents that the decoder can be given."""
    costs: dict[LedgerKey, tuple[np.ndarray, np.ndarray]] = {}  # NLL in nats (S, N), number of sentences or words (N,)
    for lang, texts in columns.items():
        nats = [nats_of(writer, texts, lang) for writer in writers.values()]
        kinds = [[*(kind for *_, kind in classed_words(normalise(text), lang)), END] for text in texts]
        counts = np.array([[of_text.count(kind) for kind in CLASSES] for of_text in kinds])  # (N, C)
        for given in (NOTHING, OTHERS, MEANING, BOTH, HELD):
            cost = np.stack([of.get(given, np.full(counts.shape, np.nan)) for of in nats])  # (S, N, C)
            costs[LedgerKey(lang, "all", "sentence", given, len(texts))] = cost.sum(2), np.ones(len(texts))
            for number, kind in enumerate(CLASSES):
                if (words := int(counts[:, number].sum())) >= FEWEST:
                    costs[LedgerKey(lang, kind, "word", given, words)] = cost[:, :, number], counts[:, number]
    rows = len(next(iter(columns.values())))
    return Statistic(
        systems=list(writers),
        scores=lambda weights: {
            key: weights[0] @ cost.T / np.maximum(weights[0] @ count, 1)[:, None]
            for key, (cost, count) in costs.items()
        },
        samples=[ItemSample(rows)],
        about=f"{rows:,} lines in {', '.join(columns)}; nats of the text under the decoder, teacher-forced; "
        "a latent that is not given is replaced by the mean of its prior",
        lower_is_better=[key for key in costs if key.given != HELD],
    )


def nats_of(writer: Writer, texts: Sequence[str], lang: str) -> dict[str, np.ndarray]:
    """Return the NLL of each class of words in each of N sentences, (N, C), for each set of given latents."""
    latents = {latent: writer.embed(texts, lang=lang, latent=latent) for latent in writer.latents}
    hidden = {latent: writer.prior_mean(latent, vectors) for latent, vectors in latents.items()}
    others = [latent for latent in latents if latent != SEMANTIC]
    given = {NOTHING: [], MEANING: [SEMANTIC], **({OTHERS: others, BOTH: [*latents]} if others else {})}
    kinds = [token_classes(text, tokens, lang) for text, tokens in zip(texts, writer.tokens(texts), strict=True)]
    nats = {name: np.zeros((len(texts), len(CLASSES))) for name in given}
    for name, known in given.items():
        parts = {latent: (latents if latent in known else hidden)[latent] for latent in latents}
        of_tokens = writer.token_nats(parts, texts, lang=lang)
        for row, (values, of_kinds) in enumerate(zip(of_tokens, kinds, strict=True)):
            np.add.at(nats[name][row], [CLASSES.index(kind) for kind in of_kinds], values)
    return nats | {HELD: nats[NOTHING] - nats[MEANING]}


def token_classes(text: str, tokens: Sequence[str], lang: str) -> list[str]:
    """Return each token's class, which is that of its first character except spaces; then `END` for the end.

    If the tokenizer replaced one character by several, the tokens up to the next space may get wrong classes.
    """
    text = normalise(text)
    kinds = np.empty(len(text), dtype=object)  # the class of each character; None for spaces
    for start, end, kind in classed_words(text, lang):
        kinds[start:end] = kind
    spaced = [list(kinds[match.start() : match.end()]) for match in re.finditer(r"\S+", text)] or [[OTHER]]
    classes, word, place = [], -1, 0
    for token in tokens:
        if token.startswith(" ") or word < 0:
            word, place = word + 1, 0
        within = spaced[min(word, len(spaced) - 1)]
        classes.append(within[min(place, len(within) - 1)])
        place += len(token.strip())
    return [*classes, END]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="text: TSV, Parquet, or X for the files X.en and X.fr")
    parser.add_argument("--langs", default="en", help="languages of the columns")
    parser.add_argument("--model", action="append", help="a model that generates text; repeatable")
    parser.add_argument("--limit", type=int, default=1_000, help="maximum number of lines to score")
    options = parser.parse_args()
    names, langs = text_columns(options.langs)
    rows = read_pairs(options.data, names, Skipped(), strict=True) if options.data else example_sentences(langs)
    columns = {lang: texts[: options.limit] for lang, texts in zip(langs, zip(*rows, strict=True), strict=True)}
    models: dict[str, Any] = {spec: open_encoder(spec) for spec in options.model or ["bgt-en-fr"]}
    result = compare(ledger({spec: Writer(model, Beam(1)) for spec, model in models.items()}, columns))
    print(markdown_text(result.table("given"), result.about))


if __name__ == "__main__":
    main()
