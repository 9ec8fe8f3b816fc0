"""A translator: an encoder and a decoder that attends to it, the Transformer of Vaswani et al. (2017).

    bgt train translator --langs fr,en --data en-fr=pairs.tsv --out runs/fr-en

The first of `--langs` is the source, the others are the targets; "en-fr=" gives the order of the file's columns.
Sizes, tied tables, label smoothing, learning rate and the tokens per update are those of the paper's base model. Not
yet trained by us at this size; `--set` makes it smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.models.translator import Translator
from bgt_core.nets.decoder import AttentionDecoder
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.layers import Transformer
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.cross_entropy import CrossEntropy
from bgt_core.posterior import Point
from bgt_core.recipes.parts import output, tables
from bgt_core.recipes.recipe import DataConfig, Recipe
from bgt_core.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig:
    """One encoder, for the first column, and one decoder per target language."""

    d_model: int = 512
    encoder_layers: int = 6
    decoder_layers: int = 6
    ffn_dim: int = 2048
    heads: int = 8
    dropout: float = 0.1
    tie_embeddings: bool = True

    @property
    def semantic_dim(self) -> int:
        """Units of a state, and so of their mean."""
        return self.d_model

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
