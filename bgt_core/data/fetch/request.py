"""The data types of this package: sources, requests, and downloaded files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import requests

from bgt_core.data.fetch import opus
from bgt_core.data.languages import THREE_LETTERS
from bgt_core.errors import UsageError

Archives = Mapping[str, Path]  # the last part of the address -> the file downloaded from there


@dataclass(frozen=True)
class OutputFile:
    """A downloaded file, with its columns and rows if we wrote it."""

    path: Path
    columns: tuple[str, ...] = ()  # empty unless it is a table of ours
    rows: int | None = None


@dataclass(frozen=True)
class Converted:
    """All files of a download, and the numbers of rows left out, by reason."""

    files: list[OutputFile]
    left_out: dict[str, int]


@dataclass(frozen=True)
class DataSource:
    """One data set. Addresses may contain {opus_pair}, {release} and {iso} (of the language other than English)."""

    name: str  # the name that users type
    what: str
    licence: str
    addresses: tuple[str, ...]
    convert: Callable[[Archives, Request, Path], Converted]  # archives -> files in a folder, as our commands read them
    pairs: str = ""  # languages: "any" pair, "any pair with en", one pair, or "" if there is no choice
    release: str = ""  # the default release; "latest" is looked up at OPUS

    @property
    def from_opus(self) -> bool:
        """Whether its archive is a parallel corpus in OPUS's layout."""
        return "{opus_pair}" in self.addresses[0]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One download: a source, and the choices of the user."""

    source: DataSource
    langs: tuple[str, ...] = ()  # in the order of the columns
    release: str = ""
    max_pairs: int | None = None  # size of a random sample
    raw: bool = False  # keep the source's own files
    seed: int = 1  # of the sample

    @classmethod
    def parse(
        cls,
        source: DataSource,
        *,
        pair: str | None = None,
        release: str | None = None,
        max_pairs: int | None = None,
        raw: bool = False,
    ) -> Request:
        """Parse two languages as in "en-fr", and a release as in "v2018"; UsageError for choices that the source does
        not have."""
        only = source.pairs if "-" in source.pairs else None
        pair = pair or only
        langs = opus.languages(pair) if pair else ()
        name = source.name
        if release:
            try:
                opus.label(release)
            except ValueError as error:
                raise UsageError(f"{error}, as in v2018.", parameter="release") from None
        for wrong, parameter, message in (
            (
                raw and max_pairs is not None,
                "max_pairs",
                "makes a new file, but raw keeps the source's files: leave one out.",
            ),
            (source.pairs and not pair, "pair", f"is needed: {name} has many pairs; choose one, as in en-fr."),
            (pair and not source.pairs, "pair", f"{pair}: {name} has no language pairs; leave it out."),
            (release and not source.release, "release", f"{release}: {name} has no releases; leave it out."),
            (
                max_pairs is not None and (max_pairs < 1 or not source.from_opus),
                "max_pairs",
                f"{max_pairs}: expected 1 or more, and a corpus of OPUS.",
            ),
            (only and sorted(langs) != sorted(only.split("-")), "pair", f"{pair}: {name} has {only} only."),
            (
                source.pairs == "any pair with en" and "en" not in langs,
                "pair",
                f"{pair}: {name} is aligned with en; include it, as in en-fr.",
            ),
        ):
            if wrong:
                raise UsageError(message, parameter=parameter)
        return cls(source=source, langs=langs, release=release or source.release, max_pairs=max_pairs, raw=raw)

    @property
    def stem(self) -> str:
        """Base name of the files: "opensubtitles.v2018.en-fr"."""
        parts = [self.source.name, self.release, "-".join(self.langs), str(self.max_pairs or "")]
        return ".".join(filter(None, parts))

    @property
    def entry(self) -> str:
        """Its name in the manifest."""
        return self.stem + ("+raw" if self.raw else "")

    def resolve(self, http: requests.Session) -> tuple[Request, list[str]]:
        """Resolve the release and its addresses; asks OPUS for the latest release."""
        if self.release == "latest":
            corpus = self.source.addresses[0].partition("OPUS-")[2].partition("/")[0]
            largest = opus.corpora(http, self.langs, corpus)[0]
            return replace(self, release=largest.release), [largest.address]
        other = next((lang for lang in self.langs if lang != "en"), "")
        values = {
            "opus_pair": "-".join(sorted(self.langs)),
            "release": self.release,
            "iso": THREE_LETTERS.get(other, other),
        }
        return self, [address.format(**values) for address in self.source.addresses]
