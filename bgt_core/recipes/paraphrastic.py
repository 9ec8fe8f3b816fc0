"""Systems that learn from paraphrases (Wieting, Mallinson and Gimpel 2017), and the BGT paper's baselines with a margin
loss (Wieting et al. 2019).

    bgt train sp --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/sp
    bgt train avg --data paraphrases.tsv --out runs/avg                           # columns a:en, b:en
    bgt train gran --init-from runs/avg --data paraphrases.tsv --out runs/gran    # starts from the vectors of avg
    bgt train reference-classifier --columns reference:en,translation:en --data back-translated.tsv --out runs/refs
    bgt train translator --langs fr,en --data en-fr=pairs.tsv --out runs/fr-en

| recipe | the vector of a sentence | published |
|---|---|---|
| sp | the mean of its token vectors, without EOS | 71.9: STS 2012-2016 average, Pearson x 100 |
| bilstm, `scramble` 0.3 | the mean of a BiLSTM's states, EOS included; half of `d_model` per direction | 70.6 |
| avg | as sp | 65.5: mean of 22 STS sets, Pearson x 100, from 24,000 translated pairs |
| gran | the mean of its token vectors, each gated by an LSTM's state | 66.9 |

sp and bilstm search for negatives in mega-batches, which consist of up to `mega_batch` updates. An update has about 128
pairs. At first a mega-batch is one update; it grows by one after every `mega_batch_warmup` updates. With
`mega_batch=0`, a negative is the hardest sentence of the micro-batch. The authors' code sets a dropout of 0.3 and clips
gradients, but neither has an effect in that code, so dropout is 0 here.

avg and gran have a margin of 0.4, and find the hardest negative among the sentences of both columns of the batch. They
use Adam with a learning rate of 0.001, and train for 20 and 3 epochs. The two regularisers of the paper's loss are
`train.composition_l2` and `train.table_l2`, both with the factor 1/2 of the authors' code. Both are 0 by default, as in
the paper.

docs/differences.md lists the differences from the papers. We have not trained these systems at the papers' sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from bgt_core.contracts import SEMANTIC, Batch, Decoder, Outputs, Readout, Tokens
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice
from bgt_core.models.bgt import LatentModel
from bgt_core.nets.decoder import AttentionDecoder, EncoderStates
from bgt_core.nets.encoders import GRAN, Encoder, MeanPooling
from bgt_core.nets.layers import Transformer
from bgt_core.nets.lstm import BiLSTM, LastState
from bgt_core.nets.operations import PackedLayout
from bgt_core.nets.output import LabelPrediction
from bgt_core.posterior import Point
from bgt_core.recipes import WideAsTokens
from bgt_core.recipes.bgt import output, table_maker

BODIES = ("average", "lstm")


@dataclass(frozen=True, kw_only=True)
class SiameseConfig(WideAsTokens):
    """A model with one encoder for all languages: an average of token vectors, or an LSTM."""

    body: str = "average"
    d_model: int = 1024
    encoder_layers: int = 1  # number of layers of the LSTM
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice(BODIES, body=self.body)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Siamese:
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # its initial values are drawn from N(0, 1)
        lstm = self.body == "lstm"
        body = BiLSTM(table, self.encoder_layers, self.dropout) if lstm else MeanPooling(table, self.dropout)
        return Siamese(tuple(dict.fromkeys(columns.values())), Encoder(body, Point))


@dataclass(frozen=True, kw_only=True)
class GRANConfig(WideAsTokens):
    """A model with one encoder for all languages: a gated recurrent averaging network (GRAN)."""

    d_model: int = 300  # width of token vectors, and of the states of the LSTM in the GRAN
    dropout: float = 0.0  # dropout of token vectors

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Siamese:
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # its initial values are drawn from N(0, 1)
        return Siamese(tuple(dict.fromkeys(columns.values())), Encoder(GRAN(table, self.dropout), Point))


@dataclass(frozen=True, kw_only=True)
class ReferenceClassifierConfig(WideAsTokens):
    """A classifier whose encoder is an average of token vectors, or the last state of an LSTM."""

    body: str = "average"
    d_model: int = 300
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice(BODIES, body=self.body)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> ReferenceClassifier:
        table = nn.Embedding(tokenizer.vocab_size, self.d_model)  # its initial values are drawn from N(0, 1)
        body = LastState(table, self.dropout) if self.body == "lstm" else MeanPooling(table, self.dropout)
        return ReferenceClassifier(tuple(dict.fromkeys(columns.values())), Encoder(body, Point), self.d_model)


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig(WideAsTokens):
    """A translator with one encoder, for the first column, and one decoder for each target language."""

    d_model: int = 512
    encoder_layers: int = 6
    decoder_layers: int = 6
    ffn_dim: int = 2048
    heads: int = 8
    dropout: float = 0.1
    tie_embeddings: bool = True

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Translator:
        if len(columns) < 2:
            raise UsageError(f"{', '.join(columns)}: a translation needs two columns; add one", parameter="columns")
        (source, lang), *written = columns.items()
        vocab_size, width, tie = tokenizer.vocab_size, self.d_model, self.tie_embeddings
        new_table = table_maker(vocab_size, width, tie)
        sizes: dict[str, Any] = {"ffn_dim": self.ffn_dim, "heads": self.heads, "dropout": self.dropout}
        encoder = Encoder(Transformer(new_table(), self.encoder_layers, **sizes), Point)
        decoders = {}
        for target in dict.fromkeys(lang for _, lang in written):
            layer = output(new_table, vocab_size, width, 0, tie, logit=False)
            decoders[target] = AttentionDecoder(new_table(), layer, self.decoder_layers, **sizes)
        return Translator(encoder, decoders, source, lang)


class Siamese(LatentModel):
    """A model with one encoder for all languages, no decoders and no KL terms (BGT paper, sec. 4: SP, BiLSTM)."""

    def __init__(self, langs: Sequence[str], encoder: nn.Module):
        super().__init__(langs, {SEMANTIC: encoder})

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        encode = self.encoders[SEMANTIC]
        semantic = {column: encode(side) for column, side in batch.sides.items()}
        negatives = {column: encode(side) for column, side in batch.negatives.items()}
        return Outputs(semantic, posteriors={}, negatives=negatives)


class ReferenceClassifier(LatentModel):
    """Classify sentences as references (written by people) or as machine translations (Wieting, Mallinson & Gimpel
    2017, sec. 5.6.1).

    Each row provides two examples: the sentence of the first column is a reference (class 1), and the sentence of the
    second column is a translation (class 0). The classifier is a linear map of the sentence's vector, followed by a
    softmax. The encoder and the linear map are both trained; in the authors' code the map keeps its random values.
    """

    def __init__(self, langs: Sequence[str], encoder: nn.Module, width: int):
        super().__init__(langs, {SEMANTIC: encoder})
        self.classifier = nn.Linear(width, 2)

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if len(batch.sides) != 2:
            raise UsageError("a reference classifier needs two columns, as in columns reference:en, translation:en")
        semantic = {column: self.encoder(SEMANTIC, side.lang)(side) for column, side in batch.sides.items()}
        predictions = [
            LabelPrediction(logits := self.classifier(posterior.mean), logits.new_full((len(batch),), label), column)
            for label, (column, posterior) in zip((1, 0), semantic.items(), strict=True)
        ]
        return Outputs(semantic, {}, predictions)

    @torch.no_grad()
    def reference_probability(self, vectors: Tensor) -> Tensor:
        """Return the probability that each sentence is a reference, (N,) float64, given the vectors, (N, L)."""
        return self.classifier(vectors).double().softmax(-1)[:, 1]


class Translator(LatentModel):
    """A translator from one language. Each target language has a decoder, which attends to all encoder states.

    So the translation does not pass through a single vector. To embed a sentence, the model returns the mean of the
    encoder states, although they are not trained for this purpose. The mean shows how much of the meaning a translator
    encodes (España-Bonet et al. 2017 compare sentences by the sum of states).
    """

    def __init__(self, encoder: nn.Module, decoders: Mapping[str, AttentionDecoder], source: str, lang: str):
        super().__init__((lang,), {SEMANTIC: encoder})
        self.decoders, self.source = nn.ModuleDict(decoders), source

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        if self.source not in batch.sides:
            columns = ", ".join(batch.sides)
            raise UsageError(f"{columns}: each corpus needs the source column {self.source}", parameter="columns")
        states = self.states(batch.sides[self.source])
        predictions = [
            self.decoders[side.lang]("translate", column, states, side)
            for column, side in batch.sides.items()
            if column != self.source
        ]
        semantic = Point(PackedLayout.of(states.side).mean(states.states).detach())
        return Outputs({self.source: semantic}, {}, predictions)

    @property
    def translates(self) -> tuple[str, ...]:
        """The languages into which the model translates."""
        return tuple(self.decoders)

    def states(self, side: Tokens) -> EncoderStates:
        """Encode source sentences (B, T) as states, to which decoders attend."""
        body = cast(Transformer, self.encoders[SEMANTIC].body)
        return EncoderStates(body.states(side, PackedLayout.of(side)), side)

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder that translates into `lang`; its input is the result of `states`."""
        return cast(Decoder, self.decoders[lang])
