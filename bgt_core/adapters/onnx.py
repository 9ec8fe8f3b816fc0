"""An encoder as an ONNX file: piece ids in, vectors out, no torch needed to run it. Needs the extra `onnx`.

    OUT/model.onnx       input_ids, attention_mask (B, T) int64 -> sentence_embedding (B, L) float32
    OUT/tokenizer.model  SentencePiece: text to ids
    OUT/onnx.json        what to know of both

Models compute on packed pieces, whose number only the data tell; a graph wants shapes that follow from the inputs.
So each body is written here once more, over all B x T places, from the same parameters; what it gives is compared with
the model's own before the folder appears.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core import checkpoint
from bgt_core.checkpoint import Checkpoint
from bgt_core.contracts import EOS, PAD, SEMANTIC, Tokens
from bgt_core.embedder import Embedder
from bgt_core.errors import DataError, UsageError, needs
from bgt_core.nets.encoders import Encoder
from bgt_core.nets.packing import Layout
from bgt_core.nets.pooling import SIFPooling
from bgt_core.nets.transformer import Transformer

MODEL, ABOUT = "model.onnx", "onnx.json"
TOLERANCE = 1e-4  # largest difference of a unit that is taken for rounding
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"


def export(found: Checkpoint, out: Path, *, latent: str = SEMANTIC, lang: str | None = None) -> float:
    """Write the encoder of a latent; returns the largest difference to torch that was seen, in a vector's unit.

    `lang`, the model's first unless given, matters to the language latent alone. Whole or not at all: raises BgtError
    for a latent or language the model lacks, a body without a form for export, a folder that is there already, and
    where the file differs from torch by more than 1e-4.
    """
    for module in ("onnx", "onnxruntime", "onnxscript"):
        needs(module, "onnx")
    lang = lang or found.recipe.reads[0]
    embedder = Embedder(found.model.cpu(), found.tokenizer, found.recipe.reads, "fp32")
    encoder = found.model.encoders[embedder.encoder_name(lang, latent)]
    padded = Padded(encoder).eval()
    with checkpoint.new_folder(out) as partial:
        write(padded, partial / MODEL)
        worst = difference(encoder, partial / MODEL, found.tokenizer.vocab_size)
        if not worst <= TOLERANCE:
            raise DataError(f"{out}: the ONNX file differs from the model by {worst:.1e}, above {TOLERANCE}; not kept.")
        found.tokenizer.save(partial / checkpoint.TOKENIZER)
        about = {
            "schema": "bgt-onnx/1",
            "latent": latent,
            "langs": [lang] if latent != SEMANTIC else list(found.recipe.reads),
            "width": embedder.width(lang, latent),
            "inputs": list(INPUTS),
            "output": OUTPUT,
            "text": "NFC, no control or invisible characters, single spaces; then tokenizer.model; then eos at the end",
            "pad": PAD,
            "eos": EOS,
            "weights": found.config["files"][checkpoint.WEIGHTS],
            "difference": worst,
        }
        (partial / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return worst


class Padded(nn.Module):
    """An encoder over all places of a padded batch: the same vectors, from the same parameters."""

    def __init__(self, encoder: Encoder):
        super().__init__()
        if type(encoder.body) not in FORMS:
            known = ", ".join(body.__name__ for body in FORMS)
            raise UsageError(f"A body of {type(encoder.body).__name__} has no form for ONNX; there are {known}.")
        self.encoder, self.form = encoder, FORMS[type(encoder.body)]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, T) pieces, (B, T) with 0 at padding -> posterior means (B, L)."""
        return self.encoder.head(self.form(self.encoder.body, input_ids, attention_mask.bool())).mean


class EveryPlace(Layout):
    """All B x T places, padding too: nothing is moved, and every size follows from B and T."""

    whole = True

    @property
    def columns(self) -> Tensor:
        """(B * T,)."""
        batch, length = self.shape
        return torch.arange(length).expand(batch, length).flatten()

    def join(self, x: Tensor) -> Tensor:
        """(B, heads, T, H / heads) -> (B * T, H)."""
        return x.transpose(1, 2).reshape(self.shape[0] * self.shape[1], -1)


def transformer(body: Transformer, ids: Tensor, mask: Tensor) -> Tensor:
    """`Transformer.forward` of (B, T) -> (B, H): attention sees, and the mean counts, real pieces alone."""
    batch, length = ids.shape
    layout = EveryPlace((batch, length), torch.arange(batch * length), mask)
    x = body.words(ids.flatten(), layout)  # (B * T, H)
    for layer in body.layers:
        x = layer(x, layout, mask[:, None, None, :])
    kept = x.view(batch, length, -1) * mask[..., None]
    return kept.sum(1) / mask.sum(1, keepdim=True)


def average(body: SIFPooling, ids: Tensor, mask: Tensor) -> Tensor:
    """`SIFPooling.forward` of (B, T) -> (B, H)."""
    counts = mask & (ids != EOS)  # (B, T)
    weights = body.rarity[ids] * counts * body.width**0.5
    total = (F.normalize(body.table(ids), dim=-1) * weights[..., None]).sum(1)
    return total / counts.sum(1, keepdim=True).clamp(min=1)


FORMS: dict[type[nn.Module], Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    SIFPooling: average,
    Transformer: transformer,
}


def write(padded: Padded, path: Path) -> None:
    """One ONNX file, for any B and T."""
    example = Tokens.pad([[4, 5, 6, EOS], [4, EOS], [4, 5, EOS]], "")
    dynamic = {name: {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")} for name in INPUTS}
    with torch.no_grad(), _quietly():
        program = torch.onnx.export(
            padded,
            (example.ids, example.mask.long()),
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_shapes=dynamic,
            dynamo=True,
            verbose=False,
        )
        program.save(path, external_data=False)


def difference(encoder: Encoder, path: Path, vocab_size: int) -> float:
    """The largest difference between the file and the model, of batches of many shapes drawn at random."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    seen = []
    for batch, longest in ((1, 1), (1, 40), (2, 2), (7, 12), (32, 100)):
        lengths = rng.integers(0, longest, batch)
        side = Tokens.pad([[*rng.integers(4, vocab_size, length), EOS] for length in lengths], "")
        with torch.no_grad():
            expected = encoder(side).mean.numpy()
        (given,) = session.run([OUTPUT], dict(zip(INPUTS, (side.ids.numpy(), side.mask.long().numpy()), strict=True)))
        seen.append(np.abs(given - expected).max())
    return float(np.max(seen))  # no number stays no number


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what the exporter says to its own developers: of torchvision, and of how it traces."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated")
            warnings.filterwarnings("ignore", message="# The axis name: .* will not be used")
            yield
    finally:
        logger.setLevel(before)
