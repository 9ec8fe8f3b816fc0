"""Prepare a run: data, tokenizer and settings of its folder, and the initial model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bgt_core import checkpoint, recipes
from bgt_core.capabilities import VectorModel
from bgt_core.contracts import SEMANTIC
from bgt_core.data.batching import make_batch
from bgt_core.data.columns import LABEL, Source, parse_columns, parse_weights, read_columns
from bgt_core.data.corpus import SPLITS, Corpus, Mixture, open_corpus
from bgt_core.data.parallel import sentences, source_files
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import open_encoder
from bgt_core.errors import DataError, UsageError
from bgt_core.files import json_lines, read_json, remove, writing
from bgt_core.models.latent import LatentModel
from bgt_core.nets.output import LabelPrediction
from bgt_core.recipes import Recipe
from bgt_core.run.plan import SETTINGS, RunSettings, check_targets, check_taught, sources_of, write_settings
from bgt_core.run.processes import LOCK, Report
from bgt_core.run.vectors import VECTORS, fit_vectors, with_encoder, with_vectors
from bgt_core.vectors.compare import binary_scaled

ROTATED_BY = 8_192  # rows from which a rotation to a teacher's vectors is computed


def prepare_run(
    recipe: Recipe,
    sources: Sequence[Source],
    out: Path,
    tokenizer: Path | None,
    strict: bool,
    device: str,
    report: Report,
) -> None:
    """Write everything in a run folder but its checkpoints, or nothing; `device` is that of a writer's encoder."""
    if (out / SETTINGS).exists():
        raise UsageError(f"is needed to continue the run in {out}; or choose another folder.", parameter="resume")
    check_kinds(recipe.train.kind_weights, sources)
    check_columns(recipe.data.columns, sources)
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
        stored = store(recipe, rows, token_model, out / "data", strict)
        for path in out.glob(VECTORS.format("*")):  # the store has a copy
            remove(path)
        for split in SPLITS:
            rehearse(recipe, model, open_corpus(out / "data", split))
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


def check_columns(columns: Sequence[str], sources: Sequence[Source]) -> None:
    """Raise UsageError for a column that no source has: its networks would stay untrained."""
    held = {name for source in sources for name in source.columns}
    if missing := [name for name in parse_columns(columns) if name not in held]:
        raise UsageError(f"'{missing[0]}': no file of the data has this column. Add one that has it, or leave it out.")


def check_kinds(weights: str, sources: Sequence[Source]) -> None:
    """Raise UsageError for a weight of a kind of text that no source has."""
    kinds = dict.fromkeys(source.kind for source in sources if source.kind)
    for kind in parse_weights(weights):
        if kind not in kinds:
            known = f"the kinds are {', '.join(kinds)}" if kinds else f"name it with the data, as {kind}/en-fr=FILE"
            raise UsageError(f"'{weights}': no data of kind '{kind}'; {known}", parameter="kind_weights")


def checked_changes(out: Path, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that overrides change, named in full; UsageError for those that the run in `out` can't have."""
    settings, document = RunSettings.read(out), read_json(out / SETTINGS)
    changed = settings.changed_by(overrides)
    recipe = recipes.build(settings.recipe, {**settings.until(), **changed})
    check_kinds(recipe.train.kind_weights, sources_of(recipe, document["data"]))
    check_taught(recipe, document.get("teacher", ()))
    model = outline(recipe, Tokenizer.load(out / checkpoint.TOKENIZER))
    for split in SPLITS:
        rehearse(recipe, model, open_corpus(out / "data", split))
    return changed


def share(recipe: Recipe, data: Sequence[str | Path | Source], tokenizer: Path, corpus: Path, out: Path) -> None:
    """Write everything in a run folder but its checkpoints, for the token store `corpus`, which other runs may share;
    then `resume` it.

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
    columns = parse_columns(recipe.data.columns)

    def text() -> Iterable[str]:
        for source in sources:
            names = read_columns(source.columns)
            label = next((number for number, name in enumerate(names) if columns[name] == LABEL), None)
            yield from sentences([source.path], source.columns, strict=strict, without=label)

    data = recipe.data
    coverage = data.character_coverage
    return Tokenizer.train(text(), data.vocab_size, lowercase=data.lowercase, character_coverage=coverage)


def store(
    recipe: Recipe, sources: Sequence[Source], tokenizer: Tokenizer, folder: Path, strict: bool
) -> Corpus | Mixture:
    """The token store of the run."""
    data = recipe.data
    return prepare(
        sources,
        data.columns,
        tokenizer,
        folder,
        min_tokens=data.min_tokens,
        max_tokens=data.max_tokens,
        valid_pairs=data.valid_pairs,
        seed=recipe.train.seed,
        strict=strict,
    )


def fresh(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus | Mixture) -> LatentModel:
    """Build the model before its first update: the same for the same seed, and with `init_from` that checkpoint's."""
    torch.manual_seed(recipe.train.seed)
    model = recipe.build(tokenizer)
    untouched = [name for name, _ in model.named_parameters()]
    if recipe.init_from:
        untouched = checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    encoder = recipe.arguments.get("model.average_from")
    if encoder and any(dict(model.named_parameters())[name] is model.semantic_table.weight for name in untouched):
        start_average(model.semantic_table, encoder, tokenizer)  # unless a checkpoint has filled it
    if "teacher.weight" in untouched:
        turn_to_teacher(model, corpus)
    if isinstance(model, VectorModel) and not recipe.init_from:
        fit_vectors(model, corpus)
    model.restrict(lambda lang: torch.from_numpy(corpus.used_tokens(lang, tokenizer.vocab_size)))
    return model


@torch.no_grad()
def start_average(table: nn.Embedding, encoder: str, tokenizer: Tokenizer) -> None:
    """Initialise an average's token vectors by an encoder's vectors of the tokens' texts, less their mean.

    As in model2vec (https://github.com/MinishLab/model2vec): a teacher then leads to good vectors much sooner than from
    random ones. They are scaled to length 1 on average, like random ones: longer ones would change direction slowly.

    Args:
        table: The average's token vectors; those of special tokens stay as they are.
        encoder: A spec for `open_encoder`.
        tokenizer: The average's tokenizer.

    Raises:
        UsageError: The encoder's vectors have another width than the average's.
        BgtError: As `open_encoder`.
    """
    teacher = open_encoder(encoder, device="cpu")
    texts = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    lang = next(iter(teacher.langs), "en")
    vectors = torch.from_numpy(binary_scaled(teacher.embed([*texts.values()], lang=lang), axis=None))
    if (units := vectors.shape[1]) != table.embedding_dim:
        rule = f"its vectors have {units} units, the average has {table.embedding_dim}; set average_dim={units}"
        raise UsageError(f"average_from {encoder}: {rule}")
    vectors -= vectors.mean(0)
    table.weight[torch.tensor(list(texts))] = vectors / vectors.norm(dim=1).mean()


@torch.no_grad()
def turn_to_teacher(model: LatentModel, corpus: Corpus | Mixture) -> None:
    """Initialise the map to a teacher's vectors by the rotation that brings means nearest to them (Procrustes).

    With a random map the means would have to rotate before they learn, and lose information on the way. Rows are those
    of the first corpus with vectors, its first column.
    """
    for part in corpus.corpora:
        chosen = np.linspace(0, len(part) - 1, min(ROTATED_BY, len(part))).astype(np.int64)
        if not len(part) or (targets := part.targets(chosen)) is None:
            continue
        batches = [make_batch(part, chosen[start : start + 256], 0) for start in range(0, len(chosen), 256)]
        sides = (next(iter(batch.sides.values())) for batch in batches)
        model.eval()
        means = F.normalize(torch.cat([model.encoders[SEMANTIC](side).mean for side in sides]).float(), dim=-1)
        model.train()
        units = F.normalize(torch.from_numpy(binary_scaled(targets)), dim=-1)
        left, _, right = torch.linalg.svd(units.T @ means, full_matrices=False)
        dict(model.named_parameters())["teacher.weight"].copy_(left @ right)
        return


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
    """Build the model as training starts it, but without values (on torch's meta device), in no time.

    Raises UsageError or DataError for impossible sizes, and for an `init_from` or `freeze` that doesn't fit.
    """
    with torch.device("meta"):
        model = recipe.build(tokenizer).to("meta")
    if recipe.init_from:
        checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    freeze(model, recipe.freeze)
    return model


def rehearse(recipe: Recipe, model: LatentModel, corpus: Corpus | Mixture) -> None:
    """Run one batch of each corpus through an `outline`.

    Raises UsageError for columns that this recipe can't learn from, DataError for labels that are not its classes.
    """
    for part in corpus.corpora:
        if not len(part):  # all its rows are in the other split
            continue
        batch = make_batch(part, np.arange(min(2, len(part))), 0).to("meta")
        if recipe.train.mega_batch:
            batch = replace(batch, negatives=batch.sides)
        out = model(batch)
        if batch.negatives and not out.negatives:
            raise UsageError(
                f"{recipe.train.mega_batch}: {recipe.name} uses no hard negatives; set it to 0", parameter="mega_batch"
            )
        if not recipe.objective(out, 0).total.requires_grad:
            raise UsageError(
                f"{', '.join(part.columns)}: {recipe.name} can't learn from these columns only", parameter="columns"
            )
        for prediction in out.predictions:
            if isinstance(prediction, LabelPrediction) and prediction.labels is batch.labels:
                check_labels(part.labels(np.arange(len(part))), classes=prediction.logits.shape[1])


def check_labels(labels: np.ndarray | None, classes: int) -> None:
    """Raise DataError for a label (N,) that isn't the number of a class, from 0: on a GPU it would end the process."""
    wrong = labels[~np.isin(labels, np.arange(classes))] if labels is not None else np.zeros(0)
    if len(wrong):
        raise DataError(
            f"label {wrong[0]:g} is not one of the {classes} classes, 0 to {classes - 1}; set model.classes"
        )


def check_tokenizers(saved: Tokenizer, own: Tokenizer, corpus: Corpus | Mixture, out: Path) -> None:
    """Raise DataError if OUT/tokenizer.model is not the tokenizer of the checkpoint and the token store."""
    if {saved.sha256, *(part.store["settings"]["tokenizer"] for part in corpus.corpora)} != {own.sha256}:
        raise DataError(
            f"{out / checkpoint.TOKENIZER}: not the tokenizer that the run began with. Copy it from the checkpoint "
            f"and keep {out / 'data'} as it was made, or start a new run."
        )


def rows_until(metrics: Path, step: int) -> list[str]:
    """The rows up to that step, without invalid ones, such as one cut off by a kill."""
    rows = json_lines(metrics) if metrics.exists() else []
    return [line for line, row in rows if row.get("kind") and isinstance(row.get("step"), int) and row["step"] <= step]
