"""The systems of Wieting, Mallinson and Gimpel (2017), which learn from paraphrases, and those with a margin loss that
the BGT paper compares with (Wieting et al. 2019).

    bgt train sp --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/sp
    bgt train avg --data paraphrases.tsv --out runs/avg                           # columns a:en, b:en
    bgt train gran --init-from runs/avg --data paraphrases.tsv --out runs/gran    # starts from its vectors
    bgt train reference-classifier --columns reference:en,translation:en --data back-translated.tsv --out runs/refs
    bgt train translator --langs fr,en --data en-fr=pairs.tsv --out runs/fr-en

| recipe | a sentence is | published |
|---|---|---|
| sp | the mean of its token vectors, without EOS | 71.9: STS 2012-2016 average, Pearson x 100 |
| bilstm, `scramble` 0.3 | the mean of a BiLSTM's states, EOS included; half of `d_model` per direction | 70.6 |
| avg | as sp | 65.5: mean of 22 STS sets, Pearson x 100, from 24,000 translated pairs |
| gran | the mean of its token vectors, each gated by an LSTM's state | 66.9 |

Of sp and bilstm, negatives are mined in `mega_batch` updates of about 128 pairs, from 1 and one more every
`mega_batch_warmup`; with `mega_batch=0` they are the hardest of the micro-batch. The released code's dropout of 0.3 and
its clipping have no effect there, so dropout is 0 here.

Of avg and gran, the margin is 0.4 to the hardest sentence of both sides of the batch; Adam's rate 0.001; 20 epochs of
`avg` and 3 of `gran`. The two regularisers of the paper's loss are `train.composition_l2` and `train.table_l2`, 0 here
as there, each with the factor 1/2 of the released code.

Differences: SentencePiece tokens replace words, and their vectors start from N(0, 1) as in `sp`; the paper starts from
paragram-sl999; `--init-from` takes those of another run, for example on PPDB. An update is counted in tokens: about 100
pairs of 20 tokens; set `train.batch_tokens` for shorter ones. An update that `train.micro_tokens` or
`train.micro_batches` divides is searched in parts: `train.mega_batch=1` searches the whole update, a larger number that
many updates at once, as for ParaNMT's models (40). Adam's second beta is 0.98 as in all our recipes, in the papers
0.999; the gradient is clipped at 25. The last epoch is kept, not the best on STS 2016. Not yet trained by us at the
papers' sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import nn

from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice, check_least
from bgt_core.models.seq2seq import Translator
from bgt_core.models.siamese import ReferenceClassifier, Siamese
from bgt_core.nets.decoder import AttentionDecoder
from bgt_core.nets.encoders import GRAN, Encoder, MeanPooling
from bgt_core.nets.layers import Transformer
from bgt_core.nets.lstm import BiLSTM, LastState
from bgt_core.objectives import Sum
from bgt_core.objectives.elbo import CrossEntropy
from bgt_core.objectives.similarity import Margin
from bgt_core.posterior import Point
from bgt_core.recipes.bgt import output, tables
from bgt_core.recipes.recipe import DataConfig, Recipe, TrainConfig, WideAsTokens

BODIES = ("average", "lstm")


@dataclass(frozen=True, kw_only=True)
class SiameseConfig(WideAsTokens):
    """One encoder for all languages, an average of token vectors or an LSTM."""

    body: str = "average"
    d_model: int = 1024
    encoder_layers: int = 1  # of the LSTM
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice(BODIES, body=self.body)
        check_least(1, d_model=self.d_model)

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


@dataclass(frozen=True, kw_only=True)
class GRANConfig(WideAsTokens):
    """One gated recurrent average for all columns."""

    d_model: int = 300  # of token vectors and states
    dropout: float = 0.0  # on token vectors

    def __post_init__(self) -> None:
        check_least(1, d_model=self.d_model)

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
            epochs=20.0, batch_tokens=2_000, micro_tokens=25_000, learning_rate=1e-3, warmup_steps=0, weight_decay=0.0
        ),
    )


def gran() -> Recipe:
    """The mean of gated token vectors, trained as `avg` for 3 epochs: it converges much faster."""
    average = avg()
    return replace(average, name="gran", model=GRANConfig(), train=replace(average.train, epochs=3.0))


READERS = ("average", "lstm")


@dataclass(frozen=True, kw_only=True)
class ReferenceClassifierConfig(WideAsTokens):
    """The encoder of a sentence: an average of token vectors, or the last state of an LSTM."""

    body: str = "average"
    d_model: int = 300
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice(READERS, body=self.body)
        check_least(1, d_model=self.d_model)

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> ReferenceClassifier:
        """An untrained model."""
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # N(0, 1)
        body = LastState(table, self.dropout) if self.body == "lstm" else MeanPooling(table, self.dropout)
        return ReferenceClassifier(tuple(dict.fromkeys(columns.values())), Encoder(body, Point), self.d_model)


def reference_classifier() -> Recipe:
    """Classify references (the first column) and translations (the second), with the paper's rate and epochs.

    `model.body` is average or lstm. A reference with several translations, one row each, is used equally often with
    each: on average that equals the paper's random choice among them. Validation reports `accuracy/COLUMN`: the share
    of references classified as references, and of translations as translations (the paper's + and - Acc).

    The paper starts from the word vectors of paragram-sl999; `init_from` takes those of a trained `sp` or `avg` of the
    same `d_model`.
    """
    return Recipe(
        name="reference-classifier",
        model=ReferenceClassifierConfig(),
        objective=Sum({"cross_entropy": CrossEntropy()}),
        data=DataConfig(columns=("reference:en", "translation:en"), min_tokens=1, valid_pairs=5_000),
        train=TrainConfig(epochs=10.0, batch_tokens=2_500, learning_rate=1e-3, warmup_steps=0, weight_decay=0.0),
    )


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig(WideAsTokens):
    """One encoder, for the first column, and one decoder per target language."""

    d_model: int = 512
    encoder_layers: int = 6
    decoder_layers: int = 6
    ffn_dim: int = 2048
    heads: int = 8
    dropout: float = 0.1
    tie_embeddings: bool = True

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Translator:
        """An untrained model; UsageError for fewer than two columns."""
        if len(columns) < 2:
            raise UsageError(f"{', '.join(columns)}: a translation needs two columns", parameter="columns")
        (source, lang), *written = columns.items()
        vocab_size, width, tie = tokenizer.vocab_size, self.d_model, self.tie_embeddings
        table = tables(vocab_size, width, tie)
        sizes = self.ffn_dim, self.heads, self.dropout
        encoder = Encoder(Transformer(table(), self.encoder_layers, *sizes), Point)
        decoders = {}
        for target in dict.fromkeys(lang for _, lang in written):
            layer = output(table, vocab_size, width, 0, tie, logit=False)
            decoders[target] = AttentionDecoder(table(), layer, self.decoder_layers, *sizes)
        return Translator(encoder, decoders, source, lang)


def translator() -> Recipe:
    """Translate from the first column into the others, with case."""
    return Recipe(
        name="translator",
        model=TranslatorConfig(),
        objective=Sum({"cross_entropy": CrossEntropy(("translate",), label_smoothing=0.1)}),
        data=DataConfig(lowercase=False, min_tokens=1),
        train=TrainConfig(batch_tokens=25_000, learning_rate=7e-4, weight_decay=0.0),
    )
