"""What a model's card states, measured: `python -m probes.cli.card --sts DIR --retrieval FILE --sentences FILE`.

    --sts        a folder of STS files, as `bgt sts --data` takes it
    --retrieval  translations never trained on, a TSV of the model's two languages: retrieval, and the
                 sources and styles of generation
    --sentences  sentences of the first language never trained on, one a line: length and punctuation
    --about      JSON with what can't be measured (data, licences, command, time), kept as it is

Prints one JSON document. A tf-idf bag of words stands beside the latents on STS.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import bgt_core
from bgt_core.cli.export import read_card
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import UsageError
from bgt_core.evaluation.retrieval import precision_at_1
from bgt_core.evaluation.sts.files import read_sets
from bgt_core.evaluation.sts.score import StsSet, explain, sts
from bgt_core.evaluation.style import style_scores
from probes.data.texts import read_sentences
from probes.run import run_probe

PROBED = {"Length": "length", "Punctuation": "punct-num"}  # what a card calls it -> task


class TfIdf:
    """A bag of words weighted by rarity, fitted on the very sentences it is scored on (no gold scores)."""

    langs, latents = (), ("semantic",)

    def __init__(self, sets: Sequence[StsSet]):
        self.bag = TfidfVectorizer().fit([text for data in sets for text in (*data.left, *data.right)])

    def embed(self, sentences: Sequence[str], *, lang: str, latent: str = "semantic") -> np.ndarray:
        """(N, words) float32."""
        return self.bag.transform(sentences).toarray().astype(np.float32)


def main() -> None:
    """Measure and print; a foreseeable error is one line and an exit code."""
    try:
        measure()
    except bgt_core.BgtError as error:
        print(f"probes.cli.card: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def measure() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=bgt_core.PRETRAINED)
    parser.add_argument("--sts", type=Path, required=True)
    parser.add_argument("--years", nargs="+", default=["2012", "2013", "2014", "2015"])
    parser.add_argument("--retrieval", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--about", type=Path)
    parser.add_argument("--transfers", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()

    about = read_card(asked.about) if asked.about else {}
    bgt = bgt_core.load(asked.model)
    first, second = bgt.langs
    sets = read_sets(asked.sts, asked.years, lang=first)
    scores = {latent: sts(bgt, sets, latent=latent).average for latent in bgt.latents}
    bag = sts(TfIdf(sets), sets).average

    pairs = list(read_pairs(asked.retrieval, bgt.langs, Skipped()))
    here, there = (bgt.embed([pair[side] for pair in pairs], lang=bgt.langs[side]) for side in (0, 1))
    if len(pairs) < 2 * asked.transfers:
        raise UsageError(f"{asked.retrieval}: {len(pairs)} pairs; --transfers {asked.transfers} needs twice as many.")
    drawn = random.Random(asked.seed).sample([pair[0] for pair in pairs], 2 * asked.transfers)
    sources, styles = drawn[: asked.transfers], drawn[asked.transfers :]
    written = bgt_core.transfer(bgt, sources, styles, lang=first)
    transfer = style_scores(bgt, written, sources, styles, lang=first)

    sentences = read_sentences(asked.sentences)
    probed = {name: run_probe(bgt, task, first, sentences) for name, task in PROBED.items()}
    accuracy = {task: {row.latent: 100 * row.accuracy for row in found.rows} for task, found in probed.items()}
    years = f"{asked.years[0]}-{asked.years[-1]}"
    table = {
        f"STS {years}, Pearson x 100": {**scores, "baseline": bag},
        f"Retrieval {first} to {second}, %": {"semantic": 100 * precision_at_1(here, there)},
        f"Retrieval {second} to {first}, %": {"semantic": 100 * precision_at_1(there, here)},
        "Generated text, cosine to its source": {"semantic": transfer.to_source},
        "Generated text, cosine to its style": {"semantic": transfer.to_style},
        "Generated text, length correlation with its style": {"language": transfer.length},
        **{
            f"{task} probe, accuracy %": {
                **{name: found[name] for name in bgt.latents},
                "baseline": found["majority"],
            }
            for task, found in accuracy.items()
        },
    }
    protocol = [
        {"score": "STS", "how": f"{explain(sets)}; the baseline is tf-idf"},
        {"score": "Retrieval", "how": f"precision at 1 among {len(pairs)} translations"},
        {
            "score": "Generated text",
            "how": f"{len(written)} outputs, beam 5; source and style from the retrieval sentences",
        },
        {
            "score": "Probes",
            "how": "test accuracy of logistic regression, 5 splits; the baseline is the majority class",
        },
    ]
    kept = ("task", "latent", "n_test", "accuracy", "ci_low", "ci_high")
    rows = [{name: vars(row)[name] for name in kept} for found in probed.values() for row in found.rows]
    print(json.dumps({"scores": table, "protocol": protocol, "probes": rows, **about}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
