"""The paper's baselines without a joint generative model: translation and autoencoding.

| recipe | from | to | published: STS 2012-2016 average, Pearson x 100 |
|---|---|---|---|
| bilingual-trans | each language | the others | 71.4 |
| english-trans | the first | the others | 71.3 |
| english-ae | the first | itself | 65.7 |
| english-vae (a prior, decoded from a sample) | the first | itself | 65.9 |
| english-trans-lstm, Logit | the first | the others | 69.4 |
| english-vae-lstm, Logit | the first | itself | none; of Hidden + Logit the mutual information is 2.46 |

Not yet trained by us at these sizes. The paper does not state English-AE's batch; it is BGT's here, 25,000 tokens, as
for the systems with a prior or an LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bgt_core.contracts import SEMANTIC, Role
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError, check_choice
from bgt_core.models.seq2seq import Seq2Seq
from bgt_core.nets.encoders import Encoder, GaussianHead, PointHead
from bgt_core.objectives.combine import Sum
from bgt_core.objectives.elbo import Elbo
from bgt_core.recipes.parts import builders
from bgt_core.recipes.recipe import Recipe
from bgt_core.training.config import TrainConfig

TASKS = ("translate-both", "translate", "reconstruct")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
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

    @property
    def semantic_dim(self) -> int:
        """Units of the semantic latent."""
        return self.d_model

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
