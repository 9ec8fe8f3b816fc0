"""List the data sets of `bgt data download` with their licences (sources.tsv), and explain errors of requests.

Addresses come from public code of 2020-2026, and licences from the pages of the sources. Nobody has checked them with
the servers. If the SHA-256 of an archive is published, a download must have it (published.tsv, from the
dataset_infos.json of open_subtitles, giga_fren and sick in the `datasets` library). Otherwise the first download is
trusted, and later ones must have the same SHA-256.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bgt_core.data.columns import THREE_LETTERS, lang_code, lang_hint, split_langs
from bgt_core.errors import NotFound, UsageError

if TYPE_CHECKING:
    import requests

OPUS = "https://object.pouta.csc.fi/OPUS-{corpus}/{release}/moses/{opus_pair}.txt.zip"
# name of a release, which becomes a part of file names: without ".."
LABEL = r"(?!.*\.\.)[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?"
CODE = r"[a-z]{2,3}(?:_[A-Za-z]+)?"  # a language code of OPUS: fr, pt_BR
TIMEOUT = (10.0, 60.0)  # seconds: to connect, and between two blocks
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "bgt"}  # without compression, which would change the size


class DataSource(NamedTuple):
    """One data set. Addresses may contain {opus_pair}, {release}, and {iso}: the language that is not English."""

    name: str  # the name that users type
    what: str  # a short description
    licence: str
    addresses: tuple[str, ...]
    layout: str = "files"  # the conversion of its files: one of `fetch.LAYOUTS`
    pairs: str = ""  # "any" pair of languages, "any pair with en", a single pair, or "" without pairs
    release: str = ""  # the default; "needed" if users must choose one, "" if the source has no releases


def _table(name: str) -> list[list[str]]:
    """Read the rows of a table of the package, without its header."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


SOURCES = tuple(
    DataSource(name, what, licence, tuple(addresses.split()), *rest)
    for name, what, licence, addresses, *rest in _table("sources.tsv")
)
PUBLISHED = dict(_table("published.tsv"))


def source(name: str) -> DataSource:
    """Return the source of this name; "opus:NAME" is any other corpus, as OPUS spells it; UsageError if unknown."""
    if name.lower().startswith("opus:") and len(name) > 5:
        address = OPUS.replace("{corpus}", name[5:])
        licence = "not known here; see its LICENSE and https://opus.nlpl.eu"
        return DataSource(name[5:].lower(), "a corpus of OPUS", licence, (address,), "aligned", "any", "needed")
    for known in SOURCES:
        if known.name == name.lower():
            return known
    names = ", ".join(known.name for known in SOURCES)
    raise UsageError(f"No data {name!r}; choose from {names}, or opus:NAME for another corpus of OPUS.")


def languages(pair: str) -> tuple[str, str]:
    """Split a pair in its order: "en-fr" or "eng_Latn-fra_Latn" -> ("en", "fr"); a region, as in pt_BR, stays."""
    given = split_langs(pair)
    first, *rest = [code if "-" not in (code := lang_code(lang)) else lang for lang in given] or [""]
    if len(rest) != 1 or rest[0] == first or not all(re.fullmatch(CODE, lang) for lang in (first, *rest)):
        hint = next(filter(None, map(lang_hint, given)), "")
        raise UsageError(f"{pair}: expected two language codes, as in en-fr.{hint}", parameter="pair")
    return first, rest[0]


class Choice(NamedTuple):
    """A source with the languages and the release that a user chose."""

    source: DataSource
    langs: tuple[str, ...] = ()  # in the order of the columns
    release: str = ""

    @property
    def stem(self) -> str:
        """The base name of the source's files, and its name in the manifest: "opensubtitles.v2018.en-fr"."""
        parts = [self.source.name, self.release, "-".join(self.langs)]
        return ".".join(filter(None, parts))

    @property
    def archives(self) -> list[str]:
        """The addresses of the source's archives."""
        other = next((lang for lang in self.langs if lang != "en"), "")
        values = {"opus_pair": "-".join(sorted(self.langs)), "iso": THREE_LETTERS.get(other, other)}
        return [address.format(**values, release=self.release) for address in self.source.addresses]


def choose(name: str, *, pair: str | None = None, release: str | None = None) -> Choice:
    """Check a user's choice of a source, languages and release; UsageError if the source does not offer them."""
    chosen = source(name)
    only = chosen.pairs if "-" in chosen.pairs else None
    pair = pair or only
    langs = languages(pair) if pair else ()
    if chosen.pairs and not pair:
        raise UsageError(f"is needed: {name} has many pairs; choose one, as in en-fr.", parameter="pair")
    if pair and not chosen.pairs:
        raise UsageError(f"{pair}: {name} has no language pairs; leave it out.", parameter="pair")
    if only and sorted(langs) != sorted(only.split("-")):
        raise UsageError(f"{pair}: {name} has {only} only.", parameter="pair")
    if chosen.pairs == "any pair with en" and "en" not in langs:
        raise UsageError(f"{pair}: {name} is aligned with en; include it, as in en-fr.", parameter="pair")
    if chosen.release == "needed" and not release:
        raise UsageError(f"is needed, as in v2018: {name} has many, see https://opus.nlpl.eu.", parameter="release")
    if release and not chosen.release:
        raise UsageError(f"{release}: {name} has no releases; leave it out.", parameter="release")
    if release and not re.fullmatch(LABEL, release):
        raise UsageError(f"{release!r}: expected letters, digits, '.', '_', '-', as in v2018.", parameter="release")
    return Choice(chosen, langs, release or chosen.release)


# Requests to servers, with errors that name the address, the reason and the way out.


def check_encrypted(response: requests.Response, **_: object) -> None:
    """Raise NotFound if a reply leads from an encrypted address to one that is not; a hook of `requests`."""
    target = response.headers.get("Location", "")
    if response.is_redirect and response.url.startswith("https:") and target.lower().startswith("http:"):
        raise NotFound(f"{response.url}: redirects to {target}, which is not encrypted; nothing was read.")


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn errors of `requests` into NotFound, with the reason and what to do."""
    import requests
    import urllib3

    try:
        yield
    except requests.HTTPError as error:
        status, reason = getattr(error.response, "status_code", 0), getattr(error.response, "reason", "")
        hint = "try again later" if status == 429 or status >= 500 else "is there such a file?"
        raise NotFound(f"{url}: the server answers {status} {reason}; {hint}") from error
    except requests.exceptions.ChunkedEncodingError as error:
        raise NotFound(f"{url}: the connection broke; the same command starts this file again.") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        inner, reason = error, type(error).__name__
        while inner is not None:  # the innermost error is the system's
            reason = inner.strerror if isinstance(inner, OSError) and inner.strerror else reason
            inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
        proxy = proxy_of(url)
        way_out = "check that variable, or unset it" if proxy else "check the network, or try again later"
        raise NotFound(f"{url}: no connection{proxy} ({reason}); {way_out}.") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
        raise NotFound(f"{url}: can't be requested ({' '.join(str(error).split())[:200]}).") from error


def proxy_of(url: str) -> str:
    """Name the proxy for an address, and the variable that sets it, for messages; "" without a proxy."""
    from requests.utils import get_environ_proxies, select_proxy

    proxy = select_proxy(url, get_environ_proxies(url))
    if not proxy:
        return ""
    variables = [name for name, value in os.environ.items() if name.lower().endswith("_proxy") and value == proxy]
    return f" through the proxy {proxy.rpartition('@')[2]} ({', '.join(variables) or 'of the system'})"  # no password
