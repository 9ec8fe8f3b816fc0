"""Start a training run, or resume it from its newest checkpoint."""

import json
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bgt_core import checkpoint, recipes
from bgt_core.backend import keep_memory, pick_device, usual_defaults, warn_if_slow
from bgt_core.contracts import SEMANTIC, VectorModel, silent
from bgt_core.data.batching import make_batch
from bgt_core.data.columns import Source, canonical_column, parse_source, read_columns
from bgt_core.data.store import Corpus, Mixture, open_corpus, read_targets, verify_corpus
from bgt_core.data.text import Tokenizer
from bgt_core.encoders import open_encoder
from bgt_core.errors import BgtError, DataError, Diverged, Interrupted, UsageError
from bgt_core.files import PARTIAL, file_lock, json_lines, remove, write_text, writing
from bgt_core.models.bgt import LatentModel
from bgt_core.objectives.similarity import Distillation
from bgt_core.recipes import RECIPES, Recipe
from bgt_core.training import setup
from bgt_core.training.loop import Hooks, Penalty, Trainer, make_optimizer, token_tables, total_steps, train_model
from bgt_core.training.setup import LOCK, SETTINGS, WEIGHT, WIDTH, Report, Teacher, change, differing, freeze
from bgt_core.training.workers import Workers, check_workers, joined, usual_workers
from bgt_core.vectors.arrays import binary_scaled

DAMAGED = ".damaged"  # suffix of a checkpoint that can't be read, if training continues from an older checkpoint
KEEP = 2  # number of checkpoints that a run keeps, in case the newest is damaged


@usual_defaults()
def train(
    recipe: str | Recipe,
    data: Sequence[str | Path | Source],
    out: str | Path,
    *,
    columns: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
    init_from: str | Path | None = None,
    teacher: Teacher = (),
    tokenizer: str | Path | None = None,
    strict: bool = False,
    device: str = "auto",
    workers: int | None = 1,
    report: Report = silent,
) -> Path:
    """Train a model in a new folder.

    Args:
        recipe: A name of `RECIPES`, or a `Recipe`.
        data: Files of rows: TSV, Parquet, or line-aligned text. A file has all `columns`, unless its columns are named
            before it, as in "en-fr=a.tsv". A kind of text may also be named, as in "news/en-fr=a.tsv"; the setting
            `train.kind_weights` refers to it.
        out: The new folder.
        columns: Languages ("en"), or "a:en", "b:en" if two columns have the same language; "gold:label" is a column of
            labels. The default is the columns that are named with the data, or else the columns of the recipe.
        overrides: New values of the recipe's settings, by name: {"train.epochs": 1}.
        init_from: A checkpoint. The run begins with the parameters of the checkpoint, and uses its tokenizer and sizes.
            The model of a second stage is built on the checkpoint's model.
        teacher: Another encoder's vectors of all rows, including rows that training skips: one .npy (rows, D) for each
            data file, or None for a file without vectors. If `recipe` is a name, it is configured to learn from them.
        tokenizer: A SentencePiece model; by default one is trained on the data.
        strict: Treat lines that would be skipped as errors.
        device: "auto", "cpu", "cuda" or "cuda:1".
        workers: Number of processes that share the cores of a CPU; None for the fastest number. The number of workers
            changes only the rounding. With several workers, a script needs `if __name__ == "__main__"`.
        report: A function that is called with each row of metrics.

    Returns:
        The last checkpoint, which `bgt_core.load` opens.

    Raises:
        BgtError: The text or the settings are invalid. `out` is then removed.

    >>> import bgt_core
    >>> last = bgt_core.train("bgt-small", ["pairs.tsv"], "runs/mine", columns=["en", "fr"])  # doctest: +SKIP
    >>> bgt = bgt_core.load(last)  # doctest: +SKIP
    """
    out = Path(out)
    if isinstance(recipe, str):
        recipe = recipe_for(recipe, data, columns, overrides or {}, init_from, teacher)
    elif overrides or columns or init_from:
        raise UsageError("recipe: a Recipe object contains columns, settings and init_from; change them in the object")
    if recipe.init_from and not tokenizer:
        tokenizer = checkpoint.find(recipe.init_from) / checkpoint.TOKENIZER
    sources, tokens = setup.sources_of(recipe, data, teacher), Path(tokenizer) if tokenizer else None
    set_up = partial(setup.set_up_run, recipe, sources, out, tokens, strict, device, report)
    return train_in_workers(out, set_up, workers, device, report)


@usual_defaults()
def resume(
    out: str | Path,
    *,
    device: str = "auto",
    workers: int | None = 1,
    report: Report = silent,
    overrides: Mapping[str, Any] | None = None,
) -> Path:
    """Continue the run in `out` from its newest complete checkpoint; return its last checkpoint.

    `overrides`, as in {"train.learning_rate": 1e-4}, change settings of `train` and `objective` for the remaining
    steps, and are stored with the run. The other arguments are the same as in `train`. Raises UsageError for settings
    that can't change, and if another process trains in `out`.
    """
    recipe, document = setup.read_settings(out := Path(out))
    set_up = partial(change, recipe, document, overrides, out) if overrides else lambda: recipe
    return train_in_workers(out, set_up, workers, device, report)


def train_in_workers(
    out: Path, set_up: Callable[[], Recipe], worker_count: int | None, device: str, report: Report
) -> Path:
    """Train in the processes that `torchrun` started, or in `worker_count` processes on this machine. The first process
    calls `set_up`, which writes all files of the run except checkpoints and returns the recipe."""
    with Workers.from_environment() as launched, locked(out) if launched.is_main else nullcontext():
        check_workers(worker_count, device, launched)
        recipe = cast(Recipe, launched.every(set_up() if launched.is_main else None)[0])
        if launched.count == 1:
            worker_count = worker_count or usual_workers(recipe.train, pick_device(device))
        if launched.count > 1 or worker_count == 1 or worker_count is None:
            return train_here(launched, out, recipe, device, report)
        try:  # the other processes write nothing, so they may be killed at any moment
            with joined(worker_count, train_here, out, recipe, device) as workers:
                return train_here(workers, out, recipe, device, report)
        except BgtError as error:
            if type(error) is not BgtError:
                raise
            raise BgtError(f"{error} Continue with: bgt train --resume --out {quote(str(out))}") from error


def recipe_for(
    name: str,
    data: Sequence[str | Path | Source],
    columns: Sequence[str],
    overrides: Mapping[str, Any],
    init_from: str | Path | None,
    teacher: Teacher = (),
) -> Recipe:
    """Configure a recipe for these columns and data. With `init_from`, use the sizes of this checkpoint. With
    `teacher`, turn on distillation from the teacher's vectors."""
    settings: dict[str, Any] = inherited(name, str(init_from)) if init_from else {}
    if columns := list(map(canonical_column, columns)) or named_columns(data):
        settings["data.columns"] = columns
    paths = [Path(path) for path in teacher if path is not None]
    if paths and name in RECIPES:  # for an unknown recipe, `configure` raises an error below
        taught = [each for each, make in RECIPES.items() if WIDTH in make().arguments]
        if name not in taught:
            text = f"{paths[0]}: recipe '{name}' can't learn from vectors; choose from {', '.join(taught)}"
            raise UsageError(text, parameter="teacher")
        settings |= {WIDTH: read_targets(paths[0]).shape[1], WEIGHT: Distillation.weight}
    return recipes.configure(name, settings | dict(overrides))


def inherited(name: str, init_from: str) -> dict[str, Any]:
    """Return the settings of model and text processing (except `train_decoders`) that a run copies from the checkpoint
    `init_from`. The checkpoint has the run's recipe, or is the first stage of the run's two-stage recipe."""
    config = checkpoint.read_config(checkpoint.find(init_from))
    arguments, before = config["arguments"], config["recipe"]
    second_stage = recipes.configure(name, {}).base != ""
    prefix = "model.base." if second_stage and before != name else "model."
    settings: dict[str, Any] = {"init_from": init_from}
    if second_stage:
        settings["base"] = arguments["base"] if before == name else before
    for key, value in arguments.items():
        if key.startswith("model.") and key != "model.train_decoders":
            settings[prefix + key.removeprefix("model.")] = value
        elif key in ("data.vocab_size", "data.lowercase"):
            settings[key] = value
    known = recipes.configure(name, {key: value for key, value in settings.items() if key == "base"}).arguments
    return {key: value for key, value in settings.items() if key in known}


def named_columns(data: Iterable[str | Path | Source]) -> list[str]:
    """List all columns named in the data arguments, as in en-fr=FILE; empty if an argument names no columns."""
    try:
        sources = [source if isinstance(source, Source) else parse_source(str(source)) for source in data]
    except UsageError:
        return []
    return list(dict.fromkeys(name for source in sources for name in read_columns(source.columns)))


def train_here(workers: Workers, out: Path, recipe: Recipe, device_name: str, report: Report = silent) -> Path:
    """Train a run in one worker process to its end, from its newest checkpoint or from the beginning."""
    tokenizer, newest = Tokenizer.load(out / checkpoint.TOKENIZER), newest_checkpoint(workers, out, report)
    corpus, held_out = (open_corpus(out / "data", split) for split in ("train", "valid"))
    if newest:
        check_unchanged(newest, recipe, tokenizer, corpus, out)
        if workers.is_main:
            verify_corpus(corpus)
    model: LatentModel = newest.model if newest else initial_model(recipe, tokenizer, corpus)
    step, device, penalty = newest.config["step"] if newest else 0, pick_device(device_name), None
    warn_if_slow(device, recipe.train.precision if workers.is_main else "auto")
    keep_memory()
    if recipe.train.composition_l2 or recipe.train.table_l2:
        began = initial_model(recipe, tokenizer, corpus) if newest else model  # the model before step 0
        start = {name: table.detach().clone() for name, table in token_tables(began).items()}
        penalty = Penalty(model.to(device), recipe.train, start)
    model = model.to(device).train()
    freeze(model, recipe.freeze)
    optimizer = make_optimizer(model, recipe.train)
    if newest and step:  # a checkpoint of step 0 has no optimiser state
        checkpoint.fill_optimizer(model, optimizer, newest.folder)

    def save(done: int) -> None:
        folder = out / f"step-{done:07d}"
        if workers.is_main and not folder.exists():  # if a finished run is resumed, its last checkpoint exists already
            checkpoint.save(folder, recipe, model, tokenizer, done, optimizer)
            keep_newest(out)

    def record(row: dict[str, Any]) -> None:
        metrics = out / checkpoint.METRICS
        if workers.is_main:
            with writing(metrics), metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            report(row)

    informations = tidy(workers, out, step)
    trainer = Trainer(model, optimizer, recipe.objective, recipe.train, device, workers, penalty)
    try:
        with signals() as stopped:
            done = train_model(trainer, corpus, held_out, Hooks(record, save, stopped), step, informations)
    except Diverged as error:
        saved = checkpoint.steps_of(out)
        state = f"The state after update {int(saved[-1].name[5:])} is kept; continue" if saved else ""
        lower = f"bgt train --resume --out {quote(str(out))} --set train.learning_rate=..."
        way_out = f"{state or 'Nothing was saved yet; start again'} with a lower learning rate: {lower}"
        raise Diverged(f"{error}. {way_out}") from None
    workers.wait()  # wait until the first worker has written the last checkpoint
    if done < total_steps(corpus, recipe.train):
        raise Interrupted(f"Stopped; the state is saved. Continue with: bgt train --resume --out {quote(str(out))}")
    return checkpoint.steps_of(out)[-1]


def check_unchanged(
    newest: checkpoint.Checkpoint, recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus | Mixture, out: Path
) -> None:
    """Raise DataError if fixed settings or the tokenizer of a run have changed since its newest checkpoint."""
    trained = {**newest.recipe.arguments, "recipe": newest.recipe.name}
    if name := differing({"recipe": recipe.name, **recipe.arguments}, trained):
        was = f"the run was trained with {trained[name]!r}"
        raise DataError(f"{out / SETTINGS}: {name} was changed; {was}. Restore this value.")
    stored = (part.store["settings"]["tokenizer"] for part in corpus.corpora)
    if {newest.tokenizer.sha256, *stored} != {tokenizer.sha256}:
        raise DataError(
            f"{out / checkpoint.TOKENIZER}: not the tokenizer with which the run began. Copy the tokenizer from the "
            f"checkpoint and restore the original {out / 'data'}, or start a new run."
        )


def newest_checkpoint(workers: Workers, out: Path, report: Report) -> checkpoint.Checkpoint | None:
    """Load the newest complete checkpoint; None if none has been saved. Rename and report damaged checkpoints; raise
    DataError if all are damaged."""
    loaded = None
    for folder in reversed(checkpoint.steps_of(out) if workers.is_main else []):
        try:
            loaded = checkpoint.load(folder)
            break
        except DataError as error:
            if folder == checkpoint.steps_of(out)[0]:
                raise
            aside = folder.with_name(folder.name + DAMAGED)
            remove(aside)
            folder.rename(aside)
            report({"kind": "note", "text": f"{error} Continuing from the checkpoint before it."})
    workers.wait()  # wait until the first worker has renamed damaged checkpoints
    saved = checkpoint.steps_of(out)
    return loaded if loaded or not saved else checkpoint.load(saved[-1])


def tidy(workers: Workers, out: Path, step: int) -> list[float]:
    """Remove files left by a killed process, and the metrics of steps that will be repeated. Return the values of the
    mutual information that were reported up to `step`, in nats."""
    metrics = out / checkpoint.METRICS
    kept = rows_until(metrics, step)
    if workers.is_main:
        for leftover in out.glob(f"*{PARTIAL}*"):  # unfinished files and their lock files
            remove(leftover)
        keep_newest(out)
        if metrics.exists():
            write_text(metrics, "".join(kept))
    return [row["information"] for row in map(json.loads, kept) if row["kind"] == "information"]


def keep_newest(out: Path) -> None:
    """Remove all but the newest `KEEP` checkpoints. Rename each before its removal, so that a killed process never
    leaves an incomplete checkpoint."""
    for old in checkpoint.steps_of(out)[:-KEEP]:
        partial_name = old.with_name(old.name + PARTIAL)
        with writing(old):
            old.rename(partial_name)
            shutil.rmtree(partial_name)


def rows_until(metrics: Path, step: int) -> list[str]:
    """Read the rows of metrics up to `step`. Skip invalid rows, for example an incomplete row of a killed process."""
    rows = json_lines(metrics) if metrics.exists() else []
    return [line for line, row in rows if row.get("kind") and isinstance(row.get("step"), int) and row["step"] <= step]


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Within the block, lock the folder `out` against other training processes. First make the folder if it is absent,
    and remove unfinished files of a killed process. At the end, remove a new folder that is still empty."""
    lock, made = out / LOCK, not out.exists()

    def release() -> None:
        with suppress(OSError):
            lock.unlink()
            if made:
                out.rmdir()

    with ExitStack() as stack:
        with writing(out, "; name another folder"):
            out.mkdir(parents=True, exist_ok=True)
            killed = lock.exists()  # only a killed process leaves its lock file behind
            if not stack.enter_context(file_lock(lock)):
                raise UsageError(f"{out}: another process trains in this folder; wait, or choose another folder.")
            stack.callback(release)
            if killed and not (out / SETTINGS).exists():
                for path in (out / "data", out / checkpoint.TOKENIZER, *out.glob(f"*{PARTIAL}*")):
                    remove(path)
        yield


@contextmanager
def signals() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM and SIGINT end the run after the current step, and a second SIGINT end it immediately. Yield a
    function that returns whether a signal has arrived."""
    arrived: list[int] = []

    def note(number: int, frame: object) -> None:
        if arrived and number == signal.SIGINT:
            raise KeyboardInterrupt
        arrived.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(arrived)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# The rest of this module initialises the model: at random, or from a checkpoint, an encoder or a teacher.

SAMPLE = 8_192  # number of rows from which to compute a rotation (`turn_to_teacher`), or the scale of stored vectors


def initial_model(recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus | Mixture) -> LatentModel:
    """Build the model as it is before the first update, from the seed or from the checkpoint `init_from`."""
    torch.manual_seed(recipe.train.seed)
    model = recipe.build(tokenizer)
    untouched = [name for name, _ in model.named_parameters()]  # parameters that are not copied from a checkpoint
    if recipe.init_from:
        untouched = checkpoint.warm_start(model, checkpoint.find(recipe.init_from))
    encoder = recipe.arguments.get("model.average_from")
    if encoder and any(dict(model.named_parameters())[name] is model.semantic_table.weight for name in untouched):
        start_average(model.semantic_table, encoder, tokenizer)
    if "teacher.weight" in untouched:
        turn_to_teacher(model, corpus)
    if isinstance(model, VectorModel) and not recipe.init_from:
        vectors = [vectors.view(-1, len(model.stored.mean)) for _, _, vectors in samples(corpus)]
        model.stored.fit(torch.cat(vectors))
    model.restrict(lambda lang: torch.from_numpy(corpus.used_tokens(lang, tokenizer.vocab_size)))
    return model


def samples(corpus: Corpus | Mixture) -> list[tuple[Corpus, np.ndarray, Tensor]]:
    """Return (corpus, indices of N evenly spaced rows, their vectors (N, D)) for corpora with a teacher's vectors."""
    sampled = []
    for part in corpus.corpora:
        rows = np.linspace(0, len(part) - 1, min(SAMPLE, len(part))).astype(np.int64)
        if len(part) and (vectors := part.targets(rows)) is not None:
            sampled.append((part, rows, torch.from_numpy(vectors)))
    return sampled


@torch.no_grad()
def start_average(table: nn.Embedding, encoder: str, tokenizer: Tokenizer) -> None:
    """Initialise an averaging encoder's token vectors: embed each token's text, and subtract the mean vector.

    model2vec (https://github.com/MinishLab/model2vec) does the same. Training with a teacher reaches good vectors much
    sooner from this initialisation than from random vectors. The vectors are scaled to a mean length of 1, the length
    of random vectors, because longer vectors would change direction slowly. Vectors of special tokens do not change.
    """
    opened = open_encoder(encoder, device="cpu")
    texts = {token: text.strip() for token, text in enumerate(tokenizer.texts()) if text.strip()}
    lang = next(iter(opened.langs), "en")
    vectors = torch.from_numpy(binary_scaled(opened.embed([*texts.values()], lang=lang), axis=None))
    if (units := vectors.shape[1]) != table.embedding_dim:
        rule = f"its vectors have {units} units, but the average has {table.embedding_dim}; set average_dim={units}"
        raise UsageError(f"average_from {encoder}: {rule}")
    vectors -= vectors.mean(0)
    table.weight[torch.tensor(list(texts))] = vectors / vectors.norm(dim=1).mean()


@torch.no_grad()
def turn_to_teacher(model: LatentModel, corpus: Corpus | Mixture) -> None:
    """Initialise the linear map from semantic means to a teacher's vectors with the rotation that brings the means
    nearest to the vectors.

    This is the Procrustes problem. It is solved for the first column of the first corpus with vectors. With a random
    map, training would first have to rotate the semantic means, and they would lose information meanwhile.
    """
    for part, rows, vectors in samples(corpus)[:1]:
        batches = [make_batch(part, rows[start : start + 256], 0) for start in range(0, len(rows), 256)]
        sides = (next(iter(batch.sides.values())) for batch in batches)
        model.eval()
        means = F.normalize(torch.cat([model.encoders[SEMANTIC](side).mean for side in sides]).float(), dim=-1)
        model.train()
        units = F.normalize(torch.from_numpy(binary_scaled(vectors.numpy())), dim=-1)
        left, _, right = torch.linalg.svd(units.T @ means, full_matrices=False)
        dict(model.named_parameters())["teacher.weight"].copy_(left @ right)
