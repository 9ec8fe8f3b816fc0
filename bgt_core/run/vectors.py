"""Compute another encoder's vectors of a run's text, for a recipe that learns to write from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bgt_core.capabilities import VectorModel
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.columns import ALTERED, LABEL, Source, parse_columns, read_columns
from bgt_core.data.corpus import Corpus, Mixture
from bgt_core.data.parallel import check, chunks
from bgt_core.encoders import identity, named_encoder, open_encoder
from bgt_core.errors import UsageError
from bgt_core.files import PARTIAL, lasting_name
from bgt_core.recipes import Recipe
from bgt_core.recipes.writer import WriterConfig
from bgt_core.run.processes import Report

VECTORS = "vectors-{}" + PARTIAL  # of source 0, 1, ...: removed once they are in the token store
SAMPLE = 8_192  # rows that mean and scale are computed from


def with_encoder(recipe: Recipe, device: str) -> tuple[Recipe, SentenceEncoder | None]:
    """Open the encoder of a writer, and note its fingerprint and width in the recipe; other recipes have none.

    Raises:
        UsageError: A writer without an encoder.
        DataError: An encoder that has changed since the writer to start from was trained.
    """
    model = recipe.model
    if not isinstance(model, WriterConfig):
        return recipe, None
    if not model.encoder:
        raise UsageError(
            "is needed: the encoder whose vectors the model learns to write from, as sentence-transformers:NAME",
            parameter="encoder",
        )
    encoder = named_encoder(model.encoder, model.fingerprint, partial(open_encoder, device=device), "the writer")
    width = encoder.embed([], lang=recipe.data.langs[0]).shape[1]
    stored = replace(model, encoder=lasting_name(model.encoder), fingerprint=identity(encoder), vector_dim=width)
    return replace(recipe, model=stored), encoder


def with_vectors(
    encoder: SentenceEncoder, recipe: Recipe, sources: Sequence[Source], out: Path, report: Report
) -> list[Source]:
    """Embed every row of the sources: a .npy file for each, (rows, C * D) float32, named as in `VECTORS`.

    A row has the vectors of its C columns one after another; a row that can't be read has zeros.
    """
    langs = parse_columns(recipe.data.columns)
    embedded = []
    for number, source in enumerate(sources):
        path, names = out / VECTORS.format(number), read_columns(source.columns)
        sides = [side for side, name in enumerate(names) if langs[name] != LABEL and not name.startswith(ALTERED)]
        rows = sum(map(len, chunks(source.path, source.columns)))
        report({"kind": "note", "text": f"vectors of {rows:,} rows of {source.path}"})
        width = recipe.model.semantic_dim
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, len(sides) * width)}
        with path.open("wb") as file:  # not mapped: a full disk would then kill the process
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in chunks(source.path, source.columns):
                texts, bad = check(chunk, source.columns)
                good = np.delete(np.arange(len(chunk)), [place for place, *_ in bad])
                vectors = np.zeros((len(chunk), len(sides), width), "<f4")
                for place, side in enumerate(sides):
                    row_of = {text: row for row, text in enumerate(dict.fromkeys(row[side] for row in texts))}
                    distinct = encoder.embed(list(row_of), lang=langs[names[side]])
                    vectors[good, place] = distinct[[row_of[row[side]] for row in texts]]
                file.write(vectors.data)
        embedded.append(replace(source, targets=path))
    return embedded


def fit_vectors(model: VectorModel, corpus: Corpus | Mixture) -> None:
    """Set the mean and the scale of the vectors from a sample of the training rows."""
    parts = []
    for part in corpus.corpora:
        chosen = np.linspace(0, len(part) - 1, min(SAMPLE, len(part))).astype(np.int64)
        if (targets := part.targets(chosen)) is not None:
            parts.append(torch.from_numpy(targets).view(-1, len(model.stored.mean)))
    model.stored.fit(torch.cat(parts))
