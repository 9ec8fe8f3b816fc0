"""Prepare a checkpoint for others: copy it for use, convert it for another library, or upload it to the hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from bgt_core import checkpoint
from bgt_core.adapters.modelcard import model_card
from bgt_core.capabilities import TranslationModel, VectorModel
from bgt_core.checkpoint import Checkpoint, hub
from bgt_core.checkpoint.card import checked
from bgt_core.contracts import SEMANTIC
from bgt_core.errors import DataError, UsageError, check_choice, needs
from bgt_core.files import check_absent, read_json

CHECKPOINT, SENTENCE_TRANSFORMERS, ONNX = FORMS = ("checkpoint", "sentence-transformers", "onnx")
SPLIT = "split:"

USE = """import bgt_core

bgt = bgt_core.load("{name}")
vectors = bgt.embed(["..."], lang="{lang}")"""

USE_TRANSLATOR = """import bgt_core

translator = bgt_core.BeamTranslator(bgt_core.load("{name}"))
best = translator.translate(["..."])[0][0]  # of a sentence in {lang}: best.text, best.cost"""


def export(
    path: Path | str,
    out: Path,
    *,
    to: str = CHECKPOINT,
    half: bool = False,
    figures: Mapping[str, object] | None = None,
    latent: str | None = None,
    lang: str | None = None,
) -> float | None:
    """Write the checkpoint at `path` to the new folder `out`; for ONNX, return the largest difference from torch.

    `path` may be split:FOLDER, from `bgt split`, for sentence-transformers: `lang` then chooses the language.

    A checkpoint loses the training state; it may be stored in 16 bits (`half`) and hold measured `figures`, see
    `read_figures`. ONNX holds one encoder: of `latent` (by default "semantic") and, for a language latent, `lang` (by
    default the first). Raises UsageError for an unknown form, options of another form and a folder that exists.
    """
    check_choice(FORMS, to=to)
    check_absent(out)
    if (half or figures) and to != CHECKPOINT:
        raise UsageError(
            "is for a checkpoint: export one first, then convert it to another form.",
            parameter="half" if half else "figures",
        )
    if str(path).startswith(SPLIT):
        _split(Path(str(path).removeprefix(SPLIT)), out, to, latent, lang)
        return None
    if (latent or lang) and to != ONNX:
        raise UsageError(
            "chooses the encoder that ONNX holds; other forms hold all encoders: leave it out.",
            parameter="latent" if latent else "lang",
        )
    loaded = checkpoint.load(path)
    if to != CHECKPOINT and latent in (None, SEMANTIC) and isinstance(loaded.model, VectorModel):
        encoder = loaded.model.stored.encoder
        raise UsageError(f"{to}: the semantic encoder of this writer is {encoder}; export that one.", parameter="to")
    if to == ONNX:
        from bgt_core.adapters import onnx

        return onnx.export(loaded, out, latent=latent or SEMANTIC, lang=lang)
    if to == SENTENCE_TRANSFORMERS:
        needs("sentence_transformers", "sentence-transformers")
        from bgt_core.adapters import sentence_transformers

        sentence_transformers.export(loaded, out)
        return None
    _copy(loaded, out, half, figures)
    return None


def _split(folder: Path, out: Path, to: str, latent: str | None, lang: str | None) -> None:
    """Write a split encoder as a model of sentence-transformers; UsageError for other settings."""
    if to != SENTENCE_TRANSFORMERS:
        raise UsageError(f"{to}: a split can only be exported to {SENTENCE_TRANSFORMERS}", parameter="to")
    if latent not in (None, SEMANTIC):
        raise UsageError(f"{latent}: only the {SEMANTIC} latent of a split can be exported", parameter="latent")
    if lang is None:
        raise UsageError("is needed: a split has a different map for each language", parameter="lang")
    needs("sentence_transformers", "sentence-transformers")
    from bgt_core.adapters import sentence_transformers

    sentence_transformers.export_split(folder, out, lang)


def _copy(loaded: Checkpoint, out: Path, half: bool, figures: Mapping[str, object] | None) -> None:
    """Copy the checkpoint without its optimiser's state, with the metrics of its run."""
    metrics = loaded.folder.parent / checkpoint.METRICS
    checkpoint.save(
        out,
        loaded.recipe,
        loaded.model,
        loaded.tokenizer,
        loaded.config["step"],
        dtype=torch.float16 if half else torch.float32,
        metrics=metrics.read_bytes() if metrics.is_file() else b"",
        card=figures,
    )


def push(path: Path | str, name: str, *, private: bool = False) -> str:
    """Upload a checkpoint and its model card to the repository ORG/NAME of the hub; return its address.

    Raises UsageError for a checkpoint with training state, and as `hub.push`.
    """
    loaded = checkpoint.load(path)
    if checkpoint.OPTIMIZER in loaded.config["files"]:
        raise UsageError(f"{loaded.folder}: holds training state; push the folder that `bgt export` makes.")
    files: dict[str, Path | bytes] = {
        file: loaded.folder / file for file in (checkpoint.CONFIG, *loaded.config["files"])
    }
    use = USE_TRANSLATOR if isinstance(loaded.model, TranslationModel) else USE
    if isinstance(loaded.model, VectorModel):
        use = use.replace("load(", "open_encoder(")
    readme = model_card(name, loaded, use.format(name=name, lang=loaded.model.langs[0]))
    return hub.push(name, {**files, "README.md": readme.encode()}, private=private)


def read_figures(path: Path) -> dict[str, object]:
    """Read the measured figures of a model card, a JSON object; NotFound or DataError if `path` is absent or another
    file."""
    figures = read_json(path)
    if not isinstance(figures, dict):
        raise DataError(f"{path}: expected a JSON object of figures.")
    return dict(checked(figures, str(path)))
