"""The margin systems that the paper compares with: SP and BiLSTM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import nn

from bgt_core.contracts import BadInput
from bgt_core.models.siamese import Siamese
from bgt_core.nets.average import Mean
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.lstm import BiLSTM
from bgt_core.objectives.margin import Margin
from bgt_core.posterior import Point
from bgt_core.recipes.recipe import DataConfig, Recipe
from bgt_core.text import Tokenizer
from bgt_core.train.config import TrainConfig


def sp(
    langs: Sequence[str] = ("en", "fr"),
    vocab_size: int = 20_000,
    width: int = 1024,
    dropout: float = 0.0,
    margin: float = 0.4,
    mega_batch: int = 60,
    mega_growth: int = 150,
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
    """Sentence-piece averaging: a sentence is the mean of its piece vectors, one table for all languages.

        bgt train sp --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/sp

    Published with the data of `bgt`: STS 2012-2016 average 71.9 (Pearson x 100). Settings of the released code, whose
    dropout of 0.3 and clipping had no effect: there is none here. An update is about its 128 pairs. Adam's second beta
    is 0.98, as in all our recipes; there 0.999. `mega_batch=0` takes negatives from the batch.
    """
    arguments = dict(locals())
    return siamese("sp", arguments, lambda tokenizer: Mean(tokenizer.vocab_size, width, dropout))


def bilstm(
    langs: Sequence[str] = ("en", "fr"),
    vocab_size: int = 20_000,
    width: int = 1024,
    encoder_layers: int = 1,
    dropout: float = 0.0,
    margin: float = 0.4,
    mega_batch: int = 60,
    mega_growth: int = 150,
    scramble: float = 0.3,
    lowercase: bool = True,
    min_pieces: int = 5,
    max_pieces: int = 100,
    valid_pairs: int = 10_000,
    epochs: float = 10.0,
    batch_tokens: int = 2_500,
    micro_tokens: int = 2_000,
    learning_rate: float = 1e-3,
    warmup_steps: int = 0,
    cooldown: float = 0.0,
    precision: str = "auto",
    seed: int = 1,
) -> Recipe:
    """The mean of a bidirectional LSTM's states, half of `width` a direction; three sentences in ten are scrambled.

        bgt train bilstm --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/bilstm

    Published with the data of `bgt`: STS 2012-2016 average 70.6 (Pearson x 100). As `sp` else, but that the end piece
    is read and counted, as by our other encoders that read in order.
    """
    arguments = dict(locals())
    return siamese(
        "bilstm",
        arguments,
        lambda tokenizer: BiLSTM(nn.Embedding(tokenizer.vocab_size, width), encoder_layers, dropout),
    )


def siamese(name: str, arguments: Mapping[str, object], body: Callable[[Tokenizer], nn.Module]) -> Recipe:
    """What the two share: all but the body; `arguments` are the call's."""
    given = dict(arguments)
    langs = tuple(given["langs"])
    if given["mega_batch"] and len(langs) > 2:
        raise BadInput(
            f"mega_batch {given['mega_batch']}: negatives are mined between two languages, langs has {len(langs)}; "
            "set mega_batch=0 to take them from the batch.",
            2,
        )

    return Recipe(
        name=name,
        arguments=given,
        langs=langs,
        model=lambda tokenizer: Siamese(Encoder(body(tokenizer), Point)),
        objective=Margin(given["margin"]),
        data=DataConfig(**{key: given[key] for key in DataConfig.__dataclass_fields__}),
        train=TrainConfig(
            weight_decay=0.0, **{key: given[key] for key in TrainConfig.__dataclass_fields__ if key in given}
        ),
    )
