"""The Bilingual Generative Transformer: the model of the BGT paper, a smaller model, and baselines.

"From" says which column of a row a model reads, and "to" says which columns it generates. Logit and Hidden are ways in
which a latent enters the decoder (see `FUSIONS`).

| recipe | from | to | published: STS 2012-2016 average, Pearson x 100 |
|---|---|---|---|
| bgt | each language | itself and the others | 73.1 |
| bilingual-trans | each language | the others | 71.4 |
| english-trans | the first | the others | 71.3 |
| english-ae | the first | itself | 65.7 |
| english-vae (a prior, decoded from a sample) | the first | itself | 65.9 |
| english-trans-lstm, Logit | the first | the others | 69.4 |
| english-vae-lstm, Logit | the first | itself | no score; with Hidden and Logit, I(x; z) is 2.46 nats |

We have not trained these models at the paper's sizes. The paper does not state the batch size of English-AE; here it is
25,000 tokens, as for BGT and for the systems with a prior or an LSTM. The paper's baselines with a margin loss are in
`paraphrastic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from bgt_core.backend import Linear
from bgt_core.contracts import SEMANTIC, Batch, Outputs, Prediction, Readout, Role
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice
from bgt_core.models.bgt import BGT, LatentModel
from bgt_core.nets import encoders
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import Encoder, GaussianHead, NoLatent, PointHead, SharedVarianceHead, SIFPooling
from bgt_core.nets.layers import Transformer, make_embedding
from bgt_core.nets.lstm import BiLSTM, LSTMDecoder
from bgt_core.nets.output import OutputLayer, PlainOutput, TiedOutput, UntiedOutput
from bgt_core.posterior import Point, readout_named, sample
from bgt_core.recipes import WideAsTokens

FUSIONS = {  # kind of decoder -> the places where a latent can enter it (BGT paper, sec. 2)
    "transformer": ("word", "attention", "logit"),
    "lstm": ("word", "hidden", "attention", "logit"),
}
Table = Callable[[], nn.Embedding]


def table_maker(vocab_size: int, width: int, tie_embeddings: bool) -> Table:
    """Return a function that makes new token embeddings (V, H) at each call, as in the authors' code. With
    `tie_embeddings`, every call returns the same embeddings, so that all encoders and decoders share them."""
    if not tie_embeddings:
        return lambda: make_embedding(vocab_size, width)
    one = make_embedding(vocab_size, width)
    return lambda: one


def output(new_table: Table, vocab_size: int, width: int, latent: int, tie: bool, logit: bool) -> OutputLayer:
    """Make an output layer. If `tie`, its weights are token embeddings; if `logit`, its input includes the latent."""
    if tie:
        return TiedOutput(new_table(), latent) if logit else PlainOutput(new_table())
    return UntiedOutput(vocab_size, width, latent) if logit else PlainOutput.untied(vocab_size, width)


@dataclass(frozen=True, kw_only=True)
class PaperConfig(WideAsTokens):
    """The settings of the BGT paper's networks: encoders have 5 layers, decoders have 1."""

    fuse: tuple[str, ...] = ("attention", "logit")  # where latents enter decoders (see FUSIONS)
    prior: bool = False  # if false, posteriors are points, and there is no KL term
    tie_embeddings: bool = False  # if true, all nets and output layers share token embeddings
    d_model: int = 1024
    encoder_layers: int = 5
    decoder_layers: int = 1
    ffn_dim: int = 1024
    heads: int = 8
    dropout: float = 0.3
    readout: str = "sample"  # decoders get a "sample" of each posterior, or its "mean"
    log_variance: float = 0.0  # initial log variance of each posterior

    body = "transformer"
    word_dropout = 0.0

    def nets(self, vocab_size: int) -> tuple[Callable[[], nn.Module], Callable[[int], nn.Module]]:
        """Return two functions: one makes an encoder's body; the other, a decoder for a latent of a given width."""
        check_choice(FUSIONS, body=self.body)
        if not self.fuse or not set(self.fuse) <= set(FUSIONS[self.body]):
            text = f"for {self.body} choose one or more of {', '.join(FUSIONS[self.body])}"
            raise UsageError(f"fuse {[*self.fuse]}: {text}")
        width, dropout = self.d_model, self.dropout
        new_table = table_maker(vocab_size, width, self.tie_embeddings)

        def body() -> nn.Module:
            if self.body == "lstm":
                return BiLSTM(new_table(), self.encoder_layers, dropout)
            return Transformer(new_table(), self.encoder_layers, self.ffn_dim, self.heads, dropout)

        def decoder(latent: int) -> nn.Module:
            layer = output(new_table, vocab_size, width, latent, self.tie_embeddings, "logit" in self.fuse)
            if self.body == "lstm":
                return LSTMDecoder(new_table(), layer, latent, self.decoder_layers, dropout, self.fuse)
            sized = partial(TransformerDecoder, layers=self.decoder_layers, ffn_dim=self.ffn_dim, heads=self.heads)
            return sized(new_table(), layer, latent, dropout=dropout, word_dropout=self.word_dropout, fuse=self.fuse)

        return body, decoder

    def head(self) -> nn.Module:
        """Make the last layer of an encoder, which maps sentence vectors to posteriors."""
        width = self.d_model
        return GaussianHead(width, width, self.log_variance) if self.prior else PointHead(width, width)


@dataclass(frozen=True, kw_only=True)
class BGTConfig(PaperConfig):
    """The BGT paper's model. For two languages: three encoders and four decoders, which share no token embeddings."""

    prior: bool = True
    language_latents: bool = True  # if false, sentences are reconstructed from the semantic latent alone
    word_dropout: float = 0.0  # share of the previous tokens that are hidden from the decoders
    average: bool = False  # not in the paper: add a weighted average of token vectors to the Transformer's output
    teacher_dim: int = 0  # dimension of the teacher model's vectors (`--teacher`); 0: no teacher

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> BGT:
        langs, width = dict.fromkeys(columns.values()), self.d_model
        body, decoder = self.nets(tokenizer.vocab_size)

        def averaging() -> Encoder:
            pooling = encoders.ResidualPooling(SIFPooling(torch.from_numpy(tokenizer.probabilities()), width), body())
            return Encoder(pooling, SharedVarianceHead(width, self.log_variance) if self.prior else Point)

        return BGT(
            encoders={
                SEMANTIC: averaging() if self.average else Encoder(body(), self.head()),
                **{lang: Encoder(body(), self.head()) if self.language_latents else NoLatent() for lang in langs},
            },
            decoders={lang: decoder(2 * width if self.language_latents else width) for lang in langs},
            translators={lang: decoder(width) for lang in langs},
            readout=readout_named(self.readout),
            # The map to teacher vectors is made last, so that other parameters have the same initial values without it.
            teacher=Linear(width, self.teacher_dim, bias=False) if self.teacher_dim else None,
        )


@dataclass(frozen=True, kw_only=True)
class BGTSmallConfig:
    """A BGT whose semantic mean is an average of token vectors. All other nets are small and share token embeddings."""

    d_model: int = 256
    semantic_dim: int = 576
    train_rarity: bool = False  # learn each token's weight in the average; if false, use SIF weights
    language_dim: int = 64
    language_layers: int = 1
    decoder_layers: int = 1
    ffn_dim: int = 512
    heads: int = 4
    dropout: float = 0.0
    word_dropout: float = 0.2
    readout: str = "sample"
    log_variance: float = -3.0
    teacher_dim: int = 0  # dimension of the teacher model's vectors (`--teacher`); 0: no teacher
    train_decoders: bool = True  # if false, only the semantic encoder learns; train the rest later (--init-from)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> BGT:
        langs, semantic, language = dict.fromkeys(columns.values()), self.semantic_dim, self.language_dim
        table = make_embedding(tokenizer.vocab_size, self.d_model)
        average = SIFPooling(torch.from_numpy(tokenizer.probabilities()), semantic, trained=self.train_rarity)

        def encoder() -> Encoder:
            body = Transformer(table, self.language_layers, self.ffn_dim, self.heads, self.dropout)
            return Encoder(body, GaussianHead(self.d_model, language, self.log_variance))

        def decoders(latent: int) -> dict[str, nn.Module]:
            sized = partial(TransformerDecoder, layers=self.decoder_layers, ffn_dim=self.ffn_dim, heads=self.heads)
            sized = partial(sized, dropout=self.dropout, word_dropout=self.word_dropout)
            return {lang: sized(table, TiedOutput(table, latent), latent) for lang in langs}

        return BGT(
            encoders={
                SEMANTIC: Encoder(average, SharedVarianceHead(semantic, self.log_variance)),
                **{lang: encoder() for lang in langs},
            },
            decoders=decoders(language + semantic),
            translators=decoders(semantic),
            readout=readout_named(self.readout),
            teacher=Linear(semantic, self.teacher_dim, bias=False) if self.teacher_dim else None,
            train_decoders=self.train_decoders,
        )


TASKS = ("translate-both", "translate", "reconstruct")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(PaperConfig):
    """A model with one encoder, and one decoder per target language.

    The BGT paper's "BGT w/o LangVars" can be read in two ways: as `bilingual-trans` with `prior=true`, and as
    `bgt-without-langvars`.
    """

    # translate-both: each column is generated from another column. translate: all other columns are generated from the
    # first. reconstruct: the first column is generated from itself.
    task: str = "translate-both"
    body: str = "transformer"  # "transformer", or "lstm" (without `ffn_dim` and `heads`)

    def __post_init__(self) -> None:
        check_choice(TASKS, task=self.task)

    def make_model(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Seq2Seq:
        role: Role = "reconstruct" if self.task == "reconstruct" else "translate"
        if role == "translate" and len(columns) < 2:
            raise UsageError(f"{', '.join(columns)}: a translation needs two columns; add one", parameter="columns")
        first, *others = columns
        sources = columns if self.task == "translate-both" else {first: columns[first]}
        written = others if self.task == "translate" else sources
        body, decoder = self.nets(tokenizer.vocab_size)
        encoder = Encoder(body(), self.head())
        decoders = {lang: decoder(self.d_model) for lang in dict.fromkeys(columns[column] for column in written)}
        return Seq2Seq(encoder, decoders, sources, role, readout_named(self.readout))


class Seq2Seq(LatentModel):
    """One semantic encoder for the columns in `sources` (name -> language), and one decoder per target language.

    If `role` is "reconstruct", each source column is generated from itself, as in an autoencoder. If it is "translate",
    each column is generated from the column `Batch.source`; if the model does not encode that column, from the first
    column that it encodes.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoders: Mapping[str, nn.Module],
        sources: Mapping[str, str],
        role: Role,
        readout: Readout = sample,
    ):
        super().__init__(tuple(dict.fromkeys(sources.values())), {SEMANTIC: encoder})
        self.decoders = nn.ModuleDict({f"{role}/{lang}": decoder for lang, decoder in decoders.items()})
        self.sources, self.role, self.readout = tuple(sources), role, readout

    def forward(self, batch: Batch, readout: Readout | None = None) -> Outputs:
        readout = readout or self.readout
        semantic = {
            column: self.encoders[SEMANTIC](side) for column, side in batch.sides.items() if column in self.sources
        }
        if not semantic:
            columns, sources = ", ".join(batch.sides), ", ".join(self.sources)
            raise UsageError(f"{columns}: each corpus needs one of the source columns {sources}", parameter="columns")
        latents = {column: readout(each) for column, each in semantic.items()}  # (B, L), one draw per sentence
        predictions: list[Prediction] = []
        for column, side in batch.sides.items():
            source = self.source(batch, column)
            if source in latents:
                decoder = self.decoders[f"{self.role}/{side.lang}"]
                predictions.append(decoder(self.role, column, latents[source], side))
        anchor = batch.anchor if batch.anchor in semantic else next(iter(semantic))  # only its KL is in the loss
        return Outputs(semantic, {SEMANTIC: {SEMANTIC: semantic[anchor]}}, predictions)

    def source(self, batch: Batch, column: str) -> str | None:
        """Return the column from which `column` is generated; None if `column` is not generated."""
        if self.role == "reconstruct":
            return column
        if (source := batch.source(column)) in self.sources:
            return source if source != column else None
        first = next(source for source in self.sources if source in batch.sides)
        return first if first != column else None
