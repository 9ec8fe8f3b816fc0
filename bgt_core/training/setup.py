"""Set up a run: write its data, tokenizer and settings, and check that they fit each other.

For this check, one batch of each corpus is passed through the model on torch's meta device, where tensors have shapes
but no values.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bgt_core import checkpoint, recipes
from bgt_core.contracts import SentenceEncoder
from bgt_core.data.batching import make_batch
from bgt_core.data.columns import ALTERED, LABEL, Source, parse_columns, parse_source, parse_weights, read_columns
from bgt_core.data.parallel import Skipped, check, chunks, read_pairs, source_files
from bgt_core.data.store import SPLITS, open_corpus, read_targets, tokenise
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import identity, named_encoder, open_encoder
from bgt_core.errors import DataError, NotFound, UsageError
from bgt_core.files import PARTIAL, lasting_name, read_json, remove, write_json, writing
from bgt_core.models.bgt import LatentModel
from bgt_core.nets.output import LabelPrediction
from bgt_core.recipes import Recipe

SETTINGS = "run.json"  # recipe, settings and data of a run; written last, so a folder with it is completely set up
LOCK = "run.lock"  # exists while a process trains; a killed process leaves it behind
VECTORS = "vectors-{}" + PARTIAL  # vectors of each data file; removed after they are copied into OUT/data
WIDTH, WEIGHT = "model.teacher_dim", "objective.distillation.weight"

Teacher = Sequence[str | Path | None]  # one .npy for each data file; None for a file without vectors
Report = Callable[[dict[str, Any]], None]  # a function that is called with metrics by name


def set_up_run(
    recipe: Recipe,
    sources: Sequence[Source],
    out: Path,
    tokenizer: Path | None,
    strict: bool,
    device: str,
    report: Report,
) -> Recipe:
    """Write all files of a run folder except its checkpoints; if this fails, remove them. Return the recipe. If the
    model decodes another encoder's vectors, compute these on `device`, and add the encoder to the recipe."""
    if (out / SETTINGS).exists():
        raise UsageError(f"is needed to continue the run in {out}; or choose another folder.", parameter="resume")
    check_kinds(recipe.train.kind_weights, sources)
    present = {name for source in sources for name in source.columns}
    if missing := [name for name in parse_columns(recipe.data.columns) if name not in present]:
        raise UsageError(f"'{missing[0]}': no data file has this column. Add such a file, or leave the column out.")
    check_teacher_files(recipe, sources)
    for source in sources:
        source_files(source.path, source.columns)  # raises an error if a file is missing, before the encoder is opened
    if any(path.name != LOCK for path in out.iterdir()):
        raise UsageError(f"{out}: this folder is neither empty nor a run. Remove it, or choose another folder.")
    recipe, encoder = with_encoder(recipe, device)
    try:
        token_model = Tokenizer.load(tokenizer) if tokenizer else train_tokenizer(recipe, sources, strict)
        model = meta_model(recipe, token_model)  # raises an error for invalid settings before the long work
        rows = with_vectors(encoder, recipe, sources, out, report) if encoder else sources
        stored = tokenise(
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
        for path in out.glob(VECTORS.format("*")):
            remove(path)
        check_batches(recipe, model, out)
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
    """Raise UsageError if `kind_weights` names a kind of text that no data file has."""
    kinds = dict.fromkeys(source.kind for source in sources if source.kind)
    for kind in parse_weights(weights):
        if kind not in kinds:
            known = f"the kinds are {', '.join(kinds)}" if kinds else f"name the kind of a file by {kind}/en-fr=FILE"
            raise UsageError(f"'{weights}': no data file has the kind '{kind}'; {known}", parameter="kind_weights")


def check_teacher(recipe: Recipe, files: Iterable[object]) -> None:
    """Raise UsageError if the recipe needs a teacher's vectors, but `files` names no file of vectors."""
    if (weight := recipe.arguments.get(WEIGHT, 0.0)) and not any(files):
        raise UsageError(
            f"is missing: {WEIGHT} is {weight:g}; give a teacher's vectors, or set this to 0", parameter="teacher"
        )


def check_teacher_files(recipe: Recipe, sources: Sequence[Source]) -> None:
    """Raise UsageError for missing vectors, or vectors that the recipe can't use; DataError for a wrong width."""
    files = [source.targets for source in sources if source.targets is not None]
    width, weight = recipe.arguments.get(WIDTH, 0), recipe.arguments.get(WEIGHT, 0.0)
    check_teacher(recipe, files)
    for path in files:
        units = read_targets(path).shape[1]
        if not (width and weight):
            needs = f"{WIDTH}={units} and {WEIGHT} above 0"
            text = f"{path}: '{recipe.name}' can't learn from vectors with these settings; set {needs}"
            raise UsageError(text, parameter="teacher")
        if units != width:
            raise DataError(f"{path}: the vectors have {units} units, but {WIDTH} is {width}; set it to {units}")


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
    """Freeze parameters whose names start with one of `prefixes`; UsageError if no parameter matches a prefix."""
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
        raise UsageError(f"{', '.join(prefixes)}: nothing is left to train; shorten the list", parameter="freeze")


def meta_model(recipe: Recipe, tokenizer: Tokenizer) -> LatentModel:
    """Build a run's model on the meta device, without values; UsageError or DataError for invalid settings."""
    with torch.device("meta"):
        model = recipe.build(tokenizer).to("meta")
    if recipe.init_from:
        checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    freeze(model, recipe.freeze)
    return model


def check_batches(recipe: Recipe, model: LatentModel, out: Path) -> None:
    """Pass a training batch and a held-out batch of each corpus through a model on the meta device. Check that the
    recipe can learn from the columns, and that labels are classes of the model (others crash a process on a GPU)."""
    model.eval()  # in training mode, random batches would lack drafts, one of the inputs to check
    for corpus in (part for split in SPLITS for part in open_corpus(out / "data", split).corpora):
        if not len(corpus):  # empty if all rows of the corpus, or none, are held out
            continue
        batch = make_batch(corpus, np.arange(min(2, len(corpus))), 0).to("meta")
        if recipe.train.mega_batch:
            batch = replace(batch, negatives=batch.sides)
        outputs = replace(model(batch), batch=batch)
        if batch.negatives and not outputs.negatives:
            raise UsageError(
                f"{recipe.train.mega_batch} must be 0: {recipe.name} uses no hard negatives", parameter="mega_batch"
            )
        if not recipe.objective(outputs, 0).total.requires_grad:
            raise UsageError(
                f"{', '.join(corpus.columns)}: {recipe.name} can't learn from these columns alone", parameter="columns"
            )
        for prediction in outputs.predictions:
            if isinstance(prediction, LabelPrediction) and prediction.labels is batch.labels:
                labels, classes = corpus.labels(np.arange(len(corpus))), prediction.logits.shape[1]
                if labels is not None and len(wrong := labels[~np.isin(labels, np.arange(classes))]):
                    rule = f"one of the {classes} classes, 0 to {classes - 1}; set model.classes"
                    raise DataError(f"label {wrong[0]:g} is not {rule}")


# A writer learns to generate text from the vectors of another encoder, which its recipe names in `model.encoder`.


def with_encoder(recipe: Recipe, device: str) -> tuple[Recipe, SentenceEncoder | None]:
    """Open the encoder whose vectors a writer decodes, and add its fingerprint and width to the recipe. Return (recipe,
    None) for other recipes. DataError if the encoder has changed since the checkpoint `init_from` was trained."""
    if "model.encoder" not in recipe.arguments:
        return recipe, None
    model: Any = recipe.model
    if not model.encoder:
        raise UsageError(
            "is needed: name the encoder from whose vectors to generate text, as in sentence-transformers:NAME",
            parameter="encoder",
        )
    encoder = named_encoder(model.encoder, model.fingerprint, partial(open_encoder, device=device), "the writer")
    width = encoder.embed([], lang=recipe.data.langs[0]).shape[1]
    stored = replace(model, encoder=lasting_name(model.encoder), fingerprint=identity(encoder), vector_dim=width)
    return replace(recipe, model=stored), encoder


def with_vectors(
    encoder: SentenceEncoder, recipe: Recipe, sources: Sequence[Source], out: Path, report: Report
) -> list[Source]:
    """Embed the sentences of each data file, and write one .npy file of vectors for it, (rows, C * D) float32.

    Its row i has the concatenated vectors of the C columns in row i of the data, or zeros if row i is invalid.
    """
    langs, width = parse_columns(recipe.data.columns), recipe.model.semantic_dim
    embedded = []
    for number, source in enumerate(sources):
        path, names = out / VECTORS.format(number), read_columns(source.columns)
        sides = [side for side, name in enumerate(names) if langs[name] != LABEL and not name.startswith(ALTERED)]
        rows = sum(map(len, chunks(source.path, source.columns)))
        report({"kind": "note", "text": f"vectors of {rows:,} rows of {source.path}"})
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, len(sides) * width)}
        with path.open("wb") as file:  # written without memory-mapping, because a full disk would then kill the process
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


# OUT/run.json has the settings of a run. It is written when the run is set up, and read when the run is resumed.


def share(recipe: Recipe, data: Sequence[str | Path | Source], tokenizer: Path, corpus: Path, out: Path) -> None:
    """Write a run folder, without checkpoints, whose training data are a link to the token store `corpus`.

    So several runs can share the data. `resume` then starts the run. Files that a killed process left are overwritten.
    """
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / "data").unlink(missing_ok=True)
        (out / "data").symlink_to(os.path.relpath(corpus, out))
        shutil.copy(tokenizer, out / checkpoint.TOKENIZER)
    write_settings(recipe, sources_of(recipe, data), out)


def sources_of(recipe: Recipe, data: Sequence[str | Path | Source], teacher: Teacher = ()) -> list[Source]:
    """Return the data files with their columns and vectors. `teacher` must be empty or have one entry for each file;
    otherwise raise UsageError."""
    names = tuple(parse_columns(recipe.data.columns))
    sources = [source if isinstance(source, Source) else parse_source(str(source), names) for source in data]
    if not teacher:
        return sources
    if len(teacher) != len(sources):
        counts = f"{len(teacher)} files of vectors for {len(sources)} data files"
        raise UsageError(f"has {counts}; give one for each data file, or none at all", parameter="teacher")
    files = [None if path is None else Path(path) for path in teacher]
    return [replace(source, targets=path) for source, path in zip(sources, files, strict=True)]


def write_settings(recipe: Recipe, sources: Sequence[Source], out: Path) -> None:
    """Write the settings and data files of a run to OUT/run.json."""
    settings: dict[str, object] = {"recipe": recipe.name, "arguments": recipe.arguments}
    settings["data"] = list(map(str, sources))
    if any(source.targets for source in sources):
        settings["teacher"] = [str(source.targets) if source.targets else None for source in sources]
    write_json(out / SETTINGS, settings)


def read_settings(out: Path) -> tuple[Recipe, dict[str, Any]]:
    """Return the recipe in OUT/run.json, and the file's content; NotFound if it is absent, DataError if damaged."""
    path = out / SETTINGS
    if not path.is_file():
        raise NotFound(f"{out}: has no {SETTINGS}, so there is no run to resume. Start a new run, without resume.")
    try:
        document = read_json(path)
    except DataError as error:
        raise DataError(f"{path}: damaged ({error}). Start a new run.") from None
    kinds = {"recipe": str, "arguments": dict, "data": list}
    if not isinstance(document, dict) or not all(isinstance(document.get(key), kind) for key, kind in kinds.items()):
        raise DataError(f"{path}: damaged: must contain {', '.join(kinds)}. Start a new run.")
    try:
        return recipes.configure(document["recipe"], document["arguments"]), document
    except UsageError as error:
        raise DataError(f"{path}: {error}") from None


def change(recipe: Recipe, document: dict[str, Any], overrides: Mapping[str, Any], out: Path) -> Recipe:
    """Change settings of the run in `out` for its remaining steps; UsageError for invalid or fixed settings."""
    before, recipe = recipe, recipes.configure(recipe.name, {**recipe.arguments, **overrides})
    if fixed := differing(before.arguments, recipe.arguments):
        raise UsageError(f"{fixed} can't change during a run. Only settings of train and objective can.")
    check_kinds(recipe.train.kind_weights, sources_of(recipe, document["data"]))
    check_teacher(recipe, document.get("teacher", ()))
    check_batches(recipe, meta_model(recipe, Tokenizer.load(out / checkpoint.TOKENIZER)), out)
    write_json(out / SETTINGS, document | {"arguments": recipe.arguments})
    return recipe


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the name of the first setting that differs and on which earlier updates depend; "" if there is none."""
    for name in one:
        changes = name.startswith(("train.", "objective.")) and name != "train.seed"
        if not changes and name in other and one[name] != other[name]:
            return name
    return ""
