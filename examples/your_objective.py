"""Write your own objective: the squared distance of translations, added to the margin loss of a shipped recipe.

    python examples/your_objective.py

To add an objective to the toolkit, move `Distance` to a file in bgt_core/objectives, list it in `PARTS` of
recipes/recipe.py, and name it in a recipe of recipes.toml. Then `bgt train` can train that recipe, and
`--set objective.distance.weight=0.5` changes the objective's weight.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

import bgt_core
from bgt_core import recipes
from bgt_core.contracts import Loss, Outputs
from bgt_core.grammar import Pair, pairs
from bgt_core.objectives import Part, Sum, total

SMALL = {"d_model": 64, "vocab_size": 400, "valid_pairs": 20, "mega_batch": 0, "batch_tokens": 1_000}


@dataclass(frozen=True)
class Distance(Part):
    """An objective: the squared Euclidean distance between the semantic posterior means of translations."""

    weight: float = 1.0

    def __call__(self, out: Outputs, step: int) -> Loss:
        """Return the sum of the distances over a batch, both as the loss and as a value to log."""
        means = [posterior.mean.float() for posterior in out.semantic.values()]  # (B, L) for each language
        cost = total(out, [(left - right).square().sum() for left, right in combinations(means, 2)])
        return Loss(cost, {"distance": cost.detach()})


def sp_with_distance() -> recipes.Recipe:
    """Return the recipe `sp` with `Distance` as a second objective."""
    recipe = recipes.RECIPES["sp"]()
    return replace(recipe, name="sp-distance", objective=Sum({**recipe.objective, "distance": Distance()}))


def apart(model: bgt_core.Embedder, unseen: Sequence[Pair]) -> float:
    """Return the mean squared distance between the posterior means of held-out translations."""
    english, french = (model.embed([pair.texts[lang] for pair in unseen], lang=lang) for lang in ("en", "fr"))
    return float(np.square(english - french).sum(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5_000, help="number of translations from the grammar to train on")
    parser.add_argument("--epochs", type=float, default=3.0, help="number of epochs")
    options = parser.parse_args()
    recipes.RECIPES["sp-distance"] = sp_with_distance  # `load` finds the recipe of a checkpoint by its name

    corpus = pairs(options.pairs + 200)
    seen, unseen = corpus[:-200], corpus[-200:]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "pairs.tsv"
        text.write_text("".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in seen), encoding="utf-8")
        for weight in (0.0, 1.0):
            settings = {**SMALL, "epochs": options.epochs, "objective.distance.weight": weight}
            last = bgt_core.train(recipes.configure("sp-distance", settings), [text], Path(folder) / f"run-{weight:g}")
            print(f"weight {weight:g}: squared distance {apart(bgt_core.load(last), unseen):.2f}")


if __name__ == "__main__":
    main()
