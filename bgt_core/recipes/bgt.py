"""The Bilingual Generative Transformer: the paper's, small ones, and its baselines that translate or autoencode.

| recipe | from | to | published: STS 2012-2016 average, Pearson x 100 |
|---|---|---|---|
| bgt | each language | itself and the others | 73.1 |
| bilingual-trans | each language | the others | 71.4 |
| english-trans | the first | the others | 71.3 |
| english-ae | the first | itself | 65.7 |
| english-vae (a prior, decoded from a sample) | the first | itself | 65.9 |
| english-trans-lstm, Logit | the first | the others | 69.4 |
| english-vae-lstm, Logit | the first | itself | none; of Hidden + Logit the mutual information is 2.46 |

Not yet trained by us at these sizes. The paper does not state English-AE's batch; it is BGT's here, 25,000 tokens, as
for the systems with a prior or an LSTM. Its baselines with a margin loss are in `paraphrastic`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from bgt_core.backend import Linear
from bgt_core.contracts import LANGUAGE, SEMANTIC, Role
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice, check_least
from bgt_core.models.bgt import BGT
from bgt_core.models.seq2seq import Seq2Seq
from bgt_core.models.siamese import PairClassifier
from bgt_core.nets.decoder import TransformerDecoder
from bgt_core.nets.encoders import (
    Encoder,
    GaussianHead,
    NoLatent,
    PointHead,
    ResidualPooling,
    SharedVarianceHead,
    SIFPooling,
)
from bgt_core.nets.layers import Transformer, make_embedding
from bgt_core.nets.lstm import BiLSTM, LSTMDecoder
from bgt_core.nets.output import OutputLayer, PlainOutput, TiedOutput, UntiedOutput
from bgt_core.objectives import Sum
from bgt_core.objectives.elbo import CrossEntropy, Elbo
from bgt_core.objectives.similarity import Contrast, Distillation, Margin
from bgt_core.posterior import Point
from bgt_core.recipes.recipe import DataConfig, ModelConfig, Recipe, TrainConfig, WideAsTokens

FUSIONS = {  # where the latent can enter each kind of decoder (paper, sec. 2)
    "transformer": ("word", "attention", "logit"),
    "lstm": ("word", "hidden", "attention", "logit"),
}
Table = Callable[[], nn.Embedding]


def tables(vocab_size: int, width: int, tie_embeddings: bool) -> Table:
    """Return a function that makes a new table (V, H) at each call, as in the released code; with `tie_embeddings` it
    returns one table for all nets."""
    if not tie_embeddings:
        return lambda: make_embedding(vocab_size, width)
    one = make_embedding(vocab_size, width)
    return lambda: one


def output(table: Table, vocab_size: int, width: int, latent: int, tie_embeddings: bool, logit: bool) -> OutputLayer:
    """A decoder's last layer: with `tie_embeddings` tied to the table, with `logit` fused with the latent."""
    if tie_embeddings:
        return TiedOutput(table(), latent) if logit else PlainOutput(table())
    return UntiedOutput(vocab_size, width, latent) if logit else PlainOutput.untied(vocab_size, width)


def builders(
    vocab_size: int,
    *,
    width: int,
    encoder_layers: int,
    decoder_layers: int,
    ffn_dim: int,
    heads: int,
    dropout: float,
    tie_embeddings: bool,
    fuse: Collection[str],
    word_dropout: float = 0.0,
    kind: str = "transformer",
) -> tuple[Callable[[], nn.Module], Callable[[int], nn.Module]]:
    """Return functions that make an encoder's body, and a decoder for a latent of a given width.

    `fuse` says where the latent enters the decoder. `ffn_dim`, `heads` and `word_dropout` are the Transformer's.
    UsageError for an unknown kind or fusion.
    """
    check_choice(FUSIONS, body=kind)
    if not fuse or not set(fuse) <= set(FUSIONS[kind]):
        raise UsageError(f"fuse {[*fuse]}: for {kind} choose one or more of {', '.join(FUSIONS[kind])}")
    table = tables(vocab_size, width, tie_embeddings)

    def body() -> nn.Module:
        if kind == "lstm":
            return BiLSTM(table(), encoder_layers, dropout)
        return Transformer(table(), encoder_layers, ffn_dim, heads, dropout)

    def decoder(latent: int) -> nn.Module:
        layer = output(table, vocab_size, width, latent, tie_embeddings, "logit" in fuse)
        if kind == "lstm":
            return LSTMDecoder(table(), layer, latent, decoder_layers, dropout, fuse)
        return TransformerDecoder(table(), layer, latent, decoder_layers, ffn_dim, heads, dropout, word_dropout, fuse)

    return body, decoder


def teacher_head(latent: int, units: int) -> nn.Module | None:
    """A linear map of the semantic mean to a teacher's vectors of that width; None for 0.

    It must be made last, so that all other parts get the same initial values as without it.
    """
    return Linear(latent, units, bias=False) if units else None


NO_FREE_NATS = {SEMANTIC: 0.0, LANGUAGE: 0.0}


@dataclass(frozen=True, kw_only=True)
class BGTConfig(WideAsTokens):
    """Three encoders of 5 layers and four decoders of 1, without shared tables: the paper's sizes.

    Beyond the paper, `average` makes the semantic mean a weighted average of token vectors that the Transformer
    corrects.
    """

    fuse: tuple[str, ...] = ("attention", "logit")  # where the latent enters decoders; "word" too
    prior: bool = True  # without one, posteriors are points without KL
    language_latents: bool = True  # without them, all sides are reconstructed from the semantic latent alone
    tie_embeddings: bool = False  # one token table for all nets, tied to the outputs
    d_model: int = 1024
    encoder_layers: int = 5
    decoder_layers: int = 1
    ffn_dim: int = 1024
    heads: int = 8
    dropout: float = 0.3
    word_dropout: float = 0.0  # share of past tokens hidden from the decoders
    average: bool = False
    readout: str = "sample"  # input of reconstruction: a sample of the posteriors, or their mean
    log_variance: float = 0.0  # initial value of posteriors
    teacher_dim: int = 0  # units of the vectors that --teacher gives; 0: none

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> BGT:
        """An untrained model for the columns' languages."""
        langs, width = dict.fromkeys(columns.values()), self.d_model
        body, decoder = builders(
            tokenizer.vocab_size,
            width=width,
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            ffn_dim=self.ffn_dim,
            heads=self.heads,
            dropout=self.dropout,
            tie_embeddings=self.tie_embeddings,
            fuse=self.fuse,
            word_dropout=self.word_dropout,
        )

        def encoder() -> Encoder:
            reader = body()
            return Encoder(
                reader, GaussianHead(width, width, self.log_variance) if self.prior else PointHead(width, width)
            )

        def averaging() -> Encoder:
            pooling = ResidualPooling(SIFPooling(torch.from_numpy(tokenizer.probabilities()), width), body())
            return Encoder(pooling, SharedVarianceHead(width, self.log_variance) if self.prior else Point)

        return BGT(
            encoders={
                SEMANTIC: averaging() if self.average else encoder(),
                **{lang: encoder() if self.language_latents else NoLatent() for lang in langs},
            },
            decoders={lang: decoder(2 * width if self.language_latents else width) for lang in langs},
            translators={lang: decoder(width) for lang in langs},
            readout=self.readout,
            teacher=teacher_head(width, self.teacher_dim),
        )


@dataclass(frozen=True, kw_only=True)
class BGTSmallConfig:
    """A semantic mean that averages token vectors, narrow language latents, one token table for all, tied."""

    d_model: int = 256
    semantic_dim: int = 576
    train_rarity: bool = False  # learn the average's weights of tokens, which are otherwise SIF's
    language_dim: int = 64
    language_layers: int = 1
    decoder_layers: int = 1
    ffn_dim: int = 512
    heads: int = 4
    dropout: float = 0.0
    word_dropout: float = 0.2
    readout: str = "sample"
    log_variance: float = -3.0
    teacher_dim: int = 0  # units of the vectors that --teacher gives; 0: none
    train_decoders: bool = True  # if false, only the semantic encoder learns: a first stage, for --init-from

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> BGT:
        """An untrained model for the columns' languages."""
        langs, semantic, language = dict.fromkeys(columns.values()), self.semantic_dim, self.language_dim
        table = make_embedding(tokenizer.vocab_size, self.d_model)
        average = SIFPooling(torch.from_numpy(tokenizer.probabilities()), semantic, trained=self.train_rarity)

        def encoder() -> Encoder:
            body = Transformer(table, self.language_layers, self.ffn_dim, self.heads, self.dropout)
            return Encoder(body, GaussianHead(self.d_model, language, self.log_variance))

        def decoders(latent: int) -> dict[str, nn.Module]:
            sizes = self.decoder_layers, self.ffn_dim, self.heads, self.dropout, self.word_dropout
            return {lang: TransformerDecoder(table, TiedOutput(table, latent), latent, *sizes) for lang in langs}

        return BGT(
            encoders={
                SEMANTIC: Encoder(average, SharedVarianceHead(semantic, self.log_variance)),
                **{lang: encoder() for lang in langs},
            },
            decoders=decoders(language + semantic),
            translators=decoders(semantic),
            readout=self.readout,
            teacher=teacher_head(semantic, self.teacher_dim),
            train_decoders=self.train_decoders,
        )


def bgt() -> Recipe:
    """The paper's model at the paper's sizes:

        bgt train bgt --langs en,fr --data opensubtitles.en-fr.tsv.gz --out runs/bgt

    Published with 1,000,000 pairs, 20 epochs: STS 2012-2016 average 73.1 (Pearson x 100). Not yet trained by us at this
    size. Past the paper, and off: a margin loss on the semantic means (`objective.margin.weight`), a softmax over the
    batch (`objective.contrast.weight`), and weights of each kind of latent's KL (`objective.elbo.weights.semantic`).
    """
    return Recipe(
        name="bgt",
        model=BGTConfig(),
        objective=Sum(
            {
                "elbo": Elbo(weights={SEMANTIC: 1.0, LANGUAGE: 1.0}, free_nats=NO_FREE_NATS),
                "margin": Margin(weight=0.0),
                "contrast": Contrast(weight=0.0),
                "distillation": Distillation(weight=0.0),
            }
        ),
        train=TrainConfig(batch_tokens=25_000),
    )


def bgt_plus() -> Recipe:
    """The paper's model with our improvements, each optional: an average that the Transformer corrects, a margin loss,
    KL weights, narrow initial posteriors, word dropout."""
    paper, elbo = bgt(), Elbo(weights={SEMANTIC: 0.02, LANGUAGE: 0.4}, free_nats=NO_FREE_NATS)
    return replace(
        paper,
        name="bgt-plus",
        model=BGTConfig(average=True, log_variance=-3.0, word_dropout=0.2),
        objective=Sum({**paper.objective, "elbo": elbo, "margin": Margin(weight=200.0)}),
    )


def bgt_mean() -> Recipe:
    """Reconstruction from posterior means, as in the released code."""
    return replace(bgt(), name="bgt-mean", model=BGTConfig(readout="mean"))


def bgt_without_langvars() -> Recipe:
    """Both sides are reconstructed from the semantic latent alone; published 72.3.

    The paper describes it twice, as BGT without its language variables (this) and as BilingualTrans with a prior
    (`bilingual-trans` with `model.prior=true`); the code was not released.
    """
    return replace(bgt(), name="bgt-without-langvars", model=BGTConfig(language_latents=False))


def bgt_without_prior() -> Recipe:
    """Posteriors that are points, without KL; published 71.6, with 50,000 tokens per update."""
    paper = bgt()
    train = replace(paper.train, batch_tokens=50_000)
    return replace(paper, name="bgt-without-prior", model=BGTConfig(prior=False), train=train)


def random_encoder() -> Recipe:
    """The paper's model before training; published 48.1."""
    paper = bgt()
    return replace(paper, name="random-encoder", train=replace(paper.train, epochs=0.0))


def bgt_small() -> Recipe:
    """The small model: the paper's parts, made to learn on a laptop in an hour.

        bgt train bgt-small --langs en,fr --data pairs.tsv.xz --out runs/small

    Differences from `bgt`: the semantic mean is the average of the sentence's token vectors, and a margin
    loss trains it too (averages are good after minutes, Transformers after days); language latents are narrow; KL
    weights allow the semantic latent much information and the language latents little; one token table serves
    all nets, tied to the output; decoders use word dropout.

    An average does not hold the order of words; the semantic latent of `bgt-bound` does.

    With a teacher (`--teacher`) the average may learn the weight of each token (`model.train_rarity=true`).
    """
    return Recipe(
        name="bgt-small",
        model=BGTSmallConfig(),
        objective=Sum(
            {
                "elbo": Elbo(warmup_steps=100, weights={SEMANTIC: 0.01, LANGUAGE: 0.4}, free_nats=NO_FREE_NATS),
                "margin": Margin(margin=0.6, weight=200.0),
                "distillation": Distillation(weight=0.0),
            }
        ),
        data=DataConfig(vocab_size=8_000, min_tokens=3, valid_pairs=2_000),
        train=TrainConfig(
            epochs=2.5,
            batch_tokens=2_000,
            micro_tokens=2_000,
            learning_rate=3e-3,
            warmup_steps=150,
            cooldown=0.4,
            valid_every=400,
            save_every=400,
        ),
    )


TASKS = ("translate-both", "translate", "reconstruct")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(WideAsTokens):
    """One encoder, and one decoder per target language.

    `task` is "translate-both" (each column from another), "translate" (the others from the first column) or
    "reconstruct" (the first from itself). With `body="lstm"`, `fuse` takes "word", "hidden", "attention" and "logit" in
    any combination; `ffn_dim` and `heads` are the Transformer's. BilingualTrans with `prior=true` is the stricter
    reading of the paper's "BGT w/o LangVars": see `bgt_without_langvars`.
    """

    task: str = "translate-both"
    body: str = "transformer"
    fuse: tuple[str, ...] = ("attention", "logit")
    prior: bool = False
    tie_embeddings: bool = False
    d_model: int = 1024
    encoder_layers: int = 5
    decoder_layers: int = 1
    ffn_dim: int = 1024
    heads: int = 8
    dropout: float = 0.3
    readout: str = "sample"
    log_variance: float = 0.0

    def __post_init__(self) -> None:
        check_choice(TASKS, task=self.task)

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> Seq2Seq:
        """An untrained model; UsageError for a translation of fewer than two columns."""
        role: Role = "reconstruct" if self.task == "reconstruct" else "translate"
        if role == "translate" and len(columns) < 2:
            raise UsageError(f"{', '.join(columns)}: a translation needs two columns", parameter="columns")
        first, *others = columns
        sources = columns if self.task == "translate-both" else {first: columns[first]}
        written = others if self.task == "translate" else sources
        width = self.d_model
        body, decoder = builders(
            tokenizer.vocab_size,
            width=width,
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            ffn_dim=self.ffn_dim,
            heads=self.heads,
            dropout=self.dropout,
            tie_embeddings=self.tie_embeddings,
            fuse=self.fuse,
            kind=self.body,
        )
        reader = body()  # first, because it raises the error for a bad `d_model`
        head = GaussianHead(width, width, self.log_variance) if self.prior else PointHead(width, width)
        decoders = {lang: decoder(width) for lang in dict.fromkeys(columns[column] for column in written)}
        return Seq2Seq(Encoder(reader, head), decoders, sources, role, self.readout)


def bilingual_trans() -> Recipe:
    """Each language from the other; 50,000 tokens per update, losses averaged over directions (released code)."""
    return Recipe(
        name="bilingual-trans",
        model=Seq2SeqConfig(),
        objective=Sum({"elbo": Elbo(weights={SEMANTIC: 1.0}, free_nats={SEMANTIC: 0.0}, average_predictions=True)}),
        train=TrainConfig(batch_tokens=50_000),
    )


def english_trans() -> Recipe:
    """The others from the first."""
    return replace(bilingual_trans(), name="english-trans", model=Seq2SeqConfig(task="translate"))


def english_ae() -> Recipe:
    """The first from itself; needs no second column."""
    train = TrainConfig(batch_tokens=25_000)
    return replace(bilingual_trans(), name="english-ae", model=Seq2SeqConfig(task="reconstruct"), train=train)


def english_vae() -> Recipe:
    """The first from a sample of its posterior; needs no second column."""
    return replace(english_ae(), name="english-vae", model=Seq2SeqConfig(task="reconstruct", prior=True))


# One layer each way and Logit (paper, app. A), Adam at a fixed rate (sec. 4.2), the batch it does best with (app. B).
LSTM_TRAIN = TrainConfig(batch_tokens=25_000, learning_rate=1e-3, warmup_steps=0)


def english_trans_lstm() -> Recipe:
    """`english_trans` with LSTMs."""
    model = Seq2SeqConfig(task="translate", body="lstm", fuse=("logit",), encoder_layers=1)
    return replace(bilingual_trans(), name="english-trans-lstm", model=model, train=LSTM_TRAIN)


def english_vae_lstm() -> Recipe:
    """`english_vae` with LSTMs; the paper trained these with `train.aggressive_steps=100`."""
    model = Seq2SeqConfig(task="reconstruct", prior=True, body="lstm", fuse=("logit",), encoder_layers=1)
    return replace(bilingual_trans(), name="english-vae-lstm", model=model, train=LSTM_TRAIN)


@dataclass(frozen=True, kw_only=True)
class PairClassifierConfig:
    """The model underneath, and the number of classes."""

    base: ModelConfig = field(default_factory=BGTSmallConfig)
    classes: int = 3

    def __post_init__(self) -> None:
        check_least(2, classes=self.classes)

    @property
    def semantic_dim(self) -> int:
        """The width of the model underneath."""
        return self.base.semantic_dim

    def build(self, tokenizer: Tokenizer, columns: Mapping[str, str]) -> PairClassifier:
        """An untrained model for the columns' languages."""
        base = self.base.build(tokenizer, columns)
        return PairClassifier(base, self.semantic_dim, self.classes)


def pair_classifier() -> Recipe:
    """A linear classifier on semantic means, which stay fixed as in `init_from`; `freeze=[]` trains them too.

    The model underneath is that of the checkpoint `init_from`.
    """
    return Recipe(
        name="pair-classifier",
        base="bgt-small",
        model=PairClassifierConfig(),
        objective=Sum({"cross_entropy": CrossEntropy()}),
        data=DataConfig(columns=("a:en", "b:en", "gold:label"), min_tokens=1, valid_pairs=500),
        train=TrainConfig(epochs=5.0, batch_tokens=5_000, learning_rate=1e-3, warmup_steps=0, weight_decay=0.0),
        freeze=("encoders",),
    )
