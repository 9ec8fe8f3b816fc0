"""Prepare a run: write the data, tokenizer and settings of its folder, and check them on one batch without values."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bgt_core import checkpoint
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.batching import make_batch
from bgt_core.data.columns import ALTERED, LABEL, Source, parse_columns, parse_weights, read_columns
from bgt_core.data.corpus import SPLITS, open_corpus
from bgt_core.data.parallel import Skipped, check, chunks, read_pairs, source_files
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import identity, named_encoder, open_encoder
from bgt_core.errors import DataError, UsageError
from bgt_core.files import PARTIAL, lasting_name, remove, write_json, writing
from bgt_core.models.latent import LatentModel
from bgt_core.nets.output import LabelPrediction
from bgt_core.recipes import Recipe
from bgt_core.training.settings import (
    SETTINGS,
    Report,
    changed_by,
    check_targets,
    check_taught,
    sources_of,
    write_settings,
)

LOCK = "run.lock"  # exists while a process trains; left behind if it is killed
VECTORS = "vectors-{}" + PARTIAL  # of source 0, 1, ...: removed once they are in the token store


def prepare_run(
    recipe: Recipe,
    sources: Sequence[Source],
    out: Path,
    tokenizer: Path | None,
    strict: bool,
    device: str,
    report: Report,
) -> Recipe:
    """Write everything in a run folder except its checkpoints; leave nothing behind if it fails.

    `device` is for the encoder whose vectors a writer learns from. Returns the recipe to train: the given one, or for a
    writer the same with the fingerprint and width of that encoder.
    """
    if (out / SETTINGS).exists():
        raise UsageError(f"is needed to continue the run in {out}; or choose another folder.", parameter="resume")
    check_kinds(recipe.train.kind_weights, sources)
    present = {name for source in sources for name in source.columns}
    if missing := [name for name in parse_columns(recipe.data.columns) if name not in present]:
        raise UsageError(f"'{missing[0]}': no file of the data has this column. Add one that has it, or leave it out.")
    check_targets(recipe, sources)
    for source in sources:
        source_files(source.path, source.columns)  # an absent file is an error before the encoder opens
    if any(path.name != LOCK for path in out.iterdir()):
        raise UsageError(f"{out}: not empty, and not a run. Remove it, or choose another folder.")
    recipe, encoder = with_encoder(recipe, device)
    try:
        token_model = Tokenizer.load(tokenizer) if tokenizer else train_tokenizer(recipe, sources, strict)
        model = outline(recipe, token_model)  # before the long work, so that impossible settings raise an error now
        rows = with_vectors(encoder, recipe, sources, out, report) if encoder else sources
        stored = prepare(
            rows,
            recipe.data.columns,
            token_model,
            out / "data",
            min_tokens=recipe.data.min_tokens,
            max_tokens=recipe.data.max_tokens,
            valid_pairs=recipe.data.valid_pairs,
            seed=recipe.train.seed,
            strict=strict,
        )
        for path in out.glob(VECTORS.format("*")):  # the store has a copy
            remove(path)
        rehearse(recipe, model, out)
        for corpus in stored.corpora:
            counts, skipped = corpus.store["pairs"], corpus.store["skipped"]
            pairs = counts | {f"skipped ({reason})": lines for reason, lines in skipped.items()}
            report({"kind": "data", "pairs": pairs, "skipped": corpus.store["skipped_examples"]})
        token_model.save(out / checkpoint.TOKENIZER)
        write_settings(recipe, sources, out)
    except BaseException:
        for path in out.iterdir():
            if path.name != LOCK:
                remove(path)
        raise
    return recipe


def check_kinds(weights: str, sources: Sequence[Source]) -> None:
    """Raise UsageError for a weight of a kind of text that no source has."""
    kinds = dict.fromkeys(source.kind for source in sources if source.kind)
    for kind in parse_weights(weights):
        if kind not in kinds:
            known = f"the kinds are {', '.join(kinds)}" if kinds else f"name it with the data, as {kind}/en-fr=FILE"
            raise UsageError(f"'{weights}': no data of kind '{kind}'; {known}", parameter="kind_weights")


def change(recipe: Recipe, document: dict[str, Any], overrides: Mapping[str, Any], out: Path) -> Recipe:
    """Change settings of the run in `out` from its newest checkpoint on; UsageError for invalid or fixed settings."""
    recipe = changed_by(recipe, overrides)
    check_kinds(recipe.train.kind_weights, sources_of(recipe, document["data"]))
    check_taught(recipe, document.get("teacher", ()))
    rehearse(recipe, outline(recipe, Tokenizer.load(out / checkpoint.TOKENIZER)), out)
    write_json(out / SETTINGS, document | {"arguments": recipe.arguments})
    return recipe


def share(recipe: Recipe, data: Sequence[str | Path | Source], tokenizer: Path, corpus: Path, out: Path) -> None:
    """Write a run folder, except checkpoints, for a token store `corpus` that other runs may share; `resume` starts it.

    OUT/data is a link to the store. Leftovers of a killed process in `out` are overwritten.
    """
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / "data").unlink(missing_ok=True)
        (out / "data").symlink_to(os.path.relpath(corpus, out))
        shutil.copy(tokenizer, out / checkpoint.TOKENIZER)
    write_settings(recipe, sources_of(recipe, data), out)


def train_tokenizer(recipe: Recipe, sources: Sequence[Source], strict: bool) -> Tokenizer:
    """Train one joint SentencePiece model on every column of text."""
    columns, data = parse_columns(recipe.data.columns), recipe.data

    def text() -> Iterable[str]:
        for source in sources:
            names = read_columns(source.columns)
            label = next((number for number, name in enumerate(names) if columns[name] == LABEL), None)
            for row in read_pairs(source.path, source.columns, Skipped(), strict):
                yield from (cell for number, cell in enumerate(row) if number != label)

    coverage = data.character_coverage
    return Tokenizer.train(text(), data.vocab_size, lowercase=data.lowercase, character_coverage=coverage)


def freeze(model: nn.Module, prefixes: Sequence[str]) -> None:
    """Freeze parameters whose names start with one of these; UsageError if a prefix matches none."""
    for prefix in prefixes:
        parameters = [value for name, value in model.named_parameters() if f"{name}.".startswith(f"{prefix}.")]
        if not parameters:
            parts = ", ".join(name for name, _ in model.named_children())
            raise UsageError(
                f"'{prefix}': no parameter name starts with this; the model has {parts}", parameter="freeze"
            )
        for parameter in parameters:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError(f"{', '.join(prefixes)}: nothing is left to train", parameter="freeze")


def outline(recipe: Recipe, tokenizer: Tokenizer) -> LatentModel:
    """Build the model of a run without values, on torch's meta device, which takes almost no time.

    Raises UsageError or DataError for impossible sizes, and for an `init_from` or `freeze` that doesn't fit.
    """
    with torch.device("meta"):
        model = recipe.build(tokenizer).to("meta")
    if recipe.init_from:
        checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    freeze(model, recipe.freeze)
    return model


def rehearse(recipe: Recipe, model: LatentModel, out: Path) -> None:
    """Run one batch of each corpus and split of a run through an `outline`.

    Raises UsageError for columns that this recipe can't learn from, and DataError for labels that are not classes of
    the model, which would end the process on a GPU.
    """
    for part in (part for split in SPLITS for part in open_corpus(out / "data", split).corpora):
        if not len(part):  # all its rows are in the other split
            continue
        batch = make_batch(part, np.arange(min(2, len(part))), 0).to("meta")
        if recipe.train.mega_batch:
            batch = replace(batch, negatives=batch.sides)
        outputs = model(batch).of(batch)
        if batch.negatives and not outputs.negatives:
            raise UsageError(
                f"{recipe.train.mega_batch}: {recipe.name} uses no hard negatives; set it to 0", parameter="mega_batch"
            )
        if not recipe.objective(outputs, 0).total.requires_grad:
            raise UsageError(
                f"{', '.join(part.columns)}: {recipe.name} can't learn from these columns only", parameter="columns"
            )
        for prediction in outputs.predictions:
            if isinstance(prediction, LabelPrediction) and prediction.labels is batch.labels:
                labels, classes = part.labels(np.arange(len(part))), prediction.logits.shape[1]
                if labels is not None and len(wrong := labels[~np.isin(labels, np.arange(classes))]):
                    rule = f"one of the {classes} classes, 0 to {classes - 1}; set model.classes"
                    raise DataError(f"label {wrong[0]:g} is not {rule}")


# A recipe that learns to write from another encoder's vectors names it in `model.encoder`.


def with_encoder(recipe: Recipe, device: str) -> tuple[Recipe, SentenceEncoder | None]:
    """Open the encoder of a writer, and return the recipe with its fingerprint and width; (recipe, None) for others.

    Raises:
        UsageError: A writer's recipe names no encoder.
        DataError: The encoder has changed since the writer that training starts from was trained.
    """
    if "model.encoder" not in recipe.arguments:
        return recipe, None
    model: Any = recipe.model
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
    """Embed every row of the sources, into one .npy file per source, (rows, C * D) float32, named as in `VECTORS`.

    A row has the vectors of its C columns one after another, or zeros if it can't be read.
    """
    langs, width = parse_columns(recipe.data.columns), recipe.model.semantic_dim
    embedded = []
    for number, source in enumerate(sources):
        path, names = out / VECTORS.format(number), read_columns(source.columns)
        sides = [side for side, name in enumerate(names) if langs[name] != LABEL and not name.startswith(ALTERED)]
        rows = sum(map(len, chunks(source.path, source.columns)))
        report({"kind": "note", "text": f"vectors of {rows:,} rows of {source.path}"})
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, len(sides) * width)}
        with path.open("wb") as file:  # not mapped: a full disk would then kill the process
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in chunks(source.path, source.columns):
                checked = check(chunk, source.columns)
                texts, good = checked.rows, checked.places
                vectors = np.zeros((len(chunk), len(sides), width), "<f4")
                for place, side in enumerate(sides):
                    row_of = {text: row for row, text in enumerate(dict.fromkeys(row[side] for row in texts))}
                    distinct = encoder.embed(list(row_of), lang=langs[names[side]])
                    vectors[good, place] = distinct[[row_of[row[side]] for row in texts]]
                file.write(vectors.data)
        embedded.append(replace(source, targets=path))
    return embedded
