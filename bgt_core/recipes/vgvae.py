"""The vMF-Gaussian VAE of Chen, Tang, Wiseman and Gimpel (2019): meaning and syntax, separated by paraphrases.

    bgt train vgvae --data paraphrases.tsv --out runs/vgvae    # columns a:en, b:en
    bgt evaluate sts STS_FOLDER --model runs/vgvae --latent semantic    # --latent syntactic should score low

| row of the paper's table | settings | published: STS benchmark, Pearson x 100, semantic / syntactic |
|---|---|---|
| base | all weights in the rows below are 0, and `train.mega_batch=0` | 45.5 / 40.8 |
| WPL: word position loss | base with `objective.position.weight=1` | 51.5 / 28.1 |
| DPL: margin loss on paraphrases | base with `objective.margin.weight=12` and `train.mega_batch=20` | 68.4 / 37.8 |
| PRL: generation with a paraphrase's meaning | base with `objective.paraphrase.weight=1` | 67.9 / 29.6 |
| PRL + WPL, PRL + DPL, DPL + WPL | the settings of both rows | 69.8 / 23.2, 71.2 / 31.7, 71.0 / 24.1 |
| ALL | none: the default | 72.3 / 20.1 |
| ALL + LSTM | `model.syntactic_body=lstm`, `model.decoder=lstm` | 72.9 / 11.3 |

`model.syntactic_dim=0` removes the syntactic latent; then `objective.position.weight` has no effect.

Sizes and rates are taken from the script in the authors' code: 50 units everywhere, perceptrons with three layers of
100 units, batches of about 30 pairs, Adam with a learning rate of 0.001, 50 epochs, and the margin loss from the third
epoch on.

docs/differences.md lists the differences from the paper. We have not trained the model at the paper's size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bgt_core.contracts import SEMANTIC, SYNTACTIC, Batch, Decoder, Outputs, Prediction, Readout
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice, check_least
from bgt_core.models.bgt import WritingModel
from bgt_core.nets.encoders import Encoder, GaussianHead, MeanPooling, NoLatent, VonMisesFisherHead
from bgt_core.nets.lstm import BiLSTM, TwoLatentDecoder
from bgt_core.nets.output import BagOfWords, PerceptronOutput, PositionPredictor
from bgt_core.posterior import readout_named, sample

BODIES = ("average", "lstm")
DECODERS = ("bag-of-words", "lstm", "lstm-without-previous-word")


@dataclass(frozen=True, kw_only=True)
class VGVAEConfig:
    """A VAE with a semantic and a syntactic encoder, with separate token embeddings, and one decoder per language."""

    semantic_body: str = "average"  # the mean of token vectors; or "lstm", the mean of a BiLSTM's states
    syntactic_body: str = "average"
    decoder: str = "bag-of-words"  # "bag-of-words", "lstm" or "lstm-without-previous-word"
    d_model: int = 50  # width of token vectors, and of sentence vectors
    semantic_dim: int = 50
    syntactic_dim: int = 50  # units of the syntactic latent; 0 removes it
    hidden_dim: int = 100  # width of the decoder's states, and of the hidden layers of all perceptrons
    hidden_layers: int = 3  # number of layers of each perceptron
    positions: int = 32  # number of word positions to predict; later words are skipped
    dropout: float = 0.0  # dropout of token vectors and of an LSTM's states
    readout: str = "sample"
    log_variance: float = 0.0  # initial log variance of the syntactic posterior

    def __post_init__(self) -> None:
        check_choice(BODIES, semantic_body=self.semantic_body, syntactic_body=self.syntactic_body)
        check_choice(DECODERS, decoder=self.decoder)
        check_least(3, semantic_dim=self.semantic_dim)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> VGVAE:
        vocab_size, langs = tokenizer.vocab_size, tuple(dict.fromkeys(columns.values()))
        sizes = {"hidden": self.hidden_dim, "layers": self.hidden_layers}

        def body(kind: str) -> MeanPooling | BiLSTM:
            table = nn.Embedding(vocab_size, self.d_model)  # its initial values are drawn from N(0, 1)
            return BiLSTM(table, 1, self.dropout) if kind == "lstm" else MeanPooling(table, self.dropout)

        def decoder() -> nn.Module:
            if self.decoder == "bag-of-words":
                return BagOfWords(vocab_size, self.syntactic_dim + self.semantic_dim, **sizes)
            table = nn.Embedding(vocab_size, self.d_model) if self.decoder == "lstm" else None
            layer = PerceptronOutput(vocab_size, self.hidden_dim, self.semantic_dim, **sizes)
            return TwoLatentDecoder(table, layer, self.syntactic_dim, self.hidden_dim, self.dropout)

        encoders: dict[str, nn.Module] = {
            SEMANTIC: Encoder(body(self.semantic_body), VonMisesFisherHead(self.d_model, self.semantic_dim)),
            SYNTACTIC: NoLatent(),
        }
        position = None
        if self.syntactic_dim:
            reader = body(self.syntactic_body)
            head = GaussianHead(self.d_model, self.syntactic_dim, self.log_variance, bias=True)
            encoders[SYNTACTIC] = Encoder(reader, head)
            position = PositionPredictor(reader.table, self.syntactic_dim, **sizes, positions=self.positions)
        decoders = {lang: decoder() for lang in langs}
        return VGVAE(langs, encoders, decoders, position, readout_named(self.readout))


class VGVAE(WritingModel):
    """A model with a semantic and a syntactic latent for each sentence (Chen et al. 2019).

    Each sentence is reconstructed from one sample of both latents. It is then generated a second time, from its own
    syntactic latent and the semantic latent of its paraphrase, which is in the column `Batch.source`. `encoders` has
    q(y | sentence) under "semantic" and q(z | sentence) under "syntactic"; `decoders` has p(sentence | z, y) for each
    language. `position` predicts the positions of words from the syntactic latent, or is None without this latent.
    """

    def __init__(
        self,
        langs: Sequence[str],
        encoders: Mapping[str, nn.Module],
        decoders: Mapping[str, nn.Module],
        position: nn.Module | None,
        readout: Readout = sample,
    ):
        super().__init__(langs, encoders)
        self.decoders = nn.ModuleDict(decoders)
        self.position, self.readout = position, readout

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic, negatives = (
            {column: self.encoders[SEMANTIC](side) for column, side in sides.items()}
            for sides in (batch.sides, batch.negatives)
        )
        syntactic = {column: self.encoders[SYNTACTIC](side) for column, side in batch.sides.items()}
        y = {column: readout(posterior) for column, posterior in semantic.items()}  # (B, L), one draw per sentence
        z = {column: readout(posterior) for column, posterior in syntactic.items()}
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            decoder, source = self.decoders[side.lang], batch.source(column)
            own = self.join({SYNTACTIC: z[column], SEMANTIC: y[column]})
            predictions.append(decoder("reconstruct", column, own, side))
            if source != column:
                swapped = self.join({SYNTACTIC: z[column], SEMANTIC: y[source]})
                predictions.append(decoder("paraphrase", column, swapped, side))
            if self.position is not None:
                predictions.append(self.position(column, z[column], side))
        posteriors = {
            latent: {f"{latent}/{column}": posterior for column, posterior in of.items()}
            for latent, of in ((SEMANTIC, semantic), (SYNTACTIC, syntactic))
        }
        return Outputs(semantic, posteriors, predictions, negatives)

    @property
    def writes(self) -> tuple[str, ...]:
        """The languages in which the model generates text; empty if its decoders are bags of words, without order."""
        return () if any(isinstance(decoder, BagOfWords) for decoder in self.decoders.values()) else self.langs

    def decoder(self, lang: str) -> Decoder:
        """Return the decoder p(sentence | z, y) of that language; UsageError if the decoders are bags of words."""
        if not self.writes:
            raise UsageError(
                "This model's decoder is a bag of words, without word order, so "
                "it can't generate sentences; train one with model.decoder=lstm."
            )
        return super().decoder(lang)

    def join(self, latents: Mapping[str, Tensor]) -> Tensor:
        """Concatenate the latents into a decoder's input: [syntactic ; semantic], (B, L_syntactic + L)."""
        return torch.cat([latents[latent] for latent in (SYNTACTIC, SEMANTIC) if latent in latents], dim=-1)
