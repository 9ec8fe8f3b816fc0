"""The models and texts that the app can open: shipped, named in the options at the start, or added by the user.

The options are `bgt app --model PATH --data en,fr=FILE --results FILE --questions STORE --work FOLDER`. A session has
its user's sentences, files and encoders. The server also keeps them under a random key, which only the page's URL
contains. A reload or a link then restores them; with --work, also after a restart, except for encoders.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import secrets
import string
import sys
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.core import rows
from app.core.address import put
from app.core.display import failing
from bgt_core import PRETRAINED, grammar
from bgt_core.data.columns import read_columns
from bgt_core.data.examples import CREDIT, LANGS
from bgt_core.data.parallel import Skipped, read_pairs
from bgt_core.errors import DataError, UsageError
from bgt_core.files import read_json, write_json

AS_SHIPPED = "{}, as shipped"
EXAMPLES, BUILT_IN = "Example sentences", "Built-in grammar"
PROBES_FOLDER = "probes"  # folder inside a model's folder with results of `bgt-probe`


@dataclass(frozen=True)
class ParallelText:
    """A set of sentences with translations in several languages, or of sentences in one language."""

    langs: tuple[str, ...]  # the languages whose sentences are shown
    file: Path | None  # TSV (perhaps compressed) or Parquet, one column per language; None if built in or uploaded
    credit: str = ""  # where the sentences come from, as Markdown; shown below them
    columns: tuple[str, ...] = ()  # languages of the file's columns, if they differ from `langs`

    # The table of an uploaded file; None for other texts. Its columns "0", "1", ... contain the sentences in the
    # languages `columns`, then "gold" (human scores) and "own:NAME" (for colours). Two columns may have one language.
    table: pd.DataFrame = field(default=None, compare=False, repr=False)
    digest: str = ""  # hash of the table

    @property
    def sides(self) -> list[str]:
        """The names ("0", "1", ...) of the columns with sentences in the languages `langs`."""
        return [str(at) for at, lang in enumerate(self.columns or self.langs) if lang in self.langs]

    @property
    def unit(self) -> str:
        """The plural noun for the rows of the text: "sentences", "pairs" or "translations"."""
        return {1: "sentences", 2: "pairs"}.get(len(self.langs), "translations")

    def alone(self, lang: str) -> ParallelText:
        """Return the same text with the sentences of only one language, without their translations."""
        return replace(self, langs=(lang,), columns=self.columns or self.langs)


GRAMMAR = ParallelText(("en", "fr"), None)


def texts_in(texts: Mapping[str, ParallelText], langs: Sequence[str]) -> dict[str, ParallelText]:
    """Return the texts that a model of these languages can read; texts in more of its languages come first."""
    if len(langs) == 1:
        (lang,) = langs
        single = {name: text.alone(lang) for name, text in texts.items() if lang in text.langs}
        return {f"{EXAMPLES} ({lang})" if text.credit else name: text for name, text in single.items()}
    readable = {name: text for name, text in texts.items() if set(text.langs) <= set(langs)}
    return dict(sorted(readable.items(), key=lambda item: -2 if item[1].credit else -len(item[1].langs)))


@dataclass(frozen=True)
class StartOptions:
    """The models and files named when the app was started. Pages and links can open only these."""

    models: dict[str, str]  # name -> argument for `open_encoder`; the first model is the default
    texts: dict[str, ParallelText]
    results: tuple[Path, ...]  # files that `bgt-probe` wrote, or folders of such files
    questions: Path | None = None  # a store that `bgt retrieve-similar` built
    work: Path | None = None  # the folder in which users' sentences, uploads and splits outlive the app

    @property
    def langs(self) -> list[str]:
        """The languages of all texts. The app offers these for an encoder that accepts any language."""
        return list(dict.fromkeys(lang for text in self.texts.values() for lang in text.langs))


def read(arguments: Sequence[str] | None = None) -> StartOptions:
    """Parse the app's command-line options. Raises UsageError for wrong --data. The splits in --work are models."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--results", action="append", default=[], type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--work", type=Path)
    given, _ = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    paths = list(dict.fromkeys(path for argument in given.model for path in checkpoints(argument)))
    inside = shipped()
    models = short_names(paths, inside) | inside
    splits = [f"split:{file.parent}" for file in sorted(given.work.glob("*/split.json"))] if given.work else []
    models |= short_names(splits, models)
    own_results = (Path(path) / PROBES_FOLDER for path in models.values())
    results = (*filter(Path.is_dir, own_results), *given.results)
    texts = [parallel_text(argument) for argument in dict.fromkeys(given.data)]
    names = told_apart([name for name, _ in texts], [str(text.file) for _, text in texts])
    texts_of_user = {name: text for name, (_, text) in zip(names, texts, strict=True)}
    # examples in English and one other language, and in four languages together
    sets = [*((LANGS[0], lang) for lang in LANGS[1:]), LANGS[:4]]
    examples = {f"{EXAMPLES} ({'-'.join(langs)})": ParallelText(langs, None, CREDIT) for langs in sets}
    return StartOptions(models, examples | {BUILT_IN: GRAMMAR} | texts_of_user, results, given.questions, given.work)


def shipped() -> dict[str, str]:
    """Return name -> path of each model in the package, the default model first."""
    folders = sorted(filter(is_model, PRETRAINED.parent.iterdir()), key=lambda folder: (folder != PRETRAINED, folder))
    return {AS_SHIPPED.format(folder.name): str(folder) for folder in folders}


def checkpoints(path: str) -> list[str]:
    """Return the checkpoints and training runs in a folder; return a single model's folder or name unchanged."""
    folder = Path(path)
    if not os.path.isdir(path) or is_model(folder) or (folder / "modules.json").is_file():
        return [path]
    return [str(inside) for inside in sorted(folder.iterdir()) if is_model(inside)] or [path]


def is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() or any(folder.glob("step-*/config.json"))


def short_names(specs: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return short name -> spec (the model's name for `open_encoder`) of models, in the order of `specs`."""
    names = told_apart([short_name(spec) for spec in specs], [pathname(spec) for spec in specs], taken)
    return dict(zip(names, specs, strict=True))


def short_name(spec: str) -> str:
    """Return a model's short name: the name of its folder or file, or its spec without the kind of encoder."""
    kind = path_kind(spec)
    if kind in ("baseline:", "python:"):
        return spec if kind == "baseline:" else spec.removeprefix(kind)
    return os.path.basename(os.path.abspath(pathname(spec))) or spec


def public(text: str) -> str:
    """Return the short name of an absolute path or of a spec that contains one, and any other text unchanged."""
    return short_name(text) if os.path.isabs(os.path.expanduser(pathname(text))) else text


def portable(spec: str) -> str:
    """Return a model's spec without the path above its folder, for files that are passed on to other people."""
    path = pathname(spec)
    if not os.path.exists(path):
        return spec
    name = short_name(spec)
    return name if Path(path).parent == PRETRAINED.parent else f"{path_kind(spec)}.{os.sep}{name}"


def told_apart(names: Sequence[str], paths: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Make names unique: put the path's folder before repeated names, and a number after those still repeated."""
    different: list[str] = []
    for name, path in zip(names, paths, strict=True):
        folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
        longer = f"{folder}/{name}" if names.count(name) > 1 and folder else name
        different.append(free_name(longer, [*taken, *different]))
    return different


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name; if it is already taken, add a number to it."""
    return next(each for each in (name, *(f"{name} ({at})" for at in range(2, len(taken) + 3))) if each not in taken)


def pathname(spec: str) -> str:
    """Return a model's spec without the prefix for the kind of encoder: "vectors:FILE" -> "FILE"."""
    return spec.removeprefix(path_kind(spec))


def path_kind(path: str) -> str:
    """Return the prefix for the kind of encoder in a spec, such as "vectors:"; "" for a checkpoint of this toolkit."""
    kind, colon, _ = path.partition(":")
    return "" if os.path.exists(path) else kind + colon if colon else ""


def parallel_text(argument: str) -> tuple[str, ParallelText]:
    """Parse an argument such as "en,fr,de=triples.tsv" into the text and its name. Columns named "_" are skipped."""
    langs, equals, file = argument.partition("=")
    codes = tuple(langs.split(","))
    read = read_columns(codes)
    if not equals or len(set(read)) != len(read) or not read or not all(codes) or not file:
        raise UsageError(f"--data {argument}: expected different languages and a file, as in en,fr=pairs.tsv.")
    return f"{Path(file).name} ({'-'.join(read)})", ParallelText(read, Path(file), columns=codes)


PARAMETER = "own"  # the URL parameter with the key of the user's stored texts
SCHEMA = "bgt-own/1"  # of the files in the folder of --work
KEY_BYTES = 16  # number of random bytes, so that nobody can guess another user's key
MAX_KEPT = 1_000  # maximum number of `OwnTexts` in memory, over all sessions
MAX_BYTES = 300_000_000  # maximum size of all `OwnTexts` in memory, in bytes
MODEL_BYTES = 10_000_000  # assumed size of an encoder, in bytes

# Streamlit's caches are not used here: users can clear them, and these texts cannot be computed again.
_kept: OrderedDict[str, OwnTexts] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class OwnTexts:
    """A user's texts and encoders. A change makes a new object with a new key; old links open the old object."""

    typed: tuple[pd.DataFrame, ...] = ()  # typed sentences, which maps show as stars: the results of `rows.typed`
    uploaded: Mapping[str, ParallelText] = field(default_factory=dict)  # name -> text
    models: Mapping[str, Any] = field(default_factory=dict)  # title -> `state.Loaded` of an opened or split encoder
    split: Any = None  # the user's last split encoder: a `Made` of `split/page.py`


def of_session() -> OwnTexts:
    return st.session_state.get("own", OwnTexts())


def change(**parts: Any) -> None:
    """Replace some of the user's texts or encoders in this session, and write the new key into the URL."""
    own = replace(of_session(), **parts)
    st.session_state["own"] = own
    st.session_state["own_key"] = kept(own) if own.typed or own.uploaded or own.models or own.split else ""
    put(PARAMETER, st.session_state["own_key"])


def add(lines: str, lang: str) -> tuple[list[str], int]:
    """Add sentences, one per line, to those that the user typed. Return their ids, and how many exceed the limit."""
    own = of_session().typed
    table, left_out = rows.typed(lines, lang, sum(map(len, own)))
    if len(table):
        change(typed=(*own, table))
    return table["id"].tolist(), left_out


def restore() -> bool:
    """Load the user's texts whose key is in the URL, once per session. Return False if they are no longer in memory."""
    key = st.query_params.get(PARAMETER, "")
    new = "own_key" not in st.session_state
    own = recalled(key) if new else None
    if new:
        st.session_state.update(own=own or OwnTexts(), own_key=key if own else "")
    put(PARAMETER, st.session_state["own_key"])  # because the URL of a newly opened page has no parameters
    return own is not None or not (new and key)


def kept(own: OwnTexts) -> str:
    """Store a user's texts, and return their key. If memory is short, drop the least recently used texts."""
    key = secrets.token_urlsafe(KEY_BYTES)
    if work := read().work:
        with failing():  # the folder may be full or read-only
            store(work / f"{key}.json", own)
    with _lock:
        _kept[key] = own
        while len(_kept) > 1 and (len(_kept) > MAX_KEPT or _bytes() > MAX_BYTES):
            _kept.popitem(last=False)
    return key


def recalled(key: str) -> OwnTexts | None:
    """Return the texts stored under a key; None if there are none. Raises DataError if their file is damaged."""
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    path = (read().work or Path()) / f"{key}.json"
    return stored(path) if read().work and re.fullmatch(r"[\w-]+", key) and path.is_file() else None


def store(path: Path, own: OwnTexts) -> None:
    """Write a user's sentences and uploads to a JSON file in the folder of --work."""
    typed = [(table["text"].tolist(), table["lang"][0], None, int(table["pair"][0])) for table in own.typed]
    tables = ((text, text.table.astype(object)) for text in own.uploaded.values())
    columns = [(text.columns, table.where(table.notna(), None).to_dict("list")) for text, table in tables]
    content = {"schema": SCHEMA, "typed": typed, "uploaded": dict(zip(own.uploaded, columns, strict=True))}
    write_json(path, content, indent=None)


def stored(path: Path) -> OwnTexts:
    """Read the file that `store` wrote. Raises DataError if it is damaged."""
    content = read_json(path)
    try:
        if content["schema"] != SCHEMA:
            raise DataError(f"{path}: another version of the app wrote it: its schema is not {SCHEMA}.")
        typed = tuple(rows.table(*part) for part in content["typed"])
        uploaded = {name: uploaded_text(pd.DataFrame(of), langs) for name, (langs, of) in content["uploaded"].items()}
        return OwnTexts(typed, uploaded)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: damaged ({error!r}).") from None


def uploaded_text(table: pd.DataFrame, columns: Sequence[str]) -> ParallelText:
    """Make a text from the table of an uploaded file, whose columns "0", "1", ... are in the languages `columns`."""
    digest = hashlib.sha256(pd.util.hash_pandas_object(table).to_numpy().tobytes())
    digest.update(repr((tuple(columns), list(table))).encode())
    langs = tuple(dict.fromkeys(columns))
    return ParallelText(langs, None, columns=tuple(columns), table=table, digest=digest.hexdigest())


def _bytes() -> int:
    """Estimate the size of all users' texts and encoders in bytes. A table in several `OwnTexts` counts once."""
    models = {id(model) for own in _kept.values() for model in own.models.values()}
    parts = [(*own.typed, *(text.table for text in own.uploaded.values())) for own in _kept.values()]
    different = {id(table): table for tables in parts for table in tables}.values()
    return MODEL_BYTES * len(models) + sum(int(table.memory_usage(deep=True).sum()) for table in different)


def readable(langs: Sequence[str], least: int = 1) -> dict[str, ParallelText]:
    """Return the texts with at least `least` columns in these languages. Those that the user uploaded come first."""
    texts = texts_in(of_session().uploaded, langs) | texts_in(read().texts, langs)
    return {name: text for name, text in texts.items() if len(text.sides) >= least}


def columns_of(text: ParallelText, count: int) -> tuple[list[list[str]], list[str]]:
    """Return the sentences of each column in the first `count` rows of a text, and the language of each column."""
    if text.table is not None:
        sides = text.sides
        return [text.table[side].head(count).tolist() for side in sides], [text.columns[int(side)] for side in sides]
    table = sentences(text, count)
    return [table.loc[table["lang"] == lang, "text"].tolist() for lang in text.langs], list(text.langs)


def sentences(text: ParallelText, count: int) -> pd.DataFrame:
    """Return the sentences of the first `count` rows of a text, language by language. A text in only one language loses
    its repeated sentences. From an uploaded file, which may be sorted, rows are taken at equal distances. Its columns
    without sentences are named "own:NAME". All callers share the table: do not change it."""
    if text.table is not None:
        return _uploaded(text.digest, text.langs, count, text)
    return _sentences(text, count, text.file.stat().st_mtime_ns if text.file and text.file.exists() else 0)


@st.cache_resource(max_entries=6, show_spinner="Reading sentences")
def _sentences(text: ParallelText, count: int, written: int) -> pd.DataFrame:
    if text.credit:
        return rows.examples(text.langs, count)
    if text.file is None:
        generated = [[pair.texts[lang] for lang in text.langs] for pair in grammar.pairs(count)]
        return rows.translations(generated, text.langs)
    columns = text.columns or text.langs
    places = [read_columns(columns).index(lang) for lang in text.langs]
    read = ([row[place] for place in places] for row in read_pairs(text.file, columns, Skipped()))
    return rows.translations(list(islice(read if len(places) > 1 else different(read), count)), text.langs)


@st.cache_resource(max_entries=6, show_spinner="Reading sentences")
def _uploaded(digest: str, langs: Sequence[str], count: int, _text: ParallelText) -> pd.DataFrame:
    """Return what `sentences` returns for an uploaded file. `digest` is the cache's key for `_text`."""
    table, sides = _text.table, _text.sides
    if len(sides) == 1:  # copies of a sentence would hide each other on a map
        table = table.drop_duplicates(sides)
    places = np.linspace(0, len(table) - 1, min(count, len(table))).astype(int)
    table = table.iloc[places]
    langs = [_text.columns[int(side)] for side in sides]
    sentences = rows.translations(list(zip(*(table[side] for side in sides), strict=True)), langs)
    prefixes = sentences["id"].str.rstrip(string.digits)
    if len(set(langs)) < len(langs):  # if both columns have one language, their ids must differ
        prefixes = pd.Series(np.repeat([langs[0], f"{langs[1]}2_"], len(table)))
    pair = np.tile(places, len(sides))  # index in the whole text, so that ids stay the same if more rows are shown
    sentences = sentences.assign(id=prefixes + pair.astype(str).astype(object), pair=pair)
    own = table.drop(columns=[column for column in table if column.isdecimal()])
    taken = f"{rows.OWN_COLUMN}gold" in own  # whether the user has a column called "gold" besides the scores
    own = own.rename(columns={"gold": f"{rows.OWN_COLUMN}{'scores' if taken else 'gold'}"})
    return sentences.assign(**{name: np.tile(own[name].to_numpy(), len(sides)) for name in own})


def different(single: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield each sentence once, because a map would draw copies at the same place."""
    seen = set[str]()
    for (sentence,) in single:
        if sentence not in seen:
            seen.add(sentence)
            yield [sentence]
