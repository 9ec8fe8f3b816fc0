"""Parse the columns of a corpus (names and languages), files with columns ("en-fr=a.tsv"), and language codes."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bgt_core.errors import UsageError, did_you_mean

LABEL = "label"  # stands in place of the language of a column of numbers
ALTERED = "altered"  # prefix of the names of columns whose sentences were altered to mean something else
SKIPPED = "_"  # stands in place of the name of a column that is not read
KIND = r"[A-Za-z0-9_-]+"
UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "zh"})  # languages written without spaces between words
_JOINED = re.compile(r"[a-z]{2,3}(?:-(?:[A-Z][a-z]{3}|[A-Z]{2}|\d\w{2,3})(?!\w))+|[^-]+")


@dataclass(frozen=True)
class Source:
    """A file of translations (or prefix of line-aligned files), its columns, and a teacher model's vectors, if any."""

    path: Path
    columns: tuple[str, ...]  # names of the columns, in order; `SKIPPED` for a column that is not read
    targets: Path | None = None  # .npy file, float32 (rows, D): a teacher model's vectors for these rows
    kind: str = ""  # kind of text, such as "news"; training can sample kinds with different weights

    def __str__(self) -> str:
        return f"{self.kind}{'/' * bool(self.kind)}{'-'.join(self.columns)}={self.path}"


def altered_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Map each column of altered sentences to the first column of unaltered sentences in the same language.

    `columns` maps the name of each column to its language. Raises UsageError if there is no such unaltered column.
    """
    plain = {lang: name for name, lang in reversed([*columns.items()]) if not name.startswith(ALTERED)}
    altered = {name: lang for name, lang in columns.items() if name.startswith(ALTERED)}
    if missing := [name for name, lang in altered.items() if lang not in plain]:
        raise UsageError(
            f"{', '.join(columns)}: '{missing[0]}' needs an unaltered column in its language", parameter="columns"
        )
    return {name: plain[lang] for name, lang in altered.items()}


def read_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns that are read: all except `SKIPPED`."""
    return tuple(column for column in columns if column != SKIPPED)


def split_langs(text: str) -> list[str]:
    """Split languages joined by hyphens: "en-fr" -> ["en", "fr"], "en-zh-Hant" -> ["en", "zh-Hant"].

    A part that has the form of a script, a region or a year in BCP 47 stays with the language before it: zh-Hant,
    pt-BR, es-419, de-1996.
    """
    return _JOINED.findall(text)


def lang_codes(langs: str) -> str:
    """Normalise language codes that are joined by hyphens, each by `lang_code`: "eng_Latn-FR" -> "en-fr"."""
    return "-".join(map(lang_code, split_langs(langs)))


def canonical_column(column: str) -> str:
    """Normalise the language of a column by `lang_code`: "eng_Latn" -> "en", "a:EN" -> "a:en"."""
    name, colon, lang = column.rpartition(":")
    return f"{name.strip()}{colon}{lang_code(lang.strip())}"


def parse_column(column: str, parameter: str = "columns") -> tuple[str, str]:
    """Split a column into name and language: "en" -> ("en", "en"), "b:en" -> ("b", "en"). UsageError if invalid."""
    name, colon, lang = (part.strip() for part in column.partition(":"))
    lang = lang if colon else name
    if not LANG.fullmatch(lang):  # a valid code is not normalised, because a stored model may use this code
        lang, name = lang_code(lang), name if colon else lang_code(name)
    if name == SKIPPED or not re.fullmatch(KIND, name) or not (lang == LABEL or LANG.fullmatch(lang)):
        raise UsageError(
            f"'{column}': expected a language code, such as en, or NAME:LANGUAGE, such as a:en.{lang_hint(lang)}",
            parameter=parameter,
        )
    return name, lang


def text_columns(langs: str) -> tuple[list[str], list[str]]:
    """Parse the columns of a text file: "a:en,_,fr" -> (["a", "_", "fr"], ["en", "fr"]): names and languages.

    Raises UsageError for an invalid entry, for a column of labels, and if no entry has a language.
    """
    given = [column.strip() for column in langs.split(",")]
    parsed = [(SKIPPED, "") if column == SKIPPED else parse_column(column, "langs") for column in given]
    languages = [lang_code(lang) for name, lang in parsed if name != SKIPPED]
    if not languages or LABEL in languages:
        raise UsageError(f"'{langs}': expected languages, as in en,fr.", parameter="langs")
    return [name for name, _ in parsed], languages


def parse_columns(columns: Iterable[str]) -> dict[str, str]:
    """Parse columns: ["en", "b:en", "gold:label"] -> {"en": "en", "b": "en", "gold": "label"}.

    Raises UsageError for an invalid entry, for a repeated name, for a second column of labels, and if there is no
    column of text.
    """
    columns = [str(column) for column in columns]
    parsed: dict[str, str] = {}
    for column in columns:
        name, lang = parse_column(column)
        if name in parsed:
            raise UsageError(
                f"{', '.join(columns)}: '{name}' is repeated; add names, as in a:{lang},b:{lang}", parameter="columns"
            )
        parsed[name] = lang
    languages = list(parsed.values())
    if languages.count(LABEL) > 1:
        raise UsageError(f"{', '.join(columns)}: at most one column may contain labels", parameter="columns")
    if languages.count(LABEL) == len(languages):
        raise UsageError("columns: expected one or more columns of text, such as en, fr")
    altered_columns(parsed)
    return parsed


def parse_source(text: str, columns: Sequence[str] = ()) -> Source:
    """Parse COLUMNS=FILE: the file in "en-fr=a.tsv" has the columns en and fr; "a.tsv" alone has all `columns`.

    In "news/en-fr=a.tsv", "news" is the kind of text. In "a,b,_=a.tsv", the third column is skipped. `columns` are the
    known names; if `columns` is empty, any name is allowed. Raises UsageError for an unknown column.
    """
    head, equals, path = text.partition("=")
    named = re.fullmatch(rf"(?:({KIND})/)?([A-Za-z0-9_,-]+)", head)
    if named and re.fullmatch("[a-z]{2}_[a-z]{2}", named[2]) and not matching(named[2], columns):
        named = None  # reject "en_fr", which probably means en-fr, not the English of France
    if not equals or is_file(text) or not named:
        if equals and not is_file(text) and (is_file(path) or not columns):
            raise UsageError(f"'{text}': expected COLUMNS=FILE, as in en-fr={path or 'FILE'}", parameter="data")
        if not columns:
            raise UsageError(f"'{text}': add the columns of the file, as in en-fr={text}", parameter="data")
        return Source(Path(text), tuple(columns))
    plain = named[2].split("," if "," in head else "-")
    plain = plain if "," in head or {*plain} <= {*columns} else split_langs(named[2])
    names = tuple(matching(name, columns) or canonical_column(name) for name in plain)
    if columns and (unknown := [name for name in names if name not in (*columns, SKIPPED)]):
        raise UsageError(f"'{text}': no column '{unknown[0]}'; expected {', '.join(columns)}", parameter="data")
    return Source(Path(path), names, kind=named[1] or "")


def is_file(text: str) -> bool:
    """Test whether a file or folder of that name exists; return False for a name that the operating system rejects."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def parse_weights(text: str) -> dict[str, float]:
    """Parse weights of kinds of text: "news:3,docs:0.5" -> {"news": 3.0, "docs": 0.5}; UsageError for anything else."""
    weights: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        kind, _, weight = part.partition(":")
        if not re.fullmatch(KIND, kind) or not re.fullmatch(r"\d+(\.\d+)?", weight) or not float(weight):
            raise UsageError(
                f"'{part}': expected KIND:WEIGHT with a weight above 0, as in news:3", parameter="kind_weights"
            )
        if kind in weights:
            raise UsageError(f"'{text}': '{kind}' is repeated; give it one weight", parameter="kind_weights")
        weights[kind] = float(weight)
    return weights


# Language codes: users may write codes of any standard, such as eng or en; this package uses only one, such as en.

LANG = re.compile(r"[a-z]{2,3}(-\w+)*")
_ROWS = [line.split("\t") for line in Path(__file__).with_name("languages.tsv").read_text("utf-8").splitlines()[1:]]
NAMES = {name.lower(): two for two, _, name, *_ in _ROWS}
# ISO 639-1 -> ISO 639-3; three macrolanguages are mapped to the single language that data sets use, such as zh to cmn
THREE_LETTERS = {two: three for two, three, *_ in _ROWS}
_TWO_LETTERS = {code: two for two, three, _, _, others in _ROWS for code in (three, *others.split())}
_USUAL = {two: script for two, _, _, script, _ in _ROWS}  # language -> script that its code omits; "" for Chinese: none


@cache
def lang_code(text: str) -> str:
    """Normalise a language code to BCP 47: use the two-letter code if there is one, and omit the usual script.

    In an unknown code, only letter case and "_" change. Text that is not a code is returned unchanged.

    >>> [lang_code(text) for text in ("EN", "eng_Latn", "zho_Hans", "pt_br", "fre", "English")]
    ['en', 'en', 'zh-Hans', 'pt-BR', 'fr', 'English']
    """
    first, *rest = re.split("[-_]", text)
    if not re.fullmatch("[A-Za-z]{2,3}", first):
        return text
    lang = _TWO_LETTERS.get(first.lower(), first.lower())
    parts = [part.title() if len(part) == 4 else part.upper() if len(part) == 2 else part for part in rest]
    if parts and parts[0] == _USUAL.get(lang, "Latn"):
        del parts[0]
    return "-".join([lang, *parts])


def matching(lang: str, known: Iterable[str]) -> str | None:
    """Return the code in `known` that equals `lang`, else the first one for the same language, else None."""
    known = tuple(known)
    if lang in known:
        return lang
    return next((each for each in known if lang_code(each) == lang_code(lang)), None)


def known_lang(lang: str, known: Collection[str], who: str, parameter: str = "lang") -> str:
    """Return the code in `known` for the same language as `lang`; `lang` itself if `known` is empty.

    `known` are the languages of an encoder, and `who` names the encoder in messages. Raises UsageError for an unknown
    language.
    """
    shown = lang if str(lang) and not re.search(r"\s", str(lang)) else f"'{lang}'"
    if not known:
        if not isinstance(lang, str) or not LANG.fullmatch(lang_code(lang)):
            raise UsageError(f"{shown}: expected a language code, like en.{lang_hint(str(lang))}", parameter=parameter)
        return lang
    if isinstance(lang, str) and re.search(r"[,;\s]\w", lang.strip()):
        raise UsageError(f"{shown}: expected one language, such as {next(iter(known))}", parameter=parameter)
    if not isinstance(lang, str) or (same := matching(lang, known)) is None:
        raise UsageError(
            f"{shown}: {who} supports {', '.join(known)}.{lang_hint(str(lang), known)}", parameter=parameter
        )
    return same


def takes(known: Collection[str], lang: str) -> bool:
    """Test whether an encoder with the languages `known` accepts `lang`. An empty `known` means any language."""
    return not known or matching(lang, known) is not None


def lang_hint(text: str, known: Collection[str] = ()) -> str:
    """Return a hint for the end of a message about an unknown language: " Did you mean 'en'?"; "" if there is no guess.

    `text` may be the name of a language, or another code of a language (zh for zh-Hans). If `known` is not empty, the
    hint suggests one of these languages.
    """
    code = NAMES.get(text.lower(), "")
    if not known:
        return f" Did you mean '{code}'?" if code else ""
    close = [each for each in known if primary(each) == (code or primary(text))]
    return f" Did you mean '{close[0]}'?" if close else did_you_mean(text, known)


def primary(lang: str) -> str:
    """Remove script and region from a language code: "pt-BR" -> "pt"."""
    return lang_code(lang).partition("-")[0]
