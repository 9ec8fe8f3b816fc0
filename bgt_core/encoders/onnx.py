"""Export an encoder to an ONNX file, which runs without torch. Needs the extra `onnx`.

`export` writes a folder, and `open_encoder` opens it as an encoder:

    OUT/model.onnx       input_ids, attention_mask (B, T) int64 -> sentence_embedding (B, L) float32
    OUT/tokenizer.model  SentencePiece: text to ids
    OUT/onnx.json        settings of both files

Our models skip padding, so the number of positions that they compute depends on the data. In an ONNX graph, all shapes
follow from the shapes of the inputs, so the exported encoder computes all B x T positions (`PaddedLayout`). Before the
folder appears, the vectors of the exported file are compared with vectors that the model computes in double precision.
"""

import copy
import hashlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bgt_core import checkpoint
from bgt_core.checkpoint import Checkpoint
from bgt_core.contracts import EOS, PAD, SEMANTIC, Tokens
from bgt_core.data.columns import known_lang
from bgt_core.data.text import Tokenizer
from bgt_core.embedder import CPU_TOKENS, Embedder, by_length
from bgt_core.encoders.external import ExternalEncoder
from bgt_core.errors import DataError, NotFound, needs
from bgt_core.files import atomic_folder, read_json, sha256_file
from bgt_core.nets.operations import PaddedLayout

MODEL, ABOUT, SCHEMA = "model.onnx", "onnx.json", "bgt-onnx/1"
TOLERANCE = 1e-3  # maximum relative difference that rounding may cause; it corresponds to a cosine of 0.9999995
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"


def export(loaded: Checkpoint, out: Path, *, latent: str = SEMANTIC, lang: str | None = None) -> float:
    """Export the encoder of a latent to a new folder. Return the `difference` between the exported file and the model.

    `lang`, by default the model's first language, only matters for the language latent. The folder is written
    completely or not at all. Raises UsageError if the model lacks the latent or the language, or if the folder exists;
    DataError if the difference is above 1e-3.
    """
    for module in ("onnx", "onnxruntime", "onnxscript"):
        needs(module, "onnx")
    lang = known_lang(lang or loaded.model.langs[0], loaded.model.langs, "this model")
    embedder = Embedder(loaded.model.cpu(), loaded.tokenizer, loaded.model.langs, "fp32")
    encoder = embedder.encoder(latent, lang)
    padded = Padded(encoder).eval()
    with atomic_folder(out) as partial:
        write(padded, partial / MODEL)
        worst = difference(encoder, partial / MODEL, loaded.tokenizer.vocab_size)
        if not worst <= TOLERANCE:
            raise DataError(
                f"{out}: not written: its vectors differ from the model's by {worst:.1e} (limit {TOLERANCE})."
            )
        loaded.tokenizer.save(partial / checkpoint.TOKENIZER)
        about = {
            "schema": SCHEMA,
            "latent": latent,
            "langs": [lang] if latent != SEMANTIC else list(loaded.model.langs),
            "width": embedder.width(lang, latent),
            "inputs": list(INPUTS),
            "output": OUTPUT,
            "text": "NFC, no control or invisible characters, single spaces; then tokenizer.model; then eos at the end",
            "pad": PAD,
            "eos": EOS,
            "weights": loaded.config["files"][checkpoint.WEIGHTS],
            "difference": worst,
        }
        (partial / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return worst


def open_encoder(name: str | Path, device: str = "cpu", precision: str = "fp32") -> ExternalEncoder:
    """Open a folder that `export` wrote, as an encoder with one latent. ONNX Runtime runs the encoder on the CPU.

    Raises NotFound if ONNX Runtime or a file is absent, DataError if a file is damaged.
    """
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf

    folder = Path(name)
    for file in (ABOUT, MODEL, checkpoint.TOKENIZER):
        if not (folder / file).is_file():
            raise NotFound(f"{folder / file}: missing. Export the model again by `bgt export --to onnx`.")
    about = read_json(folder / ABOUT)
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise DataError(f"{folder / ABOUT}: expected schema {SCHEMA}. Export it again by `bgt export --to onnx`.")
    tokenizer = Tokenizer.load(folder / checkpoint.TOKENIZER)
    try:
        session = onnxruntime.InferenceSession(folder / MODEL, providers=["CPUExecutionProvider"])
    except (Fail, InvalidGraph, InvalidProtobuf) as error:
        raise DataError(f"{folder / MODEL}: not an ONNX file ({error}). Export it again.") from None

    def embed(texts: list[str], lang: str, latent: str) -> np.ndarray:
        ids = tokenizer.encode(texts)
        vectors = np.empty((len(texts), about["width"]), np.float32)
        for rows in by_length([len(sentence) for sentence in ids], CPU_TOKENS, CPU_TOKENS):
            padded = np.full((len(rows), len(ids[rows[0]])), about["pad"], np.int64)  # (B, T), longest sentence first
            for place, row in zip(padded, rows, strict=True):
                place[: len(ids[row])] = ids[row]
            inputs = (padded, (padded != about["pad"]).astype(np.int64))
            (vectors[rows],) = session.run([about["output"]], dict(zip(about["inputs"], inputs, strict=True)))
        return vectors

    fingerprint = hashlib.sha256(f"{sha256_file(folder / MODEL)} {tokenizer.sha256}".encode()).hexdigest()
    return ExternalEncoder(f"onnx:{folder}", embed, about["langs"], (about["latent"],), fingerprint=fingerprint)


class Padded(nn.Module):
    """A wrapper that returns an encoder's vectors, but computes all positions of a padded batch, padding included."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Compute posterior means (B, L) from token ids (B, T) and a mask (B, T) that is 0 at padding."""
        layout = PaddedLayout.of_mask(attention_mask.bool())
        return self.encoder(Tokens(input_ids, layout.mask, "", layout.flat_index), layout).mean


def write(padded: Padded, path: Path) -> None:
    """Write the ONNX file. Its graph accepts any number of sentences and tokens."""
    example = Tokens.pad([[4, 5, 6, EOS], [4, EOS], [4, 5, EOS]], "")
    dynamic = {name: {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")} for name in INPUTS}
    with torch.no_grad(), _quietly():
        program: Any = torch.onnx.export(
            padded, (example.ids, example.mask.long()), input_names=list(INPUTS), output_names=[OUTPUT],
            dynamic_shapes=dynamic, dynamo=True, verbose=False,
        )  # fmt: skip
        program.save(path, external_data=False)


def difference(encoder: nn.Module, path: Path, vocab_size: int) -> float:
    """Compare vectors of an ONNX file with vectors that `encoder` computes in double precision, on random batches of
    many shapes. Return the largest distance between the two vectors of a sentence, divided by the root mean square of
    the norms of the encoder's vectors."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng, exact = np.random.default_rng(1), copy.deepcopy(encoder).double()
    apart, norms = list[np.ndarray](), list[np.ndarray]()
    for batch, longest in ((1, 1), (1, 40), (2, 2), (7, 12), (32, 100)):
        lengths = rng.integers(0, longest, batch)
        side = Tokens.pad([[*rng.integers(4, vocab_size, length), EOS] for length in lengths], "")
        with torch.no_grad():
            expected = exact(side).mean.numpy()
        (given,) = session.run([OUTPUT], dict(zip(INPUTS, (side.ids.numpy(), side.mask.long().numpy()), strict=True)))
        apart.append(np.linalg.norm(given - expected, axis=1))
        norms.append(np.linalg.norm(expected, axis=1))
    return float(np.concatenate(apart).max() / np.sqrt(np.mean(np.square(np.concatenate(norms)))))


@contextmanager
def _quietly() -> Iterator[None]:
    """Hide messages that torch's exporter prints for its developers; `difference` detects wrong exports."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
