"""The margin systems that the paper compares with: SP and BiLSTM.

    bgt train sp --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/sp

| recipe | a sentence is | published: STS 2012-2016 average, Pearson x 100 |
|---|---|---|
| sp | the mean of its token vectors, without EOS | 71.9 |
| bilstm, `scramble` 0.3 | the mean of a BiLSTM's states, EOS included; half of `d_model` per direction | 70.6 |

Negatives are mined in `mega_batch` updates of about 128 pairs, from 1 and one more every `mega_batch_warmup`; with
`mega_batch=0` they are the hardest of the micro-batch. The released code's dropout of 0.3 and its clipping have no
effect there, so dropout is 0 here. Adam's second beta is 0.98 as in all our recipes, there 0.999. Not yet trained by us
at this size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import nn

from bgt_core.data.text import Tokenizer
from bgt_core.errors import check_choice, check_least
from bgt_core.models.siamese import Siamese
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.lstm import BiLSTM
from bgt_core.nets.pooling import MeanPooling
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.margin import Margin
from bgt_core.posterior import Point
from bgt_core.recipes.recipe import Recipe
from bgt_core.training.config import TrainConfig

BODIES = ("average", "lstm")


@dataclass(frozen=True, kw_only=True)
class SiameseConfig:
    """One encoder for all languages, an average of token vectors or an LSTM."""

    body: str = "average"
    d_model: int = 1024
    encoder_layers: int = 1  # of the LSTM
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice(BODIES, body=self.body)
        check_least(1, d_model=self.d_model)

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        return self.d_model

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Siamese:
        """An untrained model."""
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # N(0, 1)
        lstm = self.body == "lstm"
        body = BiLSTM(table, self.encoder_layers, self.dropout) if lstm else MeanPooling(table, self.dropout)
        return Siamese(tuple(dict.fromkeys(columns.values())), Encoder(body, Point))


def sp() -> Recipe:
    """The mean of token vectors, trained by the margin loss alone, with the settings of the released code."""
    return Recipe(
        name="sp",
        model=SiameseConfig(),
        objective=Sum({"margin": Margin()}),
        train=TrainConfig(
            epochs=10.0,
            batch_tokens=2_500,
            micro_tokens=25_000,
            learning_rate=1e-3,
            warmup_steps=0,
            weight_decay=0.0,
            mega_batch=60,
            mega_batch_warmup=150,
        ),
    )


def bilstm() -> Recipe:
    """The mean of a BiLSTM's states, trained as `sp`."""
    average = sp()
    train = replace(average.train, scramble=0.3, micro_tokens=2_000)
    return replace(average, name="bilstm", model=SiameseConfig(body="lstm"), train=train)
