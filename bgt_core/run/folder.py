"""What a run folder holds beside checkpoints, made whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from bgt_core import checkpoint
from bgt_core.data.columns import LABEL, Source, parse_columns, parse_source, parse_weights, read_columns
from bgt_core.data.corpus import SPLITS, Corpus, Mixture, open_corpus
from bgt_core.data.parallel import sentences
from bgt_core.data.store import prepare
from bgt_core.data.text import Tokenizer
from bgt_core.errors import UsageError
from bgt_core.files import PARTIAL, file_lock, remove, writing
from bgt_core.recipes import Recipe
from bgt_core.run.initial import outline, rehearse
from bgt_core.run.settings import SETTINGS, write_settings
from bgt_core.run.teaching import check_targets

LOCK = "run.lock"  # there while a process trains, or after it was killed

Report = Callable[[dict[str, Any]], None]  # told each row of metrics


def silent(row: dict[str, Any]) -> None:
    """Reports nothing."""


def sources_of(recipe: Recipe, data: Sequence[str | Path | Source]) -> list[Source]:
    """The files of a run with the columns of each."""
    names = tuple(parse_columns(recipe.data.columns))
    return [source if isinstance(source, Source) else parse_source(str(source), names) for source in data]


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """No other process trains in `out`, made if need be, until the block ends, or this one does.

    What a killed preparation left is removed, and a new folder that stays empty. UsageError where another trains.
    """
    lock, made = out / LOCK, not out.exists()
    with ExitStack() as held:
        with writing(out, "; name another folder"):
            out.mkdir(parents=True, exist_ok=True)
            left = lock.exists()  # no process that ends by itself leaves one
            if not held.enter_context(file_lock(lock)):
                raise UsageError(f"{out}: another process trains here; wait for it, or name another folder.")
            held.callback(release, lock, made)
            if left and not (out / SETTINGS).exists():
                for path in (out / "data", out / checkpoint.TOKENIZER, *out.glob(f"*{PARTIAL}")):
                    remove(path)
        yield


def release(lock: Path, made: bool) -> None:
    """Removes a lock, and the folder `made` for it where that holds nothing else."""
    with suppress(OSError):
        lock.unlink()
        if made:
            lock.parent.rmdir()


def prepare_run(
    recipe: Recipe, sources: Sequence[Source], out: Path, tokenizer: Path | None, strict: bool, report: Report
) -> None:
    """All of a run folder but its checkpoints, or nothing."""
    if (out / SETTINGS).exists():
        raise UsageError(f"is needed to continue the run in {out}; or name another folder.", parameter="resume")
    check_kinds(recipe.train.kind_weights, sources)
    check_targets(recipe, sources)
    if any(path.name != LOCK for path in out.iterdir()):
        raise UsageError(f"{out}: not empty, and no run to continue. Remove it, or name another folder.")
    try:
        pieces = Tokenizer.load(tokenizer) if tokenizer else train_tokenizer(recipe, sources, strict)
        model = outline(recipe, pieces)  # before the long work, so that settings that make no model end the run here
        stored = store(recipe, sources, pieces, out / "data", strict)
        for split in SPLITS:
            rehearse(recipe, model, open_corpus(out / "data", split))
        for corpus in stored.corpora if isinstance(stored, Mixture) else [stored]:
            counts, skipped = corpus.store["pairs"], corpus.store["skipped"]
            pairs = counts | {f"skipped ({reason})": lines for reason, lines in skipped.items()}
            report({"kind": "data", "pairs": pairs, "skipped": corpus.store["skipped_examples"]})
        pieces.save(out / checkpoint.TOKENIZER)
        write_settings(recipe, sources, out)
    except BaseException:
        for path in out.iterdir():
            if path.name != LOCK:
                remove(path)
        raise


def check_kinds(weights: str, sources: Sequence[Source]) -> None:
    """UsageError for a weight of a kind that no source is of."""
    kinds = dict.fromkeys(source.kind for source in sources if source.kind)
    for kind in parse_weights(weights):
        if kind not in kinds:
            known = f"there are {', '.join(kinds)}" if kinds else f"name it with the data, as {kind}/en-fr=FILE"
            raise UsageError(f"'{weights}': no data of kind '{kind}'; {known}", parameter="kind_weights")


def share(recipe: Recipe, data: Sequence[str | Path | Source], tokenizer: Path, corpus: Path, out: Path) -> None:
    """All of a run folder but its checkpoints, over the token store `corpus` that other runs read too; then `resume`.

    OUT/data is a link to the store. What a kill left in `out` is written over.
    """
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / "data").unlink(missing_ok=True)
        (out / "data").symlink_to(os.path.relpath(corpus, out))
        shutil.copy(tokenizer, out / checkpoint.TOKENIZER)
    write_settings(recipe, sources_of(recipe, data), out)


def train_tokenizer(recipe: Recipe, sources: Sequence[Source], strict: bool) -> Tokenizer:
    """One joint SentencePiece model over every column of text."""
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
        min_pieces=data.min_pieces,
        max_pieces=data.max_pieces,
        valid_pairs=data.valid_pairs,
        seed=recipe.train.seed,
        strict=strict,
    )
