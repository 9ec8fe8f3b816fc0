"""What the app is started with: `streamlit run app/main.py -- --model PATH --data en,fr=FILE --results FILE`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bgt_core import PRETRAINED
from bgt_core.errors import UsageError

SHIPPED = "bgt-small, as shipped"
BUILT_IN = "Built-in grammar"
PROBED = "probes"  # in a model's folder: what `bgt-probe` found of it


@dataclass(frozen=True)
class Corpus:
    """Translations to look at: a TSV, gz, xz, zst or Parquet file with a column a language."""

    langs: tuple[str, str]
    file: Path | None  # none: the built-in grammar


GRAMMAR = Corpus(("en", "fr"), None)


@dataclass(frozen=True)
class Options:
    """Everything a page may open; nothing is ever opened by a name that came from the address bar alone."""

    models: dict[str, str]  # name -> folder, or ORG/NAME on the hub; the first is opened at the start
    data: dict[str, Corpus]
    results: tuple[Path, ...]  # files and folders of `bgt-probe`


def read(arguments: Sequence[str] | None = None) -> Options:
    """The options after `--`; each may be given any number of times. BgtError for a --data without languages."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--results", action="append", default=[], type=Path)
    asked, _ = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    found = dict.fromkeys(path for given in asked.model for path in checkpoints(given))
    models = named(list(found)) | {SHIPPED: str(PRETRAINED)}
    probed = (Path(path) / PROBED for path in found or [PRETRAINED])
    results = (*filter(Path.is_dir, probed), *asked.results)
    return Options(models, {BUILT_IN: GRAMMAR} | dict(map(corpus, asked.data)), results)


def checkpoints(given: str) -> list[str]:
    """A folder that is a checkpoint or a run, or a name on the hub, as it is; of any other folder those inside."""
    folder = Path(given)
    if is_model(folder) or not folder.is_dir():
        return [given]
    return [str(path) for path in sorted(folder.iterdir()) if is_model(path)] or [given]


def is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or any(folder.glob("step-*/config.json"))


def named(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path names it; all of it where two end alike."""
    short = [Path(path).name for path in paths]
    return {name if short.count(name) == 1 else path: path for name, path in zip(short, paths, strict=True)}


def corpus(given: str) -> tuple[str, Corpus]:
    """ "en,fr=pairs.tsv" -> its name and what it is."""
    langs, equals, file = given.partition("=")
    codes = tuple(langs.split(","))
    if not equals or len(codes) != 2 or not all(codes) or not file:
        raise UsageError(f"--data {given}: expected two languages and a file, as in en,fr=pairs.tsv.")
    return f"{Path(file).name} ({'-'.join(codes)})", Corpus(codes, Path(file))
