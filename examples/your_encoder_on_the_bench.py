"""Compare your own encoder with the default model, by the correlation of similarities with gold scores, and by a probe.

    python examples/your_encoder_on_the_bench.py

An encoder is any function from sentences to vectors. If you run commands in the folder of this file, they accept it,
too:

    bgt evaluate sts STS_FOLDER --model python:your_encoder_on_the_bench:trigrams
    bgt-probe --lang en --model python:your_encoder_on_the_bench:trigrams --latent semantic
"""

import argparse
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import probes
from bgt_core import evaluate, open_encoder
from bgt_core.contracts import SentenceEncoder
from bgt_core.evaluation.sts_files import StsSet
from bgt_core.evaluation.tasks.sts import Sts

WIDTH = 512

SIMILAR = [  # human scores from 0 to 5, each with two sentences; toy data for this example
    (5, "The ferry leaves at noon.", "The ferry departs at twelve."),
    (5, "He repaired the old clock.", "He fixed the old clock."),
    (4, "Two children are feeding the ducks.", "Some kids feed ducks by the pond."),
    (3, "She is baking bread with her father.", "She bakes a cake with her mother."),
    (2, "The gardener waters the roses.", "The gardener sells the roses."),
    (1, "A tram stops in front of the school.", "A tram driver reads the newspaper."),
    (0, "It rained all week.", "The violin is out of tune."),
    (0, "My neighbour speaks Danish.", "The soup needs more salt."),
]


def trigrams(sentences: Sequence[str]) -> np.ndarray:
    """Embed N sentences as counts of three-letter groups, (N, 512). Replace this by your own encoder."""
    vectors = np.zeros((len(sentences), WIDTH), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        text = f"  {sentence.lower()}  "
        for start in range(len(text) - 2):
            vectors[row, zlib.crc32(text[start : start + 3].encode()) % WIDTH] += 1
    return vectors


def similarity(encoder: SentenceEncoder) -> float:
    """Return Pearson's correlation x 100 between cosines and human scores."""
    gold, left, right = zip(*SIMILAR, strict=True)
    toy = StsSet("toy", "pairs", np.array(gold, dtype=float), left, right)
    result = evaluate(Sts(latent="semantic"), encoder, [toy], resamples=100)
    return result.value(("toy", "pairs", "Pearson"))


def length_probe(encoder: SentenceEncoder, items: int) -> str:
    """Return the accuracy x 100 of a linear probe that predicts sentence length, with its 95 % interval."""
    config = probes.ProbeConfig(max_items=items, seeds=1)
    result = probes.run(encoder, "length", lang="en", latents=["semantic"], config=config)
    row = next(row for row in result.rows if row.latent == "semantic")
    return f"{100 * row.accuracy:.0f} [{100 * row.ci_low:.0f}, {100 * row.ci_high:.0f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2_000, help="maximum number of labelled sentences for the probe")
    items = parser.parse_args().items
    encoders = {
        "yours": open_encoder(f"python:{Path(__file__).stem}:trigrams"),
        "ours": open_encoder(),
        "random": open_encoder("baseline:random"),
    }
    print(f"{'':>8}  similarity  length probe")
    for name, encoder in encoders.items():
        print(f"{name:>8}  {similarity(encoder):10.1f}  {length_probe(encoder, items)}")


if __name__ == "__main__":
    main()
