"""Train a model on your own translations, then embed and generate with it.

    python examples/train_on_your_pairs.py pairs.tsv --langs en,fr --out runs/mine

The file has one translation per line, separated by a tab; a useful model needs 100,000 lines or more. Without a file,
it trains on sentences of the built-in grammar. If it is stopped, `bgt train --resume --out runs/mine` continues.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import bgt_core
from bgt_core.grammar import pairs

SMALL = {  # settings for a small file, and a small model
    "data.vocab_size": 1_000,
    "data.valid_pairs": 50,
    "model.d_model": 64,
    "model.semantic_dim": 64,
    "model.language_dim": 16,
    "model.ffn_dim": 128,
    "model.heads": 2,
}


def toy_pairs(path: Path, count: int) -> Path:
    """Write translations of the built-in grammar: English, a tab, French."""
    lines = (f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in pairs(count))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def show(row: dict[str, object]) -> None:
    """Print the main numbers of a row that the run reports."""
    numbers = {name: row[name] for name in ("step", "loss", "elbo") if name in row}
    print(row["kind"], *(f"{name} {value:.4g}" for name, value in numbers.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, nargs="?", help="a .tsv file, plain, .gz, .xz or .zst")
    parser.add_argument("--langs", default="en,fr", help="languages of the columns")
    parser.add_argument("--out", type=Path, default=Path("runs/example"), help="a new folder")
    parser.add_argument("--toy", type=int, default=5_000, help="number of pairs of the grammar, without a file")
    parser.add_argument("--epochs", type=float, default=3.0)
    options = parser.parse_args()
    data = options.pairs or toy_pairs(options.out.with_name("toy-pairs.tsv"), options.toy)
    langs = options.langs.split(",")

    overrides = {**SMALL, "train.epochs": options.epochs}
    last = bgt_core.train("bgt-small", [data], options.out, columns=langs, overrides=overrides, report=show)

    model = bgt_core.load(last)
    sentences = ["The dog sleeps.", "The old dog sleeps.", "Anna reads a letter."]
    vectors = model.embed(sentences, lang=langs[0])  # (3, D)
    print(f"{last}: vectors of {vectors.shape[1]} units")
    print("cosine to the first sentence:", model.similarity(vectors[[0, 0]], vectors[1:]).round(2))
    print("recombination:", bgt_core.generate(model, sentences[:1], sentences[2:], lang=langs[0])[0])


if __name__ == "__main__":
    main()
