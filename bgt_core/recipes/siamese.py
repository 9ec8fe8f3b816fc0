"""The margin systems that the paper compares with: SP and BiLSTM."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.siamese import Siamese
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.lstm import BiLSTM
from bgt_core.nets.pooling import MeanPooling
from bgt_core.objectives.margin import Margin
from bgt_core.posterior import Point
from bgt_core.recipes.recipe import DataConfig, Recipe
from bgt_core.training.config import TrainConfig

BODIES = ("average", "lstm")


def siamese(
    langs: Sequence[str] = ("en", "fr"),
    body: str = "average",
    vocab_size: int = 20_000,
    width: int = 1024,
    encoder_layers: int = 1,
    dropout: float = 0.0,
    margin: float = 0.4,
    mega_batch: int = 60,
    mega_growth: int = 150,
    scramble: float = 0.0,
    lowercase: bool = True,
    min_pieces: int = 5,
    max_pieces: int = 100,
    valid_pairs: int = 10_000,
    epochs: float = 10.0,
    batch_tokens: int = 2_500,
    micro_tokens: int = 25_000,
    learning_rate: float = 1e-3,
    warmup_steps: int = 0,
    cooldown: float = 0.0,
    precision: str = "auto",
    seed: int = 1,
) -> Recipe:
    """One encoder for all languages, trained by the margin loss alone, with the settings of the released code.

        bgt train sp --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/sp

    | recipe | a sentence is | published: STS 2012-2016 average, Pearson x 100 |
    |---|---|---|
    | sp | the mean of its piece vectors, EOS left out | 71.9 |
    | bilstm, `scramble` 0.3 | the mean of a BiLSTM's states, EOS included; half of `width` a direction | 70.6 |

    Negatives are mined in `mega_batch` updates of about 128 pairs, from 1 and one more every `mega_growth`; with
    `mega_batch=0` they are the hardest of the micro-batch. The code's dropout of 0.3 and its clipping have no effect
    there: dropout is 0 here. Adam's second beta is 0.98 as in all our recipes, there 0.999. Not yet trained by us at
    this size.
    """
    arguments = dict(locals())
    if body not in BODIES:
        raise UsageError(f"body '{body}' is none of {', '.join(BODIES)}")
    if mega_batch and len(langs) > 2:
        raise UsageError(
            f"mega_batch {mega_batch}: negatives are mined between two languages, langs has {len(langs)}; "
            "set mega_batch=0 to take them from the batch",
        )

    def model(tokenizer: Tokenizer) -> nn.Module:
        if width < 1:
            raise UsageError(f"width {width} must be at least 1")
        table = nn.Embedding(tokenizer.vocab_size, width)  # N(0, 1)
        made = MeanPooling(table, dropout) if body == "average" else BiLSTM(table, encoder_layers, dropout)
        return Siamese(Encoder(made, Point))

    return Recipe(
        name="siamese",
        arguments=arguments,
        langs=tuple(langs),
        model=model,
        objective=Margin(margin),
        data=DataConfig(vocab_size, lowercase, min_pieces, max_pieces, valid_pairs),
        train=TrainConfig(
            epochs,
            batch_tokens,
            micro_tokens,
            learning_rate,
            warmup_steps,
            cooldown,
            weight_decay=0.0,
            scramble=scramble,
            mega_batch=mega_batch,
            mega_growth=mega_growth,
            precision=precision,
            seed=seed,
        ),
    )
