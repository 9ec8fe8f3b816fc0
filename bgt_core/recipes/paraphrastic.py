"""The systems of Wieting, Mallinson and Gimpel (2017), which learn from paraphrases: AVG and GRAN.

    bgt train avg --data paraphrases.tsv --out runs/avg                           # columns a:en, b:en
    bgt train gran --init-from runs/avg --data paraphrases.tsv --out runs/gran    # starts from its vectors

| recipe | a sentence is | published: mean of 22 STS sets, Pearson x 100, from 24,000 translated pairs |
|---|---|---|
| avg | the mean of its token vectors, without EOS | 65.5 |
| gran | the mean of its token vectors, each gated by an LSTM's state | 66.9 |

The margin is 0.4 to the hardest sentence of both sides of the batch; Adam's rate 0.001; 20 epochs of `avg` and 3 of
`gran`. The two regularisers of the paper's loss are `train.composition_l2` and `train.table_l2`, 0 here as there, each
with the factor 1/2 of the released code.

Differences: SentencePiece tokens replace words, and their vectors start from N(0, 1) as in `sp`; the paper starts from
paragram-sl999; `--init-from` takes those of another run, for example on PPDB. An update is counted in tokens: about 100
pairs of 20 tokens; set `train.batch_tokens` for shorter ones. An update that `train.micro_tokens` or
`train.micro_batches` divides is searched in parts: `train.mega_batch=1` searches the whole update, a larger number that
many updates at once, as for ParaNMT's models (40). Adam's second beta is 0.98, in the paper 0.999; the gradient is
clipped at 25. The last epoch is kept, not the best on STS 2016. Not yet trained by us at the paper's size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import nn

from bgt_core.data.text import Tokenizer
from bgt_core.errors import check_least
from bgt_core.models.siamese import Siamese
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.pooling import GRAN
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.margin import Margin
from bgt_core.posterior import Point
from bgt_core.recipes.recipe import DataConfig, Recipe
from bgt_core.recipes.siamese import SiameseConfig
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class GRANConfig:
    """One gated recurrent average for all columns."""

    d_model: int = 300  # of token vectors and states
    dropout: float = 0.0  # on token vectors

    def __post_init__(self) -> None:
        check_least(1, d_model=self.d_model)

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        return self.d_model

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Siamese:
        """An untrained model."""
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # N(0, 1)
        return Siamese(tuple(dict.fromkeys(columns.values())), Encoder(GRAN(table, self.dropout), Point))


def avg() -> Recipe:
    """The mean of token vectors, trained on paraphrases by the margin loss alone."""
    return Recipe(
        name="avg",
        model=SiameseConfig(d_model=300),
        objective=Sum({"margin": Margin(both_sides=True)}),
        data=DataConfig(columns=("a:en", "b:en"), vocab_size=5_000, min_tokens=1, valid_pairs=1_000),
        train=TrainConfig(
            epochs=20.0,
            batch_tokens=2_000,
            micro_tokens=25_000,
            learning_rate=1e-3,
            warmup_steps=0,
            weight_decay=0.0,
        ),
    )


def gran() -> Recipe:
    """The mean of gated token vectors, trained as `avg` for 3 epochs: it converges much faster."""
    average = avg()
    return replace(average, name="gran", model=GRANConfig(), train=replace(average.train, epochs=3.0))
