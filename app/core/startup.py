"""The options of the app: `bgt app --model PATH --data en,fr=FILE --results FILE --questions STORE`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from bgt_core import PRETRAINED
from bgt_core.data.columns import read_columns
from bgt_core.data.examples import CREDIT, LANGS
from bgt_core.errors import UsageError

AS_SHIPPED = "{}, as shipped"
EXAMPLES, BUILT_IN = "Example sentences", "Built-in grammar"
PROBES_FOLDER = "probes"  # folder inside a model's folder with results of `bgt-probe`


@dataclass(frozen=True)
class ParallelText:
    """A text in several languages, sentence by sentence, or in a single one."""

    langs: tuple[str, ...]  # the languages that are shown
    file: Path | None  # TSV (perhaps compressed) or Parquet, one column per language; None for built-in sentences
    credit: str = ""  # the source of the sentences in Markdown, shown below them
    columns: tuple[str, ...] = ()  # columns of the file, if they differ from `langs`
    # The table of an uploaded file; None for other texts. Its columns "0", "1", and so on have the sentences in the
    # languages `columns`; "gold" and "own:NAME" may follow. In pairs of sentences, two columns are in one language.
    table: pd.DataFrame = field(default=None, compare=False, repr=False)
    digest: str = ""  # hash of the table

    @property
    def sides(self) -> list[str]:
        """The names of the table's columns whose language is in `langs`."""
        return [str(at) for at, lang in enumerate(self.columns or self.langs) if lang in self.langs]

    @property
    def unit(self) -> str:
        """The plural noun for the rows of the text."""
        return {1: "sentences", 2: "pairs"}.get(len(self.langs), "translations")

    def alone(self, lang: str) -> ParallelText:
        """Return the sentences in one language, without their translations."""
        return replace(self, langs=(lang,), columns=self.columns or self.langs)


GRAMMAR = ParallelText(("en", "fr"), None)


def texts_in(texts: Mapping[str, ParallelText], langs: Sequence[str]) -> dict[str, ParallelText]:
    """Return the texts that a model of these languages can read, those with the most languages first."""
    if len(langs) == 1:
        (lang,) = langs
        single = {name: text.alone(lang) for name, text in texts.items() if lang in text.langs}
        return {f"{EXAMPLES} ({lang})" if text.credit else name: text for name, text in single.items()}
    readable = {name: text for name, text in texts.items() if set(text.langs) <= set(langs)}
    return dict(sorted(readable.items(), key=lambda item: -2 if item[1].credit else -len(item[1].langs)))


@dataclass(frozen=True)
class StartOptions:
    """The models and files that pages may open. A link can select only these."""

    models: dict[str, str]  # name -> spec for `open_encoder`; the first is the default
    texts: dict[str, ParallelText]
    results: tuple[Path, ...]  # files that `bgt-probe` wrote, or folders of such files
    questions: Path | None = None  # a store that `bgt retrieve-similar` built

    @property
    def langs(self) -> list[str]:
        """The languages of all texts, for encoders that accept any language."""
        return list(dict.fromkeys(lang for text in self.texts.values() for lang in text.langs))


def read(arguments: Sequence[str] | None = None) -> StartOptions:
    """Parse the options after `--`. All except --questions may be repeated. Raises UsageError for an invalid --data."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--results", action="append", default=[], type=Path)
    parser.add_argument("--questions", type=Path)
    given, _ = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    paths = list(dict.fromkeys(path for argument in given.model for path in checkpoints(argument)))
    inside = shipped()
    models = short_names(paths, inside) | inside
    own_results = (Path(path) / PROBES_FOLDER for path in models.values())
    results = (*filter(Path.is_dir, own_results), *given.results)
    texts = [parallel_text(argument) for argument in dict.fromkeys(given.data)]
    names = told_apart([name for name, _ in texts], [str(text.file) for _, text in texts])
    texts_of_user = {name: text for name, (_, text) in zip(names, texts, strict=True)}
    # the examples are in English and another language, or in the four languages that share the most examples
    sets = [*((LANGS[0], lang) for lang in LANGS[1:]), LANGS[:4]]
    examples = {f"{EXAMPLES} ({'-'.join(langs)})": ParallelText(langs, None, CREDIT) for langs in sets}
    return StartOptions(models, examples | {BUILT_IN: GRAMMAR} | texts_of_user, results, given.questions)


def shipped() -> dict[str, str]:
    """Return name -> path of each model in the package, the default model first."""
    folders = sorted(filter(is_model, PRETRAINED.parent.iterdir()), key=lambda folder: (folder != PRETRAINED, folder))
    return {AS_SHIPPED.format(folder.name): str(folder) for folder in folders}


def checkpoints(path: str) -> list[str]:
    """Return the checkpoints and runs in a folder; a single model's folder or name is returned unchanged."""
    folder = Path(path)
    if not os.path.isdir(path) or is_model(folder) or (folder / "modules.json").is_file():
        return [path]
    return [str(inside) for inside in sorted(folder.iterdir()) if is_model(inside)] or [path]


def is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or any(folder.glob("step-*/config.json"))


def short_names(specs: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return short name -> spec, in the order of the specs."""
    names = told_apart([short_name(spec) for spec in specs], [pathname(spec) for spec in specs], taken)
    return dict(zip(names, specs, strict=True))


def short_name(spec: str) -> str:
    """Return a model's short name: the name of its folder or file, or the part of the spec after its kind."""
    kind = path_kind(spec)
    if kind in ("baseline:", "python:"):
        return spec if kind == "baseline:" else spec.removeprefix(kind)
    return os.path.basename(os.path.abspath(pathname(spec))) or spec


def public(text: str) -> str:
    """Return the short name of an absolute path, or of a spec that contains one. Other text is returned unchanged."""
    return short_name(text) if os.path.isabs(os.path.expanduser(pathname(text))) else text


def portable(spec: str) -> str:
    """Return a spec without the folders above the model's folder, for files that are passed on to other people."""
    path = pathname(spec)
    if not os.path.exists(path):
        return spec
    name = short_name(spec)
    return name if Path(path).parent == PRETRAINED.parent else f"{path_kind(spec)}.{os.sep}{name}"


def told_apart(names: Sequence[str], paths: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Make names different: put the path's folder before repeated names, and a number after those still repeated."""
    different: list[str] = []
    for name, path in zip(names, paths, strict=True):
        folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
        longer = f"{folder}/{name}" if names.count(name) > 1 and folder else name
        different.append(free_name(longer, [*taken, *different]))
    return different


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name; if it is already taken, add a number to it."""
    return next(
        each for each in (name, *(f"{name} ({number})" for number in range(2, len(taken) + 3))) if each not in taken
    )


def pathname(spec: str) -> str:
    """Return a spec without its kind: "vectors:FILE" -> "FILE"."""
    return spec.removeprefix(path_kind(spec))


def path_kind(path: str) -> str:
    """Return the kind of an external encoder, such as "vectors:", or an empty text for a checkpoint."""
    kind, colon, _ = path.partition(":")
    return "" if os.path.exists(path) else kind + colon if colon else ""


def parallel_text(argument: str) -> tuple[str, ParallelText]:
    """Return the name and the text of an argument such as "en,fr,de=triples.tsv". Columns named "_" are skipped."""
    langs, equals, file = argument.partition("=")
    codes = tuple(langs.split(","))
    read = read_columns(codes)
    if not equals or len(set(read)) != len(read) or not read or not all(codes) or not file:
        raise UsageError(f"--data {argument}: expected different languages and a file, as in en,fr=pairs.tsv.")
    return f"{Path(file).name} ({'-'.join(read)})", ParallelText(read, Path(file), columns=codes)
