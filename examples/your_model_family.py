"""Write your own model family: a network, a model that uses it, a recipe that trains it, and its score.

    python examples/your_model_family.py

The network computes the maximum of each unit over the tokens of a sentence. To add a family to the toolkit, move the
network to bgt_core/nets, move the model and its sizes to a file in bgt_core/recipes, and list the recipe in
bgt_core/recipes/recipes.toml. Then `bgt train` accepts the recipe's name.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import bgt_core
from bgt_core import recipes
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Readout, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.grammar import Pair, pairs
from bgt_core.models.bgt import LatentModel
from bgt_core.nets.encoders import Encoder
from bgt_core.objectives import Sum
from bgt_core.objectives.similarity import Margin
from bgt_core.posterior import Point
from bgt_core.recipes import DataConfig, Recipe
from bgt_core.recipes.recipe import TrainConfig
from bgt_core.vectors.arrays import found


class MaxPooling(nn.Module):
    """A network that takes the maximum of each unit over a sentence's tokens, without padding."""

    def __init__(self, vocab_size: int, width: int):
        super().__init__()
        self.width = width
        self.table = nn.Embedding(vocab_size, width)

    def forward(self, side: Tokens) -> Tensor:
        """Pool the token vectors of each sentence: (B, T) token ids -> (B, H)."""
        vectors = self.table(side.ids)  # (B, T, H)
        return vectors.masked_fill(~side.mask[:, :, None], -torch.inf).amax(1)


class MaxPooled(LatentModel):
    """A model with one encoder for all languages, trained so that translations get similar vectors."""

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        semantic = {column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items()}
        return Outputs(semantic, posteriors={})


@dataclass(frozen=True, kw_only=True)
class MaxPooledConfig:
    """The sizes of the model: settings with the prefix `model.`, which each checkpoint stores."""

    semantic_dim: int = 128

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> MaxPooled:
        """Build an untrained model for the languages of the columns."""
        encoder = Encoder(MaxPooling(tokenizer.vocab_size, self.semantic_dim), Point)
        return MaxPooled(tuple(dict.fromkeys(columns.values())), {SEMANTIC: encoder})


def max_pooling() -> Recipe:
    """Return the recipe: the settings of model, objective, data and training."""
    return Recipe(
        name="max-pooling",
        model=MaxPooledConfig(),
        objective=Sum({"margin": Margin()}),
        data=DataConfig(vocab_size=800, min_tokens=1, valid_pairs=50),
        train=TrainConfig(epochs=3.0, batch_tokens=1_000, learning_rate=1e-3, warmup_steps=0),
    )


def retrieved(model: bgt_core.Embedder, unseen: Sequence[Pair]) -> float:
    """Return the percentage of English sentences whose nearest French sentence is their translation."""
    english, french = (model.embed([pair.texts[lang] for pair in unseen], lang=lang) for lang in ("en", "fr"))
    return 100 * float(found(english, french).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5_000, help="number of translations from the grammar to train on")
    parser.add_argument("--epochs", type=float, default=3.0, help="number of epochs")
    options = parser.parse_args()
    corpus = pairs(options.pairs + 200)
    seen, unseen = corpus[:-200], corpus[-200:]
    recipes.RECIPES["max-pooling"] = max_pooling  # `load` finds the recipe of a checkpoint by its name

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "pairs.tsv"
        text.write_text("".join(f"{pair.texts['en']}\t{pair.texts['fr']}\n" for pair in seen), encoding="utf-8")
        for epochs in (0.0, options.epochs):
            recipe = recipes.configure("max-pooling", {"train.epochs": epochs})
            last = bgt_core.train(recipe, [text], Path(folder) / f"run-{epochs:g}")
            score = retrieved(bgt_core.load(last), unseen)
            print(f"after {epochs:g} epochs: {score:.1f}% of 200 unseen sentences find their translation")


if __name__ == "__main__":
    main()
